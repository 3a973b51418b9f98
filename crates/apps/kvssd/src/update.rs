//! Updates of pairs: the decision by the present state, and the space that is reserved for them.
//!
//! Space is reserved while the key's stripe is locked, before the record is written, and released if that fails. So the
//! counts are correct whatever happens at the same time, and no limit is exceeded.

use std::borrow::Cow;

use nandex::raw::large::{Change, Look, PairUpdate, Present};

use crate::catalog::{SpaceId, Usage};
use crate::drive::DriveInner;
use crate::options::{DeleteMissing, RetrieveOptions, Retrieved, StoreKind};
use crate::{Error, Result};

/// The kind of an update.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act<'v> {
    /// Stores a value.
    Store(&'v [u8], StoreKind),
    /// Deletes the pair.
    Delete(DeleteMissing),
    /// Retrieves the value, or a part of it, and deletes the pair.
    Take(RetrieveOptions),
}

/// The result of an update.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Updated {
    /// The bytes of the previous value.
    pub(crate) old_bytes: Option<u64>,
    /// The bytes of the new value.
    pub(crate) new_bytes: Option<u64>,
    /// The bytes of key and value that the caller has stored.
    pub(crate) given_bytes: u64,
    /// The retrieved part.
    pub(crate) retrieved: Retrieved,
}

/// An update in progress.
#[derive(Debug)]
pub(crate) struct Pending<'v> {
    drive: &'v DriveInner,
    space: SpaceId,
    key_bytes: u64,
    act: Act<'v>,
    /// The usage that was reserved for it, and the usage that it frees.
    reserved: Option<(Usage, Usage)>,
    refusal: Option<Error>,
    updated: Updated,
}

impl<'v> Pending<'v> {
    pub(crate) fn new(
        drive: &'v DriveInner,
        space: SpaceId,
        key: &[u8],
        act: Act<'v>,
    ) -> Result<Self> {
        drive.check_key(key)?;
        match act {
            Act::Store(value, _) => drive.check_value(value.len() as u64)?,
            Act::Take(options) => options.check(drive.config.offset_unit)?,
            Act::Delete(_) => {}
        }
        let (key_bytes, updated) = (key.len() as u64, Updated::default());
        Ok(Self { drive, space, key_bytes, act, reserved: None, refusal: None, updated })
    }

