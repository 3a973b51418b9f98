//! The lookup path: RAM first, then pages, as many at a time as the device takes.
//!
//! A [`Reader`] has one lane to the device and any number of lookups on their way. Keys go in at one
//! end, answers come out at the other in the order in which their pages arrive; single lookups, batches
//! and streams all are made of it. Where the device's channels are known, reads wait in a schedule that
//! spreads them (ANCS'14, section 5.2); elsewhere they are pushed in the order in which they came.

use nandex_device::{Completion, Op, OpKind, PageBuf};
use nandex_store::hash::KeyHash;
use nandex_store::schedule::Schedule;

use super::pool::Lane;
use super::stats::Lookups;
use super::{Asked, Intake, Next, Room, Seen};
use crate::api::Value;
use crate::{Error, Result};

/// Keys of a batch whose places in RAM are fetched together.
const GROUP: usize = 16;

/// Reads that may wait for their channel, for each that may be in flight.
const WAITING_PER_DEPTH: usize = 8;

/// The share of the reads in flight that is waited for together. So as many go out together when they are
/// followed by others: one system call, and in a virtual machine one knock at the host's door, for all.
const BATCH_SHARE: usize = 8;

/// A lookup whose pages are on their way.
struct Pending<R: Room, K> {
    key: K,
    token: u64,
    hash: KeyHash,
    probe: R::Probe,
    reads: usize,
    /// Parts of the probe that have not been seen.
    parts_left: u32,
    /// What a part has told, while others are on their way.
    seen: Option<Seen>,
}

/// One page of a pending lookup.
#[derive(Clone, Copy)]
struct Request {
    lookup: usize,
    part: u32,
    channel: u32,
}

/// Takes answers: the token of a lookup and what it found.
pub(super) trait Answers {
    fn answer(&mut self, token: u64, value: Option<Value>);
}

impl Answers for Vec<Option<Value>> {
    fn answer(&mut self, token: u64, value: Option<Value>) {
        self[usize::try_from(token).expect("tokens of a batch are its indices")] = value;
    }
}

/// Lookups on their way over one lane. After a failure it is dropped, which waits for what is still on
/// its way.
pub(super) struct Reader<'i, R: Room, K> {
    inner: &'i Intake<R>,
    lane: Option<Lane>,
    lookups: Vec<Option<Pending<R, K>>>,
    free_lookups: Vec<usize>,
    schedule: Schedule<Request>,
    flights: Vec<Request>,
    free_flights: Vec<usize>,
    waiting_max: usize,
    /// Reads that are waited for together.
    batch: usize,
    counts: Lookups,
}

impl<R: Room> Intake<R> {
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.check_key(key)?;
        let hash = self.hasher.hash(key);
        let aim = R::aim(self, hash);
        let mut reads = 0;
        let value = loop {
            match R::ask(self, hash, &aim, key)? {
                Asked::Answer(value) => break value,
                Asked::Read(probe) => {
                    if let Some(answer) = self.read_probes(hash, key, probe, &mut reads)? {
                        break answer;
                    }
                }
            }
        };
        self.counters.lookups.count(value.is_some(), reads);
        R::after_lookups(self);
        Ok(value)
    }

    /// Reads probes one after another. Gives nothing when one is gone and RAM must be asked anew.
    fn read_probes(
        &self,
        hash: KeyHash,
        key: &[u8],
        mut probe: R::Probe,
        reads: &mut usize,
    ) -> Result<Option<Option<Value>>> {
        loop {
            let parts = self.room.parts(&probe);
            let seen = if parts == 1 {
                let place = R::place(self, hash, &probe, 0);
                let page = R::device(self).read(place.page, self.lanes.take_page())?;
                let seen = R::look(self, &page, hash, key, &probe, 0);
                self.lanes.give_page(page);
                seen?
            } else {
                self.read_parts(hash, key, &probe, parts)?
            };
            *reads += parts as usize;
            match seen {
                Seen::Live(value) => {
                    R::used(self, hash, key, &value, &probe);
                    return Ok(Some(Some(value)));
                }
                Seen::Tombstone => return Ok(Some(None)),
                Seen::Gone => return Ok(None),
                Seen::Absent => match R::next(self, hash, &probe) {
                    Next::Read(next) => probe = next,
                    Next::Absent => return Ok(Some(None)),
                    Next::AskAgain => return Ok(None),
                },
            }
        }
    }

    /// Reads all parts of a probe at once.
    fn read_parts(&self, hash: KeyHash, key: &[u8], probe: &R::Probe, parts: u32) -> Result<Seen> {
        let mut lane = self.lane()?;
        let mut seen = None;
        let (mut pushed, mut left) = (0, parts);
        while left > 0 {
            while pushed < parts {
                let Some(buf) = lane.pages.pop() else { break };
                let page = R::place(self, hash, probe, pushed).page;
                lane.queue.push(Op { token: pushed.into(), kind: OpKind::Read, page, buf })?;
                pushed += 1;
            }
            lane.queue.wait(1, &mut lane.done)?;
            for completion in lane.done.drain(..) {
                completion.result?;
                let part = u32::try_from(completion.token).expect("a part's number");
                let told = R::look(self, &completion.buf, hash, key, probe, part)?;
                seen = Some(stronger(seen, told));
                lane.pages.push(completion.buf);
                left -= 1;
            }
        }
        self.lanes.give_lane(lane);
        Ok(seen.expect("a probe has at least one part"))
    }

    /// Looks up a batch with up to `read_depth` pages on their way at any time.
    pub(crate) fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        keys.iter().try_for_each(|key| self.check_key(key))?;
        let mut values = vec![None; keys.len()];
        let mut reader = Reader::new(self);
        let mut near = Vec::with_capacity(GROUP);
        for (first, group) in (0u64..).step_by(GROUP).zip(keys.chunks(GROUP)) {
            near.clear();
            near.extend(group.iter().map(|key| self.bring_near(key)));
            for ((token, key), (hash, aim)) in (first..).zip(group).zip(&near) {
                reader.start(*key, token, *hash, aim, &mut values)?;
            }
            reader.poll(&mut values)?;
        }
        reader.finish(&mut values)?;
        Ok(values)
    }

    /// Hashes a key and has its places in RAM fetched while others are asked about.
    pub(super) fn bring_near(&self, key: &[u8]) -> (KeyHash, R::Aim) {
        let hash = self.hasher.hash(key);
        let aim = R::aim(self, hash);
        R::prefetch(self, hash, &aim);
        (hash, aim)
    }

    /// An idle lane, or a new one where none is.
    pub(crate) fn lane(&self) -> Result<Lane> {
        if let Some(idle) = self.lanes.take_lane() {
            return Ok(idle);
        }
        let queue = R::device(self).queue(self.options.read_depth)?;
        let pages = (0..self.options.read_depth).map(|_| PageBuf::zeroed(1)).collect();
        Ok(Lane { queue, pages, done: Vec::with_capacity(self.options.read_depth) })
    }
}

