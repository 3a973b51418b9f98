//! Quotient filters in RAM.

mod outliers;
mod shape;

pub use outliers::{Outliers, REPEATS_MAX};
pub use shape::{Counts, Shape};
