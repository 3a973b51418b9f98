//! The costs of operations, counted at the device: reads per lookup, writes per flush, bytes written per byte
//! put.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use nandex::bufferhash::{BufferHash, Config, Policy};
use nandex::device::{Device, MemoryDevice};
use nandex::raw::bufferhash::filter::FilterShape;
use nandex::raw::device::{Call, Counted, Counts, Observer, OpKind, PAGE_BYTES, Watched};
use nandex::{
    Durability, OpenOptions, SliceHash, Table, Threads, Volume, VolumeOptions, slicehash,
};
use nandex_trial::Contract;

type Device1 = Arc<Counted<MemoryDevice>>;

/// Creates a table with filters so sharp that they are never wrong in a test, and a ring without evictions.
fn table(durability: Durability) -> (BufferHash, Volume, Device1) {
    let config = Config {
        filter: FilterShape::fuse(470, 24, 1).unwrap(),
        segments: 200,
        incarnations_max: 56,
        ..Config::tiny()
    };
    table_of(config, durability)
}

fn table_of(config: Config, durability: Durability) -> (BufferHash, Volume, Device1) {
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let shared = Arc::clone(&device) as Arc<dyn Device>;
    let options = VolumeOptions { log_bytes: 4 << 20, durability, ..VolumeOptions::tiny() };
    let volume = Volume::create(shared, options).unwrap();
    let table = BufferHash::create(&volume, "t", config).unwrap();
    (table, volume, device)
}

/// Returns the device's operations while `act` runs. Nothing must be at work in the background.
fn counts(device: &Device1, act: impl FnOnce()) -> Counts {
    let before = device.snapshot();
    act();
    device.snapshot() - before
}

/// Puts keys, and flushes, so that background threads come to rest.
fn fill(table: &impl Table, keys: u64) {
    let put = |key: [u8; 8]| table.insert(&key, &key).unwrap();
    (0..keys).map(u64::to_le_bytes).for_each(put);
    table.flush().unwrap();
}

/// Returns those of `keys` keys that are only on flash: not the newest, which are in buffers.
fn on_flash(table: &BufferHash, device: &Device1, keys: u64) -> Vec<u64> {
    let reads = |key: &u64| counts(device, || drop(table.get_u64(*key))).pages_read > 0;
    (0..keys).filter(reads).collect()
}

#[test]
fn a_lookup_that_finds_its_key_on_flash_reads_one_page_and_one_in_ram_none() {
    let (table, _volume, device) = table(Durability::Never);
    fill(&table, 20_000);
    let (mut none, mut one) = (0, 0);
    for key in 0..20_000 {
        let counts = counts(&device, || assert_eq!(table.get_u64(key).unwrap(), Some(key)));
        assert_eq!((counts.reads, counts.writes), (counts.pages_read, 0));
        match counts.reads {
            0 => none += 1,
            1 => one += 1,
            // One lookup in 2^24 / 40 has a false-positive read.
            more => panic!("key {key}: {more} reads"),
        }
    }
    assert!(none < 4 * 534 && one > 17_000, "{none} in RAM, {one} on flash");
    let stats = table.stats();
    assert_eq!((stats.hit_reads, stats.hits), (one, 20_000));
    assert!(stats.flush_fill > 0.85, "{stats:?}");
}

#[test]
fn a_lookup_of_an_absent_key_reads_as_often_as_the_filters_are_wrong() {
    let config = Config { segments: 200, incarnations_max: 56, ..Config::tiny() };
    let (table, _volume, device) = table_of(config, Durability::Never);
    fill(&table, 20_000);
    let lookups = 100_000u64;
    let reads = counts(&device, || {
        (1 << 40..(1 << 40) + lookups)
            .for_each(|key| assert_eq!(table.get_u64(key).unwrap(), None));
    })
    .pages_read;
    // About 10 incarnations of each super table, each wrong once in 2^12: a binomial law.
    let incarnations = table.stats().flushes as f64 / 4.0;
    let expected = lookups as f64 * incarnations / 4096.0;
    let bound = 6.0 * expected.sqrt();
    assert!((reads as f64 - expected).abs() < bound, "{reads} reads, {expected} expected");
}

