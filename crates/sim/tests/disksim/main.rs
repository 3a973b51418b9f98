//! The validation suite of DiskSim's SSD extension (Agrawal et al., USENIX 2008).
//!
//! The numbers are what DiskSim 4.0 with Microsoft's extension printed when it was run on its own files,
//! with more digits than it prints by itself.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod element;
mod reference;

use element::{Counts, Shape};
use nandex_sim::Model;
use nandex_sim::workload::disksim::{VALIDATION, Validation};
use reference::Reference;

/// Serves a run of the suite up to the moment at which its last request arrives.
fn run(model: &mut dyn Model, run: &Validation, mut sink: impl FnMut(&nandex_sim::Done)) {
    let mut done = Vec::new();
    for arrival in run.stream() {
        model.advance(arrival.at_ns, &mut done);
        done.drain(..).for_each(|done| sink(&done));
        if arrival.request.token + 1 < run.arrivals {
            model.submit_at(arrival.at_ns, arrival.request);
        }
    }
}

fn validation(name: &str) -> Validation {
    *VALIDATION.iter().find(|run| run.name == name).unwrap()
}

fn reference_of(name: &str) -> Reference {
    let mut reference = Reference::new(Shape::SUITE);
    run(&mut reference, &validation(name), |_| {});
    reference
}

/// Checks the mean, and what the first two elements did. Arrivals are rounded to nanoseconds here, which
/// moves a mean by 8 picoseconds at most.
fn assert_run(name: &str, mean_ms: f64, first_two: [Counts; 2]) {
    let reference = reference_of(name);
    let miss_ms = (reference.mean_ms() - mean_ms).abs();
    assert!(miss_ms < 1e-8, "{name}: {} for {mean_ms}", reference.mean_ms());
    assert_eq!(reference.responses, validation(name).arrivals - 1, "{name}");
    assert_eq!(reference.counts()[..2], first_two, "{name}");
    assert!((reference.mean_ms() - validation(name).mean_ms).abs() < 0.6e-6, "{name}");
    for counts in reference.counts() {
        assert_identities(&counts);
    }
}

/// Times follow from counts, in DiskSim's own output, to the last digit.
fn assert_identities(counts: &Counts) {
    let Counts { pages, cleans, moved, clean_ps, .. } = *counts;
    assert_eq!(clean_ps, 1_500_000_000 * cleans + 225_000_000 * moved);
    if cleans > 0 {
        let sealed = (pages + moved) / 63;
        let most = 305_600_000 * pages + 213_200_000 * sealed;
        // Each plane has a block that is begun, so up to 8 summaries are not written yet.
        assert!(counts.busy_ps <= most && counts.busy_ps + 8 * 213_200_000 > most);
    }
}

fn counts(pages: u64, cleans: u64, moved: u64, clean_us: u64, busy_ns: u64) -> Counts {
    let (clean_ps, busy_ps) = (clean_us * 1_000_000, busy_ns * 1_000);
    Counts { pages, cleans, moved, clean_ps, busy_ps }
}

#[test]
fn sequential_reads_take_what_disksim_says() {
    let each = counts(31_250, 0, 0, 0, 4_081_250_000);
    assert_run("sr250k", 0.132_511_254, [each, each]);
}

#[test]
fn sequential_writes_take_what_disksim_says() {
    let each = counts(31_250, 0, 0, 0, 9_655_747_200);
    assert_run("sw250k", 0.310_895_467, [each, each]);
}

#[test]
fn random_reads_take_what_disksim_says() {
    let first = counts(49_456, 0, 0, 0, 6_458_953_600);
    assert_run("rr250k", 0.136_117_661, [first, counts(49_837, 0, 0, 0, 6_508_712_200)]);
}

#[test]
fn random_writes_take_what_disksim_says() {
    let first = counts(49_456, 0, 0, 0, 15_280_902_400);
    assert_run("rw250k", 0.329_458_288, [first, counts(49_837, 0, 0, 0, 15_397_336_000)]);
}

#[test]
fn sequential_writes_that_make_it_clean_take_what_disksim_says() {
    let each = counts(713_044, 9_687, 0, 14_530_500, 220_319_244_000);
    assert_run("sw5m", 0.334_365_374, [each, each]);
}

#[test]
fn random_writes_that_make_it_clean_take_what_disksim_says() {
    let first = counts(989_084, 17_891, 240_844, 81_026_400, 306_426_160_800);
    let second = counts(989_433, 17_904, 241_313, 81_151_425, 306_535_586_800);
    assert_run("rw5m", 0.593_437_813, [first, second]);
}
