//! The cache compared with maps, under threads, and with the hit ratio of an optimal cache that knows all frequencies.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Release;
use std::sync::atomic::{AtomicBool, AtomicU64};

use nandex_store::entries::KeyState::{Live, Removed, Unknown};
use nandex_store::hash::{HashKind, KeyHasher};

use super::*;
use crate::ram::Borrower;

const HASHER: KeyHasher = KeyHasher::new(HashKind::Xxh3, 9);

/// Pseudo-random numbers, always the same.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        nandex_store::hash::mix(self.0)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Returns a key of `bytes` bytes.
fn key(number: u64, bytes: usize) -> Vec<u8> {
    number.to_le_bytes().into_iter().chain(std::iter::repeat(number as u8)).take(bytes).collect()
}

/// Looks a key up as a table does: the answer from flash fills the cache.
fn look_up(cache: &EntryCache, key: &[u8], on_flash: impl FnOnce() -> Option<Value>) -> bool {
    let hash = HASHER.hash(key);
    let ticket = cache.ticket(hash);
    let found = cache.find(hash, key);
    let answer = on_flash();
    if found.is_known() {
        assert_eq!(found.value(), answer);
    } else {
        cache.fill(ticket, hash, key, &answer);
    }
    found.is_known()
}

#[test]
fn it_says_what_a_map_says_for_all_widths() {
    for (key_bytes, value_bytes) in [(8, 8), (8, 0), (9, 1), (16, 64), (20, 12), (32, 0), (31, 63)]
    {
        let cache = EntryCache::new(20_000, key_bytes, value_bytes).unwrap();
        let mut flash: HashMap<u64, Vec<u8>> = HashMap::new();
        let (mut numbers, mut hits) = (Numbers(3), 0);
        for step in 0..40_000u64 {
            let number = numbers.below(400);
            let key = key(number, key_bytes);
            let hash = HASHER.hash(&key);
            match numbers.below(20) {
                0 => {
                    let value = self::key(step, value_bytes.max(8))[..value_bytes].to_vec();
                    let now = numbers.below(2) == 0;
                    cache.leaving().leave(hash, &key, if now { Live(&value) } else { Unknown });
                    flash.insert(number, value);
                }
                1 => {
                    cache.leaving().leave(hash, &key, Removed);
                    flash.remove(&number);
                }
                _ => {
                    let on_flash = || flash.get(&number).map(|value| Value::new(value));
                    hits += u64::from(look_up(&cache, &key, on_flash));
                }
            }
        }
        assert!(hits > 5000, "{key_bytes} + {value_bytes}: {hits}");
    }
}

#[test]
fn an_entry_of_8_and_8_bytes_takes_less_than_19() {
    let cache = EntryCache::new(1 << 20, 8, 8).unwrap();
    assert!(cache.ram_bytes() <= 1 << 20);
    let each = cache.ram_bytes() as f64 / cache.entries_max() as f64;
    assert!(each < 19.0, "{each}");
    assert!(EntryCache::new(127, 8, 8).is_none());
}

#[test]
fn a_lookup_makes_one_chunk_and_what_leaves_makes_none() {
    let sets = 3 * CHUNK_SETS - 1;
    let cache = EntryCache::new(sets as u64 * 128, 8, 8).unwrap();
    let made = || cache.chunks.iter().filter(|chunk| chunk.get().is_some()).count();
    let place =
        |part: u64| KeyHash { place: u64::MAX / 6 * (2 * part + 1), ..HASHER.hash(&[1; 8]) };
    cache.leaving().leave(place(1), &[1; 8], Removed);
    cache.drop_of((0, 1), |_| true);
    assert_eq!(made(), 0);
    for part in 0..3 {
        let ticket = cache.ticket(place(part));
        assert_eq!(made(), part as usize + 1);
        cache.fill(ticket, place(part), &[1; 8], &None);
        assert_eq!(cache.find(place(part), &[1; 8]), Removed);
    }
    let lines = |chunk: &Chunk| match &chunk.lines {
        Lines::Own(lines) => lines.len(),
        Lines::Lent(_) => unreachable!("it is its own"),
    };
    let lines: usize = cache.chunks.iter().filter_map(OnceLock::get).map(lines).sum();
    assert_eq!((lines * 64) as u64, cache.ram_bytes());
    cache.drop_of((0, 1), |_| true);
    assert!((0..3).all(|part| !cache.find(place(part), &[1; 8]).is_known()));
}

