//! A cache of records, which saves lookups and updates of a map repeated reads.
//!
//! It stores, by fingerprint, the record and its place in the value log, or that there is none. So a lookup that it
//! answers reads neither the table nor the log, and an update of a key that it knows reads nothing either: it knows
//! which record it replaces, and whether that holds other keys.
//!
//! ```text
//!   get(key) --> [ cache ] hit: the value              put(key, value) --> [ cache ] which record is replaced
//!                    | miss          ^                                          ^
//!   table, value log +---------------+ filled,                  the new record, +
//!                      if no update came meanwhile              once it is in the log's batch
//! ```
//!
//! Invariants
//! 1. The cache's answer about a fingerprint agrees with the table and the unpublished updates. So an update is noted
//!    there and here while the key's shard is locked.
//! 2. A lookup notes the epoch of a key before it searches the table, and stores what it has read only in the same
//!    epoch: each update of the key begins a new one.
//! 3. It takes at most the RAM that it was last given, including its index. It allocates RAM as it fills.
//!
//! While everything that was put into a new map is here, a key that is not here is absent, and nothing is read for it.
//!
//! A map that evicts has no cache: its table and its log drop records without notifying it.
//!
//! | operation | cost |
//! |---|---|
//! | hit | a lock of a sixteenth of the cache, a cache line and the record |
//! | miss | the lock, one cache line |
//! | update | the lock, and the record is copied |
//! | RAM for each key | 44 bytes, key and value, and some 10 of index |

mod shard;
mod slots;
#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard};

use nandex_store::bytes::get_u64;
use nandex_store::hash::mix;
use nandex_store::values::ValueRef;

use super::format::Fingerprint;
use crate::ram::Borrower;
use shard::Shard;

/// The number of parts of a cache, each with a lock.
const SHARDS: usize = 16;

/// The approximate number of chunks of a shard, when it has all of its RAM.
const CHUNKS: u64 = 16;

/// The minimum and maximum size in bytes of a chunk.
const CHUNK_BYTES: (u64, u64) = (4 << 10, 256 << 10);

/// The cache's knowledge of a fingerprint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found<'c> {
    /// The fingerprint has no record.
    Absent,
    /// The fingerprint has a record at this place.
    Place(ValueRef),
    /// The fingerprint has this record, at this place.
    Record(ValueRef, &'c [u8]),
}

impl Found<'_> {
    /// Returns the place of its record, if it has one.
    pub fn reference(self) -> Option<ValueRef> {
        match self {
            Self::Absent => None,
            Self::Place(reference) | Self::Record(reference, _) => Some(reference),
        }
    }
}

/// The permission to store what flash says of a key, if no update of the key comes meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ticket(u32);

/// The effect of an update on a fingerprint.
#[derive(Clone, Copy, Debug)]
pub(super) enum Now<'r> {
    /// The fingerprint now has this record, in these parts.
    Record(ValueRef, &'r [&'r [u8]]),
    /// The fingerprint has the same record, at another place.
    Moved(ValueRef),
    /// The fingerprint no longer has a record.
    Removed,
}

impl Now<'_> {
    /// The place of its record.
    pub fn reference(&self) -> Option<ValueRef> {
        match self {
            Self::Record(reference, _) | Self::Moved(reference) => Some(*reference),
            Self::Removed => None,
        }
    }
}

/// A cache of records.
#[derive(Debug)]
pub(super) struct RecordCache {
    shards: Box<[Mutex<Shard>]>,
    /// The bytes that it has been given, and the part of them that cleaning has borrowed.
    lent: AtomicU64,
    for_cleaning: AtomicU64,
}

/// The place of a fingerprint in a cache.
#[derive(Clone, Copy, Debug)]
struct Place(u64);

impl Place {
    fn of(print: &Fingerprint) -> Self {
        Self(mix(mix(get_u64(print, 0)) ^ get_u64(print, 8)))
    }

    fn shard(self) -> usize {
        (self.0 >> 60) as usize % SHARDS
    }

    fn epoch(self, epochs: usize) -> usize {
        (self.0 >> 40) as usize % epochs
    }

