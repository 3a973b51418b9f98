//! The lookup path: a part's buffers, then one page of each of its levels.
//!
//! A lookup takes the buffers' counts and the list of runs under one lock, and reads without it. It may stop at the
//! first run that contains the key if nothing was ever deleted. A count, or a filter with tombstones, needs the sum of
//! all.

use std::sync::Arc;

use nandex_device::{PageBuf, PageId};
use nandex_store::reads::{LookupStep, NextStep, PageReads, ReadPlace, UserStep};
use nandex_store::run::Run;

use super::Inner;
use super::levels::Levels;
use crate::lookup::{self, KeyLookup, Lookups};
use crate::{Error, Result};

/// The kind of question that a lookup answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum QueryKind {
    /// Whether the count is above 0.
    Presence,
    /// The count.
    Count,
}

/// A lookup that has pages to read.
#[derive(Debug)]
pub(crate) struct RunProbe {
    fingerprint: u64,
    sum: i64,
    /// Whether the first run that contains the fingerprint decides.
    first_decides: bool,
    /// The runs as they were when the buffers were searched; the run being read, and its page.
    levels: Arc<Levels>,
    run: usize,
    page: PageId,
    /// The run's first page.
    start: PageId,
    /// Whether this run is fully read.
    is_read: bool,
}

impl RunProbe {
    fn new(fingerprint: u64, sum: i64, first_decides: bool, levels: Arc<Levels>) -> Self {
        let (run, page, start) = (0, PageId(0), PageId(0));
        Self { fingerprint, sum, first_decides, levels, run, page, start, is_read: false }
    }

    fn run(&self) -> &Run {
        self.levels.readable().nth(self.run).expect("a lookup has a run to read")
    }

    /// Continues with a run, if its answer is needed and the run exists.
    fn go_to(&mut self, run: usize) -> LookupStep<(), i64> {
        let is_decided = self.first_decides && self.sum > 0;
        let next = self.levels.readable().nth(run).filter(|_| !is_decided);
        let Some(to_read) = next else { return LookupStep::Answer(self.sum) };
        (self.page, self.start) = (to_read.page_of(self.fingerprint), to_read.place().extent.start);
        (self.run, self.is_read) = (run, false);
        LookupStep::Read(())
    }
}

/// Lookups with the same question.
struct CascadeLookup<'i> {
    inner: &'i Inner,
    kind: QueryKind,
}

impl KeyLookup for CascadeLookup<'_> {
    /// The key's part, and its fingerprint there.
    type KeyPlace = (usize, u64);

    const GROUP: usize = 256;

    fn lookups(&self) -> &Lookups {
        &self.inner.lookups
    }

    fn locate(&self, key: &[u8]) -> (usize, u64) {
        self.inner.place(key)
    }

    fn prefetch(&self, &(part, fingerprint): &(usize, u64)) {
        self.inner.partitions[part].read().prefetch(|buffer| buffer.prefetch(fingerprint));
    }

    fn search_ram(&self, &(part, fingerprint): &(usize, u64), _key: &[u8]) -> UserStep<Self> {
        let state = self.inner.partitions[part].read();
        let sum = state.buffered(fingerprint)?;
        let first_decides = self.kind == QueryKind::Presence && !state.may_have_tombstones()?;
        if first_decides && sum > 0 {
            return Ok(LookupStep::Answer(sum));
        }
        let levels = Arc::clone(&state.level);
        drop(state);
        let mut probe = RunProbe::new(fingerprint, sum, first_decides, levels);
        Ok(probe.go_to(0).map_read(|()| probe))
    }

    fn is_found(sum: &i64) -> bool {
        *sum > 0
    }
}

impl PageReads for CascadeLookup<'_> {
    type Probe = RunProbe;
    type Answer = i64;
    type Error = Error;

    fn place(&self, probe: &RunProbe, _part: u32) -> ReadPlace {
        ReadPlace::page(probe.page, probe.start)
    }

    fn look(&self, probe: &mut RunProbe, _part: u32, page: &PageBuf) -> Result<()> {
        match probe.run().look(probe.page, page.page(0), probe.fingerprint)? {
            // The page was too small for all its fingerprints.
            LookupStep::Read(next) => probe.page = next,
            LookupStep::Answer(count) => {
                probe.sum = probe.sum.saturating_add(count);
                probe.is_read = true;
            }
        }
        Ok(())
    }

    fn next(&self, probe: &mut RunProbe) -> NextStep<Self> {
        let run = probe.run + 1;
        Ok(if probe.is_read { probe.go_to(run) } else { LookupStep::Read(()) })
    }
}

impl Inner {
    pub(super) fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(lookup::single(&self.lookup(QueryKind::Presence), key)? > 0)
    }

    pub(super) fn count(&self, key: &[u8]) -> Result<u64> {
        lookup::single(&self.lookup(QueryKind::Count), key).map(clamped)
    }

    pub(super) fn contains_many(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        let sums = lookup::batch(&self.lookup(QueryKind::Presence), keys)?;
        Ok(sums.into_iter().map(|sum| sum > 0).collect())
    }

    pub(super) fn count_many(&self, keys: &[&[u8]]) -> Result<Vec<u64>> {
        let sums = lookup::batch(&self.lookup(QueryKind::Count), keys)?;
        Ok(sums.into_iter().map(clamped).collect())
    }

    fn lookup(&self, kind: QueryKind) -> CascadeLookup<'_> {
        CascadeLookup { inner: self, kind }
    }
}

/// Returns a count as a caller sees it: never below 0, unless an absent key was deleted.
pub(super) fn clamped(sum: i64) -> u64 {
    u64::try_from(sum).unwrap_or_default()
}
