//! The device under requests of all kinds: their times, split and whole.

use nandex_device::laws;
use nandex_disksim::{Elements, Shape};
use nandex_sim::workload::{Arrival, SplitMix64, Workload, open_loop};
use nandex_sim::{Done, Error, Model, Parts, Request, RequestKind, SimDevice};
use proptest::prelude::*;

/// A device of 2 elements that cleans after a few hundred writes.
const SMALL: Shape = Shape {
    elements: 2,
    planes: 2,
    blocks: 12,
    pages: 8,
    spare_blocks: 4,
    clean_at_blocks: 2,
    depth: 6,
    ..Shape::SUITE
};

fn request(token: u64, kind: RequestKind, page: u64, pages: u32) -> Request {
    Request { token, kind, page, pages }
}

fn drain(ssd: &mut Elements) -> Vec<Done> {
    let mut done = Vec::new();
    while ssd.step(&mut done) {}
    done
}

fn run(requests: &[Request]) -> Vec<Done> {
    let mut ssd = Elements::agrawal_slc();
    requests.iter().for_each(|&request| ssd.submit(request));
    drain(&mut ssd)
}

#[test]
fn it_keeps_the_laws_of_devices() {
    laws::check(&SimDevice::with_model(Box::new(Elements::agrawal_slc())));
    laws::check(&SimDevice::with_model(Box::new(Elements::new(SMALL).unwrap())));
}

#[test]
fn what_cannot_be_is_refused() {
    let error = Elements::new(Shape { spare_blocks: 3, ..SMALL }).unwrap_err();
    assert!(matches!(error, Error::Spec { field: "spare_blocks", .. }), "{error}");
}

#[test]
fn a_lone_page_takes_array_pins_and_channel() {
    let [read, write] =
        [RequestKind::Read, RequestKind::Write].map(|kind| run(&[request(0, kind, 5, 1)])[0].parts);
    let parts = Parts { host_ns: 1907, bus_ns: 105_600, ..Parts::default() };
    assert_eq!(read, Parts { array_ns: 25_000, ..parts });
    assert_eq!(write, Parts { array_ns: 200_000, ..parts });
}

#[test]
fn of_a_request_for_many_pages_the_last_ones_way_counts() {
    let done = run(&[request(0, RequestKind::Write, 0, 9)]);
    // The ninth page waits for the first one, on the same element; 9 pages cross in 17.1648 us.
    let parts = Parts { host_ns: 17_165, queue_ns: 305_600, bus_ns: 105_600, ..Parts::default() };
    assert_eq!(done[0].parts, Parts { array_ns: 200_000, ..parts });
    assert_eq!(done[0].finished_ns, 628_365);
}

#[test]
fn what_finds_no_place_at_the_device_waits_at_the_host() {
    let all: Vec<_> = (0..21).map(|page| request(page, RequestKind::Read, page, 1)).collect();
    let done = run(&all);
    assert!(done[..20].iter().all(|done| done.parts.admission_ns == 0));
    assert_eq!(done[20].request.token, 20);
    assert_eq!(done[20].parts.admission_ns, done[0].finished_ns);
}

#[test]
fn a_sync_ends_with_the_writes_before_it_and_does_not_wait_for_those_after() {
    let (write, sync) = (RequestKind::Write, RequestKind::Sync);
    let done = run(&[
        request(0, write, 0, 9),
        request(1, sync, 0, 0),
        request(2, write, 1, 16),
        request(3, RequestKind::Read, 3, 1),
        request(4, sync, 0, 0),
    ]);
    let end_ns = |token| done.iter().find(|done| done.request.token == token).unwrap().finished_ns;
    assert_eq!(end_ns(1), end_ns(0));
    assert_eq!(end_ns(4), end_ns(2));
    assert!(end_ns(1) < end_ns(2));
    assert_eq!(run(&[request(0, sync, 0, 0)])[0].finished_ns, 0);
}

#[test]
fn discarded_pages_are_not_moved_by_cleaning() {
    let moved = |discards: bool| {
        let mut ssd = Elements::new(SMALL).unwrap();
        let half = ssd.page_count() / 2;
        if discards {
            ssd.submit(request(0, RequestKind::Discard, half, half as u32));
        }
        let mut rng = SplitMix64::new(3);
        for token in 1..2000 {
            ssd.submit(request(token, RequestKind::Write, rng.below(half), 1));
        }
        assert!(drain(&mut ssd).iter().all(|done| done.parts.total_ns() == done.finished_ns));
        ssd.counts().iter().map(|counts| counts.moved).sum::<u64>()
    };
    let (with, without) = (moved(true), moved(false));
    assert!(with < without / 2, "{with} of {without}");
}