impl<'i, R: Room, K: AsRef<[u8]>> Reader<'i, R, K> {
    pub(super) fn new(inner: &'i Intake<R>) -> Self {
        let depth = inner.options.read_depth;
        let channels = inner.room.channels();
        // In order of arrival nothing is gained by knowing more than the next.
        let waiting_max = if channels.count() > 1 { WAITING_PER_DEPTH * depth } else { 0 };
        Self {
            inner,
            lane: None,
            lookups: Vec::new(),
            free_lookups: Vec::new(),
            schedule: channels.schedule(depth),
            flights: Vec::new(),
            free_flights: Vec::new(),
            waiting_max,
            batch: (depth / BATCH_SHARE).max(1),
            counts: Lookups::default(),
        }
    }

    /// Asks RAM about a key, and where that cannot answer, sets its reads on their way; waits for others
    /// while there are too many.
    pub(super) fn start(
        &mut self,
        key: K,
        token: u64,
        hash: KeyHash,
        aim: &R::Aim,
        answers: &mut impl Answers,
    ) -> Result<()> {
        match R::ask(self.inner, hash, aim, key.as_ref())? {
            Asked::Answer(value) => {
                self.counts.count(value.is_some(), 0);
                answers.answer(token, value);
                Ok(())
            }
            Asked::Read(probe) => {
                self.enqueue(Pending {
                    key,
                    token,
                    hash,
                    probe,
                    reads: 0,
                    parts_left: 0,
                    seen: None,
                });
                self.push_scheduled()?;
                while self.schedule.waiting() > self.waiting_max {
                    self.take_completions(self.batch, answers)?;
                }
                Ok(())
            }
        }
    }

    /// Lookups that were started and not answered.
    pub(super) fn pending(&self) -> usize {
        self.lookups.len() - self.free_lookups.len()
    }

    /// Sets what was pushed since on its way, and takes what has arrived; waits for nothing.
    pub(super) fn poll(&mut self, answers: &mut impl Answers) -> Result<()> {
        if self.pending() > 0 { self.take_completions(0, answers) } else { Ok(()) }
    }

    /// Waits for at least one read.
    pub(super) fn wait(&mut self, answers: &mut impl Answers) -> Result<()> {
        self.take_completions(1, answers)
    }

    /// Waits for all, and gives the lane back.
    pub(super) fn finish(mut self, answers: &mut impl Answers) -> Result<()> {
        while self.pending() > 0 {
            self.take_completions(self.batch, answers)?;
        }
        self.rest();
        Ok(())
    }

    /// Gives the lane back, when nothing is on its way, and counts what was looked up.
    pub(super) fn rest(&mut self) {
        self.lane.take().into_iter().for_each(|lane| self.inner.lanes.give_lane(lane));
        self.inner.counters.lookups.add(&std::mem::take(&mut self.counts));
        R::after_lookups(self.inner);
    }

