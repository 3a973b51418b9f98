//! The reads of a multi-level index that is too large to run, by a formula.
//!
//! Levels are filled from the first on, each page to its last entry. A new key's access reads its page of
//! each level that is full and of the next one. A page of level `i` is used at a rate that is inverse to the
//! level's pages. With an LRU cache, a page is present if it was used within a time `t` that is the same for
//! all (Che et al., "Hierarchical Web Caching Systems", 2002), and `t` is such that the present pages fill
//! the cache.

use super::multilevel::LevelShape;

/// The number of steps that halve the range of `t`.
const STEPS: usize = 200;

/// Returns the flash reads of the access that adds a key to an index of `keys` keys.
#[must_use]
pub fn reads_of_insert(keys: f64, shape: LevelShape) -> f64 {
    let (levels, dram_pages) = (levels(keys, shape), shape.cached_pages);
    let held = |t: f64| levels.iter().map(|pages| pages * is_there(t, *pages)).sum::<f64>();
    if levels.iter().sum::<f64>() <= dram_pages {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, 1e18);
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if held(middle) < dram_pages { low = middle } else { high = middle }
    }
    levels.iter().map(|pages| 1.0 - is_there(low, *pages)).sum()
}

/// Returns the probability that a page of a level of `pages` pages was used within the last `t` accesses.
fn is_there(t: f64, pages: f64) -> f64 {
    1.0 - (-t / pages).exp()
}

/// Returns the pages of the levels that keys are in.
fn levels(mut keys: f64, shape: LevelShape) -> Vec<f64> {
    let mut last = shape.first_pages;
    let mut levels = vec![last];
    while keys > last * shape.page_entries {
        keys -= last * shape.page_entries;
        last *= 2.0;
        levels.push(last);
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(cached_pages: f64) -> LevelShape {
        LevelShape { first_pages: 64.0, page_entries: 120.0, cached_pages }
    }

    #[test]
    fn an_index_within_its_dram_reads_nothing_and_one_without_dram_all_levels() {
        let page_keys = 120.0 * 64.0;
        assert_eq!(reads_of_insert(page_keys, shape(64.0)), 0.0);
        let levels_of = |pages: f64| reads_of_insert(page_keys * pages, shape(0.0));
        assert!((levels_of(1.0) - 1.0).abs() < 1e-6);
        assert!((levels_of(3.0) - 2.0).abs() < 1e-6);
        assert!((levels_of(6.9) - 3.0).abs() < 1e-6);
    }

    #[test]
    fn more_keys_read_more_and_more_dram_less() {
        let reads = |keys, dram| reads_of_insert(keys, shape(dram));
        assert!(reads(1e9, 1e5) > reads(1e8, 1e5));
        assert!(reads(1e9, 1e6) < reads(1e9, 1e5));
    }
}
