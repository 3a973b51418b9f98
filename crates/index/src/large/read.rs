//! Lookups: the record's place, the record, and whether the whole key is in it.

use std::sync::atomic::Ordering::Relaxed;

use nandex_store::entries::KeyState;
use nandex_store::values::ValueRef;

use super::format::Fingerprint;
use super::{Inner, lock};
use crate::Result;
use crate::api::Table;

impl<T: Table> Inner<T> {
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.check_key(key)?;
        let value = self.find(&self.fingerprint(key), key)?;
        self.count(&value);
        Ok(value)
    }

    pub(super) fn find(&self, fingerprint: &Fingerprint, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.record_of(fingerprint)? {
            Some((reference, record)) => self.value_in((reference, &record), fingerprint, key),
            None => Ok(None),
        }
    }

    /// The record of a fingerprint. Locates it again if it moves between being located and being read.
    pub(super) fn record_of(&self, print: &Fingerprint) -> Result<Option<(ValueRef, Vec<u8>)>> {
        let mut last = None;
        loop {
            let Some(reference) = self.locate(print)? else { return Ok(None) };
            if let Some(record) = self.values.read(reference)? {
                return Ok(Some((reference, record)));
            }
            if last == Some(reference) {
                self.counters.overwritten.fetch_add(1, Relaxed);
                return Ok(None);
            }
            last = Some(reference);
        }
    }

    /// The value of a key in a record of its fingerprint.
    fn value_in(
        &self,
        record: (ValueRef, &[u8]),
        fingerprint: &Fingerprint,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        Ok(self.decode_record(record, fingerprint)?.value(key).map(<[u8]>::to_vec))
    }

    pub(super) fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        keys.iter().try_for_each(|key| self.check_key(key))?;
        let prints: Vec<_> = keys.iter().map(|key| self.fingerprint(key)).collect();
        let located = self.locate_many(&prints)?;
        let references: Vec<_> = located.iter().flatten().copied().collect();
        let mut records = self.values.read_many(&references)?.into_iter();
        let mut found = Vec::with_capacity(keys.len());
        for ((key, print), reference) in keys.iter().zip(&prints).zip(located) {
            let record = reference.and_then(|_| records.next().flatten());
            let value = match (reference, record) {
                (None, _) => None,
                (Some(at), Some(record)) => self.value_in((at, &record), print, key)?,
                // It moved meanwhile, or is gone.
                (Some(_), None) => self.find(print, key)?,
            };
            self.count(&value);
            found.push(value);
        }
        Ok(found)
    }

    pub(super) fn locate_many(&self, prints: &[Fingerprint]) -> Result<Vec<Option<ValueRef>>> {
        let waiting: Vec<_> = {
            let updates = lock(&self.updates);
            prints.iter().map(|print| updates.find(print)).collect()
        };
        let unknown = prints.iter().zip(&waiting).filter(|(_, update)| !update.is_known());
        let unknown: Vec<_> = unknown.map(|(print, _)| &print[..]).collect();
        let mut values = self.table.get_many(&unknown)?.into_iter();
        let settle = |update: KeyState<ValueRef>| match update {
            KeyState::Unknown => {
                values.next().flatten().map(|value| self.decode(&value)).transpose()
            }
            known => Ok(known.value()),
        };
        waiting.into_iter().map(settle).collect()
    }

    fn count(&self, value: &Option<Vec<u8>>) {
        let counter = if value.is_some() { &self.counters.hits } else { &self.counters.misses };
        counter.fetch_add(1, Relaxed);
    }
}
