//! Runs `nandex-lab sim` as a child process: every workload, every trace format, each output, each error.

use std::fs;

use crate::common::{Folder, Outcome};
use serde_json::Value;

/// A device of a few MiB, as a file.
const TINY: &str = "tiny.toml";

/// Creates a folder with a device of a few MiB in it.
fn with_device() -> Folder {
    let folder = Folder::new();
    let preset = nandex_sim::preset::Preset::named("intel-x18m").expect("it is built in");
    let text = preset.to_toml().expect("it can be written");
    let text = with_number(&text, "blocks", 64);
    let text = with_number(&text, "pages", 32);
    let text = with_number(&text, "spare_permille", 250);
    fs::write(folder.path(TINY), text).expect("the folder is writable");
    folder
}

/// Returns the text with another number in the line of this field.
fn with_number(text: &str, field: &str, number: u32) -> String {
    let prefix = format!("{field} = ");
    let lines = text.lines().map(|line| match line.starts_with(&prefix) {
        true => format!("{prefix}{number}\n"),
        false => format!("{line}\n"),
    });
    let changed: String = lines.collect();
    assert_ne!(changed.trim(), text.trim(), "{field} is in the file");
    changed
}

fn json(outcome: &Outcome) -> Value {
    assert_eq!(outcome.code, 0, "{outcome:?}");
    crate::common::json(outcome)
}

fn sim(folder: &Folder, words: &str) -> Outcome {
    folder.run(&format!("sim --spec {TINY} {words}"))
}

#[test]
fn every_workload_runs() {
    let folder = with_device();
    for pattern in ["sequential", "random", "zipf", "hot-cold"] {
        for kind in ["read", "write"] {
            let words = format!("--workload {pattern}-{kind} --requests 200 --depth 4 --json");
            let report = json(&sim(&folder, &words));
            assert_eq!(report["kinds"][0]["kind"], kind, "{words}");
            assert_eq!(report["kinds"][0]["count"], 200, "{words}");
            assert!(report["kinds"][0]["iops"].as_f64().is_some_and(f64::is_normal), "{words}");
        }
    }
    for name in ["mixed", "zipf-mixed", "hot-cold-mixed"] {
        let words = format!("--workload {name} --requests 200 --read-percent 40 --json");
        assert_eq!(json(&sim(&folder, &words))["kinds"][1]["kind"], "write", "{words}");
    }
}

#[test]
fn every_format_of_traces_is_replayed_named_or_not() {
    let folder = with_device();
    let traces = [
        ("disksim", "0.0 0 64 8 1\n1.5 0 128 8 0\n"),
        (
            "blkparse",
            "8,0 3 1 0.000000000 697 Q R 64 + 8 [a]\n8,0 3 2 0.001500000 697 Q W 128 + 8 [a]\n",
        ),
        ("msr", "0,usr,0,Read,32768,4096,0\n15000,usr,0,Write,65536,4096,0\n"),
    ];
    for (format, text) in traces {
        fs::write(folder.path("trace"), text).expect("the folder is writable");
        for words in [format!("--format {format}"), String::new(), "--depth 2".into()] {
            let report = json(&sim(&folder, &format!("--replay trace {words} --json")));
            assert_eq!(report["requests"], 2, "{format} {words}");
            let kinds = [&report["kinds"][0]["kind"], &report["kinds"][1]["kind"]];
            assert_eq!(kinds, ["read", "write"], "{format} {words}");
        }
    }
}

#[test]
fn a_bad_line_of_a_trace_is_an_error_that_names_it() {
    let folder = with_device();
    fs::write(folder.path("trace"), "0,usr,0,Read,0,4096,0\nnonsense\n").expect("writable");
    let outcome = sim(&folder, "--replay trace --format msr");
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("line 2 of the MSR trace does not parse"), "{outcome:?}");
    fs::write(folder.path("trace"), "nonsense\n").expect("writable");
    let outcome = sim(&folder, "--replay trace --format disksim");
    assert!(
        outcome.code == 1 && outcome.stderr.contains("line 1 of the DiskSim trace"),
        "{outcome:?}"
    );
    let outcome = sim(&folder, "--replay trace");
    assert!(
        outcome.code == 1 && outcome.stderr.contains("no format of traces fits"),
        "{outcome:?}"
    );
}

#[test]
fn requests_beyond_the_end_are_folded_with_a_notice() {
    let folder = with_device();
    fs::write(folder.path("trace"), "0,usr,0,Read,7014609920,4096,0\n").expect("writable");
    let outcome = sim(&folder, "--replay trace");
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(
        outcome.stdout.contains("note: 1 request lay beyond the end of the device"),
        "{outcome:?}"
    );
}

#[test]
fn explained_requests_add_up() {
    let folder = with_device();
    let words = "--workload mixed --requests 3000 --depth 16 --explain 5";
    let report = json(&sim(&folder, &format!("{words} --json")));
    let explained = report["explained"].as_array().expect("a list");
    assert_eq!(explained.len(), 5);
    let number = |value: &Value| value.as_u64().expect("a number");
    let mut latency_before = u64::MAX;
    for request in explained {
        let parts = request["parts"].as_array().expect("a list");
        let latency = number(&request["latency_ns"]);
        assert_eq!(parts.iter().map(|part| number(&part["ns"])).sum::<u64>(), latency);
        for part in parts {
            let terms = part["terms"].as_array().expect("a list").iter();
            assert_eq!(terms.map(|term| number(&term["ns"])).sum::<u64>(), number(&part["ns"]));
        }
        assert!(latency <= latency_before, "the slowest come first");
        latency_before = latency;
    }
    let text = sim(&folder, words);
    assert_eq!(text.stdout.matches("\n  sum ").count(), 5, "{text:?}");
}

