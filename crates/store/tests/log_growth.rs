//! A log that grows: acknowledged entries are found again, whatever is cut, and its pages follow its content.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/cuts.rs"]
mod cuts;
#[path = "common/part.rs"]
mod part;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use cuts::{Mortal, Rng};
use nandex_device::{Device, MemoryDevice, PAGE_BYTES};
use nandex_store::check::check;
use nandex_store::{
    Captured, Durability, Error, Lsn, Result, Structure, Threads, Volume, VolumeOpenOptions,
    VolumeOptions,
};
use part::Part;

const PAGE: u64 = PAGE_BYTES as u64;
const LOG_BYTES: u64 = 8 * PAGE;
const LOG_BYTES_MAX: u64 = 128 * PAGE;

fn options(log_bytes_max: Option<u64>) -> VolumeOptions {
    VolumeOptions {
        log_bytes: LOG_BYTES,
        log_bytes_max,
        durability: Durability::Always,
        threads: Threads::Inline,
        volume_id: Some(7),
        ..VolumeOptions::tiny()
    }
}

fn open(device: Arc<dyn Device>) -> Result<Volume> {
    let options = VolumeOpenOptions {
        durability: Durability::Always,
        threads: Threads::Inline,
        log_bytes_max: Some(LOG_BYTES_MAX),
        ..VolumeOpenOptions::default()
    };
    Volume::open(device, options)
}

/// Numbered entries: how many the state has, and the places of the others in the log.
#[derive(Debug, Default)]
struct Entries {
    saved: u64,
    logged: VecDeque<Lsn>,
}

impl Entries {
    fn count(&self) -> u64 {
        self.saved + self.logged.len() as u64
    }
}

/// A structure that has its entries in its state once they are saved, and in the log before.
struct Numbers {
    device: Arc<dyn Device>,
    volume: Volume,
    structure: Structure,
    entries: Arc<Mutex<Entries>>,
    _part: Arc<Part>,
}

impl Numbers {
    fn start(device: Arc<dyn Device>, volume: Volume) -> Result<Self> {
        let structure = volume.open_structure("numbers", "kind")?;
        let saved = structure.state.first_chunk().map_or(0, |state| u64::from_le_bytes(*state));
        let mut entries = Entries { saved, ..Entries::default() };
        volume.replay(&structure, &mut |lsn, entry| {
            let number = u64::from_le_bytes(*entry.first_chunk().unwrap());
            if number >= saved {
                assert_eq!(number, entries.count(), "no entry is missing");
                entries.logged.push_back(lsn);
            }
            Ok(())
        })?;
        let entries = Arc::new(Mutex::new(entries));
        let (shared, log) = (Arc::clone(&entries), volume.clone());
        let capture = move || {
            let entries = shared.lock().unwrap();
            let tail = entries.logged.front().copied().unwrap_or(log.log().next_lsn());
            Captured { state: entries.saved.to_le_bytes().to_vec(), tail, extents: None }
        };
        let part = Part::new(capture).register(&volume, &structure);
        Ok(Self { device, volume, structure, entries, _part: part })
    }

    fn append(&self) -> Result<()> {
        let reserved = self.volume.reserve(900)?;
        let mut entry = [7; 900];
        let mut entries = self.entries.lock().unwrap();
        entry[..8].copy_from_slice(&entries.count().to_le_bytes());
        let lsn = self.volume.log().append(self.structure.id, &[&entry])?;
        entries.logged.push_back(lsn);
        drop((entries, reserved));
        self.volume.log().commit()
    }

    /// Appends, and keeps few entries in the log, which may be full of them.
    fn append_or_save(&self) -> Result<()> {
        if self.entries.lock().unwrap().logged.len() > 20 {
            self.save(15);
        }
        self.append()
    }

    /// Includes `count` entries in the state with the next checkpoint.
    fn save(&self, count: u64) {
        let mut entries = self.entries.lock().unwrap();
        for _ in 0..count {
            if entries.logged.pop_front().is_some() {
                entries.saved += 1;
            }
        }
    }

    fn count(&self) -> u64 {
        self.entries.lock().unwrap().count()
    }

