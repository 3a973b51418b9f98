//! Tables of more and more entries, each filled by a process that is killed.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

#[test]
fn each_size_is_filled_killed_opened_asked_closed_and_opened() {
    for structure in ["bufferhash", "slicehash", "rhik"] {
        let dir = tempfile::tempdir().unwrap();
        let picture = dir.path().join("rates.svg");
        let flags = "--json --from 20k --to 90k --lookups 500 --rounds 2 --structure";
        let output = Command::new(env!("CARGO_BIN_EXE_nandex-bench-scale"))
            .args(flags.split_whitespace())
            .arg(structure)
            .arg("--dir")
            .arg(dir.path())
            .arg("--picture")
            .arg(&picture)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let steps = lines(&output);
        let entries: Vec<_> = steps.iter().map(|step| step["entries"].as_u64().unwrap()).collect();
        assert_eq!(entries, [20_000, 80_000]);
        for step in &steps {
            let of = |name: &str| step[name].as_f64().unwrap();
            assert!(of("reads_per_hit") <= 1.05, "{step}");
            assert!(of("reads_per_miss") <= 1.05, "{step}");
            assert!(of("file_bytes") > 16.0 * of("entries"), "{step}");
        }
        let drawn = fs::read_to_string(&picture).unwrap();
        assert!(drawn.contains("misses") && drawn.ends_with("</svg>\n"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "volumes are removed");
    }
}

#[test]
fn what_was_measured_before_a_size_that_fails_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_nandex-bench-scale"))
        .args("--json --from 20k --step 1000000000 --to 20T --lookups 500 --rounds 1".split(' '))
        .arg("--dir")
        .arg(dir.path())
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert_eq!(lines(&output)[0]["entries"], 20_000);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("a table of 20"), "{said}");
}

/// Returns the printed lines of JSON.
fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
