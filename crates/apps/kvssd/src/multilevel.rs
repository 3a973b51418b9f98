//! What a multi-level hash index would read: the index of the drives that RHIK's paper compares itself with, as a
//! model.
//!
//! The index is a list of hash tables of pages, each twice as long as the one before. A key has one page in each level.
//! A new key goes to the first level whose page has space, and a page that was full once has spilled: a lookup that
//! does not find its key there goes on to the next level. Where all of a key's pages are full, a level is added. Pages
//! are read from flash unless they are among those in the budget of DRAM, which are replaced by a clock.
//!
//! The published text says that levels spill and that an access reads 3 to 7 pages once the index exceeds the DRAM;
//! sizes of levels and the replacement are chosen here. It is a model that says what it reads: it keeps each key's
//! level in RAM, some 40 bytes a key, and no page. It is asked the same accesses as the drive's real index, so that one
//! run counts both. What updates write it does not say: for that the structure [`Multilevel`](nandex::Multilevel) can
//! be the drive's own index.

use std::collections::HashMap;

use nandex::api::READS_HISTOGRAM_LEN;
use serde::Serialize;

use crate::PageCache;

/// Bytes of a page of the index.
const PAGE_BYTES: u64 = 4096;

/// Entries of a page: a key of 16 bytes and a place of 16 each, behind a header.
const PAGE_ENTRIES: u16 = 126;

/// Pages of the first level.
const FIRST_PAGES: u64 = 64;

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

/// Whether an access of an index adds or removes its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// It looks the key up.
    Lookup,
    /// It adds the key, or finds it.
    Insert,
    /// It removes the key, if it is there.
    Remove,
}

/// The model of a multi-level hash index: what it would read.
#[derive(Debug)]
pub(crate) struct Multilevel {
    first_pages: u64,
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

impl Multilevel {
    /// An empty index with that much DRAM for its pages.
    pub fn new(dram_bytes: u64) -> Self {
        Self::with_first_level(dram_bytes, FIRST_PAGES)
    }

    /// An empty index whose first level has that many pages, at least one.
    fn with_first_level(dram_bytes: u64, pages: u64) -> Self {
        let cache = PageCache::new(usize::try_from(dram_bytes / PAGE_BYTES).unwrap_or(usize::MAX));
        let first_pages = pages.max(1);
        let (levels, keys) = (vec![Level::new(first_pages)], HashMap::new());
        Self { first_pages, levels, keys, cache, reads: [0; READS_HISTOGRAM_LEN] }
    }

    /// Counts an access to the key with this hash.
    pub fn access(&mut self, hash: u64, access: Access) {
        let reads = self.probe(hash, access);
        self.reads[reads.min(READS_HISTOGRAM_LEN - 1)] += 1;
    }

    /// Takes a key that is there without counting.
    pub fn fill(&mut self, hash: u64) {
        self.probe(hash, Access::Insert);
    }

    /// What it has counted so far.
    pub fn stats(&self) -> MultilevelStats {
        MultilevelStats {
            levels: self.levels.len(),
            pages: self.first_page(self.levels.len()),
            dram_pages: self.cache.pages_max() as u64,
            reads: self.reads,
        }
    }

    /// The number of the first page of a level.
    fn first_page(&self, level: usize) -> u64 {
        self.first_pages * ((1 << level) - 1)
    }

    /// The page of a key in a level, and its number.
    fn page(&self, hash: u64, level: usize) -> (usize, u64) {
        let page = self.levels[level].page(hash, level);
        (page, self.first_page(level) + page as u64)
    }

