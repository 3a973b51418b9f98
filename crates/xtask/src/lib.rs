//! Keeps the house in order; see `tests/tidy.rs`.
#![forbid(unsafe_code)]