    /// Returns the tag, which nearly always distinguishes it from others of its shard.
    fn tag(self) -> u32 {
        self.0 as u32
    }
}

impl RecordCache {
    /// Creates a cache of at most `bytes_max`, of a map that is empty or that it knows nothing of yet.
    pub fn new(bytes_max: u64, is_empty: bool) -> Self {
        let (least, most) = CHUNK_BYTES;
        let chunk_bytes = (bytes_max / SHARDS as u64 / CHUNKS).clamp(least, most) as usize;
        let new = |_| Mutex::new(Shard::new(chunk_bytes, is_empty));
        let shards = (0..SHARDS).map(new).collect();
        Self { shards, lent: AtomicU64::new(bytes_max), for_cleaning: AtomicU64::new(0) }
    }

    /// Returns the RAM that it takes now, in bytes.
    pub fn ram_bytes(&self) -> u64 {
        self.sum(Shard::ram_bytes)
    }

    /// RAM that it may take, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.lent().saturating_sub(self.for_cleaning.load(Relaxed))
    }

    /// Returns the number of keys that it knows.
    pub fn len(&self) -> u64 {
        self.sum(|shard| shard.len() as u64)
    }

    /// Returns the number of lookups and updates that it has answered.
    pub fn hits(&self) -> u64 {
        self.sum(Shard::hits)
    }

    /// Passes its knowledge of a fingerprint to `see`; if that is nothing or only the record's place, returns the
    /// ticket with which more may be stored.
    pub fn ask<R>(
        &self,
        print: &Fingerprint,
        see: impl FnOnce(Found<'_>) -> R,
    ) -> Result<R, Ticket> {
        let place = Place::of(print);
        let mut shard = self.shard(place);
        match shard.ask(place, print) {
            None | Some(Found::Place(_)) => Err(Ticket(shard.epoch(place))),
            Some(found) => Ok(see(found)),
        }
    }

    /// Passes the knowledge of several fingerprints to `see`, in no particular order, with their numbers. Prefetches
    /// ahead.
    pub fn ask_many<'p>(
        &self,
        prints: impl Iterator<Item = &'p Fingerprint>,
        mut see: impl FnMut(usize, Result<Found<'_>, Ticket>),
    ) {
        self.for_each(prints, |shard, number, (place, print)| {
            let epoch = shard.epoch(place);
            let found = shard.ask(place, print);
            let known = found.filter(|found| !matches!(found, Found::Place(_)));
            see(number, known.ok_or(Ticket(epoch)));
        });
    }

    /// Calls a function with the shard of each of these, in no particular order. Prefetches ahead.
    fn for_each<'p>(
        &self,
        prints: impl Iterator<Item = &'p Fingerprint>,
        mut act: impl FnMut(&mut Shard, usize, (Place, &'p Fingerprint)),
    ) {
        let mut of_shards = [const { Vec::new() }; SHARDS];
        for (number, print) in prints.enumerate() {
            let place = Place::of(print);
            of_shards[place.shard()].push((number, place, print));
        }
        for (shard, asked) in self.shards.iter().zip(&of_shards).filter(|it| !it.1.is_empty()) {
            let mut shard = lock(shard);
            asked.iter().for_each(|(_, place, _)| shard.prefetch_slot(*place));
            asked.iter().for_each(|(_, place, _)| shard.prefetch_entry(*place));
            for (number, place, print) in asked {
                act(&mut shard, *number, (*place, print));
            }
        }
    }

    /// Returns the place of a fingerprint's record, or that there is none, if it knows. This does not count as a use.
    pub fn place(&self, print: &Fingerprint) -> Option<Option<ValueRef>> {
        let place = Place::of(print);
        let shard = self.shard(place);
        Some(shard.peek(place, print)?.reference())
    }

    /// Returns the places of several fingerprints' records, as [`place`](Self::place) does for one.
    pub fn places(&self, prints: &[Fingerprint]) -> Vec<Option<Option<ValueRef>>> {
        let mut places = vec![None; prints.len()];
        self.for_each(prints.iter(), |shard, number, (place, print)| {
            places[number] = shard.peek(place, print).map(Found::reference);
        });
        places
    }

    /// Stores what flash has said of a fingerprint, unless that may be stale by now.
    pub fn fill(&self, ticket: Ticket, print: &Fingerprint, found: Found<'_>) {
        let place = Place::of(print);
        let mut shard = self.shard(place);
        if shard.epoch(place) == ticket.0 {
            self.put(&mut shard, (place, print), found);
        }
    }

    /// Begins to gather all keys of a map, before the map is asked for them. From now on the effect of every update is
    /// kept, so that the map's answer about other keys is known to be current.
    pub fn begin_gathering(&self) {
        self.shards.iter().for_each(|shard| lock(shard).begin_gathering());
    }

    /// Stores the place of a fingerprint's record in the map, unless an update has changed it since, with space for the
    /// record if it follows. Returns whether everything that was gathered, and every update since, is still here.
    pub fn gather(&self, print: &Fingerprint, (reference, follows): (ValueRef, bool)) -> bool {
        let place = Place::of(print);
        let mut shard = self.shard(place);
        if shard.is_gathering() && shard.peek(place, print).is_none() {
            shard.put_place((place, print), (reference, follows), self.shard_bytes());
        }
        shard.is_gathering()
    }

    /// Stores a record, if it is the one whose place is known.
    pub fn gather_record(&self, print: &Fingerprint, reference: ValueRef, record: &[u8]) {
        let place = Place::of(print);
        let mut shard = self.shard(place);
        if shard.peek(place, print) == Some(Found::Place(reference)) {
            self.put(&mut shard, (place, print), Found::Record(reference, record));
        }
    }

    /// Ends gathering: all keys were stored, and one that is not here is absent, as long as nothing is dropped.
    pub fn end_gathering(&self) {
        self.shards.iter().for_each(|shard| lock(shard).end_gathering());
    }

    /// Stores knowledge of a fingerprint, if it is more than before.
    fn put(&self, shard: &mut Shard, key: (Place, &Fingerprint), found: Found<'_>) {
        match (shard.peek(key.0, key.1), found) {
            (None, Found::Absent) => shard.put_absent(key, self.shard_bytes()),
            (None | Some(Found::Place(_)), Found::Record(reference, record)) => {
                shard.put_record(key, reference, &[record], self.shard_bytes());
            }
            _ => {}
        }
    }

    /// Calls `act`, which changes a fingerprint for all threads, and notes the change here at the same time.
    pub fn update(&self, print: &Fingerprint, now: Now<'_>, act: impl FnOnce()) {
        let place = Place::of(print);
        let mut shard = self.shard(place);
        act();
        shard.begin_epoch(place);
        match now {
            Now::Record(reference, parts) => {
                shard.put_record((place, print), reference, parts, self.shard_bytes());
            }
            Now::Moved(reference) => {
                shard.move_to((place, print), reference, self.shard_bytes());
            }
            Now::Removed => shard.remove((place, print), self.shard_bytes()),
        }
    }

    /// Returns the bytes that it was given, including those that cleaning has borrowed.
    pub fn lent(&self) -> u64 {
        self.lent.load(Relaxed)
    }

    /// Lends `bytes` to the cleaning of the value log, in place of what it has lent before.
    pub fn lend_to_cleaning(&self, bytes: u64) {
        if self.for_cleaning.swap(bytes, Relaxed) < bytes {
            self.shrink();
        }
    }

    fn shrink(&self) {
        let each = self.shard_bytes();
        self.shards.iter().for_each(|shard| lock(shard).keep_at_most(each));
    }

    fn shard(&self, place: Place) -> MutexGuard<'_, Shard> {
        lock(&self.shards[place.shard()])
    }

    fn shard_bytes(&self) -> u64 {
        self.bytes_max() / SHARDS as u64
    }

    fn sum(&self, of: impl Fn(&Shard) -> u64) -> u64 {
        self.shards.iter().map(|shard| of(&lock(shard))).sum()
    }
}

impl Borrower for RecordCache {
    fn keep_at_most(&self, bytes: u64) {
        self.lent.store(bytes, Relaxed);
        self.shrink();
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().expect("no holder of a lock of the cache of records panics")
}
