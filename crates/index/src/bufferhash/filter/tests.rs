//! Tests of the filters: inserted keys are never missed, and other keys are not found too often.

mod widths;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};

use proptest::prelude::*;

use super::*;

/// SplitMix64: the same stream of uniform values from the same seed.
pub(super) struct Stream(pub(super) u64);

impl Iterator for Stream {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Some(z ^ (z >> 31))
    }
}

fn hashes(seed: u64, count: usize) -> Vec<u64> {
    Stream(seed).take(count).collect()
}

fn has(columns: &Columns, column: usize) -> bool {
    (columns[column / 64] >> (column % 64)) & 1 == 1
}

fn all_live(words: u32) -> Columns {
    slices::mask_of(0..64 * wide(words))
}

/// Builds and writes a column; returns the hashes that are in it.
fn fill(filter: &IncarnationFilter, slices: &Slices, column: usize, hashes: &[u64]) -> Vec<u64> {
    let built = filter.build(hashes);
    slices.write_column(column, &built.bits);
    let mut bumped = built.bumped.iter().peekable();
    let placed = hashes.iter().enumerate().filter(|(index, _)| {
        let skip = bumped.peek() == Some(&index);
        if skip {
            bumped.next();
        }
        !skip
    });
    placed.map(|(_, hash)| *hash).collect()
}

fn assert_found(filter: &IncarnationFilter, slices: &Slices, column: usize, hashes: &[u64]) {
    let live = all_live(filter.shape().words());
    for &hash in hashes {
        let found = filter.candidates(slices, hash, &live);
        assert!(has(&found, column), "column {column} misses {hash:#x}");
    }
}

fn shapes() -> impl Strategy<Value = FilterShape> {
    let fuse = (1_u32..800, 1_u32..=24, 1_u32..=4)
        .prop_map(|(entries, bits, words)| FilterShape::fuse(entries, bits, words).unwrap());
    let bloom = (1_u32..800, 0.5..30.0, 1_u32..=4)
        .prop_map(|(entries, bits, words)| FilterShape::bloom(entries, bits, words).unwrap());
    prop_oneof![fuse, bloom]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_key_that_was_placed_is_always_a_candidate(shape in shapes(), seed: u64, load in 0.0..1.3) {
        let filter = IncarnationFilter::new(shape);
        let slices = Slices::new(&shape);
        let count = (f64::from(shape.entries_max()) * load) as usize;
        let columns: Vec<_> = (0..slices.columns()).step_by(17).collect();
        let placed: Vec<_> = columns.iter().map(|&column| {
            fill(&filter, &slices, column, &hashes(seed ^ column as u64, count))
        }).collect();
        for (&column, placed) in columns.iter().zip(&placed) {
            assert_found(&filter, &slices, column, placed);
        }
    }

    #[test]
    fn loading_columns_at_once_equals_writing_them_one_by_one(
        shape in shapes(), seed: u64, listed in prop::collection::hash_map(0_usize..256, any::<u64>(), 0..80),
    ) {
        let (one, bulk) = (Slices::new(&shape), Slices::new(&shape));
        let column_of = |seed| IncarnationFilter::new(shape).build(&hashes(seed, 20)).bits;
        for column in (0..one.columns()).step_by(5) {
            let before = column_of(seed ^ column as u64);
            one.write_column(column, &before);
            bulk.write_column(column, &before);
        }
        let listed: Vec<_> = listed.into_iter().filter(|(column, _)| *column < one.columns())
            .map(|(column, seed)| (column, column_of(seed))).collect();
        listed.iter().for_each(|(column, bits)| one.write_column(*column, bits));
        bulk.load_columns(&listed.iter().map(|(column, bits)| (*column, &bits[..])).collect::<Vec<_>>());
        for column in 0..one.columns() {
            prop_assert_eq!(one.extract_column(column), bulk.extract_column(column));
        }
        for (column, bits) in &listed {
            prop_assert_eq!(&one.extract_column(*column), bits);
        }
    }

    #[test]
    fn any_parts_are_refused_or_make_a_filter_that_works(
        kind in 0_u32..3, entries_max in 0_u32..2000, slots in 0_u32..5000, bits_per_slot in 0_u32..30,
        hashes_per_key in 0_u32..40, segment in 0_u32..300, words in 0_u32..6,
    ) {
        let hashes_per_key = if kind == 1 { 4 } else { hashes_per_key };
        let parts = ShapeParts {
            kind, entries_max, slots, bits_per_slot, hashes: hashes_per_key, segment, words,
        };
        if let Ok(shape) = FilterShape::from_parts(parts) {
            prop_assert_eq!(shape.parts(), parts);
            let (filter, slices) = (IncarnationFilter::new(shape), Slices::new(&shape));
            let placed = fill(&filter, &slices, 3, &hashes(1, 300));
            assert_found(&filter, &slices, 3, &placed);
        }
    }
}

