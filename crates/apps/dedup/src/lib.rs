//! Finds the duplicate chunks of real trees.
#![forbid(unsafe_code)]
