//! The [registry of nandex](nandex::registry) with the structures of this crate in it, whoever asks first.
//!
//! A harness that names this module in place of nandex's cannot forget to [`register`].

use nandex::registry as below;
pub use nandex::registry::*;

use crate::register;

/// As [`nandex::registry::rows`].
pub fn rows() -> impl Iterator<Item = &'static Row> {
    register();
    below::rows()
}

/// As [`nandex::registry::find`].
#[must_use]
pub fn find(kind: &str) -> Option<&'static Row> {
    register();
    below::find(kind)
}

/// As [`nandex::registry::tables`].
pub fn tables() -> impl Iterator<Item = (&'static Row, &'static TableRow)> {
    register();
    below::tables()
}

/// As [`nandex::registry::filters`].
pub fn filters() -> impl Iterator<Item = (&'static Row, &'static FilterRow)> {
    register();
    below::filters()
}

/// As [`nandex::registry::neighbors`].
pub fn neighbors() -> impl Iterator<Item = (&'static Row, &'static NeighborsRow)> {
    register();
    below::neighbors()
}

/// As [`nandex::registry::grows`].
#[must_use]
pub fn grows(kind: &str) -> bool {
    register();
    below::grows(kind)
}
