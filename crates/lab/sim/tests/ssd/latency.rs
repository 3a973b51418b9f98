//! Single requests and small groups of them, whose times can be computed by hand.

use nandex_sim::spec::{Level, Mapping, Spec};
use nandex_sim::{Done, Fill, Model, Parts, Request, RequestKind};

use crate::support::ssd;

const READ_NS: u64 = 50_000;
const PROGRAM_NS: u64 = 200_000;
const ERASE_NS: u64 = 1_500_000;
/// 4096 bytes at 10 ns.
const TRANSFER_NS: u64 = 40_960;

/// Submits requests all at once and returns their ends, in the order of their tokens.
fn at_once(spec: Spec, requests: &[(RequestKind, u64, u32)]) -> Vec<Done> {
    let mut ssd = ssd(spec, Fill::Sequential);
    let mut done = Vec::new();
    for (token, &(kind, page, pages)) in (0..).zip(requests) {
        ssd.submit(Request { token, kind, page, pages });
    }
    while ssd.step(&mut done) {}
    done.sort_by_key(|done| done.request.token);
    done
}

fn finished(done: &[Done]) -> Vec<u64> {
    done.iter().map(|done| done.finished_ns).collect()
}

/// Returns one die with `planes` planes on one channel.
fn die(planes: u32) -> Spec {
    let mut spec = Spec::plain();
    (spec.flash.channels, spec.flash.dies, spec.flash.planes) = (1, 1, planes);
    spec
}

#[test]
fn a_lone_read_takes_each_part_once() {
    let mut spec = Spec::plain();
    spec.host.controller_ns = 1000;
    spec.host.read_latency_ns = 7000;
    spec.host.link_ps_per_byte = 500;
    spec.timing.command_ns = 300;
    let done = at_once(spec, &[(RequestKind::Read, 5, 1)]);
    let host_ns = 1000 + 7000 + 2048;
    let bus_ns = 300 + TRANSFER_NS;
    let parts = Parts { host_ns, bus_ns, array_ns: READ_NS, ..Parts::default() };
    assert_eq!(done[0].parts, parts);
}

#[test]
fn a_lone_write_is_transferred_and_programmed() {
    let mut spec = Spec::plain();
    spec.host.write_latency_ns = 9000;
    spec.host.link_ps_per_byte = 500;
    let done = at_once(spec, &[(RequestKind::Write, 5, 1)]);
    let (host_ns, bus_ns, array_ns) = (9000 + 2048, TRANSFER_NS, PROGRAM_NS);
    assert_eq!(done[0].parts, Parts { host_ns, bus_ns, array_ns, ..Parts::default() });
}

#[test]
fn a_write_into_the_buffer_ends_at_once_and_a_sync_waits_for_the_flash() {
    let mut spec = Spec::plain();
    (spec.host.buffer_bytes, spec.host.link_ps_per_byte) = (1 << 20, 500);
    let requests = [(RequestKind::Write, 5, 1)];
    assert_eq!(finished(&at_once(spec.clone(), &requests)), [2048]);
    let mut ssd = ssd(spec, Fill::Sequential);
    let mut done = Vec::new();
    ssd.submit(Request { token: 0, kind: RequestKind::Write, page: 5, pages: 1 });
    while done.is_empty() {
        ssd.step(&mut done);
    }
    ssd.submit(Request { token: 1, kind: RequestKind::Sync, page: 0, pages: 0 });
    while ssd.step(&mut done) {}
    assert_eq!(done[1].finished_ns, 2048 + TRANSFER_NS + PROGRAM_NS);
}

#[test]
fn two_dies_on_a_bus_read_together_and_cross_it_one_after_the_other() {
    let mut spec = Spec::plain();
    (spec.flash.channels, spec.flash.dies, spec.flash.planes) = (1, 2, 1);
    // Pages 0 and 1 are on different dies.
    let done = at_once(spec, &[(RequestKind::Read, 0, 1), (RequestKind::Read, 1, 1)]);
    assert_eq!(finished(&done), [READ_NS + TRANSFER_NS, READ_NS + 2 * TRANSFER_NS]);
    assert_eq!(done[1].parts.queue_ns, TRANSFER_NS);
}

#[test]
fn packages_that_are_not_interleaved_serve_one_read_per_channel() {
    let mut spec = Spec::plain();
    (spec.flash.channels, spec.flash.dies, spec.flash.planes) = (1, 2, 1);
    spec.parallel.unit = Level::Channel;
    let done = at_once(spec, &[(RequestKind::Read, 0, 1), (RequestKind::Read, 1, 1)]);
    assert_eq!(finished(&done), [READ_NS + TRANSFER_NS, 2 * (READ_NS + TRANSFER_NS)]);
}

