//! The numbers of a report against known ones, and against sums of the collected requests.

use nandex_sim::report::{Collector, Keep, Report, figures, text};
use nandex_sim::workload::{Workload, closed_loop};
use nandex_sim::{Done, Fill, Model, Parts, Request, RequestKind, Spec, Ssd};

use crate::mixed;
use crate::support::random;

fn done(kind: RequestKind, (from, to): (u64, u64), token: u64) -> Done {
    let request = Request { token, kind, page: 0, pages: 1 };
    let parts = Parts { array_ns: to - from, ..Parts::default() };
    Done { request, submitted_ns: from, finished_ns: to, parts }
}

fn collected(all: &[Done], keep: Keep) -> Report {
    let mut collector = Collector::new(0, keep);
    all.iter().for_each(|done| collector.note(done));
    collector.report("device", "load", 0)
}

#[test]
fn one_die_reads_as_many_pages_as_its_times_allow() {
    let mut spec = Spec::plain();
    (spec.flash.channels, spec.flash.dies, spec.flash.planes) = (1, 1, 1);
    // 50 us in the array and 4096 B x 10 ns on the bus, one after the other.
    let each_ns = 50_000 + 40_960;
    let mut ssd = Ssd::new(spec, Fill::Sequential).unwrap();
    let mut collector = Collector::new(0, Keep::default());
    let workload = Workload { read_ppm: 1_000_000, ..Workload::pages(ssd.page_count()) };
    let requests = workload.requests().unwrap().take(1000);
    closed_loop(&mut ssd, requests, 4, |done| collector.note(done));
    let report = collector.report("die", "reads", ssd.now_ns());
    assert_eq!(report.elapsed_ns, 1000 * each_ns);
    assert_eq!(report.iops().unwrap().thousandths(), 10_993_843, "1e9 / 90,960, in thousandths");
    assert_eq!(report.bytes_per_s().unwrap().thousandths(), 45_030_782_762, "4096e9 / 90,960");
    let read = report.kind("read").unwrap();
    assert_eq!((read.latency.p50_ns, read.latency.max_ns), (4 * each_ns, 4 * each_ns));
    assert_eq!(read.latency.min_ns, each_ns);
    // Four at a time, except at the end, when 3, 2 and 1 remain.
    let all = (each_ns * (1 + 2 + 3) + 997 * 4 * each_ns) as f64 / report.elapsed_ns as f64;
    assert!((report.little.mean_in_system.unwrap().float() - all).abs() < 0.001);
}

#[test]
fn a_run_shorter_than_a_second_has_a_finite_rate_and_one_of_no_time_has_none() {
    let report = collected(&[done(RequestKind::Read, (0, 640), 0)], Keep::default());
    assert_eq!(report.iops().unwrap().to_string(), "1,562,500.000");
    let report = collected(&[done(RequestKind::Read, (0, 0), 0)], Keep::default());
    assert_eq!((report.iops(), report.little.mean_in_system), (None, None));
    let json = serde_json::to_string(&report).unwrap();
    assert!(
        json.contains("\"iops\":null") && !json.contains("inf") && !json.contains("NaN"),
        "{json}"
    );
    let empty = text(&collected(&[], Keep::default()));
    assert!(empty.contains("no time passed"), "{empty}");
}

#[test]
fn parts_of_all_requests_add_up_to_their_latencies_and_kinds_to_all() {
    for seed in 0..20 {
        let report = mixed(random(seed), 400, seed);
        assert_eq!(report.kinds.iter().map(|kind| kind.count).sum::<u64>(), report.requests);
        for kind in &report.kinds {
            let parts: u64 = kind.parts_total_ns.in_order().into_iter().sum();
            assert_eq!(parts, kind.latency.total_ns, "seed {seed}, {}", kind.kind);
            let binned: u64 = kind.distribution.iter().map(|bin| bin.count).sum();
            assert_eq!(binned, kind.count);
        }
    }
}

