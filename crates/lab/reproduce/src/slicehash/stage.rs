//! Workers on a tape: the work in progress, and the next events.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use nandex::raw::device::PageId;
use nandex::raw::store::schedule::{Schedule, SequentialWrite};
use nandex_sim::{Done, Model};

use super::flights::Flights;
use super::merge::{Merge, Progress};
use super::workers::{Pace, Span, Worked, WorkerModel};
use crate::tape::{Act, Step, Tape};

/// One read of a lookup.
#[derive(Clone, Copy, Debug)]
struct Read {
    operation: usize,
    channel: u32,
    step: Step,
}

/// The purpose of a request in flight.
#[derive(Clone, Copy, Debug)]
enum Flight {
    Read(Read),
    /// An I/O chunk of a merge.
    Merge {
        slot: usize,
        progress: Progress,
    },
    /// The request of an insert that writes the log, a checkpoint or a sync.
    Log {
        operation: usize,
    },
}

/// A lookup that waits for reads: the number of the operation's steps that were requested and have not ended
/// yet.
#[derive(Clone, Copy, Default)]
struct Lookup {
    steps_done: usize,
    left: usize,
}

impl WorkerModel {
    /// Processes a whole tape, from the drives' present on.
    ///
    /// # Panics
    /// Panics if the tape has a drive or a page that does not exist, or requests that no structure makes:
    /// then it is no tape of lookups that read and inserts that rewrite.
    #[must_use]
    pub fn work(self, tape: &Tape, drives: &mut [Box<dyn Model>]) -> Worked {
        let mut stage = Stage::new(self, tape, drives);
        let last = match self.span {
            Span::Middle => tape.len() - self.window.min(tape.len() / 10),
            Span::Whole => tape.len(),
        };
        let from = match self.span {
            Span::Middle => stage.until(tape.len() / 8),
            // Before any work: operations that take no time are finished as soon as they are taken up.
            Span::Whole => stage.mark(),
        };
        let mut to = stage.until(last);
        let rest = stage.come_to_rest();
        if self.span == Span::Whole {
            to = rest;
        }
        let elapsed_ns = (to.now_ns - from.now_ns).max(1) as f64;
        let in_flight = (to.read_ns - from.read_ns) as f64 / elapsed_ns;
        Worked {
            operations_per_s: (to.finished - from.finished) as f64 * 1e9 / elapsed_ns,
            in_flight: in_flight / stage.drive_count() as f64,
        }
    }
}

/// Workers, their tape and their drives.
pub(super) struct Stage<'a> {
    model: WorkerModel,
    tape: &'a Tape,
    drives: &'a mut [Box<dyn Model>],
    now_ns: u64,
    next: usize,
    under_way: usize,
    finished: usize,
    /// The times at which cores are idle again.
    cores: BinaryHeap<Reverse<u64>>,
    /// The operations and the times at which their CPU work ends.
    thinking: BinaryHeap<Reverse<(u64, usize)>>,
    lookups: Vec<Lookup>,
    schedules: Vec<Schedule<Read>>,
    /// Merges in progress, by slot.
    merges: Vec<Option<Merge>>,
    /// The merges that wait for a slot.
    full: VecDeque<Merge>,
    flights: Flights<Flight>,
    /// The reads in flight, summed over time.
    read_ns: u64,
    /// A reused buffer.
    done: Vec<Done>,
}

/// The state of a stage at one time.
pub(super) struct Mark {
    pub now_ns: u64,
    pub finished: usize,
    /// The reads of lookups in flight, summed over time.
    pub read_ns: u64,
}

impl<'a> Stage<'a> {
    /// Creates workers at the beginning of a tape.
    pub fn new(model: WorkerModel, tape: &'a Tape, drives: &'a mut [Box<dyn Model>]) -> Self {
        let now_ns = drives.iter().map(|drive| drive.now_ns()).max().unwrap_or(0);
        let schedule = || model.channels.schedule(model.depth);
        Self {
            model,
            tape,
            now_ns,
            next: 0,
            under_way: 0,
            finished: 0,
            cores: (0..model.cores.max(1)).map(|_| Reverse(now_ns)).collect(),
            thinking: BinaryHeap::new(),
            lookups: vec![Lookup::default(); tape.len()],
            schedules: drives.iter().map(|_| schedule()).collect(),
            merges: (0..model.merges.max(1)).map(|_| None).collect(),
            full: VecDeque::new(),
            flights: Flights::default(),
            read_ns: 0,
            done: Vec::new(),
            drives,
        }
    }

