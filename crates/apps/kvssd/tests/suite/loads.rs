//! Loads and traces: their requests, their counts, and the reads of the index.

use std::io::Cursor;
use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::{Durability, Volume, VolumeOptions};
use nandex_kvssd::{
    BenchPlan, Config, Drive, Error, IndexChoice, KeySpace, ReplayPlan, ReplayReport, ResultCode,
    RetrieveOptions, TraceFormat, TraceReader, without_threads,
};
use nandex_sim::SimDevice;

use crate::common::{INDEXES, NAME, add_space, create_on, drive, volume_options};

fn space_of(index: &str, config: Config) -> KeySpace {
    let device = Arc::new(SimDevice::instant());
    let drive = create_on(device, config, index, Durability::Never).unwrap();
    add_space(&drive, "main")
}

#[test]
fn a_load_asks_its_commands_and_an_index_without_levels_reads_at_most_a_page_for_each() {
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
            let is_leveled = index == "multilevel";
            assert!(more == 0 || is_leveled, "{index} {}: {:?}", report.name, report.index_reads);
            let latency = report.latency_us;
            assert!(latency.p50 <= latency.p99 && latency.p99 <= latency.max, "{latency:?}");
        }
        let read = &reports[2];
        let on_flash: u64 = read.index_reads[1..].iter().sum();
        assert!(on_flash > 2000, "the index is on flash: {:?}", read.index_reads);
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

/// The comparison of the paper's title, with both indexes on flash and equally little DRAM for either: a retrieval
/// reads a page with one of them, and several with the other.
#[test]
fn a_drive_of_either_index_keeps_its_dram_and_a_multi_level_one_reads_several_pages() {
    let config = Config { capacity_bytes: 64 << 20, pairs_max: 200_000, ..Config::tiny() };
    let budget = 4 << 20;
    nandex_baseline::register();
    let run = |kind| {
        let choice = IndexChoice { kind, ram_bytes: Some(budget) };
        let volume = Volume::create(
            Arc::new(MemoryDevice::new()),
            VolumeOptions { log_bytes: 4 << 20, ..volume_options(Durability::Never) },
        )
        .unwrap();
        let made = choice.predict(config.pairs_max).unwrap();
        let own = (&made.config, &without_threads());
        let drive = Drive::create_with(&volume, NAME, config.clone(), own).unwrap();
        let space = add_space(&drive, "main");
        let plan = BenchPlan {
            pairs: 150_000,
            value_bytes: 20,
            commands: Some(4000),
            ..BenchPlan::default()
        };
        let reports = plan.run(&space, &mut |_| true).unwrap();
        assert!(drive.stats().unwrap().index_ram_bytes <= budget, "{kind}");
        assert_eq!(drive.info().unwrap().index, kind);
        reports.last().unwrap().index_reads_mean
    };
    let (rhik, multilevel) = (run("rhik"), run("multilevel"));
    assert!(rhik <= 1.0 && multilevel > 1.2 * rhik, "{rhik} and {multilevel}");
}

#[test]
fn another_index_than_the_drives_own_is_refused() {
    for kind in INDEXES {
        let device = Arc::new(MemoryDevice::new());
        let drive = create_on(device, Config::tiny(), kind, Durability::Never).unwrap();
        for other in INDEXES {
            let checked = drive.check_index(other);
            assert_eq!(checked.is_ok(), other == kind);
            let text = checked.err().map_or(String::new(), |error| {
                assert_eq!(error.code(), ResultCode::ParamInvalid);
                error.to_string()
            });
            assert!(other == kind || (text.contains(kind) && text.contains(other)), "{text}");
        }
        drive.close().unwrap();
        assert!(matches!(drive.check_index(kind), Err(Error::Closed)));
    }
}
