//! Whole benchmarks: every workload runs, the report has its keys, mistakes are reported.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod counters;
mod engines;
mod filters;
mod growth;
mod lives;
mod many;
mod neardup;
mod neighbors;
mod scale;
mod steady;
mod tables;
mod values;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs the benchmark with its files in `dir`.
fn bench(dir: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandex-bench"));
    command.arg("--dir").arg(dir).args(arguments.split_whitespace());
    command.output().unwrap()
}

/// Returns the JSON of a benchmark that must succeed.
fn json_in(dir: &Path, arguments: &str) -> Value {
    let output = bench(dir, &format!("--json {arguments}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the error message for refused arguments.
fn refusal(arguments: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let output = bench(dir.path(), arguments);
    assert!(!output.status.success(), "{arguments}");
    String::from_utf8(output.stderr).unwrap()
}
