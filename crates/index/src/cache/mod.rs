//! A cache of entries: frequent keys are answered from RAM that nothing else needs.
//!
//! A lookup that buffers and filters cannot answer reads a page, and the cache keeps the page's answer about the key:
//! its value, or its absence. The next lookup of the key reads nothing. The cache keeps entries rather than pages,
//! because the other entries of a page are no hotter than average: an entry of 8 + 8 bytes takes 18.3 bytes here, a
//! page 4,096.
//!
//! ```text
//!   RAM     buffers --> filters --> [ cache ]     hit: the answer
//!                                      | miss           ^
//!   flash                            page --------------+ filled, if nothing has changed meanwhile
//! ```
//!
//! A set has seven places, and sets are in the order of the keys' hashes. So a partition's keys are next to each other,
//! and the work of a flush here stays in the processor's cache. [`ways`] decides which place of a full set a new entry
//! takes. An entry that leaves a buffer only takes a free place: a table that fits its cache is answered from it, and
//! in a full cache the entries that are looked up stay.
//!
//! ```text
//!   set of 8 + 8 bytes, 128 of them     | version | key 0 | key 1 | ... | key 6 |     one line answers a miss
//!                                       | states  | val 0 | val 1 | ... | val 6 |
//! ```
//!
//! A cache may use [lent RAM](crate::ram). When it must return some, as many chunks as needed lose half of their sets:
//! two sets are merged into one, and the used entries stay.
//!
//! Invariants
//! 1. The cache's answer about a key is correct unless a buffer has the key. So buffers are searched first, and a
//!    buffer updates the cache before its entries leave RAM.
//! 2. A lookup notes the epoch of a key's chunk of sets before it searches the buffers, and fills a set only in the
//!    same epoch: before a buffer leaves with a key of the chunk, or flash drops one, a new epoch begins.
//! 3. An entry that is dropped from flash is dropped from the cache, under the same lock.
//! 4. A reader never waits: a set that changes meanwhile is a miss, and so is a chunk that is returning RAM. Writers of
//!    a set take turns.
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

/// The epoch of a chunk. Its holder may fill a set of the chunk only in this epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket(u64);

/// A cache of entries of fixed widths.
#[derive(Debug)]
pub(crate) struct EntryCache {
    layout: SetLayout,
    sets: usize,
    /// The chunks, each created by the first lookup that needs it: a table that is only written needs none, and no
    /// lookup waits until all of a large cache is created.
    chunks: Box<[OnceLock<Chunk>]>,
    /// The part of it that may be used, if its RAM is lent.
    lent: Option<Lent>,
    hits: AtomicU64,
}

/// [`CHUNK_SETS`] sets; the last chunk has fewer.
#[derive(Debug)]
struct Chunk {
    /// Counts the events that make an earlier read of a page stale.
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
    /// Invalidates all tickets of the chunk.
    fn begin_epoch(&self) {
        self.epoch.fetch_add(1, AcqRel);
    }
}

