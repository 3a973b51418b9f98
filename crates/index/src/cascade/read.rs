//! The lookup path: a part's buffers, then one page of each of its levels.
//!
//! A lookup takes what the buffers say and the list of runs under one lock, and reads without it. It may stop
//! at the first part that says yes where nothing was deleted anywhere; a count, or a filter with tombstones,
//! takes the sum of all parts.

use std::sync::Arc;

use nandex_device::{PageBuf, PageId};
use nandex_store::reads::{LookupStep, PageReads, ReadPlace};
use nandex_store::run::Run;

use super::Inner;
use super::levels::Levels;
use super::part::State;
use crate::lookup::counts::LookupCounts;
use crate::{Error, Result};

/// Keys whose places in the buffers are fetched together.
const GROUP: usize = 256;

/// What a lookup wants to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wanted {
    /// Whether the count is above 0.
    Presence,
    /// The count.
    Count,
}

/// A lookup that has pages to read.
#[derive(Debug)]
pub(super) struct Probe {
    fingerprint: u64,
    sum: i64,
    /// Does the first run that says yes decide?
    first_decides: bool,
    /// The runs as they were when the buffers were asked; which of them is being read, and which page of it.
    levels: Arc<Levels>,
    run: usize,
    page: PageId,
    /// Has this run said all that it knows?
    is_read: bool,
}

impl Probe {
    fn run(&self) -> &Run {
        self.levels.readable().nth(self.run).expect("a lookup has a run to read")
    }

    /// Goes on to a run, if its answer is wanted and there is one.
    fn read(self, run: usize) -> LookupStep<Self, i64> {
        let is_decided = self.first_decides && self.sum > 0;
        let next = self.levels.readable().nth(run).filter(|_| !is_decided);
        match next.map(|run| run.page_of(self.fingerprint)) {
            Some(page) => LookupStep::Read(Self { run, page, is_read: false, ..self }),
            None => LookupStep::Answer(self.sum),
        }
    }
}

impl PageReads for Inner {
    type Probe = Probe;
    type Answer = i64;
    type Error = Error;

    fn place(&self, probe: &Probe, _part: u32) -> ReadPlace {
        ReadPlace::page(probe.page, probe.run().place().extent.start)
    }

    fn look(&self, probe: &mut Probe, _part: u32, page: &PageBuf) -> Result<()> {
        match probe.run().look(probe.page, page.page(0), probe.fingerprint)? {
            // The page was too small for all that is its own.
            LookupStep::Read(next) => probe.page = next,
            LookupStep::Answer(count) => {
                probe.sum = probe.sum.saturating_add(count);
                probe.is_read = true;
            }
        }
        Ok(())
    }

    fn next(&self, probe: Probe) -> Result<LookupStep<Probe, i64>> {
        let run = probe.run + 1;
        Ok(if probe.is_read { probe.read(run) } else { LookupStep::Read(probe) })
    }
}

impl Inner {
    pub(super) fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.look_up(key, Wanted::Presence)? > 0)
    }

    pub(super) fn count(&self, key: &[u8]) -> Result<u64> {
        self.look_up(key, Wanted::Count).map(clamped)
    }

    pub(super) fn contains_many(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        self.look_up_many(keys, Wanted::Presence, |sum| sum > 0)
    }

    pub(super) fn count_many(&self, keys: &[&[u8]]) -> Result<Vec<u64>> {
        self.look_up_many(keys, Wanted::Count, clamped)
    }

    /// The sum of a key's counts, as far as it is wanted.
    fn look_up(&self, key: &[u8], wanted: Wanted) -> Result<i64> {
        let (part, fingerprint) = self.place(key);
        let (sum, reads) = match self.ask(part, fingerprint, wanted) {
            LookupStep::Answer(sum) => (sum, 0),
            LookupStep::Read(probe) => self.reads.look_up(self, probe)?,
        };
        self.counters.lookups.count(sum > 0, reads);
        Ok(sum)
    }

    fn look_up_many<A: Clone + Default>(
        &self,
        keys: &[&[u8]],
        wanted: Wanted,
        told: impl Fn(i64) -> A,
    ) -> Result<Vec<A>> {
        let mut answers = vec![A::default(); keys.len()];
        let mut counts = LookupCounts::default();
        self.reads.pipeline(self).batch(
            keys,
            GROUP,
            |key| {
                let (part, fingerprint) = self.place(key);
                self.parts[part].read().prefetch(fingerprint);
                (part, fingerprint)
            },
            |_, (part, fingerprint)| Ok(self.ask(part, fingerprint, wanted)),
            |index, sum, reads| {
                counts.count(sum > 0, reads);
                answers[index] = told(sum);
            },
        )?;
        self.counters.lookups.add(&counts);
        Ok(answers)
    }

    /// What the buffers know of a fingerprint, and which runs to read where that is not enough.
    fn ask(&self, part: usize, fingerprint: u64, wanted: Wanted) -> LookupStep<Probe, i64> {
        let state = self.parts[part].read();
        let sum = state.buffered(fingerprint);
        let first_decides = wanted == Wanted::Presence && !state.may_have_tombstones();
        if first_decides && sum > 0 {
            return LookupStep::Answer(sum);
        }
        let levels = Arc::clone(&state.levels);
        drop(state);
        let (run, page, is_read) = (0, PageId(0), false);
        Probe { fingerprint, sum, first_decides, levels, run, page, is_read }.read(0)
    }
}

impl State {
    fn prefetch(&self, fingerprint: u64) {
        self.buffers().for_each(|buffer| buffer.prefetch(fingerprint));
    }
}

/// A count is never below 0, but where a key was taken away that was not there.
pub(super) fn clamped(sum: i64) -> u64 {
    u64::try_from(sum).unwrap_or_default()
}
