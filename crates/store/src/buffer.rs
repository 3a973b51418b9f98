//! The RAM buffer: a table of entry pages that go to flash unchanged.
//!
//! A key's hash names its page, and the page's two buckets hold it. Pages fill unevenly, so the pages of a
//! few keys are full. These keys go to a small stash, which stays in RAM when the buffer is flushed. With a
//! stash of 64 a buffer of 64 pages is about 91 % full when it is flushed; NSDI'10 stops at 50 %. Cuckoo
//! hashing is Pagh and Rodler's (Journal of Algorithms, 2004), buckets of several slots Dietzfelbinger and
//! Weidling's (2007).

use nandex_device::{PAGE_BYTES, PageBuf};

use crate::entries::{Entry, EntryLayout, KeyState, SlotState};
use crate::hash::{KeyHash, KeyHasher, reduce16};

/// Entries that the stash may hold before the buffer counts as full.
pub const STASH_LEN_MAX: usize = 64;

/// The page of a buffer, or of an incarnation, that a key belongs to.
#[inline]
#[must_use]
pub fn page_of(hash: KeyHash, pages: usize) -> usize {
    reduce16(page_bits(hash), pages)
}

/// The bits of a hash that decide the page of its key, whatever the number of pages. Pages are in the order of these
/// bits.
#[inline]
#[must_use]
pub fn page_bits(hash: KeyHash) -> u16 {
    (hash.place >> 32 & 0xffff) as u16
}

/// The buffer cannot take one more entry and must be flushed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferFull;

/// An entry that its page has no space for.
#[derive(Debug)]
struct Stashed {
    page: u32,
    state: u8,
    /// Its key and value.
    bytes: Vec<u8>,
}

/// A buffer of entries in RAM.
#[derive(Debug)]
pub struct Buffer {
    layout: EntryLayout,
    hasher: KeyHasher,
    pages: PageBuf,
    /// One bit per page: whether an entry of the page has gone to the stash.
    spilled: Vec<u64>,
    stash: Vec<Stashed>,
    entries: usize,
    entries_max: usize,
}

impl Buffer {
    /// Creates an empty buffer of `pages` pages that is full at `entries_max` entries or earlier.
    #[must_use]
    pub fn new(layout: EntryLayout, hasher: KeyHasher, pages: usize) -> Self {
        Self {
            layout,
            hasher,
            pages: PageBuf::zeroed(pages),
            spilled: vec![0; pages.div_ceil(64)],
            stash: Vec::new(),
            entries: 0,
            entries_max: usize::MAX,
        }
    }

    /// Makes the buffer count as full at `entries_max` entries, even if its pages are not.
    pub fn limit(&mut self, entries_max: usize) {
        self.entries_max = entries_max;
    }

    /// Empties the buffer for reuse.
    pub fn reset(&mut self) {
        self.pages.fill(0);
        self.spilled.fill(0);
        self.stash.clear();
        self.entries = 0;
        self.entries_max = usize::MAX;
    }

    /// The layout of its pages.
    #[must_use]
    pub fn layout(&self) -> EntryLayout {
        self.layout
    }

    /// The number of entries stored, including tombstones and the stash.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Returns whether the buffer has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The number of entries in the stash.
    #[must_use]
    pub fn stash_len(&self) -> usize {
        self.stash.len()
    }

