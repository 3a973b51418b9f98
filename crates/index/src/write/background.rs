//! Flushing full buffers: by the volume's background threads, or by the updating threads.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use nandex_store::{BackgroundWork, Threads, is_background_thread};

use super::pool::Job;
use super::{Core, Layout, WriteBuffer};
use crate::{Error, Result};

/// The panic guard of a running job. It marks the job as ended even after a panic, and then poisons the volume, so that
/// no thread waits for one that is gone.
struct Running<'i, L: Layout> {
    core: &'i Core<L>,
    is_own: bool,
}

impl<'i, L: Layout> Running<'i, L> {
    fn new(core: &'i Core<L>, job: &Job<L::Job>) -> Self {
        Self { core, is_own: matches!(job, Job::Own(_)) }
    }
}

impl<L: Layout> Drop for Running<'_, L> {
    fn drop(&mut self) {
        let Self { core, is_own } = *self;
        if std::thread::panicking() {
            core.volume.poison().set(&"a background thread of a structure has panicked");
        }
        core.work.done(is_own);
        core.pool.notify();
    }
}

impl<L: Layout> BackgroundWork for Core<L> {
    fn work(&self) -> bool {
        self.do_one_due() && self.work.is_due()
    }

    fn keeps_memory(&self) -> bool {
        true
    }

    fn rest(&self) {
        self.scratches.free_idle();
    }
}

impl<L: Layout> Core<L> {
    /// Runs one job that is due in the background; returns whether there was one.
    fn do_one_due(&self) -> bool {
        let Some(job) = self.work.next_in_background() else { return false };
        let _running = Running::new(self, &job);
        let done = self.run_job(job, &mut self.scratches.lend().scratch);
        // The next update reports a failure that has poisoned the volume.
        if let Err(error) = done
            && !self.volume.poison().is_set()
        {
            self.work.keep_fault(error);
        }
        true
    }

    /// Makes progress for a thread that waits for queued jobs: does all of them if there are no background threads, and
    /// one that is due if the caller is such a thread. Returns whether there was any. The caller holds no lock.
    pub(crate) fn catch_up_or_help(&self) -> Result<bool> {
        if self.options.flush_threads == 0 || !is_background_thread() {
            return self.catch_up_now();
        }
        let has_helped = self.do_one_due();
        // A job that arrived meanwhile was not due because of this one. The caller may not want more of them.
        self.work.ask_if_due();
        Ok(has_helped)
    }

    /// Runs all queued jobs if there are no background threads; returns whether there were any. The caller holds no
    /// lock.
    pub(crate) fn catch_up_now(&self) -> Result<bool> {
        if self.options.flush_threads > 0 || self.volume.is_read_only() {
            return Ok(false);
        }
        let mut is_busy = false;
        while let Some(job) = self.work.next_now() {
            is_busy = true;
            let _running = Running::new(self, &job);
            self.run_job(job, &mut self.scratches.lend().scratch)?;
        }
        Ok(is_busy)
    }

    fn run_job(&self, job: Job<L::Job>, scratch: &mut Option<L::Scratch>) -> Result<()> {
        let result = self.do_job(job, scratch);
        self.moved.store(true, SeqCst);
        result
    }

    fn do_job(&self, job: Job<L::Job>, scratch: &mut Option<L::Scratch>) -> Result<()> {
        match job {
            Job::Flush(index) => self.flush_frozen(index, scratch).inspect_err(|error| {
                if self.policy.retries_flushes && !self.volume.poison().is_set() {
                    self.work.retry(index);
                } else {
                    self.volume.poison().set(error);
                }
            }),
            Job::Own(job) => {
                L::run(self, job, scratch).inspect_err(|error| self.volume.poison().set(error))
            }
        }
    }

    /// Writes the frozen buffers of a partition, oldest first. Only one thread at a time does so.
    pub(super) fn flush_frozen(
        &self,
        index: usize,
        scratch: &mut Option<L::Scratch>,
    ) -> Result<()> {
        let scratch = match scratch {
            Some(scratch) => scratch,
            None => scratch.insert(L::new_scratch(self)?),
        };
        loop {
            let frozen = {
                let mut state = self.partitions[index].write();
                if std::mem::replace(&mut state.flushing, true) {
                    return Ok(());
                }
                state.flushing = !state.frozen.is_empty();
                state.frozen.front().cloned()
            };
            let Some(frozen) = frozen else { break };
            if let Some(cache) = self.lookups.cache.get() {
                frozen.buffer.leave(cache, self.hasher);
            }
            let flushed = self.volume.poison().check().map_err(Error::from);
            let flushed = flushed.and_then(|()| L::flush(self, index, frozen, scratch));
            self.partitions[index].write().flushing = false;
            flushed?;
        }
        if self.work.flushes_waiting() == 0 {
            self.pace.idle();
        }
        Ok(())
    }

    /// Frees the memory that only updates need, once the flushes in progress have ended: no more inserts will follow.
    /// Background threads do so, or the caller if there are none.
    pub(crate) fn retire(&self) {
        self.pool.retire();
        L::retire(self);
        self.scratches.retire();
        // A failure has poisoned the volume; the next update reports it.
        let _ = self.catch_up_now();
    }

    /// Requests a checkpoint from the background, or takes it if neither flushes nor checkpoints have their own thread.
    pub(crate) fn ask_for_checkpoint(&self) -> Result<()> {
        if self.options.flush_threads == 0 || self.volume.threads() == Threads::Inline {
            return Ok(self.volume.checkpoint()?);
        }
        self.volume.request_checkpoint();
        Ok(())
    }

    /// Returns a buffer whose entries are on flash to the pool.
    pub(crate) fn recycle(&self, buffer: Arc<L::Buffer>) {
        // An iteration may still be reading the old buffer.
        self.pool.give(Arc::into_inner(buffer).unwrap_or_else(|| self.layout.new_buffer()));
    }
}
