//! The fingerprints that updates have changed since a moment, in two bytes for each.
//!
//! It is a Bloom filter whose bits for a fingerprint are all in one word. A fingerprint that it does not contain has
//! not changed. It has a few false positives, so fingerprints that it contains are looked up. Fingerprints are hashes:
//! some of their bits select the word and the bits in it.

use nandex_store::bytes::get_u64;
use nandex_store::mutants::{Barrier, is_on};

use super::format::Fingerprint;

/// The bits of the filter for each fingerprint, and the number of them that are set.
const BITS_EACH: usize = 16;
const BITS_SET: u32 = 4;

/// The factor by which the fingerprints noted may exceed those for which there is RAM. With 4 bits for each about one
/// in six of the others is a false positive: their lookups cost less than another pass over the table.
const OVERFULL: usize = 4;

/// Fingerprints that have changed. The memory is kept for the next time, because the allocator retains more of what is
/// freed the larger the pieces are.
#[derive(Debug, Default)]
pub(super) struct Changes {
    are_noted: bool,
    words: Vec<u64>,
    /// The number of fingerprints noted, and the most there may be.
    count: usize,
    most: usize,
}

impl Changes {
    /// Returns the RAM for `most` fingerprints, in bytes.
    pub(super) fn ram_bytes_of(most: u64) -> u64 {
        most * BITS_EACH as u64 / 8
    }

    /// Begins to note changed fingerprints, with RAM for `most`, up to [`OVERFULL`] times as many.
    pub(super) fn begin(&mut self, most: usize) {
        let words = (most * BITS_EACH).div_ceil(u64::BITS as usize).max(1);
        self.words.clear();
        self.words.shrink_to(2 * words);
        self.words.resize(words, 0);
        (self.are_noted, self.count, self.most) = (true, 0, OVERFULL * most);
    }

    /// Stops noting changes.
    pub(super) fn end(&mut self) {
        self.are_noted = false;
    }

    pub(super) fn note(&mut self, fingerprint: &Fingerprint) {
        if !self.are_noted {
            return;
        }
        let (word, bits) = self.place(fingerprint);
        if self.words[word] & bits != bits {
            self.words[word] |= bits;
            self.count += 1;
            self.are_noted = self.count <= self.most;
        }
    }

    /// Returns whether this one may have changed; `None` if that is not known, or no longer known.
    pub(super) fn may_have(&self, fingerprint: &Fingerprint) -> Option<bool> {
        let (word, bits) = self.are_noted.then(|| self.place(fingerprint))?;
        Some(is_on(Barrier::CleaningHeedsUpdates) && self.words[word] & bits == bits)
    }

    /// RAM that they take, in bytes.
    pub(super) fn ram_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    /// Releases the memory, if nothing is noted.
    pub(super) fn rest(&mut self) {
        if !self.are_noted {
            self.words = Vec::new();
        }
    }

    /// The word and the bits of a fingerprint.
    fn place(&self, fingerprint: &Fingerprint) -> (usize, u64) {
        let (first, second) = (get_u64(fingerprint, 0), get_u64(fingerprint, 8));
        let word = ((u128::from(first) * self.words.len() as u128) >> u64::BITS) as usize;
        let bit = |number: u32| 1 << ((second >> (6 * number)) & 63);
        (word, (0..BITS_SET).fold(0, |bits, number| bits | bit(number)))
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use nandex_store::hash::mix;

    use super::*;

    fn print(number: u64) -> Fingerprint {
        let mut print = [0; 16];
        print[..8].copy_from_slice(&mix(number).to_le_bytes());
        print[8..].copy_from_slice(&mix(!number).to_le_bytes());
        print
    }

    /// Returns how many of these may have changed.
    fn count(changes: &Changes, numbers: Range<u64>) -> usize {
        numbers.filter(|it| changes.may_have(&print(*it)) == Some(true)).count()
    }

    #[test]
    fn what_was_noted_may_have_changed_and_hardly_anything_else() {
        let mut changes = Changes::default();
        assert_eq!(changes.may_have(&print(0)), None);
        changes.begin(10_000);
        (0..10_000).for_each(|number| changes.note(&print(number)));
        assert!((0..10_000).all(|number| changes.may_have(&print(number)) == Some(true)));
        let wrong = count(&changes, 10_000..20_000);
        assert!(wrong <= 300, "{wrong} of 10,000");
        changes.begin(10_000);
        assert_eq!(changes.may_have(&print(0)), Some(false));
        assert_eq!(changes.ram_bytes() as u64, Changes::ram_bytes_of(10_000));
    }

    #[test]
    fn more_than_are_noted_are_not_known() {
        let mut changes = Changes::default();
        changes.begin(1000);
        (0..3000).for_each(|number| changes.note(&print(number)));
        assert!((0..3000).all(|number| changes.may_have(&print(number)) == Some(true)));
        let wrong = count(&changes, 3000..13_000);
        assert!(wrong <= 2000, "{wrong} of 10,000");
        (0..100_000).for_each(|number| changes.note(&print(number)));
        assert_eq!(changes.may_have(&print(7)), None);
        changes.begin(0);
        changes.note(&print(7));
        assert_eq!(changes.may_have(&print(7)), None);
        changes.rest();
        assert_eq!(changes.ram_bytes(), 0);
    }
}