#[test]
fn a_request_may_be_submitted_before_one_that_arrives_earlier() {
    let mut ssd = Elements::agrawal_slc();
    ssd.submit_at(1_000_000, request(0, RequestKind::Read, 0, 1));
    ssd.submit_at(500_000, request(1, RequestKind::Read, 0, 1));
    assert_eq!(ssd.now_ns(), 0);
    let done = drain(&mut ssd);
    assert_eq!(done.iter().map(|done| done.finished_ns).collect::<Vec<_>>(), [632_507, 1_132_507]);
}

#[test]
fn requests_for_no_pages_end() {
    for kind in [RequestKind::Read, RequestKind::Write, RequestKind::Discard] {
        assert_eq!(run(&[request(0, kind, 0, 0)])[0].finished_ns, 0);
    }
}

fn arrivals(count: u64, seed: u64, gap_ns: u64) -> Vec<Arrival> {
    let mut rng = SplitMix64::new(seed);
    let pages = SMALL.page_count();
    let mut at_ns = 0;
    let arrival = |token| {
        let [what, place, gap] = [(); 3].map(|()| rng.below(1 << 48));
        at_ns += gap % gap_ns;
        let kind = match what % 16 {
            0 => RequestKind::Sync,
            1 => RequestKind::Discard,
            2..6 => RequestKind::Read,
            _ => RequestKind::Write,
        };
        let count = if kind == RequestKind::Sync { 0 } else { 1 + place % 5 };
        Arrival { at_ns, request: request(token, kind, place % (pages - 5), count as u32) }
    };
    (0..count).map(arrival).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn parts_add_up_and_every_request_ends_once(seed: u64, gap_ns in 1u64..2_000_000) {
        let mut ssd = Elements::new(SMALL).unwrap();
        let mut ended = Vec::new();
        open_loop(&mut ssd, arrivals(600, seed, gap_ns), |done| {
            assert_eq!(done.parts.total_ns(), done.finished_ns - done.submitted_ns, "{done:?}");
            ended.push(done.request.token);
        });
        ended.sort_unstable();
        prop_assert_eq!(ended, (0..600).collect::<Vec<_>>());
    }

    #[test]
    fn the_same_requests_make_the_same_events(seed: u64) {
        let run = |seed| {
            let mut ssd = Elements::new(SMALL).unwrap();
            let mut all = Vec::new();
            open_loop(&mut ssd, arrivals(400, seed, 300_000), |done| all.push(*done));
            (ssd.event_hash(), all, ssd.erases())
        };
        let first = run(seed);
        prop_assert_eq!(&first, &run(seed));
        prop_assert_ne!(first.0, run(seed ^ 1).0);
    }

    /// Checks Little's law, with the number at the device observed from outside from event to event.
    #[test]
    fn the_mean_number_of_requests_is_their_rate_times_their_latency(seed: u64) {
        let mut ssd = Elements::new(SMALL).unwrap();
        let arrivals = arrivals(600, seed, 400_000);
        arrivals.iter().for_each(|arrival| ssd.submit_at(arrival.at_ns, arrival.request));
        let (mut area, mut before_ns, mut done) = (0, 0, Vec::new());
        loop {
            let there = arrivals.partition_point(|arrival| arrival.at_ns <= before_ns) - done.len();
            let goes_on = ssd.step(&mut done);
            area += there as u64 * (ssd.now_ns() - before_ns);
            before_ns = ssd.now_ns();
            if !goes_on {
                break;
            }
        }
        let latencies = done.iter().map(|done| done.finished_ns - done.submitted_ns).sum::<u64>();
        // A time is reported rounded up, an end rounded to the nearest nanosecond.
        prop_assert!(area.abs_diff(latencies) <= 600, "{} for {}", area, latencies);
    }
}

#[test]
fn erases_are_counted_block_by_block() {
    let mut ssd = Elements::new(SMALL).unwrap();
    let writes = Workload::pages(ssd.page_count()).requests().unwrap();
    writes.take(3000).for_each(|write| ssd.submit(write));
    drain(&mut ssd);
    let erases = ssd.erases();
    assert_eq!(erases.len(), 2 * 2 * 12);
    for (element, counts) in erases.chunks(24).zip(ssd.counts()) {
        assert!(counts.cleans > 0);
        assert_eq!(element.iter().map(|&erases| u64::from(erases)).sum::<u64>(), counts.cleans);
    }
}
