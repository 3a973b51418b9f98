//! Many lookups at once over one queue of the device.

use std::collections::VecDeque;

use nandex_device::{Completion, Op, OpKind, PageBuf};

use super::pool::ReadQueue;
use super::runs::Run;
use super::{LookupStep, PageReads, ReadPlace, ReadPool, UserStep};

/// The number of reads that may wait for their channel, for each read that may be in flight.
const WAITING_PER_DEPTH: usize = 8;

/// With one channel, one in this many of the reads in flight may wait: they are started when others have ended, before
/// the pages of those are processed. So the device is not idle meanwhile.
const WAIT_BEHIND_SHARE: usize = 4;

/// One in this many of the reads in flight is awaited together with others. The next reads are started
/// together too: one system call for all of them.
const WAIT_SHARE: usize = 8;

/// One part of a lookup's probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) lookup: u32,
    pub(super) part: u32,
}

impl Request {
    fn token(self) -> u64 {
        u64::from(self.lookup) << 32 | u64::from(self.part)
    }

    fn of_token(token: u64) -> Self {
        Self { lookup: (token >> 32) as u32, part: token as u32 }
    }
}

/// A lookup in progress.
pub(super) struct Pending<P> {
    token: u64,
    probe: P,
    pub(super) reads: usize,
    /// Parts of the probe that are not processed yet.
    parts_left: u32,
    /// Whether a part has failed while others are in flight.
    failed: bool,
    /// Lookups that share its read.
    pub(super) run: Option<Box<Run>>,
}

/// A lookup that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answered<A> {
    /// The token it was started with.
    pub token: u64,
    /// Its answer.
    pub answer: A,
    /// The number of reads that it took. A read that several lookups share is counted for one of them.
    pub reads: usize,
}

/// Lookups in progress over one queue. A lookup that fails has no answer: the call that meets the failure
/// returns it, and the other lookups continue. Dropping it waits for the reads in flight.
pub struct ReadPipeline<'p, U: PageReads> {
    pub(super) pool: &'p ReadPool,
    user: U,
    queue: Option<ReadQueue>,
    pub(super) lookups: Vec<Option<Pending<U::Probe>>>,
    free_lookups: Vec<u32>,
    answered: VecDeque<Answered<U::Answer>>,
    waiting_max: usize,
    /// Lookups that were started.
    pub(super) started: usize,
    /// Reads that are awaited together.
    wait_count: usize,
}

impl<'p, U: PageReads> ReadPipeline<'p, U> {
    pub(super) fn new(pool: &'p ReadPool, user: U) -> Self {
        Self {
            pool,
            user,
            queue: None,
            lookups: Vec::new(),
            free_lookups: Vec::new(),
            answered: VecDeque::new(),
            waiting_max: match pool.has_channels() {
                true => WAITING_PER_DEPTH * pool.depth(),
                false => pool.depth() / WAIT_BEHIND_SHARE,
            },
            started: 0,
            wait_count: (pool.depth() / WAIT_SHARE).max(1),
        }
    }

    /// Looks up all of `keys`, `group` of them at a time: `prepare` prefetches what `ask` will read for all keys of a
    /// group, then `ask` is called for each. Returns each answer with the key's index and the number of reads.
    ///
    /// If the user [sorts](PageReads::SORTS_BATCHES) and there are hundreds of keys or more, the reads that follow once
    /// the device is busy are made in the order of their pages, thousands at a time: a page that several keys need is
    /// read once, and pages next to each other are one read.
    ///
    /// # Errors
    /// A failed read, an error of the user, or of `ask`. Other keys then have no answer.
    pub fn batch<K, N>(
        mut self,
        keys: &[K],
        group: usize,
        prepare: impl Fn(&K) -> N,
        ask: impl Fn(&K, &N) -> UserStep<U>,
        mut answer: impl FnMut(usize, U::Answer, usize),
    ) -> Result<(), U::Error> {
        let mut prepared = Vec::with_capacity(group.min(keys.len()));
        let (sorts, mut held) = (self.sorts(keys.len()), Vec::new());
        for (first, group) in (0..).step_by(group).zip(keys.chunks(group)) {
            prepared.clear();
            prepared.extend(group.iter().map(&prepare));
            for ((index, key), near) in (first..).zip(group).zip(&prepared) {
                match ask(key, near)? {
                    LookupStep::Answer(known) => answer(index, known, 0),
                    LookupStep::Read(probe) if sorts => {
                        self.hold((index as u64, probe), &mut held)?;
                    }
                    LookupStep::Read(probe) => self.start(index as u64, probe)?,
                }
            }
            self.poll()?;
            self.answered.drain(..).for_each(|it| answer(it.token as usize, it.answer, it.reads));
        }
        self.start_sorted(&mut held)?;
        self.finish()?;
        self.answered.drain(..).for_each(|it| answer(it.token as usize, it.answer, it.reads));
        Ok(())
    }

