//! Interrupts set a flag, so that a long command can stop with a whole volume.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};

/// True once the user has asked to stop.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens for interrupts and requests to terminate. The first sets the flag; the second ends the process
    /// at once, which a volume survives like a crash.
    ///
    /// # Errors
    /// A second listener in one process.
    pub fn listen() -> Result<Self> {
        let interrupt = Self::default();
        let flag = Arc::clone(&interrupt.0);
        let act = move || {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(1);
            }
            eprintln!("stopping: what is done is kept (again to stop at once)");
        };
        ctrlc::set_handler(act).context("cannot listen for interrupts")?;
        Ok(interrupt)
    }

    /// Returns whether the user has asked to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the result of work that may have failed because of an interrupt; then the error says what is left
    /// instead.
    ///
    /// # Errors
    /// The error of the work, or that it was stopped.
    pub fn check<T>(&self, result: Result<T>, left: &str) -> Result<T> {
        if result.is_err() && self.is_set() {
            bail!("stopped; {left}");
        }
        result
    }

    /// The flag itself, for a library that reads it.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }
}
