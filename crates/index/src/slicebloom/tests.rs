//! Tests of the internals: the window compared with a list of keys in order, rates and costs by counts, and recovery
//! after a kill.

use std::sync::Arc;
use std::time::Duration;

use nandex_device::{Counted, Device, MemoryDevice, PAGE_BYTES, PageBuf};
use nandex_sim::preset::Preset;
use nandex_sim::{Fill, SimDevice};
use nandex_store::hash::mix;
use nandex_store::schedule::Channels;
use nandex_store::shadow::Block;
use nandex_store::{Durability, Threads, Volume, VolumeOpenOptions, VolumeOptions};

use super::*;
use crate::Error;
use crate::OpenOptions;
use crate::api::Filter;
use crate::write::capture_holds;

fn inline() -> OpenOptions {
    OpenOptions {
        flush_threads: Some(0),
        read_depth: Some(8),
        io_chunk_pages: Some(4),
        ..OpenOptions::default()
    }
}

/// A configuration with so few false positives that a test meets none.
const EXACT: Config = Config { bits_per_key: 96, hashes: 16, partitions: 1, ..Config::tiny() };

fn volume_on(device: Arc<dyn Device>, durability: Durability) -> Volume {
    let options = VolumeOptions {
        log_bytes: 1 << 20,
        durability,
        threads: Threads::Inline,
        ..VolumeOptions::tiny()
    };
    Volume::create(device, options).unwrap()
}

fn made(config: Config) -> SliceBloom {
    let volume = volume_on(Arc::new(MemoryDevice::new()), Durability::Never);
    SliceBloom::create_with(&volume, "f", config, inline()).unwrap()
}

/// Opens the filter on the device after a kill.
fn killed(device: &MemoryDevice) -> SliceBloom {
    let copy = Arc::new(MemoryDevice::from_image(device.image()));
    let durability = Durability::Every(Duration::from_secs(3600));
    let options =
        VolumeOpenOptions { threads: Threads::Inline, durability, ..VolumeOpenOptions::default() };
    let volume = Volume::open(copy as Arc<dyn Device>, options).unwrap();
    SliceBloom::open_with(&volume, "f", inline()).unwrap()
}

fn key(number: u64) -> [u8; 8] {
    mix(number).to_le_bytes()
}

fn ask(filter: &SliceBloom, numbers: impl Iterator<Item = u64>) -> Vec<bool> {
    let keys: Vec<_> = numbers.map(key).collect();
    filter.contains_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap()
}

fn insert(filter: &SliceBloom, numbers: impl Iterator<Item = u64>) {
    let keys: Vec<_> = numbers.map(key).collect();
    filter.insert_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
}

/// The most recent inserts of one partition, in order, which determine the keys that the filter must and must not have.
struct Fifo {
    inserts: u64,
    config: Config,
}

impl Fifo {
    /// Returns the number of inserts before the oldest incarnation: a buffer is flushed by the first insert that it has
    /// no space for, and takes the place of the oldest.
    fn oldest(&self) -> u64 {
        let flushes = self.inserts.saturating_sub(1) / u64::from(self.config.buffer_keys);
        let gone = flushes.saturating_sub(self.config.incarnations.into());
        gone * u64::from(self.config.buffer_keys)
    }
}

#[test]
fn a_partition_has_its_most_recent_keys_and_no_older_ones() {
    for incarnations in [8, 24] {
        let config = Config { incarnations, ..EXACT };
        let filter = made(config);
        let mut fifo = Fifo { inserts: 0, config };
        for round in 0..120u64 {
            let count = 1 + mix(round) % 40;
            insert(&filter, fifo.inserts..fifo.inserts + count);
            fifo.inserts += count;
            let oldest = fifo.oldest();
            let window = fifo.inserts.saturating_sub(config.window_keys());
            assert!(oldest <= window, "what is promised is kept: {oldest} {window}");
            let found = ask(&filter, 0..fifo.inserts + 50);
            for (number, found) in (0..).zip(found) {
                let is_there = (oldest..fifo.inserts).contains(&number);
                assert_eq!(found, is_there, "{number}: {oldest}..{}", fifo.inserts);
            }
        }
        let stats = filter.stats();
        assert_eq!(stats.window_keys, Some(u64::from(incarnations) * 50));
        assert_eq!(stats.entries, fifo.inserts - fifo.oldest(), "{stats:?}");
    }
}

