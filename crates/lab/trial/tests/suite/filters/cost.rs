//! The costs of operations, in counted device operations and bytes of RAM.

use std::sync::Arc;

use nandex::cascade::{Cascade, Config};
use nandex::device::MemoryDevice;
use nandex::raw::device::{Counted, Counts, PAGE_BYTES};
use nandex::{Counter, Durability, Filter, FilterStats, Volume, VolumeOptions};

use super::runner::key;
use super::support::{FAN_OUTS, Setup};

/// The first of the keys that were never inserted.
const STRANGERS: u64 = 1 << 40;

/// A filter on a device that counts.
struct Lab {
    device: Arc<Counted<MemoryDevice>>,
    filter: Cascade,
}

impl Lab {
    /// Creates a filter without a log, so that only the filter's own operations are counted.
    fn new(setup: Setup) -> Self {
        let device = Arc::new(Counted::new(MemoryDevice::new()));
        let setup = Setup { durability: Durability::Never, ..setup };
        let options = VolumeOptions { log_bytes: 8 << 20, ..setup.volume_options() };
        let volume = Volume::create(Arc::clone(&device) as Arc<_>, options).unwrap();
        let filter = setup.create_filter(&volume, "f").unwrap();
        Self { device, filter }
    }

    fn insert(&self, numbers: std::ops::Range<u64>) {
        let keys: Vec<_> = numbers.map(key).collect();
        for keys in keys.chunks(1000) {
            let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
            self.filter.insert_many(&keys).unwrap();
        }
    }

    /// Returns the device's counts while `act` runs.
    fn cost(&self, act: impl FnOnce(&Cascade)) -> Counts {
        let before = self.device.snapshot();
        act(&self.filter);
        self.device.snapshot().since(&before)
    }

    fn stats(&self) -> FilterStats {
        self.filter.stats()
    }

    /// Returns the levels with entries: those that a lookup in one part reads.
    fn levels(&self) -> u64 {
        self.stats().levels.iter().filter(|level| level.entries > 0).count() as u64
    }
}

/// Returns a universe so large that no stranger collides with a key.
fn setup(fan_out: Option<u32>) -> Setup {
    let setup = Setup::exact(Durability::Never).fanned(fan_out);
    Setup { config: Config { keys: 10_000_000, ..setup.config }, ..setup }
}

#[test]
fn a_lookup_reads_one_page_of_each_level_it_asks_and_none_where_a_buffer_knows() {
    for fan_out in FAN_OUTS {
        let lab = Lab::new(setup(fan_out));
        lab.insert(0..30_100);
        let stats = lab.stats();
        let levels = lab.levels();
        assert!(levels > 0 && stats.buffered > 0, "{stats:?}");
        let strangers: Vec<_> = (STRANGERS..STRANGERS + 2000).map(key).collect();
        let cost = lab.cost(|filter| {
            assert!(strangers.iter().all(|key| !filter.contains(key).unwrap()));
        });
        let expected = Counts { reads: 2000 * levels, ..Counts::default() };
        assert_eq!((cost.reads, cost.writes), (expected.reads, 0), "{fan_out:?}");
        assert_eq!(cost.pages_read, cost.reads, "one page each");
        let buffered: Vec<_> = (30_100 - stats.buffered..30_100).map(key).collect();
        let cost = lab.cost(|filter| {
            assert!(buffered.iter().all(|key| filter.contains(key).unwrap()));
        });
        assert_eq!(cost.reads, 0, "keys in the buffer");
        // The sum of all parts is needed, so all are read.
        let cost = lab.cost(|filter| {
            assert!(buffered.iter().all(|key| filter.count(key).unwrap() == 1));
        });
        assert_eq!(cost.reads, buffered.len() as u64 * levels);
        let there: Vec<_> = (0..25_000).step_by(10).map(key).collect();
        let cost = lab.cost(|filter| {
            assert!(there.iter().all(|key| filter.contains(key).unwrap()));
        });
        let least = there.len() as u64;
        assert!((least..=least * levels).contains(&cost.reads), "{levels} levels: {cost:?}");
        if levels == 1 {
            assert_eq!(cost.reads, least);
        }
    }
}

