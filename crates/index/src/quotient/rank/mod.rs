//! The fast quotient filter, for large buffers: rank and select in place of clusters that are walked.

mod blocks;
mod build;
mod check;
mod filter;
mod find;
mod iter;
mod join;
mod slots;
mod width;

#[cfg(test)]
mod tests;

pub use filter::RankFilter;
pub use iter::{RankIter, RankSource};
