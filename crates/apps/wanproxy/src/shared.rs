//! The shared state of all connections of a half.

use std::sync::Arc;

use nandex_wan::Cache;
use nandex_wan::live::LiveOptions;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::buffers::Buffers;
use crate::engine::Engine;
use crate::resolver::Resolver;
use crate::stats::{Snapshot, Stats};
use crate::{Error, Limits};

/// The cache, the engine's threads, and figures.
pub(crate) struct Shared {
    pub(crate) cache: Arc<Cache>,
    pub(crate) engine: Engine,
    pub(crate) resolver: Resolver,
    pub(crate) options: LiveOptions,
    pub(crate) limits: Limits,
    pub(crate) stats: Arc<Stats>,
    pub(crate) buffers: Buffers,
}

impl Shared {
    pub(crate) fn new(cache: Arc<Cache>, options: LiveOptions, limits: Limits) -> Self {
        let engine = Engine::new(limits.engine_threads);
        let (resolver, stats) = (Resolver::new(), Arc::default());
        let buffers = Buffers::new(limits.buffer_bytes);
        Self { cache, engine, resolver, options, limits, stats, buffers }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.stats.snapshot(&self.cache, &self.buffers)
    }

    /// Makes the cache durable at intervals, until it is told to stop.
    pub(crate) async fn keep_synced(&self, mut stop: watch::Receiver<bool>) {
        let mut synced = self.cache.stats().containers_added;
        loop {
            tokio::select! {
                _ = stop.changed() => return,
                () = sleep(self.limits.sync_every) => {}
            }
            let added = self.cache.stats().containers_added;
            if added == synced {
                continue;
            }
            synced = added;
            let cache = Arc::clone(&self.cache);
            // On a separate thread: streams continue while the device syncs.
            match spawn_blocking(move || cache.sync()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => self.stats.note_cache_failure(&error),
                Err(error) => self.stats.note_error(&Error::Engine(error.to_string())),
            }
        }
    }
}
