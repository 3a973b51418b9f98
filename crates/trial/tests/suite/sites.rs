//! A device that classes what it is asked for: by the part of the run, the sort of operation, and what the
//! pages hold that it is about. Pages tell that themselves, in their headers.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use nandex::device::{
    Completion, Device, EngineReport, Geometry, Op, OpKind, PAGE_BYTES, PageId, Queue, Result,
};
use nandex::store::log::format::BLOCK_MAGIC;
use nandex::store::page::PAGE_MAGIC;
use nandex_sim::FaultOn;

/// The class of an operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Site {
    /// The part of the run.
    pub part: &'static str,
    /// What the operation is about.
    pub about: &'static str,
}

#[derive(Default, Debug)]
struct State {
    part: &'static str,
    /// What each page holds that was ever written.
    pages: HashMap<u64, &'static str>,
    /// What was written last since the last sync.
    unsynced: Option<&'static str>,
    seen: [Vec<Site>; 4],
}

/// Passes everything on, and notes its class.
#[derive(Debug)]
pub struct Sites<D> {
    inner: D,
    state: Arc<Mutex<State>>,
}

impl<D: Device> Sites<D> {
    pub fn new(inner: D) -> Self {
        Self { inner, state: Arc::default() }
    }

    /// The device inside.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// Names the part of the run that begins.
    pub fn begin(&self, part: &'static str) {
        self.lock().part = part;
    }

    /// The classes of all operations of that sort, in order.
    pub fn sites(&self, on: FaultOn) -> Vec<Site> {
        self.lock().seen[on as usize].clone()
    }

    /// The class of the operation of that sort and number, counted from 1.
    pub fn site(&self, on: FaultOn, number: u64) -> Option<Site> {
        self.lock().seen[on as usize].get(usize::try_from(number - 1).unwrap()).copied()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl State {
    fn note(&mut self, on: FaultOn, about: &'static str) {
        let site = Site { part: self.part, about };
        self.seen[on as usize].push(site);
    }

    fn op(&mut self, op: &Op) {
        let pages = op.buf.len() / PAGE_BYTES;
        let about = match op.kind {
            OpKind::Read => self.pages.get(&op.page.0).copied().unwrap_or("blank"),
            OpKind::Write => what_is(op.buf.page(0)),
        };
        let about = match about {
            "data" if pages > 1 => "whole data",
            "slice" if pages > 1 => "whole slice",
            "run" if pages > 1 => "I/O chunk of a run",
            about => about,
        };
        match op.kind {
            OpKind::Read => self.note(FaultOn::Read, about),
            OpKind::Write => {
                self.note(FaultOn::Write, about);
                self.unsynced = Some(about);
                for index in 0..pages {
                    // A block of the log, and of values, has one header for all its pages.
                    let is_block = ["log", "values"].contains(&about);
                    let holds = if is_block { about } else { what_is(op.buf.page(index)) };
                    self.pages.insert(op.page.0 + index as u64, holds);
                }
            }
        }
    }
}

/// What a page's header says that it holds.
fn what_is(page: &[u8]) -> &'static str {
    let word = |at: usize| u32::from_le_bytes(page[at..at + 4].try_into().unwrap());
    match (word(4), word(8) & 0xffff) {
        (BLOCK_MAGIC, _) => "log",
        (PAGE_MAGIC, 1) => "superblock",
        (PAGE_MAGIC, 2) => "checkpoint",
        (PAGE_MAGIC, 3) => "data",
        (PAGE_MAGIC, 4) => "filter",
        (PAGE_MAGIC, 5) => "image",
        (PAGE_MAGIC, 6) => "slice",
        (PAGE_MAGIC, 7) => "values",
        (PAGE_MAGIC, 8) => "run",
        other => panic!("a page of an unknown sort is written: {other:x?}"),
    }
}

impl<D: Device> Device for Sites<D> {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn page_count(&self) -> u64 {
        self.inner.page_count()
    }

    fn grow(&self, page_count: u64) -> Result<()> {
        let about = if self.inner.page_count() == 0 { "empty" } else { "longer" };
        self.lock().note(FaultOn::Grow, about);
        self.inner.grow(page_count)
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>> {
        let inner = self.inner.queue(depth)?;
        Ok(Box::new(SitesQueue { inner, state: Arc::clone(&self.state) }))
    }

    fn sync(&self) -> Result<()> {
        let mut state = self.lock();
        let about = state.unsynced.take().unwrap_or("blank");
        state.note(FaultOn::Sync, about);
        drop(state);
        self.inner.sync()
    }

    fn discard(&self, pages: Range<PageId>) -> Result<()> {
        panic!("nothing in store and index discards yet, so no fault of {pages:?} is planned");
    }

    fn now(&self) -> u64 {
        self.inner.now()
    }

    fn engine(&self) -> EngineReport {
        self.inner.engine()
    }
}

struct SitesQueue {
    inner: Box<dyn Queue>,
    state: Arc<Mutex<State>>,
}

impl Queue for SitesQueue {
    fn push(&mut self, op: Op) -> Result<()> {
        self.state.lock().unwrap().op(&op);
        self.inner.push(op)
    }

    fn wait(&mut self, count_min: usize, done: &mut Vec<Completion>) -> Result<()> {
        self.inner.wait(count_min, done)
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn depth(&self) -> usize {
        self.inner.depth()
    }
}
