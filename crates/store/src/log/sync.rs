//! Durability: group commit, and the thread that syncs periodically.
//!
//! One thread at a time syncs for all: it closes the open block, writes it and syncs the device. Threads that arrive
//! meanwhile fill the next block and wait; one of them syncs next.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::shared::{LOCKED, Shared};
use crate::Result;
use crate::mutants::{Barrier, is_on};

impl Shared {
    /// Makes durable what a replay has found: a killed process may have left it only in the kernel's cache.
    pub fn sync_found(&self) -> Result<()> {
        self.poison.check()?;
        if is_on(Barrier::LogSyncsWhatItFound) { self.sync_device() } else { Ok(()) }
    }

    /// Waits until the log is durable up to `wanted`, which was appended already; syncs if no other thread does.
    pub fn sync_until(&self, wanted: u64) -> Result<()> {
        let mut progress = self.progress();
        loop {
            self.poison.check()?;
            if progress.synced >= wanted {
                return Ok(());
            }
            if progress.syncing {
                progress = self.sync_done.wait(progress).expect(LOCKED);
                continue;
            }
            progress.syncing = true;
            drop(progress);
            let synced = self.sync_all();
            progress = self.progress();
            progress.syncing = false;
            self.sync_done.notify_all();
            synced?;
        }
    }

    /// Performs the timer's work if there is no timer: syncs when the period is over, by the device's clock.
    pub fn sync_if_due(&self, period: Duration) -> Result<()> {
        let now_ns = self.device.now();
        let past_ns = now_ns.saturating_sub(self.period_start_ns.load(Ordering::Relaxed));
        if u128::from(past_ns) < period.as_nanos() {
            return self.poison.check();
        }
        self.period_start_ns.store(now_ns, Ordering::Relaxed);
        self.sync_appended()
    }

    /// Makes everything appended before this call durable.
    pub fn sync_appended(&self) -> Result<()> {
        let wanted = self.staging().wanted();
        self.sync_until(wanted)
    }

    /// Closes the open block, writes everything and syncs. The writer may continue with later blocks while
    /// the device syncs.
    fn sync_all(&self) -> Result<()> {
        let closed = self.close_block(&mut self.staging());
        if is_on(Barrier::LogWritesBeforeSync) {
            self.write_until(closed)?;
        }
        // The sync makes durable everything written when it begins, which is at least up to `closed`.
        let mut durable = self.progress().written.max(closed);
        self.sync_device()?;
        if !is_on(Barrier::LogSyncVouchesForItsStart) {
            durable = durable.max(self.progress().written);
        }
        self.progress().synced = durable;
        self.synced.store(durable, Ordering::Release);
        Ok(())
    }

    /// Syncs the device. If the volume was poisoned meanwhile, the sync does not count: the kernel reports a failed
    /// sync to one caller only, and that may have been another one.
    fn sync_device(&self) -> Result<()> {
        if is_on(Barrier::LogSyncsDevice) {
            self.poison.guard(self.device.sync())?;
        }
        self.syncs.fetch_add(1, Ordering::Relaxed);
        if is_on(Barrier::LogSyncAsksForPoison) { self.poison.check() } else { Ok(()) }
    }
}