#[test]
fn a_batch_reads_one_page_for_each_key_that_is_on_flash() {
    let (table, _volume, device) = table(Durability::Never);
    fill(&table, 20_000);
    let keys = on_flash(&table, &device, 5000);
    let bytes: Vec<_> = keys.iter().map(|key| key.to_le_bytes()).collect();
    let borrowed: Vec<_> = bytes.iter().map(|key| &key[..]).collect();
    let counts = counts(&device, || {
        assert!(table.get_many(&borrowed).unwrap().iter().all(Option::is_some));
    });
    assert_eq!((counts.pages_read, counts.writes), (keys.len() as u64, 0));
}

#[test]
fn an_insert_writes_nothing_until_its_buffer_is_full() {
    let (table, _volume, device) = table(Durability::Never);
    let counts = counts(&device, || {
        // Four buffers of 470 entries; no super table gets more than 470 of these.
        (0..1400).for_each(|key| table.insert_u64(key, key).unwrap());
        (0..200u64).for_each(|key| table.remove(&key.to_le_bytes()).unwrap());
    });
    assert_eq!(counts, Counts::default());
    assert_eq!(table.stats().flushes, 0);
}

#[test]
fn an_insert_with_a_log_writes_whole_blocks_and_reads_nothing() {
    let period = std::time::Duration::from_secs(3600);
    let (table, volume, device) = table(Durability::Every(period));
    let counts = counts(&device, || {
        (0..1400).for_each(|key| table.insert_u64(key, key).unwrap());
        table.sync().unwrap();
    });
    // 17 bytes an entry in blocks of two pages.
    let blocks = (1400 * 17u64).div_ceil(8192) + 1;
    assert!(counts.writes <= blocks && counts.pages_written <= 2 * blocks, "{counts:?}");
    assert_eq!((counts.pages_read, table.stats().flushes), (0, 0));
    assert!(
        counts.pages_written as usize * PAGE_BYTES >= volume.log().stats().payload_bytes as usize
    );
}

