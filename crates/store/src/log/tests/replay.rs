//! Appended entries are read back, in order and whole, through wraps and restarts.

use proptest::prelude::*;

use super::*;
use crate::Error;

#[test]
fn the_pages_around_the_region_stay_untouched() {
    let (device, _, log) = fresh(9, 2, Durability::Never);
    for round in 0..20 {
        append_synced(&log, round..round + 1);
        log.release(log.next_lsn());
    }
    let image = device.image();
    let first = FIRST_PAGE as usize * PAGE_BYTES;
    assert!(image[..first].iter().all(|&byte| byte == 0));
    assert!(image[image.len() - PAGE_BYTES..].iter().all(|&byte| byte == 0));
    assert!(image[first..first + 64].iter().any(|&byte| byte != 0));
}

#[test]
fn a_stream_of_small_entries_costs_their_bytes_and_little_more() {
    let (_, _, log) = fresh(64, 16, Durability::Never);
    for number in 0..10_000 {
        log.append(StructureId(1), &[&numbered(number, 17)]).unwrap();
    }
    log.sync().unwrap();
    assert_eq!(log.stats().payload_bytes, 170_000);
    assert!(log.stats().bytes_written < 175_000, "{}", log.stats().bytes_written);
    assert!(log.stats().ram_bytes <= 8 * 16 * PAGE_BYTES as u64);
}

#[test]
fn padding_is_zero_though_buffers_are_used_again() {
    let (device, _, log) = fresh(64, 1, Durability::Never);
    for round in 0..25 {
        log.append(StructureId(1), &[&vec![0xff; 4000 - round * 20]]).unwrap();
    }
    log.sync().unwrap();
    let image = device.image();
    let first = FIRST_PAGE as usize;
    for block in image.chunks_exact(PAGE_BYTES).skip(first).take(25) {
        let payload_bytes = crate::bytes::get_u32(block, 12) as usize;
        assert!((8 + 3500..8 + 4001).contains(&payload_bytes));
        assert!(block[64 + payload_bytes..].iter().all(|&byte| byte == 0));
    }
}

#[test]
fn an_append_tells_the_block_that_holds_the_entry() {
    let (_, region, log) = fresh(64, 1, Durability::Never);
    let mut places = Vec::new();
    for number in 0..300 {
        let lsn_min = log.next_lsn();
        let lsn = log.append(StructureId(1), &[&numbered(number, 60)]).unwrap();
        assert!(lsn >= lsn_min);
        places.push(lsn);
    }
    log.sync().unwrap();
    let mut found = Vec::new();
    replay_log(&region, VOLUME, log.anchor(Lsn(0)), &mut |lsn, _, entry_bytes, entries| {
        found.extend(std::iter::repeat_n(lsn, entries.len() / entry_bytes));
        Ok(())
    })
    .unwrap();
    assert_eq!(found, places);
    assert!(places.last() > places.first());
}

#[test]
fn append_many_spans_blocks_and_tells_the_first() {
    let (_, region, log) = fresh(64, 1, Durability::Never);
    let first = log.append(StructureId(1), &[&numbered(0, 10)]).unwrap();
    let many: Vec<u8> = (1..1001).flat_map(|number| numbered(number, 10)).collect();
    assert_eq!(log.append_many(StructureId(1), 10, &many).unwrap(), first);
    assert!(log.next_lsn() > first);
    log.sync().unwrap();
    let (_, entries) = entries_from(&region, log.anchor(Lsn(0))).unwrap();
    assert_eq!(numbers(&entries), (0..1001).collect::<Vec<_>>());
}

#[test]
fn the_tail_decides_where_reading_starts() {
    let (_, region, log) = fresh(32, 2, Durability::Never);
    let places = append_synced(&log, 0..9);
    let (_, entries) = entries_from(&region, log.anchor(places[4])).unwrap();
    assert_eq!(numbers(&entries), [4, 5, 6, 7, 8]);
    let (end, entries) = entries_from(&region, log.anchor(log.next_lsn())).unwrap();
    assert_eq!((end.next, entries), (log.next_lsn(), vec![]));
}

#[test]
fn the_log_goes_round_many_laps() {
    for block_pages in [1, 2, 3] {
        let region = region(&Probe::default(), 17, block_pages);
        let log = start(&region, Durability::Never);
        let mut kept = std::collections::VecDeque::new();
        for number in 0..2000 {
            let entry = numbered(number, 8 + (number as usize * 37) % 900);
            kept.push_back(log.append(StructureId(1), &[&entry]).unwrap());
            if number % 3 == 0 {
                log.sync().unwrap();
            }
            while kept.len() > 6 {
                kept.pop_front();
            }
            log.release(kept[0]);
        }
        log.sync().unwrap();
        assert!(log.next_lsn().0 > 20 * region.bytes());
        let (end, entries) = entries_from(&region, log.anchor(kept[0])).unwrap();
        assert_eq!(end.next, log.next_lsn());
        assert!(numbers(&entries).ends_with(&[1994, 1995, 1996, 1997, 1998, 1999]));
    }
}

