//! The `nandex` command.
#![forbid(unsafe_code)]

fn main() {}
