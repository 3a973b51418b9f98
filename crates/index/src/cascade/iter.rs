//! All fingerprints in order.

use std::sync::Arc;

use nandex_store::run::{Merge, MergeOptions, Run, Source};

use super::{Entry, Inner};
use crate::Result;

/// The fingerprints of a filter with their counts, in ascending order, as [`Cascade::iter`](super::Cascade::iter)
/// found them.
pub struct Fingerprints {
    merge: Merge<'static>,
    batch: std::vec::IntoIter<Entry>,
    failed: bool,
    /// Their pages are not used again while this is here.
    _runs: Vec<Arc<Run>>,
}

impl Inner {
    pub(super) fn iterate(&self) -> Result<Fingerprints> {
        self.save()?;
        let levels = Arc::clone(&self.read_state().levels);
        let runs: Vec<_> = levels.all().cloned().collect();
        let mut sources: Vec<Box<dyn Source>> = Vec::with_capacity(runs.len());
        for run in &runs {
            sources.push(Box::new(self.reader(run)?));
        }
        let merge = Merge::new(sources, MergeOptions { drop_negative: true });
        Ok(Fingerprints { merge, batch: Vec::new().into_iter(), failed: false, _runs: runs })
    }
}

impl Iterator for Fingerprints {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.batch.next() {
                return Some(Ok(entry));
            }
            if self.failed {
                return None;
            }
            let mut batch = Vec::new();
            match self.merge.next_batch(&mut batch) {
                Ok(true) => self.batch = batch.into_iter(),
                Ok(false) => return None,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error.into()));
                }
            }
        }
    }
}

impl std::fmt::Debug for Fingerprints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fingerprints").finish_non_exhaustive()
    }
}
