//! The costs of a BufferHash, before it is built (paper, section 6), and how to size one.
//!
//! [`paper`] has the paper's formulas, symbol by symbol, with its worked numbers as tests. [`advise`] sizes our own
//! structure, whose pages, fills and filters differ from the paper's. It searches all parameters and has no closed
//! form.

mod advise;
mod fill;
mod full;
pub mod paper;
mod report;
mod sizing;
mod updates;

#[cfg(test)]
mod tests;

pub use crate::model::{BUFFER_BYTES_MAX, BUFFER_BYTES_MIN, Budget, PAGE_HEADER_BYTES, page_slots};
pub(in crate::bufferhash) use advise::one_super_table;
pub use advise::{CAPACITY_SLACK, INCARNATIONS_MIN, SUPER_TABLES_MAX, advise, advise_with};
pub use fill::BufferFill;
pub(in crate::bufferhash) use report::update as update_note;
pub(in crate::bufferhash) use sizing::{FIXED_RAM_BYTES, REWRITE_SPARE};
pub(in crate::bufferhash) use updates::CleanedRing;
