//! Tests of the filters: nothing that was put in is ever missed, and nothing else is found too often.

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

/// Builds and writes a column; the hashes that are in it.
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

/// Full columns, and how often other hashes are candidates of each, against the shape's promise.
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
    // Where a key looks, and what for, is as ever. Which of the four slots is its own is free, and nobody asks.
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
    // Changing one of the rows that were announced loses the key.
    for row in runs.into_iter().flatten() {
        let mut bits = slices.extract_column(100);
        bits[row / 64] ^= 1 << (row % 64);
        slices.write_column(100, &bits);
        assert!(!has(&filter.candidates_at(&slices, &positions, &all_live(2)), 100), "row {row}");
        bits[row / 64] ^= 1 << (row % 64);
        slices.write_column(100, &bits);
    }
    // All others may change, and it is found: nothing else is read.
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
fn a_matrix_is_as_wide_as_its_columns_need() {
    for (words, columns, width) in [
        (1, 0, 8),
        (1, 8, 8),
        (1, 9, 16),
        (1, 17, 24),
        (1, 25, 32),
        (1, 33, 48),
        (1, 49, 64),
        (3, 65, 128),
        (3, 129, 192),
        (4, 129, 192),
        (4, 193, 256),
    ] {
        assert_eq!(Slices::width_of(columns), width);
        // 16 rows of a slot are whole quads.
        for shape in [FilterShape::fuse(300, 16, words), FilterShape::bloom(300, 12.0, words)] {
            let shape = shape.unwrap();
            let slices = Slices::with_columns(&shape, columns);
            let bytes = shape.column_bits() * width / 8;
            assert_eq!((slices.columns(), slices.ram_bytes()), (width, bytes));
        }
    }
    let shape = FilterShape::fuse(300, 15, 1).unwrap();
    assert_eq!(Slices::new(&shape).ram_bytes(), shape.ram_bytes());
    // 15 rows of 24 columns are 45 bytes, and take 12 cells of 4.
    let bytes = shape.slots() as usize * 48;
    assert_eq!(Slices::with_columns(&shape, 24).ram_bytes(), bytes);
}

#[test]
fn a_widened_filter_answers_as_before_while_others_ask_it() {
    let shapes = [FilterShape::fuse(400, 11, 1), FilterShape::bloom(400, 9.0, 4)];
    for shape in shapes.map(Result::unwrap) {
        let filter = IncarnationFilter::new(shape);
        let slices = RwLock::new((Arc::new(Slices::with_columns(&shape, 0)), Vec::new()));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let slices = &slices;
            let reader = || {
                while !done.load(Ordering::Acquire) {
                    let (matrix, placed) = &*slices.read().unwrap();
                    for (column, placed) in placed.iter().enumerate() {
                        let live = slices::mask_of(0..column + 1);
                        let found = filter.candidates(matrix, *placed, &live);
                        assert!(has(&found, column), "column {column}");
                    }
                }
            };
            scope.spawn(reader);
            for column in 0..shape.columns() {
                let old = Arc::clone(&slices.read().unwrap().0);
                let wide =
                    if column < old.columns() { old } else { Arc::new(old.widened(column + 1, 0)) };
                let placed = fill(&filter, &wide, column, &hashes(column as u64, 400))[0];
                let mut now = slices.write().unwrap();
                now.0 = wide;
                now.1.push(placed);
            }
            done.store(true, Ordering::Release);
        });
        let (widest, _) = slices.into_inner().unwrap();
        assert_eq!(widest.columns(), shape.columns());
        let at_once = Slices::new(&shape);
        for column in 0..shape.columns() {
            fill(&filter, &at_once, column, &hashes(column as u64, 400));
            assert_eq!(widest.extract_column(column), at_once.extract_column(column));
        }
    }
}