#[test]
fn the_page_and_the_trace_are_written() {
    let folder = with_device();
    let words = "--workload random-write --requests 2000 --depth 8 --report r.html --trace t.json";
    let outcome = sim(&folder, words);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(outcome.stderr, "trace: t.json\nreport: r.html\n");
    let page = fs::read_to_string(folder.path("r.html")).expect("it was written");
    assert!(page.contains("random-write, 2,000 requests") && page.ends_with("</html>\n"));
    let trace = fs::read(folder.path("t.json")).expect("it was written");
    let trace: Value = serde_json::from_slice(&trace).expect("it is JSON");
    assert!(trace["traceEvents"].as_array().is_some_and(|events| events.len() > 4000));
    fs::write(folder.path("bad"), "nonsense\n").expect("writable");
    let failed = sim(&folder, "--replay bad --format msr --report r.html");
    assert_eq!(failed.code, 1, "{failed:?}");
    let kept = fs::read_to_string(folder.path("r.html")).expect("it is there");
    assert_eq!(kept, page, "a run that fails leaves an earlier report as it was");
    assert_eq!(sim(&folder, "--workload random-read --requests 9 --report r.html").code, 0);
    let shorter = fs::read_to_string(folder.path("r.html")).expect("it is there");
    assert!(
        shorter.len() < page.len() && shorter.ends_with("</html>\n"),
        "nothing of the first is left"
    );
    let outcome = sim(&folder, "--workload random-read --report nowhere/r.html");
    assert!(
        outcome.code == 1 && outcome.stderr.contains("cannot write nowhere/r.html"),
        "{outcome:?}"
    );
}

#[test]
fn a_rate_decides_how_long_a_run_lasts_and_a_seed_what_it_does() {
    let folder = with_device();
    let words = "--workload random-read --requests 100 --rate 1000 --gaps constant --json";
    let elapsed_ns = json(&sim(&folder, words))["elapsed_ns"].as_u64().expect("a number");
    assert!((100_000_000..101_000_000).contains(&elapsed_ns), "{elapsed_ns}");
    let random = |seed| {
        let words = format!(
            "--workload random-write --requests 500 --rate 1e4 --fill steady --seed {seed}"
        );
        sim(&folder, &words).stdout
    };
    assert_eq!(random(1), random(1));
    assert_ne!(random(1), random(2));
}

#[test]
fn the_list_has_a_line_for_each_device_and_every_one_runs() {
    let folder = Folder::new();
    let list = folder.run("sim --list");
    let names = nandex_sim::preset::Preset::names();
    assert_eq!(list.stdout.lines().count(), names.len(), "{list:?}");
    let listed = json(&folder.run("sim --list --json"));
    for (preset, name) in listed["presets"].as_array().expect("a list").iter().zip(names) {
        assert_eq!(preset["name"], name);
        let words = format!(
            "sim --preset {name} --workload random-read --requests 20 --report r.html --json"
        );
        let report = json(&folder.run(&words));
        assert_eq!(
            (&report["device"], &report["requests"]),
            (&Value::from(name), &Value::from(20))
        );
        let page = fs::read_to_string(folder.path("r.html")).expect("it was written");
        assert!(page.contains("Where the time of a request went"), "{name}");
        assert!(
            page.contains(&format!("name = &quot;{name}&quot;")),
            "{name}: the device as a file"
        );
    }
}

#[test]
fn an_unknown_device_is_refused_with_the_names_there_are() {
    let outcome = Folder::new().run("sim --preset crucial-m5 --workload mixed");
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.stderr.contains("crucial-m5") && outcome.stderr.contains("crucial-m4"),
        "{outcome:?}"
    );
    let outcome = Folder::new().run("sim --spec gone.toml --workload mixed");
    assert!(outcome.code == 1 && outcome.stderr.contains("gone.toml"), "{outcome:?}");
}

#[test]
fn words_that_contradict_one_another_are_a_wrong_command_line() {
    let folder = with_device();
    fs::write(folder.path("trace"), "0,usr,0,Read,0,4096,0\n").expect("writable");
    for words in [
        "--workload mixed --replay trace",
        "--workload mixed --depth 4 --rate 100",
        "--workload mixed --gaps constant",
        "--workload mixed --format msr",
        "--workload random-read --read-percent 50",
        "--workload mixed --read-percent 101",
        "--workload mixed --size 1000",
        "--workload mixed --size 0",
        "--workload mixed --depth 0",
        "--workload mixed --rate 0",
        "--workload no-such",
        "--replay trace --rate 100",
        "--replay trace --size 8192",
        "--replay trace --read-percent 50",
        "--preset crucial-m4 --workload mixed",
        "--list --workload mixed",
        "",
    ] {
        let outcome = sim(&folder, words);
        assert_eq!(outcome.code, 2, "{words}: {outcome:?}");
        assert!(
            outcome.stderr.starts_with("error: ") && outcome.stdout.is_empty(),
            "{words}: {outcome:?}"
        );
    }
    let outcome = folder.run("sim --workload mixed");
    assert!(outcome.code == 2 && outcome.stderr.contains("--preset"), "{outcome:?}");
}

#[test]
fn a_request_longer_than_the_device_is_an_error() {
    let folder = with_device();
    let outcome = sim(&folder, "--workload random-read --size 1TiB");
    assert!(outcome.code == 1 && outcome.stderr.contains("request_pages"), "{outcome:?}");
}
