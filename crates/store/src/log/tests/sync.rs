//! Durability: acknowledged entries survive, syncs are shared, and nothing is acknowledged after a failure.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::Error;
use crate::log::block::OpenBlock;

/// Waits until `done` returns true, or fails after a time that no working log needs.
fn until(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !done() {
        assert!(Instant::now() < deadline, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn everything_acknowledged_by_a_group_commit_survives_a_power_cut_right_then() {
    let (device, region, log) = fresh(512, 2, Durability::Always);
    let acknowledged = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (log, region, device, acknowledged) = (&log, &region, &device, &acknowledged);
            scope.spawn(move || {
                for round in 0..40 {
                    let number = thread * 1000 + round;
                    log.append(StructureId(1), &[&numbered(number, 17)]).unwrap();
                    log.commit().unwrap();
                    acknowledged.fetch_add(1, Ordering::SeqCst);
                    if round % 8 == 0 {
                        assert!(durable(device, region).contains(&number));
                    }
                }
            });
        }
    });
    assert!(log.stats().syncs <= 1 + acknowledged.into_inner());
    assert_eq!(log.stats().syncs, device.syncs());
    let image = on_image(&region, device.durable_image());
    let (_, entries) = entries_from(&image, log.anchor(Lsn(0))).unwrap();
    let numbers = numbers(&entries);
    assert_eq!(numbers.len(), 8 * 40);
    for thread in 0..8 {
        let own = numbers.iter().copied().filter(|number| number / 1000 == thread);
        assert!(own.eq((0..40).map(|round| thread * 1000 + round)));
    }
}

#[test]
fn those_who_wait_for_one_sync_share_the_next() {
    let (device, _, log) = fresh(64, 2, Durability::Always);
    std::thread::scope(|scope| {
        device.with_syncs_held(|| {
            let commit = |number| {
                log.append(StructureId(1), &[&numbered(number, 17)]).unwrap();
                scope.spawn(|| log.commit().unwrap());
            };
            commit(0);
            until("the first sync", || device.syncs_waiting() == 1);
            (1..8).for_each(commit);
        });
    });
    assert_eq!(log.stats().syncs, 1 + 2, "one at the start, one for the first, one for all others");
    assert_eq!(log.stats().bytes_written, 2 * 4096);
}

#[test]
fn appending_and_writing_go_on_while_a_sync_runs() {
    let (device, _, log) = fresh(256, 2, Durability::Every(Duration::from_millis(1)));
    device.with_syncs_held(|| {
        log.append(StructureId(1), &[&numbered(0, 17)]).unwrap();
        until("the sync", || device.syncs_waiting() == 1);
        let written = log.stats().bytes_written;
        // More than all buffers hold, so some must have been written.
        for number in 0..20 * 8 {
            log.append(StructureId(1), &[&numbered(number, 1000)]).unwrap();
        }
        until("writing", || log.stats().bytes_written >= written + 10 * 8192);
        assert_eq!(log.synced(), Lsn(0));
        log.commit().unwrap();
    });
}

#[test]
fn a_sync_vouches_only_for_what_was_written_when_it_began() {
    let (device, _, log) = fresh(256, 2, Durability::Never);
    std::thread::scope(|scope| {
        device.with_syncs_held(|| {
            log.append(StructureId(1), &[&numbered(0, 17)]).unwrap();
            scope.spawn(|| log.sync().unwrap());
            until("the sync", || device.syncs_waiting() == 1);
            for number in 0..100 {
                log.append(StructureId(1), &[&numbered(number, 1000)]).unwrap();
            }
            until("writing", || log.stats().bytes_written >= 4096 + 5 * 8192);
        });
    });
    assert_eq!(log.synced(), Lsn(4096));
}

#[test]
fn a_sync_that_ends_on_a_poisoned_volume_vouches_for_nothing() {
    let (device, _, log) = fresh(64, 1, Durability::Never);
    std::thread::scope(|scope| {
        device.with_syncs_held(|| {
            log.append(StructureId(1), &[&numbered(0, 17)]).unwrap();
            scope.spawn(|| assert!(log.sync().is_err()));
            until("the sync", || device.syncs_waiting() == 1);
            // The kernel has reported to another caller that data which this sync will call durable are lost.
            log.shared.poison.set(&"another sync failed");
        });
    });
    assert_eq!(log.synced(), Lsn(0));
}

