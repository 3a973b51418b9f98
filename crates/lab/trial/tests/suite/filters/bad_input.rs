//! Wrong, foreign, used, too small, damaged or full filters: each is refused with a message of its own, and
//! the rest continues to work.

use std::sync::Arc;

use nandex::cascade::{Cascade, Config};
use nandex::device::MemoryDevice;
use nandex::{Counter, Filter, OpenOptions, Volume, VolumeOptions, WhenFull};

use super::runner::key;
use super::support::Setup;
use crate::bad_input::refusal;
use crate::devices::DURABILITIES;
use crate::guarded::guarded;

fn setup() -> Setup {
    Setup::exact(DURABILITIES[1])
}

fn volume() -> Volume {
    Volume::create(Arc::new(MemoryDevice::new()), setup().volume_options()).unwrap()
}

fn insert(filter: &Cascade, numbers: std::ops::Range<u64>) -> nandex::Result<()> {
    let keys: Vec<_> = numbers.map(key).collect();
    filter.insert_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>())
}

fn delete(filter: &Cascade, numbers: std::ops::Range<u64>) {
    let keys: Vec<_> = numbers.map(key).collect();
    filter.delete_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
}

/// Creates a filter of this setup in a volume of its own.
fn filter_of(setup: Setup) -> Cascade {
    setup.create(Arc::new(MemoryDevice::new())).unwrap()
}

fn assert_holds(filter: &Cascade, numbers: std::ops::Range<u64>) {
    for number in numbers {
        assert_eq!(filter.count(&key(number)).unwrap(), 1, "key {number}");
    }
}

#[test]
fn configurations_that_cannot_work_are_refused_and_leave_nothing_behind() {
    let volume = volume();
    let tiny = Config::tiny();
    for (config, field) in [
        (Config { keys: 0, ..tiny }, "keys"),
        (Config { rate: 0.0, ..tiny }, "rate"),
        (Config { rate: 1.0, ..tiny }, "rate"),
        (Config { rate: f64::NAN, ..tiny }, "rate"),
        (Config { rate: -0.1, ..tiny }, "rate"),
        (Config { keys: u64::MAX, rate: 1e-9, ..tiny }, "rate"),
        (Config { buffer_entries: 0, ..tiny }, "buffer_entries"),
        (Config { buffer_entries: u64::MAX, ..tiny }, "buffer_entries"),
        (Config { buffer_entries: 250_001, ..tiny }, "buffer_entries"),
        (Config { fan_out: Some(0), ..tiny }, "fan_out"),
        (Config { fan_out: Some(1), ..tiny }, "fan_out"),
    ] {
        let error = refusal(Cascade::create(&volume, "f", config));
        assert!(error.starts_with(&format!("{field}: ")), "{config:?}: {error}");
    }
    for (options, field) in [
        (OpenOptions { flush_threads: Some(65), ..OpenOptions::default() }, "flush_threads"),
        (OpenOptions { read_depth: Some(0), ..OpenOptions::default() }, "read_depth"),
        (OpenOptions { read_depth: Some(5000), ..OpenOptions::default() }, "read_depth"),
        (OpenOptions { io_chunk_pages: Some(0), ..OpenOptions::default() }, "io_chunk_pages"),
        (OpenOptions { io_chunk_pages: Some(1 << 20), ..OpenOptions::default() }, "io_chunk_pages"),
    ] {
        let error = refusal(Cascade::create_with(&volume, "f", tiny, options.clone()));
        assert!(error.starts_with(&format!("{field}: ")), "{options:?}: {error}");
    }
    let filter = Cascade::create(&volume, "f", tiny).unwrap();
    filter.close().unwrap();
    let options = OpenOptions { flush_threads: Some(99), ..OpenOptions::default() };
    assert!(refusal(Cascade::open_with(&volume, "f", options)).starts_with("flush_threads: "));
    Cascade::open(&volume, "f").unwrap();
}

#[test]
fn keys_of_no_bytes_and_of_a_hundred_thousand_are_keys_like_others() {
    let filter = filter_of(setup());
    let long = [vec![0u8; 100_000], vec![1u8; 100_000], vec![0u8; 99_999]];
    let keys: [&[u8]; 5] = [b"", b"\0", &long[0], &long[1], &long[2]];
    for (number, key) in (1..).zip(keys) {
        assert!(!filter.contains(key).unwrap());
        filter.add(key, number).unwrap();
    }
    filter.flush().unwrap();
    filter.compact().unwrap();
    assert_eq!(filter.count_many(&keys).unwrap(), [1, 2, 3, 4, 5]);
    filter.delete(b"").unwrap();
    let found = filter.contains_many(&keys).unwrap();
    assert_eq!(found, [false, true, true, true, true]);
}