    /// Starts the reads of a lookup; `token` comes back with its answer. Waits for other reads while the
    /// limit of waiting reads is exceeded.
    ///
    /// # Errors
    /// The failure of any lookup in progress.
    pub fn start(&mut self, token: u64, probe: U::Probe) -> Result<(), U::Error> {
        let lookup = self.add(token, probe)?;
        self.begin(lookup)
    }

    /// Adds a lookup, whose reads are not started yet.
    pub(super) fn add(&mut self, token: u64, probe: U::Probe) -> Result<u32, U::Error> {
        if self.queue.is_none() {
            self.queue = Some(self.pool.take_queue()?);
        }
        let lookup = self.free_lookups.pop().unwrap_or_else(|| {
            self.lookups.push(None);
            u32::try_from(self.lookups.len() - 1).expect("fewer than 2^32 lookups are on their way")
        });
        // Unless it has more parts, which is known when they are queued.
        let parts_left = 1;
        let pending = Pending { token, probe, reads: 0, parts_left, failed: false, run: None };
        self.lookups[lookup as usize] = Some(pending);
        self.started += 1;
        Ok(lookup)
    }

    /// Starts the reads of a lookup, or waits until the limit of waiting reads allows it.
    pub(super) fn begin(&mut self, lookup: u32) -> Result<(), U::Error> {
        self.enqueue(lookup);
        self.push_scheduled()?;
        while self.queue().schedule.waiting() > self.waiting_max {
            self.wait_for(self.wait_count)?;
        }
        Ok(())
    }

    /// Adds the answer of a lookup that needs no read.
    pub fn answer(&mut self, token: u64, answer: U::Answer) {
        self.answered.push_back(Answered { token, answer, reads: 0 });
    }

    /// Removes and returns the oldest answer.
    pub fn pop(&mut self) -> Option<Answered<U::Answer>> {
        self.answered.pop_front()
    }

