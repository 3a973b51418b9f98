//! Matrices that are widened, and columns that slide through a window.

use super::*;

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

/// Runs a Bloom super table as the paper does: columns are only ORed into, and those that the window has left are reset
/// together. Returns the number of resets, and the final number of columns.
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
        // Exactly this filter is present: nothing stale, so no false positives beyond its own.
        assert_eq!(slices.extract_column(window.next_column()), filter.build(&keys).bits);
        window.push();
        held.push_back(keys);
        // Early evictions let the window move before its circle is full.
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
    // Two hashes instead of seven make a small filter slightly worse.
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
        // While it grew, the circle was narrower.
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
