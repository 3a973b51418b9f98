//! Iteration: the entries of the table, and the record of each.

use nandex_store::values::ValueRef;

use super::format::Fingerprint;
use super::{Inner, LargeTable, lock};
use crate::any::{AnyEntries, AnyTable};
use crate::api::Table;
use crate::write::absorb::Watch;
use crate::{Error, Result};

/// A key and its value.
pub(super) type Owned = (Vec<u8>, Vec<u8>);

/// Records that are read at a time; each has up to 16 MiB.
pub(super) const BATCH: usize = 16;

/// Keys that are counted between two calls of the watch.
const WATCHED: u64 = 1024;

impl LargeTable<AnyTable> {
    /// Iterates over every key once with its value, in no particular order. Keys that are put during the iteration may
    /// or may not be returned.
    ///
    /// # Errors
    /// A failed write of unpublished updates. Items: a failed read, damage.
    pub fn iter(&self) -> Result<impl Iterator<Item = Result<Owned>> + '_> {
        self.inner.publish_all()?;
        let mut batches = Batches { inner: &self.inner, entries: self.inner.table.iter() };
        let batches = std::iter::from_fn(move || batches.next().transpose());
        Ok(batches.flat_map(|batch| match batch {
            Ok(pairs) => pairs.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        }))
    }
}

impl LargeTable<AnyTable> {
    /// Returns the number of keys, exactly.
    ///
    /// Costs one pass over the table's entries, in long reads, and none of records. While nothing is updated, the next
    /// call costs nothing. [`TableStats::entries`] is the number to within a percent, at no cost. `watch` receives the
    /// share that is counted, and may end the count.
    ///
    /// A map whose keys share records, by a hash that is none or by groups, reads all of its records instead.
    ///
    /// # Errors
    /// As [`iter`](Self::iter); [`Error::Stopped`] if `watch` ends it.
    ///
    /// [`TableStats::entries`]: crate::TableStats::entries
    pub fn count_keys(&self, watch: &Watch<'_>) -> Result<u64> {
        let changed = lock(&self.inner.updates).changed();
        if let Some((at, keys)) = *lock(&self.inner.counted)
            && at == changed
        {
            return Ok(keys);
        }
        self.inner.publish_all()?;
        let expected = self.inner.table.stats().entries.max(1) as f64;
        let values = &self.inner.values;
        // Only a log that evicts loses records. In others, a record that is not where it was has moved.
        let evicts = values.config().when_full.evicts();
        let keys = match self.inner.has_a_key_a_record() {
            true => self.count(self.inner.table.iter(), expected, watch, |(_, value)| {
                Ok(!evicts || values.holds(self.inner.decode(&value)?))
            }),
            false => self.count(self.iter()?, expected, watch, |_| Ok(true)),
        }?;
        if lock(&self.inner.updates).changed() == changed {
            *lock(&self.inner.counted) = Some((changed, keys));
        }
        Ok(keys)
    }

    fn count<E>(
        &self,
        entries: impl Iterator<Item = Result<E>>,
        expected: f64,
        watch: &Watch<'_>,
        is_there: impl Fn(E) -> Result<bool>,
    ) -> Result<u64> {
        let mut keys = 0;
        for entry in entries {
            keys += u64::from(is_there(entry?)?);
            if keys % WATCHED == 0 && watch((keys as f64 / expected).min(1.0)).is_break() {
                return Err(Error::Stopped);
            }
        }
        Ok(keys)
    }
}

struct Batches<'a> {
    inner: &'a Inner<AnyTable>,
    entries: AnyEntries<'a>,
}

impl Batches<'_> {
    /// Returns the pairs of the next records; `None` at the end.
    fn next(&mut self) -> Result<Option<Vec<Owned>>> {
        let mut places = Vec::with_capacity(BATCH);
        for entry in self.entries.by_ref().take(BATCH) {
            let (key, value) = entry?;
            places.push(self.inner.decode_entry(&key, &value)?);
        }
        if places.is_empty() {
            return Ok(None);
        }
        let references: Vec<ValueRef> = places.iter().map(|(_, reference)| *reference).collect();
        let records = self.inner.values.read_many(&references)?;
        let mut pairs = Vec::with_capacity(BATCH);
        for (place, record) in places.into_iter().zip(records) {
            pairs.extend(self.inner.pairs_of(place, record)?);
        }
        Ok(Some(pairs))
    }
}

impl<T: Table> Inner<T> {
    /// Decodes an entry of the table: the fingerprint, and the place of its record.
    pub(super) fn decode_entry(&self, key: &[u8], value: &[u8]) -> Result<(Fingerprint, ValueRef)> {
        let print = Fingerprint::try_from(key).map_err(|_| Error::Width {
            what: "key",
            expected: super::TABLE_KEY_BYTES,
            found: key.len(),
        })?;
        Ok((print, self.decode(value)?))
    }

    /// Returns the pairs of a record that was read. A record that moved meanwhile, or is gone, is located again.
    pub(super) fn pairs_of(
        &self,
        (print, reference): (Fingerprint, ValueRef),
        record: Option<Vec<u8>>,
    ) -> Result<Vec<Owned>> {
        let found = match record {
            Some(record) => Some((reference, record)),
            None => self.record_of(&print)?,
        };
        let Some((at, record)) = found else { return Ok(Vec::new()) };
        let record = self.decode_record((at, &record), &print)?;
        let owned = |(key, value): &(&[u8], &[u8])| (key.to_vec(), value.to_vec());
        Ok(record.pairs.iter().map(owned).collect())
    }
}
