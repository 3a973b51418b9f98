//! Nandex's engine next to fio.

use std::process::{Command, Output};

use serde_json::Value;

fn engine(flags: &str) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandex-bench-engine"));
    command.args("--json --file-bytes 4MiB --dir".split(' ')).arg(dir.path());
    command.args(flags.split_whitespace()).output().unwrap()
}

#[test]
fn both_read_at_each_depth_or_it_says_that_there_is_no_fio() {
    let output = engine("--depths 1,4 --runs 2 --seconds .2");
    let said = String::from_utf8_lossy(&output.stderr);
    if Command::new("fio").arg("--version").output().is_err() {
        assert!(!output.status.success() && said.contains("it must be installed"), "{said}");
        return;
    }
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], "nandex-bench-engine/1");
    let depths = report["at_depths"].as_array().unwrap();
    assert_eq!(depths.iter().map(|it| &it["depth"]).collect::<Vec<_>>(), [1, 4]);
    for it in depths {
        for name in ["engine_reads_per_s", "fio_reads_per_s", "ratio", "engine_cpu_us_per_read"] {
            assert!(it[name]["median"].as_f64().unwrap() > 0.0, "{name} of {it}");
        }
    }
}

#[test]
fn a_time_that_fio_cannot_keep_is_refused() {
    let output = engine("--depths 1 --runs 1 --seconds .01");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(".1 s or more"), "{said}");
}
