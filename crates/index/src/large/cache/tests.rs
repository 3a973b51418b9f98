//! The cache of records compared with a map of the truth, its RAM, the records that stay in it, and threads.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use nandex_store::hash::{HashKind, KeyHasher};

use super::*;
use crate::large::format::fingerprint;

/// The truth about a key: the place of its record, and the record.
type Truth = HashMap<u64, (ValueRef, Vec<u8>)>;

fn print(number: u64) -> Fingerprint {
    fingerprint(KeyHasher::new(HashKind::Xxh3, 9).hash(&number.to_le_bytes()))
}

/// Returns a place that no other record has.
fn reference(place: u32, bytes: usize) -> ValueRef {
    ValueRef { slot: place, sequence: place ^ 0x55, offset: place / 3, bytes: bytes as u32 }
}

/// Returns a record of `bytes` bytes, at least 28.
fn record(number: u64, bytes: usize, fill: u8) -> Vec<u8> {
    let mut record = print(number).to_vec();
    record.resize(bytes.max(28), fill);
    record
}

/// Returns the cache's answer about a key, in the form of the truth; `None` if it knows too little.
fn asked(cache: &RecordCache, number: u64) -> Option<Option<(ValueRef, Vec<u8>)>> {
    let owned = |found: Found<'_>| match found {
        Found::Record(reference, record) => Some((reference, record.to_vec())),
        _ => None,
    };
    cache.ask(&print(number), owned).ok()
}

fn put(cache: &RecordCache, number: u64, reference: ValueRef, record: &[u8]) {
    let (start, end) = record.split_at(20);
    cache.update(&print(number), Now::Record(reference, &[start, end]), || ());
}

fn random() -> impl FnMut(u64) -> u64 {
    let mut state = 7_u64;
    move |limit| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(state) % limit
    }
}

/// Performs random updates and lookups of a few keys, and compares every answer.
fn is_true_of(cache: &RecordCache, keys: u64, operations: u32) {
    let (mut truth, mut below) = (Truth::new(), random());
    for at in 0..operations {
        let number = below(keys);
        match below(8) {
            0 => {
                cache.update(&print(number), Now::Removed, || _ = truth.remove(&number));
            }
            1 => {
                if let Some((old, record)) = truth.get_mut(&number) {
                    let moved = reference(at, record.len());
                    cache.update(&print(number), Now::Moved(moved), || *old = moved);
                }
            }
            2..=4 => {
                let now = record(number, below(400) as usize * below(4) as usize, at as u8);
                let place = reference(at, now.len());
                put(cache, number, place, &now);
                truth.insert(number, (place, now));
            }
            _ => {
                let is = truth.get(&number);
                match cache.ask(&print(number), |_| ()) {
                    Ok(()) => assert_eq!(asked(cache, number).unwrap().as_ref(), is, "{number}"),
                    Err(ticket) => {
                        let found = is.map_or(Found::Absent, |it| Found::Record(it.0, &it.1));
                        cache.fill(ticket, &print(number), found);
                    }
                }
                if let Some(place) = cache.place(&print(number)) {
                    assert_eq!(place, is.map(|it| it.0), "{number}");
                }
            }
        }
        assert!(at % 64 > 0 || cache.ram_bytes() <= cache.bytes_max().max(LEAST), "{at}");
    }
}

/// The RAM of shards without entries.
const LEAST: u64 = SHARDS as u64 * (3 << 10);

#[test]
fn it_says_what_is_true_of_new_maps_and_old_ones_with_little_ram_and_much() {
    for is_empty in [true, false] {
        for (bytes_max, keys) in [(0, 100), (100 << 10, 2000), (1 << 20, 2000), (16 << 20, 3000)] {
            is_true_of(&RecordCache::new(bytes_max, is_empty), keys, 40_000);
        }
    }
}

