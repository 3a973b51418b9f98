//! Quotient filters in RAM.

mod build;
mod check;
mod counts;
mod delete;
mod filter;
mod full;
mod insert;
mod iter;
mod merge;
mod outliers;
mod rank;
mod resize;
mod runs;
mod shape;
mod slots;
mod traits;

#[cfg(test)]
mod tests;

pub use counts::Held;
pub use filter::QuotientFilter;
pub use iter::{Batches, Iter};
pub use merge::Merge;
pub use outliers::{Outliers, REPEATS_MAX};
pub use rank::{RankFilter, RankIter, RankSource};
pub use shape::{Counts, Shape};
pub use traits::Slots;

use build::Builder;