#[test]
fn entries_that_cannot_be_are_refused() {
    let (_, region, log) = fresh(64, 1, Durability::Never);
    let id = StructureId(1);
    for error in [
        log.append(id, &[]).unwrap_err(),
        log.append(id, &[&[0; 4096 - 71]]).unwrap_err(),
        log.append_many(id, 0, &[1]).unwrap_err(),
        log.append_many(id, 2, &[1]).unwrap_err(),
        log.append_many(id, 2, &[]).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Config { .. }), "{error}");
    }
    log.append(id, &[&[7; 4096 - 72]]).unwrap();
    log.sync().unwrap();
    let (_, entries) = entries_from(&region, log.anchor(Lsn(0))).unwrap();
    assert_eq!(entries, [(id, vec![7; 4096 - 72])]);
}

#[test]
fn regions_places_and_epochs_that_cannot_work_are_refused() {
    let good = region(&Probe::default(), 16, 4);
    let refused = |region: LogRegion, end: LogEnd, tail: u64, field: &str| {
        let error = start_at(&region, Durability::Never, end, Lsn(tail)).unwrap_err();
        assert!(matches!(error, Error::Config { field: f, .. } if f == field), "{error}");
    };
    let end = LogEnd::default();
    for pages in [15, u64::MAX] {
        let parts = Extent { start: PageId(FIRST_PAGE), pages }.into();
        refused(LogRegion { parts, ..good.clone() }, end, 0, "log_bytes");
    }
    for block_bytes in [0, 4095, 5000, 1 << 31] {
        refused(LogRegion { block_bytes, ..good.clone() }, end, 0, "log_block_bytes");
    }
    refused(good.clone(), end, 4096, "log_tail");
    refused(good.clone(), LogEnd { next: Lsn(17 * 4096), ..end }, 0, "log_tail");
    refused(good.clone(), LogEnd { next: Lsn(7), ..end }, 0, "log_end");
    let (durability, threads) = (Durability::Never, Threads::Background);
    let options = LogOptions { region: good, volume_id: 1, epoch: 3, durability, threads };
    let end = LogEnd { epoch: 3, ..end };
    let error = Log::start(options, end, Lsn(0), Arc::default()).unwrap_err();
    assert!(matches!(error, Error::Config { field: "epoch", .. }), "{error}");
}

#[test]
fn what_the_visitor_refuses_ends_the_reading() {
    let (_, region, log) = fresh(16, 1, Durability::Never);
    append_synced(&log, 0..3);
    let mut seen = 0;
    let refusal = replay_log(&region, VOLUME, log.anchor(Lsn(0)), &mut |_, _, _, _| {
        seen += 1;
        if seen == 2 { Err(Error::config("test", "enough")) } else { Ok(()) }
    });
    assert!(matches!(refusal, Err(Error::Config { field: "test", .. })));
    assert_eq!(seen, 2);
}

/// An action on a log.
#[derive(Clone, Debug)]
enum Act {
    Append(u16, usize),
    Many(u16, usize, usize),
    Sync,
    Reopen,
    Release,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (1..4_u16, 1..3000_usize).prop_map(|(id, bytes)| Act::Append(id, bytes)),
        3 => (1..4_u16, 1..40_usize, 1..200_usize).prop_map(|(id, b, n)| Act::Many(id, b, n)),
        2 => Just(Act::Sync),
        1 => Just(Act::Reopen),
        1 => Just(Act::Release),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn entries_come_back_in_order_and_whole(
        acts in prop::collection::vec(act(), 1..80),
        block_pages in 1..5_usize,
        pages in 20..70_u64,
    ) {
        let region = region(&Probe::default(), pages, block_pages);
        let mut log = start(&region, Durability::Never);
        let mut anchor = log.anchor(Lsn(0));
        let mut kept: Vec<Entry> = Vec::new();
        for (step, act) in acts.into_iter().enumerate() {
            match act {
                Act::Append(id, bytes) => {
                    let entry = numbered(step as u64, bytes);
                    let id = StructureId(id);
                    if log.append(id, &[&entry[..bytes / 3], &entry[bytes / 3..]]).is_ok() {
                        kept.push((id, entry));
                    }
                }
                Act::Many(id, bytes, count) => {
                    let id = StructureId(id);
                    if log.used_bytes() + 3 * region.block() + 16_000 < region.bytes() {
                        let entries = numbered(step as u64, bytes * count);
                        log.append_many(id, bytes, &entries).unwrap();
                        kept.extend(entries.chunks_exact(bytes).map(|e| (id, e.to_vec())));
                    }
                }
                Act::Sync => log.sync().unwrap(),
                Act::Reopen => {
                    drop(log);
                    let (again, entries) = reopen(&region, anchor);
                    prop_assert_eq!(&entries, &kept);
                    log = again;
                }
                Act::Release => {
                    log.sync().unwrap();
                    anchor = log.anchor(log.next_lsn());
                    log.release(anchor.tail);
                    kept.clear();
                }
            }
        }
        log.close().unwrap();
        let (end, entries) = entries_from(&region, anchor).unwrap();
        prop_assert_eq!(entries, kept);
        prop_assert_eq!(end.next, log.next_lsn());
    }
}
