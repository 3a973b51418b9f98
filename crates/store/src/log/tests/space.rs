//! The log's bounds: it reports when it is full, and callers that ask first wait for space.

use super::*;
use crate::Error;

fn fill(log: &Log) -> u64 {
    let mut count = 0;
    loop {
        match log.append(StructureId(1), &[&numbered(count, 100)]) {
            Ok(_) => count += 1,
            Err(error) => {
                assert!(matches!(error, Error::LogFull { .. }), "{error}");
                return count;
            }
        }
    }
}

#[test]
fn a_full_log_says_so_and_keeps_what_it_has() {
    let (_, region, log) = fresh(16, 2, Durability::Never);
    let count = fill(&log);
    assert!(count >= 14 * 40, "{count}");
    assert!(log.used_bytes() <= log.capacity_bytes());
    assert!(matches!(log.append_many(StructureId(1), 9, &[1; 90]), Err(Error::LogFull { .. })));
    log.sync().unwrap();
    let (_, entries) = entries_from(&region, log.anchor(Lsn(0))).unwrap();
    assert_eq!(numbers(&entries), (0..count).collect::<Vec<_>>());
}

#[test]
fn a_full_log_takes_entries_again_once_its_tail_moves() {
    let (_, _, log) = fresh(16, 2, Durability::Never);
    for _ in 0..5 {
        assert!(fill(&log) > 100);
        log.sync().unwrap();
        log.release(log.next_lsn());
        assert_eq!((log.used_bytes(), log.tail()), (0, log.next_lsn()));
    }
}

#[test]
fn a_release_behind_the_tail_changes_nothing() {
    let (_, _, log) = fresh(16, 2, Durability::Never);
    let places = append_synced(&log, 0..3);
    log.release(places[2]);
    log.release(places[1]);
    assert_eq!(log.tail(), places[2]);
}

#[test]
fn more_than_an_empty_log_holds_is_never_waited_for() {
    let (_, _, log) = fresh(16, 2, Durability::Never);
    drop(log.wait_for_space(6 * 4096).unwrap());
    for bytes in [6 * 4096 + 1, u64::MAX] {
        assert!(matches!(log.wait_for_space(bytes), Err(Error::LogFull { .. })));
    }
}

#[test]
fn a_caller_that_waits_for_space_goes_on_when_the_tail_moves() {
    let (_, _, log) = fresh(16, 2, Durability::Never);
    fill(&log);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let _reservation = log.wait_for_space(1000)?;
            log.append(StructureId(1), &[&numbered(7, 1000)])
        });
        log.sync().unwrap();
        let next = log.next_lsn();
        log.release(next);
        assert!(waiter.join().unwrap().unwrap() >= next);
    });
}

#[test]
fn appends_after_waiting_for_space_always_fit() {
    let (_, region, log) = fresh(48, 2, Durability::Never);
    for round in 0..3000_u64 {
        let bytes = 16 + (round as usize * 61) % 3000;
        if log.used_bytes() > region.bytes() / 2 {
            log.release(log.next_lsn());
        }
        let _reservation = log.wait_for_space(3 * bytes as u64).unwrap();
        for number in 0..3 {
            log.append(StructureId(number), &[&numbered(round, bytes)]).unwrap();
        }
        if round % 5 == 0 {
            log.sync().unwrap();
        }
    }
}

#[test]
fn a_caller_that_waits_for_space_learns_of_the_poison() {
    let (device, _, log) = fresh(16, 2, Durability::Never);
    fill(&log);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| log.wait_for_space(1000));
        device.fail_syncs(true);
        assert!(log.sync().is_err());
        assert!(matches!(waiter.join().unwrap(), Err(Error::Poisoned { .. })));
    });
}

/// Each caller had waited for space, and each of their commits closed a block: together they needed more than there
/// was.
#[test]
fn all_that_are_let_in_may_commit_one_by_one() {
    let (_, _, log) = fresh(16, 2, Durability::Always);
    let mut reservations = Vec::new();
    while let Some(reservation) = log.try_reserve(40).unwrap() {
        reservations.push(reservation);
    }
    assert!(reservations.len() > 3);
    for (number, reservation) in (0..).zip(reservations) {
        log.append(StructureId(1), &[&numbered(number, 40)]).unwrap();
        drop(reservation);
        log.commit().unwrap();
    }
}

#[test]
fn callers_that_were_admitted_early_still_have_space_when_others_wait() {
    let (_, _, log) = fresh(64, 2, Durability::Always);
    // Four are admitted without a reservation, and append after others have filled the log, a block for each commit.
    let early: Vec<_> = (0..4).map(|_| log.wait_for_space(4000).unwrap()).collect();
    assert!(early.iter().all(Option::is_none));
    while let Some(_reservation) = log.try_reserve(8).unwrap() {
        log.append(StructureId(1), &[&numbered(0, 8)]).unwrap();
        log.commit().unwrap();
    }
    while let Some(_reservation) = log.try_reserve_closely(8).unwrap() {
        log.append(StructureId(1), &[&numbered(0, 8)]).unwrap();
        log.commit().unwrap();
    }
    for _ in early {
        log.append(StructureId(1), &[&numbered(1, 4000)]).unwrap();
        log.commit().unwrap();
    }
}
