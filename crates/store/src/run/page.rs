//! A page of a run from flash: its parts, its count of one fingerprint, and all its entries. docs/reference/format.md
//! draws the bytes.

use std::ops::Range;

use super::Entry;
use super::bits::{PACKED_BITS_MAX, mask, packed, select};
use super::counts::{CountKind, Counts};
use crate::bytes::{get_u16, get_u64};
use crate::page::PAGE_BODY_BYTES;

/// Bytes of the head of a page's body.
pub(super) const HEAD_BYTES: usize = 32;

/// Bytes for everything after the head.
pub(super) const SPACE_BYTES: usize = PAGE_BODY_BYTES - HEAD_BYTES;

/// The most entries of a page. Consecutive fingerprints take two bits each, and no others take less.
pub const PAGE_ENTRIES_MAX: usize = SPACE_BYTES * 4;

/// The number of parts of the unary numbers; the zeros before each part are counted.
pub(super) const PARTS: usize = 4;

/// Returns the words of one part.
pub(super) const fn part(words: usize, part: usize) -> Range<usize> {
    part * words / PARTS..(part + 1) * words / PARTS
}

/// The body of a page whose parts are inside of it.
#[derive(Clone, Copy, Debug)]
pub struct RunPage<'a> {
    base: u64,
    limit: u64,
    entries: usize,
    low_bits: u32,
    marks: [u16; PARTS - 1],
    /// The packed low bits; the unary words follow them.
    lows: &'a [u8],
    unary: &'a [u8],
    counts: Counts<'a>,
}

impl<'a> RunPage<'a> {
    /// Finds the parts of a body of 4064 bytes; returns `None` if they reach past its end, or its head contradicts
    /// itself.
    #[must_use]
    pub fn parse(body: &'a [u8]) -> Option<Self> {
        if body.len() != PAGE_BODY_BYTES || get_u16(body, 14) != 0 {
            return None;
        }
        let entries = usize::from(get_u16(body, 0));
        let (low_bits, words) = (u32::from(body[2]), usize::from(get_u16(body, 4)));
        let (base, limit) = (get_u64(body, 16), get_u64(body, 24));
        let kind = CountKind::from_number(body[3])?;
        let is_empty = entries == 0;
        if low_bits > PACKED_BITS_MAX || base > limit || is_empty != (words == 0) {
            return None;
        }
        let low_bytes = (entries * low_bits as usize).div_ceil(8);
        let (lows, counts_at) = (&body[HEAD_BYTES..], low_bytes + 8 * words);
        let counts = lows.get(counts_at..counts_at + usize::from(get_u16(body, 12)))?;
        if counts.is_empty() != (kind == CountKind::Ones) {
            return None;
        }
        Some(Self {
            base,
            limit,
            entries,
            low_bits,
            marks: [get_u16(body, 6), get_u16(body, 8), get_u16(body, 10)],
            lows,
            unary: &lows[low_bytes..counts_at],
            counts: Counts { kind, bytes: counts, entries },
        })
    }

    /// The first fingerprint that could be on this page.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The first fingerprint that cannot be on this page: it and all above are on later pages.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The number of fingerprints.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Bytes that their counts take.
    #[must_use]
    pub fn count_bytes(&self) -> usize {
        self.counts.bytes.len()
    }

    /// Returns the count of a fingerprint between base and limit: 0 if it is absent. Reads a few hundred bytes. `None`
    /// if the counts are invalid.
    #[must_use]
    pub fn count(&self, fingerprint: u64) -> Option<i64> {
        match self.find(fingerprint) {
            Some(index) => self.counts.at(index),
            None => Some(0),
        }
    }

    fn find(&self, fingerprint: u64) -> Option<usize> {
        let offset = fingerprint.checked_sub(self.base)?;
        let bucket = offset >> self.low_bits;
        if bucket > 8 * self.unary.len() as u64 {
            return None;
        }
        let bucket = bucket as usize;
        let start = if bucket == 0 { 0 } else { self.zero(bucket - 1)? + 1 };
        // Wrong marks may find the zero too early.
        let first = start.checked_sub(bucket)?;
        let range = first..first + self.ones_from(start);
        if range.end > self.entries {
            return None;
        }
        self.find_low(range, offset & mask(self.low_bits))
    }

    /// Returns the place of the k-th zero among the unary bits, counted from 0.
    fn zero(&self, k: usize) -> Option<usize> {
        let before = |mark: &&u16| usize::from(**mark) <= k;
        let index = self.marks.iter().take_while(before).count();
        let zeros = if index == 0 { 0 } else { usize::from(self.marks[index - 1]) };
        let (mut left, words) = (k - zeros, self.unary.len() / 8);
        let first = part(words, index).start;
        for (at, word) in self.unary[8 * first..].chunks_exact(8).enumerate() {
            let word = !get_u64(word, 0);
            let zeros = word.count_ones() as usize;
            if left < zeros {
                return Some(64 * (first + at) + select(word, left as u32) as usize);
            }
            left -= zeros;
        }
        None
    }

