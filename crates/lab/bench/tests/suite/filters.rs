//! Whole benchmarks of filters on the exact multiset: every workload runs, the report has its keys, mistakes
//! are reported.

use serde_json::Value;

use crate::{bench, json_in, refusal};

const FLAGS: &str = "--index multiset --limit-seconds 0 --runs 2 --keys 20k --ops 2k";

fn json(arguments: &str) -> Value {
    let dir = tempfile::tempdir().unwrap();
    json_in(dir.path(), &format!("{FLAGS} {arguments}"))
}

#[test]
fn inserts_have_tails_and_a_curve_for_each_run() {
    let report = json("--workload insert --points 10");
    assert_eq!(
        (&report["schema"], &report["loaded"]),
        (&"nandex-bench-filter/1".into(), &20_000.into())
    );
    let case = &report["cases"][0];
    assert_eq!(case["change_ns"]["count"], 40_000);
    assert!(
        case["change_ns"]["p999"].as_u64().unwrap() <= case["change_ns"]["max"].as_u64().unwrap()
    );
    let curves = case["curves"].as_array().unwrap();
    assert_eq!(curves.len(), 2);
    for curve in curves {
        let curve = curve.as_array().unwrap();
        assert!((9..=11).contains(&curve.len()), "{curve:?}");
        assert_eq!(curve.last().unwrap()["operations"], 20_000);
    }
}

#[test]
fn lookups_find_every_key_and_measure_the_rate_of_false_positives() {
    let hits = json("--workload lookup-hit --threads 2");
    assert_eq!(hits["cases"][0]["spread"]["positives"]["min"], 2000.0);
    let misses = json("--workload lookup-miss --depth 1");
    let spread = &misses["cases"][0]["spread"];
    assert_eq!(spread["rate_measured"]["median"], 0.0);
    // No false positive in 2,000 leaves a rate of up to 0.19 % likely.
    let high = spread["rate_high"]["median"].as_f64().unwrap();
    assert!(0.0018 < high && high < 0.002, "{high}");
}

#[test]
fn deletes_counts_and_mixed_streams_run_and_are_checked() {
    let deletes = json("--workload delete --batch 64");
    assert_eq!(deletes["cases"][0]["runs"][1]["operations"], 2000);
    let counts = json("--workload count-add --zipf 0.99 --threads 2 --batch 100");
    assert_eq!(counts["cases"][0]["spread"]["counts_above"]["max"], 0.0);
    assert_eq!(counts["distribution"], "zipf 0.99");
    let mixed = json("--workload mixed --lookups .5 --success 0,1");
    assert_eq!(mixed["cases"].as_array().unwrap().len(), 2);
    assert!(mixed["entries_at_end"].as_u64().unwrap() > 23_000);
}

#[test]
fn the_text_has_the_table_and_the_curve() {
    let dir = tempfile::tempdir().unwrap();
    let output = bench(dir.path(), &format!("{FLAGS} --workload insert"));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("FPR stated") && text.contains("insert: over time"), "{text}");
}

#[test]
fn what_does_not_fit_is_refused_with_the_way_out() {
    let index = format!("{FLAGS} --workload");
    assert!(refusal(&format!("{index} update")).contains("a workload of tables"));
    let neighbors = refusal(&format!("{index} insert-and-query"));
    assert!(neighbors.contains("a workload of indexes of neighbours; multiset is a filter"));
    assert!(refusal(&format!("{index} insert --fpr 0")).contains("from 1e-9"));
    assert!(refusal(&format!("{index} insert --fan-out 1")).contains("from 2 to 1024"));
    assert!(refusal(&format!("{index} delete --ops 15k")).contains("ask for fewer"));
    let table = refusal(&format!("{index} count-add --index oracle"));
    assert!(table.contains("a workload of filters; oracle is a table"), "{table}");
}

#[test]
fn a_slicebloom_reads_a_page_for_each_hash_and_its_limit_is_that_of_its_own_pages() {
    let dir = tempfile::tempdir().unwrap();
    let flags =
        "--index slicebloom --scratch 1MiB --limit-seconds 0.002 --runs 2 --keys 100k --ops 5k";
    let run = |arguments: &str| json_in(dir.path(), &format!("{flags} --ram 8MiB {arguments}"));
    for workload in ["lookup-hit", "lookup-stream", "lookup-miss", "lookup-miss-stream"] {
        let report = run(&format!("--workload {workload} --depth 8"));
        let of = |figure: &str| report["cases"][0]["spread"][figure]["median"].as_f64().unwrap();
        let (reads, most) = (of("reads_per_lookup"), of("lookup_reads_max"));
        // A buffer answers some hits, and some positions of a key share a page.
        assert!(reads > 0.5 * most && reads <= most, "{reads} of {most} for {workload}");
        let (limit, device) = (of("lookups_to_limit"), of("reads_to_device"));
        assert!((device / limit - reads / most).abs() < 0.02, "{limit} {device}");
        let source = &report["device"]["reads_of"];
        assert!(source["file"].as_str().unwrap().ends_with("slicebloom.nandex"), "{source}");
        if workload.contains("miss") {
            assert!(of("rate_measured") < 0.05 && of("rate_high") > 0.0, "{report}");
        } else {
            assert_eq!(of("positives"), 5000.0);
        }
    }
    let insert = run("--workload insert --batch 512");
    let of = |figure: &str| insert["cases"][0]["spread"][figure]["median"].as_f64().unwrap();
    assert!(of("ram_bits_per_key") > 0.0 && of("data_bytes_per_change") > 0.0, "{insert}");
    assert!(of("log_bytes_per_change") >= 8.0, "{insert}");
    let mixed = run("--workload mixed --lookups .5 --success .5");
    // Half of the operations in two runs of 5,000 are inserts: six standard deviations are 300.
    assert!(mixed["entries_at_end"].as_u64().unwrap().abs_diff(105_000) < 300, "{mixed}");
    let delete = refusal("--index slicebloom --keys 20k --ops 2k --ram 2MiB --workload delete");
    assert!(delete.contains("slicebloom cannot do that"), "{delete}");
}
