//! Iterators over the keys of a group: those whose first four bytes match a pattern under a mask.
//!
//! The fingerprints in the index begin with the key space and these four bytes. So an iterator reads the index, and
//! only those records that it returns. It visits fingerprints in order, a window of them at a time. A key that stays is
//! returned exactly once, whatever is stored, deleted or moved meanwhile; a key that is added or removed may be.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use nandex::raw::large::format::Fingerprint;

use crate::catalog::{PREFIX_BYTES, SPACE_BYTES, SpaceId};
use crate::drive::{DriveInner, Pairs, PairsGuard, lock};
use crate::options::DeleteMissing;
use crate::space::KeySpace;
use crate::update::Act;
use crate::{Error, Result};

/// The number of fingerprints that an iterator keeps from one pass over the index: 1 MiB.
const WINDOW: usize = 1 << 16;

/// The number of records that are read together.
const BATCH: usize = 64;

/// The number of pairs of a group that are deleted together.
const DELETE_BATCH: usize = 1024;

/// The number of bytes before each key and each value in a returned list.
const LENGTH_BYTES: u64 = 4;

/// A filter for keys with `key & mask == pattern` in the first four bytes; a shorter key is padded with zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GroupFilter {
    /// The bits that are compared.
    pub mask: [u8; PREFIX_BYTES],
    /// The required values of these bits.
    pub pattern: [u8; PREFIX_BYTES],
}

impl GroupFilter {
    /// Returns the filter for all keys that begin with these bytes, or with the first four if there are more.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> Self {
        let mut filter = Self::default();
        for (index, byte) in prefix.iter().take(PREFIX_BYTES).enumerate() {
            (filter.mask[index], filter.pattern[index]) = (0xff, *byte);
        }
        filter
    }

    fn check(self) -> Result<()> {
        let number = u32::from_be_bytes;
        let (mask, pattern) = (number(self.mask), number(self.pattern));
        if pattern & !mask == 0 { Ok(()) } else { Err(Error::Filter { mask, pattern }) }
    }

    /// Returns whether these first bytes of a key match.
    fn takes(self, first: &[u8]) -> bool {
        let bits = first.iter().zip(self.mask).map(|(byte, mask)| byte & mask);
        bits.eq(self.pattern)
    }
}

/// The items that an iterator returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IteratorKind {
    /// Keys.
    #[default]
    Keys,
    /// Keys with their values.
    Pairs,
}

/// The number of an open iterator, from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IteratorNumber(pub u8);

/// A key that an iterator returns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IteratedPair {
    /// The key.
    pub key: Vec<u8>,
    /// The value, if the iterator returns values.
    pub value: Option<Vec<u8>>,
}

/// A part of an iterator's result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Iterated {
    /// The next keys, in no particular order.
    pub pairs: Vec<IteratedPair>,
    /// Whether these are the last.
    pub is_end: bool,
}

/// All open iterators of a drive.
#[derive(Debug)]
pub(crate) struct Iterators {
    open: Vec<Option<OpenIterator>>,
}

/// An iterator, and its key space.
#[derive(Debug)]
struct OpenIterator {
    space: SpaceId,
    filter: GroupFilter,
    iterator: Arc<Mutex<GroupIterator>>,
}

#[derive(Debug)]
struct GroupIterator {
    space: SpaceId,
    filter: GroupFilter,
    kind: IteratorKind,
    /// The last fingerprint of the window.
    after: Option<Fingerprint>,
    window: VecDeque<Fingerprint>,
    /// Whether no fingerprint follows the window.
    is_last: bool,
}

impl Iterators {
    pub(crate) fn new(count: u8) -> Self {
        Self { open: std::iter::repeat_with(|| None).take(count.into()).collect() }
    }

    /// Closes the iterators of a key space.
    pub(crate) fn close_all_of(&mut self, id: SpaceId) {
        for slot in &mut self.open {
            slot.take_if(|open| open.space == id);
        }
    }