#[test]
fn a_die_reads_two_planes_in_one_array_time_where_it_has_two_plane_commands() {
    let reads = [(RequestKind::Read, 0, 1), (RequestKind::Read, 1, 1), (RequestKind::Read, 2, 1)];
    let one = READ_NS + TRANSFER_NS;
    assert_eq!(finished(&at_once(die(2), &reads)), [one, 2 * one, 3 * one]);
    let mut spec = die(2);
    spec.parallel.two_plane = true;
    // The first is alone when it starts; the others wait, and share the array afterwards.
    let both = 2 * READ_NS + 3 * TRANSFER_NS;
    assert_eq!(finished(&at_once(spec, &reads)), [one, both, both]);
}

#[test]
fn two_planes_are_programmed_in_one_array_time() {
    let mut spec = die(2);
    spec.parallel.two_plane = true;
    let writes = [0, 1, 2].map(|page| (RequestKind::Write, page, 1));
    let one = TRANSFER_NS + PROGRAM_NS;
    let both = 3 * TRANSFER_NS + 2 * PROGRAM_NS;
    assert_eq!(finished(&at_once(spec, &writes)), [one, both, both]);
}

#[test]
fn a_pipelined_plane_reads_the_next_page_while_the_last_one_is_on_the_bus() {
    let mut spec = die(1);
    spec.parallel.pipelined = true;
    let reads = [0, 1, 2, 3].map(|page| (RequestKind::Read, page, 1));
    let times: Vec<u64> = (1..=4).map(|k| k * READ_NS + TRANSFER_NS).collect();
    assert_eq!(finished(&at_once(spec.clone(), &reads)), times);
    // If the bus is slower than the array, the bus sets the pace.
    spec.timing.transfer_ps_per_byte = 100_000;
    let slow = 409_600;
    let times: Vec<u64> = (1..=4).map(|k| READ_NS + k * slow).collect();
    assert_eq!(finished(&at_once(spec, &reads)), times);
}

#[test]
fn a_pipelined_plane_takes_the_next_page_while_it_programs_the_last() {
    let mut spec = die(1);
    spec.parallel.pipelined = true;
    let writes = [0, 1, 2].map(|page| (RequestKind::Write, page, 1));
    let times: Vec<u64> = (1..=3).map(|k| TRANSFER_NS + k * PROGRAM_NS).collect();
    assert_eq!(finished(&at_once(spec, &writes)), times);
}

#[test]
fn a_large_read_uses_all_channels_and_ends_with_its_last_page() {
    let mut spec = Spec::plain();
    (spec.flash.channels, spec.flash.dies, spec.flash.planes) = (4, 1, 1);
    let done = at_once(spec, &[(RequestKind::Read, 0, 8)]);
    assert_eq!(finished(&done), [2 * (READ_NS + TRANSFER_NS)]);
}

/// Uses eight blocks, one of them spare at the moment: the write that opens the last free block waits while a
/// block without valid pages is erased.
#[test]
fn a_read_behind_a_cleaning_says_how_long_the_cleaning_made_it_wait() {
    let mut spec = die(1);
    (spec.flash.blocks, spec.flash.pages) = (8, 4);
    (spec.ftl.spare_permille, spec.ftl.clean_at_permille) = (400, 130);
    spec.ftl.mapping = Mapping::Lba;
    let mut ssd = ssd(spec, Fill::Sequential);
    let mut done = Vec::new();
    let mut token = 0;
    let mut cleans = 0;
    while cleans == 0 {
        let write = Request { token, kind: RequestKind::Write, page: token % 4, pages: 1 };
        let read = Request { token: token + 1, kind: RequestKind::Read, page: 8, pages: 1 };
        ssd.submit(write);
        ssd.submit(read);
        done.clear();
        while ssd.step(&mut done) {}
        token += 2;
        cleans = ssd.counters().ftl.cleans;
    }
    let [write, read] = done[..] else { panic!("two requests end: {done:?}") };
    assert_eq!(write.parts.cleaning_ns, ERASE_NS);
    let served = TRANSFER_NS + PROGRAM_NS;
    assert_eq!((read.parts.cleaning_ns, read.parts.queue_ns), (ERASE_NS, served));
}
