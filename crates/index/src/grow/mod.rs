//! The common part of growing tables: an owner of parts, and growth that is prepared in the background.
//!
//! A growing table is a list of tables of one structure, its parts. Each part is crash-safe by itself. The owner has an
//! entry in the catalog with the configuration, and stores nothing else.

mod owner;
mod table;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock, Weak};

use nandex_store::{Asker, BackgroundWork, Captured, Checkpointed, Lsn, StructureId, Volume};

use crate::write::absorb::Pause;
use crate::{Error, Result};

pub(crate) use owner::{GrowingOpening, Newest, Owner, Parts};
pub(crate) use table::GrowingStructure;
pub use table::{Growing, Grows};

/// The fill of the newest part at which the next one is created in the background.
const FULL_ENOUGH: (u64, u64) = (7, 8);

/// Returns the number of entries with which a part of this capacity is nearly full.
pub(crate) fn full_enough(capacity: u64) -> u64 {
    let (part, whole) = FULL_ENOUGH;
    (capacity * part).div_ceil(whole)
}

/// Turns the error of a part that got no RAM or flash into one that says that growth has stopped.
pub(crate) fn refused(error: Error, stopped: impl FnOnce(String) -> Error) -> Error {
    match error {
        Error::TooLittleRam { reason, .. } => stopped(reason),
        error if error.is_no_space() => stopped(error.to_string()),
        error => error,
    }
}

/// The owner's own part of checkpoints: nothing, since the parts save everything.
#[derive(Debug)]
struct Root(Volume);

impl Root {
    /// Registers the table as open with the volume, for as long as the result lives.
    fn register(volume: &Volume, id: StructureId) -> Arc<Self> {
        let root = Arc::new(Self(volume.clone()));
        let weak: Weak<dyn Checkpointed> =
            Arc::downgrade(&(Arc::clone(&root) as Arc<dyn Checkpointed>));
        volume.register(id, weak);
        root
    }
}

impl Checkpointed for Root {
    fn prepare(&self) -> nandex_store::Result<()> {
        Ok(())
    }

    fn capture(&self) -> Captured {
        Captured { state: Vec::new(), tail: self.0.log().next_lsn(), extents: None }
    }

    fn committed(&self) {}

    fn flush_before(&self, _before: Lsn) -> nandex_store::Result<()> {
        Ok(())
    }

    fn run_deferred(&self) -> nandex_store::Result<()> {
        Ok(())
    }
}

/// Requests to the background, which prepares growth.
#[derive(Default, Debug)]
pub(crate) struct Requests {
    /// Requests a background thread; not set if there are none.
    asker: OnceLock<Asker>,
    is_stopped: AtomicBool,
    /// The entries on flash in the newest part at which the next preparation is due.
    due_at: AtomicU64,
    /// Whether it was already requested.
    is_asked: AtomicBool,
    /// The number of pauses in effect.
    pauses: AtomicUsize,
}

/// A guard: while it exists, no preparation begins, and a long one ends soon. The next update after that requests it
/// again.
#[derive(Debug)]
pub(crate) struct Paused<'r>(&'r Requests);

impl Pause for Paused<'_> {}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        if self.0.pauses.fetch_sub(1, SeqCst) == 1 {
            self.0.look_ahead(0);
        }
    }
}

impl Requests {
    /// Sets when the next preparation is due, in entries on flash in the newest part.
    pub(crate) fn due_at(&self, entries: u64) {
        self.due_at.store(entries, Relaxed);
        self.is_asked.store(false, Relaxed);
    }

    /// Requests a preparation if it is due with `entries` entries.
    #[inline]
    fn look_ahead(&self, entries: u64) {
        if entries >= self.due_at.load(Relaxed) && !self.is_asked.swap(true, Relaxed) {
            self.asker.get().into_iter().for_each(Asker::ask);
        }
    }

    /// Pauses the preparations.
    pub(crate) fn pause(&self) -> Paused<'_> {
        self.pauses.fetch_add(1, SeqCst);
        Paused(self)
    }

    /// Returns whether the preparations are paused.
    pub(crate) fn is_paused(&self) -> bool {
        self.pauses.load(SeqCst) > 0
    }

    /// Ends the preparations, and waits for a running one.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, SeqCst);
        self.asker.get().into_iter().for_each(Asker::end);
    }

    /// Returns whether preparations must end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(SeqCst)
    }
}

/// Prepares the growth of a table.
#[derive(Debug)]
struct Preparing<P>(Arc<P>);

impl<P: Parts> BackgroundWork for Preparing<P> {
    fn work(&self) -> bool {
        if !self.0.requests().is_stopped() {
            self.0.prepare();
        }
        false
    }
}

/// Lets the volume's background threads prepare growth, for as long as the result lives.
///
/// # Errors
/// No thread can start.
fn prepare_in_background<P: Parts>(volume: &Volume, parts: &Arc<P>) -> Result<Arc<Preparing<P>>> {
    let preparing = Arc::new(Preparing(Arc::clone(parts)));
    let is_first = parts.requests().asker.set(volume.serve(&preparing, 1)?).is_ok();
    assert!(is_first, "the background serves a table once");
    Ok(preparing)
}
