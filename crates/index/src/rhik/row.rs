//! RHIK in the [`registry`](crate::registry).

use super::Rhik;
use crate::registry::Row;

/// RHIK's row.
pub(crate) const ROW: Row = {
    let row = Rhik::row(
        "RHIK",
        "Entries whose number nobody knows, at most one page read for any key: a directory in RAM, and tables that split.",
    );
    #[cfg(feature = "testing")]
    let row = row.tested(super::testing::TESTS, super::testing::DECODERS);
    row
};
