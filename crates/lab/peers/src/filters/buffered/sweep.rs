//! The thread that flushes the buffer in cycles through the file.

use std::sync::{Arc, MutexGuard};

use anyhow::{Context, Result};
use nandex_device::{Completion, Device as _, Op, OpKind, PageBuf, PageId, Queue};

use super::layout::REGION_PAGES;
use super::{Demand, IO_CHUNK_PAGES, IO_CHUNK_REGIONS, IO_CHUNKS, Shared, Waiting};

/// Sweeps until the filter is closed; inserts report its failure.
pub fn run(shared: &Shared) {
    let result = Sweep::new(shared).and_then(|mut sweep| sweep.run());
    if let Err(error) = result {
        shared.lock().failure = Some(format!("{error:#}"));
    }
    shared.space.notify_all();
}

struct Sweep<'a> {
    shared: &'a Shared,
    queue: Box<dyn Queue>,
    spare: Vec<PageBuf>,
    done: Vec<Completion>,
    /// The next I/O chunk to check.
    next: u64,
}

impl<'a> Sweep<'a> {
    fn new(shared: &'a Shared) -> Result<Self> {
        let queue = shared.device.queue(IO_CHUNKS)?;
        let spare = (0..IO_CHUNKS).map(|_| PageBuf::zeroed(IO_CHUNK_PAGES)).collect();
        Ok(Self { shared, queue, spare, done: Vec::new(), next: 0 })
    }

    fn run(&mut self) -> Result<()> {
        while self.start_io_chunks()? {
            self.queue.wait(1, &mut self.done)?;
            let mut done = std::mem::take(&mut self.done);
            for completion in done.drain(..) {
                self.go_on(completion)?;
            }
            self.done = done;
        }
        Ok(())
    }

    /// Starts all wanted I/O chunks that fit, and sleeps while there are none. Returns false once the filter
    /// is closed.
    fn start_io_chunks(&mut self) -> Result<bool> {
        let mut waiting = self.shared.lock();
        loop {
            while !self.spare.is_empty() && wanted(&waiting) {
                let Some(io_chunk) = self.find(&waiting) else { break };
                self.take(&mut waiting, io_chunk);
                self.shared.space.notify_all();
                let buf = self.spare.pop().context("a buffer was there")?;
                let page = PageId(io_chunk * IO_CHUNK_PAGES as u64);
                self.queue.push(Op { token: io_chunk, kind: OpKind::Read, page, buf })?;
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

    /// Returns the next I/O chunk with waiting updates that is not in flight.
    fn find(&mut self, waiting: &MutexGuard<'_, Waiting>) -> Option<u64> {
        let io_chunks = self.shared.layout.pages() / IO_CHUNK_PAGES as u64;
        for _ in 0..io_chunks {
            let io_chunk = self.next;
            self.next = (self.next + 1) % io_chunks;
            let waits = regions(io_chunk).any(|region| waiting.pool.waits(region));
            let flies = regions(io_chunk).any(|region| waiting.flying.contains_key(&region));
            if waits && !flies {
                return Some(io_chunk);
            }
        }
        None
    }

    fn take(&self, waiting: &mut Waiting, io_chunk: u64) {
        for region in regions(io_chunk) {
            let mut entries = Vec::new();
            waiting.pool.drain(region, &mut entries);
            waiting.flying.insert(region, Arc::new(entries));
        }
    }

    /// Continues an I/O chunk: one that was read gets its bits and is written; one that was written is
    /// finished.
    fn go_on(&mut self, completion: Completion) -> Result<()> {
        let Completion { token: io_chunk, kind, page, mut buf, result } = completion;
        result?;
        if kind == OpKind::Read {
            self.set_bits(io_chunk, &mut buf);
            return Ok(self.queue.push(Op { token: io_chunk, kind: OpKind::Write, page, buf })?);
        }
        let mut waiting = self.shared.lock();
        for region in regions(io_chunk) {
            waiting.flying.remove(&region);
        }
        if waiting.is_empty() {
            self.shared.space.notify_all();
        }
        self.spare.push(buf);
        Ok(())
    }

    fn set_bits(&self, io_chunk: u64, buf: &mut PageBuf) {
        let layout = self.shared.layout;
        let taken: Vec<_> = {
            let waiting = self.shared.lock();
            regions(io_chunk).map(|region| waiting.flying.get(&region).cloned()).collect()
        };
        for (number, entries) in taken.into_iter().enumerate() {
            for &entry in entries.iter().flat_map(|entries| entries.iter()) {
                let page = number * REGION_PAGES as usize + layout.page_of(entry);
                layout.set(entry, buf.page_mut(page));
            }
        }
    }
}

/// Returns whether there is a reason to start an I/O chunk.
fn wanted(waiting: &Waiting) -> bool {
    !waiting.closed && (waiting.demand == Demand::Everything || waiting.pool.is_low())
}

fn regions(io_chunk: u64) -> impl Iterator<Item = u32> {
    (io_chunk * IO_CHUNK_REGIONS..(io_chunk + 1) * IO_CHUNK_REGIONS).map(|region| region as u32)
}
