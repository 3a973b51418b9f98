//! A growing SliceHash's configurations for tests, and its decoders for fuzzing.

use nandex_device::PageId;
use nandex_store::bytes::Reader;

use super::Config;
use super::config::with_partitions;
use crate::OpenOptions;
use crate::slicehash::{self};
use crate::testing::{Decoder, Retention, TableRequest, TableTests, TestTable};

/// Variants have slices of one part and of three, without filters and with some.
pub(super) const TESTS: TableTests = TableTests { variants: 2, config };

fn config(request: &TableRequest) -> TestTable {
    let &TableRequest { variant, key_bytes, value_bytes, partitions, buffer_pages, .. } = request;
    let (slice_parts, filter_bytes) = [(1, 0), (3, 8 << 10)][(variant % 2) as usize];
    let plain = slicehash::Config {
        key_bytes,
        value_bytes,
        buffer_pages,
        slice_parts,
        group_slices: 2,
        slices: buffer_pages + 1,
        ..slicehash::Config::tiny()
    };
    let space = plain.slices * plain.slice_entries();
    // Few partitions at first, so that a short test makes it grow several times.
    let one = slicehash::Config { entries_max: space * 7 / 8, ..plain };
    let first = with_partitions(one, partitions.div_ceil(4));
    let own = OpenOptions {
        flush_threads: Some(request.threads),
        io_chunk_pages: Some(5),
        filter_bytes,
        cache_bytes: request.cache_bytes,
        ..OpenOptions::default()
    };
    let slots = plain.layout().expect("these widths are in range").slots() as u64;
    TestTable {
        label: format!("growing SliceHash, {slice_parts} parts"),
        config: Config { first, ram_bytes_max: None }.into(),
        options: own,
        buffer_entries: u64::from(buffer_pages) * slots,
        retention: Retention::All,
    }
}

pub(super) const DECODERS: &[Decoder] =
    &[Decoder { name: "growing-slicehash configuration", run: decode_config }];

fn decode_config(bytes: &[u8]) {
    let mut reader = Reader::new(bytes, "configuration", PageId(0));
    if let Ok(config) = Config::decode(&mut reader) {
        let again = config.encode();
        let read_back = Config::decode(&mut Reader::new(&again, "again", PageId(0)));
        assert_eq!(read_back.ok(), Some(config));
    }
}
