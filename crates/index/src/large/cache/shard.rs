//! A shard of the cache: a ring of chunks of records, and an index of them.
//!
//! Records are appended to the newest chunk. When RAM is exhausted, the oldest chunk becomes the newest: records that
//! were used since they arrived, or since it was last the oldest, stay in it, and the others are dropped (CLOCK). A
//! record that is replaced by one of the same length is overwritten in place.
//!
//! ```text
//!   chunk   | header, record | header, record | ... | 0 |        aligned to 8 bytes
//!   header  | slot 4 | sequence 4 | offset 4 | bytes of the record 30 bits, is only its place known, was it used |
//! ```
//!
//! An absent key has its fingerprint as its record; no record is as short. A record whose place alone is known has its
//! fingerprint, followed either by space for the record, or by 4 bytes with the length of the record.

use std::collections::VecDeque;

use nandex_device::prefetch;
use nandex_store::bytes::{get_u32, put_u32};
use nandex_store::values::ValueRef;

use super::slots::Slots;
use super::{Found, Place};
use crate::large::format::{FINGERPRINT_BYTES, Fingerprint};

/// Bytes of an entry before its record.
const HEADER_BYTES: usize = 16;

/// The bit of a header's last number that says that the entry was used.
const USED: u32 = 1 << 31;

/// The bit of it that says that only the place of the record is known.
const IS_PLACE: u32 = 1 << 30;

/// The position of a header's last number.
const LENGTH: usize = 12;

/// The bytes that stand for a record whose place alone is known, without space for it.
const PLACE_BYTES: usize = FINGERPRINT_BYTES + 4;

/// The unit of places.
const UNIT_BYTES: usize = 8;

/// The largest part of a chunk that a record takes, as a divisor.
const PARTS_OF_CHUNK: usize = 4;

/// The number of chunks whose records may all stay before half of one must be dropped.
const KEPT_MAX: usize = 4;

/// The number of epochs of a shard: an update invalidates the tickets of one of them.
const EPOCHS: usize = 256;

/// An entry that is in a chunk.
#[derive(Clone, Copy)]
struct Entry {
    reference: ValueRef,
    /// The bytes of the record, or of what stands for it.
    record_bytes: usize,
    was_used: bool,
    is_place: bool,
}

/// The content of a new entry.
struct Content<'r> {
    parts: &'r [&'r [u8]],
    /// The bytes that it has space for.
    bytes: usize,
    is_place: bool,
}

impl<'r> Content<'r> {
    fn of(parts: &'r [&'r [u8]]) -> Self {
        let bytes = parts.iter().map(|part| part.len()).sum();
        Self { parts, bytes, is_place: false }
    }

    /// The header's last number.
    fn length(&self) -> u32 {
        let bytes = u32::try_from(self.bytes).expect("a record is shorter than a chunk");
        bytes | if self.is_place { IS_PLACE } else { 0 }
    }
}

impl Entry {
    /// Returns the entry that begins at an offset of a chunk; `None` at the end of the entries.
    fn at(chunk: &[u8], at: usize) -> Option<Self> {
        let header = chunk.get(at..at + HEADER_BYTES)?;
        let number = |place: usize| get_u32(header, place);
        let bytes = number(LENGTH) & !(USED | IS_PLACE);
        let reference = ValueRef { slot: number(0), sequence: number(4), offset: number(8), bytes };
        let is = |bit: u32| number(LENGTH) & bit != 0;
        let (was_used, is_place) = (is(USED), is(IS_PLACE));
        (bytes > 0).then_some(Self { reference, record_bytes: bytes as usize, was_used, is_place })
    }

    /// The bytes that it takes.
    fn whole_bytes(self) -> usize {
        whole_bytes(self.record_bytes)
    }
}

/// Returns the bytes that the entry of a record takes.
fn whole_bytes(record_bytes: usize) -> usize {
    (HEADER_BYTES + record_bytes).next_multiple_of(UNIT_BYTES)
}

#[derive(Debug)]
pub(super) struct Shard {
    chunk_bytes: usize,
    /// The chunks; those that were released are empty.
    chunks: Vec<Box<[u8]>>,
    /// The numbers of the existing chunks, oldest first.
    order: VecDeque<usize>,
    /// The used bytes of the newest chunk.
    filled: usize,
    /// The positions of the entries, by tags, in units.
    index: Slots,
    epochs: Box<[u32; EPOCHS]>,
    /// Whether it knows all existing keys. Then one that is not here is absent.
    is_complete: bool,
    /// Whether it will know all keys when those that are being gathered are stored.
    is_gathering: bool,
    hits: u64,
}

