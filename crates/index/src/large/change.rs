//! Updates that depend on the current value: put only over an older value, append, remove and return.
//!
//! The decision is made while the stripe of the key's fingerprint is held, so it is atomic with the update.

use std::borrow::Cow;

use nandex_store::values::ValueRef;

use super::ahead::{AHEAD_MAX, LookedUp, OldPair};
use super::cache::{Found, Now};
use super::format::{ENTRY_HEADER_BYTES, Fingerprint, HEADER_BYTES, Pair, Record, only_pair};
use super::write::Attempt;
use super::{Inner, LargeTable};
use crate::Result;
use crate::api::Table;
use nandex_store::values::format::RECORD_HEADER_BYTES;

/// The part of the current value that an update needs to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// Its length: the first page of its record is read.
    Length,
    /// The whole value.
    Value,
}

/// A key that is present.
#[derive(Clone, Copy, Debug)]
pub struct Present<'a> {
    /// Bytes of its value.
    pub value_bytes: u64,
    /// The value, if the update requested it.
    pub value: Option<&'a [u8]>,
}

/// The effect of an update.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change<'v> {
    /// Change nothing.
    Keep,
    /// Put this value.
    Put(Cow<'v, [u8]>),
    /// Remove the key, if it is present.
    Remove,
}

/// A key to update depending on its current value.
#[derive(Clone, Copy, Debug)]
pub struct PairUpdate<'k> {
    /// The key.
    pub key: &'k [u8],
    /// The part of the current value that the decision needs.
    pub look: Look,
    /// The bytes of the value that will be put, as far as they are known. They determine when an I/O chunk is full.
    pub put_bytes: u64,
}

/// Decides the effect of an update, given the current value. It may be called again while the value log makes space;
/// the last answer is used.
pub type Decide<'d, 'v> = dyn FnMut(Option<Present<'_>>) -> Change<'v> + 'd;

/// Like [`Decide`], for the update with the given number in a batch.
pub type DecideMany<'d, 'v> = dyn FnMut(usize, Option<Present<'_>>) -> Change<'v> + 'd;

impl<T: Table + 'static> LargeTable<T> {
    /// Atomically reads, modifies and writes one key, as `decide` says: no other thread changes the key between the
    /// decision and its effect. `decide` must not call this table.
    ///
    /// Costs a lookup of the table, a read of as much of the record as the update needs, and a put or a removal.
    ///
    /// # Errors
    /// As [`get`](Self::get), [`put`](Self::put) and [`remove`](Self::remove).
    pub fn change<'v>(&self, update: PairUpdate<'_>, decide: &mut Decide<'_, 'v>) -> Result<()> {
        self.inner.change_one(update, None, decide)?;
        self.inner.acknowledge()
    }

    /// Performs [`change`](Self::change) for each, in order; the lookups overlap, and all share the acknowledgement.
    /// Returns the result of each: one that fails does not stop the others.
    ///
    /// # Errors
    /// A failed acknowledgement, after which each change may or may not be durable.
    pub fn change_many<'v>(
        &self,
        updates: &[PairUpdate<'_>],
        decide: &mut DecideMany<'_, 'v>,
    ) -> Result<Vec<Result<()>>> {
        let mut results = Vec::with_capacity(updates.len());
        for chunk in updates.chunks(AHEAD_MAX) {
            // A key whose lookup fails here fails again when it is changed.
            let ahead = self.inner.look_ahead_of(chunk).unwrap_or(None);
            for update in chunk {
                let index = results.len();
                let mut decide = |present: Option<Present<'_>>| decide(index, present);
                results.push(self.inner.change_one(*update, ahead.as_ref(), &mut decide));
            }
        }
        self.inner.acknowledge()?;
        Ok(results)
    }
}

/// The result of reading an old record.
enum OldRecord {
    /// There is none.
    None,
    /// The record holds only the key, with a value of this length.
    Only(u64),
    /// The record.
    Whole(Vec<u8>),
}

