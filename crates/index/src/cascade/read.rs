//! The lookup path: a part's buffers, then one page of each of its levels.
//!
//! A lookup takes what the buffers say and the list of runs under one lock, and reads without it. It may stop
//! at the first part that says yes where nothing was deleted anywhere; a count, or a filter with tombstones,
//! takes the sum of all parts.

use std::sync::Arc;

use nandex_device::{Completion, Op, OpKind, PageBuf, PageId};
use nandex_store::run::{Look, Run};
use nandex_store::schedule::{Schedule, SequentialWrite};

use super::Inner;
use super::levels::Levels;
use super::part::State;
use crate::Result;
use crate::intake::pool::Lane;
use crate::intake::stats::Lookups;

/// Keys that are asked of the buffers under one lock.
const GROUP: usize = 256;

/// Lookups that wait for their channel, for each read in flight.
const WAITING_PER_DEPTH: usize = 4;

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
struct Pending {
    index: usize,
    fingerprint: u64,
    sum: i64,
    /// Does the first run that says yes decide?
    first_decides: bool,
    /// The runs as they were when the buffers were asked; which of them comes next, and where.
    levels: Arc<Levels>,
    run: usize,
    page: PageId,
    reads: usize,
}

impl Pending {
    fn run(&self) -> &Run {
        self.levels.readable().nth(self.run).expect("a lookup has a run to read")
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
        let sums = self.look_up_many(keys, Wanted::Presence)?;
        Ok(sums.into_iter().map(|sum| sum > 0).collect())
    }

    pub(super) fn count_many(&self, keys: &[&[u8]]) -> Result<Vec<u64>> {
        let sums = self.look_up_many(keys, Wanted::Count)?;
        Ok(sums.into_iter().map(clamped).collect())
    }

    /// The sum of a key's counts, as far as it is wanted.
    fn look_up(&self, key: &[u8], wanted: Wanted) -> Result<i64> {
        let (part, fingerprint) = self.place(key);
        let (mut sum, levels, first_decides) = {
            let state = self.parts[part].read();
            (state.buffered(fingerprint), Arc::clone(&state.levels), state.first_decides(wanted))
        };
        let mut reads = 0;
        if !(first_decides && sum > 0) {
            for run in levels.readable() {
                sum = sum.saturating_add(self.read_run(run, fingerprint, &mut reads)?);
                if first_decides && sum > 0 {
                    break;
                }
            }
        }
        self.counters.lookups.count(sum > 0, reads);
        Ok(sum)
    }

    /// What one run says: one page, or the next ones where the page was too small for all of its own.
    fn read_run(&self, run: &Run, fingerprint: u64, reads: &mut usize) -> Result<i64> {
        let mut at = run.page_of(fingerprint);
        loop {
            let page = self.device.read(at, self.lanes.take_page())?;
            *reads += 1;
            let look = run.look(at, page.page(0), fingerprint);
            self.lanes.give_page(page);
            match look? {
                Look::Count(count) => return Ok(count),
                Look::Next(next) => at = next,
            }
        }
    }

    fn look_up_many(&self, keys: &[&[u8]], wanted: Wanted) -> Result<Vec<i64>> {
        let mut sums = vec![0; keys.len()];
        let mut batch = Batch::new(self, &mut sums);
        let mut places = Vec::with_capacity(GROUP);
        for (first, group) in (0..).step_by(GROUP).zip(keys.chunks(GROUP)) {
            places.clear();
            places.extend(group.iter().map(|key| self.place(key)));
            for (part, fingerprint) in &places {
                self.parts[*part].read().prefetch(*fingerprint);
            }
            for (index, (part, fingerprint)) in (first..).zip(&places) {
                batch.start(index, *part, *fingerprint, wanted)?;
            }
        }
        batch.finish()?;
        Ok(sums)
    }

    fn lane(&self) -> Result<Lane> {
        if let Some(idle) = self.lanes.take_lane() {
            return Ok(idle);
        }
        let depth = self.options.read_depth;
        let pages = (0..depth).map(|_| PageBuf::zeroed(1)).collect();
        Ok(Lane { queue: self.device.queue(depth)?, pages, done: Vec::with_capacity(depth) })
    }
}

impl State {
    fn first_decides(&self, wanted: Wanted) -> bool {
        wanted == Wanted::Presence && !self.may_have_tombstones()
    }

    fn prefetch(&self, fingerprint: u64) {
        self.buffers().for_each(|buffer| buffer.prefetch(fingerprint));
    }
}

/// Lookups on their way over one lane. Dropped after a failure, it waits for what is still on its way.
struct Batch<'i> {
    inner: &'i Inner,
    sums: &'i mut [i64],
    lane: Option<Lane>,
    schedule: Schedule<usize>,
    pending: Vec<Option<Pending>>,
    free: Vec<usize>,
    waiting_max: usize,
    lookups: Lookups,
}

