//! A cheap drive of 2008 with log blocks: fast when it is written in order, and a merge for each small write
//! elsewhere.
//!
//! Geometry and times are those of an early MLC drive of four channels (JMicron's JMF602 class): 128 pages to
//! a block, 50 us to read, 650 us to program, 2 ms to erase. They are an estimate: the vendor published none.

use nandex_sim::spec::{Flash, Ftl, FtlKind, Host, Level, Mapping, Spec, Timing};
use nandex_sim::workload::closed_loop;
use nandex_sim::{Done, Error, Fill, Model, Request, RequestKind, Ssd};
use proptest::prelude::*;

const PAGES: u64 = 128;
const PLANES: u64 = 4;
const LOG_BLOCKS: u64 = 3;
const LINK_NS: u64 = 4096 * 10;
const BUS_NS: u64 = 4096 * 25;
const MERGE_NS: u64 = PAGES * (50_000 + 650_000) + 2 * 2_000_000;

fn drive() -> Spec {
    let plain = Spec::plain();
    Spec {
        name: "cheap".into(),
        about: "an early MLC drive (estimated)".into(),
        host: Host { depth: 1, link_ps_per_byte: 10_000, buffer_is_safe: true, ..plain.host },
        flash: Flash {
            channels: PLANES as u32,
            dies: 1,
            planes: 1,
            blocks: 40,
            pages: PAGES as u32,
            ..plain.flash
        },
        timing: Timing {
            program_ns: 650_000,
            erase_ns: 2_000_000,
            transfer_ps_per_byte: 25_000,
            ..plain.timing
        },
        ftl: Ftl {
            kind: FtlKind::LogBlock { log_blocks: LOG_BLOCKS as u32 },
            mapping: Mapping::Lba,
            domain: Level::Channel,
            spare_permille: 100,
            clean_at_permille: 10,
            ..plain.ftl
        },
        erases_max: 5000,
        ..plain
    }
}

fn write(page: u64, pages: u32) -> Request {
    Request { token: page, kind: RequestKind::Write, page, pages }
}

fn run(ssd: &mut Ssd, requests: impl IntoIterator<Item = Request>) -> Vec<Done> {
    let mut done = Vec::new();
    closed_loop(ssd, requests, 1, |it| done.push(*it));
    done
}

#[test]
fn a_small_write_elsewhere_waits_for_a_merge_of_tens_of_milliseconds() {
    let mut ssd = Ssd::new(drive(), Fill::Sequential).unwrap();
    let blocks = ssd.page_count() / PAGES / PLANES;
    // Plane 0 has every fourth page; each write goes to another block, and not to its first page.
    let page = |n: u64| (n % blocks * PAGES + 1 + n * 7 % (PAGES - 1)) * PLANES;
    let done = run(&mut ssd, (0..200).map(|n| write(page(n), 1)));
    let alone_ns = LINK_NS + BUS_NS + 650_000;
    for (number, done) in done.iter().enumerate() {
        let merge_ns = if number as u64 >= LOG_BLOCKS { MERGE_NS } else { 0 };
        assert_eq!(done.finished_ns - done.submitted_ns, alone_ns + merge_ns, "write {number}");
        assert_eq!(done.parts.cleaning_ns, merge_ns);
        assert_eq!(done.parts.total_ns(), alone_ns + merge_ns);
    }
    assert!((10_000_000..100_000_000).contains(&(alone_ns + MERGE_NS)), "tens of milliseconds");
    assert_eq!(ssd.counters().ftl.full_merges, 200 - LOG_BLOCKS);
    // A page written by the host costs 128 that it did not write.
    assert!(ssd.counters().ftl.write_amplification(1) > 120.0);
}

#[test]
fn writing_in_order_comes_close_to_what_the_planes_can_program() {
    let mut ssd = Ssd::new(drive(), Fill::Sequential).unwrap();
    let pages = ssd.page_count();
    let done = run(&mut ssd, (0..pages / 64).map(|n| write(n * 64, 64)));
    let took_ns = done.last().unwrap().finished_ns;
    let least_ns = pages / PLANES * (BUS_NS + 650_000);
    assert!(took_ns >= least_ns);
    assert!(took_ns - least_ns < least_ns / 20, "{took_ns} ns, at least {least_ns}");
    let counts = ssd.counters().ftl;
    assert_eq!((counts.switch_merges, counts.erases), (pages / PAGES, pages / PAGES));
    assert_eq!((counts.moved, counts.programs), (0, pages));
}

#[test]
fn two_streams_written_in_order_merge_no_page_while_each_has_a_log_block() {
    let mut ssd = Ssd::new(drive(), Fill::Sequential).unwrap();
    let half = ssd.page_count() / 2 / (PAGES * PLANES) * PAGES * PLANES;
    let requests = (0..half / 64).flat_map(|n| [write(n * 64, 64), write(half + n * 64, 64)]);
    run(&mut ssd, requests);
    assert_eq!(ssd.counters().ftl.switch_merges, 2 * half / PAGES);
    assert_eq!(ssd.counters().ftl.moved, 0);
}

