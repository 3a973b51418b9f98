//! The body of a slice's page: entries in the order of their age; pure bytes.
//!
//! A table stores each key once; an index of neighbours stores a key with each of its ids.
//!
//! Keys are together and values are together, so that a lookup reads few cache lines. Adding at the young end
//! moves nothing; dropping the oldest closes the gap at the other. docs/reference/format.md draws the bytes.

use crate::bytes::{get_u16, get_u64, put_u16};
use crate::page::PAGE_BODY_BYTES;

/// The number of bytes before the keys: the number of entries, and six that are zero.
const HEAD_BYTES: usize = 8;

/// The layout of a slice page's body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SliceLayout {
    key_bytes: usize,
    value_bytes: usize,
    capacity: usize,
}

impl SliceLayout {
    /// Creates the layout for keys and values of these widths, which the entry layout has validated.
    #[must_use]
    pub const fn new(key_bytes: usize, value_bytes: usize) -> Self {
        let capacity = (PAGE_BODY_BYTES - HEAD_BYTES) / (key_bytes + value_bytes);
        Self { key_bytes, value_bytes, capacity }
    }

    /// The number of entries that a page holds: 253 of 8 + 8 bytes.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of entries in a page; `None` when the page claims more than it can hold.
    #[inline]
    #[must_use]
    pub fn count(&self, body: &[u8]) -> Option<usize> {
        let count = usize::from(get_u16(body, 0));
        (count <= self.capacity).then_some(count)
    }

    fn set_count(body: &mut [u8], count: usize) {
        put_u16(body, 0, u16::try_from(count).expect("a page has fewer than 512 entries"));
    }

    #[inline]
    const fn key_at(&self, index: usize) -> usize {
        HEAD_BYTES + index * self.key_bytes
    }

    #[inline]
    const fn value_at(&self, index: usize) -> usize {
        HEAD_BYTES + self.capacity * self.key_bytes + index * self.value_bytes
    }

    /// The key of an entry.
    #[inline]
    #[must_use]
    pub fn key<'b>(&self, body: &'b [u8], index: usize) -> &'b [u8] {
        &body[self.key_at(index)..self.key_at(index + 1)]
    }

    /// The value of an entry.
    #[inline]
    #[must_use]
    pub fn value<'b>(&self, body: &'b [u8], index: usize) -> &'b [u8] {
        &body[self.value_at(index)..self.value_at(index + 1)]
    }

    /// Returns the index of this key among the first `count` entries.
    #[inline]
    #[must_use]
    pub fn find(&self, body: &[u8], count: usize, key: &[u8]) -> Option<usize> {
        self.find_in(&body[HEAD_BYTES..self.key_at(count)], key)
    }

    #[inline]
    fn find_in(&self, keys: &[u8], key: &[u8]) -> Option<usize> {
        if self.key_bytes == 8 {
            return find_u64(keys, get_u64(key, 0));
        }
        let mut others = keys.chunks_exact(self.key_bytes);
        let Some((head, rest)) = key.split_first_chunk() else {
            return others.position(|other| other == key);
        };
        // The first bytes tell nearly all keys apart.
        let head = u64::from_le_bytes(*head);
        others.position(|other| get_u64(other, 0) == head && other[8..] == *rest)
    }

    /// Collects the indices of all entries with this key among the first `count`, the oldest first.
    pub fn find_all(&self, body: &[u8], count: usize, key: &[u8], found: &mut Vec<usize>) {
        found.clear();
        let mut from = 0;
        while from < count {
            let keys = &body[self.key_at(from)..self.key_at(count)];
            let Some(at) = self.find_in(keys, key) else { return };
            found.push(from + at);
            from += at + 1;
        }
    }

    /// Adds an entry at the young end of a page that has space.
    ///
    /// # Panics
    /// If the page is full.
    pub fn push(&self, body: &mut [u8], key: &[u8], value: &[u8]) {
        let count = self.count(body).expect("a page that was proven");
        assert!(count < self.capacity, "a full page takes nothing more");
        self.write(body, count, key, value);
        Self::set_count(body, count + 1);
    }

    fn write(&self, body: &mut [u8], index: usize, key: &[u8], value: &[u8]) {
        let (key_at, value_at) = (self.key_at(index), self.value_at(index));
        body[key_at..key_at + self.key_bytes].copy_from_slice(key);
        body[value_at..value_at + self.value_bytes].copy_from_slice(value);
    }

    /// Removes entries from a page, given by ascending indices, and closes the gaps.
    pub fn remove(&self, body: &mut [u8], indices: &[usize]) {
        let Some(&first) = indices.first() else { return };
        let count = self.count(body).expect("a page that was proven");
        let mut target = first;
        for (nth, &gap) in indices.iter().enumerate() {
            let end = indices.get(nth + 1).copied().unwrap_or(count);
            let run = end - (gap + 1);
            body.copy_within(self.key_at(gap + 1)..self.key_at(end), self.key_at(target));
            body.copy_within(self.value_at(gap + 1)..self.value_at(end), self.value_at(target));
            target += run;
        }
        self.truncate(body, count, target);
    }

    /// Removes the `dropped` oldest entries from a page.
    pub fn remove_oldest(&self, body: &mut [u8], dropped: usize) {
        let count = self.count(body).expect("a page that was proven");
        body.copy_within(self.key_at(dropped)..self.key_at(count), self.key_at(0));
        body.copy_within(self.value_at(dropped)..self.value_at(count), self.value_at(0));
        self.truncate(body, count, count - dropped);
    }

    /// Shortens a page to `kept` entries. Bytes outside entries are zero, so that equal tables have equal bytes.
    fn truncate(&self, body: &mut [u8], count: usize, kept: usize) {
        body[self.key_at(kept)..self.key_at(count)].fill(0);
        body[self.value_at(kept)..self.value_at(count)].fill(0);
        Self::set_count(body, kept);
    }
}

