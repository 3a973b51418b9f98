//! Whole runs: named workloads, traces, and the report's warnings.

use nandex_sim::report::Report;
use nandex_sim::run::{Load, Mix, Pace, Run, RunError};
use nandex_sim::spec::FtlKind;
use nandex_sim::trace::{Options, TraceFormat, TraceReader};
use nandex_sim::workload::Gaps;
use nandex_sim::{Fill, Spec, Ssd};

type Trace<'a> = Load<&'a [u8]>;

fn on_plain(run: Run<&[u8]>, fill: Fill) -> Result<Report, RunError> {
    run.on_ssd(&mut Ssd::new(Spec::plain(), fill).unwrap(), fill)
}

fn mix(name: &str) -> Trace<'static> {
    Load::Mix { mix: Mix::named(name).unwrap(), request_pages: 1, seed: 1 }
}

fn msr(text: &str) -> Trace<'_> {
    Load::Trace(TraceReader::new(TraceFormat::Msr, text.as_bytes(), Options::default()))
}

#[test]
fn every_named_workload_runs_and_reads_and_writes_as_its_name_says() {
    for known in Mix::ALL {
        let run =
            Run { requests_max: Some(400), ..Run::new(mix(known.name), Pace::Closed { depth: 4 }) };
        let report = on_plain(run, Fill::Sequential).unwrap();
        let (read, write) = (report.kind("read").is_some(), report.kind("write").is_some());
        let expected = (!known.name.ends_with("write"), !known.name.ends_with("read"));
        assert_eq!((read, write), expected, "{}", known.name);
        assert_eq!(report.requests, 400);
        assert!(report.load.starts_with(known.name), "{}", report.load);
    }
    assert_eq!(Mix::named("random"), None);
}

#[test]
fn an_open_load_lasts_as_long_as_its_rate_says() {
    let pace = Pace::Open(Gaps::Constant { gap_ns: 100_000 });
    let run = Run { requests_max: Some(100), ..Run::new(mix("random-read"), pace) };
    let report = on_plain(run, Fill::Sequential).unwrap();
    // The last of a hundred arrives at 10 ms and takes 90.96 us.
    assert_eq!(report.elapsed_ns, 10_000_000 + 90_960);
}

#[test]
fn a_trace_is_replayed_at_its_times_or_as_fast_as_a_depth_allows() {
    let text =
        "0,usr,0,Read,0,4096,0\n10000,usr,0,Write,8192,8192,0\n20000,usr,0,Read,4096,4096,0\n";
    let report = on_plain(Run::new(msr(text), Pace::Recorded), Fill::Sequential).unwrap();
    assert_eq!(report.elapsed_ns, 2_000_000 + 90_960, "the third comes after 20,000 x 100 ns");
    assert_eq!((report.requests, report.bytes), (3, 16_384));
    assert!(
        report.load.contains("3 requests of a MSR trace, at the recorded times"),
        "{}",
        report.load
    );
    let fast = on_plain(Run::new(msr(text), Pace::Closed { depth: 1 }), Fill::Sequential).unwrap();
    assert_eq!(fast.requests, 3);
    assert!(fast.elapsed_ns < 1_000_000);
    let limited = Run { requests_max: Some(2), ..Run::new(msr(text), Pace::Recorded) };
    assert_eq!(on_plain(limited, Fill::Sequential).unwrap().requests, 2);
}

#[test]
fn a_line_that_does_not_parse_is_an_error_with_its_number_at_either_pace() {
    for pace in [Pace::Recorded, Pace::Closed { depth: 2 }] {
        for (text, line) in [("no trace\n", "line 1 "), ("0,usr,0,Read,0,4096,0\nbad\n", "line 2 ")]
        {
            let error = on_plain(Run::new(msr(text), pace), Fill::Empty).unwrap_err().to_string();
            assert!(error.contains(line), "{error}");
        }
    }
}

#[test]
fn requests_beyond_the_end_are_folded_and_counted() {
    let text = "0,usr,0,Read,0,4096,0\n10,usr,0,Read,7014609920,4096,0\n";
    let report = on_plain(Run::new(msr(text), Pace::Recorded), Fill::Sequential).unwrap();
    let notice = report.notices.iter().find(|it| it.contains("folded")).unwrap();
    assert!(notice.starts_with("1 request lay beyond the end"), "{notice}");
}

#[test]
fn doubts_are_said() {
    let run =
        |name| Run { requests_max: Some(50), ..Run::new(mix(name), Pace::Closed { depth: 1 }) };
    let empty = on_plain(run("random-read"), Fill::Empty).unwrap();
    assert!(
        empty.notices[0].contains("50 of 50 pages were read without the flash"),
        "{:?}",
        empty.notices
    );
    let fresh = on_plain(run("random-write"), Fill::Empty).unwrap();
    assert!(fresh.notices[0].contains("no block was cleaned"), "{:?}", fresh.notices);
    let sound = on_plain(run("random-read"), Fill::Sequential).unwrap();
    assert!(sound.notices.is_empty(), "{:?}", sound.notices);
}

#[test]
fn a_raw_chip_is_asked_and_its_refusal_ends_the_run_at_either_pace() {
    let mut spec = Spec::plain();
    (spec.ftl.kind, spec.ftl.spare_permille) = (FtlKind::Raw, 0);
    for pace in [Pace::Closed { depth: 4 }, Pace::Open(Gaps::Constant { gap_ns: 1_000_000 })] {
        let mut chip = Ssd::new(spec.clone(), Fill::Sequential).unwrap();
        let run = Run { requests_max: Some(100), ..Run::new(mix("sequential-write"), pace) };
        let error = run.on_ssd(&mut chip, Fill::Sequential).unwrap_err().to_string();
        assert!(error.starts_with("request 0 cannot be carried out: "), "{error}");
    }
    let mut chip = Ssd::new(spec, Fill::Empty).unwrap();
    let run = Run {
        requests_max: Some(64),
        ..Run::new(mix("sequential-write"), Pace::Closed { depth: 4 })
    };
    let report = run.on_ssd(&mut chip, Fill::Empty).unwrap();
    assert_eq!(report.ssd.unwrap().programmed_bytes, 64 * 4096);
}

#[test]
fn a_workload_has_no_recorded_times() {
    let error = on_plain(Run::new(mix("mixed"), Pace::Recorded), Fill::Empty).unwrap_err();
    assert!(matches!(error, RunError::NotRecorded));
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let run = || Run {
        requests_max: Some(500),
        ..Run::new(mix("zipf-mixed"), Pace::Closed { depth: 8 })
    };
    let of = || on_plain(run(), Fill::Steady { seed: 3 }).unwrap();
    assert_eq!(of(), of());
}
