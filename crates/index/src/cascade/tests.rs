//! What can only be seen from inside: levels, cuts, and pages that are kept.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nandex_device::{Device, MemoryDevice};
use nandex_store::{Durability, OpenOptions, Threads, Volume, VolumeOptions};

use super::*;

const INLINE: RuntimeOptions =
    RuntimeOptions { merge_threads: 0, read_depth: 4, io_chunk_pages: 4, channels: None };

fn volume_on(device: &Arc<MemoryDevice>) -> Volume {
    let options = VolumeOptions {
        // A log that is full makes buffers be saved before they are.
        log_bytes: 1 << 20,
        durability: Durability::Every(Duration::from_secs(3600)),
        threads: Threads::Inline,
        ..VolumeOptions::tiny()
    };
    Volume::create(Arc::clone(device) as Arc<dyn Device>, options).unwrap()
}

fn reopened(device: &Arc<MemoryDevice>) -> Volume {
    let options = OpenOptions { threads: Threads::Inline, ..OpenOptions::default() };
    Volume::open(Arc::clone(device) as Arc<dyn Device>, options).unwrap()
}

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

fn keys(numbers: std::ops::Range<u64>) -> Vec<[u8; 8]> {
    numbers.map(key).collect()
}

fn insert(filter: &Cascade, numbers: std::ops::Range<u64>) {
    let keys = keys(numbers);
    filter.insert_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
    filter.sync().unwrap();
}

fn all_there(filter: &Cascade, numbers: std::ops::Range<u64>) -> bool {
    let keys = keys(numbers);
    let found = filter.contains_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
    found.iter().all(|found| *found)
}

fn level_entries(filter: &Cascade) -> Vec<u64> {
    let levels = filter.handle.core.levels(0);
    levels.runs.iter().map(|run| run.as_ref().map_or(0, |run| run.entries())).collect()
}

/// Fingerprints of so many keys that no two share.
fn spread() -> Config {
    Config { rate: 1e-9, ..Config::tiny() }
}

#[test]
fn full_buffers_go_to_the_smallest_level_with_room() {
    let device = Arc::new(MemoryDevice::new());
    let filter = Cascade::create_with(&volume_on(&device), "f", spread(), INLINE).unwrap();
    // Levels hold 400, 800 and 1,600; a buffer 200, and is merged by the insert that finds it full.
    let mut seen = Vec::new();
    for number in 0..2001 {
        filter.insert(&key(number)).unwrap();
        if number % 200 == 0 {
            seen.push(level_entries(&filter));
        }
    }
    let expected: [&[u64]; 11] = [
        &[],
        &[200],
        &[400],
        &[0, 600],
        &[200, 600],
        &[400, 600],
        &[0, 0, 1200],
        &[200, 0, 1200],
        &[400, 0, 1200],
        &[0, 600, 1200],
        &[200, 600, 1200],
    ];
    assert_eq!(seen, expected);
    assert!(all_there(&filter, 0..2001));
    assert!(!filter.contains(&key(5000)).unwrap());
}

#[test]
fn one_wide_level_takes_every_buffer() {
    let device = Arc::new(MemoryDevice::new());
    let config = Config { fan_out: None, ..spread() };
    let filter = Cascade::create_with(&volume_on(&device), "f", config, INLINE).unwrap();
    insert(&filter, 0..3000);
    assert_eq!(level_entries(&filter), [2800]);
    assert!(all_there(&filter, 0..3000));
    let stats = filter.stats();
    assert_eq!((stats.merges, stats.buffered, stats.entries), (14, 200, 3000));
    // A key on flash takes one read, one in the buffer none.
    assert_eq!(stats.reads_histogram[..3], [200, 2800, 0]);
}

#[test]
fn nothing_is_counted_twice_or_lost_whenever_the_filter_is_left() {
    for (stop, parts) in
        [1, 150, 199, 200, 201, 399, 400, 401, 950, 1300].into_iter().zip([1, 3].repeat(5))
    {
        for is_closed in [false, true] {
            let config = Config { parts, ..spread() };
            let device = Arc::new(MemoryDevice::new());
            let volume = volume_on(&device);
            let filter = Cascade::create_with(&volume, "f", config, INLINE).unwrap();
            insert(&filter, 0..stop);
            filter.delete(&key(0)).unwrap();
            filter.sync().unwrap();
            if is_closed {
                filter.close().unwrap();
            } else {
                // What a crash leaves: the handle's destructor must not save anything.
                std::mem::forget(filter);
            }
            std::mem::forget(volume);
            let filter = Cascade::open_with(&reopened(&device), "f", INLINE).unwrap();
            for number in 0..stop {
                let count = filter.count(&key(number)).unwrap();
                assert_eq!(count, u64::from(number > 0), "{number} of {stop}, closed: {is_closed}");
            }
            let entries: Vec<_> = filter.iter().map(|entry| entry.unwrap().count).collect();
            assert_eq!(entries, vec![1; stop as usize - 1]);
        }
    }
}

