//! BufferHash's configurations for tests, and its decoders for fuzzing.

use nandex_device::{PAGE_BYTES, PageId};
use nandex_store::bytes::Reader;
use nandex_store::entries::EntryLayout;
use nandex_store::hash::{HashKind, KeyHasher};

use super::filter::FilterShape;
use super::format::decode_filter;
use super::{Config, Policy};
use crate::OpenOptions;
use crate::testing::{Decoder, Retention, TableRequest, TableTests, TestTable};

/// Variants cover each policy, each with both kinds of filter in one and in two words of columns.
pub(super) const TESTS: TableTests = TableTests { variants: 24, config };

const POLICIES: [Policy; 6] = [
    Policy::Fifo,
    Policy::Lru,
    Policy::Update,
    Policy::Threshold(0),
    Policy::Top(500),
    Policy::Reject,
];

/// Segments of a ring that fills quickly.
const SEGMENTS_FEW: u64 = 24;

fn config(request: &TableRequest) -> TestTable {
    let &TableRequest { variant, key_bytes, value_bytes, partitions, buffer_pages, .. } = request;
    let policy = POLICIES[(variant % 6) as usize];
    let is_fuse = (variant / 6).is_multiple_of(2);
    let words = 1 + (variant / 12 % 2) as u32;
    let layout = EntryLayout::new(key_bytes, value_bytes).expect("these widths are in range");
    let slots = u32::try_from(layout.slots()).expect("at most 508") * buffer_pages;
    let entries = slots * 95 / 100;
    let filter = match is_fuse {
        true => FilterShape::fuse(entries, 12, words),
        false => FilterShape::bloom(entries, 12.0, words),
    };
    let columns = 64 * words - 8;
    let (segments, incarnations_max) = match request.keys {
        Some(_) => (u64::from(partitions) * u64::from(columns), columns),
        None => (SEGMENTS_FEW.max(6 * u64::from(partitions)), (48 / partitions).max(12)),
    };
    let config = Config {
        key_bytes,
        value_bytes,
        super_tables: partitions,
        buffer_pages,
        segments,
        incarnations_max,
        filter: filter.expect("these numbers are in range"),
        policy,
        ..Config::tiny()
    };
    TestTable {
        label: format!(
            "BufferHash {policy:?}, {} x {words}",
            if is_fuse { "fuse" } else { "Bloom" }
        ),
        config: config.into(),
        options: options(request),
        buffer_entries: entries.into(),
        retention: retention(policy, request.keys.is_some(), entries.into()),
    }
}

fn options(request: &TableRequest) -> crate::OpenOptions {
    let &TableRequest { threads: flush_threads, cache_bytes, .. } = request;
    OpenOptions { flush_threads: Some(flush_threads), cache_bytes, ..OpenOptions::default() }
}

/// A ring of 24 keeps more than 16 incarnations in addition to the newest. Under a partial discard up to four in five
/// of them may hold entries that were put back.
fn retention(policy: Policy, is_ample: bool, buffer_entries: u64) -> Retention {
    match policy {
        _ if is_ample => Retention::All,
        Policy::Reject | Policy::Grow => Retention::Refuses,
        Policy::Fifo => Retention::Newest(6 * buffer_entries),
        Policy::Lru => Retention::NewestUsed(6 * buffer_entries),
        Policy::Update | Policy::Threshold(_) => Retention::AllUnlessForced(2 * buffer_entries),
        Policy::Top(_) => Retention::Newest(2 * buffer_entries),
    }
}

pub(super) const DECODERS: &[Decoder] = &[
    Decoder { name: "configuration", run: decode_config },
    Decoder { name: "entry and filter page", run: decode_pages },
];

fn decode_config(bytes: &[u8]) {
    let mut reader = Reader::new(bytes, "configuration", PageId(0));
    if let Ok(config) = Config::decode(&mut reader) {
        assert!(config.validate().is_ok() && config.ring_pages() > 0);
    }
}

/// Key bytes, value bytes, a seed of the hash, and the page.
fn decode_pages(bytes: &[u8]) {
    let Some(([key_bytes, value_bytes], rest)) = bytes.split_first_chunk() else { return };
    let Some((seed, bytes)) = rest.split_first_chunk() else { return };
    let Ok(layout) = EntryLayout::new((*key_bytes).into(), (*value_bytes).into()) else { return };
    let mut page = [0; PAGE_BYTES];
    let length = bytes.len().min(PAGE_BYTES);
    page[..length].copy_from_slice(&bytes[..length]);
    let words = usize::from(*value_bytes);
    assert_eq!(decode_filter(&page, words).len(), words);
    let hasher = KeyHasher::new(HashKind::default(), u128::from_le_bytes(*seed));
    for (slot, entry) in layout.entries(&page) {
        assert_eq!(entry.key.len(), layout.key_bytes());
        assert_eq!(entry.value.len(), layout.value_bytes());
        assert_eq!(layout.entry(&page, slot), Some(entry));
        let buckets = layout.buckets_of(hasher.hash(entry.key));
        if let Some(found) = layout.find(&page, entry.key, buckets) {
            assert!(layout.entry(&page, found).is_none_or(|it| it.key == entry.key));
        }
    }
}