/// Checks the rate at which other hashes are candidates of full columns against the shape's promise.
fn assert_rate(shape: FilterShape, columns: usize, queries: usize) {
    let filter = IncarnationFilter::new(shape);
    let slices = Slices::new(&shape);
    let entries = wide(shape.entries_max());
    for column in 0..columns {
        fill(&filter, &slices, column, &hashes(1000 + column as u64, entries));
    }
    let live = slices::mask_of(0..columns);
    let found: u64 = Stream(77)
        .take(queries)
        .map(|hash| filter.candidates(&slices, hash, &live).map(u64::count_ones))
        .map(|ones| ones.iter().map(|ones| u64::from(*ones)).sum::<u64>())
        .sum();
    let (rate, trials) = (shape.rate(entries as u64), (columns * queries) as f64);
    let sigma = (trials * rate * (1.0 - rate)).sqrt();
    let off = (found as f64 - trials * rate) / sigma;
    assert!(off.abs() < 4.0, "{shape:?}: {found} of {trials}, expected {rate}: {off} sigma");
}

#[test]
fn false_positives_of_fuse_filters_are_as_promised() {
    assert_rate(FilterShape::fuse(4000, 8, 1).unwrap(), 60, 10_000);
    assert_rate(FilterShape::fuse(1000, 5, 2).unwrap(), 120, 3_000);
    assert_rate(FilterShape::fuse(300, 11, 4).unwrap(), 250, 10_000);
}

#[test]
fn false_positives_of_bloom_filters_are_as_promised() {
    assert_rate(FilterShape::bloom(4000, 10.0, 1).unwrap(), 60, 5_000);
    assert_rate(FilterShape::bloom(2000, 6.0, 2).unwrap(), 120, 1_000);
    assert_rate(FilterShape::bloom(2000, 14.5, 3).unwrap(), 180, 5_000);
}

#[test]
fn hashes_that_share_their_high_or_low_bits_serve_as_well() {
    for (keep, set) in [(u64::MAX >> 16, 0xBEEF << 48), (u64::MAX << 16, 0xBEEF)] {
        let keys: Vec<u64> = Stream(5).take(4000).map(|hash| hash & keep | set).collect();
        let filter = IncarnationFilter::new(FilterShape::fuse(4000, 8, 1).unwrap());
        let slices = Slices::new(filter.shape());
        let placed = fill(&filter, &slices, 0, &keys);
        assert!(placed.len() > 3840, "{} of 4000 placed", placed.len());
        let queries = Stream(6).take(20_000).map(|hash| hash & keep | set);
        let found = queries.filter(|hash| filter.candidates(&slices, *hash, &[1, 0, 0, 0])[0] == 1);
        // 20,000 / 256 = 78, sigma 8.8.
        let found = found.count();
        assert!((42..115).contains(&found), "{found} false positives, expected 78");
    }
}

#[test]
fn a_full_fuse_filter_bumps_few_keys_and_a_filter_with_space_next_to_none() {
    let mut scratch = BuildScratch::new();
    let (mut bits, mut bumped) = (Vec::new(), Vec::new());
    for entries in [50, 200, 450, 1000, 2000, 4000, 10_100, 15_000, 25_100, 30_000, 50_100] {
        let filter = IncarnationFilter::new(FilterShape::fuse(entries, 8, 1).unwrap());
        for load in [1.0, 0.99, 0.95, 0.8] {
            let rounds = 40_000 / entries + 2;
            let count = (f64::from(entries) * load) as usize;
            let bound = filter.shape().bumped_share(count as u64);
            let mut share = 0.0;
            for round in 0..rounds {
                let keys = hashes(u64::from(entries + round), count);
                filter.build_into(&mut scratch, &keys, &mut bits, &mut bumped);
                share += bumped.len() as f64 / count as f64 / f64::from(rounds);
            }
            assert!(share < bound, "{entries} keys at load {load}: {share} bumped");
        }
    }
}

#[test]
fn of_equal_hashes_one_is_placed_and_the_others_bumped() {
    let filter = IncarnationFilter::new(FilterShape::fuse(1000, 12, 1).unwrap());
    let slices = Slices::new(filter.shape());
    let mut keys = hashes(9, 600);
    keys.extend(std::iter::repeat_n(keys[0], 300));
    let built = filter.build(&keys);
    assert_eq!(built.bumped.iter().filter(|&&index| keys[index] == keys[0]).count(), 300);
    slices.write_column(1, &built.bits);
    assert_found(&filter, &slices, 1, &keys[..1]);
}