#[test]
fn many_partitions_have_the_window_that_the_figures_say() {
    let config = Config { partitions: 16, buffer_keys: 300, ..EXACT };
    let filter = made(config);
    let window = filter.stats().window_keys.unwrap();
    assert!(window < 16 * config.partition_window_keys() && window > 24_000, "{window}");
    for inserts in (0..150_000).step_by(10_000) {
        insert(&filter, inserts..inserts + 10_000);
        let oldest = (inserts + 10_000).saturating_sub(window);
        assert!(!ask(&filter, oldest..inserts + 10_000).contains(&false), "{inserts}");
    }
    // None of the keys that are older than all partitions keep is present.
    let kept = 16 * (config.partition_window_keys() + 600) + 8000;
    assert!(!ask(&filter, 0..150_000 - kept).contains(&true));
}

#[test]
fn false_positives_are_as_many_as_the_formula_says() {
    for (bits_per_key, hashes, incarnations, keys) in
        [(32, 3, 8, 30_000), (32, 3, 64, 30_000), (16, 5, 16, 30_000), (32, 3, 8, 1_300)]
    {
        let config =
            Config { buffer_keys: 500, bits_per_key, hashes, incarnations, ..Config::tiny() };
        let filter = made(config);
        insert(&filter, 0..keys);
        let asked = 100_000;
        let found = ask(&filter, 1 << 40..(1 << 40) + asked);
        let wrong = found.iter().filter(|found| **found).count() as f64;
        let rate = filter.stats().rate;
        let mean = rate * asked as f64;
        // Positions of a key may be equal, and filters are not all equally full: a tenth, and six deviations.
        let most = mean * 0.1 + 6.0 * mean.sqrt();
        assert!((wrong - mean).abs() <= most, "{config:?}: {wrong} of {mean}");
        if keys > config.window_keys() {
            let share = rate / config.rate();
            // The buffer may be nearly empty.
            assert!((0.88..=1.0).contains(&share), "{config:?}: {rate} {}", config.rate());
        }
    }
}

/// Returns a filter on a device that counts.
fn counted(config: Config) -> (Arc<Counted<MemoryDevice>>, SliceBloom) {
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let volume = volume_on(Arc::clone(&device) as Arc<dyn Device>, Durability::Never);
    let filter = SliceBloom::create_with(&volume, "f", config, inline()).unwrap();
    (device, filter)
}

#[test]
fn a_lookup_reads_a_page_for_each_hash_function_and_none_where_a_buffer_knows() {
    let config = Config { partitions: 1, buffer_keys: 4000, incarnations: 64, ..Config::tiny() };
    let (device, filter) = counted(config);
    insert(&filter, 0..8100);
    assert_eq!(filter.stats().buffered, 100);
    let before = device.snapshot();
    assert!(!ask(&filter, 8000..8100).contains(&false));
    assert_eq!(device.snapshot().since(&before).reads, 0, "keys in the buffer");
    let strangers = 1 << 40..(1 << 40) + 2000;
    let before = device.snapshot();
    ask(&filter, strangers.clone());
    let batch = device.snapshot().since(&before);
    let before = device.snapshot();
    strangers.clone().for_each(|number| assert!(filter.contains(&key(number)).is_ok()));
    let single = device.snapshot().since(&before);
    let before = device.snapshot();
    let mut stream = filter.stream();
    strangers.for_each(|number| stream.push(&key(number), number).unwrap());
    while stream.pull().unwrap().is_some() {}
    drop(stream);
    let streamed = device.snapshot().since(&before);
    assert_eq!((single.reads, streamed.reads), (batch.reads, batch.reads));
    assert_eq!(batch.pages_read, batch.reads, "one page each");
    let (reads, expected) = (batch.reads as f64 / 2000.0, config.costs().reads_per_lookup);
    assert!((reads - expected).abs() < 0.05 && reads <= 3.0, "{reads} {expected}");
    assert_eq!(filter.stats().lookup_reads, 3 * batch.reads, "what the figures say");
}