    fn enqueue(&mut self, mut pending: Pending<R, K>) {
        let parts = self.inner.room.parts(&pending.probe);
        (pending.parts_left, pending.seen) = (parts, None);
        let lookup = self.free_lookups.pop().unwrap_or_else(|| {
            self.lookups.push(None);
            self.lookups.len() - 1
        });
        for part in 0..parts {
            let channel = R::place(self.inner, pending.hash, &pending.probe, part).channel;
            self.schedule.push(channel, Request { lookup, part, channel });
        }
        self.lookups[lookup] = Some(pending);
    }

    /// Pushes reads while the schedule and the lane have room.
    fn push_scheduled(&mut self) -> Result<()> {
        let lane = match &mut self.lane {
            Some(lane) => lane,
            None => self.lane.insert(self.inner.lane()?),
        };
        while let Some(buf) = lane.pages.pop() {
            let Some(request) = self.schedule.next() else {
                lane.pages.push(buf);
                break;
            };
            let pending = self.lookups[request.lookup].as_ref().expect("a request has its lookup");
            let place = R::place(self.inner, pending.hash, &pending.probe, request.part);
            let token = match self.free_flights.pop() {
                Some(token) => {
                    self.flights[token] = request;
                    token
                }
                None => {
                    self.flights.push(request);
                    self.flights.len() - 1
                }
            };
            lane.queue.push(Op {
                token: token as u64,
                kind: OpKind::Read,
                page: place.page,
                buf,
            })?;
        }
        Ok(())
    }

    /// Waits for some of the reads and deals with all that have finished.
    fn take_completions(&mut self, count_min: usize, answers: &mut impl Answers) -> Result<()> {
        let lane = self.lane.as_mut().expect("a lookup on its way has a lane");
        let mut done = std::mem::take(&mut lane.done);
        let mut result = lane.queue.wait(count_min, &mut done).map_err(Error::from);
        for completion in done.drain(..) {
            let step = self.complete(completion, answers);
            result = result.and(step);
        }
        self.lane.as_mut().expect("it is still there").done = done;
        result.and_then(|()| self.push_scheduled())
    }

    fn complete(&mut self, completion: Completion, answers: &mut impl Answers) -> Result<()> {
        let token = usize::try_from(completion.token).expect("tokens are indices");
        let Request { lookup, part, channel } = self.flights[token];
        self.free_flights.push(token);
        self.schedule.done(channel);
        let pending = self.lookups[lookup].as_mut().expect("a completion has its lookup");
        let (hash, key) = (pending.hash, pending.key.as_ref());
        let seen = completion
            .result
            .map_err(Error::from)
            .and_then(|()| R::look(self.inner, &completion.buf, hash, key, &pending.probe, part));
        let lane = self.lane.as_mut().expect("a completion has its lane");
        lane.pages.push(completion.buf);
        pending.reads += 1;
        pending.parts_left -= 1;
        pending.seen = Some(stronger(pending.seen.take(), seen?));
        if pending.parts_left > 0 {
            return Ok(());
        }
        let mut pending = self.lookups[lookup].take().expect("it was there just now");
        self.free_lookups.push(lookup);
        let seen = pending.seen.take().expect("all parts were seen");
        self.settle(pending, seen, answers)
    }

    /// All parts of a probe were seen: an answer, or the way on.
    fn settle(
        &mut self,
        mut pending: Pending<R, K>,
        seen: Seen,
        answers: &mut impl Answers,
    ) -> Result<()> {
        match seen {
            Seen::Live(value) => {
                R::used(self.inner, pending.hash, pending.key.as_ref(), &value, &pending.probe);
                self.answer(&pending, Some(value), answers);
            }
            Seen::Tombstone => self.answer(&pending, None, answers),
            Seen::Gone => return self.ask_again(pending, answers),
            Seen::Absent => match R::next(self.inner, pending.hash, &pending.probe) {
                Next::Read(next) => {
                    pending.probe = next;
                    self.enqueue(pending);
                }
                Next::Absent => self.answer(&pending, None, answers),
                Next::AskAgain => return self.ask_again(pending, answers),
            },
        }
        Ok(())
    }

    fn answer(
        &mut self,
        pending: &Pending<R, K>,
        value: Option<Value>,
        answers: &mut impl Answers,
    ) {
        self.counts.count(value.is_some(), pending.reads);
        answers.answer(pending.token, value);
    }

    /// RAM has changed under a lookup; it starts over.
    fn ask_again(&mut self, mut gone: Pending<R, K>, answers: &mut impl Answers) -> Result<()> {
        let aim = R::aim(self.inner, gone.hash);
        match R::ask(self.inner, gone.hash, &aim, gone.key.as_ref())? {
            Asked::Read(probe) => {
                gone.probe = probe;
                self.enqueue(gone);
            }
            Asked::Answer(value) => self.answer(&gone, value, answers),
        }
        Ok(())
    }
}

/// Of two parts of one probe, what counts: a page that is gone, else the one that knows the key.
fn stronger(one: Option<Seen>, other: Seen) -> Seen {
    match (one, other) {
        (Some(Seen::Gone), _) | (_, Seen::Gone) => Seen::Gone,
        (None | Some(Seen::Absent), other) => other,
        (Some(known), _) => known,
    }
}
