//! Loads and traces: what is asked, what is counted, and what an index reads for it.

use std::io::Cursor;
use std::sync::Arc;

use nandex::Durability;
use nandex_kvssd::{
    BenchPlan, Config, Error, KeySpace, ReplayPlan, ReplayReport, RetrieveOptions, TraceFormat,
    TraceReader,
};
use nandex_sim::SimDevice;

use crate::common::{INDEXES, add_space, create_on, drive};

fn space_of(index: &str, config: Config) -> KeySpace {
    let device = Arc::new(SimDevice::instant());
    let drive = create_on(device, config, index, Durability::Never).unwrap();
    add_space(&drive, "main")
}

#[test]
fn a_load_asks_its_commands_and_an_index_reads_at_most_a_page_for_each() {
    for index in INDEXES {
        let config = Config { capacity_bytes: 4 << 20, pairs_max: 20_000, ..Config::tiny() };
        let space = space_of(index, config);
        let (pairs, commands) = (20_000, Some(3000));
        let plan = BenchPlan { pairs, value_bytes: 100, commands, ..BenchPlan::default() };
        let reports = plan.run(&space, &mut |_| true).unwrap();
        let names: Vec<_> = reports.iter().map(|report| &report.name[..]).collect();
        assert_eq!(names, ["insert", "update", "read", "mix", "read absent"]);
        let commands: Vec<_> = reports.iter().map(|report| report.commands).collect();
        assert_eq!(commands, [20_000, 3000, 3000, 3000, 3000]);
        assert_eq!(reports[0].host_bytes_written, 20_000 * 116);
        assert!(reports[0].write_amplification > 1.0);
        for report in &reports {
            let more: u64 = report.index_reads[2..].iter().sum();
            assert_eq!(more, 0, "{index} {}: {:?}", report.name, report.index_reads);
            let latency = report.latency_us;
            assert!(latency.p50 <= latency.p99 && latency.p99 <= latency.max, "{latency:?}");
        }
        let read = &reports[2];
        assert!(read.index_reads[1] > 2000, "the index is on flash: {:?}", read.index_reads);
        assert_eq!(space.info().unwrap().pairs, 20_000);
    }
}

#[test]
fn a_load_that_is_stopped_tells_what_it_did() {
    let space = space_of(INDEXES[0], Config::tiny());
    let plan = BenchPlan { pairs: 200, value_bytes: 10, depth: 8, ..BenchPlan::default() };
    let reports = plan.run(&space, &mut |done| done < 100).unwrap();
    assert_eq!((reports.len(), reports[0].commands), (1, 104));
    for wrong in [
        BenchPlan { pairs: 0, ..plan },
        BenchPlan { key_bytes: 7, ..plan },
        BenchPlan { read_percent: 101, ..plan },
        BenchPlan { depth: 0, ..plan },
    ] {
        assert!(wrong.run(&space, &mut |_| true).is_err());
    }
}

fn replay(space: &KeySpace, plan: ReplayPlan, format: TraceFormat, text: &str) -> ReplayReport {
    let mut trace = TraceReader::new(Cursor::new(text), "trace", format);
    plan.run(space, &mut trace, &mut |_| true).unwrap()
}

#[test]
fn an_object_stores_trace_is_replayed() {
    let (_drive, space) = drive(Config::tiny());
    let text = "\
        1 REST.PUT.OBJECT 8d4fcda3d675bac9 1056\n\
        2 REST.GET.OBJECT 8d4fcda3d675bac9 1056 0 1055\n\
        3 REST.HEAD.OBJECT 39d177fb735ac5df\n\
        4 REST.GET.OBJECT 39d177fb735ac5df 70000\n\
        5 REST.DELETE.OBJECT 8d4fcda3d675bac9\n\
        6 REST.PUT.OBJECT big 70000\n";
    let report = replay(&space, ReplayPlan::default(), TraceFormat::Ibm, text);
    assert_eq!(report.requests, [("delete", 1), ("exist", 1), ("get", 2), ("put", 2)].into());
    assert_eq!((report.misses, report.filled, report.cut_values), (2, 0, 1));
    assert!(report.is_whole && report.refused.is_empty(), "{report:?}");
    assert_eq!(space.retrieve(b"big", RetrieveOptions::default()).unwrap().value_bytes, 8192);
    let plan = ReplayPlan { fills: true, value_bytes: Some(12), depth: 2, ..ReplayPlan::default() };
    let report = replay(&space, plan, TraceFormat::Ibm, text);
    assert_eq!((report.misses, report.filled, report.cut_values), (2, 1, 0));
    assert_eq!(space.value_bytes(b"39d177fb735ac5df").unwrap(), 12);
}

#[test]
fn a_block_caches_trace_fills_the_drive_until_it_is_full_and_says_so() {
    let (drive, space) = drive(Config::tiny());
    let text: String = (0..100).map(|at| format!("{} 2 0 {at}\n", at % 60 * 2)).collect();
    let plan = ReplayPlan { fills: true, ..ReplayPlan::default() };
    let report = replay(&space, plan, TraceFormat::Arc, &text);
    assert_eq!(report.requests, [("get", 200)].into());
    assert!(report.refused["KVS_ERR_DEV_CAPACITY"] > 0, "{report:?}");
    assert!(drive.stats().unwrap().utilisation > 9800);
    let few = ReplayPlan { requests: Some(7), ..plan };
    let report = replay(&space, few, TraceFormat::Arc, &text);
    assert_eq!((report.requests["get"], report.is_whole), (7, false));
}

#[test]
fn a_line_that_does_not_parse_is_named_and_ends_the_replay() {
    let (_drive, space) = drive(Config::tiny());
    let text = "0,one,3,10,1,set,0\n\n0,two,3,10,1,sat,0\n0,three,5,10,1,set,0\n";
    let mut trace = TraceReader::new(Cursor::new(text), "cluster.csv", TraceFormat::Twitter);
    let error = ReplayPlan::default().run(&space, &mut trace, &mut |_| true).unwrap_err();
    assert!(matches!(error, Error::Trace { line: 3, .. }), "{error}");
    assert!(error.to_string().starts_with("cluster.csv:3: expected get"), "{error}");
    let long = format!("0,{},3,10,1,set,0\n", "k".repeat(300));
    let report = replay(&space, ReplayPlan::default(), TraceFormat::Twitter, &long);
    assert_eq!(report.hashed_keys, 1, "the drive takes keys of at most 255 bytes");
}

/// The comparison of the paper's figure: the same accesses, as little DRAM for either.
#[test]
fn rhik_reads_a_page_where_a_multi_level_index_reads_several() {
    let config = Config { capacity_bytes: 64 << 20, pairs_max: 200_000, ..Config::tiny() };
    let space = space_of("rhik", config);
    let drive = space.drive();
    space.store(b"there before", b"", Default::default()).unwrap();
    drive.compare_multilevel(64 << 10).unwrap();
    let pairs = 60_000;
    let plan = BenchPlan { pairs, value_bytes: 20, commands: Some(4000), ..BenchPlan::default() };
    let reports = plan.run(&space, &mut |_| true).unwrap();
    let most = |reads: &[u64]| reads.iter().rposition(|count| *count > 0).unwrap();
    for report in &reports {
        assert!(most(&report.index_reads) <= 1, "{}: {:?}", report.name, report.index_reads);
    }
    let other = drive.multilevel().unwrap();
    assert!((3..=7).contains(&most(&other.reads)), "{other:?}");
    let accesses: u64 = other.reads.iter().sum();
    assert_eq!(accesses, pairs + 4 * 4000, "{other:?}");
}
