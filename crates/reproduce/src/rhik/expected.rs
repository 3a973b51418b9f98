//! The reads of a multi-level index that is too large to run, by a formula.
//!
//! Levels are filled from the first on, each page to its last entry. A new key's access looks at its page of each level
//! that is full and of the next one. A page of level `i` is used at a rate that is inverse to the level's pages. With a
//! cache that keeps what was used last, a page is there if it was used within a time `t` that is the same for all
//! (Che et al., "Hierarchical Web Caching Systems", 2002), and `t` is such that those that are there fill the cache.

use nandex_kvssd::{MULTILEVEL_FIRST_PAGES, MULTILEVEL_PAGE_ENTRIES};

/// Steps that halve the range of `t`.
const STEPS: usize = 200;

/// Flash reads of the access that adds a key to an index of that many keys with that much DRAM, in pages.
#[must_use]
pub fn reads_of_insert(keys: f64, dram_pages: f64) -> f64 {
    let levels = levels(keys);
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

/// The chance that a page of a level of that many pages was used within the last `t` accesses.
fn is_there(t: f64, pages: f64) -> f64 {
    1.0 - (-t / pages).exp()
}

/// Pages of the levels that keys are in.
fn levels(mut keys: f64) -> Vec<f64> {
    let mut levels = vec![MULTILEVEL_FIRST_PAGES as f64];
    let last = |levels: &[f64]| levels.last().copied().unwrap_or(1.0);
    while keys > last(&levels) * f64::from(MULTILEVEL_PAGE_ENTRIES) {
        keys -= last(&levels) * f64::from(MULTILEVEL_PAGE_ENTRIES);
        levels.push(2.0 * last(&levels));
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_within_its_dram_reads_nothing_and_one_without_dram_all_levels() {
        assert_eq!(reads_of_insert(126.0 * 64.0, 64.0), 0.0);
        let levels_of = |pages: f64| reads_of_insert(126.0 * 64.0 * pages, 0.0);
        assert!((levels_of(1.0) - 1.0).abs() < 1e-6);
        assert!((levels_of(3.0) - 2.0).abs() < 1e-6);
        assert!((levels_of(6.9) - 3.0).abs() < 1e-6);
    }

    #[test]
    fn more_keys_read_more_and_more_dram_less() {
        let reads = |keys, dram| reads_of_insert(keys, dram);
        assert!(reads(1e9, 1e5) > reads(1e8, 1e5));
        assert!(reads(1e9, 1e6) < reads(1e9, 1e5));
    }
}
