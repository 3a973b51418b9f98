//! The trace parses, and its content is possible.

use std::collections::BTreeMap;

use nandex_sim::Spec;
use nandex_sim::report::{Report, write_trace};
use serde_json::Value;

use crate::mixed;
use crate::support::random;

fn trace(spec: Spec, seed: u64) -> (Value, Report) {
    let report = mixed(spec, 300, seed);
    let mut bytes = Vec::new();
    write_trace(&report, &mut bytes).unwrap();
    (serde_json::from_slice(&bytes).unwrap(), report)
}

fn events<'a>(trace: &'a Value, phase: &'a str) -> impl Iterator<Item = &'a Value> {
    trace["traceEvents"].as_array().unwrap().iter().filter(move |event| event["ph"] == phase)
}

/// Parses microseconds with three decimals, and returns nanoseconds.
fn ns(value: &Value) -> u64 {
    (value.as_f64().unwrap() * 1000.0).round() as u64
}

#[test]
fn nothing_does_two_things_at_a_time() {
    for seed in 0..30 {
        let (trace, _) = trace(random(seed), seed);
        let mut tracks: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
        for event in events(&trace, "X") {
            let track = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
            let start = ns(&event["ts"]);
            tracks.entry(track).or_default().push((start, start + ns(&event["dur"])));
        }
        assert!(tracks.len() > 1, "seed {seed}");
        for (track, mut spans) in tracks {
            spans.sort_unstable();
            for pair in spans.windows(2) {
                assert!(pair[0].1 <= pair[1].0, "seed {seed}, track {track:?}: {pair:?}");
            }
        }
    }
}

#[test]
fn every_request_begins_and_ends_once_with_its_parts() {
    let (trace, report) = trace(Spec::plain(), 1);
    let (requests, missed) = report.first();
    assert_eq!((requests.len(), missed), (300, 0));
    let ends: BTreeMap<&str, u64> = events(&trace, "e")
        .map(|event| (event["id"].as_str().unwrap(), ns(&event["ts"])))
        .collect();
    let begins: Vec<&Value> = events(&trace, "b").collect();
    assert_eq!((begins.len(), ends.len()), (300, 300));
    for event in begins {
        let parts = event["args"].as_object().unwrap().iter();
        let sum: u64 = parts
            .filter(|(name, _)| name.ends_with("_ns"))
            .map(|(_, it)| it.as_u64().unwrap())
            .sum();
        assert_eq!(ends[event["id"].as_str().unwrap()] - ns(&event["ts"]), sum, "{event}");
    }
}

#[test]
fn tracks_have_names_and_the_whole_is_described() {
    let (trace, _) = trace(Spec::plain(), 1);
    let named: Vec<&str> =
        events(&trace, "M").map(|event| event["args"]["name"].as_str().unwrap()).collect();
    for name in
        ["requests", "host side", "buses", "units of flash", "bus 0", "bus 1", "unit 0", "unit 3"]
    {
        assert!(named.contains(&name), "{name} is not among {named:?}");
    }
    assert_eq!(trace["otherData"]["device"], "plain");
    assert_eq!(trace["otherData"]["spans_left_out"], 0);
}

#[test]
fn a_report_that_kept_nothing_is_an_empty_trace_and_says_so() {
    let report = nandex_sim::report::Collector::new(0, nandex_sim::report::Keep::default());
    let mut bytes = Vec::new();
    write_trace(&report.report("a \"name\"", "nothing", 0), &mut bytes).unwrap();
    let trace: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(events(&trace, "X").count(), 0);
    assert_eq!(trace["otherData"]["device"], "a \"name\"");
}
