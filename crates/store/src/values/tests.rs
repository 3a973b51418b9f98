//! Unit tests of the value log: its encoding, its order of segments, and its recovery.

use std::sync::Arc;

use nandex_device::{Device, MemoryDevice, PageId};
use nandex_sim::SimDevice;

use super::extents::Extents;
use super::format::{LiveSegment, Overwritten, ValuesState};
use super::segments::Segments;
use super::*;
use crate::bytes::Reader;
use crate::space::Extent;
use crate::{Durability, Threads, VolumeOpenOptions, VolumeOptions};

const CONFIG: ValuesConfig =
    ValuesConfig { segment_pages: 6, segments: 6, io_chunk_pages: 2, when_full: WhenFull::Refuse };

fn volume(device: &SimDevice) -> Volume {
    let options = VolumeOptions {
        durability: Durability::Never,
        threads: Threads::Inline,
        ..VolumeOptions::tiny()
    };
    Volume::create(Arc::new(device.clone()), options).unwrap()
}

fn opened(device: &SimDevice) -> Volume {
    let options = VolumeOpenOptions { threads: Threads::Inline, ..VolumeOpenOptions::default() };
    Volume::open(Arc::new(device.clone()), options).unwrap()
}

fn record(number: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at as u8).wrapping_mul(7) ^ number).collect()
}

fn append(log: &ValueLog, number: u8, bytes: usize) -> ValueRef {
    log.append(Purpose::Put, &[&record(number, bytes)]).unwrap().unwrap()
}