#[test]
fn a_ticket_fills_a_set_until_a_key_of_its_chunk_leaves() {
    let cache = EntryCache::new(128, 8, 8).unwrap();
    let (one, other) = (key(1, 8), key(2, 8));
    let (hash, value) = (HASHER.hash(&one), Some(Value::new(&[5; 8])));
    let ticket = cache.ticket(hash);
    // A buffer with the key leaves between the ticket and the read: the answer that was read is stale.
    cache.leaving().leave(hash, &one, Unknown);
    cache.fill(ticket, hash, &one, &value);
    assert_eq!(cache.find(hash, &one), Unknown);
    let ticket = cache.ticket(hash);
    cache.drop_of((0, 1), |_| false);
    cache.fill(ticket, hash, &one, &value);
    assert_eq!(cache.find(hash, &one), Unknown);
    // Two lookups of a key and one of another: each fills, and no key occurs twice.
    let ticket = cache.ticket(hash);
    cache.fill(ticket, hash, &one, &value);
    cache.fill(ticket, HASHER.hash(&other), &other, &None);
    cache.fill(ticket, hash, &one, &value);
    assert_eq!(cache.find(hash, &one), value.into());
    assert_eq!(cache.find(HASHER.hash(&other), &other), Removed);
    cache.leaving().leave(hash, &one, Unknown);
    assert_eq!(cache.find(hash, &one), Unknown);
}

#[test]
fn what_leaves_takes_a_free_place_and_no_other() {
    let cache = EntryCache::new(128, 8, 8).unwrap();
    let keys: Vec<_> = (0..8).map(|number| key(number, 8)).collect();
    let says = |at: usize| cache.find(HASHER.hash(&keys[at]), &keys[at]);
    let leave = |leaving: &mut Leaving<'_>, at: usize, now: Option<&[u8]>| {
        leaving.leave(HASHER.hash(&keys[at]), &keys[at], now.into());
    };
    leave(&mut cache.leaving(), 0, Some(&keys[0]));
    assert!(cache.is_unused());
    cache.ticket(HASHER.hash(&keys[0]));
    leave(&mut cache.leaving(), 0, None);
    assert_eq!(says(0), Unknown);
    keys.iter().enumerate().for_each(|(at, key)| leave(&mut cache.leaving(), at, Some(key)));
    let found: Vec<_> = (0..8).map(|at| says(at).is_known()).collect();
    assert_eq!(found, [true, true, true, true, true, true, true, false]);
    // A part that is no longer the newest one removes an answer, and adds none.
    let superseded = AtomicBool::new(false);
    let mut leaving = cache.leaving_of(Some(&superseded));
    leave(&mut leaving, 3, Some(&[9; 8]));
    assert_eq!(says(3), Live(Value::new(&[9; 8])));
    superseded.store(true, Relaxed);
    leave(&mut leaving, 3, Some(&[8; 8]));
    leave(&mut leaving, 7, Some(&[8; 8]));
    assert_eq!((says(3), says(7)), (Unknown, Unknown));
}

#[test]
fn what_flash_drops_is_dropped_of_its_part_alone() {
    let cache = EntryCache::new(1 << 16, 8, 8).unwrap();
    let fill = |number: u64| look_up(&cache, &key(number, 8), || Some(Value::new(&[1; 8])));
    (0..2000).for_each(|number| assert!(!fill(number)));
    let there = |number: u64| cache.find(HASHER.hash(&key(number, 8)), &key(number, 8)).is_known();
    let cached: Vec<u64> = (0..2000).filter(|number| there(*number)).collect();
    assert!(cached.len() > 1500, "{}", cached.len());
    let part_of = |key: &[u8]| (HASHER.hash(key).place >> 62) as usize;
    let is_even = |key: &[u8]| get_u64(key, 0).is_multiple_of(2);
    cache.drop_of((2, 4), |key| part_of(key) == 2 && is_even(key));
    for number in cached {
        let key = key(number, 8);
        assert_eq!(there(number), !(part_of(&key) == 2 && is_even(&key)), "{number}");
    }
}

