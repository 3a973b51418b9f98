//! A buffer compared with a map that gets the same operations.

use std::collections::BTreeMap;

use nandex_store::fingerprint::Universe;
use proptest::prelude::*;

use super::*;

fn buffer(size: u64, entries_max: u64, counts: bool) -> FingerprintBuffer {
    let shape = BufferShape::new(Universe::new(size).unwrap(), entries_max, counts);
    let ram = Arc::new(BufferRam::new(shape, u64::MAX));
    ram.recovered();
    FingerprintBuffer::new(&ram)
}

/// A fingerprint spread over a universe by its number.
fn spread(number: u64, size: u64) -> u64 {
    ((u128::from(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) * u128::from(size)) >> 64) as u64
}

fn plus(fingerprint: u64) -> Entry {
    Entry { fingerprint, count: 1 }
}

/// The expected contents of the buffer.
#[derive(Default)]
struct Oracle(BTreeMap<u64, i64>);

impl Oracle {
    fn add(&mut self, updates: &[Entry]) {
        for update in updates {
            *self.0.entry(update.fingerprint).or_default() += update.count;
        }
        self.0.retain(|_, count| *count != 0);
    }

    fn sorted(&self) -> Vec<Entry> {
        self.0
            .iter()
            .map(|(fingerprint, count)| Entry { fingerprint: *fingerprint, count: *count })
            .collect()
    }
}

/// Applies all updates to a buffer that is emptied whenever it is full, and compares both.
fn compare(mut buffer: FingerprintBuffer, updates: &[Entry], call: usize) {
    let mut oracle = Oracle::default();
    for updates in updates.chunks(call) {
        let mut rest = updates;
        while !rest.is_empty() {
            let count = buffer.apply(rest).unwrap();
            oracle.add(&rest[..count]);
            rest = &rest[count..];
            for update in updates {
                let expected = oracle.0.get(&update.fingerprint).copied().unwrap_or(0);
                assert_eq!(buffer.count(update.fingerprint), expected);
            }
            assert_eq!(buffer.ram.entries(), buffer.entries());
            if !rest.is_empty() {
                assert_eq!(buffer.sorted(), oracle.sorted());
                buffer.clear();
                oracle = Oracle::default();
            }
        }
    }
    assert_eq!(buffer.sorted(), oracle.sorted());
    assert_eq!(buffer.fingerprints(), oracle.0.len() as u64);
    assert_eq!(buffer.ram.bytes(), buffer.ram_bytes());
}

fn updates() -> impl Strategy<Value = Vec<(u64, i64)>> {
    let number = prop_oneof![0..20u64, 0..3000u64];
    let count = prop_oneof![9 => Just(1i64), 4 => Just(-1), 1 => -500..500i64, 1 => any::<i32>().prop_map(i64::from)];
    prop::collection::vec((number, count), 0..2500)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn it_holds_what_a_map_holds(
        updates in updates(),
        bits in 1..=62u32,
        entries_max in 1..3000u64,
        counts: bool,
        call in 1..300usize,
        is_spread: bool,
    ) {
        let size = 1 << bits;
        let entry = |&(number, count): &(u64, i64)| {
            let fingerprint = if is_spread { spread(number, size) } else { number % size };
            Entry { fingerprint, count }
        };
        let updates: Vec<_> = updates.iter().map(entry).filter(|entry| entry.count != 0).collect();
        compare(buffer(size, entries_max, counts), &updates, call);
    }
}

#[test]
fn one_bucket_takes_any_number_of_fingerprints_and_repetitions() {
    // None of them is in the other lists and buckets of the first bits.
    for counts in [false, true] {
        let updates: Vec<_> =
            (0..4000).flat_map(|number| [plus(number), plus(number % 3)]).collect();
        compare(buffer(1 << 40, 100_000, counts), &updates, 512);
    }
}

#[test]
fn it_is_full_at_as_many_as_it_is_for_and_at_its_limit() {
    let updates: Vec<_> = (0..5000).map(|number| plus(spread(number, 1 << 50))).collect();
    let mut full = buffer(1 << 50, 3000, false);
    assert_eq!(full.apply(&updates).unwrap(), 3000);
    assert_eq!((full.apply(&updates[3000..]).unwrap(), full.entries()), (0, 3000));
    full.clear();
    full.limit(700);
    assert_eq!(full.apply(&updates).unwrap(), 700);
    full.clear();
    assert_eq!((full.entries(), full.ram.entries(), full.ram.bytes()), (0, 0, 0));
}

