//! Who flushes full buffers: threads of the table's own, or those who insert.

use std::sync::Arc;

use nandex_store::Threads;
use nandex_store::buffer::Buffer;

use super::pool::Job;
use super::{Intake, Room};
use crate::Result;

/// A job on its way. Its end is told even when it ends in a panic, which also poisons the volume, so
/// that nobody waits for a thread that is gone.
struct Running<'i, R: Room>(&'i Intake<R>);

impl<R: Room> Drop for Running<'_, R> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.volume.poison().set(&"a background thread of a table has panicked");
        }
        self.0.work.done();
        self.0.pool.notify();
    }
}

impl<R: Room> Intake<R> {
    /// A background thread: does one job after another until the table is closed.
    pub(super) fn work(&self) {
        let mut scratch = None;
        while let Some(job) = self.work.next() {
            // A failure has poisoned the volume; the next update reports it.
            let _ = self.run_job(job, &mut scratch);
        }
    }

    /// Without threads in the background, does all the jobs there are; tells whether there were any.
    /// The caller holds no lock.
    pub(crate) fn catch_up_now(&self) -> Result<bool> {
        if self.options.flush_threads > 0 {
            return Ok(false);
        }
        let mut scratch = None;
        let mut busy = false;
        let mut result = Ok(());
        while let Some(job) = self.work.next_now() {
            scratch = scratch.or_else(|| self.scratches.take());
            // Each job of a poisoned volume refuses at once.
            result = result.and(self.run_job(job, &mut scratch));
            busy = true;
        }
        scratch.into_iter().for_each(|scratch| self.scratches.give(scratch));
        result.map(|()| busy)
    }

    fn run_job(&self, job: Job<R::Job>, scratch: &mut Option<R::Scratch>) -> Result<()> {
        let _running = Running(self);
        let done = match job {
            Job::Flush(index) => self.flush_frozen(index, scratch),
            Job::Own(job) => R::run(self, job, scratch),
        };
        done.inspect_err(|error| self.volume.poison().set(error))
    }

    /// Writes the frozen buffers of a partition, oldest first; one thread at a time does so.
    fn flush_frozen(&self, index: usize, scratch: &mut Option<R::Scratch>) -> Result<()> {
        let scratch = match scratch {
            Some(scratch) => scratch,
            None => scratch.insert(R::new_scratch(self)?),
        };
        loop {
            let frozen = {
                let mut state = self.partitions[index].lock();
                if std::mem::replace(&mut state.flushing, true) {
                    return Ok(());
                }
                state.flushing = !state.frozen.is_empty();
                state.frozen.front().cloned()
            };
            let Some(frozen) = frozen else { return Ok(()) };
            let flushed = self.volume.poison().check().map_err(crate::Error::from);
            let flushed = flushed.and_then(|()| R::flush(self, index, frozen, scratch));
            self.partitions[index].lock().flushing = false;
            flushed?;
        }
    }

    /// Asks the background for a checkpoint, or takes it where the flush or the checkpoints have no
    /// thread of their own.
    pub(crate) fn ask_for_checkpoint(&self) -> Result<()> {
        if self.options.flush_threads == 0 || self.volume.threads() == Threads::Inline {
            return Ok(self.volume.checkpoint()?);
        }
        self.volume.request_checkpoint();
        Ok(())
    }

    /// Gives a buffer whose entries are on flash back to the pool.
    pub(crate) fn recycle(&self, buffer: Arc<Buffer>) {
        let buffer = Arc::into_inner(buffer)
            // An iteration still reads the old one.
            .unwrap_or_else(|| Buffer::new(self.layout, self.shape.buffer_pages as usize));
        self.pool.give(buffer);
    }
}
