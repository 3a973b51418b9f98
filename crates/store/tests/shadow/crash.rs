//! Power cuts in the middle of every operation of a run, and of the recovery from each.
//!
//! After each one every block must be whole, of the version that was durable last or of a later one that
//! was at least begun.

use std::sync::Arc;

use nandex_device::{Device, MemoryDevice};
use nandex_sim::{Image, SimDevice};
use nandex_store::Result;
use nandex_store::shadow::Published;

use crate::subject::{SHAPE, Subject};

type Versions = [u64; SHAPE.logical as usize];

/// What a run knows of its blocks.
#[derive(Clone, Copy, Default, Debug)]
struct Past {
    created: bool,
    /// Versions that a cut must leave at least.
    durable: Versions,
    /// Those that the next sync of the log makes durable.
    logged: Versions,
    /// Those that were published, and what was about to be.
    published: Versions,
    begun: Versions,
}

impl Past {
    /// What was found after an opening is as durable as it was found.
    fn of(found: Versions) -> Self {
        let [durable, logged, published, begun] = [found; 4];
        Self { created: true, durable, logged, published, begun }
    }
}

struct Rng(u64);

impl Rng {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }
}

/// Rewrites a few blocks, and publishes them together.
fn rewrite(subject: &Subject, count: u64, past: &mut Past, rng: &mut Rng) -> Result<()> {
    let first = rng.below(u64::from(SHAPE.logical));
    let mut written = Vec::new();
    for at in 0..count {
        let logical = ((first + at) % u64::from(SHAPE.logical)) as u32;
        let draft = subject.begin(logical)?;
        past.begun[logical as usize] += 1;
        let (version, _) = subject.write(&draft)?;
        assert_eq!(version, past.begun[logical as usize]);
        written.push((draft, version));
    }
    if rng.below(8) == 0 {
        // All of it is dropped, and a reader sees nothing of it.
        past.begun = past.published;
        return Ok(());
    }
    let published = subject.publish(written)?;
    past.published = past.begun;
    if published == Published::Logged {
        past.logged = past.published;
    }
    Ok(())
}

fn step(subject: &Subject, past: &mut Past, rng: &mut Rng) -> Result<()> {
    match rng.below(12) {
        0 | 1 => {
            subject.volume().log().sync()?;
            past.durable = past.logged;
        }
        2 => {
            subject.volume().checkpoint()?;
            (past.durable, past.logged) = (past.published, past.published);
        }
        // Now and then with a checkpoint, where the log is nearly full.
        3..=5 => {
            drop(subject.volume().reserve(2000)?);
            subject.fill_log(2000)?;
        }
        6 => rewrite(subject, 2, past, rng)?,
        _ => rewrite(subject, 1, past, rng)?,
    }
    assert_eq!(subject.versions(), past.published);
    Ok(())
}

/// Some steps, and then the process is killed.
fn session(subject: Subject, steps: u64, past: &mut Past, rng: &mut Rng) -> Result<()> {
    (0..steps).try_for_each(|_| step(&subject, past, rng))?;
    subject.kill();
    Ok(())
}

/// A new volume, and three sessions on it.
fn live(device: &SimDevice, log: Option<&MemoryDevice>, past: &mut Past) -> Result<()> {
    let (device, log) = shared(device, log);
    let mut rng = Rng(1);
    let subject = Subject::create(Arc::clone(&device), log.clone())?;
    past.created = true;
    session(subject, 50, past, &mut rng)?;
    for _ in 0..2 {
        let subject = Subject::open(Arc::clone(&device), log.clone())?;
        *past = found(&subject, past, "killed");
        session(subject, 50, past, &mut rng)?;
    }
    Ok(())
}

/// Looks at all blocks after an opening, and goes on from what is there.
fn found(subject: &Subject, past: &Past, story: &str) -> Past {
    let found = subject.versions();
    for (at, version) in found.into_iter().enumerate() {
        let range = past.durable[at]..=past.begun[at];
        assert!(range.contains(&version), "{story}: block {at} is {version}, not one of {range:?}");
    }
    let current = found.iter().filter(|version| **version > 0).count();
    let free = subject.shadow().free_blocks();
    assert_eq!((current + free) as u64, SHAPE.physical(), "{story}: a block is current or free");
    Past::of(found)
}

fn shared(
    device: &SimDevice,
    log: Option<&MemoryDevice>,
) -> (Arc<dyn Device>, Option<Arc<dyn Device>>) {
    let log = log.map(|log| Arc::new(log.clone()) as Arc<dyn Device>);
    (Arc::new(device.clone()), log)
}

/// Opens what a cut has left, looks, and is cut again soon after; then opens and looks once more.
fn recover(image: Image, log: Option<&MemoryDevice>, past: &Past, again: u64, story: &str) {
    let log = log.map(|log| MemoryDevice::from_image(log.image()));
    let device = SimDevice::instant().with_image(image.clone());
    let (whole, log_whole) = shared(&device, log.as_ref());
    let mut past = match Subject::open(whole, log_whole) {
        Ok(subject) => {
            let past = found(&subject, past, story);
            subject.kill();
            past
        }
        Err(error) => return assert!(!past.created, "{story}: {error}"),
    };
    let story = format!("{story}, and again after {again}");
    device.cut_after(device.operations() + again);
    let (part, log_part) = shared(&device, log.as_ref());
    if let Ok(subject) = Subject::open(part, log_part) {
        past = found(&subject, &past, &story);
        session(subject, 12, &mut past, &mut Rng(again)).ok();
    }
    let device = SimDevice::instant().with_image(device.survivors(again));
    let (device, log) = shared(&device, log.as_ref());
    found(&Subject::open(device, log).unwrap(), &past, &story);
}

/// Cuts a run in the middle of each operation.
fn sweep(new_log: fn() -> Option<MemoryDevice>) {
    let whole = SimDevice::instant();
    live(&whole, new_log().as_ref(), &mut Past::default()).unwrap();
    let operations = whole.operations();
    assert!(operations > 300, "{operations} are too few to be a run");
    let mut rng = Rng(operations);
    for cut in 0..operations {
        let (device, log, mut past) = (SimDevice::instant(), new_log(), Past::default());
        device.cut_after(cut);
        live(&device, log.as_ref(), &mut past).unwrap_err();
        for seed in [0, 1, 2 + rng.below(1000), 2 + rng.below(1000)] {
            let story = format!("cut after {cut}, survivors {seed}");
            let again = rng.below(40);
            recover(device.survivors(seed), log.as_ref(), &past, again, &story);
        }
    }
}

#[test]
fn every_cut_leaves_each_block_whole_old_or_new() {
    sweep(|| None);
}

/// There a map update outlives the power the moment it is written, though its block may not.
#[test]
fn every_cut_leaves_each_block_whole_where_the_log_has_a_device_that_forgets_nothing() {
    sweep(|| Some(MemoryDevice::new()));
}

#[test]
fn the_same_run_gives_the_same_operations_and_the_same_bytes() {
    let [first, second] = [(); 2].map(|()| {
        let device = SimDevice::instant();
        live(&device, None, &mut Past::default()).unwrap();
        (device.operations(), device.survivors(1).to_bytes())
    });
    assert!(first == second && first.0 > 100);
}
