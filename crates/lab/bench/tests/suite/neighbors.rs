//! Whole benchmarks of indexes of neighbours: candidates are found and checked, and reads are counted.

use std::path::Path;

use serde_json::Value;

use crate::{bench, json_in, refusal};

const FLAGS: &str = "--scratch 1MiB --limit-seconds 0.002 --runs 2 --near-share .3 --ram 4MiB";

/// Runs workloads in which the oracle and each structure of the registry must do the same.
fn run(dir: &Path, index: &str, arguments: &str) -> Value {
    json_in(dir, &format!("--index {index} {FLAGS} --entries 20k --ops 2k {arguments}"))
}

fn median(report: &Value, figure: &str) -> f64 {
    let found = report["cases"][0]["spread"][figure]["median"].as_f64();
    found.unwrap_or_else(|| panic!("no {figure} in {report}"))
}

#[test]
fn every_index_of_neighbours_is_loaded_asked_and_added_to() {
    let registered = nandex_baseline::registry::neighbors().map(|(row, _)| row.kind);
    for index in ["buckets"].into_iter().chain(registered) {
        let dir = tempfile::tempdir().unwrap();
        let is_on_flash = index != "buckets";
        for (workload, found) in [("candidates", 2000.0), ("candidates-miss", 0.0)] {
            let report = run(dir.path(), index, &format!("--workload {workload}"));
            assert_eq!(report["schema"], "nandex-bench-neighbors/1");
            assert_eq!(median(&report, "hits"), found, "{report}");
            assert_eq!(median(&report, "documents"), 20_000.0);
        }
        for (workload, found) in [("candidates-stream", 2000.0), ("candidates-miss-stream", 0.0)] {
            let stream = run(dir.path(), index, &format!("--workload {workload} --threads 2"));
            assert_eq!((median(&stream, "hits"), &stream["reused"]), (found, &is_on_flash.into()));
        }
        let added = run(dir.path(), index, "--workload insert-and-query --batch 64");
        // Of 2,000 new documents 600 are near, and 97 % of these share a bucket: six standard deviations are 123.
        let near = median(&added, "hits");
        assert!((459.0..705.0).contains(&near), "{near}");
        assert_eq!(
            (median(&added, "operations"), &added["entries_at_end"]),
            (2000.0, &24_000.into())
        );
        let mixed = run(dir.path(), index, "--workload mixed --lookups .5 --success .5");
        assert_eq!(mixed["cases"][0]["runs"][1]["operations"], 2000, "{mixed}");
    }
}

#[test]
fn a_slicelsh_reads_a_page_of_each_table_and_its_limit_is_that_of_its_own_pages() {
    let dir = tempfile::tempdir().unwrap();
    let report = run(dir.path(), "slicelsh", "--workload candidates --tables 4 --rows 20");
    let (reads, most) = (median(&report, "reads_per_lookup"), median(&report, "lookup_reads_max"));
    assert_eq!((reads, most), (4.0, 4.0));
    let (limit, device) = (median(&report, "lookups_to_limit"), median(&report, "reads_to_device"));
    assert!(limit > 0.0 && (device / limit - 1.0).abs() < 1e-6, "{limit} {device}");
    assert!(median(&report, "candidates_per_lookup") >= 1.0);
    let source = &report["device"]["reads_of"];
    assert!(source["file"].as_str().unwrap().ends_with("slicelsh.nandex"), "{source}");
    assert_eq!(report["made_of"]["tables"], 4);
    let insert = run(dir.path(), "slicelsh", "--workload insert --batch 512 --entries 60k");
    for figure in ["data_bytes_per_change", "log_bytes_per_change", "ram_bytes_per_document"] {
        assert!(median(&insert, figure) > 0.0, "{insert}");
    }
    // Slices have 188 entries on average, and space for 253. With a random hash key one of 3,200 was too full in about
    // one run of twenty; this seed's key leaves space in each.
    assert_eq!((median(&insert, "dropped"), median(&insert, "evicted")), (0.0, 0.0));
    let output =
        bench(dir.path(), &format!("--index slicelsh {FLAGS} --entries 20k --workload insert"));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("RAM B/doc") && text.contains("insert: over time"), "{text}");
}

#[test]
fn documents_that_cannot_be_are_refused_with_the_option() {
    for (arguments, words) in [
        ("--workload insert --tables 65", "--tables 65: from 1 to 64"),
        ("--workload insert --near-share 1", "--near-share 1: from 0 to 0.95"),
        ("--workload insert --similarity 2", "between 0 and 1"),
        ("--workload insert --rows 0", "--rows 0"),
        ("--workload update", "a workload of tables; slicelsh is an index of neighbours"),
        ("--workload insert --ram 1k --limit-seconds 0", "--ram 1000"),
    ] {
        let message = refusal(&format!("--index slicelsh --entries 20k {arguments}"));
        assert!(message.contains(words), "{arguments}: {message}");
    }
}
