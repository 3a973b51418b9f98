//! The thread that gives documents that wait to the tables.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use nandex::{Error, Result};

use super::Core;

/// How long documents wait, at most. Then the tables have them, which make them durable in a tenth of a second.
const PERIOD: Duration = Duration::from_millis(50);

/// The thread, until it is dropped.
#[derive(Debug)]
pub(super) struct Saver {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default, Debug)]
struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Saver {
    /// Starts it.
    ///
    /// # Errors
    /// A system that refuses another thread.
    pub(super) fn start(core: &Arc<Core>) -> Result<Self> {
        let (core, stop) = (Arc::clone(core), Arc::new(Stop::default()));
        let until = Arc::clone(&stop);
        let work = move || {
            while !until.wait() {
                // A failure stays: the next call that needs the tables tells of it.
                let _ = core.commit();
            }
        };
        let thread = Builder::new().name("nandex-lsh-save".into()).spawn(work);
        let thread = thread.map_err(|error| Error::Config {
            field: "threads",
            reason: format!("the thread that saves documents cannot start: {error}"),
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Stop {
    /// Waits for a period; is it the last?
    fn wait(&self) -> bool {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(stopped, PERIOD, |stopped| !*stopped);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Drop for Saver {
    fn drop(&mut self) {
        *self.stop.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread is a bug, and has printed its own message.
            let _ = thread.join();
        }
    }
}
