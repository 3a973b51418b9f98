//! The fingerprints of a buffer that are not recent: packed by bucket, unordered within a bucket.
//!
//! ```text
//!   fingerprint    first bits: its bucket | remainder
//!
//!   sizes    |  3 |  1 |  0 |  2 | ..          a byte for each bucket; every 64th bucket's start is kept too
//!   slots    | r c . r c . r c | r c | r c . r c | ..     remainders, each with its count
//! ```
//!
//! Buckets need no order before the buffer is merged. Without an order, recent updates are added in one pass that moves
//! slots up to make space at the ends of buckets, and compares nothing.

use std::ops::Range;

use nandex_device::prefetch;

use super::bits;
use super::recent::Recent;
use super::shape::{BufferShape, GROUP};
use crate::quotient::Outliers;

/// The maximum number of slots of a bucket; further fingerprints of it are outliers.
const BUCKET_MAX: usize = u8::MAX as usize;

/// Packed fingerprints.
#[derive(Clone, Debug)]
pub(super) struct Buckets {
    shape: BufferShape,
    /// The bits of a slot's count: none while each count is 1, one for a sign, or those of a number.
    code_bits: u32,
    /// Slots of each bucket.
    sizes: Vec<u8>,
    /// The first slot of each group of buckets.
    starts: Vec<usize>,
    slots: usize,
    words: Vec<u64>,
    /// The fingerprints that are not in slots.
    pub outliers: Outliers,
}

/// The progress of a pass over the slots, from the last ones to the first.
struct Moving {
    /// Slots from here on were moved, to `to`.
    from: usize,
    to: usize,
}

/// The buckets of a list of recent updates.
struct ListBuckets {
    /// Their numbers.
    numbers: Range<usize>,
    /// The first slot of each, and the end of the last.
    starts: Vec<usize>,
}

impl Buckets {
    pub fn new(shape: BufferShape) -> Self {
        let code_bits = if shape.counts() { shape.count_bits } else { 0 };
        let (sizes, starts, words) = (Vec::new(), Vec::new(), Vec::new());
        Self { shape, code_bits, sizes, starts, slots: 0, words, outliers: Outliers::default() }
    }

    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The RAM that it takes for `more` slots at once, in bytes.
    pub fn growth_bytes(&self, more: usize) -> u64 {
        let needed = bits::words((self.slots + more) * self.slot_bits() as usize);
        let least = if self.sizes.is_empty() { self.shape.buckets } else { 0 };
        (needed.saturating_sub(self.words.capacity()) * 8 + least) as u64
    }

    /// RAM in bytes.
    pub fn ram_bytes(&self) -> usize {
        let directory = self.sizes.capacity() + self.starts.capacity() * size_of::<usize>();
        directory + self.words.capacity() * 8 + self.outliers.ram_bytes()
    }

    fn slot_bits(&self) -> u32 {
        self.shape.remainder_bits + self.code_bits
    }

    fn bucket_of(&self, fingerprint: u64) -> usize {
        (fingerprint >> self.shape.remainder_bits) as usize
    }

    fn slot(&self, index: usize) -> u64 {
        let width = self.slot_bits();
        bits::get(&self.words, index * width as usize, width)
    }

    fn put(&mut self, index: usize, slot: u64) {
        let width = self.slot_bits();
        bits::set(&mut self.words, index * width as usize, width, slot);
    }

    /// Returns a slot as a code: its remainder and its count.
    fn code(&self, slot: u64) -> u64 {
        slot << (self.shape.count_bits - self.code_bits)
    }

    /// Returns the bits of a slot for a recent update's code.
    fn slot_of(&self, code: u64) -> u64 {
        code >> (self.shape.count_bits - self.code_bits) & (u64::MAX >> (64 - self.slot_bits()))
    }

    /// The slots of a bucket.
    fn slots_of(&self, bucket: usize) -> Range<usize> {
        let Some(start) = self.starts.get(bucket / GROUP) else { return 0..0 };
        let start = start + sum(&self.sizes[bucket / GROUP * GROUP..bucket]);
        start..start + usize::from(self.sizes[bucket])
    }