#[test]
fn a_full_buffer_is_flushed_with_one_write_of_a_segment() {
    let (table, _volume, device) = table(Durability::Never);
    // Checkpoints would write too: there is none before the ring or the log requires one.
    let mut key = 0;
    let before = device.snapshot();
    while table.stats().flushes < 12 {
        table.insert_u64(key, key).unwrap();
        key += 1;
        std::thread::yield_now();
    }
    let segment_pages = u64::from(table.config().segment_pages());
    for _ in 0..1000 {
        let counts = device.snapshot() - before;
        // Entries that found no place in their page stay in RAM, and in the log.
        let stats = table.stats();
        let log_writes = stats.log_bytes_written / 8192;
        if counts.writes == stats.flushes + log_writes {
            assert!(log_writes <= 2, "{stats:?}");
            assert_eq!(counts.pages_written, stats.flushes * segment_pages + 2 * log_writes);
            assert_eq!((counts.pages_read, counts.syncs), (0, 0));
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("{:?} for {:?}", device.snapshot() - before, table.stats());
}

#[test]
fn opening_reads_no_more_than_the_filters_of_a_table() {
    let device = MemoryDevice::new();
    let setup = super::support::Setup::new(Policy::Fifo, Durability::Never);
    let volume = Volume::create(Arc::new(device.clone()), setup.volume_options()).unwrap();
    let table = BufferHash::create(&volume, "t", setup.config()).unwrap();
    fill(&table, 30_000);
    let segments = table.stats().flushes;
    let filter_pages = u64::from(table.config().filter_pages());
    table.close().unwrap();
    drop(volume);
    let counted = Arc::new(Counted::new(device));
    let shared = Arc::clone(&counted) as Arc<dyn Device>;
    let volume = Volume::open(shared, setup.open_options()).unwrap();
    let table = BufferHash::open(&volume, "t").unwrap();
    table.load_filters().unwrap();
    // Two superblocks, a checkpoint, the log's first window, four images of three pages at most.
    let rest = 2 + 2 + 64 + 4 * 9;
    let read = counted.snapshot().pages_read;
    assert!(read <= segments * filter_pages + rest, "{read} pages, {segments} segments");
}

/// Returns the bytes written per byte put, over many rounds of the ring.
fn amplification(policy: Policy, durability: Durability) -> f64 {
    let (table, _volume, device) = table_of(Config { policy, ..Config::tiny() }, durability);
    let puts = 100_000;
    let counts = counts(&device, || {
        (0..puts).for_each(|key| table.insert_u64(key % 40_000, key).unwrap());
        table.flush().unwrap();
    });
    counts.pages_written as f64 * PAGE_BYTES as f64 / (puts * 16) as f64
}

#[test]
fn without_a_log_an_entry_is_written_hardly_more_than_once() {
    // A segment of 3 pages for 470 entries of 16 bytes is 1.63 times them; a checkpoint of two pages
    // for every four of them adds a sixth, and so do the three copies of its superblock.
    let amplification = amplification(Policy::Fifo, Durability::Never);
    assert!((1.4..2.7).contains(&amplification), "{amplification}");
}

#[test]
fn a_log_adds_one_more_writing() {
    let period = std::time::Duration::from_secs(3600);
    let amplification = amplification(Policy::Fifo, Durability::Every(period));
    assert!((2.4..4.0).contains(&amplification), "{amplification}");
}

/// Creates a SliceHash that never evicts, everything on the calling thread.
fn slices(config: slicehash::Config) -> (SliceHash, Volume, Device1) {
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let period = std::time::Duration::from_secs(3600);
    let options = VolumeOptions {
        log_bytes: 8 << 20,
        durability: Durability::Every(period),
        threads: Threads::Inline,
        ..VolumeOptions::tiny()
    };
    let volume = Volume::create(Arc::clone(&device) as Arc<dyn Device>, options).unwrap();
    let runtime =
        OpenOptions { flush_threads: Some(0), io_chunk_pages: Some(5), ..Default::default() };
    let table = SliceHash::create_with(&volume, "t", config, runtime).unwrap();
    (table, volume, device)
}

#[test]
fn a_lookup_that_ram_cannot_answer_reads_its_slice_and_no_more_found_or_not() {
    for (parts, count) in [(1, 12), (3, 5)] {
        let tiny = slicehash::Config::tiny();
        let config =
            slicehash::Config { slices: count, slice_parts: parts, group_slices: 2, ..tiny };
        let (table, _volume, device) = slices(config);
        fill(&table, 9000);
        let reads = |key: u64, is_there: bool| {
            let counts = counts(&device, || {
                assert_eq!(table.get_u64(key).unwrap(), is_there.then_some(key));
            });
            assert_eq!((counts.reads, counts.writes, counts.syncs), (counts.pages_read, 0, 0));
            counts.pages_read
        };
        let found: Vec<_> = (0..9000).map(|key| reads(key, true)).collect();
        let parts = u64::from(parts);
        assert!(found.iter().all(|read| *read == 0 || *read == parts), "{parts}");
        let on_flash = found.iter().filter(|read| **read == parts).count();
        assert!(on_flash > 6000, "{on_flash} on flash");
        assert!((9000..10_000).all(|key| reads(key, false) == parts));
        // Batches and streams read the same pages.
        let keys: Vec<_> = (0..10_000u64).map(u64::to_le_bytes).collect();
        let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
        let expected = found.iter().sum::<u64>() + 1000 * parts;
        let batch = counts(&device, || drop(table.get_many(&keys).unwrap()));
        assert_eq!((batch.pages_read, batch.writes), (expected, 0));
        let stream = counts(&device, || {
            let mut stream = table.stream().unwrap();
            (0..).zip(&keys).for_each(|(token, key)| stream.push(key, token).unwrap());
            while stream.pull().unwrap().is_some() {}
        });
        assert_eq!((stream.pages_read, stream.writes), (expected, 0));
        let stats = table.stats();
        assert!(stats.entries == 9000 && stats.flush_fill > 0.85, "{stats:?}");
    }
}

#[test]
fn a_merge_reads_and_writes_its_slicetable_once_and_syncs_once() {
    let (table, _volume, device) = slices(slicehash::Config::tiny());
    let block_pages = u64::from(table.config().block_pages());
    let chunks = block_pages.div_ceil(5);
    let (mut key, mut merges, mut first) = (0, 0, 0);
    let mut logged = 0;
    while merges < 24 {
        let (flushes, log) = (table.stats().flushes, table.stats().log_bytes_written);
        let counts = counts(&device, || table.insert_u64(key, key).unwrap());
        key += 1;
        let stats = table.stats();
        let log_pages = (stats.log_bytes_written - log) / PAGE_BYTES as u64;
        logged += log_pages;
        if stats.flushes == flushes {
            assert_eq!((counts.pages_read, counts.pages_written), (0, log_pages));
            continue;
        }
        merges += 1;
        assert_eq!(stats.flushes, flushes + 1);
        assert_eq!(counts.pages_written, block_pages + log_pages, "merge {merges}: {counts:?}");
        // A partition's first slicetable is made of nothing.
        let read = if counts.pages_read == 0 { 0 } else { block_pages };
        first += u64::from(read == 0);
        assert_eq!((counts.pages_read, counts.reads), (read, read.div_ceil(5)));
        // Its own sync, and the log's if no slicetable was free before the last move is durable.
        assert!((1..=2).contains(&counts.syncs), "{counts:?}");
        assert!(counts.writes <= chunks + 2, "{counts:?}");
    }
    assert_eq!(first, 4);
    // 17 bytes an entry, and a block of two pages that each merge may close early.
    assert!(logged <= (key * 17).div_ceil(PAGE_BYTES as u64) + 2 * merges + 4, "{logged} pages");
}

/// A gate that holds writes back while it is closed.
#[derive(Debug, Default)]
struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
    waiting: AtomicU64,
}

impl Gate {
    fn set(&self, closed: bool) {
        *self.is_closed.lock().unwrap() = closed;
        self.opened.notify_all();
    }
}

impl Observer for Gate {
    fn before(&self, call: Call<'_>) -> nandex::raw::device::Result<()> {
        if matches!(call, Call::Start { kind: OpKind::Write, .. }) {
            let closed = self.is_closed.lock().unwrap();
            self.waiting.fetch_add(u64::from(*closed), Ordering::SeqCst);
            drop(self.opened.wait_while(closed, |closed| *closed).unwrap());
        }
        Ok(())
    }
}

#[test]
fn no_lookup_waits_for_a_slicetable_that_is_being_written() {
    let gate = Arc::new(Gate::default());
    let device = Arc::new(Watched::with(MemoryDevice::new(), Arc::clone(&gate)));
    let options = VolumeOptions { durability: Durability::Never, ..VolumeOptions::tiny() };
    let volume = Volume::create(device as Arc<dyn Device>, options).unwrap();
    let config = slicehash::Config { spare_buffers: 8, ..slicehash::Config::tiny() };
    let table = SliceHash::create(&volume, "t", config).unwrap();
    fill(&table, 6000);
    gate.set(true);
    // Each partition's buffer is full once or twice, and there are spare ones for all of them.
    let key = 8200;
    (6000..key).for_each(|key| table.insert_u64(key, key).unwrap());
    while gate.waiting.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    // A merge stands still in its first write. All lookups are answered nevertheless.
    let flushes = table.stats().flushes;
    for number in 0..key + 2000 {
        assert_eq!(table.get_u64(number).unwrap(), (number < key).then_some(number));
    }
    let keys: Vec<_> = (0..key).map(u64::to_le_bytes).collect();
    let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
    assert!(table.get_many(&keys).unwrap().iter().all(Option::is_some));
    assert_eq!(table.stats().flushes, flushes, "the merge has not ended meanwhile");
    gate.set(false);
    table.close().unwrap();
}