#[test]
fn references_and_configurations_read_back_and_are_as_the_format_says() {
    let reference = ValueRef { slot: 1, sequence: 0x0203_0405, offset: 6, bytes: 7 };
    let bytes = reference.encode();
    assert_eq!(bytes, [1, 0, 0, 0, 5, 4, 3, 2, 6, 0, 0, 0, 7, 0, 0, 0]);
    assert_eq!(ValueRef::decode(&bytes), Some(reference));
    assert_eq!(ValueRef::decode(&bytes[1..]), None);
    let bytes = CONFIG.encode();
    assert_eq!(bytes, [1, 1, 6, 0, 0, 0, 6, 0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(bytes.len(), ValuesConfig::BYTES);
    let decode = |bytes: &[u8]| ValuesConfig::decode(&mut Reader::new(bytes, "c", PageId(0)));
    assert_eq!(decode(&bytes).unwrap(), CONFIG);
    for (at, wrong) in [(0, 2), (1, 3), (2, 0), (6, 4), (10, 0), (10, 7)] {
        let mut bytes = bytes.clone();
        bytes[at] = wrong;
        assert!(decode(&bytes).is_err(), "byte {at} as {wrong}");
    }
}

#[test]
fn a_state_reads_back_and_impossible_ones_are_refused() {
    let live = |slot, sequence, pages| LiveSegment {
        slot,
        sequence,
        pages,
        live_bytes: 100,
        live_records: 7,
    };
    let state = ValuesState {
        last_sequence: 9,
        live: vec![live(2, 7, 6), live(0, 9, 3), live(6, 10, 24)],
        free: vec![5, 1, 3, 4, 8, 7],
        overwritten: Overwritten { segments: 1 << 40, records: 3 },
        added: vec![SegmentGroup { segment_pages: 24, segments: 3 }],
    };
    let state = ValuesState { last_sequence: 10, ..state };
    let decode = |state: &ValuesState| {
        let mut bytes = Vec::new();
        state.encode(&mut bytes);
        // A state without additions may end before the counts, as those of earlier versions do.
        let counts_at = bytes.len() - 17 - 4 * state.live.len() - 4 - 8 * state.added.len();
        for len in (0..bytes.len()).filter(|len| !state.added.is_empty() || *len != counts_at) {
            let mut reader = Reader::new(&bytes[..len], "state", PageId(0));
            assert!(ValuesState::decode(&mut reader, &CONFIG).is_err(), "cut after {len}");
        }
        ValuesState::decode(&mut Reader::new(&bytes, "state", PageId(0)), &CONFIG)
    };
    assert_eq!(decode(&state).unwrap(), state);
    let wrong: [fn(&mut ValuesState); 11] = [
        |state| state.added[0].segment_pages = 23,
        |state| state.added[0].segments = 2,
        |state| state.added[0].segments = 0,
        |state| state.added[0].segments = u32::MAX,
        |state| state.added[0].segment_pages = u32::MAX,
        |state| state.last_sequence = 11,
        |state| state.live.swap(0, 1),
        |state| state.live[0].pages = 7,
        |state| state.free[0] = 2,
        |state| state.free[0] = 9,
        |state| state.free.truncate(3),
    ];
    for wrong in wrong {
        let mut bad = state.clone();
        wrong(&mut bad);
        assert!(decode(&bad).is_err(), "{bad:?}");
    }
}

fn fresh() -> Segments {
    let extent = Extent { start: PageId(9), pages: CONFIG.pages() };
    let extents = Extents::new([(SegmentGroup::from(&CONFIG), extent)]);
    Segments::new(extents, &ValuesState::fresh(&CONFIG))
}

#[test]
fn free_segments_are_begun_in_the_order_in_which_a_checkpoint_has_them() {
    let mut segments = fresh();
    let begun: Vec<_> = (0..4).map(|_| segments.begin(1, 0).unwrap().slot).collect();
    assert_eq!(begun, [0, 1, 2, 3]);
    segments.free(2);
    segments.free(0);
    let captured = segments.capture();
    segments.free(1);
    assert_eq!(captured.free, [4, 5, 2, 0]);
    // Between the capture and its being durable, and after that.
    let mut order = vec![segments.begin(1, 0).unwrap().slot];
    segments.committed();
    order.extend((0..3).map(|_| segments.begin(1, 0).unwrap().slot));
    assert_eq!(order, captured.free);
    assert!(segments.begin(1, 0).is_none(), "segment 1 was freed after the capture");
}

#[test]
fn records_are_read_from_ram_and_from_flash_and_none_after_their_segment_is_gone() {
    let device = SimDevice::instant();
    let volume = volume(&device);
    let config = ValuesConfig { when_full: WhenFull::EvictOldest, ..CONFIG };
    let log = ValueLog::create(&volume, "v", config).unwrap();
    let sizes = [0, 1, 4046, 4054, 4055, 9000, log.record_bytes_max() as usize];
    let mut references = Vec::new();
    for (number, bytes) in (0..).zip(sizes) {
        while !log.has_space(bytes as u64) {
            log.make_space(bytes as u64).unwrap();
        }
        let reference = append(&log, number, bytes);
        assert_eq!(log.read(reference).unwrap().unwrap(), record(number, bytes));
        if number % 2 == 0 {
            log.commit().unwrap();
        }
        references.push((reference, number, bytes));
    }
    log.commit().unwrap();
    for &(reference, number, bytes) in &references {
        let found = log.read(reference).unwrap();
        assert_eq!(found.unwrap(), record(number, bytes));
        let start = log.read_start(reference, 10).unwrap().unwrap();
        assert_eq!(start, record(number, bytes.min(10)));
    }
    let too_long = vec![0; log.record_bytes_max() as usize + 1];
    assert!(log.append(Purpose::Put, &[&too_long]).is_err());
    for number in 10..30 {
        while !log.has_space(20_000) {
            log.make_space(20_000).unwrap();
        }
        append(&log, number, 20_000);
    }
    for (reference, ..) in references {
        assert_eq!(log.read(reference).unwrap(), None);
        assert!(!log.holds(reference));
    }
}

#[test]
fn what_was_committed_is_found_without_a_checkpoint_and_the_log_goes_on_behind_it() {
    let device = SimDevice::instant();
    let log = ValueLog::create(&volume(&device), "v", CONFIG).unwrap();
    let mut references = Vec::new();
    for number in 0..9 {
        references.push((append(&log, number, 3000), number));
        log.commit().unwrap();
    }
    append(&log, 77, 3000);
    let before = log.inner.state().segments.head().unwrap();
    let device = SimDevice::instant().with_image(device.survivors(0));
    let log = ValueLog::open(&opened(&device), "v").unwrap();
    let head = log.inner.state().segments.head().unwrap();
    assert_eq!((head.sequence, head.pages), (before.sequence, before.pages));
    assert_eq!(head.sequence, 2, "nine pages fill one segment of six");
    references.push((append(&log, 9, 100), 9));
    log.commit().unwrap();
    for (reference, number) in references {
        let bytes = if number == 9 { 100 } else { 3000 };
        assert_eq!(log.read(reference).unwrap().unwrap(), record(number, bytes));
    }
}

/// Puts used the rest of the segment that cleaning had begun; after crashes in the middle of it no segment was left for
/// copies, and a log full of garbage rejected every record.
#[test]
fn what_is_kept_for_copies_is_not_taken_by_puts() {
    let device = SimDevice::instant();
    let log = ValueLog::create(&volume(&device), "v", CONFIG).unwrap();
    while log.has_space(9000) {
        append(&log, 1, 9000);
    }
    let fits = |purpose| log.append(purpose, &[&record(2, 9000)]).unwrap().is_some();
    assert_eq!(log.stats().free_segments, 2);
    assert!(!fits(Purpose::Put) && fits(Purpose::Copy));
    assert_eq!(log.stats().free_segments, 1);
    assert!(!log.has_space(10) && !fits(Purpose::Put) && fits(Purpose::Copy));
    let oldest = log.inner.state().segments.oldest().unwrap();
    log.give_back(oldest);
    assert!(log.make_space(10).unwrap());
    assert_eq!(log.stats().free_segments, 2);
    assert!(log.has_space(10) && log.append(Purpose::Put, &[b"small"]).unwrap().is_some());
}

#[test]
fn gaps_that_a_cut_has_left_are_closed_and_passed_over() {
    let mut gaps = 0;
    for seed in 2..60 {
        let device = SimDevice::instant();
        let config = ValuesConfig { segment_pages: 12, io_chunk_pages: 6, ..CONFIG };
        let log = ValueLog::create(&volume(&device), "v", config).unwrap();
        let first = append(&log, 1, 5000);
        log.commit().unwrap();
        for number in 2..8 {
            append(&log, number, 2500);
        }
        // The write is carried out, the sync is not.
        device.cut_after(device.operations() + 1);
        log.commit().unwrap_err();
        let device = SimDevice::instant().with_image(device.survivors(seed));
        let log = ValueLog::open(&opened(&device), "v").unwrap();
        let head = log.inner.state().segments.head().unwrap();
        assert!((2..=6).contains(&head.pages), "{head:?}");
        gaps += u64::from(log.stats().written_bytes > 0);
        let last = append(&log, 9, 5000);
        log.commit().unwrap();
        let head = log.inner.state().segments.head().unwrap();
        let mut seen = Vec::new();
        log.visit(head, &mut |reference, bytes| {
            seen.push(reference);
            let number = bytes[0];
            assert_eq!(bytes, record(number, bytes.len()), "survivors {seed}");
            Ok(())
        })
        .unwrap();
        assert_eq!((seen.first(), seen.last()), (Some(&first), Some(&last)));
        assert_eq!(log.read(first).unwrap().unwrap(), record(1, 5000));
        assert_eq!(log.read(last).unwrap().unwrap(), record(9, 5000));
    }
    assert!(gaps > 5, "some seeds leave gaps: {gaps}");
}

#[test]
fn a_reference_into_nothing_is_damage_and_not_an_answer() {
    let device = SimDevice::instant();
    let log = ValueLog::create(&volume(&device), "v", CONFIG).unwrap();
    let reference = append(&log, 1, 6000);
    log.commit().unwrap();
    let wrong = [
        ValueRef { offset: reference.offset + 1, bytes: 5990, ..reference },
        ValueRef { bytes: reference.bytes - 1, ..reference },
        ValueRef { bytes: u32::MAX, ..reference },
        ValueRef { offset: u32::MAX, ..reference },
    ];
    for wrong in wrong {
        let error = log.read(wrong).unwrap_err().to_string();
        assert!(error.contains("record of a value log"), "{error}");
    }
    assert_eq!(log.read(ValueRef { slot: 100, ..reference }).unwrap(), None);
    assert_eq!(log.read(ValueRef { sequence: 9, ..reference }).unwrap(), None);
    assert!(device.page_count() > 0);
}

#[test]
fn a_state_of_an_earlier_version_has_counted_nothing() {
    let mut bytes = Vec::new();
    let known = LiveSegment { slot: 0, sequence: 1, pages: 2, live_bytes: 9, live_records: 5 };
    let (live, free) = (vec![known], (1..6).collect());
    let overwritten = Overwritten { segments: 4, records: 9 };
    let state = ValuesState { last_sequence: 1, live, free, overwritten, added: Vec::new() };
    state.encode(&mut bytes);
    bytes.truncate(1 + 8 + 4 + 24 + 4 + 5 * 4);
    let found = ValuesState::decode(&mut Reader::new(&bytes, "state", PageId(0)), &CONFIG).unwrap();
    let live = vec![LiveSegment { live_records: 0, ..known }];
    assert_eq!(found, ValuesState { live, overwritten: Overwritten::default(), ..state });
}

const GROWING: ValuesConfig = ValuesConfig { when_full: WhenFull::Grow, ..CONFIG };

/// Appends a record, after making space for it.
fn append_always(log: &ValueLog, number: u8, bytes: usize) -> ValueRef {
    while !log.has_space(bytes as u64) {
        assert!(log.make_space(bytes as u64).unwrap());
    }
    append(log, number, bytes)
}

/// Returns logs that grow: one with several writes in a segment, and one with writes that are longer than its first
/// segments.
fn growing() -> [ValuesConfig; 2] {
    [GROWING, ValuesConfig { io_chunk_pages: 40, ..GROWING }]
}

#[test]
fn a_log_that_grows_takes_everything_and_a_longer_record_makes_longer_segments() {
    for config in growing() {
        let device = SimDevice::instant();
        let log = ValueLog::create(&volume(&device), "v", config).unwrap();
        let mut references = Vec::new();
        for number in 0..200 {
            references.push((append_always(&log, number, 9000), number, 9000));
        }
        let stats = log.stats();
        assert!(stats.growths > 3 && stats.cleaned_segments == 0, "{stats:?}");
        for (number, bytes) in [(200, 25_000), (201, 70_000), (202, 100), (203, 3_000_000)] {
            references.push((append_always(&log, number, bytes), number, bytes));
        }
        log.commit().unwrap();
        assert!(log.inner.state().segments.extents().longest_pages() >= 768);
        drop(log);
        let log = ValueLog::open(&opened(&device), "v").unwrap();
        for (reference, number, bytes) in references {
            assert_eq!(log.read(reference).unwrap().unwrap(), record(number, bytes));
        }
        let added = log.inner.state().segments.extents().added().len() as u64;
        assert_eq!(log.stats().growths, added);
    }
}

/// Segments of several lengths are not begun in the order of the free ones, and recovery finds them nevertheless.
#[test]
fn segments_of_several_lengths_that_were_begun_since_the_checkpoint_are_found() {
    let device = SimDevice::instant();
    let log = ValueLog::create(&volume(&device), "v", GROWING).unwrap();
    append_always(&log, 0, 70_000);
    assert!(log.make_space(90_000).unwrap(), "one long segment more than the reserve");
    assert_eq!(log.inner.state().segments.next().len(), 2, "free ones of two lengths");
    log.inner.volume.checkpoint().unwrap();
    let before = log.inner.state().segments.head().unwrap();
    let mut references = Vec::new();
    for (number, bytes) in [(1, 20_000), (2, 20_000), (3, 60_000), (4, 20_000), (5, 20_000)] {
        references.push((append(&log, number, bytes), number, bytes));
        log.commit().unwrap();
    }
    let slots: Vec<_> = references.iter().map(|(reference, ..)| reference.slot).collect();
    assert_eq!(slots, [6, 0, 7, 7, 1]);
    let after = log.inner.state().segments.head().unwrap();
    assert!(after.sequence > before.sequence + 1);
    let device = SimDevice::instant().with_image(device.survivors(0));
    let log = ValueLog::open(&opened(&device), "v").unwrap();
    let head = log.inner.state().segments.head().unwrap();
    assert_eq!((head.sequence, head.slot), (after.sequence, after.slot));
    for (reference, number, bytes) in references {
        assert_eq!(log.read(reference).unwrap().unwrap(), record(number, bytes));
    }
}

#[test]
fn a_log_that_grows_is_cleaned_first_where_half_of_a_segment_is_garbage() {
    let device = SimDevice::instant();
    let log = ValueLog::create(&volume(&device), "v", GROWING).unwrap();
    let mut references = Vec::new();
    while log.has_space(9000) {
        references.push(append_always(&log, 1, 9000));
    }
    // Two records of 9,000 bytes are in a segment of 24,372.
    let segments = log.segments();
    log.note_dead(references[2]);
    assert!(!log.make_space(9000).unwrap(), "a segment is worth cleaning");
    assert!(log.worth_cleaning(9000).is_some_and(|it| it.slot == references[2].slot));
    assert_eq!(log.segments(), segments);
    let long = 3 * 24_372;
    assert!(log.make_space(long).unwrap() && log.segments() > segments, "none of them takes that");
}

#[test]
fn a_device_without_space_stops_growth_and_says_so() {
    let options = VolumeOptions { threads: Threads::Inline, ..VolumeOptions::tiny() };
    let device = MemoryDevice::with_limit(240);
    let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
    let log = ValueLog::create(&volume, "v", GROWING).unwrap();
    let mut references = Vec::new();
    while log.has_space(9000) || log.make_space(9000).unwrap() {
        references.push((append_always(&log, 1, 9000), 1));
    }
    assert!(log.growth_stopped().unwrap().contains("limited to 240 pages"));
    assert!(log.stats().growths > 1, "smaller growths were tried");
    let free_pages = volume.stats().free_pages;
    assert!((24..64 + 2 * 6).contains(&free_pages), "{free_pages} pages are left for others");
    log.commit().unwrap();
    for (reference, number) in references {
        assert_eq!(log.read(reference).unwrap().unwrap(), record(number, 9000));
    }
}

/// A record in an extent that no durable checkpoint names would be lost in a crash.
#[test]
fn segments_that_were_added_are_not_written_before_a_checkpoint_names_them() {
    let device = SimDevice::instant();
    let volume = volume(&device);
    let log = ValueLog::create(&volume, "v", GROWING).unwrap();
    while log.has_space(9000) {
        append_always(&log, 1, 9000);
    }
    assert!(log.inner.grow(9008, Growth::RatherClean).unwrap() && log.stats().growths == 1);
    assert!(!log.has_space(9000) && log.append(Purpose::Put, &[&[1; 9000]]).unwrap().is_none());
    let before = SimDevice::instant().with_image(device.survivors(0));
    volume.checkpoint().unwrap();
    assert!(log.has_space(9000) && log.append(Purpose::Put, &[&[1; 9000]]).unwrap().is_some());
    // A crash before the checkpoint leaves the log as it was, and it grows again.
    let log = ValueLog::open(&opened(&before), "v").unwrap();
    assert_eq!((log.stats().growths, log.segments()), (0, 6));
    assert!(log.make_space(9000).unwrap() && log.stats().growths == 1);
}