    /// Returns the amount that it adds to a fingerprint's count.
    pub fn count(&self, fingerprint: u64) -> i64 {
        let remainder = fingerprint & ((1 << self.shape.remainder_bits) - 1);
        let slots = self.slots_of(self.bucket_of(fingerprint)).map(|index| self.slot(index));
        let same = slots.filter(|slot| slot >> self.code_bits == remainder);
        let sum: i64 = same.map(|slot| self.shape.count_in(self.code(slot))).sum();
        sum + self.outliers.get(fingerprint)
    }

    /// Prefetches the location of a fingerprint's slots.
    pub fn prefetch(&self, fingerprint: u64) {
        if let Some(size) = self.sizes.get(self.bucket_of(fingerprint)) {
            prefetch(size);
        }
    }

    /// Adds recent updates in one pass over the slots.
    pub fn take(&mut self, recent: &mut Recent) {
        if self.sizes.is_empty() {
            self.sizes = vec![0; self.shape.buckets];
            self.starts = vec![0; self.shape.buckets.div_ceil(GROUP)];
        }
        if self.shape.counts() {
            self.add_to_slots(recent);
        } else if recent.has_removals {
            self.sign();
        }
        let added = self.added(recent);
        self.insert(recent, &added);
        self.sizes.iter_mut().zip(&added).for_each(|(size, added)| *size += added);
        self.note_starts();
    }

    /// Gives each slot a bit for a sign if it has none.
    fn sign(&mut self) {
        if self.code_bits > 0 {
            return;
        }
        let width = self.slot_bits() + 1;
        let mut words = vec![0; bits::words(self.slots * width as usize)];
        for index in 0..self.slots {
            bits::set(&mut words, index * width as usize, width, self.slot(index) << 1);
        }
        self.words = words;
        self.code_bits = 1;
    }

    /// Adds recent updates to the slots of their fingerprints. Those without a slot remain, each once.
    fn add_to_slots(&mut self, recent: &mut Recent) {
        let mut codes = Vec::new();
        let mut start = 0;
        for list in 0..recent.lists() {
            let buckets = self.list_buckets(list, start);
            start = *buckets.starts.last().expect("a list has a bucket");
            codes.clear();
            recent.codes(list, &mut codes);
            codes.sort_unstable();
            let mut kept = 0;
            let bits = self.shape.count_bits;
            let mut at = 0;
            while at < codes.len() {
                let rest = codes[at] >> bits;
                let mut count = 0;
                while let Some(code) = codes.get(at).filter(|code| *code >> bits == rest) {
                    count += self.shape.count_in(*code);
                    at += 1;
                }
                let fingerprint = (list as u64) << self.shape.rest_bits | rest;
                let bucket = self.bucket_of(fingerprint) - buckets.numbers.start;
                let slots = buckets.starts[bucket]..buckets.starts[bucket + 1];
                if count != 0 && !self.add_to_slot(fingerprint, slots, count) {
                    let (_, each) = self.shape.copies(count);
                    self.add_outlier(fingerprint, count - each);
                    codes[kept] = self.shape.code(rest, each);
                    kept += 1;
                }
            }
            recent.replace(list, &codes[..kept]);
        }
    }

    /// Adds to the count of a slot, or of the fingerprint's outlier. Returns false if it has no slot among these.
    fn add_to_slot(&mut self, fingerprint: u64, mut slots: Range<usize>, count: i64) -> bool {
        let remainder = fingerprint & ((1 << self.shape.remainder_bits) - 1);
        let is_it = |index: &usize| self.slot(*index) >> self.code_bits == remainder;
        let Some(index) = slots.find(is_it) else { return false };
        match i8::try_from(self.shape.count_in(self.slot(index)) + count) {
            Ok(sum) => self.put(index, self.shape.code(remainder, i64::from(sum))),
            Err(_) => self.add_outlier(fingerprint, count),
        }
        true
    }

    fn add_outlier(&mut self, fingerprint: u64, count: i64) {
        if count != 0 {
            self.outliers.add(fingerprint, count);
        }
    }

    /// Returns the buckets of a list; `start` is the first slot of its first one.
    fn list_buckets(&self, list: usize, start: usize) -> ListBuckets {
        let numbers = self.list_numbers(list);
        let mut starts = Vec::with_capacity(numbers.len() + 1);
        starts.push(start);
        let mut end = start;
        for size in &self.sizes[numbers.clone()] {
            end += usize::from(*size);
            starts.push(end);
        }
        ListBuckets { numbers, starts }
    }

