//! Barriers that only a second device, or a second thread at the worst moment, can test.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/part.rs"]
mod part;

use std::sync::{Arc, Mutex};

use nandex_device::{Call, Device, MemoryDevice, Observer, OpKind, PageId, Watched};
use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, SimDevice};
use nandex_store::{
    Captured, Durability, Error, Lsn, Result, Structure, Threads, Volume, VolumeOpenOptions,
    VolumeOptions,
};

use part::Part;

fn options() -> VolumeOptions {
    let (durability, threads) = (Durability::Never, Threads::Inline);
    VolumeOptions { durability, threads, volume_id: Some(1), ..VolumeOptions::tiny() }
}

fn open(device: Arc<dyn Device>, log_device: Option<Arc<dyn Device>>) -> Result<Volume> {
    let (durability, threads) = (Durability::Never, Threads::Inline);
    let options =
        VolumeOpenOptions { durability, log_device, threads, ..VolumeOpenOptions::default() };
    Volume::open(device, options)
}

/// Returns what a power cut leaves.
fn survivor(device: &SimDevice, seed: u64) -> Arc<dyn Device> {
    Arc::new(SimDevice::instant().with_image(device.survivors(seed)))
}

/// Returns a volume whose process ended between the write of a superblock and its sync, and its log.
fn killed_before_a_sync() -> (SimDevice, Arc<dyn Device>) {
    let device = SimDevice::instant();
    let log: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let options = VolumeOptions { log_device: Some(Arc::clone(&log)), ..options() };
    let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
    volume.create_structure("a", "kind", Vec::new(), 1).unwrap();
    let syncs = device.seen(FaultOn::Sync);
    volume.create_structure("b", "kind", Vec::new(), 1).unwrap();
    let last = 2 * device.seen(FaultOn::Sync) - syncs;
    let (on, kind, span) = (FaultOn::Sync, FaultKind::Io, FaultSpan::FromThenOn);
    device.arm(Fault { on, at: last, kind, span });
    volume.create_structure("c", "kind", Vec::new(), 1).unwrap_err();
    device.disarm();
    (device, log)
}

#[test]
fn what_a_killed_process_left_unsynced_is_not_lost_after_an_opening_has_built_on_it() {
    let (crash, log) = killed_before_a_sync();
    // The opening writes a superblock over the older one. Torn, it leaves only what was read before.
    let torn = Arc::new(Mutex::new(None));
    let (seen, source) = (Arc::clone(&torn), crash.clone());
    let tear: Act = Box::new(move |page: PageId| {
        let mut image = source.survivors(0).to_bytes();
        let start = usize::try_from(page.0).unwrap() * 4096;
        image[start..start + 300].fill(0xa7);
        *seen.lock().unwrap() = Some(image);
    });
    let interrupt = Arc::new(Interrupt(Mutex::new(Some(tear))));
    let device = Arc::new(Watched::with(crash, interrupt));
    drop(open(device, Some(Arc::clone(&log))).unwrap());
    let torn = torn.lock().unwrap().take().unwrap();
    let again = open(Arc::new(MemoryDevice::from_image(torn)), Some(log)).unwrap();
    again.open_structure("b", "kind").unwrap();
    again.open_structure("c", "kind").unwrap();
}

/// Runs an action before the next superblock is written.
struct Interrupt(Mutex<Option<Act>>);

type Act = Box<dyn FnOnce(PageId) + Send>;

impl std::fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Interrupt")
    }
}

impl Observer for Interrupt {
    fn before(&self, call: Call<'_>) -> nandex_device::Result<()> {
        if let Call::Start { kind: OpKind::Write, page, .. } = call {
            let act = self.0.lock().unwrap().take_if(|_| page.0 < 2);
            act.into_iter().for_each(|act| act(page));
        }
        Ok(())
    }
}

/// Registers a structure that needs the log from a place on that its test moves.
fn register(volume: &Volume, structure: &Structure) -> (Arc<Part>, Arc<Mutex<Lsn>>) {
    let tail = Arc::new(Mutex::new(structure.tail));
    let needed = Arc::clone(&tail);
    let capture = move || Captured { state: vec![1], tail: *needed.lock().unwrap(), extents: None };
    (Part::new(capture).register(volume, structure), tail)
}

/// Returns the first numbers of the entries that an opening finds in the log.
fn replayed(volume: &Volume) -> Vec<u64> {
    let structure = volume.open_structure("s", "kind").unwrap();
    let mut numbers = Vec::new();
    let mut visit = |_: Lsn, entry: &[u8]| {
        numbers.push(u64::from_le_bytes(entry[..8].try_into().unwrap()));
        Ok(())
    };
    volume.replay(&structure, &mut visit).unwrap();
    numbers
}