#[test]
fn an_empty_map_is_known_as_a_whole_until_a_record_must_leave() {
    let cache = RecordCache::new(1 << 20, true);
    assert_eq!(asked(&cache, 1), Some(None));
    for number in 0..1000 {
        let record = record(number, 100, 1);
        put(&cache, number, reference(number as u32, record.len()), &record);
    }
    assert!((0..1000).all(|number| asked(&cache, number).is_some_and(|it| it.is_some())));
    assert!((1000..2000).all(|number| asked(&cache, number) == Some(None)));
    cache.update(&print(7), Now::Removed, || ());
    assert_eq!(asked(&cache, 7), Some(None));
    for number in 0..100_000 {
        let record = record(number, 100, 1);
        put(&cache, number, reference(number as u32, record.len()), &record);
    }
    assert!((200_000..201_000).all(|number| asked(&cache, number).is_none()));
}

#[test]
fn what_is_asked_for_stays_while_others_pass_through() {
    let cache = RecordCache::new(1 << 20, false);
    let fresh = |number: u64| {
        let record = record(number, 100, 1);
        put(&cache, number, reference(number as u32, record.len()), &record);
    };
    (0..1000).for_each(fresh);
    for number in 1000..200_000 {
        fresh(number);
        assert!(asked(&cache, number % 1000).is_some() || number % 1000 > 0, "{number}");
    }
    let hot = (0..1000).filter(|number| asked(&cache, *number).is_some()).count();
    assert!(hot > 970, "{hot} of 1000 hot records are still there");
}

#[test]
fn a_record_that_is_too_long_leaves_its_place() {
    let cache = RecordCache::new(1 << 20, true);
    let long = record(5, 100_000, 3);
    let place = reference(8, long.len());
    put(&cache, 5, place, &long);
    assert_eq!(asked(&cache, 5), None);
    assert_eq!(cache.place(&print(5)), Some(Some(place)));
    assert_eq!(asked(&cache, 6), Some(None));
}

#[test]
fn ram_that_it_must_give_back_is_given_back_at_once_and_used_again_later() {
    let cache = RecordCache::new(8 << 20, false);
    let fill = |from: u64| {
        for number in from..from + 60_000 {
            let record = record(number, 100, 1);
            put(&cache, number, reference(number as u32, record.len()), &record);
        }
    };
    fill(0);
    assert!(cache.ram_bytes() > 7 << 20, "{}", cache.ram_bytes());
    for bytes in [3 << 20, 1 << 20, 64 << 10, 0] {
        cache.keep_at_most(bytes);
        assert!(cache.ram_bytes() <= bytes.max(LEAST), "{bytes}: {}", cache.ram_bytes());
        let known = (0..60_000).filter(|number| asked(&cache, *number).is_some()).count() as u64;
        assert!(known <= bytes / 100 && (known > bytes / 400 || bytes < 1 << 20), "{known}");
    }
    fill(60_000);
    assert_eq!(cache.len(), 0);
    cache.keep_at_most(8 << 20);
    fill(120_000);
    assert!(cache.ram_bytes() > 7 << 20 && cache.len() > 40_000, "{}", cache.ram_bytes());
}

#[test]
fn what_was_read_before_an_update_is_not_put_in_after_it() {
    let old = record(1, 50, 1);
    for update in [Now::Removed, Now::Moved(reference(2, 50))] {
        let cache = RecordCache::new(1 << 20, false);
        let ticket = cache.ask(&print(1), |_| ()).unwrap_err();
        cache.update(&print(1), update, || ());
        cache.fill(ticket, &print(1), Found::Record(reference(1, 50), &old));
        assert_eq!(cache.place(&print(1)), None);
    }
}