    /// The numbers of a list's buckets.
    fn list_numbers(&self, list: usize) -> Range<usize> {
        let bits = self.shape.rest_bits - self.shape.remainder_bits;
        list << bits..((list + 1) << bits).min(self.shape.buckets)
    }

    /// Returns the slots that recent updates add to each bucket. Updates whose bucket is full become outliers.
    fn added(&mut self, recent: &mut Recent) -> Vec<u8> {
        let mut added = vec![0; self.sizes.len()];
        let mut codes = Vec::new();
        let bits = self.shape.count_bits;
        for list in 0..recent.lists() {
            codes.clear();
            recent.codes(list, &mut codes);
            let (before, first) = (codes.len(), (list as u64) << self.shape.rest_bits);
            codes.retain(|code| {
                let fingerprint = first | code >> bits;
                let bucket = (fingerprint >> self.shape.remainder_bits) as usize;
                let fits =
                    usize::from(self.sizes[bucket]) + usize::from(added[bucket]) < BUCKET_MAX;
                added[bucket] += u8::from(fits);
                if !fits {
                    self.outliers.add(fingerprint, self.shape.count_in(*code));
                }
                fits
            });
            if codes.len() < before {
                recent.replace(list, &codes);
            }
        }
        added
    }

    /// Inserts recent updates, each at the end of its bucket. Slots move up, the last ones first.
    fn insert(&mut self, recent: &Recent, added: &[u8]) {
        self.reserve(recent.len());
        let mut moving = Moving { from: self.slots, to: self.slots + recent.len() };
        let mut end = self.slots;
        self.slots = moving.to;
        let (mut codes, mut sorted) = (Vec::new(), Vec::new());
        for list in (0..recent.lists()).rev() {
            let numbers = self.list_numbers(list);
            let start = end - sum(&self.sizes[numbers]);
            let buckets = self.list_buckets(list, start);
            end = start;
            codes.clear();
            recent.codes(list, &mut codes);
            by_bucket(&self.shape, &codes, &added[buckets.numbers.clone()], &mut sorted);
            self.insert_list(&sorted, &buckets, &mut moving);
        }
        debug_assert_eq!(moving.from, moving.to, "all have found a place");
    }

    /// Inserts the updates of a list, whose buckets ascend.
    fn insert_list(&mut self, codes: &[u64], buckets: &ListBuckets, moving: &mut Moving) {
        let width = self.slot_bits() as usize;
        for code in codes.iter().rev() {
            let end = buckets.starts[self.shape.bucket_in_list(*code) + 1];
            let later = moving.from - end;
            bits::move_up(&mut self.words, moving.from * width, moving.to * width, later * width);
            *moving = Moving { from: end, to: moving.to - later - 1 };
            self.put(moving.to, self.slot_of(*code));
        }
    }

    /// Makes space for `more` slots.
    fn reserve(&mut self, more: usize) {
        let needed = bits::words((self.slots + more) * self.slot_bits() as usize);
        if needed > self.words.capacity() {
            let step = self.shape.step_words();
            self.words.reserve_exact(needed.next_multiple_of(step) - self.words.len());
        }
        self.words.resize(needed.max(self.words.len()), 0);
    }

    fn note_starts(&mut self) {
        let mut start = 0;
        for (group, sizes) in self.starts.iter_mut().zip(self.sizes.chunks(GROUP)) {
            *group = start;
            start += sum(sizes);
        }
    }

    /// Appends the codes of some slots.
    pub fn codes(&self, slots: Range<usize>, out: &mut Vec<u64>) {
        out.extend(slots.map(|index| self.code(self.slot(index))));
    }

    /// The size of each bucket; none before there are any.
    pub fn sizes(&self) -> &[u8] {
        &self.sizes
    }
}

fn sum(sizes: &[u8]) -> usize {
    sizes.iter().map(|size| usize::from(*size)).sum()
}

/// Sorts the updates of a list by bucket; `added` has the number for each bucket.
fn by_bucket(shape: &BufferShape, codes: &[u64], added: &[u8], sorted: &mut Vec<u64>) {
    let mut places = Vec::with_capacity(added.len());
    let mut place = 0u32;
    for count in added {
        places.push(place);
        place += u32::from(*count);
    }
    sorted.clear();
    sorted.resize(codes.len(), 0);
    for code in codes {
        let place = &mut places[shape.bucket_in_list(*code)];
        sorted[*place as usize] = *code;
        *place += 1;
    }
}
