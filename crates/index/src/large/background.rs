//! What a map does on the volume's background threads: it publishes once in a period, and warms its cache up.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use nandex_store::{Asker, BackgroundWork, Threads};

use super::{Inner, lock};
use crate::Result;
use crate::api::Table;

/// A map's background work, for as long as it is kept.
#[derive(Debug)]
pub(super) struct Background<T: Table>(Arc<Inner<T>>);

impl<T: Table> BackgroundWork for Background<T> {
    fn work(&self) -> bool {
        // A failed device has poisoned the volume, and a full table refuses the next update.
        let _ = self.0.sync_what_is_new();
        self.0.warm_up_if_asked();
        false
    }
}

impl<T: Table + 'static> Background<T> {
    /// Has the volume's threads work for the map; `None` where those who call it do.
    ///
    /// # Errors
    /// No thread can start.
    pub fn start(inner: &Arc<Inner<T>>) -> Result<Option<Arc<Self>>> {
        let volume = &inner.volume;
        if volume.threads() == Threads::Inline {
            return Ok(None);
        }
        let background = Arc::new(Self(Arc::clone(inner)));
        let asker = volume.serve(&background, 1)?;
        volume.serve_in_periods(&asker)?;
        let is_first = inner.asker.set(asker).is_ok();
        assert!(is_first, "the background serves a map once");
        Ok(Some(background))
    }
}

impl<T: Table> Inner<T> {
    /// Publishes what came since the last period, and makes it durable.
    fn sync_what_is_new(&self) -> Result<()> {
        let noted = lock(&self.updates).noted();
        if self.synced.load(Relaxed) == noted {
            self.batches.rest();
            return Ok(());
        }
        self.publish_all()?;
        self.table.sync()?;
        self.synced.fetch_max(noted, Relaxed);
        Ok(())
    }

    /// Ends the work in the background, and waits for what runs.
    pub(super) fn end_background(&self) {
        self.is_closing.store(true, SeqCst);
        self.asker.get().into_iter().for_each(Asker::end);
    }
}