/// On a simulated drive of 32 channels, in virtual time.
#[test]
fn the_reads_of_a_lookup_go_out_at_once() {
    let preset = Preset::named("crucial-m4-paper").unwrap();
    let model = preset.build(Fill::Empty).unwrap();
    let device = SimDevice::with_model(model).with_geometry(preset.geometry());
    let channels = Channels::of(&device.geometry());
    assert!(channels.count() > 8, "{channels:?}");
    let volume = volume_on(Arc::new(device.clone()), Durability::Never);
    let config = Config { partitions: 1, buffer_keys: 8000, incarnations: 64, ..Config::tiny() };
    let config = config.aligned_to(&channels);
    let filter = SliceBloom::create_with(&volume, "f", config, inline()).unwrap();
    insert(&filter, 0..8100);
    let timed = |act: &dyn Fn()| {
        let before = device.now();
        act();
        (device.now() - before) as f64
    };
    let block = filter.core.layout.shadow.block(0).unwrap();
    let page = |number: u64| filter.core.layout.shadow.page(block, number % 100);
    let one = timed(&|| {
        (0..200).for_each(|at| drop(device.read(page(at * 7), PageBuf::zeroed(1)).unwrap()));
    });
    let three = timed(&|| {
        (0..200).for_each(|at| assert!(filter.contains(&key((1 << 40) + at)).is_ok()));
    });
    assert!(filter.stats().lookup_reads > 580, "{:?}", filter.stats());
    // One after another they would take three times as long; some of them share a channel.
    assert!(three < 1.6 * one, "{three} ns for lookups, {one} ns for reads");
}

#[test]
fn a_flush_reads_and_writes_one_slicetable_and_a_key_costs_what_the_model_says() {
    let config = Config { partitions: 1, buffer_keys: 1000, incarnations: 64, ..Config::tiny() };
    let (device, filter) = counted(config);
    let before = device.snapshot();
    insert(&filter, 0..1000);
    let cost = device.snapshot().since(&before);
    assert_eq!((cost.reads, cost.writes), (0, 0), "a buffer takes them");
    insert(&filter, 1000..20_001);
    let (cost, stats) = (device.snapshot().since(&before), filter.stats());
    let block = u64::from(config.block_pages());
    assert_eq!(stats.merges, 20);
    assert_eq!(stats.data_bytes_written, 20 * block * PAGE_BYTES as u64);
    assert_eq!(stats.merge_bytes_read, 19 * block * PAGE_BYTES as u64);
    assert_eq!(cost.pages_read, 19 * block);
    // Boundaries in the log, and a checkpoint for every second one.
    let other = cost.pages_written - 20 * block;
    assert!(other <= 20 * 12, "{other} other pages");
    let written = stats.data_bytes_written as f64 / 20_000.0;
    assert!((written / config.costs().written_bytes_per_key - 1.0).abs() < 1e-9);
    // m/n k / 8 bytes, and the headers of pages.
    assert!((256.0..280.0).contains(&written), "{written}");
}

#[test]
fn ram_is_what_the_model_says_and_next_to_the_buffers_less_than_a_tenth_of_a_bit() {
    let config = Config { partitions: 4, buffer_keys: 16_384, incarnations: 256, ..Config::tiny() };
    let volume = volume_on(Arc::new(MemoryDevice::new()), Durability::Never);
    let options = OpenOptions::default().inline();
    let filter = SliceBloom::create_with(&volume, "f", config, options).unwrap();
    insert(&filter, 0..200_000);
    let (stats, costs) = (filter.stats(), config.costs());
    assert!(stats.merges > 4 && stats.ram_bytes <= costs.ram_bytes, "{stats:?} {costs:?}");
    assert!((0.125..0.1275).contains(&costs.buffer_bits_per_key), "{costs:?}");
    // For a large window; for this one, the fixed parts are larger.
    let large = Config::of_paper(1 << 30).unwrap().costs();
    assert!(large.other_bits_per_key <= 0.1, "{large:?}");
}

#[test]
fn inserts_of_one_key_count_each_time_and_of_an_absent_one_once() {
    let filter = made(EXACT);
    insert(&filter, 0..20);
    for _ in 0..500 {
        filter.insert(&key(7)).unwrap();
    }
    assert_eq!(ask(&filter, 0..9), [false, false, false, false, false, false, false, true, false]);
    let filter = made(EXACT);
    insert(&filter, 0..20);
    for _ in 0..500 {
        assert!(!filter.insert_if_absent(&key(7)).unwrap());
    }
    assert!(!ask(&filter, 0..20).contains(&false));
    let keys = [key(30), key(3), key(30)];
    let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
    assert_eq!(filter.insert_if_absent_many(&keys).unwrap(), [true, false, false]);
}

#[test]
fn deletes_are_refused_with_a_reason_and_change_nothing() {
    let filter = made(EXACT);
    insert(&filter, 0..20);
    let told = filter.delete(&key(7)).unwrap_err().to_string();
    assert!(
        told.starts_with("a SliceBloom deletes no keys: ") && told.contains("cascade"),
        "{told}"
    );
    assert!(matches!(filter.delete_many(&[&key(7)]), Err(Error::NoDeletes { .. })));
    filter.delete_many(&[]).unwrap();
    assert!(!ask(&filter, 0..20).contains(&false));
    assert_eq!((filter.stats().deletes, filter.stats().entries), (0, 20));
}