#[test]
fn updates_while_keys_are_gathered_are_kept_and_hide_no_other_key() {
    let cache = RecordCache::new(32 << 20, false);
    let (old, moved) = (|it| reference(it, 50), |it| reference(it + 100_000, 50));
    cache.begin_gathering();
    // A tenth is removed, moved or updated before it is gathered, a tenth afterwards.
    let update = |number: u32| {
        let now = match number % 10 {
            0 => Now::Removed,
            1 => Now::Moved(moved(number)),
            _ => Now::Record(moved(number), &[&record(number.into(), 50, 2)]),
        };
        cache.update(&print(number.into()), now, || ());
    };
    let numbers = || 0..30_000_u32;
    let early = |number: u32| number % 10 < 3 && (number / 10).is_multiple_of(2);
    numbers().filter(|it| early(*it)).for_each(update);
    assert!(numbers().all(|it| cache.gather(&print(it.into()), (old(it), true))));
    numbers().filter(|it| it % 10 < 3 && !early(*it)).for_each(update);
    cache.end_gathering();
    for number in numbers() {
        let expected = match number % 10 {
            0 => None,
            1 | 2 => Some(moved(number)),
            _ => Some(old(number)),
        };
        assert_eq!(cache.place(&print(number.into())), Some(expected), "{number}");
    }
    assert_eq!(cache.place(&print(30_000)), Some(None), "all keys are known");
}

#[test]
fn all_keys_that_were_gathered_are_known_unless_one_was_dropped() {
    for (bytes_max, is_known) in [(8 << 20, true), (1 << 20, false)] {
        let cache = RecordCache::new(bytes_max, false);
        cache.begin_gathering();
        let place = |number: u64| reference(number as u32, 50);
        let follows = |number: u64| (place(number), number.is_multiple_of(2));
        let all = (0..50_000).all(|it| cache.gather(&print(it), follows(it)));
        assert_eq!(all, is_known);
        if !all {
            continue;
        }
        cache.end_gathering();
        assert!((0..50_000).all(|it| cache.place(&print(it)) == Some(Some(place(it)))));
        assert_eq!(asked(&cache, 50_000), Some(None));
        // The records follow; those that are not at the place of the key's record are ignored.
        cache.gather_record(&print(4999), place(4999), &record(4999, 50, 1));
        cache.gather_record(&print(4998), place(1), &record(4998, 50, 1));
        assert!(asked(&cache, 4999).is_some() && asked(&cache, 4998).is_none());
    }
}

#[test]
fn threads_that_read_and_update_never_see_a_record_go_back() {
    let cache = RecordCache::new(32 << 10, false);
    let truth: Vec<_> = (0..200).map(|_| AtomicU64::new(0)).collect();
    let is_done = AtomicBool::new(false);
    let version = |it: &[u8]| u64::from(it[20]) | u64::from(it[21]) << 8 | u64::from(it[22]) << 16;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut below = random();
                while !is_done.load(Relaxed) {
                    let number = below(truth.len() as u64);
                    let before = truth[number as usize].load(Relaxed);
                    match cache.ask(&print(number), |found| match found {
                        Found::Record(_, it) => version(it),
                        _ => unreachable!("none is removed"),
                    }) {
                        Ok(now) => assert!(now >= before, "{number}: {now} after {before}"),
                        Err(ticket) => {
                            let now = truth[number as usize].load(Relaxed);
                            let mut record = record(number, 60, 0);
                            record[20..23].copy_from_slice(&now.to_le_bytes()[..3]);
                            let found = Found::Record(reference(now as u32, 60), &record);
                            cache.fill(ticket, &print(number), found);
                        }
                    }
                }
            });
        }
        let mut below = random();
        for step in 1..300_000_u64 {
            let number = below(truth.len() as u64);
            let mut record = record(number, 60, 0);
            record[20..23].copy_from_slice(&step.to_le_bytes()[..3]);
            let note = || truth[number as usize].store(step, Relaxed);
            let parts: [&[u8]; 1] = [&record];
            cache.update(&print(number), Now::Record(reference(step as u32, 60), &parts), note);
        }
        is_done.store(true, Relaxed);
    });
}
