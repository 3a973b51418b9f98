//! Merging: filters of any sizes are lists in one order, so several become one in a pass over all of them.

use nandex_store::run::{Merge, MergeOptions, Source};

use super::{QuotientFilter, Shape, Slots};
use crate::{Error, Result};

/// One filter of all that several have; see [`QuotientFilter::merged`].
pub(super) fn merged<S: Slots>(shape: Shape, filters: &[&S]) -> Result<S> {
    let size = shape.split().universe().size();
    let sizes = filters.iter().map(|filter| filter.shape().split().universe().size());
    if let Some(other) = sizes.into_iter().find(|other| *other != size) {
        let reason = format!(
            "a filter of {other} fingerprints among filters of {size}; only those of one universe can be merged"
        );
        return Err(Error::Config { field: "universe", reason });
    }
    let sources = filters.iter().map(|filter| Box::new(filter.source()) as Box<dyn Source>);
    S::from_source(shape, &mut Merge::new(sources.collect(), MergeOptions::default()))
}

impl QuotientFilter {
    /// One filter of all that several have, counts of one fingerprint added up. They may be of any sizes; their
    /// universe must be the shape's, since nobody can make longer fingerprints of short ones.
    ///
    /// Cost: one pass over all of them, and nothing is moved.
    ///
    /// # Errors
    /// [`Error::Config`] for filters of another universe, and those of [`from_source`](Self::from_source).
    pub fn merged(shape: Shape, filters: &[&Self]) -> Result<Self> {
        merged(shape, filters)
    }
}