impl Shard {
    /// Creates a shard of a map that has no keys, or whose keys it does not know yet.
    pub fn new(chunk_bytes: usize, is_complete: bool) -> Self {
        Self {
            chunk_bytes: chunk_bytes.next_multiple_of(UNIT_BYTES),
            chunks: Vec::new(),
            order: VecDeque::new(),
            filled: 0,
            index: Slots::new(),
            epochs: Box::new([0; EPOCHS]),
            is_complete,
            is_gathering: false,
            hits: 0,
        }
    }

    /// RAM that it takes, in bytes.
    pub fn ram_bytes(&self) -> u64 {
        let epochs = EPOCHS * size_of::<u32>();
        (self.order.len() * self.chunk_bytes + self.index.ram_bytes() + epochs) as u64
    }

    /// The number of keys that it knows.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// The number of lookups that it has answered.
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Returns the epoch in which an answer from flash about a key may be stored.
    pub fn epoch(&self, place: Place) -> u32 {
        self.epochs[place.epoch(EPOCHS)]
    }

    /// Begins another epoch: earlier answers from flash about a key are stale.
    pub fn begin_epoch(&mut self, place: Place) {
        let epoch = &mut self.epochs[place.epoch(EPOCHS)];
        *epoch = epoch.wrapping_add(1);
    }

    /// Prefetches what finds a key's entry.
    pub fn prefetch_slot(&self, place: Place) {
        self.index.prefetch(place);
    }

    /// Prefetches a key's entry, if it is here.
    pub fn prefetch_entry(&self, place: Place) {
        for unit in self.index.of(place).take(1) {
            let (chunk, at) = self.place_of(unit);
            self.chunks[chunk][at..].chunks(64).take(2).for_each(prefetch);
        }
    }

