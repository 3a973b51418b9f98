//! The rules of flash: one thing at a time, and every page where it was last written.

use std::collections::HashMap;

use nandex_sim::ssd::{Activity, Resource, Span};
use nandex_sim::{Fill, Model};

use crate::support::{random, run_mixed, ssd};

/// Checks that no controller, link, bus or array serves two at once. Two-plane commands share one period.
#[test]
fn nothing_is_used_twice_at_once() {
    for seed in 0..60 {
        let mut ssd = ssd(random(seed), Fill::Sequential);
        ssd.record_spans(usize::MAX);
        run_mixed(&mut ssd, 2000, 1 + seed % 40, seed);
        let (spans, missed) = ssd.spans();
        assert_eq!(missed, 0);
        let mut by_resource: HashMap<Resource, Vec<Span>> = HashMap::new();
        for span in spans {
            by_resource.entry(span.resource).or_default().push(*span);
        }
        for (resource, mut spans) in by_resource {
            spans.sort_by_key(|span| (span.start_ns, span.end_ns));
            for pair in spans.windows(2) {
                assert!(pair[0].end_ns <= pair[1].start_ns, "seed {seed}, {resource:?}: {pair:?}");
            }
        }
    }
}

#[test]
fn what_the_counters_say_was_busy_the_spans_say_too() {
    let mut ssd = ssd(random(7), Fill::Sequential);
    ssd.record_spans(usize::MAX);
    run_mixed(&mut ssd, 3000, 16, 7);
    let mut done = Vec::new();
    while ssd.step(&mut done) {}
    let sum = |resource: Resource, clean: bool| -> u64 {
        let spans = ssd.spans().0.iter();
        let of =
            spans.filter(|s| s.resource == resource && (s.activity == Activity::Clean) == clean);
        of.map(|span| span.end_ns - span.start_ns).sum()
    };
    let counters = ssd.counters();
    for (unit, busy) in (0..).zip(&counters.unit_busy_ns) {
        assert_eq!(sum(Resource::Unit(unit), false), *busy);
    }
    for (unit, clean) in (0..).zip(&counters.unit_clean_ns) {
        assert_eq!(sum(Resource::Unit(unit), true), *clean);
    }
    for (bus, busy) in (0..).zip(&counters.bus_busy_ns) {
        assert_eq!(sum(Resource::Bus(bus), false), *busy);
    }
    assert_eq!(sum(Resource::Controller, false), counters.controller_busy_ns);
    let link = sum(Resource::LinkIn, false) + sum(Resource::LinkOut, false);
    assert_eq!(link, counters.link_busy_ns);
}
