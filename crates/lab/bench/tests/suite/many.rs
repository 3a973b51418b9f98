//! Many structures in one database.

use std::process::Command;

use serde_json::Value;

#[test]
fn many_structures_of_each_kind_are_open_and_used_in_little_ram() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandex-bench-many"));
    command.args(["--json", "--ram", "24MiB", "--keys", "300", "--structures", "12", "--dir"]);
    let output = command.arg(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 6);
    for kind in all {
        // Each structure has its own RAM, and as many fit into the RAM as the page on RAM states.
        let (open, refusal) = (kind["open"].as_u64().unwrap(), &kind["refusal"]);
        assert!(open == 12 || refusal.is_string(), "{kind}");
        assert!(open >= if kind["kind"] == "growing-map" { 5 } else { 12 }, "{kind}");
        let opened = ["open_ms", "open_database_ms", "close_all_ms"].map(|it| kind[it].as_f64());
        assert!(opened.iter().all(|it| *it > Some(0.0)), "{kind}");
        assert!(kind["ram_taken_bytes"].as_u64().unwrap() <= 24 << 20, "{kind}");
        let threads = kind["background_threads"].as_u64().unwrap() as usize;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        assert!(threads <= cores.max(2) + 8, "{kind}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "it leaves no file");
}
