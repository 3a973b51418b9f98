//! Work that a thread repeats at a steady interval: the sync of a log.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, bail};

/// A thread that works until this is dropped, or until its work fails.
pub struct Ticker {
    /// Dropping it ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Ticker {
    /// Starts the thread, which works first after one interval.
    pub fn start(
        interval: Duration,
        mut work: impl FnMut() -> Result<()> + Send + 'static,
    ) -> Self {
        let (stop, stopped) = channel::<()>();
        let thread = thread::spawn(move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                work()?;
            }
            Ok(())
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }

    /// Fails if its work has failed: nothing after that was made durable.
    ///
    /// # Errors
    /// Fails if the thread has ended.
    pub fn check(&self) -> Result<()> {
        if self.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            bail!("the thread that syncs every 100 ms has failed")
        }
        Ok(())
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(Ok(Err(error))) = self.thread.take().map(JoinHandle::join) {
            eprintln!("the thread that syncs has failed: {error:#}");
        }
    }
}
