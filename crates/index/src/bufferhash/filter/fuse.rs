//! Bumped fuse filters: an `r`-bit fingerprint per key, stored as the XOR of four slots.
//!
//! Every key covers four slots close together: it starts somewhere in the table and takes one slot in each of four
//! neighbouring segments. Keys are placed by peeling: a slot that only one key covers becomes that key's own, the key
//! is set aside, and so on from both ends of the table inwards. Binary fuse filters (Graf and Lemire, 2022) have enough
//! slots for the peel to finish, and start over with another seed if it does not. Here a key that blocks the peel is
//! bumped instead: the filter leaves it out, and its entry returns to the buffer, where it costs 1/k of a rewrite. So a
//! build never fails, takes one pass, and needs only about 6 % of spare slots.

use std::ops::Range;

use super::hash::{low_half, mix, reduce, remix};
use super::{FilterShape, wide};

/// Slots per key.
pub(super) const ARITY: u32 = 4;
/// The minimum and maximum number of slots in a segment; an offset in a segment is 16 bits of a hash.
pub(super) const SEGMENT_MIN: u32 = 3;
pub(super) const SEGMENT_MAX: u32 = 1 << 15;

const OFFSET_SALT: u64 = 0xD6E8_FEB8_6659_FD93;
const FINGERPRINT_SALT: u64 = 0xA076_1D64_78BD_642F;

/// Returns the slots for `entries` keys and the length of a segment, chosen so that a full filter bumps few keys.
///
/// Long segments peel better but leave the slots at both ends of the table half empty, so the best length
/// grows with the table, and a small table needs more spare slots. Both powers are fitted to measured
/// shares of bumped keys:
///
/// | keys | spare slots | segment | bumped |
/// |---:|---:|---:|---:|
/// | 200 | 33 % | 11 | 2.6 % |
/// | 1,000 | 18 % | 27 | 2.6 % |
/// | 4,000 | 10 % | 63 | 2.3 % |
/// | 15,000 | 6 % | 144 | 2.1 % |
/// | 30,000 | 5.5 % | 223 | 1.5 % |
pub(super) fn geometry(entries: u32) -> (u32, u32) {
    let entries = f64::from(entries);
    let spare = (2.6 * entries.powf(-0.39)).clamp(0.055, 0.6);
    let segment = (3.0 + 0.3 * entries.powf(0.64)).min(SEGMENT_MAX.into()) as u32;
    let slots = (entries * (1.0 + spare)).ceil() as u32;
    (slots.max(2 * ARITY * segment), segment)
}

/// Returns the largest mean share of bumped keys in a filter that [`FilterShape::fuse`] made for `entries_max` keys,
/// when it is filled to `load` (1 for full). Measured; every per cent of space saves a third of a per cent.
#[must_use]
pub fn bumped_share(entries_max: u32, load: f64) -> f64 {
    let (full, slope) = match entries_max {
        0..1_000 => (0.028, 0.2),
        1_000..10_000 => (0.028, 0.3),
        10_000..25_000 => (0.0225, 0.3),
        25_000..50_000 => (0.0185, 0.3),
        _ => (0.012, 0.3),
    };
    (full - slope * (1.0 - load)).max(0.004)
}

/// The placement of keys: the few numbers of a shape that the hot paths need.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotLayout {
    starts: u32,
    segment: u32,
    fingerprint_bits: u32,
}

impl SlotLayout {
    pub(super) fn new(shape: &FilterShape) -> Self {
        let starts = shape.slots() - ARITY * shape.segment() + 1;
        Self { starts, segment: shape.segment(), fingerprint_bits: shape.bits_per_slot() }
    }

    fn start(self, mixed: u64) -> u32 {
        reduce(mixed, self.starts)
    }

    /// Returns the key's four slots, which are always different: one in each segment from its start.
    #[inline]
    pub(super) fn slots(self, mixed: u64) -> [u32; 4] {
        let start = self.start(mixed);
        let offsets = remix(mixed, OFFSET_SALT);
        let slot = |number: u32| {
            let field = low_half(offsets >> (16 * number)) & 0xFFFF;
            start + number * self.segment + ((field * self.segment) >> 16)
        };
        [slot(0), slot(1), slot(2), slot(3)]
    }

    #[inline]
    pub(super) fn fingerprint(self, mixed: u64) -> u32 {
        let value = remix(mixed.rotate_left(32), FINGERPRINT_SALT);
        low_half(value >> (64 - self.fingerprint_bits))
    }
}

/// Memory for building filters, reused: about 40 bytes per key.
#[derive(Debug, Default)]
pub struct BuildScratch {
    /// Mixed hashes in order of their starts, with the position of each in the caller's list.
    keys: Vec<u64>,
    order: Vec<u32>,
    /// The number of keys per start, then the position of the next one.
    places: Vec<u32>,
    slots: Vec<Cover>,
    /// A queue of slots that only one key covers; each slot is in it at most once.
    alone: Vec<u32>,
    /// Keys in the order of the peel, each with its own slot.
    peeled: Vec<(u64, u32)>,
    gone: Vec<bool>,
    fingerprints: Vec<u32>,
}

