//! A generation of the directory: the buckets of documents with neighbouring numbers.
//!
//! A quotient filter has a fingerprint for each bucket of each block: some bits of a hash of the bucket, and then the
//! number of the block. So the blocks of a bucket are one range of fingerprints. All buckets of a document lead to its
//! block, and so one read answers for all of them. The block decides whether a fingerprint is right: it may be that of
//! another bucket. Names are the buckets of one more table.
//!
//! ```text
//!   mix(table, bucket key)  ->   quotient . remainder . block - first block of the generation
//!                                |------ bucket -----|  |------- rank of the block ---------|
//! ```
//!
//! Invariants
//! 1. A bucket of an existing document has the document's block, or its maximum of other blocks. A name takes all.
//! 2. Each fingerprint occurs once, however many documents of its block are in the bucket.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock};

use nandex::raw::quotient::{self, Counts, QuotientFilter};
use nandex::raw::store::fingerprint::Universe;
use nandex::raw::store::hash::mix;
use nandex::{Error, Result};

use super::BUCKET_DOCUMENTS_MAX;
use super::directory::Listed;

/// The used share of a full generation's slots.
const FILL: f64 = 0.94;

/// Bits of a bucket beyond those that distinguish tables and slots: the fewest, with which 100 queries of new documents
/// have 3 to 6 false-positive reads of a full generation, and the most, with which they have a sixteenth of these.
const CHANCE_BITS_MIN: u32 = 4;
const CHANCE_BITS_MAX: u32 = 8;

/// The most numbers of documents.
pub(super) const NUMBERS_MAX: u64 = 1 << 40;

/// The number of fingerprints ahead for which memory is prefetched.
const AHEAD: usize = 16;

/// The common parameters of all generations of an index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// The number of bucket keys of a document.
    pub(super) tables: u32,
    /// The number of documents of a block.
    pub(super) block_documents: u64,
    /// A secret of the volume, with which others cannot choose bucket keys that share a place.
    pub(super) seed: u64,
}

/// The capacity of a generation. It is on flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    /// The number of the first document.
    pub(super) first: u64,
    /// The number of document numbers.
    pub(super) documents: u64,
    /// The bits of a bucket beyond those that distinguish tables and slots.
    pub(super) chance_bits: u32,
}

impl Shape {
    /// Returns whether a generation can have these numbers.
    pub(super) fn is_possible(self) -> bool {
        let end = self.first.checked_add(self.documents);
        let has_documents = self.documents > 0 && end.is_some_and(|end| end <= NUMBERS_MAX);
        has_documents && self.chance_bits <= CHANCE_BITS_MAX
    }
}

impl Plan {
    /// Returns the generation for documents from number `first` on that uses `ram_bytes` bytes of RAM best: one of the
    /// most bits if it fits half of the RAM, or else one of the fewest bits, perhaps of fewer documents.
    ///
    /// # Errors
    /// If those are fewer than `least`.
    pub(super) fn within(
        self,
        ram_bytes: u64,
        (first, documents): (u64, u64),
        least: u64,
    ) -> Result<Shape> {
        let ample = Shape { first, documents, chance_bits: CHANCE_BITS_MAX };
        if self.ram_bytes(ample)? <= ram_bytes / 2 {
            return Ok(ample);
        }
        let mut shape = Shape { chance_bits: CHANCE_BITS_MIN, ..ample };
        loop {
            let needed = self.ram_bytes(shape)?;
            if needed <= ram_bytes {
                return Ok(shape);
            }
            if shape.documents <= least {
                return Err(too_little(shape, needed, ram_bytes));
            }
            shape.documents = (shape.documents / 8 * 7).max(least);
        }
    }

    /// Returns the RAM of a generation, in bytes.
    fn ram_bytes(self, shape: Shape) -> Result<u64> {
        let slots = self.filter(shape)?;
        Ok((QuotientFilter::bytes_of(&slots) + size_of::<QuotientFilter>()) as u64)
    }

    fn filter(self, shape: Shape) -> Result<quotient::Shape> {
        let buckets = self.buckets(shape)?.size();
        let universe = Universe::new(buckets.saturating_mul(1 << self.rank_bits(shape)))?;
        let slots = buckets >> self.remainder_bits(shape);
        quotient::Shape::new(universe, slots, Counts::One, self.entries(shape))
    }

    /// Returns the universe of distinguishable buckets.
    fn buckets(self, shape: Shape) -> Result<Universe> {
        if !shape.is_possible() {
            let reason = format!("{}; give 1 to {NUMBERS_MAX}", shape.documents);
            return Err(Error::Config { field: "documents", reason });
        }
        let slots = (self.entries(shape) as f64 / FILL).ceil() as u64 + 1;
        Ok(Universe::new(slots.saturating_mul(1 << self.remainder_bits(shape)))?)
    }

    /// Returns the bits of a bucket that its slot does not give.
    fn remainder_bits(self, shape: Shape) -> u32 {
        shape.chance_bits + self.tables.ilog2() + 1
    }

