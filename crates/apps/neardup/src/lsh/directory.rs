//! The directory: the blocks of documents by bucket key and by name. It is in RAM alone.
//!
//! It begins with one generation, and each full one is followed by a larger one, as far as the RAM suffices. Documents
//! have rising numbers, so the number determines the generation of a document's buckets. A lookup searches all of them.

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use nandex::{Error, Result};

use super::generation::{Generation, Plan, Shape};

/// The capacity of each generation in documents, relative to the one before.
const GROWTH: u64 = 4;

/// Blocks by bucket keys and names of their documents.
#[derive(Debug)]
pub(super) struct Directory {
    plan: Plan,
    ram_bytes_max: u64,
    generations: RwLock<Vec<Generation>>,
}

/// Incoming documents: their numbers, rising, a row of bucket keys for each, and the hashes of their names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed<'l> {
    pub(super) numbers: &'l [u64],
    pub(super) keys: &'l [u64],
    pub(super) names: &'l [u64],
}

impl Directory {
    /// Creates a directory for `documents` documents.
    ///
    /// # Errors
    /// RAM that is too little for them.
    pub(super) fn new(plan: Plan, ram_bytes_max: u64, documents: u64) -> Result<Self> {
        Self::within(plan, ram_bytes_max, (documents, documents))
    }

    /// Creates an empty directory for documents with numbers below `next`. It is one generation if the RAM suffices for
    /// that, and otherwise the previous generations.
    ///
    /// # Errors
    /// RAM that is too little for them.
    pub(super) fn reopened(
        plan: Plan,
        ram_bytes_max: u64,
        (next, documents): (u64, u64),
        earlier: &[Shape],
    ) -> Result<Self> {
        let wanted = documents.max(next + next / 4);
        let one = Self::within(plan, ram_bytes_max, (wanted, next.max(1)));
        let Err(error) = one else { return one };
        let generations = earlier.iter().map(|shape| Generation::new(plan, *shape));
        let generations = generations.collect::<Result<Vec<_>>>()?;
        let all = Self { plan, ram_bytes_max, generations: RwLock::new(generations) };
        if all.ram_bytes() <= ram_bytes_max { Ok(all) } else { Err(error) }
    }

    /// Creates a directory for as many documents as the RAM suffices for: `wanted`, or fewer down to `least`.
    fn within(plan: Plan, ram_bytes_max: u64, (wanted, least): (u64, u64)) -> Result<Self> {
        let first = Generation::new(plan, plan.within(ram_bytes_max, (0, wanted), least)?)?;
        Ok(Self { plan, ram_bytes_max, generations: RwLock::new(vec![first]) })
    }

    /// Returns the shapes of its generations.
    pub(super) fn shapes(&self) -> Vec<Shape> {
        self.generations().iter().map(Generation::shape).collect()
    }

    /// Returns the RAM of all generations, in bytes.
    pub(super) fn ram_bytes(&self) -> u64 {
        self.generations().iter().map(Generation::ram_bytes).sum()
    }

    /// Returns the number of blocks that full buckets have left out.
    pub(super) fn left_out(&self) -> u64 {
        self.generations().iter().map(Generation::left_out).sum()
    }

    /// Puts documents into their buckets. Those already there stay unchanged.
    ///
    /// # Errors
    /// RAM that is too little for more.
    pub(super) fn insert_many(&self, listed: Listed<'_>) -> Result<()> {
        let Some(last) = listed.numbers.last() else { return Ok(()) };
        let is_full = self.generations().last().is_none_or(|newest| !newest.has_space(last + 1));
        if is_full {
            self.begin_generation(listed.numbers)?;
        }
        match self.insert_by_numbers(listed) {
            // More buckets begin at one place than chance explains.
            Err(Error::FilterFull { .. }) if !is_full => {
                self.begin_generation(listed.numbers)?;
                self.insert_by_numbers(listed)
            }
            done => done,
        }
    }

    /// Puts each document into its buckets in the generation of its number.
    fn insert_by_numbers(
        &self,
        Listed { mut numbers, mut keys, mut names }: Listed<'_>,
    ) -> Result<()> {
        let generations = self.generations();
        for (index, generation) in generations.iter().enumerate() {
            let next = generations.get(index + 1).map_or(u64::MAX, |it| it.shape().first);
            let own = numbers.partition_point(|number| *number < next);
            let (own_numbers, other_numbers) = numbers.split_at(own);
            let (own_keys, other_keys) = keys.split_at(own * self.plan.tables as usize);
            let (own_names, other_names) = names.split_at(own);
            let own = Listed { numbers: own_numbers, keys: own_keys, names: own_names };
            generation.insert_many(own)?;
            (numbers, keys, names) = (other_numbers, other_keys, other_names);
        }
        Ok(())
    }

