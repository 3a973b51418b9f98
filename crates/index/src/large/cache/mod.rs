//! A cache of records: what a map's lookups and updates need not read again.
//!
//! It keeps, by fingerprint, the record and its place in the value log, or that there is none. So a lookup that it
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
//! 1. What the cache says of a fingerprint is what the table and the updates not published say. So an update is noted
//!    there and here while the key's shard is locked.
//! 2. A lookup notes the epoch of a key before it asks the table, and puts in what it has read only in the same
//!    epoch: each update of the key begins another one.
//! 3. It takes at most the RAM that it was given last, its index included. What it takes it takes as it fills.
//!
//! While all that was put into a new map is here, a key that is not here is absent, and nothing is read for it.
//!
//! A map that evicts has none: the table and the log drop records there without a word to it.
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

/// Parts of a cache, each with a lock.
const SHARDS: usize = 16;

/// Chunks of a shard, about, when it has all of its RAM.
const CHUNKS: u64 = 16;

/// Bytes of a chunk, at least and at most.
const CHUNK_BYTES: (u64, u64) = (4 << 10, 256 << 10);

/// What is known of a fingerprint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found<'c> {
    /// It has no record.
    Absent,
    /// It has a record at this place.
    Place(ValueRef),
    /// It has this record, at this place.
    Record(ValueRef, &'c [u8]),
}

impl Found<'_> {
    /// The place of its record, if it has one.
    pub fn reference(self) -> Option<ValueRef> {
        match self {
            Self::Absent => None,
            Self::Place(reference) | Self::Record(reference, _) => Some(reference),
        }
    }
}

/// The permission to put in what flash says of a key, if no update of it comes meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ticket(u32);

/// What an update says of a fingerprint.
#[derive(Clone, Copy, Debug)]
pub(super) enum Now<'r> {
    /// It has this record, of these parts.
    Record(ValueRef, &'r [&'r [u8]]),
    /// Its record is the same, at another place.
    Moved(ValueRef),
    /// It has none.
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
    /// Bytes that it has been given, and the part of them that cleaning has of it.
    lent: AtomicU64,
    for_cleaning: AtomicU64,
}

/// Where a fingerprint is in a cache.
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

    /// What tells it from others of its shard, nearly always.
    fn tag(self) -> u32 {
        self.0 as u32
    }
}

impl RecordCache {
    /// A cache of at most that many bytes, of a map that is empty or of one of which it knows nothing yet.
    pub fn new(bytes_max: u64, is_empty: bool) -> Self {
        let (least, most) = CHUNK_BYTES;
        let chunk_bytes = (bytes_max / SHARDS as u64 / CHUNKS).clamp(least, most) as usize;
        let new = |_| Mutex::new(Shard::new(chunk_bytes, is_empty));
        let shards = (0..SHARDS).map(new).collect();
        Self { shards, lent: AtomicU64::new(bytes_max), for_cleaning: AtomicU64::new(0) }
    }

    /// RAM that it takes now, in bytes.
    pub fn ram_bytes(&self) -> u64 {
        self.sum(Shard::ram_bytes)
    }

    /// RAM that it may take, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.lent().saturating_sub(self.for_cleaning.load(Relaxed))
    }

    /// Keys that it knows.
    pub fn len(&self) -> u64 {
        self.sum(|shard| shard.len() as u64)
    }

    /// Lookups and updates that it has answered.
    pub fn hits(&self) -> u64 {
        self.sum(Shard::hits)
    }

    /// Passes what it knows of a fingerprint to `see`; if nothing or its record's place alone, gives the ticket with
    /// which more may be put in.
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

    /// The same for many, in no order, with their numbers. The processor fetches ahead.
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

    /// Does something with the shard of each of these, in no order. The processor fetches ahead what is there.
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

    /// The place of a fingerprint's record, or that there is none, if it knows that. This is no use of it.
    pub fn place(&self, print: &Fingerprint) -> Option<Option<ValueRef>> {
        let place = Place::of(print);
        let shard = self.shard(place);
        Some(shard.peek(place, print)?.reference())
    }

    /// The same of many.
    pub fn places(&self, prints: &[Fingerprint]) -> Vec<Option<Option<ValueRef>>> {
        let mut places = vec![None; prints.len()];
        self.for_each(prints.iter(), |shard, number, (place, print)| {
            places[number] = shard.peek(place, print).map(Found::reference);
        });
        places
    }

    /// Puts in what flash has said of a fingerprint, unless that may be old by now.
    pub fn fill(&self, ticket: Ticket, print: &Fingerprint, found: Found<'_>) {
        let place = Place::of(print);
        let mut shard = self.shard(place);
        if shard.epoch(place) == ticket.0 {
            self.put(&mut shard, (place, print), found);
        }
    }

    /// Begins to put in all keys of a map, before the map is asked for them. What every update says of its key is kept
    /// from now on, so that what the map says of other keys is known to be as new.
    pub fn begin_gathering(&self) {
        self.shards.iter().for_each(|shard| lock(shard).begin_gathering());
    }

    /// Puts in where the record of a fingerprint is by the map, unless an update has said since, with space for the
    /// record if it follows. Returns whether all that was gathered, and every update since, is here still.
    pub fn gather(&self, print: &Fingerprint, (reference, follows): (ValueRef, bool)) -> bool {
        let place = Place::of(print);
        let mut shard = self.shard(place);
        if shard.is_gathering() && shard.peek(place, print).is_none() {
            shard.put_place((place, print), (reference, follows), self.shard_bytes());
        }
        shard.is_gathering()
    }

    /// Puts in a record, if it is the one whose place is known.
    pub fn gather_record(&self, print: &Fingerprint, reference: ValueRef, record: &[u8]) {
        let place = Place::of(print);
        let mut shard = self.shard(place);
        if shard.peek(place, print) == Some(Found::Place(reference)) {
            self.put(&mut shard, (place, print), Found::Record(reference, record));
        }
    }

    /// All keys were put in: one that is not here is absent, as long as nothing is dropped.
    pub fn end_gathering(&self) {
        self.shards.iter().for_each(|shard| lock(shard).end_gathering());
    }

    /// Puts in what is known of a fingerprint, if that is more than before.
    fn put(&self, shard: &mut Shard, key: (Place, &Fingerprint), found: Found<'_>) {
        match (shard.peek(key.0, key.1), found) {
            (None, Found::Absent) => shard.put_absent(key, self.shard_bytes()),
            (None | Some(Found::Place(_)), Found::Record(reference, record)) => {
                shard.put_record(key, reference, &[record], self.shard_bytes());
            }
            _ => {}
        }
    }

    /// Does what changes a fingerprint for all, and notes it here at the same time.
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

    /// What it was given, with what cleaning has of that, in bytes.
    pub fn lent(&self) -> u64 {
        self.lent.load(Relaxed)
    }

    /// Lends that many bytes to the cleaning of the value log, in place of what it has lent to it before.
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
