//! Both halves of the proxy on loopback, each with its own runtime, between programs and targets of a test.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod caches;
mod common;
mod entrances;
mod limits;
mod link;
mod many;
mod security;
mod stalled;
mod status;
mod streams;