#[test]
fn columns_are_the_same_bits_as_ever_because_they_are_stored_on_flash() {
    let sum = |shape: crate::Result<FilterShape>| {
        let bits = IncarnationFilter::new(shape.unwrap()).build(&hashes(1, 1000)).bits;
        bits.iter().fold(0, |sum, word| hash::mix(sum ^ word))
    };
    let parts = ShapeParts {
        kind: 1,
        entries_max: 1000,
        slots: 1180,
        bits_per_slot: 13,
        hashes: 4,
        segment: 27,
        words: 1,
    };
    assert_eq!(sum(FilterShape::bloom(1000, 10.0, 1)), 15_848_274_642_047_503_524);
    // The positions and the fingerprint of a key are unchanged. The choice among the four slots is free and
    // unobservable.
    let layout = fuse::SlotLayout::new(&FilterShape::from_parts(parts).unwrap());
    let looks = hashes(1, 1000).into_iter().fold(0, |sum, hash| {
        let mixed = hash::mix(hash);
        let slots =
            layout.slots(mixed).into_iter().fold(sum, |sum, slot| hash::mix(sum ^ u64::from(slot)));
        hash::mix(slots ^ u64::from(layout.fingerprint(mixed)))
    });
    assert_eq!(looks, 10_327_825_807_494_108_890);
    assert_eq!(sum(FilterShape::from_parts(parts)), 6_770_128_086_636_206_662);
}

#[test]
fn scratch_may_be_used_again_for_other_shapes() {
    let mut scratch = BuildScratch::new();
    let (mut bits, mut bumped) = (vec![7; 9], vec![3]);
    for (entries, width) in [(5000, 13), (40, 3), (0, 9), (900, 24)] {
        let filter = IncarnationFilter::new(FilterShape::fuse(entries.max(1), width, 1).unwrap());
        let keys = hashes(u64::from(entries), wide(entries));
        filter.build_into(&mut scratch, &keys, &mut bits, &mut bumped);
        assert_eq!(filter.build(&keys), Built { bits: bits.clone(), bumped: bumped.clone() });
        assert_eq!(bits.len(), filter.shape().column_words());
    }
}

#[test]
fn a_column_overwritten_forgets_its_old_keys_and_its_neighbours_keep_theirs() {
    let filter = IncarnationFilter::new(FilterShape::fuse(500, 16, 2).unwrap());
    let slices = Slices::new(filter.shape());
    let (old, new) = (hashes(1, 500), hashes(2, 500));
    let neighbours: Vec<_> =
        [63, 65].map(|column| fill(&filter, &slices, column, &hashes(column as u64, 500))).into();
    let old = fill(&filter, &slices, 64, &old);
    let new = fill(&filter, &slices, 64, &new);
    assert_found(&filter, &slices, 64, &new);
    assert_found(&filter, &slices, 63, &neighbours[0]);
    assert_found(&filter, &slices, 65, &neighbours[1]);
    let stale =
        old.iter().filter(|hash| has(&filter.candidates(&slices, **hash, &all_live(2)), 64));
    // 500 / 65,536 expected.
    assert!(stale.count() <= 1);
}

#[test]
fn a_column_that_is_not_live_is_never_a_candidate() {
    for shape in [FilterShape::fuse(100, 4, 1), FilterShape::bloom(100, 4.0, 1)] {
        let filter = IncarnationFilter::new(shape.unwrap());
        let slices = Slices::new(filter.shape());
        let keys = hashes(4, 100);
        (0..64).for_each(|column| drop(fill(&filter, &slices, column, &keys)));
        let live = [0xF0F0, u64::MAX, u64::MAX, u64::MAX];
        for &hash in &keys {
            assert_eq!(filter.candidates(&slices, hash, &live)[0] & !0xF0F0, 0);
            assert_eq!(filter.candidates(&slices, hash, &live)[1..], [0; 3]);
        }
    }
}