#[test]
fn a_batch_reads_what_its_lookups_read_one_by_one() {
    for fan_out in FAN_OUTS {
        let lab = Lab::new(setup(fan_out));
        lab.insert(0..20_000);
        let keys: Vec<_> = (18_000..22_000).map(key).collect();
        let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
        let single = lab.cost(|filter| {
            assert_eq!(keys.iter().filter(|key| filter.contains(key).unwrap()).count(), 2000);
        });
        let before = lab.stats();
        let batch = lab.cost(|filter| {
            let found = filter.contains_many(&keys).unwrap();
            assert!((0..).zip(found).all(|(number, found)| found == (number < 2000)));
        });
        let after = lab.stats();
        assert_eq!((batch.reads, batch.pages_read), (single.reads, single.pages_read));
        assert_eq!(after.lookup_reads - before.lookup_reads, batch.reads, "what the figures say");
    }
}

#[test]
fn a_lookup_asks_all_levels_only_while_there_are_tombstones() {
    let lab = Lab::new(setup(Some(2)));
    lab.insert(0..20_000);
    let there: Vec<_> = (0..2000).map(key).collect();
    let ask = || lab.cost(|filter| assert!(there.iter().all(|key| filter.contains(key).unwrap())));
    let few = ask().reads;
    assert!(few < 2000 * lab.levels(), "{few}");
    lab.filter.delete(&key(15_000)).unwrap();
    let levels = lab.levels();
    assert_eq!(ask().reads, 2000 * levels, "a tombstone may be anywhere");
    lab.filter.compact().unwrap();
    assert_eq!((ask().reads, lab.stats().tombstones), (2000, 0));
}

#[test]
fn a_merge_reads_its_runs_once_and_writes_the_new_one_once() {
    let lab = Lab::new(setup(Some(2)));
    lab.insert(0..30_000);
    lab.filter.flush().unwrap();
    let (before, levels) = (lab.stats(), lab.levels());
    let pages: u64 = before.levels.iter().map(|level| level.pages).sum();
    let cost = lab.cost(|filter| filter.compact().unwrap());
    let after = lab.stats();
    assert_eq!((levels > 1, lab.levels()), (true, 1));
    let level = after.levels.last().unwrap();
    assert_eq!(level.entries, 30_000);
    let read = (after.merge_bytes_read - before.merge_bytes_read) / PAGE_BYTES as u64;
    let written = (after.data_bytes_written - before.data_bytes_written) / PAGE_BYTES as u64;
    assert!(read <= pages + 2, "{read} pages read of {pages}");
    assert_eq!(written, level.pages, "{after:?}");
    assert_eq!(cost.pages_read, read, "nothing else is read");
    // Checkpoints and the cut in the log are small.
    assert!((written..=written + 24).contains(&cost.pages_written), "{written}: {cost:?}");
    // In chunks of three pages.
    assert!(cost.reads <= read / 3 + levels + 2, "{cost:?}");
}

#[test]
fn what_is_written_per_key_is_what_the_levels_let_expect() {
    for (fan_out, passes_max) in [(Some(2), 12.0), (Some(4), 12.0), (None, 80.0)] {
        let lab = Lab::new(setup(fan_out));
        let cost = lab.cost(|_| lab.insert(0..30_000));
        let stats = lab.stats();
        let bits = stats.bits_per_entry_on_flash();
        let bytes = stats.data_bytes_written as f64 / 30_000.0;
        let passes = bytes * 8.0 / bits;
        println!("{fan_out:?}: {bits:.1} bits a key, written {passes:.1} times");
        assert!(passes > 1.0 && passes <= passes_max, "{fan_out:?}: {passes} passes");
        let pages = stats.data_bytes_written / PAGE_BYTES as u64;
        assert!(cost.pages_written >= pages, "{cost:?}");
        // Each merge has one checkpoint.
        let other = cost.pages_written - pages;
        assert!(other <= stats.merges * 16 + 64, "{other} other pages, {} merges", stats.merges);
    }
}

