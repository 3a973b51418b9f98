//! The work of a map on the volume's background threads: it publishes once in a period, and warms up its cache.
//! Independently, so that neither waits for the other, it cleans its value log before puts need the space.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use nandex_store::{Asker, BackgroundWork, Threads};

use super::{Inner, lock};
use crate::Result;
use crate::api::Table;

/// A map's background work, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Background<T: Table> {
    _periods: Arc<Periods<T>>,
    _cleaning: Option<Arc<Cleaning<T>>>,
}

#[derive(Debug)]
struct Periods<T: Table>(Arc<Inner<T>>);

#[derive(Debug)]
struct Cleaning<T: Table>(Arc<Inner<T>>);

impl<T: Table> BackgroundWork for Cleaning<T> {
    fn work(&self) -> bool {
        // The put that needs the space tries again, and reports the failure.
        let _ = self.0.clean_ahead();
        false
    }
}

impl<T: Table> BackgroundWork for Periods<T> {
    fn work(&self) -> bool {
        // A failed device has poisoned the volume, and a full table rejects the next update.
        let _ = self.0.sync_what_is_new();
        self.0.warm_up_if_asked();
        false
    }
}

impl<T: Table + 'static> Background<T> {
    /// Lets the volume's threads work for the map; returns `None` if the calling threads do that work.
    ///
    /// # Errors
    /// No thread can start.
    pub fn start(inner: &Arc<Inner<T>>) -> Result<Option<Self>> {
        let volume = &inner.volume;
        if volume.threads() == Threads::Inline {
            return Ok(None);
        }
        let periods = Arc::new(Periods(Arc::clone(inner)));
        let asker = volume.serve(&periods, 1)?;
        volume.serve_in_periods(&asker)?;
        inner.asker.set(asker).expect("the background serves a map once");
        let cleaning = (!volume.is_read_only()).then(|| Arc::new(Cleaning(Arc::clone(inner))));
        if let Some(cleaning) = &cleaning {
            let asker = volume.serve(cleaning, 1)?;
            inner.cleaning.asker.set(asker).expect("the background serves a map once");
        }
        Ok(Some(Self { _periods: periods, _cleaning: cleaning }))
    }
}

impl<T: Table> Inner<T> {
    /// Publishes the updates since the last period, and makes them durable.
    fn sync_what_is_new(&self) -> Result<()> {
        let noted = lock(&self.updates).noted();
        if self.synced.load(Relaxed) == noted {
            self.batches.rest();
            self.rest_from_cleaning();
            return Ok(());
        }
        self.publish_all()?;
        self.table.sync()?;
        self.synced.fetch_max(noted, Relaxed);
        Ok(())
    }

    /// Ends the background work, and waits for running jobs.
    pub(super) fn end_background(&self) {
        self.is_closing.store(true, SeqCst);
        self.asker.get().into_iter().for_each(Asker::end);
        self.cleaning.asker.get().into_iter().for_each(Asker::end);
    }
}
