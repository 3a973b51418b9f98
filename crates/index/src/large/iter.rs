//! Iteration: the entries of the table, and the record of each.

use nandex_store::values::ValueRef;

use super::format::Fingerprint;
use super::{Inner, LargeTable};
use crate::any::{AnyEntries, AnyTable};
use crate::{Error, Result};

/// A key and its value.
type Owned = (Vec<u8>, Vec<u8>);

/// Records that are read at a time; each has up to 16 MiB.
const BATCH: usize = 16;

impl LargeTable<AnyTable> {
    /// Every key once with its value, in no order. What is put during the iteration may or may not be seen.
    ///
    /// # Errors
    /// A failed write of what waits to be published. Items: a failed read, damage.
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

struct Batches<'a> {
    inner: &'a Inner<AnyTable>,
    entries: AnyEntries<'a>,
}

impl Batches<'_> {
    /// The pairs of the next records; `None` at the end.
    fn next(&mut self) -> Result<Option<Vec<Owned>>> {
        let mut places = Vec::with_capacity(BATCH);
        for entry in self.entries.by_ref().take(BATCH) {
            let (key, value) = entry?;
            let print = Fingerprint::try_from(&key[..]).map_err(|_| Error::Width {
                what: "key",
                expected: super::TABLE_KEY_BYTES,
                found: key.len(),
            })?;
            places.push((print, self.inner.decode(&value)?));
        }
        if places.is_empty() {
            return Ok(None);
        }
        let references: Vec<ValueRef> = places.iter().map(|(_, reference)| *reference).collect();
        let records = self.inner.values.read_many(&references)?;
        let mut pairs = Vec::with_capacity(BATCH);
        for ((print, reference), record) in places.into_iter().zip(records) {
            // A record that moved meanwhile, or is gone, is located again.
            let found = match record {
                Some(record) => Some((reference, record)),
                None => self.inner.record_of(&print)?,
            };
            if let Some((at, record)) = found {
                let record = self.inner.decode_record((at, &record), &print)?;
                let owned = |(key, value): &(&[u8], &[u8])| (key.to_vec(), value.to_vec());
                pairs.extend(record.pairs.iter().map(owned));
            }
        }
        Ok(Some(pairs))
    }
}