#[test]
fn nothing_is_busy_for_longer_than_the_run() {
    for seed in 0..20 {
        let report = mixed(random(seed), 400, seed);
        let ssd = report.ssd.as_ref().unwrap();
        let all = ssd.units.iter().chain(&ssd.buses).chain([&ssd.controller, &ssd.link]);
        for usage in all {
            assert!(usage.percent.unwrap().thousandths() <= 100_000, "seed {seed}: {usage:?}");
        }
        assert!(report.settled_ns >= report.elapsed_ns);
    }
}

#[test]
fn spans_that_were_kept_add_up_to_busy_times() {
    for seed in 0..20 {
        let report = mixed(random(seed), 300, seed);
        let (spans, missed) = report.spans();
        assert_eq!(missed, 0);
        let ssd = report.ssd.as_ref().unwrap();
        let spanned: u64 = spans.iter().map(|span| span.end_ns - span.start_ns).sum();
        let units: u64 = ssd.units.iter().map(|it| it.busy_ns + it.cleaning_ns).sum();
        let buses: u64 = ssd.buses.iter().map(|it| it.busy_ns).sum();
        assert_eq!(
            spanned,
            units + buses + ssd.controller.busy_ns + ssd.link.busy_ns,
            "seed {seed}"
        );
    }
}

#[test]
fn what_made_a_device_ready_is_not_counted_in_the_run() {
    let mut ssd = Ssd::new(Spec::plain(), Fill::Sequential).unwrap();
    crate::support::overwrite(&mut ssd, 20_000, 8, 1);
    let erases_before = ssd.counters().ftl.erases;
    assert!(erases_before > 100);
    let before = nandex_sim::report::SsdBaseline::of(&ssd);
    let mut collector = Collector::new(ssd.now_ns(), Keep::default());
    let requests = Workload::pages(ssd.page_count()).requests().unwrap().take(500);
    closed_loop(&mut ssd, requests, 8, |done| collector.note(done));
    let report = collector.report_ssd(&ssd, &before, "writes");
    let counted = report.ssd.as_ref().unwrap();
    assert_eq!(counted.written_bytes, 500 * 4096);
    assert_eq!(counted.erases, ssd.counters().ftl.erases - erases_before);
    assert_eq!(counted.programmed_bytes, (500 + counted.moved_pages) * 4096);
    let amplification = counted.write_amplification.unwrap().thousandths();
    assert_eq!(amplification, ((500 + counted.moved_pages) * 1000 + 250) / 500);
    let worn: u64 = ssd.erases().iter().map(|&it| u64::from(it)).sum();
    let life = counted.life.unwrap();
    assert_eq!(
        life.erases_left,
        10_000 * ssd.erases().len() as u64 - worn,
        "wear is from the factory on"
    );
}

#[test]
fn the_slowest_are_kept_slowest_first_and_of_equals_the_first() {
    let lengths = [5, 9, 1, 9, 7, 2, 9];
    let all: Vec<Done> = lengths
        .iter()
        .zip(0..)
        .map(|(&ns, token)| done(RequestKind::Read, (0, ns), token))
        .collect();
    let report = collected(&all, Keep { slowest: 4, first: 2 });
    let tokens: Vec<u64> = report.slowest.iter().map(|done| done.request.token).collect();
    assert_eq!(tokens, [1, 3, 6, 4]);
    assert_eq!((report.first().0.len(), report.first().1), (2, 5));
    assert!(collected(&all, Keep { slowest: 0, first: 0 }).slowest.is_empty());
}

#[test]
fn every_figure_has_a_unit_or_is_a_count_and_says_how_it_is_computed() {
    let report = mixed(Spec::plain(), 2000, 3);
    let text = text(&report);
    for section in figures(&report) {
        for figure in section.figures {
            assert!(!figure.shown.is_empty() && figure.how.len() > 10, "{figure:?}");
            assert!(
                text.contains(&figure.name) && text.contains(&figure.shown),
                "{figure:?} in {text}"
            );
        }
    }
}
