//! The counts of a page's fingerprints: no bytes if all are 1, a list of the others if they are few, or one count per
//! entry. docs/reference/format.md draws the bytes.

use super::Entry;
use crate::bytes::{get_u16, put_u16};

/// Exceptions that share an entry of the directory.
const SPARSE_BLOCK: usize = 32;

/// Entries that share an entry of the directory if each has its count.
const DENSE_BLOCK: usize = 64;

/// An entry whose count is not 1. There are few, and most steps look only at these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Exception {
    /// Its place among the entries.
    pub(super) index: usize,
    pub(super) count: i64,
}

/// The encoding of the counts of a page. The numbers are on flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum CountKind {
    /// Each count is 1.
    Ones = 0,
    /// Counts that are not 1 are listed.
    Sparse = 1,
    /// Each entry has its count.
    Dense = 2,
}

impl CountKind {
    pub(super) const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Ones),
            1 => Some(Self::Sparse),
            2 => Some(Self::Dense),
            _ => None,
        }
    }
}

/// Bytes of the counts of consecutive entries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CountSizes {
    entries: usize,
    exceptions: usize,
    /// The last exception's index.
    last: usize,
    sparse_items: usize,
    dense_items: usize,
}

impl CountSizes {
    /// Returns the sizes for `entries` entries with these exceptions: the result of [`add`](Self::add), without a pass
    /// over the other entries.
    pub(super) fn of(entries: usize, exceptions: &[Exception]) -> Self {
        let mut sizes = Self::default();
        for exception in exceptions {
            sizes.dense_items += (exception.index - sizes.entries) * varint_bytes(zigzag(1));
            sizes.entries = exception.index;
            sizes.add(exception.count);
        }
        sizes.dense_items += (entries - sizes.entries) * varint_bytes(zigzag(1));
        sizes.entries = entries;
        sizes
    }

    /// Adds one more entry's count.
    pub(super) fn add(&mut self, count: i64) {
        let bytes = varint_bytes(zigzag(count));
        self.dense_items += bytes;
        if count != 1 {
            if !self.exceptions.is_multiple_of(SPARSE_BLOCK) {
                self.sparse_items += varint_bytes((self.entries - self.last - 1) as u64);
            }
            self.sparse_items += bytes;
            (self.last, self.exceptions) = (self.entries, self.exceptions + 1);
        }
        self.entries += 1;
    }

    /// Returns the smallest encoding, and its size in bytes.
    pub(super) fn cheapest(&self) -> (CountKind, usize) {
        if self.exceptions == 0 {
            return (CountKind::Ones, 0);
        }
        let sparse = 2 + 4 * self.exceptions.div_ceil(SPARSE_BLOCK) + self.sparse_items;
        let dense = 2 * self.entries.div_ceil(DENSE_BLOCK) + self.dense_items;
        if sparse <= dense { (CountKind::Sparse, sparse) } else { (CountKind::Dense, dense) }
    }
}

/// The approximate size of a count in a list of exceptions;
/// [`RunShape::for_entries`](super::RunShape::for_entries) estimates the space for counts from sums of these.
#[must_use]
pub fn count_bytes(count: i64) -> u64 {
    if count == 1 { 0 } else { 2 + varint_bytes(zigzag(count)) as u64 }
}

/// Writes the counts of these entries into bytes of exactly their size.
pub(super) fn write(
    kind: CountKind,
    entries: &[Entry],
    exceptions: &[Exception],
    bytes: &mut [u8],
) {
    match kind {
        CountKind::Ones => {}
        CountKind::Sparse => write_sparse(exceptions, bytes),
        CountKind::Dense => write_dense(entries, bytes),
    }
}

fn write_sparse(exceptions: &[Exception], bytes: &mut [u8]) {
    put_u16(bytes, 0, exceptions.len() as u16);
    let items = 2 + 4 * exceptions.len().div_ceil(SPARSE_BLOCK);
    let (mut at, mut last) = (items, 0);
    for (place, Exception { index, count }) in exceptions.iter().enumerate() {
        if place % SPARSE_BLOCK == 0 {
            let line = 2 + 4 * (place / SPARSE_BLOCK);
            put_u16(bytes, line, *index as u16);
            put_u16(bytes, line + 2, (at - items) as u16);
        } else {
            put_varint(bytes, &mut at, (index - last - 1) as u64);
        }
        put_varint(bytes, &mut at, zigzag(*count));
        last = *index;
    }
}

fn write_dense(entries: &[Entry], bytes: &mut [u8]) {
    let items = 2 * entries.len().div_ceil(DENSE_BLOCK);
    let mut at = items;
    for (index, entry) in entries.iter().enumerate() {
        if index % DENSE_BLOCK == 0 {
            put_u16(bytes, 2 * (index / DENSE_BLOCK), (at - items) as u16);
        }
        put_varint(bytes, &mut at, zigzag(entry.count));
    }
}

/// The counts of a page from flash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts<'a> {
    pub(super) kind: CountKind,
    pub(super) bytes: &'a [u8],
    pub(super) entries: usize,
}

