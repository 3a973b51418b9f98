//! The command, as a user calls it.
#![forbid(unsafe_code)]

/// The command.
const PROGRAM: &str = env!("CARGO_BIN_EXE_nandex-lab");

#[allow(dead_code, reason = "some of it is for the tests of `nandex` alone")]
#[path = "../../../../cli/tests/suite/common.rs"]
mod common;
mod kvssd;
mod numbers;
#[allow(dead_code, reason = "some of it is for the tests of `nandex` alone")]
#[path = "../../../../cli/tests/suite/output_files.rs"]
mod output_files;
mod outputs;
mod pages;
mod probe;
mod reproduce;
mod sim;