    fn find(&self, space: &KeySpace, number: IteratorNumber) -> Result<Arc<Mutex<GroupIterator>>> {
        let slot = usize::from(number.0).checked_sub(1).and_then(|at| self.open.get(at));
        match slot {
            Some(Some(open)) if open.space == space.id() => Ok(Arc::clone(&open.iterator)),
            _ => Err(Error::NoIterator { number: number.0, name: space.name().to_owned() }),
        }
    }
}

impl KeySpace {
    /// Opens an iterator over a group of keys. It uses up to 1 MiB of RAM; the first call of [`iterate`](Self::iterate)
    /// reads flash.
    ///
    /// # Errors
    /// A filter that no key can match, an iterator with this filter that is open already, too many iterators, a handle
    /// or drive that was closed.
    pub fn open_iterator(&self, filter: GroupFilter, kind: IteratorKind) -> Result<IteratorNumber> {
        let _pairs = self.enter()?;
        filter.check()?;
        let mut iterators = lock(&self.inner().iterators);
        let open = iterators.open.iter().position(|slot| {
            slot.as_ref().is_some_and(|open| open.space == self.id() && open.filter == filter)
        });
        let numbered = |at: usize| u8::try_from(at + 1).unwrap_or(u8::MAX);
        if let Some(at) = open {
            let (name, number) = (self.name().to_owned(), numbered(at));
            return Err(Error::IteratorIsOpen { name, number });
        }
        let count = iterators.open.len();
        let free = iterators.open.iter().position(Option::is_none);
        let at = free.ok_or(Error::IteratorsFull { count })?;
        let iterator = GroupIterator {
            space: self.id(),
            filter,
            kind,
            after: None,
            window: VecDeque::new(),
            is_last: false,
        };
        let (space, iterator) = (self.id(), Arc::new(Mutex::new(iterator)));
        iterators.open[at] = Some(OpenIterator { space, filter, iterator });
        Ok(IteratorNumber(numbered(at)))
    }

    /// Returns the next keys of an iterator, as many as fit a list of `buffer_bytes`: 4 bytes and the key for each, and
    /// the same for a value.
    ///
    /// Costs a pass over the index for each 65,536 keys of the group, and a read of the first page of each record, or
    /// of the whole record if values are returned.
    ///
    /// # Errors
    /// No such iterator, a buffer that is too short for the next pair, a handle or drive that was closed, a failed
    /// read.
    pub fn iterate(&self, number: IteratorNumber, buffer_bytes: u64) -> Result<Iterated> {
        let pairs = self.enter()?;
        let iterator = lock(&self.inner().iterators).find(self, number)?;
        let start_ns = self.inner().clock.now_ns();
        let iterated = lock(&iterator).next(&pairs, buffer_bytes);
        self.pass_since(start_ns);
        iterated
    }

    /// Closes an iterator.
    ///
    /// # Errors
    /// No such iterator, a handle or drive that was closed.
    pub fn close_iterator(&self, number: IteratorNumber) -> Result<()> {
        let _pairs = self.enter()?;
        let mut iterators = lock(&self.inner().iterators);
        iterators.find(self, number)?;
        iterators.open[usize::from(number.0) - 1] = None;
        Ok(())
    }

    /// Deletes all pairs of a group, and returns their number.
    ///
    /// Costs passes over the index, and a deletion for each pair.
    ///
    /// # Errors
    /// A filter that no key can match, a handle or drive that was closed, a failed read or write.
    pub fn delete_group(&self, filter: GroupFilter) -> Result<u64> {
        let pairs = self.enter()?;
        filter.check()?;
        self.inner().mark(&pairs)?;
        self.inner().remove_where(&pairs, self.id(), &|first| filter.takes(first))
    }
}

