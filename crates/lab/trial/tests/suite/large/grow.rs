//! Tables of large values that grow: compared with a map through growths, cleaning and openings, the cost of
//! a lookup before and after, and devices without space.

use std::collections::HashMap;
use std::sync::Arc;

use nandex::device::{Device, MemoryDevice};
use nandex::large::ValuesConfig;
use nandex::raw::device::{Counted, PAGE_BYTES};
use nandex::{AnyTable, Durability, Error, LargeTable, Volume, VolumeOpenOptions, WhenFull};
use nandex_sim::workload::SplitMix64;
use nandex_trial::Contract;

use super::support::{DURABILITIES, Setup, key, value};

/// Returns a setup of five segments of two pages, and writes that become longer than a segment.
fn growing(durability: Durability) -> Setup {
    let setup = Setup::new(durability, WhenFull::Grow);
    let values = ValuesConfig { segment_pages: 2, segments: 5, io_chunk_pages: 7, ..setup.values };
    Setup { values, ..setup }
}

fn generations(table: &LargeTable<AnyTable>) -> usize {
    table.table().of::<nandex::raw::bufferhash::growing::Growing>().unwrap().generations()
}

/// A table, and its expected content.
struct Twin {
    setup: Setup,
    device: MemoryDevice,
    table: LargeTable<AnyTable>,
    map: HashMap<u64, Vec<u8>>,
    rng: SplitMix64,
}

impl Twin {
    fn new(setup: Setup) -> Self {
        let device = MemoryDevice::new();
        let table = setup.create_on(Arc::new(device.clone())).unwrap();
        Self { setup, device, table, map: HashMap::new(), rng: SplitMix64::new(7) }
    }

    fn put(&mut self, number: u64) {
        let bytes = [40, 300, 1000, 12_000][self.rng.below(4) as usize];
        let value = value(self.rng.below(u64::MAX), self.rng.below(bytes) as usize);
        self.table.put(&key(number), &value).unwrap();
        self.map.insert(number, value);
    }

    fn remove(&mut self, number: u64) {
        self.table.remove(&key(number)).unwrap();
        self.map.remove(&number);
    }

    fn open_again(self) -> Self {
        self.table.close().unwrap();
        let table = self.setup.open_on(Arc::new(self.device.clone())).unwrap();
        Self { table, ..self }
    }

    /// Returns its device, with everything closed: background threads write meanwhile.
    fn closed(self) -> MemoryDevice {
        self.table.close().unwrap();
        self.device
    }

    fn assert_same(&self, keys: u64) {
        let numbers: Vec<_> = (0..keys).collect();
        for numbers in numbers.chunks(64) {
            let keys: Vec<_> = numbers.iter().map(|number| key(*number)).collect();
            let borrowed: Vec<_> = keys.iter().map(|key| &key[..]).collect();
            let found = self.table.get_many(&borrowed).unwrap();
            for (number, found) in numbers.iter().zip(found) {
                assert!(found.as_ref() == self.map.get(number), "{number}");
            }
        }
        let pairs: nandex::Result<HashMap<_, _>> = self.table.iter().unwrap().collect();
        let expected = self.map.iter().map(|(number, value)| (key(*number), value.clone()));
        assert!(pairs.unwrap() == expected.collect::<HashMap<_, _>>(), "an iteration differs");
    }
}

/// Returns the number of the newest generation.
fn newest_generation(device: MemoryDevice) -> u32 {
    let volume = Volume::open(Arc::new(device), VolumeOpenOptions::default()).unwrap();
    let names = volume.structures().into_iter().map(|it| it.name);
    let numbers = names.filter_map(|name| name.rsplit_once("/g")?.1.parse().ok());
    numbers.max().unwrap()
}

#[test]
fn a_table_that_grows_is_the_twin_of_a_map_through_growths_cleaning_and_openings() {
    for (durability, keys) in DURABILITIES.into_iter().zip([1500, 4000, 4000]) {
        for setup in [growing(durability), growing(durability).threaded()] {
            let mut twin = Twin::new(setup);
            for round in 1..=4 {
                let until = keys * round / 4;
                (keys * (round - 1) / 4..until).for_each(|number| twin.put(number));
                for _ in 0..until {
                    let number = twin.rng.below(until);
                    if twin.rng.below(3) == 0 { twin.remove(number) } else { twin.put(number) }
                }
                twin.assert_same(until);
                let stats = twin.table.stats().values;
                assert!(stats.growths > 3 * round, "{setup:?}, round {round}: {stats:?}");
                assert!(stats.cleaned_segments > 10, "{setup:?}, round {round}: {stats:?}");
                twin = twin.open_again();
                twin.assert_same(until);
            }
            let device = twin.closed();
            let report = nandex::check(Arc::new(device.clone()), None, &mut |_| {}).unwrap();
            assert!(report.ok(), "{:?}", report.findings);
            assert!(keys < 4000 || newest_generation(device) > 2);
        }
    }
}

