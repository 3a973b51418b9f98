//! Torn tails end the log; damage and the remains of earlier sessions are never mistaken for the log.

use super::*;
use crate::Error;

/// Returns the byte of the device that holds a place in the log.
fn byte_of(region: &LogRegion, lsn: Lsn) -> usize {
    (FIRST_PAGE * 4096 + lsn.0 % region.bytes()) as usize
}

/// Returns the anchor of a superblock that knows of nothing.
fn old_anchor() -> LogAnchor {
    LogAnchor::default()
}

/// Appends entries 0..5, each in its own durable block, and then one block for each of 5..8 in one sync.
fn half_synced(device: &Probe) -> (LogRegion, Log, Vec<Lsn>) {
    let region = region(device, 32, 1);
    let log = start(&region, Durability::Never);
    let mut places = append_synced(&log, 0..5);
    for number in 5..8 {
        places.push(log.append(StructureId(1), &[&numbered(number, 4000)]).unwrap());
    }
    log.sync().unwrap();
    (region, log, places)
}

fn assert_corrupt(result: Result<(LogEnd, Vec<Entry>)>, page: u64) {
    match result {
        Err(Error::Corrupt { what: "log block", page: found, .. }) => {
            assert_eq!(found, PageId(FIRST_PAGE + page));
        }
        other => panic!("expected damage at page {page}, got {other:?}"),
    }
}

#[test]
fn a_torn_tail_ends_the_log() {
    let device = Probe::default();
    let (region, _log, places) = half_synced(&device);
    for (torn, &place) in places.iter().enumerate().skip(5) {
        for (from, bytes) in [(0, 1), (0, 4096), (512, 512), (4095, 1), (64, 8)] {
            let mut image = device.image();
            let at = byte_of(&region, place) + from;
            image[at..at + bytes].iter_mut().for_each(|byte| *byte ^= 0x5a);
            let image = on_image(&region, image);
            let (end, entries) = entries_from(&image, old_anchor()).unwrap();
            assert_eq!(numbers(&entries), (0..torn as u64).collect::<Vec<_>>());
            assert_eq!(end.next, place);
        }
    }
}

#[test]
fn a_hole_before_a_block_that_knew_it_durable_is_damage() {
    let device = Probe::default();
    let (region, _log, places) = half_synced(&device);
    for (hole, &place) in places.iter().enumerate().take(5) {
        for fill in [0, 0xff] {
            let mut image = device.image();
            let at = byte_of(&region, place);
            image[at..at + 4096].fill(fill);
            assert_corrupt(entries_from(&on_image(&region, image), old_anchor()), hole as u64);
        }
    }
}

#[test]
fn a_log_that_ends_before_the_superblocks_word_is_damaged() {
    let device = Probe::default();
    let (region, log, places) = half_synced(&device);
    for (hole, &place) in places.iter().enumerate().skip(5) {
        let mut image = device.image();
        image[byte_of(&region, place)] ^= 1;
        let found = entries_from(&on_image(&region, image), log.anchor(Lsn(0)));
        assert_corrupt(found, hole as u64);
    }
}

#[test]
fn damage_is_told_across_the_wrap() {
    let (device, region, log) = fresh(9, 2, Durability::Never);
    let mut places = append_synced(&log, 0..6);
    log.release(places[3]);
    places.extend(append_synced(&log, 6..10));
    assert_eq!(places[8].0, region.bytes(), "one page is skipped before the lap's end");
    let anchor = LogAnchor { tail: places[3], ..old_anchor() };
    let (_, entries) = entries_from(&region, anchor).unwrap();
    assert_eq!(numbers(&entries), [3, 4, 5, 6, 7, 8, 9]);
    let mut image = device.image();
    image[byte_of(&region, places[7]) + 100] ^= 1;
    assert_corrupt(entries_from(&on_image(&region, image), anchor), 7);
}

/// A crash tears block A and leaves block B behind it whole. The next session writes over A; B is still there, whole,
/// at its place, and must never be read.
#[test]
fn blocks_of_a_session_that_crashed_are_not_read_again() {
    let device = Probe::default();
    let (region, log, places) = half_synced(&device);
    let mut image = device.image();
    image[byte_of(&region, places[5]) + 200] ^= 1;
    drop(log);
    let torn = on_image(&region, image);
    let (log, entries) = reopen(&torn, old_anchor());
    assert_eq!(numbers(&entries), [0, 1, 2, 3, 4]);
    assert_eq!(append_synced(&log, 100..101), [places[5]]);
    assert_eq!(log.next_lsn(), places[6], "the stale block is where the next one goes");
    let (end, entries) = entries_from(&torn, old_anchor()).unwrap();
    assert_eq!(numbers(&entries), [0, 1, 2, 3, 4, 100]);
    assert_eq!((end.next, end.epoch), (places[6], 2));
    let (_, entries) = entries_from(&torn, log.anchor(places[6])).unwrap();
    assert_eq!(entries, [], "not even as the first block, which has no predecessor");
    append_synced(&log, 101..102);
    let (_, entries) = entries_from(&torn, log.anchor(places[6])).unwrap();
    assert_eq!(numbers(&entries), [101]);
}

