//! The multi-level index's configurations for tests, and its decoders for fuzzing.

use nandex_device::PageId;
use nandex_store::StructureId;
use nandex_store::bytes::Reader;

use super::levels::LevelMap;
use super::{Config, RuntimeOptions};
use crate::any::AnyOptions;
use crate::testing::{Decoder, Retention, TableRequest, TableTests, TestTable};

/// Variants have levels of many groups and a cache of pages, and groups of one page and no such cache.
pub(super) const TESTS: TableTests = TableTests { variants: 2, config };

fn config(request: &TableRequest) -> TestTable {
    let &TableRequest { variant, key_bytes, value_bytes, partitions, buffer_pages, .. } = request;
    let (first_pages, group_pages, page_cache_bytes) =
        [(1, 4, 32 << 10), (2, 1, 0)][(variant % 2) as usize];
    let config = Config {
        key_bytes,
        value_bytes,
        partitions,
        buffer_pages,
        first_pages,
        group_pages,
        stagger: variant % 2 == 1,
        page_cache_bytes,
        ..Config::tiny()
    };
    let own = RuntimeOptions {
        flush_threads: request.threads,
        cache_bytes: request.cache_bytes,
        ..RuntimeOptions::default()
    };
    let slots = config.layout().expect("these widths are in range").slots() as u64;
    TestTable {
        label: format!("multi-level, from {first_pages} pages on, groups of {group_pages}"),
        config: config.into(),
        options: AnyOptions::default().with(own),
        buffer_entries: u64::from(buffer_pages) * slots,
        retention: Retention::All,
    }
}

pub(super) const DECODERS: &[Decoder] = &[
    Decoder { name: "configuration", run: decode_config },
    Decoder { name: "levels", run: decode_levels },
];

fn decode_config(bytes: &[u8]) {
    let mut reader = Reader::new(bytes, "multilevel configuration", PageId(0));
    if let Ok(config) = Config::decode(&mut reader) {
        assert!(config.validate().is_ok());
        assert_eq!(config.encode(), bytes[..bytes.len() - reader.left()]);
    }
}

fn decode_levels(bytes: &[u8]) {
    let mut reader = Reader::new(bytes, "multilevel state", PageId(0));
    if let Ok(map) = LevelMap::decode(StructureId(1), Config::tiny().plan(), &mut reader) {
        let mut encoded = Vec::new();
        map.encode(&mut encoded);
        assert_eq!(encoded, bytes[..bytes.len() - reader.left()]);
    }
}
