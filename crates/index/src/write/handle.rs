//! A structure's handle, which saves buffered updates when it is dropped, and ends the background work.
#![expect(private_bounds, reason = "only this crate implements the seams of the engine")]

use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;

use nandex_store::Shutdown;

use super::{Checkpoints, Core};
use crate::Result;

/// An open structure of a volume.
///
/// Lookups and updates are cheap from any number of threads. Dropping it saves buffered updates, so that the next
/// opening finds them, and ends its background work.
#[derive(Debug)]
pub struct Handle<L: Checkpoints> {
    pub(crate) core: Arc<Core<L>>,
    pub(super) closed: bool,
}

impl<L: Checkpoints> Handle<L> {
    /// Returns the RAM that it takes now, in bytes, as its statistics do, without what these count: it takes the lock
    /// of each partition for a moment, whatever the buffers hold.
    #[must_use]
    pub fn ram_bytes(&self) -> u64 {
        self.core.ram_bytes()
    }

    /// Saves buffered updates and ends the background work. Does nothing the second time.
    pub(crate) fn shut_down(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.closed, true) {
            return Ok(());
        }
        let mut saved = self.core.save_buffers();
        self.core.work.stop();
        if saved.is_ok() && self.core.ready.load(Acquire) {
            saved = self.save_the_rest();
        }
        // A checkpoint that still holds the table would keep the volume, and its file, open.
        let core = &self.core;
        let is_whole = || {
            saved.is_ok()
                && core.ready.load(Acquire)
                && !core.volume.poison().is_set()
                && core.is_saved()
        };
        let left = || if is_whole() { Shutdown::Clean } else { Shutdown::NeedsReplay };
        core.volume.deregister(core.id, left);
        saved
    }

    /// Saves what the threads have moved since the last checkpoint, and what speeds up the next opening.
    fn save_the_rest(&self) -> Result<()> {
        let core = &self.core;
        L::closing(core)?;
        if core.is_saved() { Ok(()) } else { Ok(core.volume.checkpoint()?) }
    }
}

impl<L: Checkpoints> Drop for Handle<L> {
    fn drop(&mut self) {
        // This error cannot be returned; updates acknowledged as durable are in the log.
        let _ = self.shut_down();
    }
}