/// Starts a session at an end that no replay returned.
fn start_forged(region: &LogRegion, epoch: u64, end: LogEnd) -> Log {
    let options = LogOptions {
        region: region.clone(),
        volume_id: VOLUME,
        epoch,
        durability: Durability::Never,
        threads: Threads::Background,
    };
    Log::start(options, LogEnd { epoch: 0, ..end }, Lsn(0), Arc::default()).unwrap()
}

#[test]
fn blocks_of_an_earlier_session_are_refused_even_when_their_chain_fits() {
    let region = region(&Probe::default(), 32, 1);
    append_synced(&start_forged(&region, 5, LogEnd::default()), 0..2);
    let (end, _) = entries_from(&region, old_anchor()).unwrap();
    append_synced(&start_forged(&region, 4, end), 2..3);
    let (end, entries) = entries_from(&region, old_anchor()).unwrap();
    assert_eq!((numbers(&entries), end.epoch), (vec![0, 1], 5));
}

#[test]
fn blocks_of_a_session_with_the_same_number_are_refused_by_their_chain() {
    let (_, region, log) = fresh(32, 1, Durability::Never);
    for number in 0..6 {
        log.append(StructureId(1), &[&numbered(number, 4000)]).unwrap();
    }
    log.close().unwrap();
    append_synced(&start_forged(&region, 1, LogEnd::default()), 100..101);
    let (_, entries) = entries_from(&region, old_anchor()).unwrap();
    assert_eq!(numbers(&entries), [100]);
}

/// A session that drops the log behind some damage continues before it; the durability that the old session recorded
/// for places behind it is no proof against the new one.
#[test]
fn a_log_that_was_cut_short_on_purpose_is_whole() {
    let (_, region, log) = fresh(32, 1, Durability::Never);
    append_synced(&log, 0..2);
    let (end, _) = entries_from(&region, old_anchor()).unwrap();
    append_synced(&log, 2..8);
    drop(log);
    append_synced(&start_forged(&region, 2, end), 100..101);
    let (_, entries) = entries_from(&region, old_anchor()).unwrap();
    assert_eq!(numbers(&entries), [0, 1, 100]);
}

#[test]
fn a_log_that_was_emptied_does_not_read_its_last_lap() {
    let (_, region, log) = fresh(8, 1, Durability::Never);
    append_synced(&log, 0..8);
    let anchor = log.anchor(log.next_lsn());
    assert_eq!(anchor.tail, Lsn(region.bytes()), "the tail is the first lap's first block");
    log.release(anchor.tail);
    drop(log);
    for _ in 0..3 {
        let (log, entries) = reopen(&region, anchor);
        assert_eq!((entries, log.next_lsn()), (vec![], anchor.tail));
    }
}

#[test]
fn another_volumes_log_is_not_read() {
    let region = region(&Probe::default(), 16, 1);
    append_synced(&start(&region, Durability::Never), 0..3);
    let end = replay_log(&region, VOLUME + 1, old_anchor(), &mut |_, _, _, _| {
        panic!("a block of another volume was visited")
    });
    assert_eq!(end.unwrap().next, Lsn(0));
}

#[test]
fn every_power_cut_keeps_what_was_synced_and_gives_whole_entries_in_order() {
    let (device, region, log) = fresh(24, 2, Durability::Never);
    append_synced(&log, 0..4);
    let durable = device.durable_image();
    for number in 4..60 {
        log.append(StructureId(1), &[&numbered(number, 1000)]).unwrap();
    }
    log.sync().unwrap();
    let whole = device.image();
    let pages = whole.len() / PAGE_BYTES;
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..500 {
        let mut image = durable.clone();
        for sector in 0..pages * 8 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            if random >> 59 != 0 {
                let at = sector * 512..(sector + 1) * 512;
                image[at.clone()].copy_from_slice(&whole[at]);
            }
        }
        let (_, entries) = entries_from(&on_image(&region, image), old_anchor()).unwrap();
        assert!(entries.len() >= 4);
        assert_eq!(numbers(&entries), (0..entries.len() as u64).collect::<Vec<_>>());
    }
}