    /// Returns its knowledge of a fingerprint, which counts as a use.
    pub fn ask(&mut self, place: Place, print: &Fingerprint) -> Option<Found<'_>> {
        let Some((_, chunk, at)) = self.find(place, print) else {
            return self.is_complete.then_some(Found::Absent);
        };
        let chunk = &mut self.chunks[chunk];
        let length = get_u32(chunk, at + LENGTH);
        put_u32(chunk, at + LENGTH, length | USED);
        let found = found_at(chunk, at);
        self.hits += u64::from(!matches!(found, Some(Found::Place(_))));
        found
    }

    /// Returns its knowledge of a fingerprint.
    pub fn peek(&self, place: Place, print: &Fingerprint) -> Option<Found<'_>> {
        match self.find(place, print) {
            Some((_, chunk, at)) => found_at(&self.chunks[chunk], at),
            None => self.is_complete.then_some(Found::Absent),
        }
    }

    /// Notes that a key's record has moved to this place, if it is here, or while keys are gathered.
    pub fn move_to(&mut self, key: (Place, &Fingerprint), reference: ValueRef, bytes_max: u64) {
        let Some((_, chunk, at)) = self.find(key.0, key.1) else {
            if self.is_gathering {
                self.put_place(key, (reference, false), bytes_max);
            }
            return;
        };
        let chunk = &mut self.chunks[chunk];
        [reference.slot, reference.sequence, reference.offset]
            .into_iter()
            .zip([0, 4, 8])
            .for_each(|(number, part)| put_u32(chunk, at + part, number));
    }

    /// Drops a fingerprint, which no longer has a record; notes that while keys are gathered.
    pub fn remove(&mut self, key: (Place, &Fingerprint), bytes_max: u64) {
        if self.is_gathering {
            self.put_absent(key, bytes_max);
        } else if let Some((unit, ..)) = self.find(key.0, key.1) {
            self.index.remove(key.0, unit);
        }
    }

    /// Notes that a fingerprint has no record.
    pub fn put_absent(&mut self, key: (Place, &Fingerprint), bytes_max: u64) {
        const NOWHERE: ValueRef = ValueRef { slot: 0, sequence: 0, offset: 0, bytes: 0 };
        self.put(key, NOWHERE, &Content::of(&[key.1]), bytes_max);
    }

    /// Stores the place of a fingerprint's record, with space for it if it will follow.
    pub fn put_place(
        &mut self,
        key: (Place, &Fingerprint),
        (reference, follows): (ValueRef, bool),
        bytes_max: u64,
    ) {
        let bytes = reference.bytes as usize;
        if follows && self.takes(bytes) {
            let content = Content { parts: &[key.1], bytes, is_place: true };
            return self.put(key, reference, &content, bytes_max);
        }
        let length = reference.bytes.to_le_bytes();
        let parts: [&[u8]; 2] = [key.1, &length];
        let content = Content { is_place: true, ..Content::of(&parts) };
        self.put(key, reference, &content, bytes_max);
    }

    /// Stores the record of a fingerprint, in parts; only its place if it is too long. Afterwards it takes at most
    /// `bytes_max`.
    pub fn put_record(
        &mut self,
        key: (Place, &Fingerprint),
        reference: ValueRef,
        record: &[&[u8]],
        bytes_max: u64,
    ) {
        let content = Content::of(record);
        if self.takes(content.bytes) {
            self.put(key, reference, &content, bytes_max);
        } else {
            self.put_place(key, (reference, false), bytes_max);
        }
    }

    /// Returns whether a record of this length is short enough.
    fn takes(&self, record_bytes: usize) -> bool {
        whole_bytes(record_bytes) <= self.chunk_bytes / PARTS_OF_CHUNK
    }

    /// Begins to gather all keys, and keeps the effects of updates.
    pub fn begin_gathering(&mut self) {
        self.is_gathering = true;
    }

    /// Returns whether it has kept all keys since it began to gather them.
    pub fn is_gathering(&self) -> bool {
        self.is_gathering
    }

    /// Ends gathering: it knows all keys, unless it has dropped some since.
    pub fn end_gathering(&mut self) {
        self.is_complete |= std::mem::take(&mut self.is_gathering);
    }

    /// Notes that it no longer knows some key.
    fn note_dropped(&mut self) {
        self.is_complete = false;
        self.is_gathering = false;
    }

    fn put(
        &mut self,
        (place, print): (Place, &Fingerprint),
        reference: ValueRef,
        content: &Content<'_>,
        bytes_max: u64,
    ) {
        let whole_bytes = whole_bytes(content.bytes);
        if let Some((unit, chunk, at)) = self.find(place, print) {
            let entry = Entry::at(&self.chunks[chunk], at);
            if entry.is_some_and(|entry| entry.whole_bytes() == whole_bytes) {
                return self.write((chunk, at), reference, content);
            }
            self.index.remove(place, unit);
        }
        let Some((chunk, at)) = self.append(whole_bytes, bytes_max) else {
            return self.note_dropped();
        };
        self.write((chunk, at), reference, content);
        while self.index.is_full()
            && self.ram_bytes() + self.index.growth_bytes() > bytes_max
            && self.order.len() > 1
        {
            self.drop_oldest();
        }
        let growth_max = bytes_max.saturating_sub(self.ram_bytes());
        if self.index.insert(place, self.unit_of(chunk, at), growth_max) {
            self.note_dropped();
        }
    }

    /// Releases what it takes beyond `bytes_max`, oldest first.
    pub fn keep_at_most(&mut self, bytes_max: u64) {
        while self.ram_bytes() > bytes_max && !self.order.is_empty() {
            self.drop_oldest();
            if self.index.shrink() {
                self.note_dropped();
            }
        }
    }

    /// Releases the oldest chunk.
    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.order.pop_front() {
            self.drop_entries(oldest, 0);
            self.chunks[oldest] = Box::default();
        }
    }

    /// Returns the unit of the entry of this fingerprint, its chunk, and its position there.
    #[inline]
    fn find(&self, place: Place, print: &Fingerprint) -> Option<(u32, usize, usize)> {
        self.index.of(place).find_map(|unit| {
            let (chunk, at) = self.place_of(unit);
            let found = self.chunks[chunk].get(at + HEADER_BYTES..)?;
            found.starts_with(print).then_some((unit, chunk, at))
        })
    }

    fn place_of(&self, unit: u32) -> (usize, usize) {
        let at = unit as usize * UNIT_BYTES;
        (at / self.chunk_bytes, at % self.chunk_bytes)
    }

    fn unit_of(&self, chunk: usize, at: usize) -> u32 {
        ((chunk * self.chunk_bytes + at) / UNIT_BYTES) as u32
    }

    /// Returns space for an entry in the newest chunk; `None` without RAM for one chunk.
    fn append(&mut self, whole_bytes: usize, bytes_max: u64) -> Option<(usize, usize)> {
        let mut kept = 0;
        while self.order.is_empty() || self.filled + whole_bytes > self.chunk_bytes {
            let kept_max = if kept < KEPT_MAX { self.chunk_bytes } else { self.chunk_bytes / 2 };
            self.begin_chunk(kept_max, bytes_max)?;
            kept += 1;
        }
        let at = self.filled;
        self.filled += whole_bytes;
        Some((*self.order.back()?, at))
    }

    /// Makes another chunk the newest: a new one if there is RAM for it, otherwise the oldest, with the entries that
    /// stay in it.
    fn begin_chunk(&mut self, kept_max: usize, bytes_max: u64) -> Option<()> {
        let units = (self.chunks.len() + 1) * (self.chunk_bytes / UNIT_BYTES);
        // The index must have space for the entries of the chunk too.
        let more = self.chunk_bytes as u64 + self.index.growth_bytes();
        let fits = self.ram_bytes() + more <= bytes_max;
        if fits && u32::try_from(units).is_ok() {
            let free = self.chunks.iter().position(|chunk| chunk.is_empty());
            let number = free.unwrap_or(self.chunks.len());
            let chunk = vec![0; self.chunk_bytes].into_boxed_slice();
            match free {
                Some(free) => self.chunks[free] = chunk,
                None => self.chunks.push(chunk),
            }
            self.order.push_back(number);
            self.filled = 0;
            return Some(());
        }
        let oldest = self.order.pop_front()?;
        self.filled = self.drop_entries(oldest, kept_max);
        let end = &mut self.chunks[oldest][self.filled..];
        if end.len() >= HEADER_BYTES {
            put_u32(end, LENGTH, 0);
        }
        self.order.push_back(oldest);
        Some(())
    }

    /// Drops the entries of a chunk except for those that were used, up to `kept_max` bytes, which move to its front.
    /// Returns how many bytes they take.
    fn drop_entries(&mut self, number: usize, kept_max: usize) -> usize {
        let mut chunk = std::mem::take(&mut self.chunks[number]);
        let (mut from, mut to) = (0, 0);
        while let Some(entry) = Entry::at(&chunk, from) {
            let place = print_at(&chunk, from).map(|print| Place::of(&print));
            let (at, whole_bytes) = (from, entry.whole_bytes());
            from += whole_bytes;
            let Some(place) = place else { continue };
            let unit = self.unit_of(number, at);
            if self.index.of(place).all(|it| it != unit) {
                continue;
            }
            if entry.was_used && to + whole_bytes <= kept_max {
                chunk.copy_within(at..at + whole_bytes, to);
                let length = get_u32(&chunk, to + LENGTH);
                put_u32(&mut chunk, to + LENGTH, length & !USED);
                self.index.move_to(place, (unit, self.unit_of(number, to)));
                to += whole_bytes;
            } else {
                self.index.remove(place, unit);
                self.note_dropped();
            }
        }
        self.chunks[number] = chunk;
        to
    }

    fn write(&mut self, (chunk, at): (usize, usize), reference: ValueRef, content: &Content<'_>) {
        let is_newest = self.order.back() == Some(&chunk);
        let chunk = &mut self.chunks[chunk];
        let numbers = [reference.slot, reference.sequence, reference.offset, content.length()];
        let mut end = at;
        for number in numbers {
            put_u32(chunk, end, number);
            end += 4;
        }
        for part in content.parts {
            chunk[end..end + part.len()].copy_from_slice(part);
            end += part.len();
        }
        // Earlier contents of a chunk may remain after its last entry.
        if is_newest && let Some(next) = chunk.get_mut(self.filled..self.filled + HEADER_BYTES) {
            put_u32(next, LENGTH, 0);
        }
    }
}

/// Returns the fingerprint of the entry that begins there.
fn print_at(chunk: &[u8], at: usize) -> Option<Fingerprint> {
    chunk.get(at + HEADER_BYTES..at + HEADER_BYTES + FINGERPRINT_BYTES)?.try_into().ok()
}

/// Decodes an entry.
fn found_at(chunk: &[u8], at: usize) -> Option<Found<'_>> {
    let entry = Entry::at(chunk, at)?;
    let record = chunk.get(at + HEADER_BYTES..)?.get(..entry.record_bytes)?;
    Some(match (entry.is_place, entry.record_bytes) {
        (true, PLACE_BYTES) => {
            let bytes = get_u32(record, FINGERPRINT_BYTES);
            Found::Place(ValueRef { bytes, ..entry.reference })
        }
        (true, _) => Found::Place(entry.reference),
        (false, FINGERPRINT_BYTES) => Found::Absent,
        (false, _) => Found::Record(entry.reference, record),
    })
}
