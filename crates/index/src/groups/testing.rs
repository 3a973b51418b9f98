//! Configurations of tables of groups for tests, and their decoders for fuzzing.

use nandex_device::PageId;
use nandex_store::StructureId;
use nandex_store::bytes::Reader;

use super::{GroupConfig, GroupMap, GroupModel, GroupParameters, GroupStructure};
use crate::OpenOptions;
use crate::testing::{Retention, TableRequest, TestTable};

/// Creates a table for a harness's request, with the rest of the configuration and its `label`.
#[must_use]
pub fn test_table<C: GroupModel>(request: &TableRequest, config: C, label: String) -> TestTable {
    let &TableRequest { key_bytes, value_bytes, partitions, buffer_pages, .. } = request;
    let stagger = request.variant % 2 == 1;
    let common = GroupParameters {
        key_bytes,
        value_bytes,
        partitions,
        buffer_pages,
        stagger,
        ..config.common()
    };
    let own = OpenOptions {
        flush_threads: Some(request.threads),
        cache_bytes: request.cache_bytes,
        ..OpenOptions::default()
    };
    let slots = common.layout().expect("these widths are in range").slots() as u64;
    TestTable {
        label,
        config: config.with_common(common).into(),
        options: own,
        buffer_entries: u64::from(buffer_pages) * slots,
        retention: Retention::All,
    }
}

/// Decodes a configuration, and checks that it encodes to the same bytes.
pub fn decode_config<C: GroupConfig>(bytes: &[u8]) {
    let mut reader = Reader::new(bytes, C::BYTES[0], PageId(0));
    if let Ok(config) = C::take(&mut reader) {
        assert!(config.check().is_ok());
        let mut encoded = Vec::new();
        config.put(&mut encoded);
        assert_eq!(encoded, bytes[..bytes.len() - reader.left()]);
    }
}

/// Decodes a map of a table of the smallest configuration, and checks that it encodes to the same bytes.
pub fn decode_map<S: GroupStructure>(bytes: &[u8]) {
    let mut reader = Reader::new(bytes, S::Config::BYTES[1], PageId(0));
    if let Ok(map) = S::decode_map(&S::Config::tiny(), StructureId(1), &mut reader) {
        let mut encoded = Vec::new();
        map.encode(&mut encoded);
        assert_eq!(encoded, bytes[..bytes.len() - reader.left()]);
    }
}
