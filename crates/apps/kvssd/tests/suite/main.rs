//! The drive against its specification: an oracle, every result code, full drives, power cuts, iterators, queues.
#![forbid(unsafe_code)]

mod codes;
mod common;
mod crash;
mod full;
mod iterators;
mod life;
mod loads;
mod model;
mod oracle;
mod queue;
