//! The costs of a SliceHash, before it is built (paper, section 5.4), and how to size one.
//!
//! [`paper`] has the paper's formulas, symbol by symbol, with its worked numbers as tests. [`advise`] sizes our own
//! structure, which improves on it: a slice is one page with the entries of its range of hashes from all incarnations,
//! each key once, and it has both cuckoo choices of a key. No incarnation wastes slots that another one lacks, a lookup
//! reads exactly one page, and pages are filled as far as [`chance`](crate::model::chance) allows.

mod advise;
mod full;
pub mod paper;
mod report;
mod several;

#[cfg(test)]
mod tests;

pub use advise::{
    INCARNATIONS_BEST, INCARNATIONS_MAX, INCARNATIONS_MIN, LOSS_MAX, PARTITIONS_MAX,
    SLICE_HEADER_BYTES, SLICES_MAX, advise, advise_with, filter_bytes, slice_entries, slice_mean,
};
pub(crate) use advise::{PARTITION_BYTES, SHARED_RAM_BYTES, buffer_bytes, ram_bytes};
