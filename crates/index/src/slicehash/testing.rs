//! SliceHash's configurations for tests, and its decoders for fuzzing.

use nandex_store::entries::EntryLayout;
use nandex_store::page::PAGE_BODY_BYTES;

use super::Config;
use super::format::{Moved, decode_config, decode_log_entry};
use super::slice::SliceLayout;
use crate::testing::{Decoder, Retention, TableRequest, TableTests, TestTable};
use crate::{OpenOptions, WhenFull};

/// Variants cover both policies, each with every sort of slicetable.
pub(super) const TESTS: TableTests = TableTests { variants: 12, config };

/// The parts that vary: slicetables, buffers and front.
struct Sort {
    slice_parts: u32,
    bucket_slots: u32,
    front_runs: u32,
    filter_bytes: u64,
}

const SORTS: [Sort; 6] = [
    Sort { slice_parts: 1, bucket_slots: 4, front_runs: 0, filter_bytes: 0 },
    Sort { slice_parts: 3, bucket_slots: 3, front_runs: 0, filter_bytes: 8 << 10 },
    Sort { slice_parts: 1, bucket_slots: 2, front_runs: 6, filter_bytes: 8 << 10 },
    Sort { slice_parts: 3, bucket_slots: 4, front_runs: 5, filter_bytes: 0 },
    Sort { slice_parts: 1, bucket_slots: 3, front_runs: 3, filter_bytes: 0 },
    Sort { slice_parts: 3, bucket_slots: 2, front_runs: 0, filter_bytes: 0 },
];

fn config(request: &TableRequest) -> TestTable {
    let policy = [WhenFull::EvictOldest, WhenFull::Refuse][(request.variant % 2) as usize];
    let sort = &SORTS[(request.variant / 2 % 6) as usize];
    // A table that rejects updates has no front.
    let front_runs = if policy == WhenFull::Refuse { 0 } else { sort.front_runs };
    let plain = Config {
        key_bytes: request.key_bytes,
        value_bytes: request.value_bytes,
        partitions: request.partitions,
        buffer_pages: request.buffer_pages,
        bucket_slots: sort.bucket_slots,
        slice_parts: sort.slice_parts,
        group_slices: 2,
        policy,
        front_runs,
        spare_buffers: 2 + front_runs / 2,
        ..Config::tiny()
    };
    let slots = plain.layout().expect("these widths are in range").slots() as u64;
    let buffer_entries = u64::from(request.buffer_pages) * slots;
    let slices = slices(&plain, request.keys, buffer_entries);
    let config = Config { slices, entries_max: slices * plain.slice_entries(), ..plain };
    // Not a divisor of a slicetable's pages.
    let (flush_threads, io_chunk_pages) = (request.threads, 5);
    let own = OpenOptions {
        flush_threads: Some(flush_threads),
        io_chunk_pages: Some(io_chunk_pages),
        filter_bytes: sort.filter_bytes,
        cache_bytes: request.cache_bytes,
        ..OpenOptions::default()
    };
    let Sort { slice_parts, bucket_slots, .. } = sort;
    TestTable {
        label: format!(
            "SliceHash {policy:?}, {slice_parts} parts, buckets of {bucket_slots}, {front_runs} runs"
        ),
        config: config.into(),
        options: own,
        buffer_entries,
        retention: match (request.keys, policy) {
            (Some(_), _) => Retention::All,
            (None, WhenFull::Refuse) => Retention::Refuses,
            (None, _) => Retention::Newest(newest(&config, buffer_entries)),
        },
    }
}

/// Returns the slices of a slicetable: three times what the keys need, or so few that two buffers fit but not 750 keys
/// of a partition.
fn slices(config: &Config, keys: Option<u64>, buffer_entries: u64) -> u32 {
    let one = u64::from(config.slice_entries());
    let slices = match (keys, one) {
        (Some(keys), _) => (3 * keys / u64::from(config.partitions) / one).max(3),
        (None, ..100) => 4,
        (None, 100..200) => 3,
        (None, 200..600) => 2,
        (None, 600..) => 1,
    };
    u32::try_from(slices.max((2 * buffer_entries).div_ceil(one))).expect("a test has few keys")
}

/// Returns the number of the newest puts that are guaranteed not to be evicted: a slice takes its share of them and of
/// the buffer
/// that each was in, with eight deviations.
fn newest(config: &Config, buffer_entries: u64) -> u64 {
    let fits = |puts: u64| {
        let share = puts as f64 / f64::from(config.partitions) + buffer_entries as f64;
        let mean = share / f64::from(config.slices);
        let spread = if config.slices == 1 { 0.0 } else { 8.0 * mean.sqrt() };
        mean + spread <= f64::from(config.slice_entries())
    };
    (0..).find(|puts| !fits(*puts)).map_or(0, |puts: u64| puts.saturating_sub(1))
}

pub(super) const DECODERS: &[Decoder] = &[
    Decoder { name: "configuration", run: decode_configuration },
    Decoder { name: "move and slice", run: decode_slice },
];

fn decode_configuration(bytes: &[u8]) {
    if let Ok(config) = decode_config(bytes) {
        assert!(config.validate().is_ok() && config.slicetable_pages() > 0);
        assert!(config.slice_entries() > 0);
    }
}

/// Key bytes, value bytes, and the body of a slice or a move in the log.
fn decode_slice(bytes: &[u8]) {
    let Some(([key_bytes, value_bytes], bytes)) = bytes.split_first_chunk() else { return };
    let (key_bytes, value_bytes) = (usize::from(*key_bytes), usize::from(*value_bytes));
    let Ok(entries) = EntryLayout::new(key_bytes, value_bytes) else { return };
    if let Some((moved, own)) = Moved::decode(bytes) {
        assert_eq!([&moved.encode(), own].concat(), bytes);
        assert!(decode_log_entry(bytes, entries).is_none());
    }
    let layout = SliceLayout::new(key_bytes, value_bytes);
    let mut body = vec![0; PAGE_BODY_BYTES];
    let length = bytes.len().min(PAGE_BODY_BYTES);
    body[..length].copy_from_slice(&bytes[..length]);
    let Some(count) = layout.count(&body) else { return };
    for at in 0..count {
        let key = layout.key(&body, at).to_vec();
        let found = layout.find(&body, count, &key).expect("a key that is there is found");
        assert!(found <= at && layout.key(&body, found) == key);
        assert_eq!(layout.value(&body, at).len(), value_bytes);
    }
    if count == layout.capacity() {
        layout.remove_oldest(&mut body, 1);
    }
    layout.push(&mut body, &vec![7; key_bytes], &vec![8; value_bytes]);
    let all: Vec<_> = (0..layout.count(&body).expect("it counts")).collect();
    layout.remove(&mut body, &all);
    assert_eq!(layout.count(&body), Some(0));
}
