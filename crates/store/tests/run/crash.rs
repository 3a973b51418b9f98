//! Power cuts in the middle of every operation of a life of adding and merging, and of the recovery from each.
//!
//! After each cut the list is that of the last checkpoint, or of the one that was being written, whole: each of its
//! runs is valid from end to end, no two have a page in common, and no page is lost.

use std::sync::Arc;

use nandex_device::Device;
use nandex_sim::SimDevice;
use nandex_store::Result;

use crate::cuts::{Mortal, Rng, live_twice, sweep};
use crate::subject::{Subject, entries, expected};

/// The expected state of the list, as a number of runs that were added.
#[derive(Clone, Copy, Default, Debug)]
pub struct Past {
    /// The number of runs in the last durable checkpoint.
    durable: u64,
    /// The number of runs in the checkpoint that is being written.
    pending: u64,
    added: u64,
}

impl Mortal for Subject {
    type Past = Past;

    const STEPS: (u64, u64) = (16, 6);

    fn born(device: Arc<dyn Device>, _log: Option<Arc<dyn Device>>) -> Result<Self> {
        Self::create(device)
    }

    fn reopened(device: Arc<dyn Device>, _log: Option<Arc<dyn Device>>) -> Result<Self> {
        Self::open(device)
    }

    fn step(&self, past: &mut Past, rng: &mut Rng) -> Result<()> {
        match rng.below(7) {
            0 | 1 => {
                past.pending = past.added;
                self.volume().checkpoint()?;
                past.durable = past.pending;
            }
            2 | 3 => self.merge()?,
            _ => {
                self.add()?;
                past.added += 1;
            }
        }
        assert_eq!(self.added(), past.added);
        Ok(())
    }

    fn found(&self, past: &Past, story: &str) -> Past {
        let added = self.added();
        let may = [past.durable, past.pending];
        assert!(may.contains(&added), "{story}: {added} runs, not one of {may:?}");
        let all = expected(added);
        assert_eq!(self.contents().unwrap(), all, "{story}");
        for entry in entries(1).iter().step_by(97) {
            let count = all.binary_search_by_key(&entry.fingerprint, |it| it.fingerprint);
            let count = count.map_or(0, |at| all[at].count);
            assert_eq!(self.count(entry.fingerprint).unwrap(), count, "{story}");
        }
        apart(self, story);
        Past { durable: added, pending: added, added }
    }

    fn outlives(&self, past: &Past, story: &str) {
        self.merge().unwrap();
        self.volume().checkpoint().unwrap();
        apart(self, &format!("{story}, merged"));
        assert_eq!(self.contents().unwrap(), expected(past.added), "{story}, merged");
    }

    fn kill(self) {
        self.volume().poison().set(&"killed");
    }
}

/// Asserts that no page belongs to two runs or to none. A checkpoint of the list takes a page, and another one where
/// the next will go.
fn apart(subject: &Subject, story: &str) {
    let mut extents: Vec<_> = subject.runs().iter().map(|run| run.place().extent).collect();
    extents.sort_by_key(|extent| extent.start);
    for pair in extents.windows(2) {
        assert!(pair[0].end() <= pair[1].start, "{story}: {extents:?} overlap");
    }
    let empty = Subject::create(Arc::new(SimDevice::instant())).unwrap();
    let (found, least) = (subject.other_pages(), empty.other_pages());
    assert!(
        found.abs_diff(least) <= 2,
        "{story}: {found} pages have no owner, and {least} at first"
    );
}

#[test]
fn every_cut_leaves_the_old_list_or_the_new_one_whole() {
    sweep::<Subject>(120, || None);
}

#[test]
fn the_same_life_gives_the_same_operations_and_the_same_bytes() {
    live_twice::<Subject>();
}
