//! The [registry of nandex](nandex::raw::registry) with the structures of this crate in it, whichever call
//! comes first.
//!
//! A harness that uses this module in place of nandex's cannot forget to [`register`].

use nandex::raw::registry as below;
pub use nandex::raw::registry::*;

use crate::register;

/// Registers, and returns [`nandex::raw::registry::rows`].
pub fn rows() -> impl Iterator<Item = &'static Row> {
    register();
    below::rows()
}

/// Registers, and calls [`nandex::raw::registry::find`].
#[must_use]
pub fn find(kind: &str) -> Option<&'static Row> {
    register();
    below::find(kind)
}

/// Registers, and returns [`nandex::raw::registry::tables`].
pub fn tables() -> impl Iterator<Item = (&'static Row, &'static TableRow)> {
    register();
    below::tables()
}

/// Registers, and returns [`nandex::raw::registry::filters`].
pub fn filters() -> impl Iterator<Item = (&'static Row, &'static FilterRow)> {
    register();
    below::filters()
}

/// Registers, and returns [`nandex::raw::registry::neighbors`].
pub fn neighbors() -> impl Iterator<Item = (&'static Row, &'static NeighborsRow)> {
    register();
    below::neighbors()
}

/// Registers, and calls [`nandex::raw::registry::grows`].
#[must_use]
pub fn grows(kind: &str) -> bool {
    register();
    below::grows(kind)
}
