//! Tables whose fingerprints keep the first bytes of a key, so that the keys of a group are found by the index alone.
//!
//! A scan goes through fingerprints in their order rather than through places. So it can continue where it stopped
//! however records have moved meanwhile, and returns each key that stays exactly once.

use std::collections::BTreeSet;

use nandex_store::Volume;
use nandex_store::hash::HashKind;
use nandex_store::values::{ValueLog, ValueRef};

use super::cache::Now;
use super::format::{ENTRY_HEADER_BYTES, Fingerprint, GROUP_BYTES_MAX, HEADER_BYTES, only_pair};
use super::{Inner, LargeTable, ValuesConfig, check_widths};
use crate::any::{AnyEntries, AnyTable};
use crate::api::Table;
use crate::{Error, Result};

/// The records whose keys are read at a time.
const KEYS_BATCH: usize = 256;

/// The bytes of a record that are read for its key; a longer key takes one more read.
const KEY_READ_BYTES: usize = HEADER_BYTES + ENTRY_HEADER_BYTES + 512;

/// A key that is present.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredKey {
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// The key.
    pub key: Vec<u8>,
    /// Bytes of its value.
    pub value_bytes: u64,
}

impl<T: Table + 'static> LargeTable<T> {
    /// Like [`create`](Self::create), with fingerprints that begin with the first `group_bytes` bytes of their key, at
    /// most [`GROUP_BYTES_MAX`]. It must be opened by [`open_grouped`](Self::open_grouped) with the same number.
    ///
    /// # Errors
    /// As `create`; a number that is too large; a volume that uses keys as their own hashes.
    pub fn create_grouped(
        volume: &Volume,
        name: &str,
        (table, group_bytes): (T, usize),
        config: ValuesConfig,
    ) -> Result<Self> {
        check_widths(&table)?;
        check_group(volume, group_bytes)?;
        let values = ValueLog::create(volume, name, config)?;
        Self::start(volume, table, (values, true), group_bytes)
    }

    /// Like [`open`](Self::open), for a table of groups.
    ///
    /// # Errors
    /// As `open` and [`create_grouped`](Self::create_grouped).
    pub fn open_grouped(
        volume: &Volume,
        name: &str,
        (table, group_bytes): (T, usize),
    ) -> Result<Self> {
        check_widths(&table)?;
        check_group(volume, group_bytes)?;
        let values = ValueLog::open(volume, name)?;
        Self::start(volume, table, (values, false), group_bytes)
    }

    /// Removes all keys with these fingerprints. They share the acknowledgement.
    ///
    /// # Errors
    /// As [`remove`](Self::remove); those before the failing one are removed.
    pub fn remove_records(&self, prints: &[Fingerprint]) -> Result<()> {
        self.inner.check_flow()?;
        for print in prints {
            {
                let _stripe = self.inner.stripe(print);
                if let Some(old) = self.inner.locate(print)? {
                    self.inner.note(*print, Now::Removed, Some(old));
                }
            }
            self.inner.publish_if_full()?;
        }
        self.inner.acknowledge()
    }

    /// Returns the keys with these fingerprints that are present, with the bytes of their values, in the order of the
    /// fingerprints. The reads overlap.
    ///
    /// Costs the table's lookups, and a read of the first page of each record.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn keys_of(&self, prints: &[Fingerprint]) -> Result<Vec<StoredKey>> {
        let located = self.inner.locate_many(prints)?;
        let places = prints.iter().zip(located).filter_map(|(print, at)| Some((*print, at?)));
        self.inner.keys_at(&places.collect::<Vec<_>>())
    }

    /// Returns the pairs with these fingerprints that are present, in the order of the fingerprints. The reads overlap,
    /// and all values are in memory at once.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn pairs_of(&self, prints: &[Fingerprint]) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let inner = &self.inner;
        let located = inner.locate_many(prints)?;
        let places = prints.iter().zip(located).filter_map(|(print, at)| Some((*print, at?)));
        let places: Vec<_> = places.collect();
        let references: Vec<_> = places.iter().map(|(_, at)| *at).collect();
        let records = inner.values.read_many(&references)?;
        let mut pairs = Vec::with_capacity(places.len());
        for (place, record) in places.into_iter().zip(records) {
            pairs.extend(inner.pairs_of(place, record)?);
        }
        Ok(pairs)
    }
}