    /// Returns the request to the table; `key` is the pair's key in the table.
    pub(crate) fn request<'k>(&self, key: &'k [u8]) -> PairUpdate<'k> {
        let (look, put_bytes) = match self.act {
            Act::Store(value, StoreKind::Append) => (Look::Value, value.len()),
            Act::Store(value, _) => (Look::Length, value.len()),
            Act::Delete(_) => (Look::Length, 0),
            Act::Take(_) => (Look::Value, 0),
        };
        PairUpdate { key, look, put_bytes: put_bytes as u64 }
    }

    /// Decides on the change; the table may call it again.
    pub(crate) fn decide(&mut self, present: Option<Present<'_>>) -> Change<'v> {
        self.undo();
        self.refusal = None;
        self.updated =
            Updated { old_bytes: present.map(|it| it.value_bytes), ..Updated::default() };
        let decided = match self.act {
            Act::Store(value, kind) => self.decide_store(value, kind, present),
            Act::Delete(missing) => self.decide_delete(missing),
            Act::Take(options) => self.decide_take(options, present),
        };
        decided.unwrap_or_else(|refusal| {
            self.refusal = Some(refusal);
            Change::Keep
        })
    }

    fn decide_store(
        &mut self,
        value: &'v [u8],
        kind: StoreKind,
        present: Option<Present<'_>>,
    ) -> Result<Change<'v>> {
        let given_bytes = self.key_bytes + value.len() as u64;
        let value = match (kind, present) {
            (StoreKind::UpdateOnly, None) => return Err(Error::NoKey),
            (StoreKind::NoOverwrite, Some(_)) => return Err(Error::NoOverwrite),
            (StoreKind::Append, Some(Present { value: Some(old), .. })) => {
                Cow::Owned([old, value].concat())
            }
            _ => Cow::Borrowed(value),
        };
        let value_bytes = value.len() as u64;
        self.drive.check_value(value_bytes)?;
        self.reserve(Some(value_bytes))?;
        (self.updated.new_bytes, self.updated.given_bytes) = (Some(value_bytes), given_bytes);
        Ok(Change::Put(value))
    }

    fn decide_delete(&mut self, missing: DeleteMissing) -> Result<Change<'v>> {
        match (self.updated.old_bytes, missing) {
            (None, DeleteMissing::Refuse) => Err(Error::NoKey),
            (None, DeleteMissing::Ignore) => Ok(Change::Keep),
            (Some(_), _) => self.reserve(None).map(|()| Change::Remove),
        }
    }

    fn decide_take(
        &mut self,
        options: RetrieveOptions,
        present: Option<Present<'_>>,
    ) -> Result<Change<'v>> {
        let value = present.and_then(|present| present.value).ok_or(Error::NoKey)?;
        self.updated.retrieved = options.of(value)?;
        self.reserve(None).map(|()| Change::Remove)
    }

    /// Reserves the usage after the update, in place of the usage before it.
    fn reserve(&mut self, new_bytes: Option<u64>) -> Result<()> {
        let usage = |bytes: Option<u64>| {
            bytes.map(|bytes| Usage::pair(self.key_bytes, bytes)).unwrap_or_default()
        };
        let (new, old) = (usage(new_bytes), usage(self.updated.old_bytes));
        self.drive.reserve(self.space, new, old)?;
        self.reserved = Some((new, old));
        Ok(())
    }

    fn undo(&mut self) {
        if let Some((new, old)) = self.reserved.take() {
            self.drive.exchange(self.space, old, new);
        }
    }

    /// Returns the result, once the table has done what was decided.
    pub(crate) fn finish(mut self, result: Result<()>) -> Result<Updated> {
        if let Err(error) = result {
            self.undo();
            return Err(error);
        }
        match self.refusal {
            Some(refusal) => Err(refusal),
            None => Ok(self.updated),
        }
    }
}

impl DriveInner {
    pub(crate) fn check_key(&self, key: &[u8]) -> Result<()> {
        let limits = (self.config.key_bytes_min.into(), self.config.key_bytes_max.into());
        let (min, max): (usize, usize) = limits;
        if (min..=max).contains(&key.len()) {
            return Ok(());
        }
        Err(Error::KeyLength { found: key.len(), min, max })
    }

    pub(crate) fn check_value(&self, value_bytes: u64) -> Result<()> {
        let max = u64::from(self.config.value_bytes_max);
        if value_bytes > max {
            return Err(Error::ValueLength { found: value_bytes, max });
        }
        self.clock.check_value(value_bytes)
    }

    /// Counts a pair in place of an older one, unless that exceeds a limit. An update that makes a pair shorter always
    /// fits.
    fn reserve(&self, id: SpaceId, new: Usage, old: Usage) -> Result<()> {
        let mut catalog = self.catalog();
        let all = catalog.usage();
        let capacity = self.config.capacity_bytes;
        let more = new.stored_bytes().saturating_sub(old.stored_bytes());
        if more > 0 && all.stored_bytes() + more > capacity {
            return Err(Error::DriveFull { used: all.stored_bytes(), capacity, needed: more });
        }
        if new.pairs > old.pairs && all.pairs >= self.config.pairs_max {
            return Err(Error::PairsFull { pairs: all.pairs });
        }
        let Some(space) = catalog.spaces.get_mut(&id) else { return Ok(()) };
        let (used, limit) = (space.usage.logical_bytes(), space.limit_bytes);
        let more = new.logical_bytes().saturating_sub(old.logical_bytes());
        if limit > 0 && more > 0 && used + more > limit {
            return Err(Error::SpaceFull { name: space.name.clone(), used, limit, needed: more });
        }
        space.usage.add(new);
        space.usage.subtract(old);
        Ok(())
    }

    /// Counts `new` in place of `old`, whatever the limits.
    fn exchange(&self, id: SpaceId, new: Usage, old: Usage) {
        if let Some(space) = self.catalog().spaces.get_mut(&id) {
            space.usage.add(new);
            space.usage.subtract(old);
        }
    }
}
