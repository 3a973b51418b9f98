//! A volume with a damaged page opens read-only after a power cut: everything that is undamaged can be read.
//!
//! The log of this volume has more than its buffers hold. An opening for writing flushes, merges and evicts while it
//! replays, and fails when it meets the page; a read-only opening keeps all of it in RAM.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nandex::device::{Access, MemoryDevice};
use nandex::raw::device::PAGE_BYTES;
use nandex::testing::Retention;
use nandex::{
    AnyConfig, AnyFilter, AnyTable, Durability, OpenOptions, Table, Threads, Volume,
    VolumeOpenOptions, VolumeOptions,
};
use nandex_baseline::registry;
use nandex_sim::SimDevice;

use super::damage::{Map, each_config, flip, key, keys_in, left, without};

/// Keys of each table.
const KEYS: u64 = 3000;

/// The keys that the last updates left, and their values.
type Oracle = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> VolumeOptions {
    // A long log, so that no checkpoint removes the updates from it before the power cut.
    VolumeOptions {
        threads: Threads::Inline,
        durability: Durability::Never,
        log_bytes: 1 << 20,
        ..VolumeOptions::tiny()
    }
}

fn open(device: &MemoryDevice, access: Access) -> nandex::Result<Volume> {
    let options =
        VolumeOpenOptions { access, threads: Threads::Inline, ..VolumeOpenOptions::default() };
    Ok(Volume::open(Arc::new(device.clone()), options)?)
}

/// Puts some keys, removes some, and puts some again; returns those that are present at the end. Calls `midway` while
/// nothing is synced.
fn live(table: &AnyTable, mut midway: impl FnMut()) -> Oracle {
    let mut oracle = Oracle::new();
    let mut put = |number: u64, round: u64| {
        let value = (number << 8 | round).to_le_bytes();
        // A full table rejects it.
        if table.insert(&key(number), &value).is_ok() {
            oracle.insert(key(number).to_vec(), value.to_vec());
        }
    };
    (0..KEYS).for_each(|number| put(number, 0));
    table.flush().unwrap();
    for number in (0..KEYS).filter(|number| number % 3 > 0) {
        put(number, 1);
        if number == 2501 {
            midway();
        }
    }
    for number in (0..KEYS).filter(|number| number % 16 == 1) {
        table.remove(&key(number)).unwrap();
        oracle.remove(&key(number)[..]);
    }
    oracle
}

/// Returns a table after two power cuts: one in the middle of updates, and one after all were synced, with the entries
/// at that time.
fn crashed(config: &AnyConfig, own: &OpenOptions) -> (Vec<u8>, Vec<u8>, Oracle) {
    let device = SimDevice::instant();
    let options = VolumeOptions { durability: Durability::Every(HOUR), ..options() };
    let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
    let table = AnyTable::create_with(&volume, "t", config, own).unwrap();
    let mut image = Vec::new();
    let oracle = live(&table, || image = device.survivors(2).to_bytes());
    volume.log().sync().unwrap();
    (image, device.survivors(0).to_bytes(), oracle)
}

const HOUR: std::time::Duration = std::time::Duration::from_secs(3600);

/// Returns the pages that the structures have ever written.
fn data_pages(image: &[u8]) -> Vec<u64> {
    let sealed = |page: &[u8]| page[4..8] == *b"ndx1" && page[8] > 2;
    let pages = image.chunks_exact(PAGE_BYTES).zip(0..);
    pages.filter(|(page, _)| sealed(page)).map(|(_, number)| number).collect()
}

/// Returns everything that can be read, and the pages that are reported; the device is not changed.
fn read_past(device: &MemoryDevice, own: &OpenOptions) -> (Map, BTreeMap<u64, u64>) {
    let before = device.image();
    let volume = open(device, Access::ReadOnly).unwrap();
    let table = AnyTable::open_with(&volume, "t", own).unwrap();
    let all = left(table.iter_past_damage());
    assert!(table.insert(&key(0), &[0; 8]).is_err(), "it is open to be read");
    drop((table, volume));
    assert!(device.image() == before, "it was written");
    all
}

/// Looks up keys: each lookup returns the right answer, or an error.
fn look_up(device: &MemoryDevice, own: &OpenOptions, whole: &Map, numbers: &[u64]) {
    let volume = open(device, Access::ReadOnly).unwrap();
    let table = AnyTable::open_with(&volume, "t", own).unwrap();
    for number in numbers {
        let Ok(found) = table.get(&key(*number)) else { continue };
        let wanted = whole.get(&key(*number)[..]);
        assert_eq!(found.as_deref(), wanted.map(|value| &value[..]), "key {number}");
    }
}

/// The damaged pages: openings for writing that failed, and the reports of read-only openings.
#[derive(Debug, Default)]
struct Refused {
    tried: u64,
    refused: u64,
    /// The pages that the read-only openings have reported.
    told: u64,
}

impl Refused {
    fn add(&mut self, other: Self) {
        self.tried += other.tried;
        self.refused += other.refused;
        self.told += other.told;
    }

