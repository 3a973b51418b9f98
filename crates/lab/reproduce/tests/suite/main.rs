//! The papers' experiments at the smallest scale, a module per paper, and tapes against the drives themselves.
#![forbid(unsafe_code)]

mod bufferhash;
mod cascade;
mod claims;
mod counting;
mod devices;
mod faithful;
mod origins;
mod outcome;
mod rhik;
mod slicehash;