    pub fn drive_count(&self) -> usize {
        self.drives.len()
    }

    /// Continues until `finished` operations have finished.
    pub fn until(&mut self, finished: usize) -> Mark {
        loop {
            self.take_up();
            self.ask_drives();
            if self.finished >= finished {
                break;
            }
            self.tick();
        }
        self.mark()
    }

    fn mark(&self) -> Mark {
        Mark { now_ns: self.now_ns, finished: self.finished, read_ns: self.read_ns }
    }

    /// Completes all work in progress, so that the drives keep no state of these workers.
    pub fn come_to_rest(&mut self) -> Mark {
        let _ = self.until(self.tape.len());
        while !self.flights.is_empty() {
            self.tick();
            self.ask_drives();
        }
        self.mark()
    }

    /// Advances time until an event.
    fn tick(&mut self) {
        let in_flight: usize = self.schedules.iter().map(Schedule::in_flight).sum();
        let start_ns = self.now_ns;
        let mut happened = false;
        while !happened {
            self.now_ns += self.model.tick_ns;
            happened = self.thinking.peek().is_some_and(|it| it.0.0 <= self.now_ns);
            for drive in 0..self.drives.len() {
                happened |= self.land(drive);
            }
        }
        self.read_ns += in_flight as u64 * (self.now_ns - start_ns);
    }

    /// Processes the requests that a drive has ended up to now, if any.
    fn land(&mut self, drive: usize) -> bool {
        let mut all = std::mem::take(&mut self.done);
        self.drives[drive].advance(self.now_ns, &mut all);
        let happened = !all.is_empty();
        for done in all.drain(..) {
            match self.flights.land(done.request.token) {
                Flight::Read(read) => self.read_done(drive, read),
                Flight::Merge { slot, progress } => self.merge_goes_on(slot, progress),
                Flight::Log { operation } => self.log_done(operation),
            }
        }
        self.done = all;
        happened
    }

    /// Takes operations while the window is not full, each with a core's time, and continues those whose time
    /// has passed.
    fn take_up(&mut self) {
        loop {
            while self.can_take() && self.next < self.tape.len() {
                self.think();
            }
            let Some(Reverse((_, operation))) =
                self.thinking.peek().filter(|it| it.0.0 <= self.now_ns).copied()
            else {
                return;
            };
            self.thinking.pop();
            self.ready(operation);
        }
    }

    fn can_take(&self) -> bool {
        let spare = self.model.spare_buffers;
        let is_held_up = spare.is_some_and(|spare| self.buffers_in_use() > spare);
        self.under_way < self.model.window && !is_held_up
    }

    /// Gives the next operation to the core that is idle first.
    fn think(&mut self) {
        let cpu_ns = match self.tape.operation(self.next).0 {
            Act::Lookup => self.model.lookup_cpu_ns,
            Act::Insert => self.model.insert_cpu_ns,
        };
        let Reverse(idle_ns) = self.cores.pop().expect("there is a core");
        let end_ns = idle_ns.max(self.now_ns) + cpu_ns;
        self.cores.push(Reverse(end_ns));
        self.thinking.push(Reverse((end_ns, self.next)));
        self.next += 1;
        self.under_way += 1;
    }

    /// The processor has finished an operation.
    fn ready(&mut self, operation: usize) {
        match self.tape.operation(operation) {
            (_, []) => self.finish(),
            (Act::Lookup, _) => self.read_wave(operation),
            (Act::Insert, _) => self.insert(operation),
        }
    }