#[test]
fn nothing_asked_is_nothing_done() {
    let filter = filter_of(setup());
    filter.insert_many(&[]).unwrap();
    filter.delete_many(&[]).unwrap();
    filter.add_many(&[]).unwrap();
    filter.add(b"a", 0).unwrap();
    assert!(filter.contains_many(&[]).unwrap().is_empty());
    assert!(filter.count_many(&[]).unwrap().is_empty());
    filter.flush().unwrap();
    filter.compact().unwrap();
    assert_eq!(filter.iter().count(), 0);
    let stats = filter.stats();
    assert_eq!((stats.entries, stats.inserts, stats.deletes, stats.rate), (0, 0, 0, 0.0));
    assert_eq!(filter.count(b"a").unwrap(), 0);
}

/// Deletes more than was inserted: that breaks the contract, and yet must not harm anything else.
#[test]
fn deletes_of_keys_that_are_not_there_harm_no_other_key_and_are_counted() {
    for durability in DURABILITIES {
        let setup = Setup::exact(durability);
        let filter = filter_of(setup);
        insert(&filter, 0..700).unwrap();
        delete(&filter, 10_000..10_300);
        insert(&filter, 700..1000).unwrap();
        assert_holds(&filter, 0..1000);
        assert!((10_000..10_300).all(|number| !filter.contains(&key(number)).unwrap()));
        filter.compact().unwrap();
        assert_holds(&filter, 0..1000);
        let stats = filter.stats();
        assert_eq!((stats.unmatched_deletes, stats.tombstones, stats.entries), (300, 0, 1000));
    }
}

#[test]
fn a_filter_that_refuses_says_so_and_takes_deletes_and_then_keys_again() {
    let volume = volume();
    let config = Config { keys: 1000, rate: 1e-12, when_full: WhenFull::Refuse, ..Config::tiny() };
    let filter = Cascade::create(&volume, "f", config).unwrap();
    for number in 0..1000 {
        filter.insert(&key(number)).unwrap();
    }
    let error = refusal(filter.insert(&key(1000)));
    assert!(error.contains("was made for 1000"), "{error}");
    refusal(insert(&filter, 1000..1010));
    assert_holds(&filter, 0..1000);
    // Others are deleted as they were inserted.
    delete(&filter, 0..500);
    filter.compact().unwrap();
    for number in 2000..2500 {
        filter.insert(&key(number)).unwrap();
    }
    refusal(filter.insert(&key(3000)));
    assert_holds(&filter, 500..1000);
    assert_holds(&filter, 2000..2500);
}

#[test]
fn counts_past_their_limit_are_refused_or_stay_there_and_never_wrap() {
    for setup in [setup(), setup().counting()] {
        let filter = filter_of(setup);
        for round in 0..3 {
            let _ = filter.add(b"a", i64::MAX);
            assert!(filter.count(b"a").unwrap() >= i64::MAX as u64, "round {round}");
            insert(&filter, round * 300..round * 300 + 300).unwrap();
            filter.flush().unwrap();
            assert!(filter.count(b"a").unwrap() >= i64::MAX as u64, "round {round}, on flash");
        }
        filter.compact().unwrap();
        assert!(filter.count(b"a").unwrap() >= i64::MAX as u64);
        assert_holds(&filter, 0..900);
        // No count of another key has this sign.
        let _ = filter.add(b"b", i64::MIN);
        filter.compact().unwrap();
        assert_eq!(filter.count(b"b").unwrap(), 0);
    }
}

/// Adds counts of nine bytes each, while pages are made for a byte or two.
#[test]
fn a_buffer_full_of_great_counts_finds_its_space_on_flash() {
    for setup in [setup(), setup().counting(), setup().fanned(None).counting()] {
        let filter = filter_of(setup);
        let count = |number: u64| (1i64 << 60) + number.cast_signed();
        let keys: Vec<_> = (0..3000).map(key).collect();
        let amounts: Vec<_> =
            (0..).zip(&keys).map(|(number, key)| (&key[..], count(number))).collect();
        filter.add_many(&amounts).unwrap();
        filter.compact().unwrap();
        for (number, key) in (0..).zip(&keys) {
            assert_eq!(filter.count(key).unwrap().cast_signed(), count(number), "key {number}");
        }
        let back: Vec<_> = amounts.iter().map(|(key, amount)| (*key, 1 - amount)).collect();
        filter.add_many(&back).unwrap();
        filter.compact().unwrap();
        assert_holds(&filter, 0..3000);
    }
}