impl LargeTable<AnyTable> {
    /// Returns the first `limit` fingerprints after `after`, in their order, that `is_wanted` accepts.
    ///
    /// Costs a pass over the underlying table, and RAM for `limit` fingerprints; no record is read.
    ///
    /// # Errors
    /// A failed write of unpublished updates, a failed read, damage.
    pub fn scan(
        &self,
        after: Option<Fingerprint>,
        limit: usize,
        is_wanted: &dyn Fn(&Fingerprint) -> bool,
    ) -> Result<Vec<Fingerprint>> {
        self.inner.publish_all()?;
        let mut first = BTreeSet::new();
        for entry in self.inner.table.iter() {
            let (key, value) = entry?;
            let (print, _) = self.inner.decode_entry(&key, &value)?;
            if after.is_some_and(|after| print <= after) || !is_wanted(&print) {
                continue;
            }
            first.insert(print);
            if first.len() > limit {
                first.pop_last();
            }
        }
        Ok(first.into_iter().collect())
    }

    /// Iterates over every key once with the bytes of its value, in no particular order. Keys that are put during the
    /// iteration may or may not be returned.
    ///
    /// # Errors
    /// As [`iter`](Self::iter).
    pub fn keys(&self) -> Result<impl Iterator<Item = Result<StoredKey>> + '_> {
        self.inner.publish_all()?;
        let mut entries = self.inner.table.iter();
        let batches = std::iter::from_fn(move || self.inner.next_keys(&mut entries).transpose());
        Ok(batches.flat_map(|batch| match batch {
            Ok(keys) => keys.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        }))
    }
}

fn check_group(volume: &Volume, group_bytes: usize) -> Result<()> {
    let refuse = |field, reason| Err(Error::Config { field, reason });
    if group_bytes > GROUP_BYTES_MAX {
        let reason = format!("{group_bytes}; a fingerprint keeps at most {GROUP_BYTES_MAX}");
        return refuse("group_bytes", reason);
    }
    if volume.hasher().kind() == HashKind::Identity {
        let reason = "identity; a table of groups needs keys to be hashed: xxh3 or sip13";
        return refuse("hash", reason.into());
    }
    Ok(())
}

impl Inner<AnyTable> {
    fn next_keys(&self, entries: &mut AnyEntries<'_>) -> Result<Option<Vec<StoredKey>>> {
        let mut places = Vec::with_capacity(KEYS_BATCH);
        for entry in entries.by_ref().take(KEYS_BATCH) {
            let (key, value) = entry?;
            places.push(self.decode_entry(&key, &value)?);
        }
        if places.is_empty() { Ok(None) } else { self.keys_at(&places).map(Some) }
    }
}

impl<T: Table> Inner<T> {
    fn keys_at(&self, places: &[(Fingerprint, ValueRef)]) -> Result<Vec<StoredKey>> {
        let wanted: Vec<_> = places.iter().map(|(_, at)| (*at, KEY_READ_BYTES)).collect();
        let starts = self.values.read_starts(&wanted)?;
        let mut keys = Vec::with_capacity(places.len());
        for ((print, _), start) in places.iter().zip(starts) {
            match start.as_deref().and_then(|start| only_pair(start, print)) {
                Some((key, value_bytes)) => keys.push(StoredKey {
                    fingerprint: *print,
                    key: key.to_vec(),
                    value_bytes: value_bytes.into(),
                }),
                // Several keys share the record, one is long, or the record has moved.
                None => keys.extend(self.keys_of_record(print)?),
            }
        }
        Ok(keys)
    }

    fn keys_of_record(&self, print: &Fingerprint) -> Result<Vec<StoredKey>> {
        let Some((at, record)) = self.record_of(print)? else { return Ok(Vec::new()) };
        let record = self.decode_record((at, &record), print)?;
        let stored = |(key, value): &(&[u8], &[u8])| StoredKey {
            fingerprint: *print,
            key: key.to_vec(),
            value_bytes: value.len() as u64,
        };
        Ok(record.pairs.iter().map(stored).collect())
    }
}