#[test]
fn a_block_is_written_only_when_all_before_it_are() {
    let device = Probe::default();
    let region = region(&device, 64, 1);
    let options = LogOptions {
        region: region.clone(),
        volume_id: VOLUME,
        epoch: 1,
        durability: Durability::Never,
        threads: Threads::Inline,
    };
    let log = Log::start(options, LogEnd::default(), Lsn(0), Arc::default()).unwrap();
    device.complete_newest_first();
    {
        // As if other threads had filled them while one writes.
        let mut staging = log.shared.staging();
        for number in 0..3 {
            let mut open = OpenBlock::new(staging.take_buffer().unwrap());
            assert!(open.push(StructureId(1), &[&numbered(number, 17)], 17));
            staging.open = Some(open);
            log.shared.close_block(&mut staging);
        }
    }
    // The first completion is that of the third block.
    log.shared.write_one_completion();
    let written = log.shared.progress().written;
    // A log that took them for written would fail on their completions when it closes.
    log.shared.poison.set(&"enough");
    assert_eq!(written, 0);
}

#[test]
fn writes_that_end_in_any_order_are_all_waited_for() {
    let device = Probe::default();
    device.complete_newest_first();
    let log = start(&region(&device, 64, 1), Durability::Never);
    for number in 0..20 {
        log.append(StructureId(1), &[&numbered(number, 1000)]).unwrap();
    }
    log.sync().unwrap();
    assert_eq!(log.synced(), log.next_lsn());
}

#[test]
fn what_was_found_is_durable_before_the_log_goes_on() {
    let (device, region, log) = fresh(64, 1, Durability::Never);
    for number in 0..20 {
        log.append(StructureId(1), &[&numbered(number, 1000)]).unwrap();
    }
    until("writing", || log.stats().bytes_written >= 4 * 4096);
    // A process that is killed now leaves this state.
    log.shared.poison.set(&"killed");
    drop(log);
    let (end, found) = entries_from(&region, LogAnchor::default()).unwrap();
    assert!(found.len() >= 12);
    let _log = start_at(&region, Durability::Never, end, Lsn(0)).unwrap();
    let image = on_image(&region, device.durable_image());
    assert_eq!(entries_from(&image, LogAnchor::default()).unwrap().1, found);
}

#[test]
fn a_commit_of_nothing_new_costs_no_sync() {
    let (device, _, log) = fresh(16, 1, Durability::Always);
    log.append(StructureId(1), &[b"x"]).unwrap();
    for _ in 0..5 {
        log.commit().unwrap();
        log.sync().unwrap();
    }
    assert_eq!((log.stats().syncs, device.syncs(), log.stats().bytes_written), (2, 2, 4096));
    assert_eq!(log.synced(), log.next_lsn());
}

#[test]
fn after_a_period_what_was_acknowledged_is_durable() {
    let (device, region, log) = fresh(64, 2, Durability::Every(Duration::from_millis(5)));
    for number in 0..3 {
        let lsn = log.append(StructureId(1), &[&numbered(number, 17)]).unwrap();
        log.commit().unwrap();
        until("the sync", || log.synced() > lsn);
        assert_eq!(durable(&device, &region), (0..=number).collect::<Vec<_>>());
    }
}

#[test]
fn never_writes_full_blocks_and_syncs_nothing_until_asked() {
    let (device, region, log) = fresh(64, 1, Durability::Never);
    for number in 0..100 {
        log.append(StructureId(1), &[&numbered(number, 1000)]).unwrap();
        log.commit().unwrap();
    }
    until("writing", || log.stats().bytes_written >= 24 * 4096);
    assert_eq!((device.syncs(), log.synced()), (1, Lsn(0)));
    log.sync().unwrap();
    assert_eq!(device.syncs(), 2);
    assert_eq!(durable(&device, &region), (0..100).collect::<Vec<_>>());
}

#[test]
fn dropping_the_log_makes_it_durable() {
    let (device, region, log) = fresh(64, 1, Durability::Never);
    log.append(StructureId(1), &[&numbered(4, 8)]).unwrap();
    drop(log);
    assert_eq!(durable(&device, &region), [4]);
}

