//! The thread that puts the buffer on flash, round and round the file.

use std::sync::{Arc, MutexGuard};

use anyhow::{Context, Result};
use nandex_device::{Completion, Device as _, Op, OpKind, PageBuf, PageId, Queue};

use super::layout::REGION_PAGES;
use super::{Demand, STROKE_PAGES, STROKE_REGIONS, STROKES, Shared, Waiting};

/// Sweeps until the filter is closed; a failure is left for those who insert.
pub fn run(shared: &Shared) {
    let result = Sweep::new(shared).and_then(|mut sweep| sweep.run());
    if let Err(error) = result {
        shared.lock().failure = Some(format!("{error:#}"));
    }
    shared.room.notify_all();
}

struct Sweep<'a> {
    shared: &'a Shared,
    queue: Box<dyn Queue>,
    spare: Vec<PageBuf>,
    done: Vec<Completion>,
    /// The stroke that is looked at next.
    next: u64,
}

impl<'a> Sweep<'a> {
    fn new(shared: &'a Shared) -> Result<Self> {
        let queue = shared.device.queue(STROKES)?;
        let spare = (0..STROKES).map(|_| PageBuf::zeroed(STROKE_PAGES)).collect();
        Ok(Self { shared, queue, spare, done: Vec::new(), next: 0 })
    }

    fn run(&mut self) -> Result<()> {
        while self.start_strokes()? {
            self.queue.wait(1, &mut self.done)?;
            let mut done = std::mem::take(&mut self.done);
            for completion in done.drain(..) {
                self.go_on(completion)?;
            }
            self.done = done;
        }
        Ok(())
    }

    /// Starts as many strokes as are wanted and fit, and sleeps while there are none. False: closed.
    fn start_strokes(&mut self) -> Result<bool> {
        let mut waiting = self.shared.lock();
        loop {
            while !self.spare.is_empty() && wanted(&waiting) {
                let Some(stroke) = self.find(&waiting) else { break };
                self.take(&mut waiting, stroke);
                self.shared.room.notify_all();
                let buf = self.spare.pop().context("a buffer was there")?;
                let page = PageId(stroke * STROKE_PAGES as u64);
                self.queue.push(Op { token: stroke, kind: OpKind::Read, page, buf })?;
            }
            if self.queue.in_flight() > 0 {
                return Ok(true);
            }
            if waiting.closed {
                return Ok(false);
            }
            waiting.sleeps = true;
            waiting = self.shared.wait(&self.shared.work, waiting);
        }
    }

    /// The next stroke that something waits for and that is not on its way.
    fn find(&mut self, waiting: &MutexGuard<'_, Waiting>) -> Option<u64> {
        let strokes = self.shared.layout.pages() / STROKE_PAGES as u64;
        for _ in 0..strokes {
            let stroke = self.next;
            self.next = (self.next + 1) % strokes;
            let waits = regions(stroke).any(|region| waiting.pool.waits(region));
            let flies = regions(stroke).any(|region| waiting.flying.contains_key(&region));
            if waits && !flies {
                return Some(stroke);
            }
        }
        None
    }

    fn take(&self, waiting: &mut Waiting, stroke: u64) {
        for region in regions(stroke) {
            let mut entries = Vec::new();
            waiting.pool.drain(region, &mut entries);
            waiting.flying.insert(region, Arc::new(entries));
        }
    }

    /// A stroke that was read gets its bits and is written; one that was written is done with.
    fn go_on(&mut self, completion: Completion) -> Result<()> {
        let Completion { token: stroke, kind, page, mut buf, result } = completion;
        result?;
        if kind == OpKind::Read {
            self.set_bits(stroke, &mut buf);
            return Ok(self.queue.push(Op { token: stroke, kind: OpKind::Write, page, buf })?);
        }
        let mut waiting = self.shared.lock();
        for region in regions(stroke) {
            waiting.flying.remove(&region);
        }
        if waiting.is_empty() {
            self.shared.room.notify_all();
        }
        self.spare.push(buf);
        Ok(())
    }

    fn set_bits(&self, stroke: u64, buf: &mut PageBuf) {
        let layout = self.shared.layout;
        let taken: Vec<_> = {
            let waiting = self.shared.lock();
            regions(stroke).map(|region| waiting.flying.get(&region).cloned()).collect()
        };
        for (number, entries) in taken.into_iter().enumerate() {
            for &entry in entries.iter().flat_map(|entries| entries.iter()) {
                let page = number * REGION_PAGES as usize + layout.page_of(entry);
                layout.set(entry, buf.page_mut(page));
            }
        }
    }
}

/// Is there a reason to start a stroke?
fn wanted(waiting: &Waiting) -> bool {
    !waiting.closed && (waiting.demand == Demand::Everything || waiting.pool.is_low())
}

fn regions(stroke: u64) -> impl Iterator<Item = u32> {
    (stroke * STROKE_REGIONS..(stroke + 1) * STROKE_REGIONS).map(|region| region as u32)
}
