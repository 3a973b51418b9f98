//! The engine's threads: work on the cache or zstd runs on some threads that may block, and waits for a free one.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::{Error, Result};

/// Some threads.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    places: Arc<Semaphore>,
}

impl Engine {
    /// Creates an engine that uses at most `threads` threads at a time.
    pub(crate) fn new(threads: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(threads)) }
    }

    /// Runs some work and returns its result. The caller keeps the order.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.map_err(|error| Error::Engine(error.to_string()))?;
        let done = spawn_blocking(move || {
            let result = work();
            drop(place);
            result
        });
        done.await.map_err(|error| Error::Engine(error.to_string()))
    }
}