    fn try_to_write(&mut self, image: &[u8], own: &OpenOptions, page: u64) {
        let device = MemoryDevice::from_image(image.to_vec());
        let opened = open(&device, Access::ReadWrite)
            .and_then(|volume| AnyTable::open_with(&volume, "t", own).map(drop));
        self.tried += 1;
        if let Err(error) = opened {
            let told = error.to_string();
            assert!(told.contains(&format!("page {page} ")), "page {page}: {told}");
            assert!(told.contains("nandex dump --skip-damaged"), "{told}");
            self.refused += 1;
        }
    }
}

/// Damages some pages of a table after a power cut, one at a time.
fn pages_damaged(label: &str, image: &[u8], own: &OpenOptions, whole: &Map) -> Refused {
    let device = MemoryDevice::from_image(image.to_vec());
    let mut refused = Refused::default();
    for page in data_pages(image).into_iter().skip(label.len() % 5).step_by(5) {
        flip(&device, &[page]);
        let held = keys_in(image, page);
        let (pairs, damaged) = read_past(&device, own);
        assert!(damaged.keys().all(|at| *at == page), "{label} page {page}: {damaged:?}");
        assert!(without(&pairs, &held) == without(whole, &held), "{label} page {page}");
        assert!(pairs == *whole || !damaged.is_empty(), "{label} page {page}: nothing is told");
        for (key, value) in pairs.iter().filter(|(key, _)| held.contains(*key)) {
            let newest = whole.get(key);
            assert!(newest.is_none_or(|it| it == value || value[0] < it[0]), "{label}");
        }
        refused.told += u64::from(!damaged.is_empty());
        let some: Vec<u64> = (page % 41..KEYS).step_by(41).collect();
        look_up(&device, own, whole, &some);
        refused.try_to_write(&device.image(), own, page);
        flip(&device, &[page]);
    }
    refused
}

fn each_crash(label: &str, (config, own): (&AnyConfig, &OpenOptions), law: Retention) -> Refused {
    let (midway, image, oracle) = crashed(config, own);
    let whole_of = |image: &[u8]| {
        let (whole, damaged) = read_past(&MemoryDevice::from_image(image.to_vec()), own);
        assert!(damaged.is_empty(), "{label}: {damaged:?}");
        whole
    };
    let whole = whole_of(&image);
    assert!(whole.iter().all(|(key, value)| oracle.get(key) == Some(value)), "{label}");
    let keeps_all = matches!(law, Retention::All | Retention::Refuses);
    assert!(!keeps_all || whole.len() == oracle.len(), "{label}: {} {}", whole.len(), oracle.len());
    let mut refused = pages_damaged(label, &image, own, &whole);
    refused.add(pages_damaged(label, &midway, own, &whole_of(&midway)));
    refused
}

#[test]
fn a_crashed_volume_with_a_damaged_page_gives_all_that_is_whole_to_be_read() {
    let mut all = Refused::default();
    each_config(|made| {
        let refused = each_crash(&made.label, (&made.config, &made.options), made.retention);
        println!("{}: for writing {refused:?}", made.label);
        all.add(refused);
    });
    println!("{all:?}");
    // Otherwise the read-only openings would show nothing.
    assert!(all.refused > 20 && all.refused < all.tried && all.told > 100, "{all:?}");
}

fn crashed_filter(config: &AnyConfig, own: &OpenOptions) -> (Vec<u8>, BTreeSet<u64>) {
    let device = SimDevice::instant();
    let options = VolumeOptions { durability: Durability::Every(HOUR), ..options() };
    let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
    let filter = AnyFilter::create_with(&volume, "f", config, own).unwrap();
    let mut oracle = BTreeSet::new();
    for number in 0..KEYS {
        if filter.insert(&key(number)[..8]).is_ok() {
            oracle.insert(number);
        }
        if number == KEYS / 2 {
            filter.flush().unwrap();
        }
    }
    volume.log().sync().unwrap();
    (device.survivors(0).to_bytes(), oracle)
}

/// A filter or a counting table opens read-only, and never reports a present key as absent.
#[test]
fn a_crashed_filter_with_a_damaged_page_opens_and_denies_no_key() {
    for (_, row) in registry::filters() {
        for variant in 0..row.testing.variants {
            let made = (row.testing.config)(variant, 0);
            if made.key_bytes.is_some_and(|bytes| bytes != 8) {
                continue;
            }
            let (image, mut oracle) = crashed_filter(&made.config, &made.options);
            let forgotten = made.window.map_or(0, |window| KEYS.saturating_sub(window));
            oracle.retain(|number| *number >= forgotten);
            let device = MemoryDevice::from_image(image.clone());
            let mut answers = [0, 0];
            for page in data_pages(&image).into_iter().step_by(2) {
                flip(&device, &[page]);
                let before = device.image();
                let volume = open(&device, Access::ReadOnly).unwrap();
                let filter = AnyFilter::open(&volume, "f", &made.options).unwrap();
                for number in oracle.iter().skip(page as usize % 7).step_by(7) {
                    let found = filter.contains(&key(*number)[..8]);
                    answers[usize::from(found.is_err())] += 1;
                    assert!(found.is_err() || found.unwrap(), "{} key {number}", made.label);
                }
                drop((filter, volume));
                assert!(device.image() == before, "{}: it was written", made.label);
                flip(&device, &[page]);
            }
            println!("{}: answers and errors {answers:?}", made.label);
            assert!(answers[0] > answers[1], "{}: {answers:?}", made.label);
        }
    }
}
