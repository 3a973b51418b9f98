//! What tables that grow have in common: an owner of parts, and a thread that prepares growth.
//!
//! A table that grows is a list of tables of one structure, its parts. Each part is crash-safe by itself. The owner
//! has an entry in the catalog with the configuration, and keeps nothing else.

#[cfg(test)]
pub(crate) mod tests;

use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread::{Builder, JoinHandle};

use nandex_store::{Captured, Checkpointed, Lsn, StructureId, Volume};

use crate::{Error, Result};

/// The owner's own part of checkpoints: nothing, since the parts keep everything.
#[derive(Debug)]
pub(crate) struct Root(Volume);

impl Root {
    /// Tells the volume that the table is open, for as long as this is kept.
    pub(crate) fn register(volume: &Volume, id: StructureId) -> Arc<Self> {
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
}

impl Requests {
    /// Asks for a preparation.
    pub(crate) fn prepare(&self) {
        self.request(Request::Prepare);
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.request(Request::Stop);
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

/// Starts the thread that prepares growth, which `requests` of the shared state ask for.
///
/// # Errors
/// The thread cannot start.
pub(crate) fn start_thread<T: Send + Sync + 'static>(
    shared: &Arc<T>,
    requests: fn(&T) -> &Requests,
    prepare: fn(&T),
) -> Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let run = move || {
        while requests(&shared).wait() {
            prepare(&shared);
        }
    };
    Builder::new().name("nandex-grow".into()).spawn(run).map_err(|error| Error::Config {
        field: "flush_threads",
        reason: format!("the thread that prepares growth cannot start: {error}"),
    })
}