#[test]
fn a_sweep_answers_as_lookups_do_and_reads_each_page_once() {
    let device = Arc::new(MemoryDevice::new());
    let config = Config { parts: 3, counts: true, ..spread() };
    let filter = Cascade::create_with(&volume_on(&device), "f", config, INLINE).unwrap();
    insert(&filter, 0..2000);
    insert(&filter, 500..900);
    filter.delete(&key(7)).unwrap();
    // In no order, some of them absent and some twice.
    let asked: Vec<_> = (0..3000u64).map(|number| key(number * 7919 % 2600)).collect();
    let asked: Vec<&[u8]> = asked.iter().map(|key| &key[..]).collect();
    let before = filter.stats();
    let swept = filter.sweep(&asked).unwrap();
    let after = filter.stats();
    assert_eq!(after.lookup_reads, before.lookup_reads);
    assert_eq!(after.positives + after.negatives - before.positives - before.negatives, 3000);
    assert_eq!(swept, filter.count_many(&asked).unwrap());
    assert_eq!(filter.sweep(&[]).unwrap(), []);
}

#[test]
fn parts_take_turns_and_answer_as_one() {
    let device = Arc::new(MemoryDevice::new());
    let config = Config { parts: 4, fan_out: None, ..spread() };
    let filter = Cascade::create_with(&volume_on(&device), "f", config, INLINE).unwrap();
    insert(&filter, 0..4000);
    assert!(all_there(&filter, 0..4000));
    let stats = filter.stats();
    assert_eq!((stats.entries, stats.levels.len()), (4000, 1));
    // One level each; what the buffers still have takes no read.
    assert_eq!(stats.reads_histogram[..3], [stats.buffered, 4000 - stats.buffered, 0]);
    let fingerprints: Vec<_> = filter.iter().map(|it| it.unwrap().fingerprint).collect();
    assert_eq!(fingerprints.len(), 4000);
    assert!(fingerprints.is_sorted());
    let expected: std::collections::BTreeSet<_> =
        (0..4000).map(|number| filter.handle.core.fingerprint(&key(number))).collect();
    assert!(fingerprints.iter().eq(&expected));
}

#[test]
fn a_merging_thread_keeps_up_with_updates_and_lookups() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let volume = Volume::create(device, VolumeOptions::tiny()).unwrap();
    let config = Config { parts: 3, ..spread() };
    let filter = Cascade::create(&volume, "f", config).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3u64 {
            let filter = &filter;
            scope.spawn(move || {
                for round in 0..10 {
                    let from = (thread * 10 + round) * 300;
                    insert(filter, from..from + 300);
                    assert!(all_there(filter, thread * 3000..from + 300));
                }
            });
        }
    });
    assert!(all_there(&filter, 0..9000));
    filter.close().unwrap();
    let filter = Cascade::open(&volume, "f").unwrap();
    assert!(all_there(&filter, 0..9000));
    assert_eq!(filter.iter().count(), 9000);
}

#[test]
fn deletes_cancel_in_the_buffer_on_flash_and_before_their_inserts_are_merged() {
    let device = Arc::new(MemoryDevice::new());
    let filter = Cascade::create_with(&volume_on(&device), "f", spread(), INLINE).unwrap();
    insert(&filter, 0..700);
    let doomed = keys(100..600);
    filter.delete_many(&doomed.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
    let expected = |number: u64| !(100..600).contains(&number);
    let check = |filter: &Cascade| {
        (0..700).all(|number| filter.contains(&key(number)).unwrap() == expected(number))
    };
    assert!(check(&filter));
    filter.compact().unwrap();
    assert!(check(&filter));
    let stats = filter.stats();
    assert_eq!((stats.entries, stats.tombstones, stats.unmatched_deletes), (200, 0, 0));
    assert_eq!(stats.levels.len(), 1);
}

#[test]
fn counts_add_up_over_all_parts() {
    let device = Arc::new(MemoryDevice::new());
    let config = Config { counts: true, parts: 4, ..spread() };
    let filter = Cascade::create_with(&volume_on(&device), "f", config, INLINE).unwrap();
    let mut oracle = BTreeMap::new();
    let mut state = 1u64;
    for _ in 0..6000 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (number, amount) = (state >> 33, (state >> 20 & 0xfff).cast_signed());
        let number = number % 900;
        let held = oracle.entry(number).or_insert(0i64);
        let amount = if *held > amount && state & 1 == 1 { -amount } else { amount };
        *held += amount;
        filter.add(&key(number), amount).unwrap();
    }
    for (number, count) in oracle {
        assert_eq!(filter.count(&key(number)).unwrap(), count.unsigned_abs());
    }
}

