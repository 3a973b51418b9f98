//! Each engine that is built in loads, answers, and is found again by the next run.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn peers(dir: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandex-peers"));
    command.args(["--scratch", "1MiB", "--limit-seconds", "0", "--ram", "64MiB", "--runs", "2"]);
    command.args(["--entries", "20k", "--ops", "5k", "--json", "--dir"]).arg(dir);
    command.args(arguments.split_whitespace());
    command.output().unwrap()
}

fn reports(dir: &Path, arguments: &str) -> Vec<Value> {
    let output = peers(dir, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn all_engines_find_every_key_of_a_load_and_none_other_and_reuse_it() {
    let dir = tempfile::tempdir().unwrap();
    for report in reports(dir.path(), "--all --workload lookup-hit --threads 4 --depth 1") {
        assert_eq!(report["hits"], 5000.0, "{report}");
        assert_eq!(report["reused"], false);
        assert_eq!(report["lookup_ns"]["count"], 10_000);
    }
    for report in reports(dir.path(), "--all --workload lookup-miss --depth 4") {
        assert_eq!(report["hits"], 0.0, "{report}");
        assert_eq!(report["reused"], true);
    }
    for report in reports(dir.path(), "--all --workload lookup-hit --depth 4") {
        assert_eq!(report["hits"], 5000.0, "{report}");
    }
}

#[test]
fn all_engines_load_in_key_order_once_and_find_every_key() {
    let dir = tempfile::tempdir().unwrap();
    for report in reports(dir.path(), "--all --load sorted --workload lookup-hit --depth 1") {
        assert_eq!(report["hits"], 5000.0, "{report}");
        assert_eq!(report["reused"], true, "a process of its own has loaded it: {report}");
    }
    let miss = "--all --load sorted --workload lookup-miss --depth 4 --threads 2";
    for report in reports(dir.path(), miss) {
        assert_eq!((&report["hits"], &report["loaded"]), (&0.0.into(), &20_000.into()), "{report}");
    }
    for report in reports(dir.path(), "--all --load sorted --workload load") {
        assert_eq!((&report["reused"], &report["cases"]), (&true.into(), &Value::Array(vec![])));
    }
    for report in reports(dir.path(), "--all --workload lookup-hit --depth 1") {
        assert_eq!(report["reused"], false, "another order makes another table: {report}");
    }
}

#[test]
fn engines_without_space_for_filters_find_every_key_of_both_loads() {
    let dir = tempfile::tempdir().unwrap();
    for load in ["sorted", "random"] {
        let hit = "--engine rocksdb --engine fjall --workload lookup-hit --entries 400k --ram 1MiB";
        for report in reports(dir.path(), &format!("{hit} --load {load}")) {
            assert_eq!(report["hits"], 5000.0, "{report}");
        }
    }
}

#[test]
fn all_engines_insert_singly_in_batches_and_durably() {
    let dir = tempfile::tempdir().unwrap();
    let durabilities = ["--durability never", "--batch 512", "--durability always --batch 4k"];
    for arguments in durabilities {
        for report in
            reports(dir.path(), &format!("--all --workload insert --threads 2 {arguments}"))
        {
            assert_eq!(report["loaded"], 20_000, "{report}");
            assert_eq!(report["spread"]["operations"]["min"], 20_000.0);
            assert!(report["inserts_per_s"].as_f64().unwrap() > 0.0);
        }
    }
}

#[test]
fn a_load_that_runs_out_of_time_says_how_much_went_in_and_finds_all_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = "--all --workload lookup-hit --entries 20M --max-seconds 0.05";
    for report in reports(dir.path(), arguments) {
        let loaded = report["loaded"].as_u64().unwrap();
        assert!(loaded > 0 && loaded < 20_000_000, "{report}");
        assert_eq!(report["hits"], 5000.0);
    }
}

#[test]
fn all_engines_take_mixed_streams_and_updates() {
    let dir = tempfile::tempdir().unwrap();
    let mixed = "--all --workload mixed --lookups .5 --success 1 --threads 2 --depth 4";
    for report in reports(dir.path(), mixed) {
        assert_eq!(report["operations"], 5000.0);
        assert!(report["hits"].as_f64().unwrap() > 0.0);
    }
    for report in reports(dir.path(), "--all --workload update") {
        assert_eq!(report["operations"], 5000.0);
    }
}

#[test]
fn all_engines_are_settled_and_keep_the_value_of_each_update() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in ["update --batch 64", "mixed --lookups .5 --success 1 --batch 16"] {
        for report in reports(dir.path(), &format!("--all --settle 2 --workload {arguments}")) {
            let settling = &report["settling"];
            assert_eq!(
                (&settling["operations"], &settling["rounds"]),
                (&40_000.into(), &2.0.into())
            );
            for moment in ["before", "after"] {
                let bytes = settling[moment]["file_bytes_per_entry"].as_f64();
                assert!(bytes > Some(16.0), "{moment}: {report}");
            }
            assert!(report["file_bytes"].as_f64() > Some(0.0), "{report}");
            assert_eq!(report["operations"], 5000.0);
        }
    }
}

#[test]
fn all_engines_store_values_of_other_widths_and_find_them_again() {
    let dir = tempfile::tempdir().unwrap();
    for value_bytes in ["--value-bytes 100", "--entries 4k --value-bytes 4096"] {
        for load in ["random", "sorted"] {
            let hit = format!("--all {value_bytes} --workload lookup-hit --load {load}");
            for report in reports(dir.path(), &hit) {
                assert_eq!(report["hits"], 5000.0, "{report}");
            }
            for report in reports(dir.path(), &format!("{hit} --depth 1")) {
                let (hits, reused) = (&report["hits"], &report["reused"]);
                assert_eq!((hits, reused), (&5000.0.into(), &true.into()), "{report}");
            }
        }
        for report in
            reports(dir.path(), &format!("--all {value_bytes} --workload update --settle 2"))
        {
            let entry_bytes = 8.0 + report["value_bytes"].as_f64().unwrap();
            let bytes = report["settling"]["after"]["file_bytes_per_entry"].as_f64();
            assert!(bytes > Some(entry_bytes), "{report}");
        }
    }
    let default = reports(dir.path(), "--all --workload lookup-hit");
    assert!(default.iter().all(|report| report["reused"] == false && report["value_bytes"] == 8));
}

#[test]
fn engines_that_remove_keep_the_newest_keys_of_churn() {
    let dir = tempfile::tempdir().unwrap();
    let some = "--entries 4k --ops 2k --runs 1 --workload churn";
    for arguments in ["--settle 3", "--batch 64 --threads 2 --settle 1", "--durability never"] {
        let reports = reports(dir.path(), &format!("--all {some} {arguments}"));
        let engines: Vec<_> = reports.iter().map(|report| report["index"].as_str()).collect();
        assert!(!engines.contains(&Some("bdb")), "{engines:?}");
        for report in &reports {
            assert_eq!(report["operations"], 2000.0, "{report}");
            assert!(report["insert_ns"]["p99"].as_u64() > Some(0), "{report}");
        }
    }
}

#[test]
fn without_an_engine_the_options_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let output = peers(dir.path(), "--workload insert");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("--engine"));
}
