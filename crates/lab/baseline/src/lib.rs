//! Structures in addition to those of nandex: a baseline for comparisons, and a made-up one for tests.
//!
//! They are built on [`nandex::raw`], outside the library, so that no user's build has them. Experiments and
//! tests use the [`registry`] of this crate in place of nandex's, or call [`register`] before they open
//! volumes that contain them:
//!
//! ```
//! assert!(nandex::raw::registry::find("multilevel").is_none());
//! nandex_baseline::register();
//! assert!(nandex::raw::registry::find("multilevel").is_some());
//! ```
#![forbid(unsafe_code)]

pub mod clock;
pub mod multilevel;
pub mod registry;
#[cfg(feature = "testing")]
pub mod specimen;

use nandex::raw::Row;

pub use multilevel::Multilevel;

/// The structures of this crate.
pub const ROWS: &[&Row] = &[
    &multilevel::ROW,
    #[cfg(feature = "testing")]
    &specimen::ROW,
];

/// Registers the structures of this crate with nandex, for this process. Once is enough; further calls are
/// harmless.
pub fn register() {
    ROWS.iter().copied().for_each(nandex::raw::registry::add);
}

/// Runs the example of the multi-level index's page.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/lab/multilevel.md")]
pub struct MultilevelPage;