/// A replay that applied a key twice would count it twice, and push an old one out of the window too early.
#[test]
fn however_often_it_is_killed_each_key_counts_once() {
    let config = Config { incarnations: 24, ..EXACT };
    let device = MemoryDevice::new();
    let durability = Durability::Every(Duration::from_secs(3600));
    let volume = volume_on(Arc::new(device.clone()), durability);
    let filter = SliceBloom::create_with(&volume, "f", config, inline()).unwrap();
    let mut fifo = Fifo { inserts: 0, config };
    for round in 0..100 {
        insert(&filter, fifo.inserts..fifo.inserts + 23);
        fifo.inserts += 23;
        if round % 7 == 3 {
            volume.checkpoint().unwrap();
        }
        if round % 11 == 5 {
            filter.flush().unwrap();
        }
        filter.sync().unwrap();
        let killed = killed(&device);
        let stats = killed.stats();
        assert_eq!(stats.entries, fifo.inserts - fifo.oldest(), "round {round}: {stats:?}");
        assert!(!ask(&killed, fifo.oldest()..fifo.inserts).contains(&false), "round {round}");
        assert!(!ask(&killed, 0..fifo.oldest()).contains(&true), "round {round}");
    }
}

#[test]
fn a_filter_opened_after_a_checkpoint_that_was_taken_while_it_was_closed_goes_on_where_it_was() {
    let device = MemoryDevice::new();
    let volume = volume_on(Arc::new(device.clone()), Durability::Every(Duration::from_secs(3600)));
    let filter = SliceBloom::create_with(&volume, "f", EXACT, inline()).unwrap();
    insert(&filter, 0..130);
    filter.close().unwrap();
    volume.checkpoint().unwrap();
    let filter = SliceBloom::open_with(&volume, "f", inline()).unwrap();
    volume.checkpoint().unwrap();
    insert(&filter, 130..160);
    filter.sync().unwrap();
    let killed = killed(&device);
    assert_eq!(killed.stats().entries, 160);
    assert!(!ask(&killed, 0..160).contains(&false));
}

#[test]
fn a_check_proves_every_page_and_names_what_is_damaged() {
    let device = Arc::new(MemoryDevice::new());
    let volume = volume_on(Arc::clone(&device) as _, Durability::Every(Duration::from_secs(3600)));
    let config = Config { incarnations: 64, ..EXACT };
    let filter = SliceBloom::create_with(&volume, "f", config, inline()).unwrap();
    insert(&filter, 0..130);
    filter.flush().unwrap();
    insert(&filter, 130..140);
    filter.sync().unwrap();
    let core = &filter.core;
    let block = core.layout.shadow.block(0).unwrap();
    let pages = u64::from(config.block_pages());
    let slices: Vec<_> = (0..pages).map(|page| core.layout.shadow.page(block, page).0).collect();
    let snapshot = core.partitions[0].read().needed_snapshot().unwrap().place;
    let places = recover::FilterSource {
        id: core.id,
        start: core.layout.shadow.page(Block { physical: 0, ..block }, 0),
        epoch: 1,
    }
    .places(&config);
    let snapshot = places.place(0, snapshot.slot).0;
    let image = device.image();
    let check = |image: Vec<u8>| {
        crate::check(Arc::new(MemoryDevice::from_image(image)), None, &mut |_| {}).unwrap()
    };
    let whole = check(image.clone());
    assert_eq!((whole.findings.len(), whole.structures[0].entries), (0, 130), "{whole:?}");
    assert!(pages > 1, "{pages}");
    for page in slices.into_iter().chain([snapshot]) {
        let mut bad = image.clone();
        bad[page as usize * PAGE_BYTES + 500] ^= 4;
        let report = check(bad);
        let found: Vec<_> = report.findings.iter().map(|it| it.page.0).collect();
        assert_eq!(found, [page]);
        assert_eq!(report.findings[0].structure.as_deref(), Some("f"));
    }
}

#[test]
fn while_a_checkpoint_captures_no_buffer_becomes_a_column() {
    // Otherwise it would be on flash in the map, and in the log in the buffers: counted twice after a crash.
    let filter = made(Config::tiny());
    let core = &filter.core;
    assert!(capture_holds(core, &core.layout.maps), "a flush could have changed them");
}
