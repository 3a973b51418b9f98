//! Structures that have been in use: rounds of changes precede the measured ones, and each key keeps its
//! value.

use serde_json::Value;

use crate::{bench, json_in, refusal};

const FLAGS: &str = "--scratch 1MiB --limit-seconds 0 --runs 2 --entries 3k --ops 2k --ram 16MiB";

/// Returns the tables of nandex, and the oracle.
fn tables() -> Vec<&'static str> {
    let registered = nandex_baseline::registry::tables().map(|(row, _)| row.kind);
    registered.chain(["map", "oracle"]).collect()
}

#[test]
fn the_index_list_names_every_structure_that_users_can_make() {
    let help = bench(std::path::Path::new("."), "--help");
    let help = String::from_utf8(help.stdout).unwrap();
    for table in tables() {
        assert!(help.contains(&format!("- {table}:")), "{table}: {help}");
    }
}

#[test]
fn updates_go_before_those_of_update_and_mixed_and_each_key_has_its_last_value() {
    for index in tables() {
        for workload in ["update", "update --batch 64 --threads 2", "mixed --lookups .5"] {
            let dir = tempfile::tempdir().unwrap();
            let arguments =
                format!("--index {index} {FLAGS} --workload {workload} --success 1 --settle 3");
            let report = json_in(dir.path(), &arguments);
            let settling = &report["settling"];
            assert_eq!(settling["operations"], 9000, "{index}, {workload}: {report}");
            assert_eq!((&settling["rounds"], &report["settle_rounds"]), (&3.0.into(), &3.into()));
            assert_eq!((&report["operations"], &report["loaded"]), (&2000.0.into(), &3000.into()));
            // A table in RAM, or in the volume's checkpoints, reports no flash.
            if !report["flash_bytes"].is_null() {
                check_space(&report);
            }
        }
    }
}

/// Checks that the report has the space of the loaded table, of the table after the rounds, and of the table
/// after the runs.
fn check_space(report: &Value) {
    for moment in ["before", "after"] {
        for figure in ["file_bytes_per_entry", "flash_bytes_per_entry"] {
            let bytes = report["settling"][moment][figure].as_f64();
            assert!(bytes > Some(16.0), "{moment}, {figure}: {report}");
        }
    }
    for (figure, moment) in
        [("file_bytes_per_entry_fresh", "before"), ("file_bytes_per_entry_settled", "after")]
    {
        assert_eq!(report[figure], report["settling"][moment]["file_bytes_per_entry"], "{report}");
    }
    assert_eq!(report["settled_rounds"], 3.0);
    assert!(report["settling"]["write_amplification"].is_number(), "{report}");
    assert!(report["write_amplification"].is_number(), "{report}");
    for figure in ["file_bytes", "flash_bytes"] {
        assert!(report[figure].as_f64() > Some(0.0), "{figure}: {report}");
    }
}

#[test]
fn churn_leaves_the_newest_keys_of_every_table() {
    for index in tables() {
        for arguments in ["--settle 3", "--batch 64 --threads 2 --settle 2", "--ops 7k"] {
            let dir = tempfile::tempdir().unwrap();
            let report = json_in(
                dir.path(),
                &format!("--index {index} {FLAGS} --workload churn {arguments}"),
            );
            let operations = if arguments == "--ops 7k" { 7000.0 } else { 2000.0 };
            assert_eq!(report["operations"], operations, "{index}: {report}");
            assert_eq!(report["settling"].is_null(), arguments == "--ops 7k");
            assert!(
                report["insert_ns"]["count"].as_u64() > Some(0) && report["lookup_ns"].is_null()
            );
            if index != "oracle" {
                let bytes = report["file_bytes_per_entry"].as_f64();
                assert!(bytes > Some(16.0), "{index}: {report}");
            }
        }
    }
}

#[test]
fn filters_and_indexes_of_neighbours_that_can_remove_take_churn() {
    for index in ["multiset", "quotient", "cascade", "counting", "buckets", "slicelsh"] {
        let dir = tempfile::tempdir().unwrap();
        let arguments = "--workload churn --settle 2 --batch 64 --ram 32MiB";
        let report = json_in(dir.path(), &format!("--index {index} {FLAGS} {arguments}"));
        assert_eq!(report["settling"]["operations"], 6000, "{index}: {report}");
        let spread = &report["cases"][0]["spread"];
        assert_eq!(spread["operations"]["min"], 2000.0, "{index}: {report}");
        assert_eq!(spread["settled_rounds"]["min"], 2.0, "{index}: {report}");
    }
}

#[test]
fn settling_ends_when_its_time_is_over_and_the_report_says_how_much_was_made() {
    let dir = tempfile::tempdir().unwrap();
    let limited = "--workload update --settle 1000 --settle-seconds 0.01 --zipf 0.99";
    let report = json_in(dir.path(), &format!("--index oracle {FLAGS} {limited}"));
    let rounds = report["settling"]["rounds"].as_f64().unwrap();
    assert!(rounds > 0.0 && rounds < 1000.0, "{report}");
    let output = bench(dir.path(), &format!("--index oracle {FLAGS} --workload churn --settle 1"));
    let text = String::from_utf8(output.stdout).unwrap();
    for words in ["settle_rounds: 1", "settled B/key", "churn: every run", "settling: {"] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn what_cannot_be_settled_or_churned_is_refused_by_name() {
    for (arguments, words) in [
        ("--index slicebloom --workload churn", "--workload churn: slicebloom cannot do that"),
        ("--index oracle --workload lookup-hit --settle 2", "--settle 2: only update, churn and"),
        ("--index oracle --workload update --settle 2k", "invalid value"),
        ("--index oracle --workload update --settle 2000", "--settle 2000: from 0 to 1000"),
        (
            "--index oracle --workload update --settle-seconds 2",
            "--settle-seconds without --settle",
        ),
        (
            "--index cascade --workload mixed --settle 2",
            "updates are of tables; cascade is a filter",
        ),
    ] {
        let message = refusal(&format!("{FLAGS} {arguments}"));
        assert!(message.contains(words), "{arguments}: {message}");
    }
}
