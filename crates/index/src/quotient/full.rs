//! When a filter is full, and what it says then.

use super::Shape;
use crate::{Error, Result};

/// Is there room for `more` slots beside the `entries` in use, and for one more outlier, where one is to
/// stand beside as many as are given?
///
/// # Errors
/// [`Error::FilterFull`].
pub fn room(shape: &Shape, entries: u64, more: usize, outliers: Option<u64>) -> Result<()> {
    if more > 0 && entries + more as u64 > shape.entries_max() {
        return Err(refuse(
            shape,
            entries,
            format!(
                "and {} are the most; take a filter of more quotients, or grow this one",
                shape.entries_max()
            ),
        ));
    }
    if outliers.is_some_and(|outliers| outliers >= shape.outliers_max()) {
        let reason = format!(
            "and {} counts too great for slots stand beside them, which are the most; take more bits for \
             counts",
            shape.outliers_max()
        );
        return Err(refuse(shape, entries, reason));
    }
    Ok(())
}

/// The error of a filter in whose last clusters there is no slot left.
#[must_use]
pub fn no_slot_behind(shape: &Shape, entries: u64) -> Error {
    let reason = "and none is left behind the fingerprint's own; so many fingerprints of the same \
                  quotients do not come by chance: hash keys with a secret, or grow the filter";
    refuse(shape, entries, reason.into())
}

fn refuse(shape: &Shape, entries: u64, reason: String) -> Error {
    Error::FilterFull { entries, slots: shape.slots(), reason }
}
