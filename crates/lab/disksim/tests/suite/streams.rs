//! The streams of the suite, request by request.

use nandex_disksim::streams::{PAGE_COUNT, VALIDATION};
use nandex_sim::workload::Arrival;

use crate::support::validation;

/// Returns a number that identifies a stream: it covers each arrival's time, page and length, in order.
fn fingerprint(arrivals: impl Iterator<Item = Arrival>) -> u64 {
    arrivals.fold(0, |hash: u64, Arrival { at_ns, request }| {
        let words = [at_ns, request.page, u64::from(request.pages)];
        words.into_iter().fold(hash, |hash, word| {
            (hash.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        })
    })
}

#[test]
fn the_validation_streams_are_those_of_disksim() {
    // Fingerprints of the requests that DiskSim 4.0 made from the suite's files, as it printed them.
    let printed = [
        ("sr250k", 0x261B_7B03_D71C_4006),
        ("sw250k", 0x261B_7B03_D71C_4006),
        ("rr250k", 0x582F_7761_5206_AF17),
        ("rw250k", 0x582F_7761_5206_AF17),
        ("sw5m", 0x57C2_69C7_AF2C_D351),
        ("rw5m", 0xAA23_31C6_5FB0_F5A7),
    ];
    for (name, fingerprinted) in printed {
        assert_eq!(fingerprint(validation(name).stream()), fingerprinted, "{name}");
    }
}

#[test]
fn the_random_validation_stream_begins_as_disksim_printed_it() {
    let printed = [
        (744_525, 97_462, 1),
        (1_072_442, 61_543, 1),
        (1_632_493, 307_281, 3),
        (1_693_468, 865_605, 1),
        (2_132_365, 418_127, 1),
        (3_001_463, 492_856, 2),
    ];
    let made = validation("rr250k").stream().take(6);
    let made = made.map(|a| (a.at_ns, a.request.page, a.request.pages));
    assert_eq!(made.collect::<Vec<_>>(), printed);
}

#[test]
fn the_validation_streams_have_as_many_requests_as_they_say_and_stay_in_range() {
    for run in VALIDATION.iter().filter(|run| run.arrivals < 1_000_000) {
        let mut count = 0;
        for Arrival { request, .. } in run.stream() {
            assert_eq!((request.token, request.kind), (count, run.kind), "{}", run.name);
            assert!(request.page + u64::from(request.pages) < PAGE_COUNT, "{}", run.name);
            count += 1;
        }
        assert_eq!(count, run.arrivals, "{}", run.name);
    }
}
