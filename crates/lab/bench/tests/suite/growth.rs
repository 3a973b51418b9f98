//! A table that grows next to one created large.

use std::process::Command;

use serde_json::Value;

#[test]
fn both_tell_the_tails_of_inserts_and_of_the_lookups_between_them() {
    for structure in ["bufferhash", "slicehash", "rhik"] {
        let dir = tempfile::tempdir().unwrap();
        let flags = "--json --entries 30000 --lookups 200 --batch 4 --lookup-every 10 --structure";
        let output = Command::new(env!("CARGO_BIN_EXE_nandex-bench-growth"))
            .args(flags.split_whitespace())
            .arg(structure)
            .arg("--dir")
            .arg(dir.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        for course in ["growing", "created_large"] {
            let course = &report[course];
            let longest_us = course["batch_longest_ms"].as_f64().unwrap() * 1e3;
            let tail_us = course["batch_p999_us"].as_f64().unwrap();
            assert!(tail_us > 0.0 && tail_us <= longest_us * 1.001, "{course}");
            assert!(course["lookup_p999_us"].as_f64().unwrap() > 0.0, "{course}");
            assert_eq!(course["steps"].as_array().unwrap().last().unwrap()["entries"], 30_000);
        }
        assert!(report["batch_p999_ratio"].as_f64().unwrap() > 0.0, "{report}");
    }
}
