//! What a multi-level hash index would read: the index of the drives that RHIK's paper compares itself with, as a
//! model.
//!
//! The index is a list of hash tables of pages, each twice as long as the one before. A key has one page in each level.
//! A new key goes to the first level whose page has space, and a page that was full once has spilled: a lookup that
//! does not find its key there goes on to the next level. Where all of a key's pages are full, a level is added. Pages
//! are read from flash unless they are among those in the budget of DRAM, which are replaced by a clock.
//!
//! The published text says that levels spill and that an access reads 3 to 7 pages once the index exceeds the DRAM;
//! sizes of levels and the replacement are chosen here. It is a model that counts: it keeps each key's level in RAM,
//! some 40 bytes a key, and reads nothing. It is asked the same accesses as the drive's real index, so that both are
//! counted alike.

use std::collections::HashMap;

use nandex::api::READS_HISTOGRAM_LEN;
use serde::Serialize;

/// Bytes of a page of the index.
const PAGE_BYTES: u64 = 4096;

/// Entries of a page: a key of 16 bytes and a place of 16 each, behind a header.
const PAGE_ENTRIES: u16 = 126;

/// Pages of the first level.
const FIRST_LEVEL_PAGES: u64 = 64;

/// What the model has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MultilevelStats {
    /// Levels there are.
    pub levels: usize,
    /// Pages of all levels.
    pub pages: u64,
    /// Pages that the budget of DRAM holds.
    pub dram_pages: u64,
    /// Accesses by the flash pages that they read; the last counts those that read as many or more.
    pub reads: [u64; READS_HISTOGRAM_LEN],
}

/// Whether an access adds or removes its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Lookup,
    Insert,
    Remove,
}

/// The model.
#[derive(Debug)]
pub(crate) struct Multilevel {
    levels: Vec<Level>,
    /// The level of each key, by its hash.
    keys: HashMap<u64, u8>,
    cache: PageCache,
    reads: [u64; READS_HISTOGRAM_LEN],
}

#[derive(Debug)]
struct Level {
    /// Entries of each page.
    fill: Vec<u16>,
    /// Was the page ever full when a key came?
    has_spilled: Vec<bool>,
}

/// A page of a level.
type PageName = (u8, u64);

/// The pages in DRAM, replaced by a clock.
#[derive(Debug)]
struct PageCache {
    most: usize,
    places: HashMap<PageName, usize>,
    slots: Vec<(PageName, bool)>,
    hand: usize,
}

impl Multilevel {
    /// An empty index with that much DRAM for its pages.
    pub(crate) fn new(dram_bytes: u64) -> Self {
        let most = usize::try_from(dram_bytes / PAGE_BYTES).unwrap_or(usize::MAX);
        let cache = PageCache { most, places: HashMap::new(), slots: Vec::new(), hand: 0 };
        let levels = vec![Level::new(0)];
        Self { levels, keys: HashMap::new(), cache, reads: [0; READS_HISTOGRAM_LEN] }
    }

    /// Counts an access to the key with this hash.
    pub(crate) fn access(&mut self, hash: u64, access: Access) {
        let reads = self.probe(hash, access);
        self.reads[reads.min(READS_HISTOGRAM_LEN - 1)] += 1;
    }

    /// Takes a key that is there without counting.
    pub(crate) fn fill(&mut self, hash: u64) {
        self.probe(hash, Access::Insert);
    }

    pub(crate) fn stats(&self) -> MultilevelStats {
        MultilevelStats {
            levels: self.levels.len(),
            pages: self.levels.iter().map(|level| level.fill.len() as u64).sum(),
            dram_pages: self.cache.most as u64,
            reads: self.reads,
        }
    }

    /// Walks the levels as far as the access must, and gives the pages it reads.
    fn probe(&mut self, hash: u64, access: Access) -> usize {
        let place = self.keys.get(&hash).copied().map(usize::from);
        let (mut reads, mut free) = (0, None);
        let mut level = 0;
        while level < self.levels.len() {
            let page = self.levels[level].page(hash, level);
            reads += usize::from(self.cache.miss((level as u8, page as u64)));
            if free.is_none() && self.levels[level].fill[page] < PAGE_ENTRIES {
                free = Some(level);
            }
            if place == Some(level) || (place.is_none() && !self.levels[level].has_spilled[page]) {
                break;
            }
            level += 1;
        }
        match (access, place) {
            (Access::Insert, None) => self.insert(hash, free),
            (Access::Remove, Some(level)) => {
                let page = self.levels[level].page(hash, level);
                self.levels[level].fill[page] -= 1;
                self.keys.remove(&hash);
            }
            _ => {}
        }
        reads
    }

