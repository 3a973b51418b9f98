//! A drive that loses the writes to both superblock pages: the opening is complete, or reports that they are stale.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/part.rs"]
mod part;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nandex_device::{Call, Device, MemoryDevice, Observer, OpKind, PAGE_BYTES, PageBuf, Watched};
use nandex_sim::SimDevice;
use nandex_store::check::check;
use nandex_store::superblock::Superblock;
use nandex_store::{
    Captured, Durability, Error, Result, StaleSuperblock, Threads, Volume, VolumeOpenOptions,
    VolumeOptions,
};

use part::Part;

const DURABILITIES: [Durability; 3] =
    [Durability::Always, Durability::Every(Duration::from_secs(3600)), Durability::Never];

/// The number of ways of surviving a power cut that are tried; 0 loses all that was not synced, 1 nothing.
const SEEDS: u64 = 4;

/// The limit of the log's growth.
const LOG_BYTES_MAX: u64 = 256 * PAGE_BYTES as u64;

/// Structures, each with its number of entries.
type Contents = BTreeMap<String, u64>;

/// A device and everything that was written to the superblock pages, in order.
type Recorded = Watched<SimDevice, Superblocks>;

/// Notes what is written to the two superblock pages and to the third copy.
#[derive(Debug, Default)]
struct Superblocks(Mutex<Vec<(u64, Vec<u8>)>>);

impl Superblocks {
    /// Returns the pages after `writes` writes of them; `None` if one was not written yet.
    fn after(&self, writes: usize) -> Option<BTreeMap<u64, Vec<u8>>> {
        let pages: BTreeMap<_, _> = self.0.lock().unwrap()[..writes].iter().cloned().collect();
        (pages.len() == 3).then_some(pages)
    }