impl<T: Table> Inner<T> {
    fn look_ahead_of(&self, updates: &[PairUpdate<'_>]) -> Result<Option<LookedUp<'_, T>>> {
        if updates.len() < 2 || updates.iter().any(|it| self.check_key(it.key).is_err()) {
            return Ok(None);
        }
        let short = updates.iter().filter(|it| it.look == Look::Length);
        self.look_ahead(short.map(|it| it.key)).map(Some)
    }

    fn change_one<'v>(
        &self,
        update: PairUpdate<'_>,
        ahead: Option<&LookedUp<'_, T>>,
        decide: &mut Decide<'_, 'v>,
    ) -> Result<()> {
        self.check_key(update.key)?;
        self.check_flow()?;
        let whole = Record::bytes(&[(update.key, &[])]).saturating_add(update.put_bytes);
        self.publish_before(whole.saturating_add(RECORD_HEADER_BYTES as u64))?;
        let print = self.fingerprint(update.key);
        self.retry(|| self.try_change((print, update), ahead, decide))?;
        self.publish_if_full()
    }

    fn try_change<'v>(
        &self,
        (print, update): (Fingerprint, PairUpdate<'_>),
        ahead: Option<&LookedUp<'_, T>>,
        decide: &mut Decide<'_, 'v>,
    ) -> Result<Attempt> {
        let _stripe = self.stripe(&print);
        let (old, found) = self.old_record((&print, update), ahead)?;
        let record = match (&found, old) {
            (OldRecord::Whole(bytes), Some(old)) => Some(self.decode_record((old, bytes), &print)?),
            _ => None,
        };
        let present = match (&found, &record) {
            (OldRecord::Only(value_bytes), _) => {
                Some(Present { value_bytes: *value_bytes, value: None })
            }
            (_, Some(record)) => record
                .value(update.key)
                .map(|value| Present { value_bytes: value.len() as u64, value: Some(value) }),
            _ => None,
        };
        let pairs = record.iter().flat_map(|record| record.pairs.iter().copied());
        let others: Vec<_> = pairs.filter(|(key, _)| *key != update.key).collect();
        let is_present = present.is_some();
        match decide(present) {
            Change::Put(value) => self.put_with((print, old), (update.key, &value), others),
            Change::Remove if is_present => self.keep_only(print, old, others),
            Change::Remove | Change::Keep => Ok(Attempt::Done),
        }
    }

    fn put_with(
        &self,
        (print, old): (Fingerprint, Option<ValueRef>),
        (key, value): Pair<'_>,
        others: Vec<Pair<'_>>,
    ) -> Result<Attempt> {
        self.check_value(key, value)?;
        let pairs = std::iter::once((key, value)).chain(others).collect();
        self.replace(print, old, pairs)
    }

    fn keep_only(
        &self,
        print: Fingerprint,
        old: Option<ValueRef>,
        others: Vec<Pair<'_>>,
    ) -> Result<Attempt> {
        if !others.is_empty() {
            return self.replace(print, old, others);
        }
        self.note(print, Now::Removed, old);
        Ok(Attempt::Done)
    }

    /// Returns what the cache knows of the current record.
    fn old_in_cache(
        &self,
        print: &Fingerprint,
        update: PairUpdate<'_>,
    ) -> Option<(Option<ValueRef>, OldRecord)> {
        let known = self.cache.get()?.ask(print, |found| {
            let Found::Record(reference, record) = found else { return (None, OldRecord::None) };
            let old = match only_pair(record, print) {
                Some((key, value_bytes)) if update.look == Look::Length && key == update.key => {
                    OldRecord::Only(value_bytes.into())
                }
                _ => OldRecord::Whole(record.to_vec()),
            };
            (Some(reference), old)
        });
        known.ok()
    }

    /// Reads as much of the current record as the update needs; the caller holds the stripe.
    fn old_record(
        &self,
        (print, update): (&Fingerprint, PairUpdate<'_>),
        ahead: Option<&LookedUp<'_, T>>,
    ) -> Result<(Option<ValueRef>, OldRecord)> {
        if update.look == Look::Length
            && let Some(OldPair { reference, value_bytes }) = ahead.and_then(|it| it.old(print))
        {
            return Ok((reference, value_bytes.map_or(OldRecord::None, OldRecord::Only)));
        }
        if let Some(known) = self.old_in_cache(print, update) {
            return Ok(known);
        }
        let Some(old) = self.locate(print)? else { return Ok((None, OldRecord::None)) };
        let limit = match update.look {
            Look::Length => HEADER_BYTES + ENTRY_HEADER_BYTES + update.key.len(),
            Look::Value => usize::MAX,
        };
        let Some(start) = self.values.read_start(old, limit)? else {
            return Ok((Some(old), OldRecord::None));
        };
        if update.look == Look::Value {
            return Ok((Some(old), OldRecord::Whole(start)));
        }
        match only_pair(&start, print) {
            Some((key, value_bytes)) if key == update.key => {
                Ok((Some(old), OldRecord::Only(value_bytes.into())))
            }
            _ => {
                let whole = self.values.read(old)?;
                Ok((Some(old), whole.map_or(OldRecord::None, OldRecord::Whole)))
            }
        }
    }
}