#[test]
fn more_streams_than_log_blocks_copy_pages_on_every_turn() {
    let mut ssd = Ssd::new(drive(), Fill::Sequential).unwrap();
    let (streams, stride) = (LOG_BLOCKS + 1, 6 * PAGES * PLANES);
    let requests = (0..8).flat_map(|n| (0..streams).map(move |at| write(at * stride + n * 64, 64)));
    run(&mut ssd, requests);
    let counts = ssd.counters().ftl;
    // 16 pages of a request fall to each plane: the first turn is filled up by 112 others, each later
    // one begins in the middle of a block and makes it a full merge.
    let turns = (8 * streams - LOG_BLOCKS) * PLANES;
    assert_eq!(counts.cleans, turns);
    assert_eq!(counts.partial_merges, streams * PLANES);
    assert_eq!(counts.full_merges, turns - streams * PLANES);
    assert_eq!(counts.moved, streams * PLANES * 112 + counts.full_merges * 128);
}

#[test]
fn a_drive_that_cannot_keep_its_log_blocks_is_refused() {
    let refused = |change: fn(&mut Spec), wrong: &str| {
        let mut spec = drive();
        change(&mut spec);
        let Error::Spec { field, .. } = Ssd::new(spec, Fill::Empty).unwrap_err() else { panic!() };
        assert_eq!(field, wrong);
    };
    refused(|spec| spec.ftl.kind = FtlKind::LogBlock { log_blocks: 0 }, "ftl.kind.log_blocks");
    refused(|spec| spec.ftl.kind = FtlKind::LogBlock { log_blocks: 40 }, "ftl.kind.log_blocks");
    refused(|spec| spec.ftl.kind = FtlKind::LogBlock { log_blocks: 4 }, "ftl.spare_permille");
    refused(|spec| spec.ftl.mapping = Mapping::WriteOrder, "ftl.mapping");
}

/// Returns a drive of few small blocks, with and without a write buffer and flash pages of 4 or 8 KiB.
fn small_drive(page_units: u32, chunk_units: u32, buffer_pages: u64) -> Spec {
    let mut spec = drive();
    spec.host.depth = 8;
    spec.host.buffer_bytes = buffer_pages * 4096;
    spec.host.buffer_is_safe = false;
    spec.flash.pages = 8;
    spec.flash.blocks = 16;
    spec.flash.page_bytes = page_units * 4096;
    spec.ftl.chunk_bytes = chunk_units * 4096;
    spec.ftl.spare_permille = 260;
    spec
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let request = (0..100_u32, any::<u64>(), 1..20_u32).prop_map(|(sort, page, pages)| {
        let (kind, pages) = match sort {
            0..55 => (RequestKind::Write, if sort < 30 { 1 } else { pages }),
            55..85 => (RequestKind::Read, pages),
            85..92 => (RequestKind::Discard, pages),
            _ => (RequestKind::Sync, 0),
        };
        Request { token: 0, kind, page, pages }
    });
    proptest::collection::vec(request, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Runs requests of all kinds: each ends, its time is charged to the last nanosecond, and every program
    /// and erase that was counted took its time on some plane.
    #[test]
    fn whatever_is_asked_ends_and_every_nanosecond_is_charged(
        (page_units, chunk_units, buffer_pages) in (1..3_u32, 1..4_u32, prop_oneof![Just(0), 1..40_u64]),
        is_full in any::<bool>(),
        copy_back in any::<bool>(),
        depth in 1..12_u32,
        mut requests in requests(),
    ) {
        let mut spec = small_drive(page_units, chunk_units, buffer_pages);
        spec.ftl.copy_back = copy_back;
        let fill = if is_full { Fill::Sequential } else { Fill::Empty };
        let mut ssd = Ssd::new(spec, fill).unwrap();
        let pages = ssd.page_count();
        for (token, request) in (0..).zip(&mut requests) {
            request.token = token;
            request.page %= pages - u64::from(request.pages);
        }
        let (count, mut done) = (requests.len(), Vec::new());
        let written: u64 = requests
            .iter()
            .filter(|request| request.kind == RequestKind::Write)
            .map(|request| u64::from(request.pages))
            .sum();
        closed_loop(&mut ssd, requests, depth, |it| done.push(*it));
        let sync = Request { token: u64::MAX, kind: RequestKind::Sync, page: 0, pages: 0 };
        closed_loop(&mut ssd, [sync], 1, |it| done.push(*it));
        prop_assert_eq!(done.len(), count + 1);
        for done in &done {
            prop_assert_eq!(done.parts.total_ns(), done.finished_ns - done.submitted_ns);
        }
        let counters = ssd.counters();
        let counts = counters.ftl;
        prop_assert_eq!(counts.host_writes, written);
        let merges = counts.switch_merges + counts.partial_merges + counts.full_merges;
        prop_assert_eq!((counts.cleans, counts.erases), (merges, merges + counts.full_merges));
        prop_assert_eq!(ssd.erases().iter().copied().map(u64::from).sum::<u64>(), counts.erases);
        let units = u64::from(page_units);
        prop_assert!(counts.programs * units >= written + counts.moved);
        let cleaned_ns: u64 = counters.unit_clean_ns.iter().sum();
        prop_assert!(cleaned_ns >= counts.erases * 2_000_000);
    }
}
