//! Tables over many rounds of updates, and of new keys for removed ones.

use std::process::Command;

use serde_json::Value;

#[test]
fn a_life_tells_what_rounds_of_updates_leave_next_to_a_first_fill() {
    for (workload, structures) in [("update", 6), ("churn", 5)] {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_nandex-bench-lives"));
        command.args(["--json", "--entries", "20000", "--rounds", "4", "--workload", workload]);
        if workload == "churn" {
            let all = ["bufferhash", "slicehash", "growing", "growing-slicehash", "rhik"];
            for structure in all {
                command.args(["--structure", structure]);
            }
        }
        let output = command.arg("--dir").arg(dir.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lives: Value = serde_json::from_slice(&output.stdout).unwrap();
        let lives = lives.as_array().unwrap();
        assert_eq!(lives.len(), structures, "{workload}");
        for life in lives {
            assert_eq!(life["rounds"].as_array().unwrap().len(), 4, "{life}");
            for figure in ["puts_ratio_median", "written_per_byte_median", "flash_ratio_max"] {
                assert!(life[figure].as_f64().unwrap() > 0.0, "{workload}, {figure}: {life}");
            }
        }
    }
}