    /// The number of answers that have not been taken.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.answered.len()
    }

    /// The number of lookups that were started and have not ended.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.lookups.len() - self.free_lookups.len()
    }

    /// Processes the reads that have ended, without waiting.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn poll(&mut self) -> Result<(), U::Error> {
        if self.pending() > 0 { self.wait_for(0) } else { Ok(()) }
    }

    /// Waits for at least one read, if any is in flight.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn wait(&mut self) -> Result<(), U::Error> {
        if self.pending() > 0 { self.wait_for(1) } else { Ok(()) }
    }

    /// Waits for all lookups, and returns the queue to the pool until the next one starts.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn finish(&mut self) -> Result<(), U::Error> {
        while self.pending() > 0 {
            self.wait_for(self.wait_count)?;
        }
        self.queue.take().into_iter().for_each(|queue| self.pool.give_queue(queue));
        Ok(())
    }

    /// The user of the lookups.
    pub fn user(&self) -> &U {
        &self.user
    }

    pub(super) fn queue(&mut self) -> &mut ReadQueue {
        self.queue.as_mut().expect("a lookup on its way has a queue")
    }

    /// Queues the parts of a lookup's probe.
    pub(super) fn enqueue(&mut self, lookup: u32) {
        let pending = self.lookups[lookup as usize].as_mut().expect("a lookup on its way");
        pending.parts_left = self.user.parts(&pending.probe);
        let queue = self.queue.as_mut().expect("a lookup on its way has a queue");
        for part in 0..pending.parts_left {
            let channel = self.pool.channel(|| self.user.place(&pending.probe, part));
            queue.schedule.push(channel, Request { lookup, part });
        }
    }

    pub(super) fn place(&self, request: Request) -> ReadPlace {
        let pending = self.lookups[request.lookup as usize].as_ref();
        self.user.place(&pending.expect("a request has its lookup").probe, request.part)
    }

    /// Starts reads while the schedule has some.
    fn push_scheduled(&mut self) -> Result<(), U::Error> {
        while let Some(request) = self.queue().schedule.next() {
            let pending = self.lookups[request.lookup as usize].as_ref();
            let run = pending.and_then(|it| it.run.as_ref()).map(|run| run.place);
            let place = run.unwrap_or_else(|| self.place(request));
            let queue = self.queue();
            let (token, buf) = (request.token(), queue.pages.take(place.pages));
            let pushed = queue.queue.push(Op { token, kind: OpKind::Read, page: place.page, buf });
            if let Err(error) = pushed {
                self.end_read(request);
                self.take_read(request, Err(error))?;
            }
        }
        Ok(())
    }

    /// Waits until `count_min` of the reads have ended, starts others, and processes all that have ended.
    fn wait_for(&mut self, count_min: usize) -> Result<(), U::Error> {
        let queue = self.queue();
        let mut done = std::mem::take(&mut queue.done);
        let waited = queue.queue.wait(count_min, &mut done).map_err(U::Error::from);
        done.iter().for_each(|completion| self.end_read(Request::of_token(completion.token)));
        let mut result = waited.and_then(|()| self.push_scheduled());
        for Completion { token, buf, result: read, .. } in done.drain(..) {
            let taken = self.take_read(Request::of_token(token), read.map(|()| &buf));
            self.queue().pages.give(buf);
            result = result.and(taken);
        }
        self.queue().done = done;
        result.and_then(|()| self.push_scheduled())
    }

    /// Notes that a read is no longer in flight, and that its channel may start the next one.
    fn end_read(&mut self, request: Request) {
        let channel = self.pool.channel(|| self.place(request));
        self.queue().schedule.done(channel);
    }

    /// Processes a part that was read; after the last one of its probe the lookup continues.
    pub(super) fn take_part(
        &mut self,
        request: Request,
        read: nandex_device::Result<&PageBuf>,
    ) -> Result<(), U::Error> {
        let pending = self.lookups[request.lookup as usize].as_mut();
        let pending = pending.expect("a request has its lookup");
        let looked = match read {
            Ok(pages) => self.user.look(&mut pending.probe, request.part, pages),
            Err(error) => Err(error.into()),
        };
        pending.parts_left -= 1;
        pending.failed |= looked.is_err();
        let has_ended = pending.parts_left == 0;
        if has_ended { looked.and(self.go_on(request.lookup)) } else { looked }
    }

    /// Continues a lookup after all parts of its probe were processed: with the answer, or the next read.
    fn go_on(&mut self, lookup: u32) -> Result<(), U::Error> {
        let pending = self.lookups[lookup as usize].as_mut().expect("it was there just now");
        let (token, reads) = (pending.token, pending.reads);
        let step = (!pending.failed).then(|| self.user.next(&mut pending.probe)).transpose();
        if let Ok(Some(LookupStep::Read(()))) = step {
            self.enqueue(lookup);
            return Ok(());
        }
        self.lookups[lookup as usize] = None;
        self.free_lookups.push(lookup);
        if let Some(LookupStep::Answer(answer)) = step? {
            self.answered.push_back(Answered { token, answer, reads });
        }
        Ok(())
    }
}

impl<U: PageReads> Drop for ReadPipeline<'_, U> {
    fn drop(&mut self) {
        let Some(mut queue) = self.queue.take() else { return };
        if self.pending() > 0 {
            // A queue that cannot even wait is useless.
            if queue.end_reads().is_err() {
                return;
            }
            queue.schedule = self.pool.schedule();
        }
        self.pool.give_queue(queue);
    }
}
