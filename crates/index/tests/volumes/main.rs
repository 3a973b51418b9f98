//! Tables on arrays and chips, the offline check, and the format on flash.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod array;
mod check;
mod chip;
mod chip_costs;
mod format;
