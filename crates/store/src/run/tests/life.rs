//! Runs of every size, density and kind of count, including clustered fingerprints.

use proptest::prelude::*;

use super::*;

#[test]
fn runs_of_any_size_in_any_universe_are_read_as_they_were_written() {
    let sizes = [2, 3, 7, 100, 4097, 1 << 20, 25_641_026, 1 << 40, Universe::SIZE_MAX];
    for size in sizes {
        for count in [0, 1, 2, 50, 3000, 10_000] {
            check(universe(size), &spread(universe(size), count, size + count));
        }
    }
}

#[test]
fn a_universe_of_which_everything_is_there_takes_two_bits_each() {
    let all: Vec<_> = (0..100_000).map(|fingerprint| Entry { fingerprint, count: 1 }).collect();
    let run = check(universe(100_000), &all);
    assert!(run.used_pages() <= 7, "{run:?}");
}

/// Returns entries with counts of a kind, given entries that have 1 so far.
fn counted(mut entries: Vec<Entry>, kind: u64, seed: u64) -> Vec<Entry> {
    let mut rng = Rng(seed);
    for entry in &mut entries {
        entry.count = match kind {
            0 => 1,
            1 if rng.below(300) > 0 => 1,
            1 | 2 => rng.below(7) as i64 - 3,
            3 => rng.next() as i64 >> rng.below(64),
            4 => -1,
            _ => [i64::MIN, i64::MAX, 1, -1][rng.below(4) as usize],
        };
        entry.count += i64::from(entry.count == 0);
    }
    entries
}

#[test]
fn counts_of_every_kind_are_found_again() {
    for kind in 0..6 {
        for count in [1, 31, 33, 65, 5000, 20_000] {
            let universe = universe(count * 256);
            check(universe, &counted(spread(universe, count, kind), kind, count));
        }
    }
}

#[test]
fn a_range_of_slots_has_the_fingerprints_of_those_slots() {
    let universe = universe(1 << 30);
    // A cluster in the middle, so that some pages have only entries of earlier slots.
    let mut entries = spread(universe, 40_000, 3);
    let middle = universe.size() / 2;
    entries.retain(|entry| !(middle..middle + 30_000).contains(&entry.fingerprint));
    entries.extend((middle..middle + 30_000).map(|fingerprint| Entry { fingerprint, count: 1 }));
    entries.sort_unstable();
    let device = MemoryDevice::new();
    let run = written(&device, universe, &entries);
    let (slots, split) = (run.slot_pages(), run.split());
    assert!(slots > 10);
    for start in 0..=slots {
        for end in [start, start + 1, start + 4, slots] {
            let range = start..end.clamp(start, slots);
            let mut reader = RunReader::of_slots(&device, &run, range.clone(), CHUNKS).unwrap();
            let is_inside = |entry: &&Entry| range.contains(&split.quotient(entry.fingerprint));
            let expected: Vec<_> = entries.iter().filter(is_inside).copied().collect();
            assert_eq!(collect(&mut reader).unwrap(), expected, "{range:?}");
        }
    }
}

fn entries() -> impl Strategy<Value = (u64, Vec<Entry>)> {
    let size = prop_oneof![2..5000_u64, Just(1 << 20), Just(Universe::SIZE_MAX), 2..=1_u64 << 62];
    (size, 0..12_000_u64, 0..6_u64, any::<u64>(), 0..4_u64).prop_map(
        |(size, count, kind, seed, heaps)| {
            let universe = universe(size);
            let mut rng = Rng(seed);
            let mut all = spread(universe, count, seed);
            for _ in 0..heaps {
                let (start, bits) = (rng.below(size), rng.below(20));
                let step = 1 + rng.below(1 << bits);
                let heap = (0..rng.below(20_000)).map(|at| start.saturating_add(at * step));
                let heap = heap.filter(|fingerprint| *fingerprint < size);
                all.extend(heap.map(|fingerprint| Entry { fingerprint, count: 1 }));
            }
            all.sort_unstable();
            all.dedup();
            (size, counted(all, kind, seed))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..Default::default() })]

    #[test]
    fn whatever_is_written_is_read_and_found((size, entries) in entries()) {
        check(universe(size), &entries);
    }
}

#[test]
#[should_panic(expected = "ascend")]
fn entries_out_of_order_are_our_own_mistake() {
    let entries = [9, 8].map(|fingerprint| Entry { fingerprint, count: 1 });
    let _ = write(&MemoryDevice::new(), RunShape::new(universe(100), 1, 1), &entries);
}
