//! The value log of a [`LargeTable`](crate::LargeTable) in the [`registry`](crate::registry).

use nandex_store::values;

use crate::registry::{Family, Row};

/// The value log's row.
pub(crate) const ROW: Row = Row {
    kind: values::KIND,
    name: "value log",
    good_for: "Keys and values of any size of a table that refers to them.",
    family: Family::Part,
    check: |checker, contents, entry, _| {
        values::check(checker, contents, entry);
        Ok(())
    },
    #[cfg(feature = "testing")]
    decoders: super::testing::DECODERS,
};