impl GroupIterator {
    fn next(&mut self, pairs: &Pairs, buffer_bytes: u64) -> Result<Iterated> {
        let (mut found, mut used) = (Vec::new(), 0);
        loop {
            if self.window.is_empty() && !self.refill(pairs)? {
                return Ok(Iterated { pairs: found, is_end: true });
            }
            let batch: Vec<_> = self.window.iter().take(BATCH).copied().collect();
            let stored = pairs.keys_of(&batch)?;
            let mut fits = Vec::with_capacity(batch.len());
            let mut too_long = None;
            for print in batch {
                let keys = stored.iter().filter(|it| it.fingerprint == print);
                let bytes: u64 = keys.map(|it| self.entry_bytes(&it.key, it.value_bytes)).sum();
                if used + bytes > buffer_bytes {
                    too_long = Some(bytes);
                    break;
                }
                used += bytes;
                fits.push(print);
            }
            self.take(pairs, &fits, &mut found)?;
            self.window.drain(..fits.len());
            match too_long {
                Some(needed) if found.is_empty() => {
                    return Err(Error::Buffer { needed, found: buffer_bytes });
                }
                Some(_) => return Ok(Iterated { pairs: found, is_end: false }),
                None => {}
            }
        }
    }

    fn entry_bytes(&self, stored_key: &[u8], value_bytes: u64) -> u64 {
        let key_bytes =
            LENGTH_BYTES + (stored_key.len() - SPACE_BYTES.min(stored_key.len())) as u64;
        match self.kind {
            IteratorKind::Keys => key_bytes,
            IteratorKind::Pairs => key_bytes + LENGTH_BYTES + value_bytes,
        }
    }

    /// Appends the keys with these fingerprints, and their values.
    fn take(
        &self,
        pairs: &Pairs,
        prints: &[Fingerprint],
        found: &mut Vec<IteratedPair>,
    ) -> Result<()> {
        let user_key = |stored: Vec<u8>| SpaceId::of(&stored).map(|(_, key)| key.to_vec());
        match self.kind {
            IteratorKind::Keys => {
                let keys = pairs.keys_of(prints)?.into_iter().filter_map(|it| user_key(it.key));
                found.extend(keys.map(|key| IteratedPair { key, value: None }));
            }
            IteratorKind::Pairs => {
                let pairs = pairs.pairs_of(prints)?.into_iter();
                let pairs = pairs.filter_map(|(key, value)| Some((user_key(key)?, value)));
                found.extend(pairs.map(|(key, value)| IteratedPair { key, value: Some(value) }));
            }
        }
        Ok(())
    }

    /// Fills the window from the index; returns false if the group has no more keys.
    fn refill(&mut self, pairs: &Pairs) -> Result<bool> {
        if self.is_last {
            return Ok(false);
        }
        let (space, filter) = (self.space, self.filter);
        let is_wanted = |print: &Fingerprint| is_of(space, print, &|first| filter.takes(first));
        let prints = pairs.scan(self.after, WINDOW, &is_wanted)?;
        self.is_last = prints.len() < WINDOW;
        self.after = prints.last().copied().or(self.after);
        self.window = prints.into();
        Ok(!self.window.is_empty())
    }
}

/// Returns whether a fingerprint is of a pair of this key space and matches.
fn is_of(space: SpaceId, print: &Fingerprint, is_wanted: &dyn Fn(&[u8]) -> bool) -> bool {
    print.starts_with(&space.first_bytes())
        && is_wanted(&print[SPACE_BYTES..SPACE_BYTES + PREFIX_BYTES])
}

impl DriveInner {
    /// Deletes the pairs of a key space whose first bytes match, and returns their number.
    pub(crate) fn remove_where(
        &self,
        pairs: &PairsGuard<'_>,
        id: SpaceId,
        is_wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<u64> {
        let (mut after, mut removed) = (None, 0);
        loop {
            let prints = pairs.scan(after, WINDOW, &|print| is_of(id, print, is_wanted))?;
            let Some(last) = prints.last() else { return Ok(removed) };
            after = Some(*last);
            for batch in prints.chunks(DELETE_BATCH) {
                let stored = pairs.keys_of(batch)?;
                let keys = stored.iter().filter_map(|it| SpaceId::of(&it.key));
                let acts: Vec<_> =
                    keys.map(|(_, key)| (key, Act::Delete(DeleteMissing::Ignore))).collect();
                for updated in self.change(pairs, id, &acts)? {
                    removed += u64::from(updated?.old_bytes.is_some());
                }
            }
        }
    }
}