    /// Begins the requests of an insert: a merge, and requests for the log.
    fn insert(&mut self, operation: usize) {
        let (_, steps) = self.tape.operation(operation);
        let waits_for_log = steps.iter().any(|step| self.is_for_log(step));
        let chunks: Vec<Step> =
            steps.iter().filter(|step| !self.is_for_log(step)).copied().collect();
        let waits_for_merge = self.model.spare_buffers.is_none() && !chunks.is_empty();
        assert!(!(waits_for_log && waits_for_merge), "an insert waits for its log or its merge");
        if !chunks.is_empty() {
            let merge = Merge::new(&chunks, waits_for_merge).with_chunks(self.model.chunks);
            self.full.push_back(merge);
        }
        if waits_for_log {
            self.log_wave(operation);
        } else if !waits_for_merge {
            self.finish();
        }
    }

    fn is_for_log(&self, step: &Step) -> bool {
        step.pages < self.model.log_pages_below
    }

    /// Makes the next wave of an insert's requests for the log.
    fn log_wave(&mut self, operation: usize) {
        let (_, steps) = self.tape.operation(operation);
        let log: Vec<Step> = steps.iter().filter(|step| self.is_for_log(step)).copied().collect();
        let state = &mut self.lookups[operation];
        let Some(first) = log.get(state.steps_done) else { return self.finish() };
        let wave = log[state.steps_done..].iter().take_while(|step| step.wave == first.wave);
        let wave: Vec<Step> = wave.copied().collect();
        state.steps_done += wave.len();
        state.left += wave.len();
        for step in wave {
            self.submit(step, Flight::Log { operation });
        }
    }

    fn log_done(&mut self, operation: usize) {
        let state = &mut self.lookups[operation];
        state.left -= 1;
        if state.left == 0 {
            self.log_wave(operation);
        }
    }

    fn buffers_in_use(&self) -> usize {
        self.full.len() + self.merges.iter().flatten().count()
    }

    fn finish(&mut self) {
        self.finished += 1;
        self.under_way -= 1;
    }

    /// Puts the next wave of a lookup's reads into the queues of their channels.
    fn read_wave(&mut self, operation: usize) {
        let (_, steps) = self.tape.operation(operation);
        let state = &mut self.lookups[operation];
        let steps = &steps[state.steps_done..];
        let wave = steps.iter().take_while(|step| step.wave == steps[0].wave);
        for step in wave {
            let (drive, page) = step.place();
            let channel = self.model.channels.channel(PageId(page), SequentialWrite::at(PageId(0)));
            self.schedules[drive].push(channel, Read { operation, channel, step: *step });
            state.steps_done += 1;
            state.left += 1;
        }
    }

    fn read_done(&mut self, drive: usize, read: Read) {
        self.schedules[drive].done(read.channel);
        let state = &mut self.lookups[read.operation];
        state.left -= 1;
        if state.left > 0 {
            return;
        }
        if state.steps_done == self.tape.operation(read.operation).1.len() {
            self.finish();
        } else {
            self.read_wave(read.operation);
        }
    }

    /// Starts every request that may start.
    fn ask_drives(&mut self) {
        for drive in 0..self.drives.len() {
            let rests = self.model.pace == Pace::Batches && self.schedules[drive].in_flight() > 0;
            while let Some(read) = (!rests).then(|| self.schedules[drive].next()).flatten() {
                self.submit(read.step, Flight::Read(read));
            }
        }
        for slot in 0..self.merges.len() {
            if self.merges[slot].is_none() {
                self.merges[slot] = self.full.pop_front();
            }
            self.submit_chunks(slot);
        }
    }

    fn submit_chunks(&mut self, slot: usize) {
        while let Some((step, progress)) = self.merges[slot].as_mut().and_then(Merge::next) {
            self.submit(step, Flight::Merge { slot, progress });
        }
    }

    fn merge_goes_on(&mut self, slot: usize, progress: Progress) {
        let merge = self.merges[slot].as_mut().expect("a chunk belongs to a merge");
        merge.done(progress);
        if !merge.is_over() {
            return;
        }
        let waited_for = merge.is_waited_for();
        self.merges[slot] = None;
        if waited_for {
            self.finish();
        }
    }

    fn submit(&mut self, step: Step, flight: Flight) {
        let (drive, page) = step.place();
        let request = self.flights.start(step, page, flight);
        self.drives[drive].submit_at(self.now_ns, request);
    }
}