    /// Returns the bits of the rank of a block.
    fn rank_bits(self, shape: Shape) -> u32 {
        let blocks =
            (shape.first + shape.documents) / self.block_documents - self.block(shape.first);
        blocks.max(1).ilog2() + 1
    }

    fn entries(self, shape: Shape) -> u64 {
        shape.documents.saturating_mul(u64::from(self.tables) + 1)
    }

    /// Returns the place of a bucket of a table among all numbers. Names are the buckets of the table after the last.
    pub(super) fn place_of(self, table: u64, key: u64) -> u64 {
        place_in(table, key ^ self.seed)
    }

    fn block(self, number: u64) -> u64 {
        number / self.block_documents
    }
}

fn too_little(shape: Shape, needed: u64, found: u64) -> Error {
    let documents = shape.first + shape.documents;
    Error::TooLittleRam {
        field: "ram",
        reason: format!(
            "too little for the buckets of {documents} documents: they take {needed} bytes more, and {found} are \
             left for them; give the index more with `ram`"
        ),
    }
}

/// The buckets of documents from a number on.
#[derive(Debug)]
pub(super) struct Generation {
    plan: Plan,
    shape: Shape,
    buckets: Universe,
    rank_bits: u32,
    entries: RwLock<QuotientFilter>,
    /// The number of blocks that full buckets have left out.
    left_out: AtomicU64,
}

impl Generation {
    /// Creates an empty generation.
    ///
    /// # Errors
    /// Numbers out of range.
    pub(super) fn new(plan: Plan, shape: Shape) -> Result<Self> {
        let entries = RwLock::new(QuotientFilter::new(plan.filter(shape)?));
        let (buckets, rank_bits) = (plan.buckets(shape)?, plan.rank_bits(shape));
        let left_out = AtomicU64::new(0);
        Ok(Self { plan, shape, buckets, rank_bits, entries, left_out })
    }

    /// Returns its shape.
    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns its RAM, in bytes.
    pub(super) fn ram_bytes(&self) -> u64 {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).ram_bytes() as u64
    }

    /// Returns the number of blocks that full buckets have left out.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out.load(Relaxed)
    }

    /// Returns whether it has space for documents up to this number.
    pub(super) fn has_space(&self, end: u64) -> bool {
        end <= self.shape.first + self.shape.documents
    }

    /// Puts documents into their buckets.
    ///
    /// # Errors
    /// No space.
    pub(super) fn insert_many(&self, Listed { numbers, keys, names }: Listed<'_>) -> Result<()> {
        let rows = numbers.iter().zip(keys.chunks(self.tables())).zip(names);
        let prints = rows.flat_map(|((number, row), name)| self.prints(*number, row, *name));
        let prints: Vec<u64> = prints.collect();
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        prints.iter().take(AHEAD).for_each(|first| entries.prefetch(*first));
        for (done, print) in prints.iter().enumerate() {
            if let Some(ahead) = prints.get(done + AHEAD) {
                entries.prefetch(*ahead);
            }
            let (mut blocks, mut is_there) = (0, false);
            entries.each_in(self.range_of(*print), |entry| {
                blocks += 1;
                is_there |= entry.fingerprint == *print;
            });
            let is_name = done % (self.tables() + 1) == self.tables();
            if is_there {
                continue;
            }
            if blocks >= BUCKET_DOCUMENTS_MAX && !is_name {
                self.left_out.fetch_add(1, Relaxed);
                continue;
            }
            entries.add(*print, 1)?;
        }
        Ok(())
    }

    /// Removes a document's block from those buckets in which the block has no other document. `has_other` gives for
    /// each table, and for names after them, whether it has.
    ///
    /// # Errors
    /// None that is known.
    pub(super) fn remove(
        &self,
        (number, keys, name): (u64, &[u64], u64),
        has_other: impl Fn(usize) -> bool,
    ) -> Result<()> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        for (table, print) in self.prints(number, keys, name).enumerate() {
            if !has_other(table) && entries.count(print) > 0 {
                entries.add(print, -1)?;
            }
        }
        Ok(())
    }

    /// Adds the blocks that may have a document in a bucket, by its [place](Plan::place_of), each with the row given
    /// next to that place, in any order.
    pub(super) fn add_blocks(&self, places: &[(u32, u64)], found: &mut Vec<(u32, u64)>) {
        let first = |place: u64| self.buckets.of(place) << self.rank_bits;
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let first_block = self.plan.block(self.shape.first);
        places.iter().take(AHEAD).for_each(|(_, place)| entries.prefetch(first(*place)));
        for (done, (row, place)) in places.iter().enumerate() {
            if let Some((_, ahead)) = places.get(done + AHEAD) {
                entries.prefetch(first(*ahead));
            }
            let range = self.range_of(first(*place));
            entries.each_in(range.clone(), |entry| {
                found.push((*row, first_block + entry.fingerprint - range.start));
            });
        }
    }

    fn tables(&self) -> usize {
        self.plan.tables as usize
    }

    /// Returns the fingerprint of each bucket of a document, and that of its name.
    fn prints(&self, number: u64, keys: &[u64], name: u64) -> impl Iterator<Item = u64> {
        let rank = self.plan.block(number) - self.plan.block(self.shape.first);
        let buckets = (0..).zip(keys.iter().copied().chain([name]));
        let places = buckets.map(|(table, key)| self.plan.place_of(table, key));
        places.map(move |place| self.buckets.of(place) << self.rank_bits | rank)
    }

    /// Returns the range of all fingerprints of the bucket of one.
    fn range_of(&self, print: u64) -> Range<u64> {
        let bucket = print >> self.rank_bits;
        bucket << self.rank_bits..(bucket + 1) << self.rank_bits
    }
}

