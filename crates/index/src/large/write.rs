//! Puts and removals: they read the record of the fingerprint, append the new one, and note the update.

use nandex_store::entries::KeyState;
use nandex_store::values::format::RECORD_HEADER_BYTES;
use nandex_store::values::{Purpose, ValueRef};

use super::ahead::{AHEAD_MAX, LookedUp};
use super::cache::Now;
use super::format::{ENTRY_HEADER_BYTES, Fingerprint, HEADER_BYTES, Pair, Record, is_only_key};
use super::{Inner, KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::api::Table;
use crate::{Error, Result};

/// The number of pairs of a batch between two checks of how many updates wait.
const UNPUBLISHED_MAX: usize = 64;

/// The result of an attempt to change a record.
pub(super) enum Attempt {
    /// The change succeeded, or there was nothing to do.
    Done,
    /// The value log has no space for a record of this many bytes.
    NoSpace(u64),
}

impl<T: Table> Inner<T> {
    pub(super) fn value_bytes_max(&self, key_bytes: usize) -> usize {
        let others = (HEADER_BYTES + ENTRY_HEADER_BYTES + key_bytes) as u64;
        let left = self.values.record_bytes_max().saturating_sub(others);
        usize::try_from(left).unwrap_or(usize::MAX).min(VALUE_BYTES_MAX)
    }

    pub(super) fn check_key(&self, key: &[u8]) -> Result<()> {
        if key.len() <= KEY_BYTES_MAX {
            return Ok(());
        }
        let (limit, found) = (KEY_BYTES_MAX as u64, key.len() as u64);
        Err(Error::TooLong { what: "key", limit, found, remedy: "use a hash of it as the key" })
    }

    pub(super) fn check_value(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let limit = self.value_bytes_max(key.len());
        if value.len() <= limit {
            return Ok(());
        }
        let remedy =
            "store it in pieces, or, below 16 MiB, create the value log with longer segments";
        let (limit, found) = (limit as u64, value.len() as u64);
        Err(Error::TooLong { what: "value", limit, found, remedy })
    }

    pub(super) fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_key(key)?;
        self.check_value(key, value)?;
        self.warm_up_before(1)?;
        self.put_unacknowledged(key, value, None)?;
        self.acknowledge()
    }

    pub(super) fn put_many(&self, pairs: &[Pair<'_>]) -> Result<()> {
        for (key, value) in pairs {
            self.check_key(key)?;
            self.check_value(key, value)?;
        }
        self.warm_up_before(pairs.len())?;
        for pairs in pairs.chunks(AHEAD_MAX) {
            let looks_ahead = pairs.len() > 1 && !self.replaces_unread;
            let keys = pairs.iter().map(|it| it.0);
            let ahead = looks_ahead.then(|| self.look_ahead(keys)).transpose()?;
            for some in pairs.chunks(UNPUBLISHED_MAX) {
                for (key, value) in some {
                    self.put_unacknowledged(key, value, ahead.as_ref())?;
                }
                self.publish_if_full()?;
                self.cleaning.pace.wait();
            }
        }
        self.acknowledge()
    }

    /// Puts a value if its key is absent; returns whether it did.
    pub(super) fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.check_key(key)?;
        self.check_value(key, value)?;
        self.publish_before_put(key, value)?;
        let fingerprint = self.fingerprint(key);
        let mut is_new = true;
        self.retry(|| {
            let _stripe = self.stripe(&fingerprint);
            is_new = self.find(&fingerprint, key)?.is_none();
            if is_new { self.put_locked(fingerprint, key, value) } else { Ok(Attempt::Done) }
        })?;
        self.acknowledge()?;
        Ok(is_new)
    }

    /// Puts a pair that was already checked.
    fn put_unacknowledged(
        &self,
        key: &[u8],
        value: &[u8],
        ahead: Option<&LookedUp<'_, T>>,
    ) -> Result<()> {
        self.publish_before_put(key, value)?;
        let fingerprint = self.fingerprint(key);
        self.retry(|| {
            let _stripe = self.stripe(&fingerprint);
            match ahead.and_then(|ahead| ahead.old(&fingerprint)) {
                Some(old) => self.replace(fingerprint, old.reference, vec![(key, value)]),
                None => self.put_locked(fingerprint, key, value),
            }
        })
    }

    /// Publishes updates if a pair's record needs their space.
    fn publish_before_put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_flow()?;
        self.publish_before(RECORD_HEADER_BYTES as u64 + Record::bytes(&[(key, value)]))
    }

    pub(super) fn remove(&self, key: &[u8]) -> Result<()> {
        self.check_key(key)?;
        self.check_flow()?;
        let fingerprint = self.fingerprint(key);
        self.retry(|| self.try_remove(fingerprint, key))?;
        self.acknowledge()
    }

    /// Tries until the value log has space, or none can be freed.
    pub(super) fn retry(&self, mut attempt: impl FnMut() -> Result<Attempt>) -> Result<()> {
        while let Attempt::NoSpace(bytes) = attempt()? {
            self.make_space(bytes)?;
        }
        Ok(())
    }

    /// Puts a value; the caller holds the stripe.
    fn put_locked(&self, fingerprint: Fingerprint, key: &[u8], value: &[u8]) -> Result<Attempt> {
        if self.replaces_unread {
            let old = self.known_place(&fingerprint).value();
            return self.replace(fingerprint, old, vec![(key, value)]);
        }
        if let Some(old) = self.known_of(&fingerprint, key) {
            return self.replace(fingerprint, old.reference, vec![(key, value)]);
        }
        self.count_unknown(1);
        let old = self.locate(&fingerprint)?;
        let others = match old {
            Some(old) => self.record_unless_only(old, &fingerprint, key)?.map(|it| (old, it)),
            None => None,
        };
        let mut pairs = vec![(key, value)];
        if let Some((old, others)) = &others {
            let others = self.decode_record((*old, others), &fingerprint)?;
            pairs.extend(others.pairs.into_iter().filter(|(other, _)| *other != key));
        }
        self.replace(fingerprint, old, pairs)
    }

    fn try_remove(&self, fingerprint: Fingerprint, key: &[u8]) -> Result<Attempt> {
        let _stripe = self.stripe(&fingerprint);
        if self.replaces_unread {
            match self.known_place(&fingerprint) {
                KeyState::Removed => {}
                old => self.note(fingerprint, Now::Removed, old.value()),
            }
            return Ok(Attempt::Done);
        }
        if let Some(old) = self.known_of(&fingerprint, key) {
            if old.value_bytes.is_some() {
                self.note(fingerprint, Now::Removed, old.reference);
            }
            return Ok(Attempt::Done);
        }
        let Some(old) = self.locate(&fingerprint)? else { return Ok(Attempt::Done) };
        let Some(others) = self.record_unless_only(old, &fingerprint, key)? else {
            self.note(fingerprint, Now::Removed, Some(old));
            return Ok(Attempt::Done);
        };
        let others = self.decode_record((old, &others), &fingerprint)?;
        if others.value(key).is_none() {
            return Ok(Attempt::Done);
        }
        let pairs: Vec<_> = others.pairs.into_iter().filter(|(other, _)| *other != key).collect();
        self.replace(fingerprint, Some(old), pairs)
    }

    /// Returns the record, if it holds other keys than this one; `None` otherwise, or if it is gone. Reads its
    /// beginning, and the rest if that is not conclusive.
    fn record_unless_only(
        &self,
        reference: ValueRef,
        fingerprint: &Fingerprint,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let limit = HEADER_BYTES + ENTRY_HEADER_BYTES + key.len();
        match self.values.read_start(reference, limit)? {
            Some(start) if !is_only_key(&start, fingerprint, key) => {
                Ok(self.values.read(reference)?)
            }
            _ => Ok(None),
        }
    }

    /// Decodes a record, and checks that it has this fingerprint.
    pub(super) fn decode_record<'a>(
        &self,
        (reference, bytes): (ValueRef, &'a [u8]),
        fingerprint: &Fingerprint,
    ) -> Result<Record<'a>> {
        let page = self.values.page_of(reference);
        let record = Record::decode(bytes, page)?;
        if record.fingerprint == *fingerprint {
            return Ok(record);
        }
        let show =
            |print: &Fingerprint| format!("fingerprint {:032x}", u128::from_le_bytes(*print));
        let (expected, found) = (show(fingerprint), show(&record.fingerprint));
        Err(nandex_store::Error::corrupt("record of a large value", page, expected, found).into())
    }

    /// Appends the record of these pairs to replace an old one; the caller holds the stripe.
    pub(super) fn replace(
        &self,
        fingerprint: Fingerprint,
        old: Option<ValueRef>,
        pairs: Vec<Pair<'_>>,
    ) -> Result<Attempt> {
        let bytes = Record::bytes(&pairs);
        self.check_shared(bytes, pairs.len())?;
        let record = Record { fingerprint, pairs };
        let headers = record.headers();
        let parts = record.parts(&headers);
        match self.values.append(Purpose::Put, &parts)? {
            None => Ok(Attempt::NoSpace(bytes)),
            Some(reference) => {
                self.cleaning.pace.note(reference.whole_bytes());
                self.note(fingerprint, Now::Record(reference, &parts), old);
                Ok(Attempt::Done)
            }
        }
    }

    /// Fails for values that do not fit a record together with others whose keys have the same fingerprint.
    fn check_shared(&self, bytes: u64, pairs: usize) -> Result<()> {
        let limit = self.values.record_bytes_max();
        if bytes <= limit {
            return Ok(());
        }
        let remedy = "many keys have one fingerprint; use a hash function that tells them apart";
        let what = if pairs > 1 { "record of keys with one fingerprint" } else { "value" };
        Err(Error::TooLong { what, limit, found: bytes, remedy })
    }
}
