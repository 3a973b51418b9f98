//! Sizing: the requirements of a table, the prediction of a structure, and the common part of all cost models.
//!
//! A structure's own `model` has its paper's formulas and the search for its parameters. Parts that two models need are
//! here, because structures do not use one another; this folder does not depend on any structure.

mod array;
pub mod chance;
mod costs;
mod filter;
mod load;
#[cfg(test)]
pub(crate) mod measured;
mod neighbors;
mod pages;
mod policy;
pub(crate) mod prediction;
mod presets;
pub(crate) mod requirements;
#[cfg(test)]
mod tests;
pub(crate) mod text;

pub use array::{ArrayDesign, DeviceArray};
pub use costs::{FlashCosts, Linear, Medium};
pub use filter::{FanOut, FilterRequirements, StoredKeys};
pub(crate) use load::SECONDS_PER_YEAR;
pub use load::{Budget, Load, OperationCosts, UpdateCosts};
pub use neighbors::NeighborsRequirements;
pub use pages::{
    BUFFER_BYTES_MAX, BUFFER_BYTES_MIN, PAGE_BYTES, PAGE_HEADER_BYTES, buffer_entries, log_bytes,
    page_slots,
};
pub use policy::Policy;

pub(crate) use prediction::Notes;
pub use prediction::{Parameter, ParameterValue, Prediction};
pub use presets::CostPreset;
pub use requirements::Requirements;
pub(crate) use requirements::{too_little_flash, too_little_ram};
