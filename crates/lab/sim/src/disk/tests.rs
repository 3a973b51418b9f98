//! Laws of a disk: seeks, rotation, read-ahead, order.

use super::{Disk, DiskSpec};
use crate::workload::{Pattern, Workload, closed_loop};
use crate::{Done, Model, Request, RequestKind};

/// A disk of 1000 cylinders with 4 tracks of 100 pages; a turn takes 10 ms, a page 0.1 ms.
fn small() -> DiskSpec {
    DiskSpec {
        name: "small".into(),
        about: "tests".into(),
        depth: 8,
        reorders: false,
        controller_ns: 50_000,
        link_ps_per_byte: 1000,
        buffer_bytes: 1 << 20,
        turns_per_minute: 6000,
        cylinders: 1000,
        surfaces: 4,
        pages_per_track: 100,
        seek_track_ns: 1_000_000,
        seek_average_ns: 8_000_000,
        seek_full_ns: 16_000_000,
    }
}

fn request(token: u64, kind: RequestKind, page: u64, pages: u32) -> Request {
    Request { token, kind, page, pages }
}

fn run(spec: DiskSpec, requests: impl IntoIterator<Item = Request>, depth: u32) -> Vec<Done> {
    let mut disk = Disk::new(spec).expect("a disk that can be");
    let mut all = Vec::new();
    closed_loop(&mut disk, requests, depth, |done| all.push(*done));
    all
}

#[test]
fn a_longer_seek_never_takes_less() {
    let spec = small();
    assert_eq!(spec.seek_ns(0), 0);
    assert_eq!(spec.seek_ns(1), spec.seek_track_ns);
    assert_eq!(spec.seek_ns(333), spec.seek_average_ns);
    assert_eq!(spec.seek_ns(999), spec.seek_full_ns);
    for cylinders in 1..1000 {
        assert!(spec.seek_ns(cylinders) >= spec.seek_ns(cylinders - 1), "{cylinders}");
    }
}

#[test]
fn a_read_costs_its_seek_the_wait_for_its_page_and_its_transfer() {
    // Page 50 of the first track comes by at 5 ms and has passed at 5.1 ms.
    let done = run(small(), [request(0, RequestKind::Read, 50, 1)], 1);
    assert_eq!(done[0].finished_ns, 5_100_000 + 4096);
    // One cylinder further: there at 1.05 ms; its track begins 4 track changes later, at 4 ms.
    let done = run(small(), [request(0, RequestKind::Read, 400, 1)], 1);
    assert_eq!(done[0].finished_ns, 4_100_000 + 4096);
    assert_eq!(done[0].parts.total_ns(), done[0].finished_ns);
    assert_eq!(done[0].parts.array_ns, 4_050_000);
}

#[test]
fn sequential_reads_go_at_the_rate_of_the_media_and_random_ones_do_not() {
    let reads = (0..400).map(|n| request(n, RequestKind::Read, n, 1));
    let done = run(small(), reads, 1);
    // Four tracks with three changes of track: no turn is lost, also with one request at a time.
    assert_eq!(done[399].finished_ns, 4 * 10_000_000 + 3 * 1_000_000 + 4096 + 10_000_000);
    let workload = Workload { read_ppm: 1_000_000, pattern: Pattern::Uniform, ..pages() };
    let random = run(small(), workload.requests().expect("valid").take(400), 1);
    assert!(random[399].finished_ns > 40 * done[399].finished_ns);
}

fn pages() -> Workload {
    Workload::pages(small().page_count())
}

#[test]
fn a_write_that_follows_at_once_loses_a_turn_and_one_that_waits_inside_does_not() {
    let writes = || (0..10).map(|n| request(n, RequestKind::Write, n, 1));
    let one = run(small(), writes(), 1);
    // Page 0 has gone by during the controller's work; each later one costs a turn and its own place.
    assert_eq!(one[9].finished_ns - one[0].finished_ns, 9 * 10_100_000);
    let two = run(small(), writes(), 2);
    assert_eq!(two[9].finished_ns - two[0].finished_ns, 9 * 100_000);
}

#[test]
fn what_read_ahead_has_brought_costs_the_link_alone() {
    let spec = small();
    let mut disk = Disk::new(spec.clone()).expect("a disk that can be");
    let mut done = Vec::new();
    disk.submit(request(0, RequestKind::Read, 0, 1));
    disk.advance(60_000_000, &mut done);
    disk.submit(request(1, RequestKind::Read, 1, 10));
    disk.advance(120_000_000, &mut done);
    assert_eq!(done[1].finished_ns - done[1].submitted_ns, 50_000 + 10 * 4096);
    // The buffer holds 256 pages and was full, so the pages behind them take a seek or a turn.
    disk.submit(request(2, RequestKind::Read, 11, 300));
    while disk.step(&mut done) {}
    assert!(done[2].finished_ns - done[2].submitted_ns > 300 * 100_000);
}

#[test]
fn the_oldest_is_served_first_unless_the_disk_reorders() {
    let reads: Vec<_> = [0, 399_999, 10, 399_989].into_iter().enumerate().collect();
    let reads = || reads.iter().map(|&(n, page)| request(n as u64, RequestKind::Read, page, 1));
    let tokens = |done: &[Done]| done.iter().map(|done| done.request.token).collect::<Vec<_>>();
    let fifo = run(small(), reads(), 4);
    assert_eq!(tokens(&fifo), [0, 1, 2, 3]);
    let nearest = run(DiskSpec { reorders: true, ..small() }, reads(), 4);
    assert_eq!(tokens(&nearest)[..2], [0, 2]);
    assert!(nearest[3].finished_ns < fifo[3].finished_ns);
}

#[test]
fn parts_add_up_and_nothing_is_lost_at_any_depth() {
    for (depth, reorders) in [(1, false), (4, true), (32, false), (32, true)] {
        let workload = Workload { read_ppm: 700_000, request_pages: 3, ..pages() };
        let requests = workload.requests().expect("valid").take(500);
        let done = run(DiskSpec { reorders, ..small() }, requests, depth);
        assert_eq!(done.len(), 500);
        for done in done {
            assert_eq!(done.parts.total_ns(), done.finished_ns - done.submitted_ns);
        }
    }
}

#[test]
fn a_sync_ends_with_the_controllers_work_because_writes_are_on_the_media() {
    let done = run(small(), [request(0, RequestKind::Sync, 0, 0)], 1);
    assert_eq!(done[0].finished_ns, 50_000);
}

#[test]
fn a_disk_that_cannot_be_is_refused_by_its_field() {
    let wrong = [
        ("turns_per_minute", DiskSpec { turns_per_minute: 0, ..small() }),
        ("surfaces", DiskSpec { surfaces: 65, ..small() }),
        ("seek_average_ns", DiskSpec { seek_average_ns: 1, ..small() }),
        ("seek_full_ns", DiskSpec { seek_full_ns: 1, ..small() }),
        ("buffer_bytes", DiskSpec { buffer_bytes: 4095, ..small() }),
        ("link_ps_per_byte", DiskSpec { link_ps_per_byte: 1_000_001, ..small() }),
    ];
    for (field, spec) in wrong {
        let error = Disk::new(spec).expect_err(field).to_string();
        assert!(error.contains(field), "{error}");
    }
}