    /// Returns the number of consecutive ones from this bit on.
    fn ones_from(&self, bit: usize) -> usize {
        let words = self.unary.get(bit / 64 * 8..).unwrap_or_default();
        let mut words = words.chunks_exact(8).map(|word| get_u64(word, 0));
        // Zeros are shifted in from above, so the first word ends a run or is all ones.
        let inside = (bit % 64) as u32;
        let first = words.next().map_or(0, |word| (word >> inside).trailing_ones());
        if first < 64 - inside {
            return first as usize;
        }
        let mut ones = first;
        for word in words {
            ones += word.trailing_ones();
            if word != u64::MAX {
                break;
            }
        }
        ones as usize
    }

    /// Searches the low bits of one bucket, which ascend.
    fn find_low(&self, mut range: Range<usize>, low: u64) -> Option<usize> {
        while range.len() > 8 {
            let middle = range.start + range.len() / 2;
            if self.low(middle) <= low {
                range.start = middle;
            } else {
                range.end = middle;
            }
        }
        range.into_iter().find(|index| self.low(*index) == low)
    }

    #[inline]
    fn low(&self, index: usize) -> u64 {
        packed(self.lows, index * self.low_bits as usize, mask(self.low_bits))
    }

    /// Appends all entries. Returns `None`, with meaningless entries, if they do not ascend between base and
    /// limit, or a part of the page contradicts another.
    #[must_use]
    pub fn read(&self, out: &mut Vec<Entry>) -> Option<()> {
        let start = out.len();
        out.resize(start + self.entries, Entry { fingerprint: 0, count: 1 });
        let entries = &mut out[start..];
        self.read_fingerprints(entries)?;
        match self.counts.kind {
            CountKind::Ones => Some(()),
            _ => self.counts.put_into(entries),
        }
    }

    fn read_fingerprints(&self, entries: &mut [Entry]) -> Option<()> {
        let words = self.unary.len() / 8;
        let mut cursor = Cursor { index: 0, next: self.base, is_ascending: true };
        for at in 0..PARTS {
            let range = part(words, at);
            if at > 0 && usize::from(self.marks[at - 1]) + cursor.index != 64 * range.start {
                return None;
            }
            for word in range {
                self.read_word(word, entries, &mut cursor)?;
            }
        }
        // The highest bucket is below the limit, so no bits were lost.
        let bits = entries.last().map_or(0, |_| self.bits());
        let bucket = bits.checked_sub(self.entries)? as u64;
        let is_inside = self.entries == 0
            || bucket <= (self.limit - self.base) >> self.low_bits && cursor.next <= self.limit;
        (cursor.index == self.entries && cursor.is_ascending && is_inside).then_some(())
    }

    /// The number of bits of the unary numbers up to the last one.
    fn bits(&self) -> usize {
        let words = self.unary.chunks_exact(8).rev().map(|word| get_u64(word, 0));
        let zeros: u32 = words
            .scan(false, |ended, word| {
                let goes_on = !*ended;
                *ended |= word != 0;
                goes_on.then_some(word.leading_zeros())
            })
            .sum();
        8 * self.unary.len() - zeros as usize
    }

    #[inline]
    fn read_word(&self, at: usize, entries: &mut [Entry], cursor: &mut Cursor) -> Option<()> {
        let mut word = get_u64(self.unary, 8 * at);
        let (low_bits, mask, first) = (self.low_bits, mask(self.low_bits), cursor.index);
        let entries = entries.get_mut(first..first + word.count_ones() as usize)?;
        cursor.index += entries.len();
        let mut bucket = (64 * at - first) as u64;
        let mut bit = first * low_bits as usize;
        for entry in entries {
            let high = bucket.wrapping_add(word.trailing_zeros().into());
            let low = packed(self.lows, bit, mask);
            let fingerprint = self.base.wrapping_add(high << low_bits | low);
            cursor.is_ascending &= fingerprint >= cursor.next;
            cursor.next = fingerprint.wrapping_add(1);
            *entry = Entry { fingerprint, count: 1 };
            word &= word - 1;
            bucket = bucket.wrapping_sub(1);
            bit += low_bits as usize;
        }
        Some(())
    }
}

/// The progress of reading a page.
struct Cursor {
    index: usize,
    /// The least value of the next fingerprint.
    next: u64,
    is_ascending: bool,
}