#[test]
fn a_filter_absorbs_another_one_of_its_kind_and_no_other() {
    let (one, two) = (Arc::new(MemoryDevice::new()), Arc::new(MemoryDevice::new()));
    let options = VolumeOptions { hash_key: Some(7), ..VolumeOptions::tiny() };
    let [volume, other_volume] = [&one, &two].map(|device| {
        Volume::create(Arc::clone(device) as Arc<dyn Device>, options.clone()).unwrap()
    });
    let filter = Cascade::create(&volume, "f", Config { parts: 5, ..spread() }).unwrap();
    let other = Cascade::create(&other_volume, "g", Config { parts: 3, ..spread() }).unwrap();
    insert(&filter, 0..1500);
    insert(&other, 1000..2300);
    filter.absorb(&other).unwrap();
    assert!(all_there(&filter, 0..2300));
    assert_eq!([500, 1200, 2000].map(|n| filter.count(&key(n)).unwrap()), [1, 2, 1]);
    assert!(!other.contains(&key(5)).unwrap() && all_there(&other, 1000..2300));
    let unlike = Cascade::create(&volume, "h", Config { rate: 1e-8, ..spread() }).unwrap();
    let error = filter.absorb(&unlike).unwrap_err().to_string();
    assert!(error.starts_with("universe: "), "{error}");
}

#[test]
fn pages_of_old_runs_are_used_again_but_not_while_somebody_reads_them() {
    let device = Arc::new(MemoryDevice::new());
    let volume = volume_on(&device);
    let filter =
        Cascade::create_with(&volume, "f", Config { fan_out: None, ..spread() }, INLINE).unwrap();
    insert(&filter, 0..1000);
    let mut found = filter.iter();
    assert!(found.next().is_some());
    insert(&filter, 1000..9000);
    filter.compact().unwrap();
    assert_eq!(found.count(), 999, "an iteration goes on over what it began with");
    let before = device.page_count();
    for _ in 0..20 {
        filter.compact().unwrap();
        insert(&filter, 0..200);
        let doomed = keys(0..200);
        filter.delete_many(&doomed.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
    }
    assert!(device.page_count() <= before + 64, "{} pages, {before} before", device.page_count());
}

fn check_of(image: Vec<u8>) -> nandex_store::check::Report {
    crate::check(Arc::new(MemoryDevice::from_image(image)), None, &mut |_| {}).unwrap()
}

#[test]
fn a_check_proves_every_page_of_every_run_and_the_log_and_names_what_is_damaged() {
    const PAGE: usize = nandex_device::PAGE_BYTES;
    let device = Arc::new(MemoryDevice::new());
    let filter = Cascade::create_with(&volume_on(&device), "f", spread(), INLINE).unwrap();
    insert(&filter, 0..1300);
    filter.delete(&key(3)).unwrap();
    filter.flush().unwrap();
    filter.add_many(&[(&key(1), 5), (&key(2), 1)]).unwrap();
    filter.sync().unwrap();
    // As a power cut leaves it: levels, an image, and a log behind it.
    std::mem::forget(filter);
    let image = device.image();
    let whole = check_of(image.clone());
    assert_eq!(whole.findings, []);
    // 1,300 inserts and one tombstone.
    assert_eq!(whole.structures[0].entries, 1301);
    assert!(whole.log_entries >= 2);
    let volume = reopened(&Arc::new(MemoryDevice::from_image(image.clone())));
    let filter = Cascade::open_with(&volume, "f", INLINE).unwrap();
    let runs: Vec<_> = filter.handle.core.partitions[0].read().extents().collect();
    assert!(runs.len() > 1 && runs.iter().any(|it| it.pages > 1), "{runs:?}");
    for page in runs.iter().flat_map(|it| it.start.0..it.end().0) {
        let mut bad = image.clone();
        bad[page as usize * PAGE + 500] ^= 4;
        let report = check_of(bad);
        let found: Vec<_> = report.findings.iter().map(|it| it.page.0).collect();
        assert_eq!(found, [page]);
        assert_eq!(report.findings[0].structure.as_deref(), Some("f"));
    }
}

#[test]
fn several_filters_are_absorbed_in_one_pass_and_none_when_one_is_unlike() {
    let device = Arc::new(MemoryDevice::new());
    let volume = volume_on(&device);
    let create = |name, config| Cascade::create_with(&volume, name, config, INLINE).unwrap();
    let whole = create("whole", spread());
    let parts = ["a", "b", "c"].map(|name| create(name, spread()));
    for (part, first) in parts.iter().zip([0, 500, 1000]) {
        insert(part, first..first + 700);
    }
    let unlike = create("unlike", Config { keys: 7777, ..spread() });
    let error = whole.absorb_all(&[&parts[0], &unlike]).unwrap_err().to_string();
    assert!(error.starts_with("universe: "), "{error}");
    assert_eq!(whole.stats().entries, 0);
    let before = whole.stats().merges;
    whole.absorb_all(&parts.each_ref()).unwrap();
    let stats = whole.stats();
    assert_eq!((stats.merges - before, stats.entries, stats.levels.len()), (1, 1700, 1));
    assert_eq!([0, 600, 800, 1100].map(|n| whole.count(&key(n)).unwrap()), [1, 2, 1, 2]);
}