/// Returns Zipf-distributed ranks below `count` with exponent 1: the inverse of the harmonic numbers' approximation.
fn zipf(numbers: &mut Numbers, count: u64) -> u64 {
    (((count as f64 + 1.0).ln() * numbers.share()).exp() - 1.0) as u64
}

/// Returns the share of hits over `lookups`, after an equal number that are not counted; every `scan`th key occurs only
/// once.
fn hit_ratio(cache: &EntryCache, keys: u64, lookups: u64, scan: u64) -> f64 {
    let (mut numbers, mut hits, mut asked) = (Numbers(7), 0, 0);
    for step in 0..2 * lookups {
        let is_scan = scan > 0 && step % scan == 0;
        let rank = if is_scan { keys + step } else { zipf(&mut numbers, keys) };
        let is_hit = look_up(cache, &key(nandex_store::hash::mix(rank), 8), || None);
        if step >= lookups && !is_scan {
            (hits, asked) = (hits + u64::from(is_hit), asked + 1);
        }
    }
    hits as f64 / asked as f64
}

#[test]
fn hot_keys_stay_whether_others_are_scanned_or_not() {
    let (keys, entries) = (200_000u64, 20_000u64);
    let best = (entries as f64 + 1.0).ln() / (keys as f64 + 1.0).ln();
    let cache = || EntryCache::new(entries * 128 / 7, 8, 8).unwrap();
    let quiet = hit_ratio(&cache(), keys, 600_000, 0);
    assert!(quiet > best - 0.04, "{quiet} of {best}");
    let scanned = hit_ratio(&cache(), keys, 600_000, 3);
    assert!(scanned > best - 0.06, "{scanned} of {best}");
}

#[test]
fn threads_never_read_a_mixture_of_two_values() {
    let cache = EntryCache::new(2 * 1024, 16, 64).unwrap();
    let (stop, hits) = (AtomicBool::new(false), AtomicU64::new(0));
    let version = |number: u64, version: u64| Value::new(&[(number * 31 + version) as u8; 64]);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (cache, stop, hits) = (&cache, &stop, &hits);
            scope.spawn(move || {
                let mut numbers = Numbers(thread);
                // On a busy machine the reading thread may start late.
                let is_due = |step: &u64| *step < 60_000 || hits.load(Relaxed) == 0;
                for step in (0..60_000_000u64).take_while(is_due) {
                    let number = numbers.below(64);
                    let (key, value) = (key(number, 16), version(number, step % 7));
                    let hash = HASHER.hash(&key);
                    if step % 3 == 0 {
                        cache.leaving().leave(hash, &key, Live(&value));
                    } else {
                        let ticket = cache.ticket(hash);
                        if !cache.find(hash, &key).is_known() {
                            cache.fill(ticket, hash, &key, &Some(value));
                        }
                    }
                }
                stop.store(true, Relaxed);
            });
        }
        scope.spawn(|| {
            let mut numbers = Numbers(99);
            while !stop.load(Relaxed) {
                let number = numbers.below(64);
                let key = key(number, 16);
                let found = cache.find(HASHER.hash(&key), &key);
                assert_ne!(found, Removed, "all keys are there");
                if let Live(found) = found {
                    let is_one = (0..7).any(|it| found == version(number, it));
                    assert!(is_one, "{number}: {found:?}");
                    hits.fetch_add(1, Relaxed);
                }
            }
        });
    });
    assert!(hits.load(Relaxed) > 0);
}

#[test]
fn a_plan_uses_what_it_may_and_nothing_more() {
    for sets in [1, 500, 1024, 5000, 100_000] {
        for sets_max in [0, 1, 7, 300, 1024, 4000, 77_777, 200_000] {
            let plan = lent::Plan::of(sets, sets_max);
            let used = plan.sets(sets);
            assert!(used <= sets_max.min(sets), "{sets}, {sets_max}: {plan:?}");
            // At most a chunk is missing, and the last one is shorter.
            let least = sets_max.min(sets).saturating_sub(2 * CHUNK_SETS + sets_max / 64);
            let chunks = sets.div_ceil(CHUNK_SETS);
            assert!(used >= least || sets_max < chunks, "{sets}, {sets_max}: {plan:?}, {used}");
        }
    }
}