#[test]
fn a_closed_log_still_takes_entries_and_syncs_them() {
    let (_, region, log) = fresh(64, 1, Durability::Every(Duration::from_millis(1)));
    log.close().unwrap();
    for number in 0..100 {
        log.append(StructureId(1), &[&numbered(number, 1000)]).unwrap();
    }
    log.sync().unwrap();
    let (_, entries) = entries_from(&region, log.anchor(Lsn(0))).unwrap();
    assert_eq!(numbers(&entries), (0..100).collect::<Vec<_>>());
}

/// Asserts that every call that could acknowledge fails. A small entry may still go into the rest of the open block.
fn assert_poisoned(log: &Log) {
    let poisoned = |error: Error| assert!(matches!(error, Error::Poisoned { .. }), "{error}");
    poisoned(log.append(StructureId(1), &[&[b'x'; 1000]]).unwrap_err());
    poisoned(log.append_many(StructureId(1), 1000, &[b'x'; 3000]).unwrap_err());
    poisoned(log.commit().unwrap_err());
    poisoned(log.sync().unwrap_err());
    poisoned(log.wait_for_space(1).unwrap_err());
    poisoned(log.close().unwrap_err());
}

#[test]
fn after_a_failed_sync_nothing_is_acknowledged_though_the_device_recovers() {
    let (device, region, log) = fresh(64, 1, Durability::Always);
    append_synced(&log, 0..3);
    let synced = log.synced();
    log.append(StructureId(1), &[&numbered(3, 100)]).unwrap();
    device.fail_syncs(true);
    let error = log.commit().unwrap_err();
    assert!(matches!(error, Error::Device(_)), "{error}");
    device.fail_syncs(false);
    assert_poisoned(&log);
    assert_eq!(log.synced(), synced);
    assert_eq!(durable(&device, &region), [0, 1, 2]);
}

#[test]
fn after_a_failed_write_nothing_is_acknowledged() {
    let device = Probe::default();
    let region = region(&device, 64, 1);
    for durability in [Durability::Always, Durability::Never] {
        let log = start(&region, durability);
        append_synced(&log, 0..3);
        device.fail_writes(true);
        log.append(StructureId(1), &[&numbered(3, 100)]).unwrap();
        assert!(log.sync().is_err());
        device.fail_writes(false);
        assert_poisoned(&log);
        assert_eq!(log.synced().0, 3 * 4096);
    }
}

#[test]
fn a_failed_write_in_the_background_ends_appending() {
    let (device, _, log) = fresh(64, 1, Durability::Never);
    device.fail_writes(true);
    let refused =
        (0..200).find_map(|number| log.append(StructureId(1), &[&numbered(number, 1000)]).err());
    let refused = refused.expect("the region holds fewer entries");
    assert!(matches!(refused, Error::Poisoned { .. } | Error::Device(_)), "{refused}");
    assert_poisoned(&log);
}

#[test]
fn a_failed_sync_wakes_all_who_wait_with_an_error() {
    let (device, _, log) = fresh(64, 1, Durability::Always);
    device.fail_syncs(true);
    std::thread::scope(|scope| {
        let commits: Vec<_> = device.with_syncs_held(|| {
            (0..8)
                .map(|number| {
                    log.append(StructureId(1), &[&numbered(number, 17)]).unwrap();
                    scope.spawn(|| log.commit())
                })
                .collect()
        });
        for commit in commits {
            assert!(commit.join().unwrap().is_err());
        }
    });
}

#[test]
fn a_failed_sync_of_the_timer_is_reported_by_a_later_commit() {
    let (device, _, log) = fresh(64, 1, Durability::Every(Duration::from_millis(1)));
    device.fail_syncs(true);
    log.append(StructureId(1), &[b"x"]).unwrap();
    until("the failure", || log.commit().is_err());
    device.fail_syncs(false);
    assert_poisoned(&log);
}

#[test]
fn a_log_does_not_start_on_a_device_that_cannot_sync() {
    let device = Probe::default();
    let region = region(&device, 64, 1);
    device.fail_syncs(true);
    assert!(start_at(&region, Durability::Never, LogEnd::default(), Lsn(0)).is_err());
}
