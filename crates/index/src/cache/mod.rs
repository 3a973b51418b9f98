//! A cache of entries: hot keys answered from RAM that nothing else needs.
//!
//! A lookup that buffers and filters cannot answer reads a page, and the cache keeps what it said of the key: its
//! value, or that it is absent. The next lookup of the key reads nothing. It keeps entries and not pages, because the
//! other entries of a page are no hotter than any: an entry of 8 + 8 bytes takes 18.3 bytes here, a page 4,096.
//!
//! ```text
//!   RAM     buffers --> filters --> [ cache ]     hit: the answer
//!                                      | miss           ^
//!   flash                            page --------------+ filled, if nothing has changed meanwhile
//! ```
//!
//! A set has seven places, in the order of the keys' hashes. So a partition's keys are next to each other, and what a
//! flush has to do here stays in the processor's cache. [`ways`] says which place of a full set a new entry takes. What
//! leaves a buffer takes a free place only: a table that fits its cache is answered from it, and what is looked up
//! stays in a full one.
//!
//! ```text
//!   set of 8 + 8 bytes, 128 of them     | version | key 0 | key 1 | ... | key 6 |     one line answers a miss
//!                                       | states  | val 0 | val 1 | ... | val 6 |
//! ```
//!
//! A cache may use [RAM that is lent](crate::ram). Where it must give some back, as many chunks as needed lose half
//! of their sets: two sets become one, and what was used stays.
//!
//! Invariants
//! 1. What the cache says of a key is true unless a buffer has the key. So buffers are asked first, and a buffer tells
//!    the cache before its entries leave RAM.
//! 2. A lookup notes the epoch of a key's chunk of sets before it asks the buffers, and fills a set only in the same
//!    epoch: before a buffer leaves with a key of the chunk, or flash drops one, another epoch begins.
//! 3. What flash drops, the cache drops, under the lock under which flash drops it.
//! 4. A reader never waits: a set that changes meanwhile is a miss, and so is a chunk that gives RAM back. Writers of a
//!    set take turns.
//!
//! | operation | cost |
//! |---|---|
//! | hit | two cache lines for 8 + 8 bytes |
//! | miss | one cache line, and a chunk's epoch before the buffers |
//! | key that filters rule out | a chunk's epoch |
//! | buffer that leaves | one line for each of its entries, two where it takes a free place, nearly in order |

mod lent;
mod set;
#[cfg(test)]
mod tests;
mod ways;

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{OnceLock, RwLock};

use nandex_device::prefetch;
use nandex_store::bytes::get_u64;
use nandex_store::entries::KeyState;
use nandex_store::hash::KeyHash;

use crate::api::Value;
use lent::{Lent, LentLines};
use set::{LINE_WORDS, Line, Set, SetLayout};

/// The epoch of a chunk. Only in it may its holder fill a set of the chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket(u64);

/// A cache of entries of fixed widths.
#[derive(Debug)]
pub(crate) struct EntryCache {
    layout: SetLayout,
    sets: usize,
    /// Each made when the first lookup wants it: a table that is only written needs none, and no lookup waits until all
    /// of a large cache is made.
    chunks: Box<[OnceLock<Chunk>]>,
    /// How much of it may be used, if its RAM is lent.
    lent: Option<Lent>,
    hits: AtomicU64,
}

/// [`CHUNK_SETS`] sets; the last chunk has fewer.
#[derive(Debug)]
struct Chunk {
    /// Counts what makes a page that was read before it old.
    epoch: AtomicU64,
    lines: Lines,
}

/// The lines of a chunk's sets.
#[derive(Debug)]
enum Lines {
    Own(Box<[Line]>),
    Lent(RwLock<LentLines>),
}

impl Chunk {
    /// Makes all tickets of the chunk invalid.
    fn begin_epoch(&self) {
        self.epoch.fetch_add(1, AcqRel);
    }
}

/// Sets that are made together.
const CHUNK_SETS: usize = 1024;

/// A key or value as words, with zeros behind it.
#[derive(Clone, Copy)]
struct Words<const MOST: usize>([u64; MOST]);

/// A key of at most 32 bytes.
type KeyWords = Words<4>;

/// A value of at most 64 bytes.
type ValueWords = Words<8>;

impl<const MOST: usize> Words<MOST> {
    #[inline]
    fn of(bytes: &[u8]) -> Self {
        let mut words = [0; MOST];
        let (whole, rest) = bytes.split_at(bytes.len() / 8 * 8);
        for (at, word) in words.iter_mut().enumerate().take(whole.len() / 8) {
            *word = get_u64(whole, at * 8);
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            words[whole.len() / 8] = u64::from_le_bytes(last);
        }
        Self(words)
    }

