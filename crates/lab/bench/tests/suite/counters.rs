//! Whole benchmarks of the counting table: the stored form, each discipline, counted costs, and the device's
//! limit.

use std::path::Path;

use serde_json::Value;

use crate::{bench, json_in, refusal};

const FLAGS: &str = "--index counting --scratch 1MiB --limit-seconds 0.002 --keys 100k --ram 16MiB";

fn json(dir: &Path, arguments: &str) -> Value {
    json_in(dir, &format!("{FLAGS} --runs 2 {arguments}"))
}

fn median(report: &Value, figure: &str) -> f64 {
    let found = report["cases"][0]["spread"][figure]["median"].as_f64();
    found.unwrap_or_else(|| panic!("no {figure} in {report}"))
}

#[test]
fn additions_are_counted_exactly_by_each_discipline_with_what_they_cost() {
    let dir = tempfile::tempdir().unwrap();
    let mut keys = Vec::new();
    for (discipline, name) in [("mb", "MB"), ("mdb", "MDB"), ("mdb-l", "MDB-L")] {
        let flags = format!("--workload count-add --batch 512 --discipline {discipline}");
        let report = json(dir.path(), &format!("{flags} --stored-keys whole --zipf 0.99"));
        assert_eq!(
            (&report["discipline"], &report["stored_keys"]),
            (&discipline.into(), &"whole".into())
        );
        let said = report["configuration"].as_str().unwrap();
        assert!(said.starts_with(&format!("{name}, whole keys of 8 bytes")), "{said}");
        assert_eq!(median(&report, "counts_above"), 0.0);
        let distinct = median(&report, "distinct_keys");
        let ram_bytes = median(&report, "ram_bytes");
        assert!((median(&report, "ram_bytes_per_key") / (ram_bytes / distinct) - 1.0).abs() < 0.01);
        // A record of the log has a key of 8 bytes and a byte.
        assert!(median(&report, "log_bytes_per_change") >= 9.0, "{report}");
        assert!(median(&report, "data_bytes_per_change") > 0.0, "{report}");
        assert!(median(&report, "draw_cpu_us_per_op") > 0.0, "{report}");
        keys.push(distinct);
    }
    assert!(keys.iter().all(|count| *count == keys[0]), "one stream for all: {keys:?}");
    let uniform = json(dir.path(), "--workload count-add --batch 512 --ops 300k");
    assert_eq!(
        (&uniform["distribution"], &uniform["stored_keys"]),
        (&"uniform".into(), &"fingerprints".into())
    );
    // After three draws for each key, one key in 20 was never drawn.
    assert!((94_500.0..95_500.0).contains(&median(&uniform, "distinct_keys")), "{uniform}");
}

#[test]
fn queries_read_a_page_each_and_their_limit_is_that_of_the_tables_own_pages() {
    let dir = tempfile::tempdir().unwrap();
    let mut reads = Vec::new();
    for workload in ["count-hit", "count-stream", "count-miss"] {
        let flags =
            format!("--workload {workload} --stored-keys whole --ops 5k --depth 8 --ram 12MiB");
        let report = json(dir.path(), &flags);
        let expected = if workload == "count-miss" { 0.0 } else { 5000.0 };
        assert_eq!(median(&report, "positives"), expected);
        reads.push(median(&report, "reads_per_lookup"));
        assert!(median(&report, "lookups_to_device") > 0.0);
        assert_eq!(median(&report, "distinct_keys"), 100_000.0);
        let source = &report["device"]["reads_of"];
        assert!(source["file"].as_str().unwrap().ends_with("counting.nandex"), "{source}");
        let (read, all) = (source["bytes"].as_u64().unwrap(), file_bytes(dir.path()));
        assert!(read > 0 && read < all, "{read} of {all}");
    }
    let [hit, stream, miss] = reads[..] else { panic!("three workloads") };
    assert!(hit > 0.0 && hit < 1.5, "{hit}");
    // Other keys are drawn, and some of them are buffered.
    assert!((hit - stream).abs() < 0.1, "{hit} {stream}");
    assert!(miss < 1.5, "{miss}");
}

fn file_bytes(dir: &Path) -> u64 {
    std::fs::metadata(dir.join("counting.nandex")).unwrap().len()
}

/// Loads a table with one configuration and opens it with another. A note of the loaded table was kept for
/// each configuration, but the file is one: a table of another configuration replaced the one that a note
/// described, and was opened instead.
#[test]
fn a_table_that_another_configuration_has_replaced_is_loaded_again() {
    let dir = tempfile::tempdir().unwrap();
    let hits = |discipline: &str, reused: bool| {
        let flags = format!("--workload count-hit --stored-keys whole --discipline {discipline}");
        let report = json(dir.path(), &format!("{flags} --ops 1k --depth 1 --limit-seconds 0"));
        assert_eq!(report["reused"], reused, "{discipline}");
    };
    hits("mb", false);
    hits("mb", true);
    hits("mdb", false);
    hits("mb", false);
}

#[test]
fn text_and_json_say_what_the_limit_was_measured_on() {
    let dir = tempfile::tempdir().unwrap();
    let flags = "--scratch 1MiB --limit-seconds 0.002 --index bufferhash --entries 20k --ops 2k --ram 16MiB";
    let output = bench(dir.path(), &format!("{flags} --runs 1 --workload lookup-hit"));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("reads_of") && text.contains("bufferhash.nandex"), "{text}");
    let insert = json_in(dir.path(), &format!("{flags} --runs 1 --workload insert"));
    let source = &insert["device"]["reads_of"];
    assert!(source["file"].as_str().unwrap().ends_with("nandex-bench.scratch"), "{source}");
    assert_eq!(source["bytes"], 1 << 20);
}

#[test]
fn a_discipline_and_whole_keys_are_refused_where_they_mean_nothing() {
    let flags = "--limit-seconds 0 --keys 20k --ram 16MiB --workload count-add";
    let cascade = refusal(&format!("{flags} --index cascade --stored-keys whole"));
    assert!(cascade.contains("a cascade filter stores fingerprints"), "{cascade}");
    let cascade = refusal(&format!("{flags} --index cascade --discipline mb"));
    assert!(cascade.contains("only a counting table has"), "{cascade}");
    let quotient = refusal(&format!("{flags} --index quotient --stored-keys whole"));
    assert!(quotient.contains("stores fingerprints"), "{quotient}");
    assert!(
        refusal(&format!("{flags} --index counting --discipline mbd")).contains("mb, mdb or mdb-l")
    );
    let table = refusal("--limit-seconds 0 --workload count-hit --index oracle");
    assert!(table.contains("a workload of filters; oracle is a table"), "{table}");
}