/// Returns the place of a bucket of a table among all numbers.
pub(super) fn place_in(table: u64, key: u64) -> u64 {
    mix(key ^ table.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::Numbers;

    const PLAN: Plan = Plan { tables: 3, block_documents: 8, seed: 1 };

    fn shape(first: u64, documents: u64) -> Shape {
        Shape { first, documents, chance_bits: CHANCE_BITS_MIN }
    }

    fn insert(generation: &Generation, numbers: &[u64], keys: &[u64], names: &[u64]) {
        generation.insert_many(Listed { numbers, keys, names }).unwrap();
    }

    fn found(generation: &Generation, row: &[u64]) -> Vec<u64> {
        let mut found = Vec::new();
        let places = (0..).zip(row).map(|(table, key)| (0, PLAN.place_of(table, *key)));
        generation.add_blocks(&places.collect::<Vec<_>>(), &mut found);
        let mut blocks: Vec<u64> = found.into_iter().map(|(_, block)| block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks
    }

    #[test]
    fn a_full_generation_finds_every_block_and_few_others() {
        let generation = Generation::new(PLAN, shape(20, 4000)).unwrap();
        let mut numbers = Numbers(1);
        let rows: Vec<u64> = (0..12_000).map(|_| numbers.below(1 << 31)).collect();
        let ids: Vec<u64> = (20..4020).collect();
        insert(&generation, &ids, &rows, &ids);
        assert!(generation.has_space(4020) && !generation.has_space(4021));
        let mut others = 0;
        for (id, row) in ids.iter().zip(rows.chunks(3)) {
            let blocks = found(&generation, row);
            assert!(blocks.contains(&(id / 8)), "{id}: {blocks:?}");
            others += blocks.len() - 1;
        }
        assert!(others < 400, "{others} of other buckets");
    }

    #[test]
    fn a_bucket_has_a_block_once_until_its_last_document_goes() {
        let generation = Generation::new(PLAN, shape(0, 100)).unwrap();
        let row = [7, 8, 9];
        for _ in 0..2 {
            insert(&generation, &[0, 1, 9], &[row; 3].concat(), &[5; 3]);
        }
        assert_eq!(found(&generation, &row), [0, 1]);
        generation.remove((0, &row, 5), |_| true).unwrap();
        assert_eq!(found(&generation, &row), [0, 1]);
        for _ in 0..2 {
            generation.remove((1, &row, 5), |table| table == 2 || table == 3).unwrap();
            assert_eq!(
                (found(&generation, &row), found(&generation, &[7, 8, 0])),
                (vec![0, 1], vec![1])
            );
        }
    }

    #[test]
    fn a_bucket_keeps_its_first_blocks() {
        let generation = Generation::new(PLAN, shape(0, 4000)).unwrap();
        let ids: Vec<u64> = (0..300).map(|block| 8 * block).collect();
        let row = [1, 2, 3];
        insert(&generation, &ids, &row.repeat(300), &[4; 300]);
        assert_eq!(found(&generation, &row), (0..253).collect::<Vec<_>>());
        assert_eq!(generation.left_out(), 3 * 47);
        let mut named = Vec::new();
        generation.add_blocks(&[(0, PLAN.place_of(3, 4))], &mut named);
        assert_eq!(named.len(), 300, "a name leads to all of its blocks");
    }

    #[test]
    fn a_generation_takes_no_more_ram_than_it_may() {
        let part = PLAN.within(2 << 20, (0, 1_000_000), 1000).unwrap();
        let needed = Generation::new(PLAN, part).unwrap().ram_bytes();
        assert!((1 << 20..2 << 20).contains(&needed), "{part:?}: {needed}");
        assert_eq!(part.chance_bits, CHANCE_BITS_MIN);
        let ample = PLAN.within(64 << 20, (0, 1_000_000), 1000).unwrap();
        assert_eq!((ample.documents, ample.chance_bits), (1_000_000, CHANCE_BITS_MAX));
        let many = PLAN.within(u64::MAX, (0, u64::MAX), 1).unwrap_err().to_string();
        assert!(many.contains("give 1 to 1099511627776"), "{many}");
        let error = PLAN.within(1000, (0, 9000), 1000).unwrap_err().to_string();
        assert!(error.contains("buckets of 1000 documents") && error.contains("`ram`"), "{error}");
    }
}
