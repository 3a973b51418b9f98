//! The benchmark of near-duplicates: planted ones are found, and everything is counted.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn neardup(dir: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandex-bench-neardup"));
    command.arg("--dir").arg(dir).args(arguments.split_whitespace()).output().unwrap()
}

fn json(dir: &Path, arguments: &str) -> Value {
    let output = neardup(dir, &format!("--json {arguments}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn median(report: &Value, figure: &str) -> f64 {
    let found = report["spread"][figure]["median"].as_f64();
    found.unwrap_or_else(|| panic!("no {figure} in {report}"))
}

#[test]
fn planted_near_duplicates_are_found_and_what_it_takes_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let report =
        json(dir.path(), "--documents 3k --near-share .25 --similarity .95 --runs 2 --threads 2");
    assert_eq!(
        (&report["schema"], &report["documents"]),
        (&"nandex-bench-neardup/1".into(), &3000.into())
    );
    assert_eq!(report["bands"], serde_json::json!([10, 12]));
    assert_eq!(report["runs"].as_array().unwrap().len(), 2);
    assert!(median(&report, "near_found_share") > 0.9, "{report}");
    assert_eq!(median(&report, "originals_removed_share"), 0.0);
    assert_eq!((median(&report, "documents"), median(&report, "more_documents")), (3000.0, 30.0));
    let parts = ["kept", "exact", "near"].map(|it| median(&report, it));
    assert_eq!(parts.iter().sum::<f64>(), 3000.0);
    for figure in [
        "ram_bytes_per_document",
        "bytes_written_per_text_byte",
        "documents_per_cpu_s",
        "more_to_full_cpu",
    ] {
        assert!(median(&report, figure) > 0.0, "{figure}: {report}");
    }
    assert!(!dir.path().join("neardup.nandex").exists(), "an index is removed");
}

#[test]
fn files_of_the_user_are_decided_on_and_the_text_has_all_figures() {
    let dir = tempfile::tempdir().unwrap();
    let lines = |first: u64| {
        (first..first + 200).map(|n| format!("{{\"text\":\"w{n} x{n} y{n} z{n}\"}}\n"))
    };
    std::fs::write(dir.path().join("a.jsonl"), lines(0).collect::<String>()).unwrap();
    std::fs::write(dir.path().join("b.jsonl"), lines(150).collect::<String>()).unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let files = format!("--corpus {} --more {}", path("a.jsonl"), path("b.jsonl"));
    let output = neardup(dir.path(), &format!("{files} --runs 1"));
    let text = String::from_utf8(output.stdout).unwrap();
    let row = |name: &str| {
        let found = text.lines().find(|line| line.split_whitespace().next() == Some(name));
        found
            .unwrap_or_else(|| panic!("no {name} in {text}"))
            .split_whitespace()
            .nth(1)
            .unwrap()
            .to_owned()
    };
    assert_eq!((row("kept"), row("more_documents")), ("200.0000".into(), "200.0000".into()));
    assert!(!text.contains("near_found_share"), "nothing is known of them: {text}");
}

/// Compares with the peers. It needs python3 with its venv module, and the network on its first run; it fails
/// without them.
#[test]
fn peers_decide_on_the_same_documents() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("neardup-peers");
    let report = json(&dir, "--documents 1k --near-share .3 --runs 1 --peers --peer-documents 1k");
    let near = median(&report, "near") + median(&report, "exact");
    for name in ["datasketch", "rensa"] {
        let of = |figure: &str| report["peer_spread"][name][figure]["median"].as_f64().unwrap();
        assert_eq!(of("documents"), 1000.0);
        // Other permutations, and other bands for rensa.
        assert!((of("near") - near).abs() < near / 5.0, "{near}: {report}");
        assert!(of("documents_per_s") > 0.0, "{report}");
        // rensa's thousand documents may fit into memory that Python already has.
        assert!(of("ram_bytes_per_document") > 0.0 || name == "rensa", "{report}");
    }
}

#[test]
fn mistakes_are_told_with_the_option() {
    let dir = tempfile::tempdir().unwrap();
    for (arguments, words) in [
        ("--documents 5", "--documents 5"),
        ("--runs 0", "--runs 0"),
        ("--tables 200", "--tables 200: from 1 to the 128 permutations"),
        ("--near-share 1", "--near-share 1"),
        ("--corpus a.jsonl", "--more"),
        ("--documents 1k --ram 1MiB", "ram_bytes"),
        ("--documents 1k --threads 65", "sketch_threads: 65"),
    ] {
        let output = neardup(dir.path(), arguments);
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && message.contains(words), "{arguments}: {message}");
    }
}
