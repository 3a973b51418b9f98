//! Tests that each filter takes its keys, loses none, has its rate of false positives, and is found again by
//! the next run.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Filters on flash with a file of their own.
const ON_FLASH: &str = "--filter bloom-paged --filter bloom-elevator --filter bloom-mmap --filter bloom-mmap-readahead";

fn filters(dir: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandex-peers-filters"));
    command.args(["--scratch", "1MiB", "--limit-seconds", "0", "--ram", "8MiB", "--runs", "2"]);
    command.args(["--keys", "300k", "--ops", "20k", "--json", "--dir"]).arg(dir);
    command.args(arguments.split_whitespace());
    command.output().unwrap()
}

fn reports(dir: &Path, arguments: &str) -> Vec<Value> {
    let output = filters(dir, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let reports: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert!(!reports.is_empty());
    reports
}

fn median(report: &Value, figure: &str) -> f64 {
    report["cases"][0]["spread"][figure]["median"].as_f64().unwrap()
}

#[test]
fn no_filter_has_a_false_negative_singly_or_in_batches() {
    let dir = tempfile::tempdir().unwrap();
    for how in ["--depth 1", "--depth 8", "--threads 2 --depth 4 --batch 100"] {
        for report in reports(dir.path(), &format!("--all --workload lookup-hit {how}")) {
            assert_eq!(median(&report, "positives"), 20_000.0, "{report}");
        }
    }
}

#[test]
fn all_filters_err_at_the_rate_they_state_which_is_no_more_than_was_asked() {
    let dir = tempfile::tempdir().unwrap();
    for (rate, filters, lookups) in [
        (0.0039, ON_FLASH, 100_000),
        (0.02, ON_FLASH, 50_000),
        (
            0.0039,
            "--filter qfilter --filter fastbloom --filter xorf-fuse8 --filter quotient",
            4_000_000,
        ),
    ] {
        let arguments =
            format!("--workload lookup-miss --ops {lookups} --runs 1 --depth 32 --fpr {rate}");
        for report in reports(dir.path(), &format!("{filters} {arguments}")) {
            let (stated, measured) =
                (median(&report, "rate_stated"), median(&report, "rate_measured"));
            assert!(stated <= rate * 1.01, "{report}");
            // Five standard deviations of this many draws, and 2 % for the approximations of the formulas.
            let stray = 5.0 * (stated / f64::from(lookups)).sqrt() + 0.02 * stated;
            assert!((measured - stated).abs() < stray, "{measured} {stated} {report}");
        }
    }
}

#[test]
fn buffers_that_overflow_many_times_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // 3,800 KiB of RAM are some 300 KiB in addition to the I/O chunks: 60,000 updates of 4 bytes, for 8 x
    // 300,000.
    let tight = "--filter bloom-paged --filter bloom-elevator --ram 3800KiB --threads 2";
    for how in ["--batch 1", "--batch 512"] {
        for report in reports(dir.path(), &format!("{tight} --workload insert {how}")) {
            assert_eq!(report["loaded"], 300_000);
            assert!(median(&report, "disk_bytes_written_per_change") > 0.0, "{report}");
        }
    }
    for report in reports(dir.path(), &format!("{tight} --workload lookup-hit")) {
        assert_eq!(median(&report, "positives"), 20_000.0);
    }
}

#[test]
fn a_paged_filter_reads_one_page_per_lookup_and_the_elevator_some_two_for_absent_keys() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = "--filter bloom-paged --filter bloom-elevator --workload lookup-miss --depth 8";
    let reads: Vec<_> =
        reports(dir.path(), arguments).iter().map(|it| median(it, "reads_per_lookup")).collect();
    assert_eq!(reads[0], 1.0);
    // Nearly half of the bits are set, and more if the size is a whole number of I/O chunks: 1 + 1/2 + 1/4
    // ...
    assert!((1.7..2.05).contains(&reads[1]), "{reads:?}");
}

#[test]
fn lookups_and_inserts_at_the_same_time_agree() {
    let dir = tempfile::tempdir().unwrap();
    let mixed = "--workload mixed --lookups .5 --success 1 --threads 2 --ram 3800KiB";
    let flash = "--filter bloom-paged --filter bloom-elevator --filter bloom-mmap";
    let reports = reports(dir.path(), &format!("{flash} --filter qfilter {mixed} --batch 64"));
    for report in reports {
        assert_eq!(median(&report, "operations"), 20_000.0, "{report}");
    }
}

#[test]
fn what_only_some_can_do_is_done_by_those_and_refused_by_others() {
    let dir = tempfile::tempdir().unwrap();
    let able = reports(dir.path(), "--all --workload delete");
    assert!(able.iter().any(|report| report["index"] == "qfilter"));
    assert!(able.iter().all(|report| report["index"] != "bloom-paged"));
    let output = filters(dir.path(), "--filter bloom-paged --workload delete");
    assert!(!output.status.success());
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("bloom-paged cannot do that"), "{message}");
    let static_one = filters(dir.path(), "--filter xorf-fuse8 --workload insert --fpr 0.001");
    assert!(String::from_utf8_lossy(&static_one.stderr).contains("1 in 256"));
}
