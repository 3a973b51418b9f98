//! What a BufferHash costs, before it is built (paper, section 6), and how to size one.
//!
//! [`paper`] holds the paper's formulas, symbol by symbol, with its worked numbers as tests. [`Need`] and
//! [`Advice`] size our own structure, whose pages, fills and filters differ from the paper's: by search
//! over all parameters, not by a closed form. [`CostPreset`] holds the devices' costs.

mod advice;
mod advise;
pub mod paper;
mod presets;
mod report;

#[cfg(test)]
mod tests;

pub use advice::Advice;
pub use advise::{
    BUFFER_BYTES_MAX, BUFFER_BYTES_MIN, Budget, CAPACITY_SLACK, FILL, FILL_MEAN, INCARNATIONS_MIN,
    LOG_RECORD_EXTRA_BYTES, Need, PAGE_HEADER_BYTES, SUPER_TABLES_MAX, page_slots,
};
pub use presets::CostPreset;