/// The number of keys that cover a slot, and the XOR of their numbers: with one key left, its number.
#[derive(Clone, Copy, Debug, Default)]
struct Cover {
    keys: u32,
    xor: u32,
}

impl BuildScratch {
    /// Creates empty scratch memory; the first build allocates what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn build(
        &mut self,
        shape: &FilterShape,
        hashes: &[u64],
        bits: &mut Vec<u64>,
        bumped: &mut Vec<usize>,
    ) {
        let layout = SlotLayout::new(shape);
        self.sort(layout, hashes);
        self.cover(layout, shape.slots());
        self.peel(layout, bumped);
        bumped.sort_unstable();
        self.assign(layout, shape.slots());
        pack(&self.fingerprints, shape.bits_per_slot(), bits);
    }

    /// Sorts keys by their start, so that neighbours in the table are neighbours in memory.
    fn sort(&mut self, layout: SlotLayout, hashes: &[u64]) {
        self.places.clear();
        self.places.resize(wide(layout.starts), 0);
        for &hash in hashes {
            self.places[wide(layout.start(mix(hash)))] += 1;
        }
        let mut before = 0;
        for place in &mut self.places {
            before += std::mem::replace(place, before);
        }
        self.keys.resize(hashes.len(), 0);
        self.order.resize(hashes.len(), 0);
        for (number, &hash) in (0_u32..).zip(hashes) {
            let mixed = mix(hash);
            let place = &mut self.places[wide(layout.start(mixed))];
            self.keys[wide(*place)] = mixed;
            self.order[wide(*place)] = number;
            *place += 1;
        }
    }

    /// Counts the keys of every slot.
    fn cover(&mut self, layout: SlotLayout, slots: u32) {
        self.slots.clear();
        self.slots.resize(wide(slots), Cover::default());
        for (key, &mixed) in (0_u32..).zip(&self.keys) {
            for slot in layout.slots(mixed) {
                let cover = &mut self.slots[wide(slot)];
                cover.keys += 1;
                cover.xor ^= key;
            }
        }
    }

    /// Sets keys aside until none remains; if every slot has several keys, bumps the first remaining key.
    ///
    /// Slots wait in a queue, not on a stack, so that the next ones are known while one is processed; and they are
    /// appended without a branch that the processor would have to predict.
    fn peel(&mut self, layout: SlotLayout, bumped: &mut Vec<usize>) {
        bumped.clear();
        self.peeled.clear();
        self.gone.clear();
        self.gone.resize(self.keys.len(), false);
        self.alone.resize(self.slots.len() + 1, 0);
        let mut end = 0;
        for (slot, cover) in (0_u32..).zip(&self.slots) {
            self.alone[end] = slot;
            end += usize::from(cover.keys == 1);
        }
        let mut queue = self.peel_alone(layout, 0..end);
        for key in (0_u32..).take(self.keys.len()) {
            if !self.gone[wide(key)] {
                bumped.push(wide(self.order[wide(key)]));
                queue.end = self.take(layout, key, queue.end);
                queue = self.peel_alone(layout, queue);
            }
        }
    }

    /// Sets aside the keys of slots in the queue until it is empty. Returns the position of the queue then.
    fn peel_alone(&mut self, layout: SlotLayout, mut queue: Range<usize>) -> Range<usize> {
        while queue.start < queue.end {
            let slot = self.alone[queue.start];
            queue.start += 1;
            let cover = self.slots[wide(slot)];
            if cover.keys == 1 {
                self.peeled.push((self.keys[wide(cover.xor)], slot));
                queue.end = self.take(layout, cover.xor, queue.end);
            }
        }
        queue
    }

    /// Removes a key from its slots. Slots that then have only one key are appended to the queue; returns its new end.
    #[inline]
    fn take(&mut self, layout: SlotLayout, key: u32, mut end: usize) -> usize {
        self.gone[wide(key)] = true;
        for slot in layout.slots(self.keys[wide(key)]) {
            let cover = &mut self.slots[wide(slot)];
            cover.keys -= 1;
            cover.xor ^= key;
            self.alone[end] = slot;
            end += usize::from(cover.keys == 1);
        }
        end
    }

    /// Gives slots their values, last peeled first: no key placed later covers an earlier one's slot.
    fn assign(&mut self, layout: SlotLayout, slots: u32) {
        self.fingerprints.clear();
        self.fingerprints.resize(wide(slots), 0);
        for &(mixed, own) in self.peeled.iter().rev() {
            let value =
                layout.slots(mixed).iter().fold(layout.fingerprint(mixed), |value, slot| {
                    value ^ self.fingerprints[wide(*slot)]
                });
            self.fingerprints[wide(own)] = value;
        }
    }
}

/// Packs values of `width` bits, lowest bit first.
fn pack(values: &[u32], width: u32, bits: &mut Vec<u64>) {
    bits.clear();
    let (mut word, mut filled) = (0, 0);
    for &value in values {
        word |= u64::from(value) << filled;
        filled += width;
        if filled >= 64 {
            bits.push(word);
            filled -= 64;
            word = u64::from(value) >> (width - filled);
        }
    }
    if filled > 0 {
        bits.push(word);
    }
}