#[test]
fn what_cancels_out_or_comes_again_makes_space_in_a_full_buffer() {
    let size = 1 << 50;
    let all: Vec<_> = (0..2500).map(|number| plus(spread(number, size))).collect();
    let less = |entry: &Entry| Entry { count: -1, ..*entry };
    let mut buffer_of = buffer(size, 3000, false);
    for _ in 0..5 {
        assert_eq!(buffer_of.apply(&all).unwrap(), all.len());
        let removed: Vec<_> = all.iter().map(less).collect();
        assert_eq!(buffer_of.apply(&removed).unwrap(), all.len());
    }
    assert_eq!(buffer_of.fingerprints(), 0);
    let mut counting = buffer(size, 3000, true);
    for _ in 0..300 {
        assert_eq!(counting.apply(&all).unwrap(), all.len());
    }
    assert_eq!(counting.count(all[7].fingerprint), 300);
    assert_eq!(counting.fingerprints(), 2500);
}

#[test]
fn a_count_past_63_bits_is_refused_and_changes_nothing() {
    for counts in [false, true] {
        let mut buffer = buffer(1 << 30, 1000, counts);
        let most = Entry { fingerprint: 5, count: i64::MAX - 1 };
        buffer.apply(&[plus(5), most]).unwrap();
        assert!(matches!(buffer.apply(&[plus(5)]), Err(crate::Error::CountRange { .. })));
        assert_eq!(buffer.count(5), i64::MAX);
        buffer.apply(&[Entry { fingerprint: 5, count: -i64::MAX }]).unwrap();
        assert_eq!(buffer.count(5), 0);
        assert_eq!(buffer.sorted(), []);
    }
}

#[test]
fn a_snapshot_reads_back_and_takes_more() {
    for counts in [false, true] {
        let mut one = buffer(1 << 40, 10_000, counts);
        let updates: Vec<_> =
            (0..4000).map(|number| plus(spread(number % 3500, 1 << 40))).collect();
        one.apply(&updates).unwrap();
        let mut two = buffer(1 << 40, 10_000, counts);
        two.load(&mut *one.source()).unwrap();
        assert_eq!(two.sorted(), one.sorted());
        two.apply(&updates).unwrap();
        assert_eq!(two.count(updates[0].fingerprint), 4);
    }
}

#[test]
fn it_takes_as_much_ram_as_its_shape_says() {
    let (size, entries_max) = (800_000_000u64, 375_000u64);
    for (counts, bits) in [(false, 17.6), (true, 26.0)] {
        let mut buffer = buffer(size, entries_max, counts);
        let shape = buffer.ram.shape;
        let (mut sum, mut most, mut samples) = (0, 0, 0);
        for first in (0..entries_max).step_by(500) {
            let updates: Vec<_> =
                (first..first + 500).map(|number| plus(spread(number, size))).collect();
            assert_eq!(buffer.apply(&updates).unwrap(), 500);
            most = most.max(buffer.ram_bytes());
            (sum, samples) = (sum + buffer.ram_bytes(), samples + 1);
        }
        let mean = (sum / samples) as f64;
        assert!(most <= shape.full_bytes(), "{most} {}", shape.full_bytes());
        assert!(
            (0.95..1.0).contains(&(mean / shape.mean_bytes() as f64)),
            "{mean} {}",
            shape.mean_bytes()
        );
        let per_key = mean * 8.0 / (entries_max / 2) as f64;
        assert!(per_key < bits, "{per_key}");
    }
}

#[test]
fn a_buffer_that_may_take_no_more_ram_is_full() {
    let shape = BufferShape::new(Universe::new(1 << 40).unwrap(), 100_000, false);
    let ram = Arc::new(BufferRam::new(shape, 64 << 10));
    let updates: Vec<_> = (0..100_000).map(|number| plus(spread(number, 1 << 40))).collect();
    let mut recovering = FingerprintBuffer::new(&ram);
    assert_eq!(recovering.apply(&updates).unwrap(), 100_000);
    drop(recovering);
    ram.recovered();
    let mut buffer = FingerprintBuffer::new(&ram);
    let taken = buffer.apply(&updates).unwrap();
    assert!(
        (1..100_000).contains(&taken) && ram.bytes() <= (64 << 10) + 40_000,
        "{taken} {}",
        ram.bytes()
    );
}