/// Appends numbered entries, durably, until the log is full or has `count_max` entries; returns their number.
fn fill(volume: &Volume, structure: &Structure, count_max: u64) -> u64 {
    let mut entry = [0; 1000];
    for number in 0..count_max {
        entry[..8].copy_from_slice(&number.to_le_bytes());
        if volume.log().append(structure.id, &[&entry]).is_err() {
            return number;
        }
    }
    volume.log().sync().unwrap();
    count_max
}

#[test]
fn the_log_is_given_up_only_once_the_superblock_that_says_so_is_durable() {
    let crash = SimDevice::instant();
    let device = Arc::new(Watched::with(crash.clone(), Arc::new(Interrupt(Mutex::default()))));
    let volume = Volume::create(Arc::clone(&device) as Arc<dyn Device>, options()).unwrap();
    let structure = volume.create_structure("s", "kind", Vec::new(), 1).unwrap();
    let (_part, tail) = register(&volume, &structure);
    let count = fill(&volume, &structure, 180);
    assert_eq!(count, 180);
    // From here on the structure needs nothing before that place. While the checkpoint is being written, others append
    // more than the log has space for, and then the power fails.
    *tail.lock().unwrap() = volume.log().next_lsn();
    let (others, of_others, cut) = (volume.clone(), structure.clone(), crash.clone());
    *device.observer().0.lock().unwrap() = Some(Box::new(move |_| {
        fill(&others, &of_others, 180);
        cut.cut_after(cut.operations());
    }));
    volume.checkpoint().unwrap_err();
    let found = open(survivor(&crash, 0), None).unwrap();
    let numbers = replayed(&found);
    assert!(numbers.iter().copied().take(180).eq(0..180), "{} entries", numbers.len());
}

#[test]
fn a_creation_that_was_cut_leaves_no_superblock_that_refers_to_nothing() {
    let whole = SimDevice::instant();
    drop(Volume::create(Arc::new(whole.clone()), options()).unwrap());
    for cut in 0..whole.operations() {
        for seed in 0..40 {
            let crash = SimDevice::instant();
            crash.cut_after(cut);
            Volume::create(Arc::new(crash.clone()), options()).unwrap_err();
            match open(survivor(&crash, seed), None) {
                // Nothing, or an invalid superblock.
                Ok(_) | Err(Error::Foreign { .. }) => {}
                Err(Error::Corrupt { page, .. }) if page.0 < 2 => {}
                Err(error) => panic!("cut {cut}, seed {seed}: {error}"),
            }
        }
    }
}

#[test]
fn a_volume_that_has_lost_its_end_is_refused_and_not_made_longer_again() {
    let device = MemoryDevice::new();
    let volume = Volume::create(Arc::new(device.clone()), options()).unwrap();
    // The checkpoint takes a page before the structure's, so that nothing read at opening is missing.
    volume.create_structure("s", "kind", Vec::new(), 100).unwrap();
    volume.create_structure("t", "kind", Vec::new(), 100).unwrap();
    drop(volume);
    let mut image = device.image();
    image.truncate(image.len() - 4096);
    let error = open(Arc::new(MemoryDevice::from_image(image)), None).unwrap_err();
    assert!(matches!(error, Error::Truncated { .. }), "{error}");
}

#[test]
fn what_a_crashed_session_wrote_behind_a_lost_block_never_comes_back() {
    let device = MemoryDevice::new();
    let volume = Volume::create(Arc::new(device.clone()), options()).unwrap();
    volume.create_structure("s", "kind", Vec::new(), 1).unwrap();
    drop(volume);
    // A session fills two blocks, and the power cut loses the first of those that were never synced.
    let volume = open(Arc::new(device.clone()), None).unwrap();
    let structure = volume.open_structure("s", "kind").unwrap();
    let start = volume.log().next_lsn();
    let mut appended = 0;
    let mut of_first = 0;
    while volume.log().stats().bytes_written < 2 * 8192 {
        volume.log().append(structure.id, &[&[7; 1000]]).unwrap();
        appended += 1;
        of_first = if volume.log().next_lsn() == start { appended } else { of_first };
    }
    volume.poison().set(&"killed");
    drop(volume);
    let mut image = device.image();
    let first_block = 2 * 4096 + usize::try_from(start.0).unwrap();
    assert_eq!(&image[first_block + 4..first_block + 8], b"ndxl");
    image[first_block..first_block + 8192].fill(0);
    let device = MemoryDevice::from_image(image);
    // The next session fills that block again and needs nothing of it, so that its log begins behind it.
    let volume = open(Arc::new(device.clone()), None).unwrap();
    let structure = volume.open_structure("s", "kind").unwrap();
    let (_part, tail) = register(&volume, &structure);
    assert_eq!(fill(&volume, &structure, of_first), of_first);
    *tail.lock().unwrap() = volume.log().next_lsn();
    volume.checkpoint().unwrap();
    volume.poison().set(&"killed");
    drop(volume);
    let volume = open(Arc::new(device), None).unwrap();
    assert_eq!(replayed(&volume), []);
}