    fn writes(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Observer for Superblocks {
    fn before(&self, call: Call<'_>) -> nandex_device::Result<()> {
        if let Call::Start { kind: OpKind::Write, page, pages: 1, bytes } = call
            && Superblock::decode(bytes, page).is_ok()
        {
            self.0.lock().unwrap().push((page.0, bytes.to_vec()));
        }
        Ok(())
    }
}

/// Structures with numbered entries: those before a checkpoint in their state, the others in the log.
struct Life {
    device: Recorded,
    durability: Durability,
    volume: Option<Volume>,
    open: BTreeMap<String, (Arc<Part>, Arc<AtomicU64>)>,
}

impl Life {
    fn new(durability: Durability) -> Self {
        let device = Watched::with(SimDevice::instant(), Arc::default());
        let threads = Threads::Inline;
        let log_bytes_max = Some(LOG_BYTES_MAX);
        let tiny = VolumeOptions::tiny();
        let options = VolumeOptions { durability, threads, log_bytes_max, ..tiny };
        let volume = Some(Volume::create(Arc::new(device.clone()), options).unwrap());
        Self { device, durability, volume, open: BTreeMap::new() }
    }

    fn volume(&self) -> &Volume {
        self.volume.as_ref().unwrap()
    }

    fn create(&mut self, name: &str) {
        self.volume().create_structure(name, "kind", Vec::new(), 1).unwrap();
        self.register(name, 0);
    }

    fn register(&mut self, name: &str, entries: u64) {
        let volume = self.volume().clone();
        let structure = volume.open_structure(name, "kind").unwrap();
        let entries = Arc::new(AtomicU64::new(entries));
        let (count, weak) = (Arc::clone(&entries), volume.clone());
        let capture = move || {
            let state = count.load(Relaxed).to_le_bytes().to_vec();
            Captured { state, tail: weak.log().next_lsn(), extents: None }
        };
        let part = Part::new(capture).register(&volume, &structure);
        self.open.insert(name.to_owned(), (part, entries));
    }

    fn remove(&mut self, name: &str) {
        self.open.remove(name).unwrap();
        self.volume().drop_structure(name).unwrap();
    }

    fn grow_log(&self, pages: u64) {
        let bytes = pages * PAGE_BYTES as u64;
        assert!(self.volume().want_log(bytes).unwrap());
        assert_eq!(self.volume().log().capacity_bytes(), bytes);
    }

    /// Creates a structure of pages with some content.
    fn fill(&mut self, name: &str, pages: u64) {
        let structure = self.volume().create_structure(name, "kind", Vec::new(), pages).unwrap();
        let mut buf = PageBuf::zeroed(usize::try_from(pages).unwrap());
        buf.fill(0x5a);
        self.device.write(structure.extent().unwrap().start, buf).unwrap();
        self.device.sync().unwrap();
        self.register(name, 0);
    }

    fn append(&self, name: &str, count: u64) {
        let volume = self.volume();
        let entries = &self.open[name].1;
        for _ in 0..count {
            let mut entry = [7; 900];
            let number = entries.load(Relaxed);
            entry[..8].copy_from_slice(&number.to_le_bytes());
            let reserved = volume.reserve(900).unwrap();
            volume.log().append(self.id(name), &[&entry]).unwrap();
            entries.store(number + 1, Relaxed);
            drop(reserved);
            volume.log().commit().unwrap();
        }
        volume.log().sync().unwrap();
    }

    fn id(&self, name: &str) -> nandex_store::StructureId {
        // They are numbered in the order of their creation, and numbers are never reused.
        nandex_store::StructureId(match name {
            "a" => 1,
            "b" => 2,
            "d" => 3,
            _ => 4,
        })
    }

    fn close(&mut self) {
        self.open.clear();
        self.volume = None;
    }

    fn reopen(&mut self) {
        self.close();
        let volume = open(Arc::new(self.device.clone()), self.durability, StaleSuperblock::Refuse);
        let volume = volume.unwrap();
        let found = contents(&volume).unwrap();
        self.volume = Some(volume);
        found.into_iter().for_each(|(name, entries)| self.register(&name, entries));
    }

    fn contents(&self) -> Contents {
        let all = self.open.iter();
        all.map(|(name, (_, entries))| (name.clone(), entries.load(Relaxed))).collect()
    }
}

fn open(device: Arc<dyn Device>, durability: Durability, stale: StaleSuperblock) -> Result<Volume> {
    let threads = Threads::Inline;
    Volume::open(
        device,
        VolumeOpenOptions {
            durability,
            threads,
            stale,
            log_bytes_max: Some(LOG_BYTES_MAX),
            ..VolumeOpenOptions::default()
        },
    )
}

/// Returns what an opening finds.
fn contents(volume: &Volume) -> Result<Contents> {
    let mut all = Contents::new();
    for found in volume.structures() {
        let structure = volume.open_structure(&found.name, "kind")?;
        let state = structure.state.first_chunk().map_or(0, |state| u64::from_le_bytes(*state));
        let mut next = state;
        volume.replay(&structure, &mut |_, entry| {
            let number = u64::from_le_bytes(*entry.first_chunk().unwrap());
            assert!(number <= next, "entries have a gap");
            next = next.max(number + 1);
            Ok(())
        })?;
        all.insert(found.name, next);
    }
    Ok(all)
}

/// A step of a life, and whether entries are in the log after it.
type Step = (&'static str, bool, fn(&mut Life));

const STEPS: [Step; 14] = [
    ("a structure is made", false, |life| life.create("a")),
    ("its first entries are logged", true, |life| life.append("a", 20)),
    ("a checkpoint is taken", false, |life| life.volume().checkpoint().unwrap()),
    ("another one is made", false, |life| life.create("b")),
    ("entries of both are logged", true, |life| {
        life.append("a", 9);
        life.append("b", 30);
    }),
    ("it is removed", false, |life| life.remove("b")),
    ("the log goes round three times", true, |life| life.append("a", 900)),
    ("the log grows", false, |life| life.grow_log(128)),
    ("entries are logged where it goes on", true, |life| life.append("a", 9)),
    ("what it has left is used for others", false, |life| {
        life.volume().checkpoint().unwrap();
        life.fill("d", 60);
        life.grow_log(256);
    }),
    ("entries are logged where it goes on again", true, |life| life.append("a", 9)),
    ("a third one is made and all are closed", false, |life| {
        life.create("c");
        let all = life.contents();
        life.volume().checkpoint().unwrap();
        life.close();
        life.reopen();
        assert_eq!(life.contents(), all);
    }),
    ("entries are logged after that", true, |life| life.append("c", 5)),
    ("all is opened twice and closed", false, |life| {
        life.reopen();
        life.reopen();
    }),
];

/// Replaces the pages whose numbers `which` selects.
fn patch(image: &mut [u8], pages: BTreeMap<u64, Vec<u8>>, which: fn(u64) -> bool) {
    for (page, bytes) in pages.into_iter().filter(|(page, _)| which(*page)) {
        let start = usize::try_from(page).unwrap() * PAGE_BYTES;
        image[start..start + PAGE_BYTES].copy_from_slice(&bytes);
    }
}

/// The outcomes of openings.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    told_stale: u64,
    other_error: u64,
    complete: u64,
    unnoticed: u64,
}

impl Counts {
    fn add(&mut self, opened: Result<Contents>, whole: &Contents) {
        match opened {
            Err(Error::Stale { .. }) => self.told_stale += 1,
            Err(_) => self.other_error += 1,
            Ok(found) if found == *whole => self.complete += 1,
            Ok(_) => self.unnoticed += 1,
        }
    }
}

/// Restores all earlier contents of the superblock pages that `which` selects; counts the outcomes of openings after
/// steps that end with entries in the log, and after the others.
fn put_back(durability: Durability, which: fn(u64) -> bool) -> [Counts; 2] {
    let mut life = Life::new(durability);
    let mut counts = [Counts::default(), Counts::default()];
    for (_, logs, step) in STEPS {
        step(&mut life);
        let whole = life.contents();
        let records = life.device.observer();
        for seed in 0..SEEDS {
            let image = life.device.inner().survivors(seed).to_bytes();
            for writes in 0..=records.writes() {
                let Some(pages) = records.after(writes) else { continue };
                let mut image = image.clone();
                patch(&mut image, pages, which);
                let device = Arc::new(MemoryDevice::from_image(image));
                let opened = open(device, durability, StaleSuperblock::Refuse);
                let found = opened.and_then(|volume| contents(&volume));
                counts[usize::from(!logs)].add(found, &whole);
            }
        }
    }
    println!("{durability:?}: {counts:?}");
    counts
}

#[test]
fn both_superblock_pages_put_back_leave_everything() {
    for durability in DURABILITIES {
        for Counts { told_stale, other_error, complete, unnoticed } in
            put_back(durability, |page| page < 2)
        {
            assert!(complete > 300, "{complete}");
            assert_eq!((told_stale, other_error, unnoticed), (0, 0, 0), "{durability:?}");
        }
    }
}

/// Without its third copy, a superblock is found to be stale by the log, unless nothing was logged since the newest.
#[test]
fn all_three_superblocks_put_back_are_noticed_once_something_was_logged() {
    for durability in DURABILITIES {
        let [logged, others] = put_back(durability, |_| true);
        assert_eq!((logged.unnoticed, logged.other_error), (0, 0), "{durability:?}");
        assert!(logged.told_stale > 300, "{logged:?}");
        // The newest ones are complete, and so are older ones if nothing else differs.
        assert!(logged.complete > 10 && others.told_stale > 100, "{others:?}");
    }
}

/// Returns a volume whose superblocks are all older than its second structure, while the log has its entries.
fn stale_image() -> Vec<u8> {
    let mut life = Life::new(Durability::Never);
    STEPS[..3].iter().for_each(|(.., step)| step(&mut life));
    let older = life.device.observer().after(life.device.observer().writes()).unwrap();
    STEPS[3..5].iter().for_each(|(.., step)| step(&mut life));
    let mut image = life.device.inner().survivors(1).to_bytes();
    patch(&mut image, older, |_| true);
    image
}

#[test]
fn an_older_state_opens_on_request_and_is_the_newest_from_then_on() {
    let device = MemoryDevice::from_image(stale_image());
    let open = |stale| open(Arc::new(device.clone()), Durability::Always, stale);
    let error = open(StaleSuperblock::Refuse).unwrap_err();
    let Error::Stale { found, newest, what: "log block", .. } = error else { panic!("{error}") };
    assert!(newest > found);
    let told = error.to_string();
    assert!(told.contains("may be missing") && told.contains("--older-state"), "{told}");
    let volume = open(StaleSuperblock::Open).unwrap();
    assert_eq!(contents(&volume).unwrap(), Contents::from([("a".into(), 29)]));
    volume.create_structure("later", "kind", Vec::new(), 1).unwrap();
    drop(volume);
    let volume = open(StaleSuperblock::Refuse).unwrap();
    let names: Vec<_> = volume.structures().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["a", "later"]);
}

#[test]
fn a_check_tells_of_stale_superblocks() {
    let report = check(Arc::new(MemoryDevice::from_image(stale_image())), None).unwrap();
    let found: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
    assert!(found.len() == 1 && found[0].contains("superblock is stale"), "{found:?}");
    // The two pages alone: the third copy is ahead of them.
    let mut life = Life::new(Durability::Always);
    let older = life.device.observer().after(life.device.observer().writes()).unwrap();
    STEPS[..5].iter().for_each(|(.., step)| step(&mut life));
    let mut image = life.device.inner().survivors(1).to_bytes();
    patch(&mut image, older, |page| page < 2);
    let report = check(Arc::new(MemoryDevice::from_image(image)), None).unwrap();
    let found: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
    assert!(found.len() == 1 && found[0].contains("the drive has lost writes"), "{found:?}");
}