/// The number of sets that are created together.
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
    /// Creates a cache of at most `cache_bytes`; `None` if not even one set fits.
    pub(crate) fn new(cache_bytes: u64, key_bytes: usize, value_bytes: usize) -> Option<Self> {
        let layout = SetLayout::new(key_bytes, value_bytes);
        let sets = usize::try_from(cache_bytes).unwrap_or(usize::MAX) / layout.bytes();
        let chunks = (0..sets.div_ceil(CHUNK_SETS)).map(|_| OnceLock::new()).collect();
        (sets > 0).then_some(Self { layout, sets, chunks, lent: None, hits: AtomicU64::new(0) })
    }

    /// The RAM that it takes, in bytes: its own RAM once a lookup has needed it, or the RAM that is lent now.
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

    /// The number of entries that it has space for.
    pub(crate) fn entries_max(&self) -> u64 {
        (self.sets_max() * ways::WAYS) as u64
    }

    fn sets_max(&self) -> usize {
        self.lent.as_ref().map_or(self.sets, |lent| lent.plan().sets(self.sets))
    }

    /// The number of lookups that it has answered.
    pub(crate) fn hits(&self) -> u64 {
        self.hits.load(Relaxed)
    }

    /// Counts lookups that it has answered.
    pub(crate) fn count_hits(&self, hits: u64) {
        if hits > 0 {
            self.hits.fetch_add(hits, Relaxed);
        }
    }

    /// Prefetches what a lookup of a key reads here.
    #[inline]
    pub(crate) fn prefetch(&self, hash: KeyHash) {
        let at = self.set_of(hash);
        self.try_set(self.chunk_at(at), at, |set| set.first_lines().iter().for_each(prefetch));
    }

    /// Returns the permission to fill the set of a key with an answer from flash. It is taken before the buffers are
    /// searched.
    #[inline]
    pub(crate) fn ticket(&self, hash: KeyHash) -> Ticket {
        Ticket(self.chunk_at(self.set_of(hash)).epoch.load(Acquire))
    }

    /// Returns what it knows of a key that no buffer knows.
    #[inline]
    pub(crate) fn find(&self, hash: KeyHash, key: &[u8]) -> KeyState<Value> {
        let at = self.set_of(hash);
        let found = self.try_set(self.chunk_at(at), at, |set| set.find(&KeyWords::of(key)));
        found.unwrap_or(KeyState::Unknown)
    }

    /// Stores the answer from flash about a key, unless it is stale by now.
    pub(crate) fn fill(&self, ticket: Ticket, hash: KeyHash, key: &[u8], answer: &Option<Value>) {
        let at = self.set_of(hash);
        let chunk = self.chunk_at(at);
        self.try_set(chunk, at, |set| {
            let Some(mut set) = set.try_lock() else { return };
            // A new epoch begins before its keys' sets are locked: either it is seen here, or the sets are cleaned up
            // after this.
            if chunk.epoch.load(Acquire) == ticket.0 {
                set.insert(&KeyWords::of(key), answer.as_deref());
            }
        });
    }

    /// Returns whether no lookup has used it yet. Then it has neither entries nor tickets, and entries that leave RAM
    /// need not be recorded: a lookup that begins now still finds an entry where it was, or where it has gone.
    pub(crate) fn is_unused(&self) -> bool {
        self.chunks.iter().all(|chunk| chunk.get().is_none())
    }

    /// Begins to record entries that leave RAM or flash.
    pub(crate) fn leaving(&self) -> Leaving<'_> {
        self.leaving_of(None)
    }

    /// Begins to record entries that leave a part of a table. Once the part is superseded, another part may have
    /// recorded newer versions.
    pub(crate) fn leaving_of<'c>(&'c self, superseded: Option<&'c AtomicBool>) -> Leaving<'c> {
        Leaving { cache: self, chunk: None, superseded }
    }

    /// Drops the keys of a range of hashes for which `is_gone` holds. The range is part number `part` of `parts`;
    /// `is_gone` may be called for keys of other parts too.
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

    /// Returns the chunk of a set, and creates it if no lookup has needed it before.
    #[inline]
    fn chunk_at(&self, set: usize) -> &Chunk {
        let chunk = set / CHUNK_SETS;
        match self.chunks[chunk].get() {
            Some(chunk) => chunk,
            None => self.make_chunk(chunk),
        }
    }

    /// Returns the chunk of a set, if a lookup has needed it. Otherwise it has neither entries nor tickets.
    fn made_chunk(&self, set: usize) -> Option<&Chunk> {
        self.chunks[set / CHUNK_SETS].get()
    }

    /// Passes on a set, unless its chunk is returning RAM or has no sets.
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

    /// Passes on a set, after its chunk has returned RAM, unless the chunk then has no sets.
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

    /// The number of sets of a chunk without halving.
    fn sets_of(&self, chunk: usize) -> usize {
        CHUNK_SETS.min(self.sets - chunk * CHUNK_SETS)
    }

    fn new_lines(&self, sets: usize) -> Box<[Line]> {
        (0..sets * self.layout.lines()).map(|_| Line::default()).collect()
    }
}

/// Keys that are about to leave RAM or flash, in any order; the order of their hashes is fastest.
pub(crate) struct Leaving<'c> {
    cache: &'c EntryCache,
    /// The chunk whose epoch was advanced last.
    chunk: Option<usize>,
    superseded: Option<&'c AtomicBool>,
}

impl Leaving<'_> {
    /// Prefetches what recording a key changes here.
    pub(crate) fn prefetch(&self, hash: KeyHash) {
        let at = self.cache.set_of(hash);
        if let Some(chunk) = self.cache.made_chunk(at) {
            let prefetch = |set: Set<'_>| set.first_lines().iter().for_each(prefetch);
            self.cache.try_set(chunk, at, prefetch);
        }
    }

    /// Records that a buffer that is about to leave RAM has this version of a key. Afterwards the cache answers `now`,
    /// or does not know the key. It never answers from a superseded part.
    pub(crate) fn leave(&mut self, hash: KeyHash, key: &[u8], now: KeyState<&[u8]>) {
        let at = self.cache.set_of(hash);
        let Some(chunk) = self.cache.made_chunk(at) else { return };
        if self.chunk.replace(at / CHUNK_SETS) != Some(at / CHUNK_SETS) {
            chunk.begin_epoch();
        }
        self.cache.with_set(chunk, at, |set| {
            let mut set = set.lock();
            // Checked under the lock: if a newer part has recorded the set of this key, this thread sees that a newer
            // part exists.
            let is_superseded = self.superseded.is_some_and(|it| it.load(Acquire));
            set.replace(&KeyWords::of(key), if is_superseded { KeyState::Unknown } else { now });
        });
    }
}

const _: () = assert!(LINE_WORDS * 8 == 64, "a line is one of the processor's cache");
