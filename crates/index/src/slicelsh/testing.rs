//! SliceLSH's configurations for tests, and its decoders for fuzzing.

use nandex_store::hash::{HashKind, KeyHasher};
use nandex_store::page::PAGE_BODY_BYTES;

use super::Config;
use super::format::{
    DocumentCodec, DocumentUpdate, decode_config, put_snapshot_entry, snapshot_entries,
};
use super::keys::BucketPlacing;
use crate::testing::{Decoder, NeighborsTests, TestNeighbors};
use crate::write::LogCodec;
use crate::write::format::Moved;
use crate::{OpenOptions, WhenFull};

/// Variants cover both policies, striped and placed tables, and buckets of one, few and many ids.
pub(super) const TESTS: NeighborsTests = NeighborsTests { variants: 12, config };

/// Tables, channels and pages of a chunk.
const PLACED: [(u32, (u32, u32)); 6] =
    [(3, (1, 1)), (3, (4, 2)), (1, (1, 1)), (10, (4, 1)), (2, (5, 2)), (4, (1, 1))];

fn config(variant: u64, threads: usize) -> TestNeighbors {
    let policy = [WhenFull::EvictOldest, WhenFull::Refuse][(variant % 2) as usize];
    let (tables, (channels, chunk_pages)) = PLACED[(variant / 2 % 6) as usize];
    let bucket_ids_max = [40, 3, 253, 1][(variant % 4) as usize];
    let config = Config {
        tables,
        partitions: 1 << (variant % 3),
        buffer_entries: 20 * tables + 7 * (variant as u32 % 5),
        slices: 3,
        bucket_ids_max,
        policy,
        entries_max: 3 * 250 * tables,
        channels,
        chunk_pages,
        stagger: variant % 3 == 1,
        family: vec![variant as u8; variant as usize % 4],
        ..Config::tiny()
    };
    let has_filter = variant % 3 == 1;
    // Not a divisor of a block's pages.
    let own = OpenOptions {
        flush_threads: Some(threads),
        io_chunk_pages: Some(5),
        filter_bytes: if has_filter { 1 << 20 } else { 0 },
        ..OpenOptions::default()
    };
    TestNeighbors {
        label: format!("SliceLSH {policy:?}, {tables} tables on {channels}, {bucket_ids_max} ids"),
        config: config.into(),
        options: own,
        tables,
        // Few enough for the slices of one partition, if all go there.
        documents: 240,
        bucket_ids_max,
        has_filter,
    }
}

pub(super) const DECODERS: &[Decoder] = &[
    Decoder { name: "configuration", run: decode_configuration },
    Decoder { name: "update of a document", run: decode_update },
    Decoder { name: "page of a snapshot", run: decode_snapshot },
];

fn decode_configuration(bytes: &[u8]) {
    if let Ok(config) = decode_config(bytes) {
        assert!(config.validate().is_ok() && config.slicetable_pages() > 0);
        assert_eq!(config.encode(), bytes);
        assert!(config.check_family(&config.family).is_ok());
    }
}

/// The number of tables, and an update or a move.
fn decode_update(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let tables = 1 + u32::from(first % 64);
    let hasher = KeyHasher::new(HashKind::Xxh3, 1);
    let codec =
        DocumentCodec { placing: BucketPlacing { hasher, tables, partitions: 4, slices: 7 } };
    let mut found = 0;
    let decoded = codec.decode_each(bytes, &mut |partition, update| {
        assert!(partition < 4 && u32::from(update.pair.table) == found);
        found += 1;
        Ok(())
    });
    let Some(update) = DocumentUpdate::decode(bytes, tables) else {
        assert!(!decoded.expect("nothing refuses") && found == 0);
        return;
    };
    assert!(found == tables && Moved::decode(bytes).is_none());
    let keys: Vec<_> = update.pairs().map(|pair| pair.key).collect();
    let mut encoded = Vec::new();
    DocumentUpdate::encode(&mut encoded, update.id, &keys, update.removes);
    assert_eq!(encoded, bytes);
}

/// The number of tables, and the body of a page.
fn decode_snapshot(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let tables = 1 + u32::from(first % 64);
    let mut body = vec![0; PAGE_BODY_BYTES];
    let length = bytes.len().min(PAGE_BODY_BYTES);
    body[..length].copy_from_slice(&bytes[..length]);
    let Some(entries) = snapshot_entries(&body, tables) else { return };
    let mut encoded = vec![0; PAGE_BODY_BYTES];
    for (at, entry) in entries.iter().enumerate() {
        assert!(u32::from(entry.0.table) < tables);
        put_snapshot_entry(&mut encoded, at, *entry);
    }
    assert_eq!(snapshot_entries(&encoded, tables), Some(entries));
}
