//! The [registry of nandex](nandex::raw::registry) with the structures of this crate in it, whoever asks first.
//!
//! A harness that names this module in place of nandex's cannot forget to [`register`].

use nandex::raw::registry as below;
pub use nandex::raw::registry::*;

use crate::register;

/// As [`nandex::raw::registry::rows`].
pub fn rows() -> impl Iterator<Item = &'static Row> {
    register();
    below::rows()
}

/// As [`nandex::raw::registry::find`].
#[must_use]
pub fn find(kind: &str) -> Option<&'static Row> {
    register();
    below::find(kind)
}

/// As [`nandex::raw::registry::tables`].
pub fn tables() -> impl Iterator<Item = (&'static Row, &'static TableRow)> {
    register();
    below::tables()
}

/// As [`nandex::raw::registry::filters`].
pub fn filters() -> impl Iterator<Item = (&'static Row, &'static FilterRow)> {
    register();
    below::filters()
}

/// As [`nandex::raw::registry::neighbors`].
pub fn neighbors() -> impl Iterator<Item = (&'static Row, &'static NeighborsRow)> {
    register();
    below::neighbors()
}

/// As [`nandex::raw::registry::grows`].
#[must_use]
pub fn grows(kind: &str) -> bool {
    register();
    below::grows(kind)
}
