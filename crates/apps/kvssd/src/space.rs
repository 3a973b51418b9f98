//! An open key space: operations on its pairs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nandex::raw::large::Change;

use crate::catalog::{SpaceId, Usage};
use crate::drive::{Drive, DriveInner, PairsGuard};
use crate::info::SpaceInfo;
use crate::iops::ModelledOperation;
use crate::options::{DeleteMissing, RetrieveOptions, Retrieved, StoreOptions};
use crate::update::{Act, Pending, Updated};
use crate::{Afterwards, Error, Result};

/// An open key space. Clones share the handle; dropping the last one, or [`close`](Self::close), closes it.
#[derive(Clone, Debug)]
pub struct KeySpace {
    handle: Arc<SpaceHandle>,
}

#[derive(Debug)]
struct SpaceHandle {
    drive: Drive,
    id: SpaceId,
    /// The number of this opening: a key space that was deleted and created again has another.
    opening: u64,
    name: String,
    is_closed: AtomicBool,
}

impl KeySpace {
    pub(crate) fn new(drive: Drive, (id, opening): (SpaceId, u64), name: String) -> Self {
        let is_closed = AtomicBool::new(false);
        Self { handle: Arc::new(SpaceHandle { drive, id, opening, name, is_closed }) }
    }

    /// The name of the key space.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.handle.name
    }

    /// The drive of the key space.
    #[must_use]
    pub fn drive(&self) -> &Drive {
        &self.handle.drive
    }

    /// Stores a value under a key.
    ///
    /// Costs an index access, a read of the first page of an older record (of the whole record, to append), and a write
    /// of the new record. It is durable according to the volume's durability, at the latest after [`Drive::sync`].
    ///
    /// # Errors
    /// A key or value of a length that the drive does not accept, an existing or absent key that the options exclude, a
    /// full drive or key space, a handle or drive that was closed, a failed read or write.
    pub fn store(&self, key: &[u8], value: &[u8], options: StoreOptions) -> Result<()> {
        options.check()?;
        self.update(key, Act::Store(value, options.kind)).map(drop)
    }

    /// Returns the value under a key, or a part of it.
    ///
    /// Costs an index access, and one operation that reads the record's pages up to the end of the part.
    ///
    /// # Errors
    /// An absent key, an invalid offset, a handle or drive that was closed, a failed read or write.
    pub fn retrieve(&self, key: &[u8], options: RetrieveOptions) -> Result<Retrieved> {
        if options.afterwards == Afterwards::Delete {
            return Ok(self.update(key, Act::Take(options))?.retrieved);
        }
        let pairs = self.enter()?;
        self.retrieve_one(&pairs, key, options)
    }

    /// Like [`retrieve`](Self::retrieve), into the caller's buffer. Returns the number of bytes that were filled. Costs
    /// one more index access and a read of the record's first page, to compare the lengths before anything is deleted.
    ///
    /// # Errors
    /// As `retrieve`; a buffer that is shorter than the requested part, in which case nothing is deleted.
    pub fn retrieve_into(
        &self,
        key: &[u8],
        buffer: &mut [u8],
        options: RetrieveOptions,
    ) -> Result<usize> {
        let kept = RetrieveOptions { afterwards: Afterwards::Keep, ..options };
        let found = buffer.len() as u64;
        let value_bytes = self.value_bytes(key)?;
        options.check_offset(value_bytes)?;
        let needed = options.end().min(value_bytes) - options.offset.min(value_bytes);
        if needed > found {
            return Err(Error::Buffer { needed, found });
        }
        // A value that got longer meanwhile is cut to the buffer.
        let length = Some(options.length.unwrap_or(found).min(found));
        let afterwards = options.afterwards;
        let retrieved = self.retrieve(key, RetrieveOptions { length, afterwards, ..kept })?;
        buffer[..retrieved.bytes.len()].copy_from_slice(&retrieved.bytes);
        Ok(retrieved.bytes.len())
    }

    /// Deletes a pair.
    ///
    /// Costs an index access, a read of the first page of its record, and the index's removal. It also works on a full
    /// drive.
    ///
    /// # Errors
    /// An absent key, if `missing` says so, a handle or drive that was closed, a failed read or write.
    pub fn delete(&self, key: &[u8], missing: DeleteMissing) -> Result<()> {
        self.update(key, Act::Delete(missing)).map(drop)
    }

    /// Returns whether each of these keys is present, in order.
    ///
    /// Costs an index access for each, and a read of the first page of the record, which confirms the whole key. The
    /// reads overlap.
    ///
    /// # Errors
    /// No keys, one of a length that the drive does not accept, a handle or drive that was closed, a failed read.
    pub fn exist(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        if keys.is_empty() {
            return Err(Error::Param { what: "keys", reason: "none; give one or more" });
        }
        keys.iter().try_for_each(|key| self.inner().check_key(key))?;
        let pairs = self.enter()?;
        let start_ns = self.inner().clock.now_ns();
        let stored: Vec<_> = keys.iter().map(|key| self.handle.id.key(key)).collect();
        let stored: Vec<_> = stored.iter().map(|key| &key[..]).collect();
        let lengths = pairs.value_lengths(&stored)?;
        let counters = &self.inner().counters;
        counters.exists.fetch_add(keys.len() as u64, Ordering::Relaxed);
        keys.iter().try_for_each(|_| self.inner().clock.pass(ModelledOperation::Read, 0))?;
        self.pass_since(start_ns);
        Ok(lengths.iter().map(Option::is_some).collect())
    }

    /// Like [`exist`](Self::exist), with one bit for each key from the lowest of the first byte on, as in the
    /// specification. Returns the number of bytes that were filled.
    ///
    /// # Errors
    /// As `exist`; a buffer that is too short.
    pub fn exist_into(&self, keys: &[&[u8]], buffer: &mut [u8]) -> Result<usize> {
        let (needed, found) = (keys.len().div_ceil(8), buffer.len());
        if needed > found {
            return Err(Error::Buffer { needed: needed as u64, found: found as u64 });
        }
        pack_bits(&self.exist(keys)?, &mut buffer[..needed]);
        Ok(needed)
    }

    /// Returns the bytes of the value under a key, for a caller that needs a buffer.
    ///
    /// Costs an index access and a read of the record's first page.
    ///
    /// # Errors
    /// An absent key, a handle or drive that was closed, a failed read.
    pub fn value_bytes(&self, key: &[u8]) -> Result<u64> {
        self.inner().check_key(key)?;
        let pairs = self.enter()?;
        let stored = self.handle.id.key(key);
        let lengths = pairs.value_lengths(&[&stored])?;
        lengths.first().copied().flatten().ok_or(Error::NoKey)
    }

    /// Returns the limit and the content of the key space.
    ///
    /// # Errors
    /// A handle or drive that was closed.
    pub fn info(&self) -> Result<SpaceInfo> {
        let _pairs = self.enter()?;
        self.drive().space_info(self.name())
    }

    /// Closes the key space, for all clones of the handle.
    ///
    /// # Errors
    /// A key space that was closed or deleted.
    pub fn close(&self) -> Result<()> {
        let _pairs = self.enter()?;
        self.handle.is_closed.store(true, Ordering::Release);
        self.handle.let_go();
        Ok(())
    }

    pub(crate) fn inner(&self) -> &DriveInner {
        &self.handle.drive.inner
    }

    pub(crate) fn id(&self) -> SpaceId {
        self.handle.id
    }

    /// Returns the pairs, if the drive and this key space are open.
    pub(crate) fn enter(&self) -> Result<PairsGuard<'_>> {
        let pairs = self.inner().pairs()?;
        let name = || self.handle.name.clone();
        if self.handle.is_closed.load(Ordering::Acquire) {
            return Err(Error::SpaceClosed { name: name() });
        }
        match self.inner().catalog().spaces.get(&self.handle.id) {
            Some(space) if space.opened_as == Some(self.handle.opening) => Ok(pairs),
            _ => Err(Error::NoSpace { name: name() }),
        }
    }

    pub(crate) fn pass_since(&self, start_ns: u64) {
        let passed_ns = self.inner().clock.now_ns().saturating_sub(start_ns);
        self.inner().counters.command_ns.fetch_add(passed_ns, Ordering::Relaxed);
    }

    fn update(&self, key: &[u8], act: Act<'_>) -> Result<Updated> {
        let mut results = self.update_many(&[(key, act)])?;
        results.pop().unwrap_or(Err(Error::NoKey))
    }

    /// Executes updates in order, and returns the result of each; their lookups overlap.
    pub(crate) fn update_many(&self, acts: &[(&[u8], Act<'_>)]) -> Result<Vec<Result<Updated>>> {
        let pairs = self.enter()?;
        self.inner().mark(&pairs)?;
        let start_ns = self.inner().clock.now_ns();
        let results = self.inner().change(&pairs, self.handle.id, acts)?;
        self.pass_since(start_ns);
        Ok(results)
    }

    /// Retrieves without deleting, and returns the result of each; the reads of whole values overlap.
    pub(crate) fn retrieve_many(
        &self,
        wanted: &[(&[u8], RetrieveOptions)],
    ) -> Result<Vec<Result<Retrieved>>> {
        let pairs = self.enter()?;
        let is_whole = |options: &RetrieveOptions| *options == RetrieveOptions::default();
        let is_easy = wanted
            .iter()
            .all(|(key, options)| is_whole(options) && self.inner().check_key(key).is_ok());
        if !is_easy || wanted.len() < 2 {
            let each = wanted.iter();
            return Ok(each.map(|(key, it)| self.retrieve_one(&pairs, key, *it)).collect());
        }
        let start_ns = self.inner().clock.now_ns();
        let stored: Vec<_> = wanted.iter().map(|(key, _)| self.handle.id.key(key)).collect();
        let stored: Vec<_> = stored.iter().map(|key| &key[..]).collect();
        let values = pairs.get_many(&stored)?;
        let results = values.into_iter().map(|value| {
            self.note_retrieved(value.map(|bytes| {
                let value_bytes = bytes.len() as u64;
                Retrieved { bytes, value_bytes }
            }))
        });
        let results = results.collect();
        self.pass_since(start_ns);
        Ok(results)
    }

    fn retrieve_one(
        &self,
        pairs: &PairsGuard<'_>,
        key: &[u8],
        options: RetrieveOptions,
    ) -> Result<Retrieved> {
        self.inner().check_key(key)?;
        options.check(self.inner().config.offset_unit)?;
        let start_ns = self.inner().clock.now_ns();
        let stored = self.handle.id.key(key);
        let part = pairs.get_part(&stored, options.offset..options.end())?;
        let found = part.map(|part| Retrieved { bytes: part.bytes, value_bytes: part.value_bytes });
        let retrieved = self.note_retrieved(found)?;
        self.pass_since(start_ns);
        options.check_offset(retrieved.value_bytes).map(|()| retrieved)
    }

    fn note_retrieved(&self, found: Option<Retrieved>) -> Result<Retrieved> {
        let counters = &self.inner().counters;
        let counter = if found.is_some() { &counters.retrieves } else { &counters.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        let value_bytes = found.as_ref().map_or(0, |found| found.value_bytes);
        self.inner().clock.pass(ModelledOperation::Read, value_bytes)?;
        found.ok_or(Error::NoKey)
    }
}

impl Drive {
    /// Returns the limit and the content of a key space, open or not.
    ///
    /// # Errors
    /// No such key space, a drive that was closed.
    pub fn space_info(&self, name: &str) -> Result<SpaceInfo> {
        drop(self.inner.pairs()?);
        let catalog = self.inner.catalog();
        let id = catalog.find(name)?;
        let space = catalog.spaces.get(&id).ok_or(Error::NoSpace { name: name.to_owned() })?;
        let drive_free =
            self.config().capacity_bytes.saturating_sub(catalog.usage().stored_bytes());
        let Usage { pairs, key_bytes, value_bytes } = space.usage;
        let space_free = space.limit_bytes.saturating_sub(space.usage.logical_bytes());
        let free_bytes =
            if space.limit_bytes == 0 { drive_free } else { space_free.min(drive_free) };
        Ok(SpaceInfo {
            name: name.to_owned(),
            limit_bytes: space.limit_bytes,
            free_bytes,
            pairs,
            key_bytes,
            value_bytes,
            is_open: space.opened_as.is_some(),
        })
    }
}

impl DriveInner {
    /// Executes updates of pairs of a key space in order, and returns the result of each.
    pub(crate) fn change(
        &self,
        pairs: &PairsGuard<'_>,
        id: SpaceId,
        acts: &[(&[u8], Act<'_>)],
    ) -> Result<Vec<Result<Updated>>> {
        let mut pending: Vec<_> =
            acts.iter().map(|(key, act)| Pending::new(self, id, key, *act)).collect();
        let keys: Vec<_> = acts.iter().map(|(key, _)| id.key(key)).collect();
        let (mut places, mut requests) = (Vec::new(), Vec::new());
        for (place, (pending, key)) in pending.iter().zip(&keys).enumerate() {
            if let Ok(pending) = pending {
                places.push(place);
                requests.push(pending.request(key));
            }
        }
        let results = pairs.change_many(&requests, &mut |index, present| match pending
            .get_mut(places[index])
        {
            Some(Ok(pending)) => pending.decide(present),
            _ => Change::Keep,
        })?;
        let mut results = results.into_iter();
        let mut next = || results.next().unwrap_or(Ok(())).map_err(Error::from);
        let finish = |it: Result<Pending<'_>>| it.and_then(|it| it.finish(next()));
        let finished: Vec<_> = pending.into_iter().map(finish).collect();
        for updated in &finished {
            updated.as_ref().map_or(Ok(()), |updated| self.note(updated))?;
        }
        Ok(finished)
    }

    fn note(&self, updated: &Updated) -> Result<()> {
        self.counters.note(updated);
        let operation = match (updated.old_bytes, updated.new_bytes) {
            (None, Some(_)) => ModelledOperation::Insert,
            (Some(_), Some(_)) => ModelledOperation::Update,
            (_, None) => ModelledOperation::Delete,
        };
        self.clock.pass(operation, updated.new_bytes.unwrap_or(0))
    }
}

/// Writes a bit for each key, from the lowest of the first byte on, as far as the buffer goes.
pub fn pack_bits(there: &[bool], buffer: &mut [u8]) {
    for (byte, eight) in buffer.iter_mut().zip(there.chunks(8)) {
        let bits = eight.iter().enumerate().map(|(bit, there)| u8::from(*there) << bit);
        *byte = bits.sum();
    }
}

impl SpaceHandle {
    /// Lets another handle open the key space, if this one still has it.
    fn let_go(&self) {
        let mut catalog = self.drive.inner.catalog();
        if let Some(space) = catalog.spaces.get_mut(&self.id)
            && space.opened_as == Some(self.opening)
        {
            space.opened_as = None;
        }
        drop(catalog);
        crate::drive::lock(&self.drive.inner.iterators).close_all_of(self.id);
    }
}

impl Drop for SpaceHandle {
    fn drop(&mut self) {
        if !self.is_closed.load(Ordering::Acquire) {
            self.let_go();
        }
    }
}
