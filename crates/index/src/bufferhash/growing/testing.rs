//! A growing table's configurations for tests, and its decoders for fuzzing.

use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::entries::EntryLayout;

use super::Config;
use super::sizes::of_super_tables;
use crate::OpenOptions;
use crate::bufferhash::filter::FilterShape;
use crate::bufferhash::{self, Policy};
use crate::testing::{Decoder, Retention, TableRequest, TableTests, TestTable};

/// Variants have few incarnations and buffers of one size, and many incarnations and buffers of several sizes.
pub(super) const TESTS: TableTests = TableTests { variants: 2, config };

fn config(request: &TableRequest) -> TestTable {
    let &TableRequest { variant, key_bytes, value_bytes, partitions, buffer_pages, .. } = request;
    let layout = EntryLayout::new(key_bytes, value_bytes).expect("these widths are in range");
    let slots = u32::try_from(layout.slots()).expect("at most 508") * buffer_pages;
    let entries = slots * 95 / 100;
    let (incarnations_max, buffer_pages_max) =
        [(3, 0), (6, 4 * buffer_pages)][(variant % 2) as usize];
    let one = bufferhash::Config {
        key_bytes,
        value_bytes,
        buffer_pages,
        incarnations_max: 3,
        filter: FilterShape::fuse(entries, 12, 1).expect("these numbers are in range"),
        policy: Policy::Reject,
        ..bufferhash::Config::tiny()
    };
    let first = of_super_tables(&one, partitions);
    let &TableRequest { threads: flush_threads, cache_bytes, .. } = request;
    let own =
        OpenOptions { flush_threads: Some(flush_threads), cache_bytes, ..OpenOptions::default() };
    TestTable {
        label: format!("growing BufferHash, {incarnations_max} incarnations"),
        config: Config { first, incarnations_max, ram_bytes_max: None, buffer_pages_max }.into(),
        options: own,
        buffer_entries: entries.into(),
        retention: Retention::All,
    }
}

pub(super) const DECODERS: &[Decoder] =
    &[Decoder { name: "growing configuration", run: decode_config }];

fn decode_config(bytes: &[u8]) {
    let mut reader = Reader::new(bytes, "configuration", PageId(0));
    if let Ok(config) = Config::decode(&mut reader) {
        let again = config.encode();
        let read_back = Config::decode(&mut Reader::new(&again, "again", PageId(0)));
        assert_eq!(read_back.ok(), Some(config));
    }
}