#[test]
fn at_every_width_the_same_keys_are_candidates_and_columns_not_there_yet_are_none() {
    for (shape, kept) in [(FilterShape::fuse(300, 3, 2), 5), (FilterShape::bloom(300, 2.0, 2), 5)] {
        let filter = IncarnationFilter::new(shape.unwrap());
        let mut slices = Slices::with_columns(filter.shape(), kept);
        (0..kept)
            .for_each(|column| drop(fill(&filter, &slices, column, &hashes(column as u64, 300))));
        let answers = |slices: &Slices| -> Vec<_> {
            Stream(99).take(2000).map(|it| filter.candidates(slices, it, &all_live(2))).collect()
        };
        let before = answers(&slices);
        assert!(before.iter().any(|it| *it != [0; 4]));
        for columns in [9, 17, 25, 33, 49, 65] {
            slices = slices.widened(columns, 0);
            let live = slices::mask_of(0..kept);
            let now = answers(&slices).into_iter().map(|it| [it[0] & live[0], 0, 0, 0]);
            assert!(
                now.eq(before.iter().map(|it| [it[0] & live[0], 0, 0, 0])),
                "{columns} columns"
            );
        }
        assert!(before.iter().all(|it| it[0] >> 8 == 0 && it[1..] == [0; 3]));
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

/// A Bloom super table run as the paper runs it: columns are only ORed into, and those that the window has left are
/// reset together. Returns the resets, and the columns in the end.
fn slide(k: usize, words: u32, pushes: u64) -> (u64, usize) {
    let shape = FilterShape::bloom(1000, 10.0, words).unwrap();
    let (filter, mut slices) = (IncarnationFilter::new(shape), Slices::with_columns(&shape, 0));
    let mut window = Window::new(k, slices.columns()).unwrap();
    let mut held = std::collections::VecDeque::new();
    let (mut resets, mut wrong, mut asked) = (0, 0, 0);
    for push in 0..pushes {
        if window.is_full() {
            window.pop_oldest().unwrap();
            held.pop_front();
        }
        if window.is_circle_full() {
            slices = slices.widened(window.len() + 1, window.first_column());
            window.widen(slices.columns());
        }
        if let Some(columns) = window.take_unclear() {
            slices.reset_columns(&columns);
            resets += 1;
        }
        let keys = hashes(push, 1000);
        assert!(!has(&window.live_mask(), window.next_column()));
        slices.or_column(window.next_column(), &filter.build(&keys).bits);
        // Exactly this filter is there: nothing stale, so no false positive beyond its own.
        assert_eq!(slices.extract_column(window.next_column()), filter.build(&keys).bits);
        window.push();
        held.push_back(keys);
        // What is evicted early lets the window move before its circle is full.
        if push % 3 == 2 && push < k as u64 {
            window.pop_oldest().unwrap();
            held.pop_front();
        }
        for (age, keys) in held.iter().enumerate() {
            let column = (window.first_column() + age) % window.columns();
            let found = filter.candidates(&slices, keys[0], &window.live_mask());
            assert!(has(&found, column), "push {push}: column {column} misses a key");
        }
        for hash in Stream(!push).take(100) {
            let found = filter.candidates(&slices, hash, &window.live_mask());
            wrong += found.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
            asked += held.len() as u64;
        }
    }
    let (rate, asked) = (shape.rate(1000), asked as f64);
    let sigma = (asked * rate).sqrt();
    // Two hashes in place of seven cost a small filter a little.
    let bound = 1.02 * asked * rate + 4.0 * sigma;
    assert!((wrong as f64) < bound, "{wrong} of {asked}, expected {rate}");
    (resets, window.columns())
}

#[test]
fn stale_bits_of_a_sliding_window_never_hide_a_key_nor_add_false_positives() {
    // One pass over the rows for all columns that are not live, not one per eviction.
    for (k, words, pushes, columns) in [
        (5, 1, 200, 8),
        (17, 1, 300, 24),
        (30, 1, 300, 32),
        (40, 1, 400, 48),
        (56, 1, 300, 64),
        (100, 2, 300, 128),
        (180, 4, 600, 192),
    ] {
        let (resets, found) = slide(k, words, pushes);
        assert_eq!(found, columns);
        // While it grew, a circle was narrower.
        let at_once = (columns - k + 1) as u64;
        assert!(resets <= pushes / at_once + 12, "{resets} resets for {pushes} pushes of {k}");
    }
}

#[test]
fn rows_that_are_widened_begin_with_the_first_column() {
    for shape in [FilterShape::fuse(60, 13, 4).unwrap(), FilterShape::bloom(90, 9.0, 4).unwrap()] {
        let filter = IncarnationFilter::new(shape);
        for (columns, wider) in
            [(8, 9), (16, 17), (24, 32), (32, 33), (48, 64), (64, 65), (128, 192), (192, 193)]
        {
            for first in [0, 1, columns / 3, columns - 1] {
                let slices = Slices::with_columns(&shape, columns);
                let bits: Vec<_> =
                    (0..columns).map(|it| filter.build(&hashes(it as u64, 60)).bits).collect();
                (0..columns).for_each(|column| slices.write_column(column, &bits[column]));
                let wide = slices.widened(wider, first);
                for column in 0..columns {
                    let expected = &bits[(first + column) % columns];
                    assert_eq!(&wide.extract_column(column), expected, "{column} of {columns}");
                }
                for column in columns..wide.columns() {
                    assert!(wide.extract_column(column).iter().all(|word| *word == 0));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// What a matrix of bytes would do, for every width.
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