#[test]
fn inserts_read_nothing_but_merges() {
    let lab = Lab::new(setup(None));
    lab.insert(0..20_000);
    let space = lab.filter.config().buffer_entries - lab.stats().buffered;
    let cost = lab.cost(|_| lab.insert(STRANGERS..STRANGERS + space - 1));
    assert_eq!((cost.reads, cost.writes, cost.syncs), (0, 0, 0), "{cost:?}");
}

/// Measures the bits of a key: fingerprints of 2^p / n take log2 of that and two bits and a half on flash,
/// and no RAM.
#[test]
fn a_key_takes_few_bits_on_flash_and_none_of_ram() {
    let keys = 200_000;
    let config = Config {
        keys,
        rate: 0.0039,
        buffer_entries: 4000,
        fan_out: None,
        counts: false,
        ..Config::tiny()
    };
    let setup = Setup { config, io_chunk_pages: 16, ..Setup::exact(Durability::Never) };
    let lab = Lab::new(setup);
    lab.insert(0..20_000);
    let ram = lab.stats().ram_bytes;
    lab.insert(20_000..keys);
    lab.filter.compact().unwrap();
    let stats = lab.stats();
    let bits = stats.bits_per_entry_on_flash();
    println!("{bits:.2} bits a key on flash, {} bytes of RAM", stats.ram_bytes);
    assert!(bits <= 10.95, "{bits} bits a key");
    assert!(stats.ram_bytes <= ram + ram / 50, "{} bytes, {ram} before", stats.ram_bytes);
    assert!((stats.rate - 0.0039).abs() < 0.0039 * 0.01, "{}", stats.rate);
}

#[test]
fn the_ram_of_the_buffers_is_what_their_slots_take() {
    let entries = 1_000_000;
    let config = Config {
        keys: 100_000_000,
        rate: 0.0039,
        buffer_entries: entries,
        parts: 64,
        ..Config::tiny()
    };
    let setup = Setup { config, ..Setup::exact(Durability::Never) };
    let device = Arc::new(MemoryDevice::new());
    let options = VolumeOptions { log_bytes: 64 << 20, ..setup.volume_options() };
    let volume = Volume::create(device, options).unwrap();
    let filter = setup.create_filter(&volume, "f").unwrap();
    let bits = || filter.stats().ram_bytes as f64 * 8.0 / entries as f64;
    // Remainders of 15 bits, a sign, 2.13 bits of metadata, nine slots of ten in use; two spare buffers,
    // a merge's I/O chunks and the log's blocks.
    let bits_max = 24.0;
    assert!(bits() <= bits_max, "{} bits", bits());
    let keys: Vec<_> = (0..1_500_000u64).map(|number| number.to_le_bytes()).collect();
    for keys in keys.chunks(10_000) {
        let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
        filter.insert_many(&keys).unwrap();
        assert!(bits() <= bits_max, "{} bits", bits());
    }
    println!("{:.2} bits of RAM for each fingerprint that buffers take", bits());
}

/// Looks up keys in many parts: each part has a level of its own, and a lookup reads those of its key's part.
#[test]
fn a_lookup_asks_one_part_of_many() {
    let lab = Lab::new(setup(None).with_parts(7));
    lab.insert(0..30_000);
    let strangers: Vec<_> = (STRANGERS..STRANGERS + 2000).map(key).collect();
    let strangers: Vec<_> = strangers.iter().map(|key| &key[..]).collect();
    let single = lab.cost(|filter| {
        assert!(strangers.iter().all(|key| !filter.contains(key).unwrap()));
    });
    let batch = lab.cost(|filter| {
        assert!(!filter.contains_many(&strangers).unwrap().contains(&true));
    });
    assert_eq!((single.reads, batch.reads), (2000, 2000));
}
