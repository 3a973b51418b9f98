//! What tables that grow have in common: an owner of parts, and a thread that prepares growth.
//!
//! A table that grows is a list of tables of one structure, its parts. Each part is crash-safe by itself. The owner
//! has an entry in the catalog with the configuration, and keeps nothing else.

mod owner;
mod table;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread::{Builder, JoinHandle};

use nandex_store::{Captured, Checkpointed, Lsn, StructureId, Volume};

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

/// What the thread that prepares growth has to do.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Request {
    #[default]
    Nothing,
    Prepare,
    Stop,
}

/// Requests to the thread that prepares growth.
#[derive(Default, Debug)]
pub(crate) struct Requests {
    asked: Mutex<Request>,
    changed: Condvar,
    /// Entries on flash in the newest part with which the next preparation is due.
    due_at: AtomicU64,
    /// Was it asked for?
    is_asked: AtomicBool,
}

impl Requests {
    /// Says when the next preparation is due, in entries on flash in the newest part.
    pub(crate) fn due_at(&self, entries: u64) {
        self.due_at.store(entries, Relaxed);
        self.is_asked.store(false, Relaxed);
    }

    /// Asks for a preparation if it is due.
    #[inline]
    fn look_ahead(&self, entries: u64) {
        if entries >= self.due_at.load(Relaxed) && !self.is_asked.swap(true, Relaxed) {
            self.request(Request::Prepare);
        }
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.request(Request::Stop);
    }

    /// Returns whether the thread shall end.
    pub(crate) fn is_stopped(&self) -> bool {
        *self.asked.lock().expect("no holder of the request's lock panics") == Request::Stop
    }

    fn request(&self, request: Request) {
        let mut asked = self.asked.lock().expect("no holder of the request's lock panics");
        if *asked != Request::Stop {
            *asked = request;
        }
        drop(asked);
        self.changed.notify_all();
    }

    /// Waits for a request and takes it; false when the thread shall end.
    fn wait(&self) -> bool {
        let mut asked = self.asked.lock().expect("no holder of the request's lock panics");
        while *asked == Request::Nothing {
            asked = self.changed.wait(asked).expect("no holder of the request's lock panics");
        }
        let is_asked = *asked == Request::Prepare;
        if is_asked {
            *asked = Request::Nothing;
        }
        is_asked
    }
}

/// Starts the thread that prepares growth.
///
/// # Errors
/// The thread cannot start.
fn start_thread<P: Parts>(parts: &Arc<P>) -> Result<JoinHandle<()>> {
    let parts = Arc::clone(parts);
    let run = move || {
        while parts.requests().wait() {
            parts.prepare();
        }
    };
    Builder::new().name("nandex-grow".into()).spawn(run).map_err(|error| Error::Config {
        field: "flush_threads",
        reason: format!("the thread that prepares growth cannot start: {error}"),
    })
}