    /// Takes a checkpoint that needs nothing of the log.
    fn save_all(&self) {
        self.save(self.count());
        self.volume.checkpoint().unwrap();
    }

    fn new(device: Arc<dyn Device>, options: VolumeOptions) -> Result<Self> {
        let volume = Volume::create(Arc::clone(&device), options)?;
        volume.create_structure("numbers", "kind", Vec::new(), 1)?;
        Self::start(device, volume)
    }
}

/// The number of entries that were acknowledged, and of those that were begun.
#[derive(Clone, Default, Debug)]
struct Past {
    acknowledged: u64,
    begun: u64,
}

impl Mortal for Numbers {
    type Past = Past;

    const STEPS: (u64, u64) = (30, 12);

    fn born(device: Arc<dyn Device>, _log: Option<Arc<dyn Device>>) -> Result<Self> {
        Self::new(device, options(Some(LOG_BYTES_MAX)))
    }

    fn reopened(device: Arc<dyn Device>, _log: Option<Arc<dyn Device>>) -> Result<Self> {
        let volume = open(Arc::clone(&device))?;
        if volume.structures().is_empty() {
            // The cut came before the structure was created.
            volume.create_structure("numbers", "kind", Vec::new(), 1)?;
        }
        Self::start(device, volume)
    }

    fn step(&self, past: &mut Past, rng: &mut Rng) -> Result<()> {
        match rng.below(8) {
            0 => {
                let capacity = self.volume.log().capacity_bytes();
                self.volume.want_log(2 * capacity)?;
            }
            1 => {
                self.save(rng.below(self.count() + 1));
                self.volume.checkpoint()?;
            }
            _ => {
                for _ in 0..=rng.below(4) {
                    past.begun = self.count() + 1;
                    self.append_or_save()?;
                    past.acknowledged = self.count();
                }
            }
        }
        Ok(())
    }

    fn found(&self, past: &Past, story: &str) -> Past {
        let count = self.count();
        let expected = past.acknowledged..=past.begun.max(past.acknowledged);
        assert!(expected.contains(&count), "{story}: {count} of {expected:?}");
        let found = check(Arc::clone(&self.device), None).unwrap();
        assert!(found.ok(), "{story}: {found:?}");
        Past { acknowledged: count, begun: count }
    }

    fn kill(self) {}
}

#[test]
fn a_power_cut_at_any_operation_leaves_what_was_acknowledged() {
    cuts::sweep::<Numbers>(150, || None);
}

#[test]
fn the_same_calls_write_the_same_bytes() {
    cuts::live_twice::<Numbers>();
}

#[test]
fn a_log_grows_before_appending_waits_and_gives_back_what_it_has_left() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let numbers = Numbers::new(Arc::clone(&device), options(Some(LOG_BYTES_MAX))).unwrap();
    let free = numbers.volume.stats().free_pages;
    // All entries stay in the log.
    (0..80).for_each(|_| numbers.append().unwrap());
    let capacity = numbers.volume.log().capacity_bytes();
    assert!(capacity > 8 * LOG_BYTES && capacity <= LOG_BYTES_MAX, "{capacity}");
    let grown = numbers.volume.stats();
    // Checkpoints alternate on a page or two.
    assert!(grown.free_pages <= free + 2, "blocks are still where they were");
    numbers.save_all();
    let left = numbers.volume.stats().free_pages - free;
    // All but one page of each earlier part, which together are a little shorter than the newest one.
    assert!(left >= capacity / PAGE / 2 - 8, "{left} pages of {}", capacity / PAGE);
    drop(numbers);
    let again = Numbers::start(Arc::clone(&device), open(device).unwrap()).unwrap();
    assert_eq!(again.count(), 80);
    assert_eq!(again.volume.log().capacity_bytes(), capacity);
    assert!(again.volume.stats().free_pages.abs_diff(free + left) <= 2);
}

#[test]
fn a_log_keeps_its_length_unless_it_may_grow() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let numbers = Numbers::new(Arc::clone(&device), options(None)).unwrap();
    assert!(!numbers.volume.want_log(2 * LOG_BYTES).unwrap());
    assert_eq!(numbers.volume.log_bytes_max(), LOG_BYTES);
    drop(numbers);
    // The result does not depend on the options of a later opening.
    let volume = open(device).unwrap();
    assert!(!volume.want_log(2 * LOG_BYTES).unwrap());
    assert!(matches!(volume.reserve(LOG_BYTES), Err(Error::LogFull { .. })));
}