    /// Begins a generation that has space for these documents and more.
    fn begin_generation(&self, numbers: &[u64]) -> Result<()> {
        let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { return Ok(()) };
        let mut generations = self.generations.write().unwrap_or_else(PoisonError::into_inner);
        let least = last + 1 - first;
        let before = generations.last().map_or(1, |newest| newest.shape().documents);
        let wanted = (before * GROWTH).max(2 * least);
        let taken: u64 = generations.iter().map(Generation::ram_bytes).sum();
        let free = self.ram_bytes_max.saturating_sub(taken);
        let shape = self.plan.within(free, (*first, wanted), least)?;
        generations.push(Generation::new(self.plan, shape)?);
        Ok(())
    }

    /// Removes a document's block from those buckets in which the block has no other document: see
    /// [`Generation::remove`].
    ///
    /// # Errors
    /// None that is known.
    pub(super) fn remove(
        &self,
        (number, keys, name): (u64, &[u64], u64),
        has_other: impl Fn(usize) -> bool,
    ) -> Result<()> {
        let generations = self.generations();
        let own = generations.iter().rev().find(|it| it.shape().first <= number);
        own.map_or(Ok(()), |it| it.remove((number, keys, name), has_other))
    }

    /// Returns the blocks that may have a document in a bucket of a row, each with the row's place, in order.
    pub(super) fn candidates(&self, keys: &[u64]) -> Vec<(u32, u64)> {
        let rows = (0..).zip(keys.chunks(self.plan.tables as usize));
        self.blocks(rows.flat_map(|(row, keys)| {
            (0..).zip(keys).map(move |(table, key)| (row, self.plan.place_of(table, *key)))
        }))
    }

    /// Returns the blocks that may have a document of a name, each with the name's place, in order.
    pub(super) fn named(&self, names: &[u64]) -> Vec<(u32, u64)> {
        let table = self.plan.tables.into();
        self.blocks((0..).zip(names).map(|(row, name)| (row, self.plan.place_of(table, *name))))
    }

    /// Returns the blocks that may have a document in a bucket of a table, each with 0, in order.
    pub(super) fn in_bucket(&self, table: usize, key: u64) -> Vec<(u32, u64)> {
        self.blocks([(0, self.plan.place_of(table as u64, key))].into_iter())
    }

    fn blocks(&self, places: impl Iterator<Item = (u32, u64)>) -> Vec<(u32, u64)> {
        let (places, mut found) = (places.collect::<Vec<_>>(), Vec::new());
        self.generations().iter().for_each(|it| it.add_blocks(&places, &mut found));
        found.sort_unstable();
        found.dedup();
        found
    }

    fn generations(&self) -> RwLockReadGuard<'_, Vec<Generation>> {
        self.generations.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::Numbers;

    const PLAN: Plan = Plan { tables: 2, block_documents: 8, seed: 9 };

    /// Inserts documents of these numbers, whose keys and names follow from them.
    fn insert(directory: &Directory, numbers: &[u64]) -> Result<()> {
        let keys: Vec<u64> = numbers.iter().flat_map(|it| row(*it)).collect();
        directory.insert_many(Listed { numbers, keys: &keys, names: numbers })
    }

    fn row(number: u64) -> [u64; 2] {
        let mut numbers = Numbers(number);
        [numbers.below(1 << 31), numbers.below(1 << 31)]
    }

    #[track_caller]
    fn check(directory: &Directory, numbers: &[u64]) {
        let keys: Vec<u64> = numbers.iter().flat_map(|it| row(*it)).collect();
        let (found, named) = (directory.candidates(&keys), directory.named(numbers));
        for (place, number) in (0..).zip(numbers) {
            let own = (place, number / 8);
            assert!(found.contains(&own) && named.contains(&own), "{number}");
        }
    }

    #[test]
    fn generations_follow_each_other_until_the_ram_is_spent() {
        let directory = Directory::new(PLAN, 200_000, 100).unwrap();
        let mut end = 0;
        let error = loop {
            let numbers: Vec<u64> = (end..end + 50).collect();
            match insert(&directory, &numbers) {
                Ok(()) => end += 50,
                Err(error) => break error,
            }
        };
        assert!(error.to_string().contains("`ram`"), "{error}");
        assert!(end > 10_000 && directory.ram_bytes() <= 200_000, "{end}");
        assert!(directory.shapes().len() > 3, "{:?}", directory.shapes());
        check(&directory, &(0..end).collect::<Vec<_>>());
    }

    #[test]
    fn an_opening_makes_one_generation_or_those_that_there_were_if_they_take_less() {
        let all: Vec<u64> = (0..8000).collect();
        let part = |first| Shape { first, documents: 1000, chance_bits: 4 };
        let earlier: Vec<Shape> = (0..8000).step_by(1000).map(part).collect();
        let ram = |shape: &Shape| Generation::new(PLAN, *shape).unwrap().ram_bytes();
        let least = earlier.iter().map(ram).sum();
        let open = |ram_bytes| Directory::reopened(PLAN, ram_bytes, (8000, 100), &earlier);
        let (parts, one) = (open(least).unwrap(), open(2 * least).unwrap());
        assert_eq!((parts.shapes(), one.shapes().len()), (earlier.clone(), 1));
        for directory in [parts, one] {
            insert(&directory, &all).unwrap();
            check(&directory, &all);
        }
        assert!(open(least - 1).unwrap_err().to_string().contains("8000 documents"));
    }
}
