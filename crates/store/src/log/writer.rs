//! Writing: closed blocks are sealed and passed to the device, in order, several at a time.
//!
//! A thread that needs blocks written writes them, unless another one already does. Then it waits for the blocks, not
//! for the writer. So a commit needs no other thread, and a busy writer starves no caller.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use nandex_device::{Completion, Op, OpKind, Queue};

use super::Lsn;
use super::format::{BlockHeader, low_half, seal};
use super::region::LogRegion;
use super::shared::{LOCKED, Shared};
use super::staging::ClosedBlock;
use crate::Result;
use crate::mutants::{Barrier, is_on};

/// Writes in flight at once; fewer than the region's blocks, so no two of them meet.
const WRITES_MAX: usize = 4;

/// A block that was passed to the device.
struct PendingBlock {
    lsn: u64,
    next: u64,
    done: bool,
}

/// Seals blocks and passes them to the device.
pub(super) struct BlockWriter {
    /// The region that blocks are written to.
    pub region: LogRegion,
    queue: Box<dyn Queue>,
    /// The checksum of the last block.
    pub prev_crc: u32,
    pending: VecDeque<PendingBlock>,
    done: Vec<Completion>,
}

impl BlockWriter {
    /// Creates a writer whose first block follows one with checksum `prev_crc`.
    pub fn new(region: LogRegion, prev_crc: u32) -> Result<Self> {
        let queue = region.device.queue(WRITES_MAX)?;
        Ok(Self { region, queue, prev_crc, pending: VecDeque::new(), done: Vec::new() })
    }

    /// Drops the oldest blocks that are done and returns the place after the last of them.
    fn advance(&mut self) -> Option<u64> {
        let mut written = None;
        let in_order = is_on(Barrier::LogWrittenInOrder);
        let done = |block: &mut PendingBlock| block.done || !in_order;
        while let Some(block) = self.pending.pop_front_if(done) {
            written = Some(block.next);
        }
        written
    }
}

impl Shared {
    /// Writes full blocks as they are closed, until the log stops or a write fails.
    pub fn run_writer(&self) {
        loop {
            let staging = self.staging();
            let idle =
                |staging: &mut super::staging::Staging| !staging.has_closed() && !staging.stop;
            let staging = self.work.wait_while(staging, idle).expect(LOCKED);
            if staging.stop {
                return;
            }
            drop(staging);
            // A failure has poisoned the volume; the callers that wait for the blocks report it.
            if self.write_closed().is_err() {
                return;
            }
        }
    }

    /// Writes the blocks that are closed now.
    pub fn write_closed(&self) -> Result<()> {
        let closed = self.staging().start;
        self.write_until(closed)
    }

    /// Waits until the blocks before `target`, all of which are closed, are written; writes them if no other thread
    /// does.
    pub fn write_until(&self, target: u64) -> Result<()> {
        let mut progress = self.progress();
        loop {
            self.poison.check()?;
            if progress.written >= target {
                return Ok(());
            }
            if progress.draining {
                progress = self.written_moved.wait(progress).expect(LOCKED);
                continue;
            }
            progress.draining = true;
            drop(progress);
            let drained = self.drain();
            progress = self.progress();
            progress.draining = false;
            self.written_moved.notify_all();
            drained?;
        }
    }

    /// Waits until at least one more block is written, unless all before `closed` are.
    pub fn write_some(&self, closed: u64) -> Result<()> {
        let written = self.progress().written;
        self.write_until(closed.min(written + 1))
    }

    /// Writes all blocks that are closed now.
    fn drain(&self) -> Result<()> {
        let mut writer = self.writer.lock().expect(LOCKED);
        let until = self.staging().start;
        self.drain_until(&mut writer, until)
    }

    /// Writes the closed blocks before `until`, and waits for all that were passed to the device.
    pub fn drain_until(&self, writer: &mut BlockWriter, until: u64) -> Result<()> {
        loop {
            self.poison.check()?;
            self.fill(writer, until)?;
            if writer.pending.is_empty() {
                return Ok(());
            }
            self.reap(writer)?;
        }
    }

    fn fill(&self, writer: &mut BlockWriter, until: u64) -> Result<()> {
        while writer.queue.in_flight() < WRITES_MAX {
            let closed = self.staging().take_closed(until);
            let Some(block) = closed else { return Ok(()) };
            self.push(writer, block)?;
        }
        Ok(())
    }

    fn push(&self, writer: &mut BlockWriter, block: ClosedBlock) -> Result<()> {
        let ClosedBlock { lsn, next, payload_bytes, mut buf } = block;
        writer.prev_crc = seal(&mut buf, &self.header(lsn, payload_bytes, writer.prev_crc));
        writer.pending.push_back(PendingBlock { lsn, next, done: false });
        let op = Op { token: lsn, kind: OpKind::Write, page: writer.region.page(lsn), buf };
        self.poison.guard(writer.queue.push(op))
    }

    /// Returns the header of a block that is sealed now.
    pub fn header(&self, lsn: u64, payload_bytes: u32, prev_crc: u32) -> BlockHeader {
        BlockHeader {
            payload_bytes,
            lsn: Lsn(lsn),
            epoch: self.epoch,
            volume_id: self.volume_id,
            prev_crc,
            superblock: self.named_superblock(),
            synced: Lsn(if is_on(Barrier::LogBlockClaimsItsSync) {
                self.synced.load(Ordering::Acquire)
            } else {
                lsn
            }),
        }
    }

    fn named_superblock(&self) -> u32 {
        let durable = self.superblock.load(Ordering::Acquire);
        if is_on(Barrier::BlockNamesSuperblock) { low_half(durable) } else { 0 }
    }

    /// Starts all closed blocks and processes the completions of one wait.
    #[cfg(test)]
    pub fn write_one_completion(&self) {
        let mut writer = self.writer.lock().expect(LOCKED);
        let until = self.staging().start;
        self.fill(&mut writer, until).expect("the device works");
        self.reap(&mut writer).expect("the device works");
    }

    fn reap(&self, writer: &mut BlockWriter) -> Result<()> {
        self.poison.guard(writer.queue.wait(1, &mut writer.done))?;
        for completion in writer.done.drain(..) {
            self.poison.guard(completion.result)?;
            self.bytes_written.fetch_add(completion.buf.len() as u64, Ordering::Relaxed);
            let mut of = writer.pending.iter_mut().filter(|block| block.lsn == completion.token);
            of.next().expect("the device gives back what it was given").done = true;
            self.staging().give_buffer(completion.buf);
        }
        if let Some(written) = writer.advance() {
            self.progress().written = written;
            self.written_moved.notify_all();
        }
        Ok(())
    }
}
