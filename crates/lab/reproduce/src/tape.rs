//! The requests of each operation of a structure, in order, and the device that records them.
//!
//! A structure without threads does the same whatever the time, so one run is enough for every drive.
//! Requests that it submits before it waits go out together, in one *wave*; the next wave waits for them.
//! That is exact for operations that wait for everything in flight, such as single lookups, inserts and
//! flushes; a batch that refills its queue has to run on a simulated device itself: see [`crate::batch`].

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use nandex::device::{Device, MemoryDevice};
use nandex::raw::device::{Completion, EngineReport, Geometry, Op, OpKind, PageId, Queue, Result};
use nandex_sim::RequestKind;

/// The kind of a table's operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// Looks a key up.
    Lookup,
    /// Puts a key in.
    Insert,
}

/// One request to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Its kind.
    pub kind: RequestKind,
    /// Its first page.
    pub page: u64,
    /// The number of pages; 0 for a sync.
    pub pages: u32,
    /// The wave: steps of an operation with the same number go out together.
    pub wave: u32,
}

impl Step {
    /// Returns the number of the device, if several share the tape, and the page there.
    #[must_use]
    pub const fn place(&self) -> (usize, u64) {
        ((self.page / DEVICE_PAGES) as usize, self.page % DEVICE_PAGES)
    }
}

/// An operation and its place on the tape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Mark {
    act: Act,
    end: usize,
}

/// Operations one after another, each with its requests.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tape {
    steps: Vec<Step>,
    marks: Vec<Mark>,
}

impl Tape {
    /// Returns the number of operations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.marks.len()
    }

    /// Returns whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Returns the kind of an operation, and its requests.
    ///
    /// # Panics
    /// Panics if there is no such operation.
    #[must_use]
    pub fn operation(&self, index: usize) -> (Act, &[Step]) {
        let start = index.checked_sub(1).map_or(0, |before| self.marks[before].end);
        let mark = self.marks[index];
        (mark.act, &self.steps[start..mark.end])
    }

    /// Returns all operations, in order.
    pub fn operations(&self) -> impl Iterator<Item = (Act, &[Step])> {
        (0..self.len()).map(|index| self.operation(index))
    }

    /// Returns the pages that each drive must have for all its requests.
    #[must_use]
    pub fn page_count(&self) -> u64 {
        let ends = self.steps.iter().map(|step| step.place().1 + u64::from(step.pages));
        ends.max().unwrap_or(0)
    }

    /// Adds an operation.
    pub fn push(&mut self, act: Act, steps: &[Step]) {
        self.steps.extend_from_slice(steps);
        self.marks.push(Mark { act, end: self.steps.len() });
    }

    /// Returns the same operations on `devices` devices, each of which has runs of `pages` pages in turn.
    #[must_use]
    pub fn striped(&self, devices: u64, pages: u64) -> Self {
        let mut tape = Self::default();
        for (act, steps) in self.operations() {
            let mut pieces = Vec::new();
            for step in steps {
                let end = step.page + u64::from(step.pages);
                let mut page = step.page;
                while page < end {
                    let (run, within) = (page / pages, page % pages);
                    let count = (pages - within).min(end - page);
                    let place = run / devices * pages + within;
                    let place = run % devices * DEVICE_PAGES + place;
                    pieces.push(Step { page: place, pages: count as u32, ..*step });
                    page += count;
                }
            }
            tape.push(act, &pieces);
        }
        tape
    }

    /// Returns the same operations with only the wanted requests.
    #[must_use]
    pub fn only(&self, wanted: impl Fn(Act, &Step) -> bool) -> Self {
        let mut tape = Self::default();
        for (act, steps) in self.operations() {
            let kept: Vec<Step> = steps.iter().filter(|step| wanted(act, step)).copied().collect();
            tape.push(act, &kept);
        }
        tape
    }
}

/// The pages from the first of a device to the first of the next one on the same tape.
const DEVICE_PAGES: u64 = 1 << 40;

/// A device in memory that records its requests. Clones share everything.
#[derive(Clone, Debug, Default)]
pub struct TapedDevice {
    memory: MemoryDevice,
    noted: Arc<Mutex<Noted>>,
    /// The offset of page numbers on the tape.
    first_page: u64,
}

/// The requests since they were last taken.
#[derive(Debug, Default)]
struct Noted {
    steps: Vec<Step>,
    wave: u32,
    /// Whether a request has gone out in this wave.
    is_open: bool,
    asked_ns: u64,
}

impl Noted {
    fn add(&mut self, kind: RequestKind, page: u64, pages: u64) {
        let pages = u32::try_from(pages).unwrap_or(u32::MAX);
        self.steps.push(Step { kind, page, pages, wave: self.wave });
        self.is_open = true;
    }

    fn end_wave(&mut self) {
        self.wave += u32::from(std::mem::take(&mut self.is_open));
    }