#[test]
fn lent_ram_is_given_back_and_what_was_used_stays() {
    let cache = EntryCache::lent(1 << 20, 8, 8).unwrap();
    assert_eq!(cache.entries_max(), 0);
    let value = |number: u64| Value::new(&(number * 3).to_le_bytes());
    let ask = |number: u64| look_up(&cache, &key(number, 8), || Some(value(number)));
    assert!((0..100).all(|number| !ask(number)) && (0..100).all(|number| !ask(number)));
    cache.keep_at_most(1 << 20);
    // A chunk that was created while there was no RAM stays empty.
    let cache = EntryCache::lent(1 << 20, 8, 8).unwrap();
    cache.keep_at_most(1 << 20);
    let ask = |number: u64| look_up(&cache, &key(number, 8), || Some(value(number)));
    for number in 0..30_000 {
        ask(number);
        // Hot keys.
        ask(number % 2000);
    }
    assert!((0..2000).filter(|number| ask(*number)).count() > 1900);
    assert!(cache.ram_bytes() > 1 << 19 && cache.ram_bytes() <= 1 << 20);
    for bytes in [700 << 10, 300 << 10, 150 << 10, 40 << 10, 8 << 10, 0] {
        cache.keep_at_most(bytes);
        assert!(cache.ram_bytes() <= bytes, "{bytes}: {}", cache.ram_bytes());
        let hot = (0..2000).filter(|number| ask(*number)).count() as u64;
        // An entry takes 18.3 bytes.
        assert!(hot > (bytes / 60).min(1800) || bytes < 16 << 10, "{bytes}: {hot}");
        assert!(hot <= cache.entries_max());
    }
}

#[test]
fn threads_read_fill_and_update_while_lent_ram_comes_and_goes() {
    let cache = EntryCache::lent(256 << 10, 8, 8).unwrap();
    cache.keep_at_most(256 << 10);
    let truth: Vec<_> = (0..3000).map(|_| AtomicU64::new(0)).collect();
    let is_buffered: Vec<_> = truth.iter().map(|_| AtomicBool::new(false)).collect();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (cache, truth, is_buffered, is_done) = (&cache, &truth, &is_buffered, &is_done);
            scope.spawn(move || {
                let mut numbers = Numbers(seed);
                while !is_done.load(Acquire) {
                    let number = numbers.below(truth.len() as u64);
                    let key = key(number, 8);
                    let (hash, at) = (HASHER.hash(&key), number as usize);
                    let ticket = cache.ticket(hash);
                    let before = truth[at].load(Acquire);
                    if is_buffered[at].load(Acquire) {
                        continue;
                    }
                    match cache.find(hash, &key) {
                        Live(value) => {
                            let now = u64::from_le_bytes((&*value).try_into().unwrap());
                            assert!(now >= before, "{number}: {now} after {before}");
                        }
                        Removed => unreachable!("none is removed"),
                        Unknown => {
                            cache.fill(
                                ticket,
                                hash,
                                &key,
                                &Some(Value::new(&before.to_le_bytes())),
                            );
                        }
                    }
                }
            });
        }
        let mut numbers = Numbers(77);
        for step in 1..200_000_u64 {
            let number = numbers.below(truth.len() as u64);
            let (key, at) = (key(number, 8), number as usize);
            is_buffered[at].store(true, Release);
            truth[at].store(step, Release);
            cache.leaving().leave(HASHER.hash(&key), &key, Live(&step.to_le_bytes()));
            is_buffered[at].store(false, Release);
            if step % 1000 == 0 {
                let kept = [256 << 10, 200 << 10, 100 << 10, 40 << 10][(step / 50_000) as usize];
                cache.keep_at_most(kept);
            }
        }
        is_done.store(true, Release);
    });
}