/// Opens the image of a buffer, which has a fingerprint once, while the buffer it is loaded into has it
/// several times.
#[test]
fn an_image_of_keys_that_came_again_and_again_is_opened() {
    for setup in [setup(), setup().counting()] {
        let device = MemoryDevice::new();
        let volume = Volume::create(Arc::new(device.clone()), setup.volume_options()).unwrap();
        let filter = setup.create_filter(&volume, "f").unwrap();
        for _ in 0..12 {
            insert(&filter, 0..90).unwrap();
            filter.flush().unwrap();
        }
        filter.close().unwrap();
        drop(volume);
        let filter = setup.open(Arc::new(device)).unwrap();
        assert!((0..90).all(|number| filter.count(&key(number)).unwrap() == 12));
        insert(&filter, 0..300).unwrap();
        assert!((0..90).all(|number| filter.count(&key(number)).unwrap() == 13));
    }
}

#[test]
fn a_full_device_is_told_and_what_was_taken_stays() {
    let setup = setup();
    let device = MemoryDevice::with_limit(120);
    let volume = Volume::create(Arc::new(device.clone()), setup.volume_options()).unwrap();
    let filter = setup.create_filter(&volume, "f").unwrap();
    let mut taken = 0;
    let error = loop {
        match insert(&filter, taken..taken + 50) {
            Ok(()) => taken += 50,
            Err(error) => break error.to_string(),
        }
        assert!(taken < 1_000_000, "nothing grows for ever");
    };
    assert!(error.contains("no space for") && error.contains("free some"), "{error}");
    assert!(taken > 1000, "{taken}");
    assert_holds(&filter, 0..taken);
    // The keys of the refused batch are in or not, and a second try fails as the first did.
    let error = refusal(insert(&filter, taken + 1000..taken + 2000));
    assert!(error.contains("no space for") || error.contains("an earlier one failed"), "{error}");
    drop((filter, volume));
    let device = MemoryDevice::from_image(device.image());
    let filter = setup.open(Arc::new(device)).unwrap();
    let there = (0..taken).filter(|number| filter.count(&key(*number)).unwrap() == 1).count();
    println!("{there} of {taken} keys are there");
    insert(&filter, 1_000_000..1_002_000).unwrap();
    assert_holds(&filter, 1_000_000..1_002_000);
}

#[test]
fn filters_merge_with_their_like_and_refuse_others_and_themselves() {
    let one = volume();
    let options = VolumeOptions { hash_key: Some(43), ..setup().volume_options() };
    let other = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
    let like = Volume::create(Arc::new(MemoryDevice::new()), setup().volume_options()).unwrap();
    let filter = setup().create_filter(&one, "f").unwrap();
    let theirs = setup().counting().fanned(None).with_parts(3).create_filter(&like, "f").unwrap();
    insert(&filter, 0..900).unwrap();
    insert(&theirs, 450..1350).unwrap();
    filter.absorb(&theirs).unwrap();
    let counts = |number: u64| filter.count(&key(number)).unwrap();
    assert!((0..450).chain(900..1350).all(|number| counts(number) == 1));
    assert!((450..900).all(|number| counts(number) == 2));
    assert_holds(&theirs, 450..1350);
    let keyed = setup().create_filter(&other, "f").unwrap();
    assert!(refusal(filter.absorb(&keyed)).contains("hash"));
    let wider = Cascade::create(&one, "w", Config::tiny()).unwrap();
    assert!(refusal(filter.absorb(&wider)).contains("universe"));
    let filter = Arc::new(filter);
    guarded("a filter that absorbs itself", {
        let filter = Arc::clone(&filter);
        move || drop(refusal(filter.absorb(&filter)))
    });
    assert_eq!(filter.iter().count(), 1350);
}

/// Deletes everything: it takes no flash once it is compacted.
#[test]
fn a_filter_of_which_everything_was_deleted_shrinks_to_nothing() {
    let volume = volume();
    let filter = setup().create_filter(&volume, "f").unwrap();
    insert(&filter, 0..5000).unwrap();
    filter.compact().unwrap();
    let full = filter.stats().flash_bytes;
    delete(&filter, 0..5000);
    filter.compact().unwrap();
    volume.checkpoint().unwrap();
    let stats = filter.stats();
    assert_eq!((stats.entries, stats.tombstones, stats.levels.len()), (0, 0, 0), "{stats:?}");
    assert!(stats.flash_bytes < full / 4, "{} of {full} bytes", stats.flash_bytes);
    // Pages that are freed are reused: the volume does not grow forever.
    let device = MemoryDevice::new();
    let volume = Volume::create(Arc::new(device.clone()), setup().volume_options()).unwrap();
    let filter = setup().create_filter(&volume, "f").unwrap();
    let mut lengths = Vec::new();
    for _ in 0..12 {
        insert(&filter, 0..3000).unwrap();
        delete(&filter, 0..3000);
        filter.compact().unwrap();
        lengths.push(device.image().len());
    }
    assert_eq!(lengths[4], lengths[11], "{lengths:?}");
}
