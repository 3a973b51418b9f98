//! What the cost models of all rooms have in common: devices, pages, loads, and how numbers are shown.
//!
//! A room's own `model` has its paper's formulas and its advisor. Whatever two of them need stands here,
//! because rooms do not use one another; this folder uses no room.

mod costs;
mod load;
mod pages;
mod presets;
pub(crate) mod text;

pub use costs::{FlashCosts, Linear, Medium};
pub(crate) use load::SECONDS_PER_YEAR;
pub use load::{Budget, Load, OperationCosts};
pub use pages::{BUFFER_BYTES_MAX, BUFFER_BYTES_MIN, PAGE_BYTES, PAGE_HEADER_BYTES, page_slots};
pub(crate) use pages::{check_entries, too_little};
pub use presets::CostPreset;