/// Searches keys of 8 bytes, eight at a time.
#[inline]
fn find_u64(keys: &[u8], key: u64) -> Option<usize> {
    let mut groups = keys.chunks_exact(64);
    for (group, bytes) in groups.by_ref().enumerate() {
        let hits = (0..8).map(|at| u32::from(get_u64(bytes, 8 * at) == key) << at);
        let hits = hits.fold(0, |all, hit| all | hit);
        if hits != 0 {
            return Some(8 * group + hits.trailing_zeros() as usize);
        }
    }
    let rest = groups.remainder();
    let at = rest.chunks_exact(8).position(|other| get_u64(other, 0) == key)?;
    Some((keys.len() - rest.len()) / 8 + at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(number: u64, bytes: usize) -> Vec<u8> {
        let mut key = vec![7; bytes];
        key[bytes - 8..].copy_from_slice(&number.to_le_bytes());
        key
    }

    fn read(layout: SliceLayout, body: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let count = layout.count(body).unwrap();
        let pair = |index| (layout.key(body, index).to_vec(), layout.value(body, index).to_vec());
        (0..count).map(pair).collect()
    }

    #[test]
    fn eight_plus_eight_bytes_give_253_entries() {
        assert_eq!(SliceLayout::new(8, 8).capacity(), 253);
        assert_eq!(SliceLayout::new(32, 64).capacity(), 42);
        assert_eq!(SliceLayout::new(8, 0).capacity(), 507);
    }

    #[test]
    fn a_page_that_says_more_than_it_holds_is_none() {
        let layout = SliceLayout::new(8, 8);
        let mut body = vec![0; PAGE_BODY_BYTES];
        put_u16(&mut body, 0, 253);
        assert_eq!(layout.count(&body), Some(253));
        put_u16(&mut body, 0, 254);
        assert_eq!(layout.count(&body), None);
    }

    #[test]
    fn all_entries_of_a_key_are_found_oldest_first() {
        for width in [8, 20] {
            let layout = SliceLayout::new(width, 8);
            let mut body = vec![0; PAGE_BODY_BYTES];
            for nth in 0..90 {
                layout.push(&mut body, &key(nth % 7, width), &nth.to_le_bytes());
            }
            let mut found = vec![77];
            layout.find_all(&body, 90, &key(3, width), &mut found);
            assert_eq!(found, (3..90).step_by(7).collect::<Vec<usize>>());
            layout.find_all(&body, 90, &key(7, width), &mut found);
            assert_eq!(found, []);
        }
    }

    proptest! {
        #[test]
        fn a_page_agrees_with_a_list(
            widths in prop::sample::select(vec![(8, 8), (20, 8), (8, 0), (32, 64)]),
            steps in prop::collection::vec((0u8..4, 0usize..300), 1..60),
        ) {
            let layout = SliceLayout::new(widths.0, widths.1);
            let mut body = vec![0; PAGE_BODY_BYTES];
            let mut list: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            let mut next = 0;
            for (step, number) in steps {
                let len = list.len();
                match step {
                    0 => list.drain(..number % (len + 1)).for_each(drop),
                    1 => {
                        let is_gap = |index: &usize| index * 7 % 11 < number % 9;
                        let gaps: Vec<_> = (0..len).filter(is_gap).collect();
                        layout.remove(&mut body, &gaps);
                        let mut index = 0;
                        list.retain(|_| {
                            index += 1;
                            !gaps.contains(&(index - 1))
                        });
                        prop_assert_eq!(read(layout, &body), list.clone());
                        continue;
                    }
                    _ => {
                        for _ in 0..(number % 60).min(layout.capacity() - len) {
                            let pair = (key(next, widths.0), vec![next as u8; widths.1]);
                            layout.push(&mut body, &pair.0, &pair.1);
                            list.push(pair);
                            next += 1;
                        }
                    }
                }
                if step == 0 {
                    layout.remove_oldest(&mut body, len - list.len());
                }
                prop_assert_eq!(read(layout, &body), list.clone());
            }
            for (index, (key, _)) in list.iter().enumerate() {
                prop_assert_eq!(layout.find(&body, list.len(), key), Some(index));
            }
            prop_assert_eq!(layout.find(&body, list.len(), &key(u64::MAX, widths.0)), None);
            let used = list.len();
            let keys = &body[layout.key_at(used)..layout.value_at(0)];
            let mut rest = keys.iter().chain(&body[layout.value_at(used)..]);
            prop_assert!(rest.all(|byte| *byte == 0));
        }
    }
}
