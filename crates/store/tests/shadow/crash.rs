//! Power cuts in the middle of every operation of a life, and of the recovery from each.
//!
//! After each cut every block must be whole, of the version that was durable last or of a later one that was at least
//! begun.

use std::sync::Arc;

use nandex_device::{Device, MemoryDevice};
use nandex_store::Result;
use nandex_store::shadow::Published;

use crate::cuts::{Mortal, Rng, live_twice, sweep};
use crate::subject::{SHAPE, Subject};

type Versions = [u64; SHAPE.logical as usize];

/// The expected state of the blocks.
#[derive(Clone, Copy, Default, Debug)]
pub struct Past {
    /// The least versions that a cut must leave.
    durable: Versions,
    /// The versions that the next sync of the log makes durable.
    logged: Versions,
    /// The versions that were published, and those that were about to be.
    published: Versions,
    begun: Versions,
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
        // All drafts are dropped, and a reader sees nothing of them.
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

impl Mortal for Subject {
    type Past = Past;

    const STEPS: (u64, u64) = (50, 12);

    fn born(device: Arc<dyn Device>, log: Option<Arc<dyn Device>>) -> Result<Self> {
        Self::create(device, log)
    }

    fn reopened(device: Arc<dyn Device>, log: Option<Arc<dyn Device>>) -> Result<Self> {
        Self::open(device, log)
    }

    fn step(&self, past: &mut Past, rng: &mut Rng) -> Result<()> {
        match rng.below(12) {
            0 | 1 => {
                self.volume().log().sync()?;
                past.durable = past.logged;
            }
            2 => {
                self.volume().checkpoint()?;
                (past.durable, past.logged) = (past.published, past.published);
            }
            // Sometimes with a checkpoint, when the log is nearly full.
            3..=5 => {
                drop(self.volume().reserve(2000)?);
                self.fill_log(2000)?;
            }
            6 => rewrite(self, 2, past, rng)?,
            _ => rewrite(self, 1, past, rng)?,
        }
        assert_eq!(self.versions(), past.published);
        Ok(())
    }

    /// The state that was found is durable.
    fn found(&self, past: &Past, story: &str) -> Past {
        let found = self.versions();
        for (at, version) in found.into_iter().enumerate() {
            let range = past.durable[at]..=past.begun[at];
            assert!(range.contains(&version), "{story}: block {at} is {version}, not of {range:?}");
        }
        let current = found.iter().filter(|version| **version > 0).count();
        let free = self.shadow().free_blocks();
        assert_eq!(
            (current + free) as u64,
            SHAPE.physical(),
            "{story}: a block is current or free"
        );
        let [durable, logged, published, begun] = [found; 4];
        Past { durable, logged, published, begun }
    }

    fn kill(self) {
        self.volume().poison().set(&"killed");
    }
}

#[test]
fn every_cut_leaves_each_block_whole_old_or_new() {
    sweep::<Subject>(300, || None);
}

/// On such a device a map update survives the power cut as soon as it is written, though its block may not.
#[test]
fn every_cut_leaves_each_block_whole_where_the_log_has_a_device_that_forgets_nothing() {
    sweep::<Subject>(300, || Some(MemoryDevice::new()));
}

#[test]
fn the_same_life_gives_the_same_operations_and_the_same_bytes() {
    live_twice::<Subject>();
}
