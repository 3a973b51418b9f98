//! Whole benchmarks on the oracle: every workload runs, the report has its keys, mistakes are reported.

use serde_json::Value;

use crate::{bench, json_in};

/// The flags of every benchmark here; a later flag of the same name overrides an earlier one.
const FLAGS: &str = "--index oracle --scratch 1MiB --limit-seconds 0.002";

fn json(arguments: &str) -> Value {
    let dir = tempfile::tempdir().unwrap();
    json_in(dir.path(), &format!("{FLAGS} --entries 2k --runs 3 {arguments}"))
}

const KEYS: [&str; 24] = [
    "schema",
    "index",
    "loaded",
    "memory_limit",
    "clock_ns",
    "inserts_per_s",
    "lookups_per_s",
    "device_reads_per_s",
    "device_write_bytes_per_s",
    "reads_per_hit",
    "reads_per_miss",
    "ram_bytes_per_entry",
    "rss_bytes",
    "allocated_bytes",
    "write_amplification",
    "insert_ns",
    "lookup_ns",
    "reads_per_operation",
    "log_bytes_per_entry",
    "data_bytes_per_entry",
    "cpu_us_per_op",
    "ratio_to_device",
    "spread",
    "runs",
];

#[test]
fn every_documented_key_is_in_the_json_of_every_single_workload() {
    for workload in
        ["insert", "lookup-hit", "lookup-stream", "lookup-miss", "lookup-miss-stream", "update"]
    {
        let json = json(&format!("--workload {workload} --ops 2k"));
        for key in KEYS {
            assert!(json.get(key).is_some(), "{workload} lacks {key}: {json}");
        }
        assert_eq!(json["runs"].as_array().unwrap().len(), 3);
        assert_eq!(json["loaded"], 2000);
    }
}

#[test]
fn an_insert_has_insert_latencies_and_a_lookup_lookup_latencies() {
    let insert = json("--workload insert");
    assert_eq!(insert["insert_ns"]["count"], 6000);
    assert!(insert["insert_ns"]["p9999"].as_u64() <= insert["insert_ns"]["max"].as_u64());
    assert!(insert["lookup_ns"].is_null());
    assert!(insert["inserts_per_s"].as_f64().unwrap() > 0.0);
    let lookup = json("--workload lookup-hit --depth 1 --ops 500");
    assert_eq!(lookup["lookup_ns"]["count"], 1500);
    assert_eq!(lookup["hits"], 500.0);
    assert!(lookup["ratio_to_device"].as_f64().unwrap() > 0.0);
    let untimed = json("--workload lookup-miss --ops 500 --latency off");
    assert!(untimed["lookup_ns"].is_null());
    assert_eq!(untimed["hits"], 0.0);
}

#[test]
fn the_heap_that_a_table_takes_is_seen() {
    let json = json("--workload insert --entries 50k");
    // Two boxes of 8 bytes and their pointers in a map: the oracle wastes memory.
    assert!(json["allocated_bytes"].as_f64().unwrap() > 50_000.0 * 64.0);
}

#[test]
fn a_mixed_workload_has_a_case_for_each_combination() {
    let json = json("--workload mixed --lookups 0,.5,1 --success 0,.8 --ops 1k");
    let cases = json["cases"].as_array().unwrap();
    let mixes: Vec<_> = cases
        .iter()
        .map(|case| (case["lookup_fraction"].as_f64().unwrap(), case["success"].as_f64().unwrap()))
        .collect();
    assert_eq!(mixes, [(0.0, 0.0), (0.5, 0.0), (0.5, 0.8), (1.0, 0.0), (1.0, 0.8)]);
    assert!(cases[0]["lookups_per_s"].is_null());
    assert!(cases[3]["inserts_per_s"].is_null());
    assert_eq!(cases[3]["hits"], 0.0);
    assert!(json.get("lookups_per_s").is_none(), "several cases have no common figure");
}

#[test]
fn lookups_during_inserts_are_given_with_quiet_ones_of_the_same_run() {
    let flow = "--inserts 300 --insert-rate 10k --threads 2 --depth 1 --ops 1k";
    let json = json(&format!("--workload lookup-beside-inserts {flow}"));
    let cases = json["cases"].as_array().unwrap();
    assert_eq!(cases[0]["case"], "lookup-hit quiet");
    assert_eq!(cases[0]["lookup_ns"]["count"], 3000);
    assert!(cases[0]["insert_ns"].is_null());
    assert_eq!(cases[1]["case"], "lookup-hit beside inserts");
    assert_eq!(cases[1]["insert_ns"]["count"], 900);
    for run in cases[1]["runs"].as_array().unwrap() {
        let operations = run["operations"].as_u64().unwrap();
        assert_eq!(operations, run["hits"].as_u64().unwrap() + 300, "{run}");
        assert!(operations > 300, "{run}");
    }
    let p99 = |case: usize| cases[case]["lookup_ns"]["p99"].as_f64().unwrap();
    // The last digit of a number may be lost when JSON is read.
    let ratio = json["p99_beside_over_quiet"].as_f64().unwrap();
    assert!((ratio * p99(0) / p99(1) - 1.0).abs() < 1e-9, "{ratio}");
    assert_eq!(json["entries_at_end"], 2900);
}

