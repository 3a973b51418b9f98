//! The mark that a failed write or sync leaves on a volume.
//!
//! After a failed sync the kernel may report success for the next one although the data is gone, so nothing
//! that is written later can be trusted. A thread that sees a failure poisons the volume; a thread checks the
//! mark before it writes.

use std::sync::{Arc, OnceLock};

use crate::mutants::{Barrier, is_on};
use crate::{Error, Result};

/// One volume's mark, shared by everything that writes to it.
#[derive(Debug, Default)]
pub struct Poison {
    cause: OnceLock<String>,
}

impl Poison {
    /// Fails if an earlier write or sync has failed.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn check(&self) -> Result<()> {
        match self.cause.get() {
            None => Ok(()),
            Some(cause) => Err(Error::Poisoned { cause: cause.clone() }),
        }
    }

    /// Passes a write's or sync's result on, and marks the volume if it is a failure.
    ///
    /// # Errors
    /// The failure itself.
    pub fn guard<T, E: Into<Error>>(&self, result: std::result::Result<T, E>) -> Result<T> {
        result.map_err(|error| {
            let error = error.into();
            if is_on(Barrier::FailurePoisons) {
                self.set(&error);
            }
            error
        })
    }

    /// Marks the volume; the first cause stays.
    pub fn set(&self, cause: &impl std::fmt::Display) {
        // A later failure is a consequence of the first; the first is worth reporting.
        let _ = self.cause.set(cause.to_string());
    }

    /// Returns whether a write or sync has failed.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.cause.get().is_some()
    }
}

/// Poisons the volume when the thread that owns it panics, because no other thread continues that thread's work.
#[derive(Debug)]
pub struct PanicGuard {
    poison: Arc<Poison>,
    thread: &'static str,
}

impl PanicGuard {
    /// Creates a guard for a thread of this name, which begins a sentence.
    #[must_use]
    pub fn new(poison: Arc<Poison>, thread: &'static str) -> Self {
        Self { poison, thread }
    }
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.poison.set(&format!("{} panicked", self.thread));
        }
    }
}
