//! The laws of queueing theory for a single server, and for any system.

use nandex_sim::spec::Spec;
use nandex_sim::workload::{Gaps, SplitMix64, Workload};
use nandex_sim::{Fill, Model, Request, RequestKind, Ssd};

use crate::support::{random, run_mixed, ssd};

/// Returns the mean time from arrival to end, over an open stream of reads with exponential gaps.
fn mean_open_ns(
    spec: Spec,
    fill: Fill,
    gap_ns: u64,
    count: u64,
    pages: impl Fn(u64) -> u32,
) -> f64 {
    let mut ssd = ssd(spec, fill);
    let workload =
        Workload { seed: 3, read_ppm: 1_000_000, ..Workload::pages(ssd.page_count() / 2) };
    let arrivals = workload.arrivals(Gaps::Exponential { mean_ns: gap_ns });
    let (mut done, mut sum, mut ended) = (Vec::new(), 0_u128, 0_u64);
    for (arrival, number) in arrivals.unwrap_or_else(|e| panic!("{e}")).zip(0..count) {
        ssd.advance(arrival.at_ns, &mut done);
        let request = Request { pages: pages(number), page: 0, ..arrival.request };
        ssd.submit_at(arrival.at_ns, request);
        ended += done.len() as u64;
        sum += done.drain(..).map(|d| u128::from(d.parts.total_ns())).sum::<u128>();
    }
    while ssd.step(&mut done) {}
    ended += done.len() as u64;
    sum += done.drain(..).map(|d| u128::from(d.parts.total_ns())).sum::<u128>();
    assert_eq!(ended, count);
    sum as f64 / count as f64
}

/// Returns a device with one die and an endless queue.
fn one_die() -> Spec {
    let mut spec = Spec::plain();
    spec.flash.channels = 1;
    spec.flash.dies = 1;
    spec.host.depth = 65_536;
    spec
}

#[test]
fn a_die_under_random_reads_makes_them_wait_as_m_d_1() {
    let spec = one_die();
    let service_ns = (spec.timing.read_ns + spec.timing.transfer_ns(4096)) as f64;
    for (load, count) in [(0.3, 400_000), (0.6, 800_000)] {
        let gap_ns = (service_ns / load) as u64;
        let mean = mean_open_ns(spec.clone(), Fill::Sequential, gap_ns, count, |_| 1);
        let waited = mean - service_ns;
        let expected = load * service_ns / (2.0 * (1.0 - load));
        let miss = (waited / expected - 1.0).abs();
        assert!(miss < 0.01, "load {load}: waits {waited} ns, M/D/1 {expected} ns");
    }
}

/// Uses an empty device, so the link alone serves. Lengths are geometric with mean 200 pages, which is
/// exponential to within half a part in 200.
#[test]
fn a_link_under_exponential_lengths_makes_them_wait_as_m_m_1() {
    let mut spec = one_die();
    spec.host.link_ps_per_byte = 250;
    let page_ns = spec.host.link_ns(4096) as f64;
    let lengths: Vec<u32> = {
        let mut rng = SplitMix64::new(9);
        let mut draw = || (1..).find(|_| rng.below(200) == 0).unwrap_or(1);
        (0..1_000_000).map(|_| draw()).collect()
    };
    let mean_pages = lengths.iter().map(|&n| f64::from(n)).sum::<f64>() / lengths.len() as f64;
    let (service_ns, load) = (mean_pages * page_ns, 0.5);
    let gap_ns = (service_ns / load) as u64;
    let length = |number: u64| lengths[number as usize];
    let mean = mean_open_ns(spec, Fill::Empty, gap_ns, lengths.len() as u64, length);
    let (waited, expected) = (mean - service_ns, load * service_ns / (1.0 - load));
    assert!((waited / expected - 1.0).abs() < 0.01, "waits {waited} ns, M/M/1 {expected} ns");
}

/// Checks Little's law: requests in the system, summed over time, are the latencies, summed over requests.
#[test]
fn littles_law_holds_exactly() {
    for seed in 0..30 {
        let mut ssd = ssd(random(seed), Fill::Sequential);
        let done = run_mixed(&mut ssd, 2000, 1 + seed % 40, seed);
        let mut changes: Vec<(u64, i64)> = Vec::new();
        for done in &done {
            changes.extend([(done.submitted_ns, 1), (done.finished_ns, -1)]);
        }
        changes.sort_unstable();
        let (mut area, mut inside, mut since) = (0_i128, 0_i64, 0);
        for (at, change) in changes {
            area += i128::from(inside) * i128::from(at - since);
            (inside, since) = (inside + change, at);
        }
        let latencies: i128 = done.iter().map(|d| i128::from(d.finished_ns - d.submitted_ns)).sum();
        assert_eq!(area, latencies, "seed {seed}");
    }
}

#[test]
fn the_parts_of_a_latency_add_up() {
    for seed in 0..60 {
        let mut ssd = ssd(random(seed), Fill::Sequential);
        for done in run_mixed(&mut ssd, 3000, 1 + seed % 50, seed) {
            assert_eq!(done.parts.total_ns(), done.finished_ns - done.submitted_ns, "{done:?}");
        }
    }
}

/// Checks that a closed loop is bounded by its depth over the empty latency, and by the capacity of the
/// slowest part.
#[test]
fn throughput_keeps_to_the_asymptotic_bounds() {
    let spec = Spec::plain();
    let alone_ns = spec.timing.read_ns + spec.timing.transfer_ns(4096);
    let dies = u64::from(spec.flash.channels * spec.flash.packages * spec.flash.dies);
    let mut last = 0.0;
    for depth in [1, 2, 4, 8, 16, 32] {
        let rate = closed_reads(spec.clone(), depth);
        let bound = (depth.min(dies) as f64) / alone_ns as f64;
        assert!(rate <= bound * 1.000_001, "depth {depth}: {rate} of {bound} a nanosecond");
        assert!(rate >= last, "depth {depth} is slower than half of it");
        last = rate;
    }
    assert!(last > 0.85 * dies as f64 / alone_ns as f64, "32 reads keep {dies} dies busy");
}

/// Returns the random reads per nanosecond at a depth.
fn closed_reads(spec: Spec, depth: u64) -> f64 {
    let mut ssd: Ssd = ssd(spec, Fill::Sequential);
    let (pages, count) = (ssd.page_count(), 20_000);
    let mut rng = SplitMix64::new(1);
    let (mut done, mut submitted, mut ended) = (Vec::new(), 0, 0);
    while ended < count {
        while submitted - ended < depth {
            let page = rng.below(pages);
            ssd.submit(Request { token: submitted, kind: RequestKind::Read, page, pages: 1 });
            submitted += 1;
        }
        ssd.step(&mut done);
        ended += done.len() as u64;
        done.clear();
    }
    ended as f64 / ssd.now_ns() as f64
}

#[test]
fn more_channels_never_read_fewer_pages() {
    let mut last = 0.0;
    for channels in [1, 2, 3, 4, 8, 16] {
        let mut spec = Spec::plain();
        spec.flash.channels = channels;
        let rate = closed_reads(spec, 32);
        assert!(rate >= last, "{channels} channels");
        last = rate;
    }
}