    /// Puts a key on the first level with space on its page; full pages before it spill.
    fn insert(&mut self, hash: u64, seen: Option<usize>) {
        let mut level = seen.unwrap_or(0);
        loop {
            if level == self.levels.len() {
                self.levels.push(Level::new(level));
            }
            let page = self.levels[level].page(hash, level);
            if self.levels[level].fill[page] < PAGE_ENTRIES {
                self.levels[level].fill[page] += 1;
                self.keys.insert(hash, level as u8);
                return;
            }
            self.levels[level].has_spilled[page] = true;
            level += 1;
        }
    }
}

impl Level {
    fn new(level: usize) -> Self {
        let pages = (FIRST_LEVEL_PAGES << level) as usize;
        Self { fill: vec![0; pages], has_spilled: vec![false; pages] }
    }

    /// The page of a key in this level.
    fn page(&self, hash: u64, level: usize) -> usize {
        let mixed = nandex::store::hash::mix(hash.wrapping_add((level as u64) << 56));
        ((u128::from(mixed) * self.fill.len() as u128) >> 64) as usize
    }
}

impl PageCache {
    /// Touches a page; true if it must be read.
    fn miss(&mut self, page: PageName) -> bool {
        if let Some(slot) = self.places.get(&page) {
            self.slots[*slot].1 = true;
            return false;
        }
        if self.slots.len() < self.most {
            self.places.insert(page, self.slots.len());
            self.slots.push((page, true));
        } else if self.most > 0 {
            self.replace(page);
        }
        true
    }

    fn replace(&mut self, page: PageName) {
        while std::mem::replace(&mut self.slots[self.hand].1, false) {
            self.hand = (self.hand + 1) % self.slots.len();
        }
        self.places.remove(&self.slots[self.hand].0);
        self.places.insert(page, self.hand);
        self.slots[self.hand] = (page, true);
        self.hand = (self.hand + 1) % self.slots.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u64) -> u64 {
        nandex::store::hash::mix(number ^ 0x5eed)
    }

    /// The mean and the most of pages read by a lookup of each key.
    fn lookups(model: &mut Multilevel, numbers: std::ops::Range<u64>) -> (f64, usize) {
        let count = numbers.end - numbers.start;
        let reads = numbers.map(|number| model.probe(hash(number), Access::Lookup));
        let (sum, most) = reads.fold((0, 0), |(sum, most), reads| (sum + reads, reads.max(most)));
        (sum as f64 / count as f64, most)
    }

    #[test]
    fn an_index_within_its_dram_reads_each_page_once() {
        let mut model = Multilevel::new(64 << 20);
        (0..100_000).for_each(|number| model.fill(hash(number)));
        assert_eq!(lookups(&mut model, 0..100_000), (0.0, 0));
    }

    #[test]
    fn beyond_its_dram_it_reads_a_page_for_each_level_up_to_seven() {
        let mut model = Multilevel::new(40 * PAGE_BYTES);
        (0..600_000).for_each(|number| model.fill(hash(number)));
        let stats = model.stats();
        assert!((6..=8).contains(&stats.levels), "{stats:?}");
        let (mean, _) = lookups(&mut model, 0..20_000);
        let (absent, _) = lookups(&mut model, 1_000_000..1_020_000);
        assert!(
            mean > 1.0 && mean < absent,
            "keys that came first are on the first levels: {mean}"
        );
        let (late, most) = lookups(&mut model, 580_000..600_000);
        assert!((3.0..=7.0).contains(&late), "{late}");
        assert!((3..=8).contains(&most), "{most}");
    }

    #[test]
    fn keys_that_are_removed_make_space_and_are_found_no_more() {
        let mut model = Multilevel::new(0);
        (0..20_000).for_each(|number| model.access(hash(number), Access::Insert));
        let levels = model.stats().levels;
        for round in 0..5 {
            for number in 0..20_000 {
                model.access(hash(number + round * 20_000), Access::Remove);
                model.access(hash(number + (round + 1) * 20_000), Access::Insert);
            }
        }
        assert_eq!(model.keys.len(), 20_000);
        let fills: u64 = model.levels.iter().flat_map(|it| &it.fill).map(|it| u64::from(*it)).sum();
        assert_eq!(fills, 20_000);
        assert!(model.stats().levels <= levels + 1, "space is used again: {:?}", model.stats());
        assert_eq!(model.stats().reads[0], 0, "without DRAM each access reads");
    }
}
