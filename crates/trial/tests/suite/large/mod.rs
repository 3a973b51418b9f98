//! Large keys and values against a map: alone, in batches, reopened, cleaned, overwritten, cut and fed
//! nonsense.
mod agreement;
mod bad_input;
mod collisions;
mod cost;
mod crash;
mod faults;
mod format;
mod full;
mod generated;
mod support;
