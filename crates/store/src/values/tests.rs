//! Unit tests of the value log: its bytes, its order of segments, and what recovery finds.

use std::sync::Arc;

use nandex_device::{Device, PageId};
use nandex_sim::SimDevice;

use super::format::{LiveSegment, ValuesState};
use super::segments::Segments;
use super::*;
use crate::bytes::Reader;
use crate::{Durability, OpenOptions, Threads, VolumeOptions};

const CONFIG: ValuesConfig =
    ValuesConfig { segment_pages: 6, segments: 6, io_chunk_pages: 2, when_full: WhenFull::Keep };

fn volume(device: &SimDevice) -> Volume {
    let options = VolumeOptions {
        durability: Durability::Never,
        threads: Threads::Inline,
        ..VolumeOptions::tiny()
    };
    Volume::create(Arc::new(device.clone()), options).unwrap()
}

fn opened(device: &SimDevice) -> Volume {
    let options = OpenOptions { threads: Threads::Inline, ..OpenOptions::default() };
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
    for (at, wrong) in [(0, 2), (1, 2), (2, 0), (6, 4), (10, 0), (10, 7)] {
        let mut bytes = bytes.clone();
        bytes[at] = wrong;
        assert!(decode(&bytes).is_err(), "byte {at} as {wrong}");
    }
}

#[test]
fn a_state_reads_back_and_impossible_ones_are_refused() {
    let live = |slot, sequence, pages| LiveSegment { slot, sequence, pages, live_bytes: 100 };
    let state = ValuesState {
        last_sequence: 9,
        live: vec![live(2, 7, 6), live(0, 9, 3)],
        free: vec![5, 1, 3, 4],
    };
    let decode = |state: &ValuesState| {
        let mut bytes = Vec::new();
        state.encode(&mut bytes);
        for len in 0..bytes.len() {
            let mut reader = Reader::new(&bytes[..len], "state", PageId(0));
            assert!(ValuesState::decode(&mut reader, &CONFIG).is_err(), "cut after {len}");
        }
        ValuesState::decode(&mut Reader::new(&bytes, "state", PageId(0)), &CONFIG)
    };
    assert_eq!(decode(&state).unwrap(), state);
    let wrong: [fn(&mut ValuesState); 6] = [
        |state| state.last_sequence = 10,
        |state| state.live.swap(0, 1),
        |state| state.live[0].pages = 7,
        |state| state.free[0] = 2,
        |state| state.free[0] = 6,
        |state| state.free.truncate(3),
    ];
    for wrong in wrong {
        let mut bad = state.clone();
        wrong(&mut bad);
        assert!(decode(&bad).is_err(), "{bad:?}");
    }
}

#[test]
fn free_segments_are_begun_in_the_order_in_which_a_checkpoint_has_them() {
    let mut segments = Segments::new(&CONFIG, &ValuesState::fresh(&CONFIG));
    let begun: Vec<_> = (0..4).map(|_| segments.begin(0).unwrap().slot).collect();
    assert_eq!(begun, [0, 1, 2, 3]);
    segments.free(2);
    segments.free(0);
    let captured = segments.capture();
    segments.free(1);
    assert_eq!(captured.free, [4, 5, 2, 0]);
    // Between the capture and its being durable, and after that.
    let mut order = vec![segments.begin(0).unwrap().slot];
    segments.committed();
    order.extend((0..3).map(|_| segments.begin(0).unwrap().slot));
    assert_eq!(order, captured.free);
    assert!(segments.begin(0).is_none(), "segment 1 was freed after the capture");
}

#[test]
fn records_are_read_from_ram_and_from_flash_and_none_after_their_segment_is_gone() {
    let device = SimDevice::instant();
    let volume = volume(&device);
    let config = ValuesConfig { when_full: WhenFull::Overwrite, ..CONFIG };
    let log = ValueLog::create(&volume, "v", config).unwrap();
    let sizes = [0, 1, 4046, 4054, 4055, 9000, log.record_bytes_max() as usize];
    let mut references = Vec::new();
    for (number, bytes) in (0..).zip(sizes) {
        while !log.has_space(bytes as u64) {
            log.make_space().unwrap();
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
            log.make_space().unwrap();
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

/// Puts used the rest of the segment that cleaning had begun; after crashes in the middle of it no segment was
/// left for copies, and a log full of garbage refused everything.
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
    assert!(log.make_space().unwrap());
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