/// Counts the reads of a lookup: one page of the index and one operation for the record, in the first extent
/// as in the last.
#[test]
fn a_lookup_costs_the_same_after_growth() {
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let table = growing(Durability::Never).create_on(device.clone()).unwrap();
    let mut reads = Vec::new();
    for (before, keys) in [(0, 200_u64), (200, 2000), (2000, 8000)] {
        (before..keys).for_each(|number| table.put(&key(number), &value(number, 900)).unwrap());
        table.flush().unwrap();
        let before = (device.snapshot(), table.stats());
        for number in 0..200 {
            let found = table.get(&key(number * 37 % keys)).unwrap();
            assert_eq!(found, Some(value(number * 37 % keys, 900)));
        }
        let (after, stats) = (device.snapshot(), table.stats());
        let of_values = stats.values.reads - before.1.values.reads;
        let pages = stats.values.pages_read - before.1.values.pages_read;
        assert_eq!(of_values, 200, "one operation for each record");
        assert!(pages <= 2 * of_values, "{pages} pages");
        reads.push((after.reads - before.0.reads - of_values) as f64 / 200.0);
        println!(
            "{keys} keys, {} growths: {:.3} reads of the index",
            stats.values.growths,
            reads[reads.len() - 1]
        );
    }
    assert!(table.stats().values.growths > 15 && generations(&table) > 3);
    // Pages of its generations' buffers are in RAM, and its filters seldom have false positives.
    assert!(reads.iter().all(|reads| *reads <= 1.1), "{reads:?}");
}

/// Updates until a third of the log is dead, before segments that are less than half dead are cleaned.
#[test]
fn updates_write_at_most_twice_and_leave_at_most_two_fifths_of_the_log_unused() {
    /// The puts between two looks at the statistics; a segment has ten times as many records.
    const PUTS: u64 = 16;
    let mut setup = growing(Durability::Never);
    setup.values = ValuesConfig { segment_pages: 16, io_chunk_pages: 8, ..setup.values };
    let table = setup.create_on(Arc::new(MemoryDevice::new())).unwrap();
    let mut rng = SplitMix64::new(3);
    for number in 0..2000 {
        table.put(&key(number), &value(number, 400)).unwrap();
    }
    let mut most = 0.0_f64;
    for _ in 0..20_000 / PUTS {
        for _ in 0..PUTS {
            let number = rng.below(2000);
            table.put(&key(number), &value(number, 400)).unwrap();
        }
        let stats = table.stats().values;
        most = most.max(stats.flash_bytes as f64 / stats.live_bytes as f64);
    }
    let stats = table.stats().values;
    let put = stats.appended_bytes - stats.copied_bytes;
    let factor = stats.appended_bytes as f64 / put as f64;
    println!(
        "{factor:.3} bytes appended per byte put, a log of at most {most:.3} of its live bytes"
    );
    assert!(stats.cleaned_segments > 100, "{stats:?}");
    assert!(factor < 2.0, "{factor}");
    // A growth adds an eighth to a log, a third of which is dead, and two segments are free for copies.
    assert!(most < 1.7, "{most}");
}

#[test]
fn a_device_without_space_is_cleaned_and_refuses_with_what_it_lacks() {
    for durability in DURABILITIES {
        let setup = growing(durability);
        let device = MemoryDevice::with_limit(500);
        let table = setup.create_on(Arc::new(device.clone())).unwrap();
        let mut count = 0;
        let error = loop {
            match table.put(&key(count), &value(count, 3500)) {
                Ok(()) => count += 1,
                Err(error) => break error,
            }
        };
        let text = error.to_string();
        assert!(matches!(error, Error::GrowthStopped { .. }), "{text}");
        assert!(text.contains("limited to 500 pages") && text.contains("values take"), "{text}");
        assert!(count > 60 && device.page_count() > 450, "{count}, {}", device.page_count());
        (0..count / 2).for_each(|number| table.remove(&key(number)).unwrap());
        for number in 0..count / 4 {
            table.put(&key(number), &value(number + 1000, 3500)).unwrap();
        }
        for number in 0..count {
            let expected = match number {
                _ if number < count / 4 => Some(value(number + 1000, 3500)),
                _ if number < count / 2 => None,
                _ => Some(value(number, 3500)),
            };
            assert_eq!(table.get(&key(number)).unwrap(), expected, "{durability:?} {number}");
        }
    }
}

#[test]
fn a_small_log_takes_a_value_of_16_mebibytes() {
    let table = growing(Durability::Never).create_on(Arc::new(MemoryDevice::new())).unwrap();
    table.put(b"small", b"value").unwrap();
    let large = value(1, 16 << 20);
    table.put(b"large", &large).unwrap();
    table.put(&[1; 64 << 10], &large).unwrap();
    assert!(table.get(b"large").unwrap().as_ref() == Some(&large));
    assert!(table.get(&[1; 64 << 10]).unwrap().as_ref() == Some(&large));
    assert_eq!(table.get(b"small").unwrap().as_deref(), Some(&b"value"[..]));
    assert!(
        table.stats().values.flash_bytes < 8 * (17 << 20) / PAGE_BYTES as u64 * PAGE_BYTES as u64
    );
}
