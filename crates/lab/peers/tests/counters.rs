//! Tests that each counter counts the same stream, and reports its configuration.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn counters(dir: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandex-peers-counters"));
    command.args(["--scratch", "1MiB", "--limit-seconds", "0", "--ram", "32MiB", "--runs", "2"]);
    command.args(["--keys", "50k", "--batch", "512", "--json", "--dir"]).arg(dir);
    command.args(arguments.split_whitespace());
    command.output().unwrap()
}

fn reports(dir: &Path, arguments: &str) -> Vec<Value> {
    let output = counters(dir, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn median(report: &Value, figure: &str) -> f64 {
    report["cases"][0]["spread"][figure]["median"].as_f64().unwrap()
}

#[test]
fn all_counters_count_the_same_stream_exactly_in_interleaved_rounds() {
    let dir = tempfile::tempdir().unwrap();
    for law in ["", "--zipf 0.99", "--durability never --threads 2", "--durability always --ops 5k"]
    {
        let reports = reports(dir.path(), &format!("--all --workload count-add {law}"));
        assert!(reports.len() >= 3);
        for report in &reports {
            assert_eq!(median(report, "counts_above"), 0.0, "{report}");
            assert_eq!(report["cases"][0]["runs"].as_array().unwrap().len(), 2, "{report}");
            let keys = |report: &Value| median(report, "distinct_keys");
            assert_eq!(keys(report), keys(&reports[0]), "one stream for all: {report}");
            assert_eq!(report["stored_keys"], "whole");
        }
    }
}

#[test]
fn counts_of_a_load_are_found_in_batches_and_streams_and_others_are_not() {
    let dir = tempfile::tempdir().unwrap();
    for (workload, positives) in
        [("count-hit", 5000.0), ("count-stream", 5000.0), ("count-miss", 0.0)]
    {
        for report in reports(dir.path(), &format!("--all --workload {workload} --ops 5k")) {
            assert_eq!(median(&report, "positives"), positives, "{report}");
            assert_eq!(report["reused"], true, "a process of its own has loaded it: {report}");
            assert_eq!(report["loaded"], 50_000);
        }
    }
}

#[test]
fn a_report_says_how_each_is_configured() {
    let dir = tempfile::tempdir().unwrap();
    for report in reports(dir.path(), "--all --workload count-add --ops 5k --runs 1") {
        let said = report["configuration"].as_str().unwrap();
        let expected = match report["index"].as_str().unwrap() {
            "counting-mb" => "MB, whole keys of 8 bytes",
            "counting-mdb" => "MDB, whole keys of 8 bytes",
            "counting-mdb-l" => "MDB-L, whole keys of 8 bytes",
            "rocksdb" => "write-ahead log synced every 100 ms",
            _ => "committed and synced every 100 ms",
        };
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_workload_of_others_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let output = counters(dir.path(), "--counter counting-mb --workload delete --ops 5");
    assert!(!output.status.success());
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("counting-mb cannot do that"), "{message}");
}