#[test]
fn what_is_prefetched_is_what_is_read() {
    let filter = IncarnationFilter::new(FilterShape::fuse(1000, 13, 2).unwrap());
    let slices = Slices::new(filter.shape());
    let keys = fill(&filter, &slices, 100, &hashes(8, 1000));
    let positions = filter.positions(keys[0]);
    let mut runs = Vec::new();
    filter.for_each_run(&positions, |run| runs.push(run));
    assert_eq!(runs.iter().map(ExactSizeIterator::len).collect::<Vec<_>>(), [13; 4]);
    filter.prefetch(&slices, &positions);
    let found = filter.candidates_at(&slices, &positions, &all_live(2));
    assert_eq!(found, filter.candidates(&slices, keys[0], &all_live(2)));
    // Changing one of the rows that were reported loses the key.
    for row in runs.into_iter().flatten() {
        let mut bits = slices.extract_column(100);
        bits[row / 64] ^= 1 << (row % 64);
        slices.write_column(100, &bits);
        assert!(!has(&filter.candidates_at(&slices, &positions, &all_live(2)), 100), "row {row}");
        bits[row / 64] ^= 1 << (row % 64);
        slices.write_column(100, &bits);
    }
    // All other rows may change, and the key is found: nothing else is read.
    let mut kept = vec![u64::MAX; filter.shape().column_words()];
    filter.for_each_run(&positions, |run| run.for_each(|row| kept[row / 64] &= !(1 << (row % 64))));
    let bits = slices.extract_column(100);
    let others: Vec<_> = bits.iter().zip(&kept).map(|(bits, other)| bits ^ other).collect();
    slices.write_column(100, &others);
    assert!(has(&filter.candidates_at(&slices, &positions, &all_live(2)), 100));
}

#[test]
fn lookups_see_every_live_key_while_another_column_is_written() {
    for shape in [FilterShape::fuse(400, 9, 1).unwrap(), FilterShape::bloom(400, 9.0, 2).unwrap()] {
        let filter = IncarnationFilter::new(shape);
        let slices = Slices::new(&shape);
        let placed = fill(&filter, &slices, 12, &hashes(3, 400));
        let columns: Vec<_> = (0..8).map(|seed| filter.build(&hashes(seed, 400)).bits).collect();
        let done = AtomicBool::new(false);
        let live = [1 << 12, 0, 0, 0];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let rounds = columns.iter().cycle().take(400);
                rounds.for_each(|bits| slices.write_column(13, bits));
                done.store(true, Ordering::Release);
            });
            while !done.load(Ordering::Acquire) {
                for &hash in &placed {
                    assert_eq!(filter.candidates(&slices, hash, &live), live);
                }
            }
        });
    }
}

#[test]
fn shapes_refuse_what_cannot_work_and_say_what_would() {
    let text = |result: crate::Result<FilterShape>| result.unwrap_err().to_string();
    assert_eq!(text(FilterShape::fuse(10, 25, 1)), "filter bits per slot: 25; expected 1 to 24");
    assert_eq!(text(FilterShape::fuse(10, 8, 5)), "filter words: 5; expected 1 to 4");
    assert_eq!(text(FilterShape::fuse(0, 8, 1)), "filter entries: 0; expected 1 to 16777216");
    let nan = FilterShape::bloom(10, f64::NAN, 1);
    assert_eq!(text(nan), "filter bits: NaN bits per entry; expected 0.5 to 64");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Compares every width with a matrix of bytes.
    #[test]
    fn every_width_answers_alike(
        shape in shapes(), seed: u64, asked in 1_usize..=256, acts in prop::collection::vec(any::<(u8, u16)>(), 1..12),
    ) {
        let asked = asked.min(shape.columns());
        let (slices, all) = (Slices::with_columns(&shape, asked), Slices::new(&shape));
        let filter = IncarnationFilter::new(shape);
        let column_of = |seed| filter.build(&hashes(seed, shape.entries_max() as usize)).bits;
        let clear = |column: usize| slices::mask_of(column..column + 1);
        for (number, (act, column)) in acts.into_iter().enumerate() {
            let column = usize::from(column) % slices.columns();
            let bits = column_of(seed ^ number as u64);
            let other = column_of(!seed ^ number as u64);
            for slices in [&slices, &all] {
                match act % 4 {
                    0 => slices.write_column(column, &bits),
                    1 => slices.reset_columns(&clear(column)),
                    2 => {
                        slices.reset_columns(&clear(column));
                        slices.or_column(column, &bits);
                    }
                    _ => slices.load_columns(&[(column, &bits), (column / 2, &other)]),
                }
            }
        }
        for column in 0..slices.columns() {
            prop_assert_eq!(slices.extract_column(column), all.extract_column(column));
        }
        for row in (0..slices.column_bits()).step_by(7) {
            prop_assert_eq!(slices.row(row), all.row(row));
        }
        for hash in Stream(seed).take(200).chain(hashes(seed, 200)) {
            let (live, positions) = (all_live(shape.words()), filter.positions(hash));
            filter.prefetch(&slices, &positions);
            let found = filter.candidates_at(&slices, &positions, &live);
            let narrow = slices::mask_of(0..slices.columns());
            prop_assert_eq!(found, filter.candidates_at(&all, &positions, &narrow));
        }
    }
}