    /// The number of slots in the pages.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.page_count() * self.layout.slots()
    }

    /// The number of pages.
    #[must_use]
    pub fn page_count(&self) -> usize {
        self.pages.len() / PAGE_BYTES
    }

    /// All bytes of its pages.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.pages
    }

    /// The RAM that the buffer uses, in bytes.
    #[must_use]
    pub fn ram_bytes(&self) -> usize {
        self.pages.len()
            + self.spilled.len() * 8
            + self.stash.capacity() * (size_of::<Stashed>() + self.layout.entry_bytes())
    }

    /// Asks the processor to prefetch what [`get`](Self::get) will read.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) {
        let page = self.pages.page(page_of(hash, self.page_count()));
        self.layout.prefetch(page, self.layout.buckets_of(hash));
    }

    /// Returns what the buffer knows of a key.
    #[inline]
    #[must_use]
    pub fn get(&self, hash: KeyHash, key: &[u8]) -> KeyState<&[u8]> {
        let index = page_of(hash, self.page_count());
        self.layout.look_up(self.pages.page(index), key, hash).or_else(|| {
            let at = self.stash_find(index, key);
            at.map_or(KeyState::Unknown, |at| self.stash_entry(at).into())
        })
    }

    /// Inserts an entry, replacing what the buffer knows of its key.
    ///
    /// # Errors
    /// [`BufferFull`]; the buffer is unchanged.
    #[inline]
    pub fn put(&mut self, hash: KeyHash, entry: Entry<'_>) -> Result<(), BufferFull> {
        let index = page_of(hash, self.page_count());
        let buckets = self.layout.buckets_of(hash);
        let page = self.pages.page_mut(index);
        if let Some(slot) = self.layout.find(page, entry.key, buckets) {
            self.layout.put(page, slot, entry);
            return Ok(());
        }
        if let Some(at) = self.stash_find(index, entry.key) {
            self.stash[at] = Stashed::new(index, entry, self.layout);
            return Ok(());
        }
        if self.entries >= self.entries_max {
            return Err(BufferFull);
        }
        let page = self.pages.page_mut(index);
        match self.layout.make_space(page, buckets, &self.hasher) {
            Some(slot) => self.layout.put(page, slot, entry),
            None if self.stash.len() < STASH_LEN_MAX => self.spill(index, entry),
            None => return Err(BufferFull),
        }
        self.entries += 1;
        Ok(())
    }

    /// Inserts an entry that was carried over from an earlier buffer, unless the key is known already. It always
    /// succeeds: the stash grows past its limit if necessary.
    pub fn put_carried_over(&mut self, hash: KeyHash, entry: Entry<'_>) -> bool {
        if self.get(hash, entry.key).is_known() {
            return false;
        }
        self.force(hash, entry);
        true
    }

    /// Inserts an entry, replacing what the buffer knows of its key, however full the buffer is: the stash grows past
    /// its limit if necessary.
    pub fn force(&mut self, hash: KeyHash, entry: Entry<'_>) {
        if self.put(hash, entry).is_err() {
            self.spill(page_of(hash, self.page_count()), entry);
            self.entries += 1;
        }
    }

    /// Removes a key without a tombstone.
    pub fn forget(&mut self, hash: KeyHash, key: &[u8]) {
        let index = page_of(hash, self.page_count());
        let page = self.pages.page_mut(index);
        if let Some(slot) = self.layout.find(page, key, self.layout.buckets_of(hash)) {
            self.layout.clear(page, slot);
            self.entries -= 1;
        } else if let Some(at) = self.stash_find(index, key) {
            self.stash.swap_remove(at);
            self.entries -= 1;
        }
    }

    /// The entries of its pages, with their page and slot, page by page.
    pub fn page_entries(&self) -> impl Iterator<Item = (usize, usize, Entry<'_>)> {
        (0..self.page_count()).flat_map(move |index| {
            let entries = self.layout.entries(self.pages.page(index));
            entries.map(move |(slot, entry)| (index, slot, entry))
        })
    }

    /// The entries of its stash.
    pub fn stash_entries(&self) -> impl Iterator<Item = Entry<'_>> {
        (0..self.stash.len()).map(|at| self.stash_entry(at))
    }

    /// Loads whole pages from flash; the buffer must be empty.
    ///
    /// # Panics
    /// If the number of bytes is not the buffer's, or the buffer is not empty.
    pub fn load(&mut self, bytes: &[u8]) {
        assert!(self.is_empty(), "a snapshot is loaded into an empty buffer");
        self.pages.copy_from_slice(bytes);
        self.entries = self.page_entries().count();
    }

    fn spill(&mut self, index: usize, entry: Entry<'_>) {
        self.spilled[index / 64] |= 1 << (index % 64);
        self.stash.push(Stashed::new(index, entry, self.layout));
    }

    #[inline]
    fn stash_find(&self, index: usize, key: &[u8]) -> Option<usize> {
        if self.spilled[index / 64] >> (index % 64) & 1 == 0 {
            return None;
        }
        self.stash.iter().position(|it| it.page as usize == index && it.bytes.starts_with(key))
    }

    fn stash_entry(&self, at: usize) -> Entry<'_> {
        let Stashed { state, bytes, .. } = &self.stash[at];
        let (key, value) = bytes.split_at(self.layout.key_bytes());
        let state =
            if *state == SlotState::Live as u8 { SlotState::Live } else { SlotState::Tombstone };
        Entry { state, key, value }
    }
}

impl Stashed {
    fn new(page: usize, entry: Entry<'_>, layout: EntryLayout) -> Self {
        let mut bytes = Vec::with_capacity(layout.entry_bytes());
        bytes.extend_from_slice(entry.key);
        bytes.extend_from_slice(entry.value);
        bytes.resize(layout.entry_bytes(), 0);
        Self { page: page as u32, state: entry.state as u8, bytes }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::hash::HashKind;

    #[test]
    fn a_buffer_agrees_with_a_map_and_is_nine_tenths_full_when_full() {
        let layout = EntryLayout::new(8, 8).unwrap();
        let hasher = KeyHasher::new(HashKind::Xxh3, 1);
        let mut buffer = Buffer::new(layout, hasher, 64);
        let mut oracle: HashMap<[u8; 8], Option<[u8; 8]>> = HashMap::new();
        for number in 0u64.. {
            let key = (number % 40_000 * 7).to_le_bytes();
            let value = number.to_le_bytes();
            let state = if number % 5 == 0 { SlotState::Tombstone } else { SlotState::Live };
            let entry = Entry { state, key: &key, value: &value };
            if buffer.put(hasher.hash(&key), entry).is_err() {
                break;
            }
            oracle.insert(key, (state == SlotState::Live).then_some(value));
            if number % 11 == 0 {
                buffer.forget(hasher.hash(&key), &key);
                oracle.remove(&key);
            }
        }
        assert_eq!(buffer.len(), oracle.len());
        for (key, value) in &oracle {
            let expected = KeyState::from(value.as_ref().map(|value| &value[..]));
            assert_eq!(buffer.get(hasher.hash(key), key), expected);
        }
        assert_eq!(buffer.page_entries().count() + buffer.stash_entries().count(), oracle.len());
        let fill = (buffer.len() - buffer.stash_len()) as f64 / buffer.slots() as f64;
        assert!(fill > 0.9, "{fill}");
    }

    #[test]
    fn carried_over_entries_never_hide_newer_ones() {
        let layout = EntryLayout::new(8, 8).unwrap();
        let hasher = KeyHasher::new(HashKind::Xxh3, 1);
        let mut buffer = Buffer::new(layout, hasher, 1);
        let entry = |key, value| Entry { state: SlotState::Live, key, value };
        let hash = hasher.hash(b"key 0000");
        buffer.put(hash, entry(b"key 0000", b"newer...")).unwrap();
        assert!(!buffer.put_carried_over(hash, entry(b"key 0000", b"older...")));
        assert_eq!(buffer.get(hash, b"key 0000"), KeyState::Live(&b"newer..."[..]));
    }
}