impl<'i> Batch<'i> {
    fn new(inner: &'i Inner, sums: &'i mut [i64]) -> Self {
        let depth = inner.options.read_depth;
        // In order of arrival nothing is gained by knowing more than the next.
        let waiting_max = if inner.channels.count() > 1 { WAITING_PER_DEPTH * depth } else { 0 };
        Self {
            inner,
            sums,
            lane: None,
            schedule: inner.channels.schedule(depth),
            pending: Vec::new(),
            free: Vec::new(),
            waiting_max,
            lookups: Lookups::default(),
        }
    }

    /// Asks the buffers about key number `index` of the batch, and sets its reads on their way where they do
    /// not answer.
    fn start(&mut self, index: usize, part: usize, fingerprint: u64, wanted: Wanted) -> Result<()> {
        let (sum, levels, first_decides) = {
            let state = self.inner.parts[part].read();
            let first_decides = state.first_decides(wanted);
            (state.buffered(fingerprint), Arc::clone(&state.levels), first_decides)
        };
        let first = levels.readable().next().filter(|_| !(first_decides && sum > 0));
        let Some(page) = first.map(|run| run.page_of(fingerprint)) else {
            self.answer(index, sum, 0);
            return Ok(());
        };
        let (run, reads) = (0, 0);
        self.enqueue(Pending { index, fingerprint, sum, first_decides, levels, run, page, reads });
        self.push_scheduled()?;
        while self.schedule.waiting() > self.waiting_max {
            self.take_completions(self.wait_together())?;
        }
        Ok(())
    }

    fn answer(&mut self, index: usize, sum: i64, reads: usize) {
        self.sums[index] = sum;
        self.lookups.count(sum > 0, reads);
    }

    /// Reads that are waited for together: one system call for all.
    fn wait_together(&self) -> usize {
        (self.inner.options.read_depth / 8).max(1)
    }

    fn enqueue(&mut self, pending: Pending) {
        let channel = self.channel(&pending);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() - 1
        });
        self.pending[slot] = Some(pending);
        self.schedule.push(channel, slot);
    }

    fn channel(&self, pending: &Pending) -> u32 {
        let run = pending.run();
        self.inner.channels.channel(pending.page, SequentialWrite::at(run.place().extent.start))
    }

    /// Pushes reads while the schedule and the lane have room.
    fn push_scheduled(&mut self) -> Result<()> {
        let lane = match &mut self.lane {
            Some(lane) => lane,
            None => self.lane.insert(self.inner.lane()?),
        };
        while let Some(buf) = lane.pages.pop() {
            let Some(slot) = self.schedule.next() else {
                lane.pages.push(buf);
                break;
            };
            let page = self.pending[slot].as_ref().expect("a request has its lookup").page;
            lane.queue.push(Op { token: slot as u64, kind: OpKind::Read, page, buf })?;
        }
        Ok(())
    }

    fn take_completions(&mut self, count_min: usize) -> Result<()> {
        let lane = self.lane.as_mut().expect("a lookup on its way has a lane");
        let mut done = std::mem::take(&mut lane.done);
        let mut result = lane.queue.wait(count_min, &mut done).map_err(crate::Error::from);
        for completion in done.drain(..) {
            result = result.and(self.complete(completion));
        }
        self.lane.as_mut().expect("it is still there").done = done;
        result.and_then(|()| self.push_scheduled())
    }

    /// A page has come: the way on, or an answer.
    fn complete(&mut self, completion: Completion) -> Result<()> {
        let slot = usize::try_from(completion.token).expect("tokens are indices");
        let mut pending = self.pending[slot].take().expect("a completion has its lookup");
        self.free.push(slot);
        self.schedule.done(self.channel(&pending));
        let page = completion.buf.page(0);
        let look = completion
            .result
            .map_err(crate::Error::from)
            .and_then(|()| Ok(pending.run().look(pending.page, page, pending.fingerprint)?));
        self.lane.as_mut().expect("a completion has its lane").pages.push(completion.buf);
        pending.reads += 1;
        match look? {
            Look::Next(next) => pending.page = next,
            Look::Count(count) => {
                pending.sum = pending.sum.saturating_add(count);
                pending.run += 1;
                let is_decided = pending.first_decides && pending.sum > 0;
                let next = pending.levels.readable().nth(pending.run).filter(|_| !is_decided);
                let Some(page) = next.map(|run| run.page_of(pending.fingerprint)) else {
                    self.answer(pending.index, pending.sum, pending.reads);
                    return Ok(());
                };
                pending.page = page;
            }
        }
        self.enqueue(pending);
        Ok(())
    }

    /// Waits for all, gives the lane back, and counts what was looked up.
    fn finish(mut self) -> Result<()> {
        while self.free.len() < self.pending.len() {
            self.take_completions(self.wait_together())?;
        }
        self.lane.take().into_iter().for_each(|lane| self.inner.lanes.give_lane(lane));
        self.inner.counters.lookups.add(&self.lookups);
        Ok(())
    }
}

/// A count is never below 0, but where a key was taken away that was not there.
pub(super) fn clamped(sum: i64) -> u64 {
    u64::try_from(sum).unwrap_or_default()
}