impl Counts<'_> {
    /// Returns the count of the entry with this index; `None` if the bytes are not counts.
    pub(super) fn at(self, index: usize) -> Option<i64> {
        match self.kind {
            CountKind::Ones => Some(1),
            CountKind::Sparse => self.sparse(index),
            CountKind::Dense => self.dense(index),
        }
    }

    fn sparse(self, index: usize) -> Option<i64> {
        let (count, directory, items) = self.sparse_parts()?;
        let blocks = directory.chunks_exact(4);
        let (mut block, mut start, mut found) = (0, 0, None);
        for (number, line) in blocks.enumerate() {
            let first = usize::from(get_u16(line, 0));
            if first > index {
                break;
            }
            (block, start, found) = (number, usize::from(get_u16(line, 2)), Some(first));
        }
        let Some(mut at) = found else { return Some(1) };
        let mut items = items.get(start..)?;
        for place in 0..SPARSE_BLOCK.min(count - block * SPARSE_BLOCK) {
            if place > 0 {
                let step = usize::try_from(take_varint(&mut items)?).ok()?.checked_add(1)?;
                at = at.checked_add(step)?;
            }
            let count = unzigzag(take_varint(&mut items)?);
            if at >= index {
                return Some(if at == index { count } else { 1 });
            }
        }
        Some(1)
    }

    fn sparse_parts(&self) -> Option<(usize, &[u8], &[u8])> {
        let (count, rest) = self.bytes.split_at_checked(2)?;
        let count = usize::from(get_u16(count, 0));
        let (directory, items) = rest.split_at_checked(4 * count.div_ceil(SPARSE_BLOCK))?;
        Some((count, directory, items))
    }

    fn dense(self, index: usize) -> Option<i64> {
        let (directory, items) = self.dense_parts()?;
        let start = usize::from(get_u16(directory, 2 * (index / DENSE_BLOCK)));
        let mut items = items.get(start..)?;
        for _ in 0..index % DENSE_BLOCK {
            let bytes = items.iter().position(|byte| byte & 0x80 == 0)? + 1;
            items = &items[bytes..];
        }
        take_varint(&mut items).map(unzigzag)
    }

    fn dense_parts(&self) -> Option<(&[u8], &[u8])> {
        self.bytes.split_at_checked(2 * self.entries.div_ceil(DENSE_BLOCK))
    }

    /// Sets the counts of entries that all have a count of 1 so far; returns `None` if the bytes are not counts.
    pub(super) fn put_into(self, entries: &mut [Entry]) -> Option<()> {
        match self.kind {
            CountKind::Ones => self.bytes.is_empty().then_some(()),
            CountKind::Sparse => self.put_sparse(entries),
            CountKind::Dense => self.put_dense(entries),
        }
    }

    fn put_sparse(self, entries: &mut [Entry]) -> Option<()> {
        let (count, directory, items) = self.sparse_parts()?;
        let (mut rest, mut next) = (items, 0);
        for place in 0..count {
            let index = if place % SPARSE_BLOCK == 0 {
                let line = &directory[4 * (place / SPARSE_BLOCK)..];
                let start = items.len() - rest.len();
                let first = usize::from(get_u16(line, 0));
                (usize::from(get_u16(line, 2)) == start && first >= next).then_some(first)?
            } else {
                usize::try_from(take_varint(&mut rest)?).ok()?.checked_add(next)?
            };
            let value = unzigzag(take_varint(&mut rest)?);
            let entry = entries.get_mut(index).filter(|_| value != 0 && value != 1)?;
            (entry.count, next) = (value, index + 1);
        }
        (rest.is_empty() && count > 0).then_some(())
    }

    fn put_dense(self, entries: &mut [Entry]) -> Option<()> {
        let (directory, items) = self.dense_parts()?;
        let mut rest = items;
        for (index, entry) in entries.iter_mut().enumerate() {
            if index % DENSE_BLOCK == 0 {
                let start = usize::from(get_u16(directory, 2 * (index / DENSE_BLOCK)));
                (start == items.len() - rest.len()).then_some(())?;
            }
            entry.count = unzigzag(take_varint(&mut rest)?);
            (entry.count != 0).then_some(())?;
        }
        rest.is_empty().then_some(())
    }
}

/// Encodes small numbers of either sign as small numbers.
#[inline]
const fn zigzag(count: i64) -> u64 {
    (count << 1 ^ count >> 63) as u64
}

#[inline]
const fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[inline]
const fn varint_bytes(number: u64) -> usize {
    (64 - (number | 1).leading_zeros()).div_ceil(7) as usize
}

fn put_varint(bytes: &mut [u8], at: &mut usize, mut number: u64) {
    while number >= 0x80 {
        bytes[*at] = number as u8 | 0x80;
        number >>= 7;
        *at += 1;
    }
    bytes[*at] = number as u8;
    *at += 1;
}

/// Takes a number of at most 64 bits; returns `None` if it does not end, is larger, or could be shorter.
#[inline]
fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    if first < 0x80 {
        return Some(first.into());
    }
    let mut number = u64::from(first & 0x7f);
    for shift in (7..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            return None;
        }
        number |= part << shift;
        if byte < 0x80 {
            return (byte != 0).then_some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_beyond_every_entry_is_no_count() {
        // Two exceptions; the second is 2^64 - 2 entries after the first.
        let mut bytes = vec![0; 2 + 4 + 12];
        put_u16(&mut bytes, 0, 2);
        put_u16(&mut bytes, 2, 1);
        let mut at = 6;
        for number in [zigzag(5), u64::MAX - 1, zigzag(5)] {
            put_varint(&mut bytes, &mut at, number);
        }
        let counts = Counts { kind: CountKind::Sparse, bytes: &bytes[..at], entries: 9 };
        assert_eq!((counts.at(0), counts.at(1), counts.at(2)), (Some(1), Some(5), None));
    }
}