    fn bytes(&self) -> [u8; 64] {
        let mut bytes = [0; 64];
        for (at, word) in self.0.iter().enumerate() {
            bytes[at * 8..at * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

impl EntryCache {
    /// A cache of at most that many bytes; `None` if not even one set fits.
    pub(crate) fn new(cache_bytes: u64, key_bytes: usize, value_bytes: usize) -> Option<Self> {
        let layout = SetLayout::new(key_bytes, value_bytes);
        let sets = usize::try_from(cache_bytes).unwrap_or(usize::MAX) / layout.bytes();
        let chunks = (0..sets.div_ceil(CHUNK_SETS)).map(|_| OnceLock::new()).collect();
        (sets > 0).then_some(Self { layout, sets, chunks, lent: None, hits: AtomicU64::new(0) })
    }

    /// RAM that it takes, in bytes: of its own once a lookup has wanted it, of what is lent now.
    pub(crate) fn ram_bytes(&self) -> u64 {
        match self.lent {
            None => (self.sets * self.layout.bytes()) as u64,
            Some(_) => self.lent_bytes(),
        }
    }

    /// RAM that it may take, in bytes.
    pub(crate) fn bytes_max(&self) -> u64 {
        (self.sets_max() * self.layout.bytes()) as u64
    }

    /// Entries that it has place for.
    pub(crate) fn entries_max(&self) -> u64 {
        (self.sets_max() * ways::WAYS) as u64
    }

    fn sets_max(&self) -> usize {
        self.lent.as_ref().map_or(self.sets, |lent| lent.plan().sets(self.sets))
    }

    /// Lookups that it has answered.
    pub(crate) fn hits(&self) -> u64 {
        self.hits.load(Relaxed)
    }

    /// Counts lookups that it has answered.
    pub(crate) fn count_hits(&self, hits: u64) {
        if hits > 0 {
            self.hits.fetch_add(hits, Relaxed);
        }
    }

    /// Asks the processor to fetch what a lookup of a key reads here.
    #[inline]
    pub(crate) fn prefetch(&self, hash: KeyHash) {
        let at = self.set_of(hash);
        self.try_set(self.chunk_at(at), at, |set| set.first_lines().iter().for_each(prefetch));
    }

    /// The permission to fill the set of a key with what flash says. Taken before the buffers are asked.
    #[inline]
    pub(crate) fn ticket(&self, hash: KeyHash) -> Ticket {
        Ticket(self.chunk_at(self.set_of(hash)).epoch.load(Acquire))
    }

    /// What it knows of a key, after no buffer knew it.
    #[inline]
    pub(crate) fn find(&self, hash: KeyHash, key: &[u8]) -> KeyState<Value> {
        let at = self.set_of(hash);
        let found = self.try_set(self.chunk_at(at), at, |set| set.find(&KeyWords::of(key)));
        found.unwrap_or(KeyState::Unknown)
    }

    /// Keeps what flash has said of a key, unless that is old by now.
    pub(crate) fn fill(&self, ticket: Ticket, hash: KeyHash, key: &[u8], answer: &Option<Value>) {
        let at = self.set_of(hash);
        let chunk = self.chunk_at(at);
        self.try_set(chunk, at, |set| {
            let Some(mut set) = set.try_lock() else { return };
            // A new epoch begins before its keys' sets are locked: it is seen here, or they are cleaned up after this.
            if chunk.epoch.load(Acquire) == ticket.0 {
                set.insert(&KeyWords::of(key), answer.as_deref());
            }
        });
    }

    /// Has no lookup wanted any of it? Then it has neither entries nor tickets, and what leaves need not be told:
    /// a lookup that begins now still finds it where it leaves from, or finds where it has gone.
    pub(crate) fn is_unused(&self) -> bool {
        self.chunks.iter().all(|chunk| chunk.get().is_none())
    }

    /// Begins to tell it what leaves RAM, or flash.
    pub(crate) fn leaving(&self) -> Leaving<'_> {
        self.leaving_of(None)
    }

    /// Begins to tell it what leaves a part of a table. Once the part is said to be superseded, another one may have
    /// told newer versions.
    pub(crate) fn leaving_of<'c>(&'c self, superseded: Option<&'c AtomicBool>) -> Leaving<'c> {
        Leaving { cache: self, chunk: None, superseded }
    }

    /// Drops the keys of a range of hashes that `is_gone` names. The range is part number `part` of `parts`; keys of
    /// others may be asked about too.
    pub(crate) fn drop_of(
        &self,
        (part, parts): (usize, usize),
        mut is_gone: impl FnMut(&[u8]) -> bool,
    ) {
        let first = part * self.sets / parts;
        let end = ((part + 1) * self.sets).div_ceil(parts);
        for chunk in &self.chunks[first / CHUNK_SETS..end.div_ceil(CHUNK_SETS)] {
            chunk.get().into_iter().for_each(Chunk::begin_epoch);
        }
        for at in first..end {
            if let Some(chunk) = self.made_chunk(at) {
                self.with_set(chunk, at, |set| set.lock().retain(|key| !is_gone(key)));
            }
        }
    }

    /// The number of a key's set: sets are in the order of the hash's first bits, as partitions are.
    #[inline]
    fn set_of(&self, hash: KeyHash) -> usize {
        ((u128::from(hash.place) * self.sets as u128) >> 64) as usize
    }

    /// The chunk of a set, made if no lookup has wanted it before.
    #[inline]
    fn chunk_at(&self, set: usize) -> &Chunk {
        let chunk = set / CHUNK_SETS;
        match self.chunks[chunk].get() {
            Some(chunk) => chunk,
            None => self.make_chunk(chunk),
        }
    }

    /// The chunk of a set, if a lookup has wanted it. One that has not has neither entries nor tickets.
    fn made_chunk(&self, set: usize) -> Option<&Chunk> {
        self.chunks[set / CHUNK_SETS].get()
    }

    /// Passes on a set, unless its chunk gives RAM back or has none.
    #[inline]
    fn try_set<R>(&self, chunk: &Chunk, at: usize, act: impl FnOnce(Set<'_>) -> R) -> Option<R> {
        match &chunk.lines {
            Lines::Own(lines) => Some(act(self.set_in(lines, at % CHUNK_SETS))),
            Lines::Lent(lent) => {
                let lent = lent.try_read().ok()?;
                Some(act(self.set_in(&lent.lines, lent.set_of(at % CHUNK_SETS)?)))
            }
        }
    }

    /// The same, after its chunk has given RAM back.
    fn with_set<R>(&self, chunk: &Chunk, at: usize, act: impl FnOnce(Set<'_>) -> R) -> Option<R> {
        match &chunk.lines {
            Lines::Own(_) => self.try_set(chunk, at, act),
            Lines::Lent(lent) => {
                let lent = lent.read().expect("no holder of a chunk's lock panics");
                Some(act(self.set_in(&lent.lines, lent.set_of(at % CHUNK_SETS)?)))
            }
        }
    }

    #[inline]
    fn set_in<'l>(&self, lines: &'l [Line], set: usize) -> Set<'l> {
        let len = self.layout.lines();
        Set::new(self.layout, &lines[set * len..][..len])
    }

    #[cold]
    fn make_chunk(&self, number: usize) -> &Chunk {
        let lines = || match &self.lent {
            None => Lines::Own(self.new_lines(self.sets_of(number))),
            Some(lent) => Lines::Lent(RwLock::new(self.lent_lines(number, lent.plan()))),
        };
        let new = || Chunk { epoch: AtomicU64::new(0), lines: lines() };
        let chunk = self.chunks[number].get_or_init(new);
        self.fit(number);
        chunk
    }

    /// The sets of a chunk that has all.
    fn sets_of(&self, chunk: usize) -> usize {
        CHUNK_SETS.min(self.sets - chunk * CHUNK_SETS)
    }

    fn new_lines(&self, sets: usize) -> Box<[Line]> {
        (0..sets * self.layout.lines()).map(|_| Line::default()).collect()
    }
}

/// Keys that are about to leave RAM, or flash, in any order; best in that of their hashes.
pub(crate) struct Leaving<'c> {
    cache: &'c EntryCache,
    /// The chunk whose new epoch began last.
    chunk: Option<usize>,
    superseded: Option<&'c AtomicBool>,
}

impl Leaving<'_> {
    /// Asks the processor to fetch what telling of a key changes here.
    pub(crate) fn prefetch(&self, hash: KeyHash) {
        let at = self.cache.set_of(hash);
        if let Some(chunk) = self.cache.made_chunk(at) {
            let prefetch = |set: Set<'_>| set.first_lines().iter().for_each(prefetch);
            self.cache.try_set(chunk, at, prefetch);
        }
    }

    /// A buffer that is about to leave RAM has this version of a key. Afterwards the cache says `now`, or nothing. It
    /// says nothing of a part that is superseded.
    pub(crate) fn leave(&mut self, hash: KeyHash, key: &[u8], now: KeyState<&[u8]>) {
        let at = self.cache.set_of(hash);
        let Some(chunk) = self.cache.made_chunk(at) else { return };
        if self.chunk.replace(at / CHUNK_SETS) != Some(at / CHUNK_SETS) {
            chunk.begin_epoch();
        }
        self.cache.with_set(chunk, at, |set| {
            let mut set = set.lock();
            // Asked under the lock: if a newer part has told the set of this key, it is known here that there is one.
            let is_superseded = self.superseded.is_some_and(|it| it.load(Acquire));
            set.replace(&KeyWords::of(key), if is_superseded { KeyState::Unknown } else { now });
        });
    }
}

const _: () = assert!(LINE_WORDS * 8 == 64, "a line is one of the processor's cache");
