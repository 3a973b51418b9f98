//! Where counts of terms are kept: the seam between the index and the tables under it.

use std::sync::{Mutex, PoisonError};

use nandex::{AnyTable, Table};

use crate::tokenise::TermKey;
use crate::{Error, Result};

/// Updates and lookups that go to a table at a time.
const CHUNK: usize = 8192;

/// All counts of a table, in no order.
pub(crate) type Counts<'a> = Box<dyn Iterator<Item = Result<(TermKey, u64)>> + 'a>;

/// A count for each term.
///
/// Laws: a count is the sum of what was added to it, and 0 for a term that was never added. It is never below 0. All
/// calls may come from any thread; of two additions at one time both count.
pub(crate) trait TermCounts: Send + Sync {
    /// Adds to the count of each term; the terms of one call are all different.
    ///
    /// # Errors
    /// A failed read or write, a table without space, a count that would be below 0 or past 2^63 - 1. Of the terms of
    /// the call, any may then be counted.
    fn add_many(&self, amounts: &[(TermKey, i64)]) -> Result<()>;

    /// As [`add_many`](Self::add_many), for terms whose counts are known to be 0. A table may then save a lookup.
    ///
    /// # Errors
    /// As `add_many`.
    fn add_new_many(&self, amounts: &[(TermKey, i64)]) -> Result<()> {
        self.add_many(amounts)
    }

    /// The counts of all of `keys`, in their order.
    ///
    /// # Errors
    /// A failed read, damage.
    fn count_many(&self, keys: &[TermKey]) -> Result<Vec<u64>>;

    /// Each term whose count is above 0, once, with its count. What is added meanwhile may or may not be seen.
    fn iter(&self) -> Counts<'_>;

    /// Makes everything added so far durable.
    ///
    /// # Errors
    /// A failed write or sync.
    fn sync(&self) -> Result<()>;

    /// Bytes of RAM that it takes now.
    fn ram_bytes(&self) -> u64;

    /// Pages of flash read by lookups since it was opened, and the lookups.
    fn lookup_reads(&self) -> (u64, u64);
}

/// Counts in a [`nandex::Table`] with values of 8 bytes: an addition reads the count and writes the sum.
#[derive(Debug)]
pub(super) struct TableCounts {
    table: AnyTable,
    /// Held from reading counts to writing their sums.
    adding: Mutex<()>,
}

impl TableCounts {
    /// Counts in `table`, which has keys of 16 bytes and values of 8.
    ///
    /// # Errors
    /// A table of other widths.
    pub(super) fn new(table: AnyTable) -> Result<Self> {
        let widths =
            [("key_bytes", 16, table.key_bytes()), ("value_bytes", 8, table.value_bytes())];
        for (field, expected, found) in widths {
            if expected != found {
                let reason = format!("a table for counts has {expected}, found {found}");
                return Err(Error::option(field, reason));
            }
        }
        Ok(Self { table, adding: Mutex::default() })
    }

    fn add_chunk(&self, amounts: &[(TermKey, i64)]) -> Result<()> {
        let keys: Vec<&[u8]> = amounts.iter().map(|(key, _)| &key.0[..]).collect();
        let found = self.table.get_many(&keys)?;
        let found = found.into_iter().map(|it| it.map_or(0, |value| number(&value)));
        self.put(amounts, found)
    }

    /// Writes the sums of these counts and amounts.
    fn put(&self, amounts: &[(TermKey, i64)], counts: impl Iterator<Item = u64>) -> Result<()> {
        let mut sums = Vec::with_capacity(amounts.len());
        for ((key, amount), count) in amounts.iter().zip(counts) {
            sums.push((key, sum(count, *amount)?.to_le_bytes()));
        }
        let (gone, kept): (Vec<_>, Vec<_>) = sums.iter().partition(|(_, sum)| *sum == [0; 8]);
        let pairs: Vec<(&[u8], &[u8])> =
            kept.iter().map(|(key, sum)| (&key.0[..], &sum[..])).collect();
        self.table.insert_many(&pairs)?;
        gone.iter().try_for_each(|(key, _)| self.table.remove(&key.0))?;
        Ok(())
    }
}

/// A value as a number; values are of 8 bytes.
fn number(value: &[u8]) -> u64 {
    value.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A count after an addition.
pub(super) fn sum(count: u64, amount: i64) -> Result<u64> {
    let sum = count.checked_add_signed(amount).filter(|sum| i64::try_from(*sum).is_ok());
    sum.ok_or_else(|| Error::Contradiction {
        reason: format!("{amount} added to a count of {count} is not between 0 and 2^63 - 1"),
    })
}

impl TermCounts for TableCounts {
    fn add_many(&self, amounts: &[(TermKey, i64)]) -> Result<()> {
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        amounts.chunks(CHUNK).try_for_each(|chunk| self.add_chunk(chunk))
    }

    fn add_new_many(&self, amounts: &[(TermKey, i64)]) -> Result<()> {
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let mut chunks = amounts.chunks(CHUNK);
        chunks.try_for_each(|chunk| self.put(chunk, std::iter::repeat(0)))
    }

    fn count_many(&self, keys: &[TermKey]) -> Result<Vec<u64>> {
        let mut counts = Vec::with_capacity(keys.len());
        for chunk in keys.chunks(CHUNK) {
            let keys: Vec<&[u8]> = chunk.iter().map(|key| &key.0[..]).collect();
            let found = self.table.get_many(&keys)?;
            counts.extend(found.into_iter().map(|it| it.map_or(0, |value| number(&value))));
        }
        Ok(counts)
    }

    fn iter(&self) -> Counts<'_> {
        Box::new(self.table.iter().map(|entry| {
            let (key, value) = entry?;
            let key = <[u8; 16]>::try_from(key).map_err(|key| Error::Contradiction {
                reason: format!("a key of {} bytes among counts, expected 16", key.len()),
            })?;
            Ok((TermKey(key), number(&value)))
        }))
    }

    fn sync(&self) -> Result<()> {
        Ok(self.table.sync()?)
    }

    fn ram_bytes(&self) -> u64 {
        self.table.stats().ram_bytes
    }

    fn lookup_reads(&self) -> (u64, u64) {
        let stats = self.table.stats();
        (stats.hit_reads + stats.miss_reads, stats.hits + stats.misses)
    }
}