    /// Adds a request that the caller waits for at once.
    fn add_alone(&mut self, kind: RequestKind, page: u64, pages: u64) {
        self.end_wave();
        self.add(kind, page, pages);
        self.end_wave();
    }
}

impl TapedDevice {
    /// Creates an empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns another device on the same tape: the one of a number, where this one has the number 0.
    #[must_use]
    pub fn member(&self, number: u64) -> Self {
        let first_page = number * DEVICE_PAGES;
        Self { memory: MemoryDevice::new(), noted: Arc::clone(&self.noted), first_page }
    }

    /// Puts the requests since the last call on a tape, as one operation.
    pub fn take(&self, act: Act, tape: &mut Tape) {
        let mut noted = self.lock();
        tape.push(act, &noted.steps);
        noted.forget();
    }

    /// Drops the requests since the last call.
    pub fn forget(&self) {
        self.lock().forget();
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().expect("no holder of this lock panics")
    }
}

impl Noted {
    fn forget(&mut self) {
        self.steps.clear();
        (self.wave, self.is_open) = (0, false);
    }
}

impl Device for TapedDevice {
    fn geometry(&self) -> Geometry {
        self.memory.geometry()
    }

    fn page_count(&self) -> u64 {
        self.memory.page_count()
    }

    fn grow(&self, page_count: u64) -> Result<()> {
        self.memory.grow(page_count)
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>> {
        Ok(Box::new(TapedQueue { inner: self.memory.queue(depth)?, device: self.clone() }))
    }

    fn sync(&self) -> Result<()> {
        self.lock().add_alone(RequestKind::Sync, 0, 0);
        self.memory.sync()
    }

    fn discard(&self, pages: Range<PageId>) -> Result<()> {
        let count = pages.end.0 - pages.start.0;
        self.lock().add_alone(RequestKind::Discard, self.first_page + pages.start.0, count);
        self.memory.discard(pages)
    }

    /// A count of calls, since time is not known before the tape is played.
    fn now(&self) -> u64 {
        let mut noted = self.lock();
        noted.asked_ns += 1;
        noted.asked_ns
    }

    fn engine(&self) -> EngineReport {
        self.memory.engine()
    }
}

/// A queue that records its operations.
struct TapedQueue {
    inner: Box<dyn Queue>,
    device: TapedDevice,
}

impl Queue for TapedQueue {
    fn push(&mut self, op: Op) -> Result<()> {
        let kind = match op.kind {
            OpKind::Read => RequestKind::Read,
            OpKind::Write => RequestKind::Write,
        };
        let page = self.device.first_page + op.page.0;
        self.device.lock().add(kind, page, op.buf.pages() as u64);
        self.inner.push(op)
    }

    fn wait(&mut self, count_min: usize, done: &mut Vec<Completion>) -> Result<()> {
        if count_min > 0 {
            self.device.lock().end_wave();
        }
        self.inner.wait(count_min, done)
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn depth(&self) -> usize {
        self.inner.depth()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandex::raw::device::PageBuf;

    #[test]
    fn stripes_are_all_pages_each_on_the_device_whose_turn_it_is() {
        let mut tape = Tape::default();
        tape.push(Act::Insert, &[Step { kind: RequestKind::Write, page: 6, pages: 12, wave: 0 }]);
        let striped = tape.striped(2, 8);
        let places: Vec<_> =
            striped.operation(0).1.iter().map(|step| (step.place(), step.pages)).collect();
        assert_eq!(places, [((0, 6), 2), ((1, 0), 8), ((0, 8), 2)]);
        assert_eq!(tape.striped(1, 8).page_count(), tape.page_count());
    }

    #[test]
    fn what_goes_out_before_a_wait_is_one_wave() -> Result<()> {
        let device = TapedDevice::new();
        device.grow(8)?;
        let mut queue = device.queue(4)?;
        for page in [1, 2] {
            let buf = PageBuf::zeroed(1);
            queue.push(Op { token: page, kind: OpKind::Write, page: PageId(page), buf })?;
        }
        queue.wait(2, &mut Vec::new())?;
        device.sync()?;
        device.read(PageId(2), PageBuf::zeroed(3))?;
        let mut tape = Tape::default();
        device.take(Act::Insert, &mut tape);
        device.take(Act::Lookup, &mut tape);
        let (act, steps) = tape.operation(0);
        assert_eq!(act, Act::Insert);
        let waves: Vec<_> = steps.iter().map(|step| (step.kind, step.pages, step.wave)).collect();
        let expected = [
            (RequestKind::Write, 1, 0),
            (RequestKind::Write, 1, 0),
            (RequestKind::Sync, 0, 1),
            (RequestKind::Read, 3, 2),
        ];
        assert_eq!(waves, expected);
        assert_eq!(tape.operation(1), (Act::Lookup, &[][..]));
        let reads = tape.only(|_, step| step.kind == RequestKind::Read);
        assert_eq!((reads.len(), reads.operation(0).1.len()), (2, 1));
        Ok(())
    }
}
