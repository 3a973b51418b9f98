//! Values that are longer than their number: every table stores them, finds them again, and reports their
//! bytes.

use serde_json::Value;

use crate::{bench, json_in, refusal};

const FLAGS: &str = "--scratch 1MiB --limit-seconds 0 --runs 2 --entries 2k --ops 1k --ram 16MiB";

/// Returns the tables of nandex, and the oracle, with the widest values that each takes.
fn tables() -> impl Iterator<Item = (&'static str, u64)> {
    let registered = nandex_baseline::registry::tables().map(|(row, _)| (row.kind, 64));
    registered.chain([("map", 4096), ("oracle", 64)])
}

#[test]
fn every_table_takes_lookups_updates_churn_and_mixes_of_values_of_every_width() {
    for (index, widest) in tables() {
        for value_bytes in [20, widest] {
            for workload in [
                "lookup-hit",
                "lookup-stream --load sorted",
                "update",
                "update --batch 64 --settle 2",
                "churn --batch 64",
                "mixed --lookups .5 --success 1",
            ] {
                let dir = tempfile::tempdir().unwrap();
                let report = json_in(
                    dir.path(),
                    &format!(
                        "--index {index} {FLAGS} --value-bytes {value_bytes} --workload {workload}"
                    ),
                );
                let (operations, bytes) = (&report["operations"], &report["value_bytes"]);
                assert_eq!((operations, bytes), (&1000.0.into(), &value_bytes.into()), "{report}");
            }
        }
    }
}

#[test]
fn a_loaded_table_of_other_values_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let run = |index: &str, value_bytes: u64| -> Value {
        let arguments = format!("--index {index} {FLAGS} --workload lookup-hit");
        json_in(dir.path(), &format!("{arguments} --value-bytes {value_bytes}"))
    };
    for index in ["map", "bufferhash"] {
        for (value_bytes, reused) in [(40, false), (40, true), (8, false), (8, true), (41, false)] {
            let report = run(index, value_bytes);
            assert_eq!(
                (&report["reused"], &report["hits"]),
                (&reused.into(), &1000.0.into()),
                "{index}, {value_bytes}: {report}"
            );
        }
    }
}

#[test]
fn bytes_written_are_counted_for_each_byte_of_the_real_values() {
    let dir = tempfile::tempdir().unwrap();
    let load = "--workload insert --batch 256 --entries 20k";
    let report = json_in(dir.path(), &format!("--index map {FLAGS} --value-bytes 1000 {load}"));
    let of = |figure: &str| report[figure].as_f64().unwrap();
    let expected = (of("data_bytes_per_entry") + of("log_bytes_per_entry")) / 1008.0;
    assert!((of("write_amplification") - expected).abs() < 1e-9, "{report}");
    assert!((0.9..3.0).contains(&expected), "{report}");
    let output = bench(
        dir.path(),
        &format!("--index oracle {FLAGS} --value-bytes 50 --workload lookup-hit"),
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("value_bytes: 50\n"), "{text}");
}

#[test]
fn a_setting_that_cannot_work_ends_with_the_code_of_a_wrong_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = format!("{FLAGS} --workload insert --index map --value-bytes 7");
    assert_eq!(bench(folder.path(), &arguments).status.code(), Some(2));
}

#[test]
fn values_of_a_width_that_cannot_be_are_refused_by_name() {
    for (arguments, words) in [
        ("--index map --value-bytes 7", "--value-bytes 7: from 8 to 4096, such as 100"),
        ("--index map --value-bytes 4097", "--value-bytes 4097: from 8 to 4096"),
        (
            "--index rhik --value-bytes 65",
            "--value-bytes 65: values of rhik have at most 64 bytes; take --index map for more",
        ),
        (
            "--index cascade --value-bytes 9",
            "--value-bytes 9: values are of tables; cascade is a filter; leave the flag out",
        ),
    ] {
        let message = refusal(&format!("{FLAGS} --workload insert {arguments}"));
        assert!(message.contains(words), "{arguments}: {message}");
    }
}