#[test]
fn a_log_grows_for_what_would_not_fit_it_and_to_no_more_than_its_limit() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let numbers = Numbers::new(device, options(Some(LOG_BYTES_MAX))).unwrap();
    let volume = &numbers.volume;
    drop(volume.reserve(LOG_BYTES).unwrap());
    assert!(volume.log().capacity_bytes() >= 4 * LOG_BYTES);
    assert!(volume.want_log(u64::MAX).unwrap());
    assert_eq!(volume.log().capacity_bytes(), LOG_BYTES_MAX);
    assert!(!volume.want_log(2 * LOG_BYTES_MAX).unwrap());
    assert!(matches!(volume.reserve(LOG_BYTES_MAX), Err(Error::LogFull { .. })));
}

#[test]
fn a_log_that_may_grow_does_so_as_it_fills_and_takes_no_checkpoint_for_it() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let numbers = Numbers::new(device, options(Some(LOG_BYTES_MAX))).unwrap();
    let volume = &numbers.volume;
    let (wanted, before) = (64 * PAGE, volume.stats().checkpoints);
    volume.let_log_grow(wanted).unwrap();
    assert_eq!(volume.log().capacity_bytes(), LOG_BYTES);
    (0..12).for_each(|_| numbers.append().unwrap());
    assert_eq!(volume.log().capacity_bytes(), 4 * LOG_BYTES);
    assert_eq!(volume.stats().checkpoints, before, "it is far from the length that it may have");
    (0..12).for_each(|_| numbers.append().unwrap());
    assert_eq!(volume.log().capacity_bytes(), wanted);
}

#[test]
fn a_log_on_a_longer_device_takes_its_pages_before_others_do() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    device.grow(1000).unwrap();
    let numbers = Numbers::new(Arc::clone(&device), options(Some(LOG_BYTES_MAX))).unwrap();
    numbers.volume.let_log_grow(64 * PAGE).unwrap();
    assert_eq!(numbers.volume.log().capacity_bytes(), 64 * PAGE);
    assert_eq!(device.page_count(), 1000);
}

#[test]
fn a_backup_and_a_closed_copy_of_a_log_in_parts_are_whole() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let numbers = Numbers::new(Arc::clone(&device), options(Some(LOG_BYTES_MAX))).unwrap();
    (0..30).for_each(|_| numbers.append().unwrap());
    numbers.save(20);
    numbers.volume.checkpoint().unwrap();
    (0..30).for_each(|_| numbers.append().unwrap());
    let live: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    numbers.volume.backup(&Arc::clone(&live).into()).unwrap();
    drop(numbers);
    let closed: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    nandex_store::copy_closed(&device.into(), &Arc::clone(&closed).into()).unwrap();
    for copy in [live, closed] {
        assert!(check(Arc::clone(&copy), None).unwrap().ok());
        let found = Numbers::start(Arc::clone(&copy), open(copy).unwrap()).unwrap();
        assert_eq!(found.count(), 60);
    }
}

#[test]
fn threads_append_while_the_log_grows_under_them() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let (durability, threads) = (Durability::default(), Threads::Background);
    let options = VolumeOptions { durability, threads, ..options(Some(LOG_BYTES_MAX)) };
    let numbers = Numbers::new(Arc::clone(&device), options).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..1000).for_each(|_| numbers.append_or_save().unwrap()));
        }
        let mut bytes = LOG_BYTES;
        while numbers.volume.want_log(2 * bytes).unwrap() {
            bytes = numbers.volume.log().capacity_bytes();
            numbers.volume.checkpoint().unwrap();
        }
    });
    assert_eq!(numbers.volume.log().capacity_bytes(), LOG_BYTES_MAX);
    numbers.volume.log().sync().unwrap();
    drop(numbers);
    assert!(check(Arc::clone(&device), None).unwrap().ok());
    let again = Numbers::start(Arc::clone(&device), open(device).unwrap()).unwrap();
    assert_eq!(again.count(), 3000);
}
