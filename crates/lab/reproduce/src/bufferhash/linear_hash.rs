//! The requests of Berkeley DB's hash table: linear hashing over a page cache that writes back.
//!
//! Its latencies follow from the requested pages and their order, so it keeps the number of entries of each
//! bucket and no bytes. A page that is not in the cache replaces the least recently used one. If that one was
//! changed, the operation writes it first, even if it is a lookup.
//!
//! ```text
//!   page 0 ..        buckets ->      free      <- overflow pages        .. last page of the file
//! ```

use nandex_sim::RequestKind;
use nandex_sim::workload::SplitMix64;

use super::page_cache::{Change, PageCache};
use crate::tape::Step;

/// Entries of 16 bytes on a page of 4096 bytes: a header of 26 bytes, and for key and value each an index of
/// two bytes and a byte for the type.
const PAGE_ENTRIES: u32 = (4096 - 26) / 22;
/// Entries for each bucket that Berkeley DB's manual advises: (page - 32) / (key + value + 8).
const BUCKET_ENTRIES: u64 = (4096 - 32) / 24;

/// The table's size and keys.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinearHashShape {
    /// Pages of its file: half of them are buckets, so that each can have an overflow page.
    pub file_pages: u64,
    /// Pages of its cache.
    pub cache_pages: u64,
    /// The share of lookups that find their key.
    pub success_rate: f64,
    /// The seed of the keys.
    pub seed: u64,
}

/// The table.
#[derive(Clone, Debug)]
pub struct LinearHash {
    shape: LinearHashShape,
    /// The end of the keys in the table, exclusive; they begin at 0.
    entries: u64,
    /// Entries of each bucket.
    loads: Vec<u32>,
    /// The overflow pages of each bucket, in the order of its chain.
    overflow: Vec<Vec<u64>>,
    /// The next overflow page, if none is free below the end.
    overflow_next: u64,
    overflow_free: Vec<u64>,
    cache: PageCache,
    rng: SplitMix64,
}

impl LinearHash {
    /// Creates a table whose buckets have as many entries as the manual advises, and whose cache is in its
    /// stable state.
    pub fn filled(shape: LinearHashShape) -> Self {
        let buckets = (shape.file_pages / 2).max(1);
        let mut table = Self {
            shape,
            entries: buckets * BUCKET_ENTRIES,
            loads: vec![0; buckets as usize],
            overflow: vec![Vec::new(); buckets as usize],
            overflow_next: shape.file_pages - 1,
            overflow_free: Vec::new(),
            cache: PageCache::new(shape.cache_pages as usize),
            rng: SplitMix64::stream(shape.seed, 8),
        };
        for key in 0..table.entries {
            let bucket = table.bucket(table.hash(key));
            table.loads[bucket] += 1;
        }
        (0..table.loads.len()).for_each(|bucket| table.resize_chain(bucket));
        for _ in 0..4 * shape.cache_pages {
            let key = table.draw();
            let _ = table.insert(key);
        }
        table
    }

    /// Returns its size and keys.
    pub fn shape(&self) -> LinearHashShape {
        self.shape
    }

    /// Returns a random key, which is in the table at the rate of [`LinearHashShape::success_rate`]. All
    /// absent keys are equivalent, so an absent one is the next key.
    pub fn draw(&mut self) -> u64 {
        let range = (self.entries as f64 / self.shape.success_rate) as u64;
        self.rng.below(range).min(self.entries)
    }

    /// Returns the end of the keys in the table, exclusive; they begin at 0. It is the next absent key.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Returns the requests of a lookup, one after another.
    pub fn lookup(&mut self, key: u64) -> Vec<Step> {
        let mut steps = Vec::new();
        self.search(key, &mut steps);
        steps
    }

    /// Returns the requests of an insert, one after another. A bucket is split if all are as full as they
    /// should be.
    pub fn insert(&mut self, key: u64) -> Vec<Step> {
        let mut steps = Vec::new();
        let page = self.search(key, &mut steps);
        self.touch(page, Change::Changed, &mut steps);
        if key == self.entries {
            self.add(key, page, &mut steps);
        }
        steps
    }

    /// Reads the bucket's pages up to the one with the key, or all. Returns the last one.
    fn search(&mut self, key: u64, steps: &mut Vec<Step>) -> u64 {
        let hash = self.hash(key);
        let bucket = self.bucket(hash);
        let chain = self.chain(bucket);
        let load = u64::from(self.loads[bucket]).max(1);
        let place = ((hash >> 40) % load) as usize / PAGE_ENTRIES as usize;
        let read = if key < self.entries { place + 1 } else { chain.len() };
        chain[..read].iter().for_each(|page| self.touch(*page, Change::Same, steps));
        chain[read - 1]
    }

