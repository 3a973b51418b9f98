//! What both variants ask of an update: is there room for it, and does it come in order?

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

/// Are as many slots in use, or as many outliers there, as may be?
#[must_use]
pub const fn is_full(shape: &Shape, entries: u64, outliers: usize) -> bool {
    entries >= shape.entries_max() || outliers as u64 >= shape.outliers_max()
}

/// Does a fingerprint of a source come behind the last one, and is it of the shape's universe?
///
/// # Errors
/// [`Error::Config`].
#[inline(always)]
pub fn in_order(shape: &Shape, last: Option<u64>, fingerprint: u64) -> Result<()> {
    let size = shape.split().universe().size();
    if last < Some(fingerprint) && fingerprint < size {
        return Ok(());
    }
    Err(disorder(last, fingerprint, size))
}

#[cold]
fn disorder(last: Option<u64>, fingerprint: u64, size: u64) -> Error {
    let reason = match last {
        Some(last) if fingerprint <= last => {
            format!("fingerprint {fingerprint} behind {last}; they must come in ascending order")
        }
        _ => format!(
            "fingerprint {fingerprint} of a universe of {size}; filters are merged with others of the same \
             universe only"
        ),
    };
    Error::Config { field: "source", reason }
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
