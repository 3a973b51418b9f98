//! What tables that grow have in common: an owner of parts, and growth that is prepared in the background.
//!
//! A table that grows is a list of tables of one structure, its parts. Each part is crash-safe by itself. The owner
//! has an entry in the catalog with the configuration, and keeps nothing else.

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

/// The part of a table that is full when the next one is made in the background.
const FULL_ENOUGH: (u64, u64) = (7, 8);

/// The entries with which a part of this capacity is nearly full.
pub(crate) fn full_enough(capacity: u64) -> u64 {
    let (part, whole) = FULL_ENOUGH;
    (capacity * part).div_ceil(whole)
}

/// The error of a part whose RAM was refused, or that found no flash: that growth has stopped.
pub(crate) fn refused(error: Error, stopped: impl FnOnce(String) -> Error) -> Error {
    match error {
        Error::TooLittleRam { reason, .. } => stopped(reason),
        error if error.is_no_space() => stopped(error.to_string()),
        error => error,
    }
}

/// The owner's own part of checkpoints: nothing, since the parts keep everything.
#[derive(Debug)]
struct Root(Volume);

impl Root {
    /// Tells the volume that the table is open, for as long as this is kept.
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
    /// Asks for a background thread; not set where there is none.
    asker: OnceLock<Asker>,
    is_stopped: AtomicBool,
    /// Entries on flash in the newest part with which the next preparation is due.
    due_at: AtomicU64,
    /// Was it asked for?
    is_asked: AtomicBool,
    /// How many have it pause.
    pauses: AtomicUsize,
}

/// While it is kept, no preparation begins, and a long one ends soon; the next update after that asks for it again.
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
    /// Says when the next preparation is due, in entries on flash in the newest part.
    pub(crate) fn due_at(&self, entries: u64) {
        self.due_at.store(entries, Relaxed);
        self.is_asked.store(false, Relaxed);
    }

    /// Asks for a preparation if it is due with that many entries.
    #[inline]
    fn look_ahead(&self, entries: u64) {
        if entries >= self.due_at.load(Relaxed) && !self.is_asked.swap(true, Relaxed) {
            self.asker.get().into_iter().for_each(Asker::ask);
        }
    }

    /// Has the preparations pause.
    pub(crate) fn pause(&self) -> Paused<'_> {
        self.pauses.fetch_add(1, SeqCst);
        Paused(self)
    }

    /// Returns whether somebody has the preparations pause.
    pub(crate) fn is_paused(&self) -> bool {
        self.pauses.load(SeqCst) > 0
    }

    /// Ends the preparations, and waits for one that runs.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, SeqCst);
        self.asker.get().into_iter().for_each(Asker::end);
    }

    /// Returns whether preparations shall end.
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

/// Has the volume's background threads prepare growth, for as long as the result is kept.
///
/// # Errors
/// No thread can start.
fn prepare_in_background<P: Parts>(volume: &Volume, parts: &Arc<P>) -> Result<Arc<Preparing<P>>> {
    let preparing = Arc::new(Preparing(Arc::clone(parts)));
    let is_first = parts.requests().asker.set(volume.serve(&preparing, 1)?).is_ok();
    assert!(is_first, "the background serves a table once");
    Ok(preparing)
}
