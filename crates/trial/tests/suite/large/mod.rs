//! Large keys and values against a map: alone, in batches, reopened, cleaned, overwritten, cut and fed
//! nonsense.
mod agreement;
mod bad_input;
mod collisions;
mod contract;
mod cost;
mod faults;
mod format;
mod full;
mod generated;
mod support;

pub use contract::configurations;
pub use support::Setup;