#[test]
fn a_stream_finds_every_key_or_none_without_times_of_its_own() {
    for (workload, hits) in [("lookup-stream", 1001.0), ("lookup-miss-stream", 0.0)] {
        let json = json(&format!("--workload {workload} --threads 2 --depth 4 --ops 1001"));
        assert_eq!((&json["hits"], &json["operations"]), (&hits.into(), &1001.0.into()));
        assert!(json["lookup_ns"].is_null() && json["lookups_per_s"].as_f64() > Some(0.0));
    }
}

#[test]
fn threads_zipf_and_batches_run_too() {
    let json = json("--workload update --threads 3 --batch 16 --zipf 0.99 --ops 1k");
    assert_eq!(json["operations"], 1000.0);
    assert_eq!(json["distribution"], "zipf 0.99");
}

#[test]
fn the_report_for_people_lists_all_runs() {
    let dir = tempfile::tempdir().unwrap();
    let output =
        bench(dir.path(), &format!("{FLAGS} --workload lookup-hit --entries 1k --ops 1k --runs 4"));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("lookup-hit: every run"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("4  ")), "{text}");
}

#[test]
fn mistakes_on_the_command_line_are_told_with_the_option() {
    for (arguments, words) in [
        ("--workload insert --entries 0", "--entries 0"),
        ("--workload insert --entries 12X", "`X` is not a unit"),
        ("--workload mixed --lookups 1.5", "between 0 and 1"),
        ("--workload dance", "possible values"),
        ("--workload lookup-hit --threads 0", "--threads 0"),
        ("--workload lookup-hit --depth 0", "--depth 0"),
        ("--workload insert --batch 0", "--batch 0"),
        ("--workload insert --runs 0", "--runs 0"),
        ("--workload lookup-beside-inserts --inserts 0", "--inserts 0"),
        ("--workload lookup-beside-inserts --insert-rate 0", "--insert-rate 0"),
        ("--workload lookup-hit --load sorted --max-seconds 1", "--load sorted"),
        ("--workload lookup-hit --ops 0", "--ops 0"),
        ("--workload lookup-hit --zipf=-1", "--zipf"),
        ("--workload insert --limit-seconds=-3", "no length of time"),
        ("--workload insert --scratch 1k", "ask for more"),
    ] {
        let message = crate::refusal(&format!("{FLAGS} {arguments}"));
        assert!(message.contains(words), "{arguments}: {message}");
    }
}

#[test]
fn a_table_loaded_on_flash_is_found_by_the_next_run_and_forgotten_by_one_that_changes_it() {
    let dir = tempfile::tempdir().unwrap();
    let run = |arguments: &str| -> Value {
        let fixed = "--index bufferhash --entries 20k --ops 5k --ram 16MiB --runs 2";
        json_in(dir.path(), &format!("{FLAGS} {fixed} {arguments}"))
    };
    let hits = run("--workload lookup-hit");
    assert_eq!((&hits["reused"], &hits["hits"]), (&false.into(), &5000.0.into()));
    assert!(hits["reads_per_hit"].as_f64().unwrap() < 2.0);
    let misses = run("--workload lookup-miss --depth 1");
    assert_eq!((&misses["reused"], &misses["hits"]), (&true.into(), &0.0.into()));
    let stream = run("--workload lookup-stream");
    assert_eq!((&stream["reused"], &stream["hits"]), (&true.into(), &5000.0.into()));
    let absent = run("--workload lookup-miss-stream");
    assert_eq!((&absent["reused"], &absent["hits"]), (&true.into(), &0.0.into()));
    // The limit of both is that of the table's own pages, and a miss reads as many in a stream as in a call.
    let pages = &absent["device"]["reads_of"];
    assert!(pages["file"] != "memory" && *pages == stream["device"]["reads_of"], "{pages}");
    let of_miss = |report: &Value| report["reads_per_miss"].as_f64().unwrap();
    assert!((of_miss(&absent) - of_miss(&misses)).abs() < 0.1, "{absent} {misses}");
    let mixed = run("--workload mixed --lookups .5 --success 1");
    assert_eq!(mixed["reused"], false, "space for its inserts makes it another table");
    assert_eq!(mixed["operations"], 5000.0);
    assert_eq!(run("--workload load --load sorted")["loaded"], 20_000);
    let sorted = run("--workload lookup-hit --load sorted");
    assert_eq!((&sorted["reused"], &sorted["hits"]), (&true.into(), &5000.0.into()));
    assert_eq!(run("--workload lookup-hit")["reused"], false);
}

#[test]
fn every_table_of_the_register_is_loaded_found_again_and_filled() {
    for (row, _) in nandex_baseline::registry::tables() {
        let dir = tempfile::tempdir().unwrap();
        let fixed = format!("{FLAGS} --index {} --entries 2k --ops 1k --ram 16MiB", row.kind);
        for (workload, reused, hits) in [
            ("lookup-hit", false, 1000.0),
            ("lookup-stream", true, 1000.0),
            ("lookup-miss-stream", true, 0.0),
        ] {
            let json = json_in(dir.path(), &format!("{fixed} --workload {workload}"));
            assert_eq!((&json["reused"], &json["hits"]), (&reused.into(), &hits.into()));
        }
        let insert = json_in(dir.path(), &format!("{fixed} --workload insert --runs 1"));
        assert_eq!((&insert["index"], &insert["loaded"]), (&row.kind.into(), &2000.into()));
    }
}
