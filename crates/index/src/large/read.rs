//! Lookups: they locate the record, read it, and check whether it has the whole key.

use std::sync::atomic::Ordering::Relaxed;

use nandex_store::entries::KeyState;
use nandex_store::values::ValueRef;

use super::cache::{Found, Ticket};
use super::format::{Fingerprint, only_pair};
use super::{Inner, lock};
use crate::Result;
use crate::api::Table;

/// The cache's answer about a key.
pub(super) enum Asked {
    /// Its value.
    Known(Result<Option<Vec<u8>>>),
    /// Nothing; with the ticket for storing the answer, if there is a cache.
    Unknown(Option<Ticket>),
}

impl<T: Table> Inner<T> {
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.check_key(key)?;
        self.warm_up_before(1)?;
        let value = self.find(&self.fingerprint(key), key)?;
        self.count(&value);
        Ok(value)
    }

    pub(super) fn find(&self, fingerprint: &Fingerprint, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.ask_cache(fingerprint, key) {
            Asked::Known(value) => value,
            Asked::Unknown(ticket) => self.find_on_flash(ticket, fingerprint, key),
        }
    }

    fn find_on_flash(
        &self,
        ticket: Option<Ticket>,
        fingerprint: &Fingerprint,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        self.count_unknown(1);
        let found = self.record_of(fingerprint)?;
        let found = found.as_ref().map(|(reference, record)| (*reference, &record[..]));
        let value = found.map(|found| self.value_in(found, fingerprint, key)).transpose()?;
        self.fill_cache(ticket, fingerprint, found);
        Ok(value.flatten())
    }

    /// Returns the value of a key, if the cache knows its record.
    pub(super) fn ask_cache(&self, print: &Fingerprint, key: &[u8]) -> Asked {
        let Some(cache) = self.cache.get() else { return Asked::Unknown(None) };
        match cache.ask(print, |found| self.value_of(found, print, key)) {
            Ok(value) => Asked::Known(value),
            Err(ticket) => Asked::Unknown(Some(ticket)),
        }
    }

    /// Returns the value of a key, given the cache's knowledge of its fingerprint.
    fn value_of(
        &self,
        found: Found<'_>,
        print: &Fingerprint,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let Found::Record(reference, record) = found else { return Ok(None) };
        match only_pair(record, print) {
            // The value is what follows the key.
            Some((only, value_bytes)) if only == key => {
                Ok(Some(record[record.len() - value_bytes as usize..].to_vec()))
            }
            Some(_) => Ok(None),
            None => self.value_in((reference, record), print, key),
        }
    }

    /// Stores an answer from flash about a fingerprint in the cache.
    fn fill_cache(
        &self,
        ticket: Option<Ticket>,
        print: &Fingerprint,
        found: Option<(ValueRef, &[u8])>,
    ) {
        if let (Some(cache), Some(ticket)) = (self.cache.get(), ticket) {
            let found = found.map_or(Found::Absent, |(at, record)| Found::Record(at, record));
            cache.fill(ticket, print, found);
        }
    }

    /// Returns the record of a fingerprint. Locates it again if it moves between being located and being read.
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

    /// Returns the value of a key in a record of its fingerprint.
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
        self.warm_up_before(keys.len())?;
        let mut found = vec![None; keys.len()];
        let prints: Vec<_> = keys.iter().map(|key| self.fingerprint(key)).collect();
        let mut misses = Vec::new();
        match self.cache.get() {
            None => misses.extend((0..).zip(&prints).map(|(index, print)| (index, *print, None))),
            Some(cache) => {
                let mut failed = None;
                cache.ask_many(prints.iter(), |index, asked| match asked {
                    Err(ticket) => misses.push((index, prints[index], Some(ticket))),
                    Ok(it) => match self.value_of(it, &prints[index], keys[index]) {
                        Ok(value) => found[index] = value,
                        Err(error) => failed = Some(error),
                    },
                });
                failed.map_or(Ok(()), Err)?;
            }
        }
        self.count_unknown(misses.len());
        let prints: Vec<_> = misses.iter().map(|(_, print, _)| *print).collect();
        let located = self.locate_many(&prints)?;
        let references: Vec<_> = located.iter().flatten().copied().collect();
        let mut records = self.values.read_many(&references)?.into_iter();
        for ((index, print, ticket), reference) in misses.into_iter().zip(located) {
            let record = reference.and_then(|_| records.next().flatten());
            found[index] = match (reference, record) {
                // It moved meanwhile, or is gone.
                (Some(_), None) => self.find(&print, keys[index])?,
                (at, record) => {
                    let it = at.zip(record.as_deref());
                    let value =
                        it.map(|it| self.value_in(it, &print, keys[index])).transpose()?.flatten();
                    self.fill_cache(ticket, &print, it);
                    value
                }
            };
        }
        found.iter().for_each(|value| self.count(value));
        Ok(found)
    }

    pub(super) fn locate_many(&self, prints: &[Fingerprint]) -> Result<Vec<Option<ValueRef>>> {
        let cached = |print: &Fingerprint| self.cache.get()?.place(print).map(KeyState::from);
        let waiting: Vec<_> = {
            let known: Vec<_> = prints.iter().map(cached).collect();
            let updates = lock(&self.updates);
            let find =
                |(print, known): (_, Option<_>)| known.unwrap_or_else(|| updates.find(print));
            prints.iter().zip(known).map(find).collect()
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