    /// Walks the levels as far as the access must, and says how many pages it reads.
    fn probe(&mut self, hash: u64, access: Access) -> usize {
        let place = self.keys.get(&hash).copied().map(usize::from);
        let (mut reads, mut free) = (0, None);
        let mut level = 0;
        while level < self.levels.len() {
            let (page, number) = self.page(hash, level);
            if !self.cache.hit(number) {
                reads += 1;
                self.cache.add(number);
            }
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
                let (page, number) = self.page(hash, level);
                self.levels[level].fill[page] -= 1;
                self.keys.remove(&hash);
                self.change(number);
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
                self.levels.push(Level::new(self.first_pages << level));
            }
            let (page, number) = self.page(hash, level);
            if self.levels[level].fill[page] < PAGE_ENTRIES {
                self.levels[level].fill[page] += 1;
                self.keys.insert(hash, level as u8);
                return self.change(number);
            }
            self.levels[level].has_spilled[page] = true;
            level += 1;
        }
    }

    /// Changes a page in DRAM, which a new page enters without a read.
    fn change(&mut self, number: u64) {
        if !self.cache.hit(number) {
            self.cache.add(number);
        }
    }
}

impl Level {
    fn new(pages: u64) -> Self {
        let pages = pages as usize;
        Self { fill: vec![0; pages], has_spilled: vec![false; pages] }
    }

    /// The page of a key in this level.
    fn page(&self, hash: u64, level: usize) -> usize {
        let mixed = nandex::store::hash::mix(hash.wrapping_add((level as u64) << 56));
        ((u128::from(mixed) * self.fill.len() as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nandex::device::MemoryDevice;
    use nandex::{Durability, Table, Volume, VolumeOptions};

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

    /// Mean reads of a lookup of each key of a structure with as little DRAM, and of absent keys.
    fn structure(keys: u64, dram_bytes: u64) -> [f64; 2] {
        let config = nandex::multilevel::Config {
            key_bytes: 16,
            value_bytes: 16,
            partitions: 1,
            first_pages: 16,
            page_cache_bytes: dram_bytes,
            ..nandex::multilevel::Config::tiny()
        };
        let device = Arc::new(MemoryDevice::new());
        let options = VolumeOptions { durability: Durability::Never, ..VolumeOptions::tiny() };
        let volume = Volume::create(device, options).unwrap();
        let table = nandex::Multilevel::create(&volume, "t", config).unwrap();
        let key = |number: u64| [number.to_le_bytes(), [7; 8]].concat();
        (0..keys).for_each(|number| table.insert(&key(number), &[8; 16]).unwrap());
        table.flush().unwrap();
        [0..keys, 1 << 40..(1 << 40) + keys].map(|numbers| {
            let count = numbers.end - numbers.start;
            // Once to fill the DRAM.
            let is_there = numbers.start == 0;
            let look = |it| assert_eq!(table.get(&key(it)).unwrap().is_some(), is_there);
            let look_up = || numbers.clone().for_each(look);
            look_up();
            let before = table.stats();
            look_up();
            let after = table.stats();
            let reads = |stats: &nandex::TableStats| stats.hit_reads + stats.miss_reads;
            (reads(&after) - reads(&before)) as f64 / count as f64
        })
    }

    /// The model says what the structure `multilevel` reads: its levels are the same, in a table that survives a crash.
    #[test]
    fn the_structure_reads_what_the_model_says() {
        for (keys, dram_pages) in [(6_000, 0), (30_000, 0), (30_000, 100)] {
            let dram_bytes = dram_pages * PAGE_BYTES;
            let mut model = Multilevel::with_first_level(dram_bytes, 16);
            (0..keys).for_each(|number| model.fill(hash(number)));
            lookups(&mut model, 0..keys);
            let (found, _) = lookups(&mut model, 0..keys);
            lookups(&mut model, 1 << 40..(1 << 40) + keys);
            let (absent, _) = lookups(&mut model, 1 << 40..(1 << 40) + keys);
            for (ours, its) in structure(keys, dram_bytes).into_iter().zip([found, absent]) {
                let ratio = ours / its;
                assert!((0.85..1.2).contains(&ratio), "{keys}, {dram_pages}: {ours} of {its}");
            }
        }
    }
}
