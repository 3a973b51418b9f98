//! Structures and indexes over many rounds of updates, and of new keys or documents for removed ones.

use std::process::{Command, Output};

use serde_json::Value;

fn lives(arguments: &str) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandex-bench-lives"));
    command.arg("--dir").arg(dir.path()).args(arguments.split_whitespace());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "files are removed");
    output
}

fn json(arguments: &str) -> Vec<Value> {
    serde_json::from_slice(&lives(&format!("--json {arguments}")).stdout).unwrap()
}

#[test]
fn a_life_tells_what_rounds_of_updates_leave_next_to_a_first_fill() {
    let of_keys = "--structure bufferhash --structure slicehash --structure growing \
                   --structure growing-slicehash --structure rhik --structure counting --structure cascade";
    for (arguments, structures) in [
        ("--structure map --workload update", 1),
        (of_keys, 7),
        (&format!("{of_keys} --workload churn"), 7),
    ] {
        let lives = json(&format!("--entries 4000 --rounds 4 {arguments}"));
        assert_eq!(lives.len(), structures, "{arguments}");
        for life in lives {
            assert_eq!(life["rounds"].as_array().unwrap().len(), 4, "{life}");
            for figure in ["puts_ratio_median", "written_per_byte_median", "flash_ratio_max"] {
                assert!(life[figure].as_f64().unwrap() > 0.0, "{arguments}, {figure}: {life}");
            }
        }
    }
}

#[test]
fn indexes_of_documents_have_lives_of_removed_and_of_new_documents() {
    let indexes = "--structure neardup --structure tfidf --documents 100 --rounds 2";
    for (arguments, workload) in [("", "churn"), ("--workload update --reopen", "update")] {
        let lives = json(&format!("{indexes} {arguments}"));
        assert_eq!(lives.len(), 2);
        for life in lives {
            assert_eq!(
                (&life["items"], &life["workload"]),
                (&"documents".into(), &workload.into())
            );
            let rounds = life["rounds"].as_array().unwrap();
            assert!(rounds.iter().all(|round| round["puts"] == 100), "{life}");
            assert_eq!(life["entries_off_percent_max"], 0.0, "{life}");
            assert!(life["fresh"]["file_bytes"].as_u64().unwrap() > 0, "{life}");
        }
    }
}

#[test]
fn the_table_has_a_line_for_each_life() {
    let output =
        lives("--structure tfidf --structure rhik --entries 2000 --documents 100 --rounds 2");
    let text = String::from_utf8(output.stdout).unwrap();
    let first = |line: &str| line.split_whitespace().next().map(str::to_owned);
    let names: Vec<_> = text.lines().filter_map(first).collect();
    assert_eq!(names, ["structure", "rhik", "tfidf", "flash,"], "{text}");
}
