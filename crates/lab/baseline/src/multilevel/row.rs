//! The multi-level index in the [`registry`](nandex::registry).

use nandex::raw::Row;

use super::Multilevel;

/// The row of the multi-level index.
pub(crate) const ROW: Row = {
    let row = Multilevel::row(
        "multi-level index",
        "A comparison with RHIK: the index of older key-value drives, which reads a page for each of its levels.",
    )
    .baseline();
    #[cfg(feature = "testing")]
    let row = row.tested(super::testing::TESTS, super::testing::DECODERS);
    row
};
