//! Where counts of terms are kept: the seam between the index and the tables under it.

use nandex::{Counter, Counting, Filter};

use crate::tokenise::TermKey;
use crate::{Error, Result};

/// Updates and lookups that go to a table at a time.
const CHUNK: usize = 8192;

/// All counts of a table, in no order.
pub(crate) type Counts<'a> = Box<dyn Iterator<Item = Result<(TermKey, u64)>> + 'a>;

/// A count for each term.
///
/// Laws: a count is the sum of what was added to it, and 0 for a term that was never added. Nobody takes away more than
/// was added. All calls may come from any thread; of two additions at one time both count.
pub(crate) trait TermCounts: Send + Sync {
    /// Adds to the count of each term; the terms of one call are all different.
    ///
    /// # Errors
    /// A failed write, no space, a count past 2^63 - 1. Of the terms of the call, any may then be counted.
    fn add_many(&self, amounts: &[(TermKey, i64)]) -> Result<()>;

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

impl TermCounts for Counting {
    fn add_many(&self, amounts: &[(TermKey, i64)]) -> Result<()> {
        for chunk in amounts.chunks(CHUNK) {
            let amounts: Vec<(&[u8], i64)> =
                chunk.iter().map(|(key, amount)| (&key.0[..], *amount)).collect();
            Counter::add_many(self, &amounts)?;
        }
        Ok(())
    }

    fn count_many(&self, keys: &[TermKey]) -> Result<Vec<u64>> {
        let mut counts = Vec::with_capacity(keys.len());
        for chunk in keys.chunks(CHUNK) {
            let keys: Vec<&[u8]> = chunk.iter().map(|key| &key.0[..]).collect();
            counts.extend(Counter::count_many(self, &keys)?);
        }
        Ok(counts)
    }

    fn iter(&self) -> Counts<'_> {
        Box::new(Self::iter(self).filter_map(|entry| {
            let (key, sum) = match entry {
                Ok(entry) => entry,
                Err(error) => return Some(Err(error.into())),
            };
            let count = u64::try_from(sum).ok().filter(|count| *count > 0)?;
            let key = <[u8; 16]>::try_from(key).map_err(|key| Error::Contradiction {
                reason: format!("a key of {} bytes among counts, expected 16", key.len()),
            });
            Some(key.map(|key| (TermKey(key), count)))
        }))
    }

    fn sync(&self) -> Result<()> {
        Ok(Filter::sync(self)?)
    }

    fn ram_bytes(&self) -> u64 {
        self.stats().ram_bytes
    }

    fn lookup_reads(&self) -> (u64, u64) {
        let stats = self.stats();
        (stats.lookup_reads, stats.positives + stats.negatives)
    }
}