    /// Adds the next key after its bucket's last page, or in it.
    fn add(&mut self, key: u64, last: u64, steps: &mut Vec<Step>) {
        let bucket = self.bucket(self.hash(key));
        self.loads[bucket] += 1;
        self.entries += 1;
        self.resize_chain(bucket);
        if let Some(page) = self.overflow[bucket].last().copied().filter(|page| *page != last) {
            self.touch(page, Change::New, steps);
        }
        if self.entries > self.loads.len() as u64 * BUCKET_ENTRIES {
            self.split(steps);
        }
    }

    /// Moves about half of the next bucket's entries to a new bucket at the end.
    fn split(&mut self, steps: &mut Vec<Step>) {
        let new = self.loads.len();
        let old = new ^ (1 << new.ilog2());
        self.chain(old).into_iter().for_each(|page| self.touch(page, Change::Changed, steps));
        let load = self.loads[old];
        let moved = (0..load).filter(|_| self.rng.below(2) == 0).count() as u32;
        self.loads[old] -= moved;
        self.loads.push(moved);
        self.overflow.push(Vec::new());
        self.resize_chain(old);
        self.resize_chain(new);
        self.chain(new).into_iter().for_each(|page| self.touch(page, Change::New, steps));
    }

    /// Gives the bucket as many overflow pages as its entries take.
    fn resize_chain(&mut self, bucket: usize) {
        let wanted = self.loads[bucket].div_ceil(PAGE_ENTRIES).saturating_sub(1) as usize;
        while self.overflow[bucket].len() > wanted {
            self.overflow_free.extend(self.overflow[bucket].pop());
        }
        while self.overflow[bucket].len() < wanted {
            let page = self.overflow_free.pop().unwrap_or_else(|| {
                self.overflow_next -= 1;
                self.overflow_next + 1
            });
            assert!(page > self.loads.len() as u64, "buckets and overflow pages meet at {page}");
            self.overflow[bucket].push(page);
        }
    }

    /// Returns the bucket's pages, in the order in which they are read.
    fn chain(&self, bucket: usize) -> Vec<u64> {
        let overflow = self.overflow[bucket].iter().copied();
        std::iter::once(bucket as u64).chain(overflow).collect()
    }

    /// Returns the bucket of a hash: buckets that do not exist yet are still part of the one that they split
    /// from.
    fn bucket(&self, hash: u64) -> usize {
        let buckets = self.loads.len();
        let mask = buckets.next_power_of_two() - 1;
        let bucket = hash as usize & mask;
        if bucket < buckets { bucket } else { bucket & (mask >> 1) }
    }

    fn hash(&self, key: u64) -> u64 {
        SplitMix64::stream(self.shape.seed, key).next_u64()
    }

    /// Uses a page. Writes another one back first if that makes space, and reads it if it is not in the
    /// cache.
    fn touch(&mut self, page: u64, change: Change, steps: &mut Vec<Step>) {
        let used = self.cache.touch(page, change);
        let write = used.written_back.map(|page| (RequestKind::Write, page));
        let read = used.is_missing.then_some((RequestKind::Read, page));
        for (kind, page) in write.into_iter().chain(read) {
            steps.push(Step { kind, page, pages: 1, wave: steps.len() as u32 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> LinearHash {
        LinearHash::filled(LinearHashShape {
            file_pages: 300,
            cache_pages: 20,
            success_rate: 0.4,
            seed: 1,
        })
    }

    fn kinds(steps: &[Step]) -> Vec<RequestKind> {
        steps.iter().map(|step| step.kind).collect()
    }

    #[test]
    fn every_entry_is_in_a_bucket_before_and_after_splits() {
        let mut table = table();
        let buckets = table.loads.len();
        for _ in 0..10_000 {
            let key = table.draw();
            table.insert(key);
            let loads: u64 = table.loads.iter().map(|load| u64::from(*load)).sum();
            assert_eq!(loads, table.entries);
        }
        let full = table.entries.div_ceil(BUCKET_ENTRIES) as usize;
        assert!(table.loads.len() > buckets + 20);
        assert!(table.loads.len().abs_diff(full) <= 1, "{} and {full}", table.loads.len());
    }

    #[test]
    fn a_lookup_writes_the_page_back_that_makes_place_and_an_insert_of_its_key_finds_all_in_ram() {
        let mut table = table();
        let mut misses = 0;
        for _ in 0..1000 {
            let key = table.rng.below(table.entries);
            let looked_up = kinds(&table.lookup(key));
            assert_eq!(kinds(&table.insert(key)), []);
            misses += u32::from(looked_up.starts_with(&[RequestKind::Write, RequestKind::Read]));
        }
        assert!(misses > 500, "{misses}");
    }

    #[test]
    fn as_many_lookups_find_their_key_as_were_asked_for() {
        let mut table = table();
        let found = (0..10_000).filter(|_| table.draw() < table.entries).count();
        assert!((3_800..4_200).contains(&found), "{found}");
    }
}
