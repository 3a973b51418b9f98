//! The RAM buffer `H_R`: an open hash table with a slot for each data block.
//!
//! Only the data that decide operations are kept: its keys, and the number of keys in each slot.

use super::shape::Shape;

/// The content of a full buffer, or of the last one.
#[derive(Clone, Debug, Default)]
pub struct Staged {
    /// Its keys, slot by slot.
    pub keys: Vec<u64>,
    /// The end of each slot's keys.
    pub ends: Vec<usize>,
}

impl Staged {
    /// Returns the keys of a slot.
    #[must_use]
    pub fn of_slot(&self, slot: usize) -> &[u64] {
        let start = slot.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.keys[start..self.ends[slot]]
    }
}

/// Distinct keys, until it is full.
#[derive(Clone, Debug)]
pub struct RamBuffer {
    shape: Shape,
    entries_max: usize,
    keys: Vec<u64>,
    /// The places of keys, 0 for a free one.
    set: Vec<u64>,
    counts: Vec<usize>,
}

impl RamBuffer {
    /// Creates an empty buffer of `percent` percent of the data segment.
    #[must_use]
    pub fn new(shape: Shape, percent: u64) -> Self {
        let entries_max = shape.buffer_entries(percent) as usize;
        let places = (entries_max * 2).next_power_of_two();
        let counts = vec![0; shape.blocks as usize];
        Self { shape, entries_max, keys: Vec::new(), set: vec![0; places], counts }
    }

    /// Counts a token. The buffer must be staged when it is full.
    pub fn insert(&mut self, key: u64) {
        let place = self.place(key);
        if self.set[place] == 0 {
            self.set[place] = key;
            self.keys.push(key);
            self.counts[self.shape.block(key) as usize] += 1;
        }
    }

    /// Returns whether a key is in it.
    #[must_use]
    pub fn has(&self, key: u64) -> bool {
        self.set[self.place(key)] == key
    }

    /// Returns whether it has its maximum number of keys.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.keys.len() >= self.entries_max
    }

    /// Returns whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Takes everything out of it, slot by slot.
    pub fn take(&mut self) -> Staged {
        let mut ends = Vec::with_capacity(self.counts.len());
        let mut places = Vec::with_capacity(self.counts.len());
        let mut end = 0;
        for count in &mut self.counts {
            places.push(end);
            end += std::mem::take(count);
            ends.push(end);
        }
        let mut keys = vec![0; self.keys.len()];
        for key in self.keys.drain(..) {
            let place = &mut places[self.shape.block(key) as usize];
            keys[*place] = key;
            *place += 1;
        }
        self.set.fill(0);
        Staged { keys, ends }
    }

    /// Returns the place of a key, present or not.
    fn place(&self, key: u64) -> usize {
        let mask = self.set.len() - 1;
        let mut place = key as usize & mask;
        while self.set[place] != 0 && self.set[place] != key {
            place = (place + 1) & mask;
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;
    use crate::counting::shape::DataSet;
    use nandex_sim::workload::SplitMix64;
    use std::collections::HashSet;

    #[test]
    fn a_full_buffer_has_each_key_once_in_the_slot_of_its_block() {
        let shape = DataSet::WIKI.at(Scale::new(Scale::MOST, 1).unwrap());
        let mut buffer = RamBuffer::new(shape, 1);
        let mut rng = SplitMix64::new(7);
        let mut keys = HashSet::new();
        while !buffer.is_full() {
            // Each key comes twice.
            let key = rng.next_u64();
            buffer.insert(key);
            buffer.insert(key);
            keys.insert(key);
        }
        assert!(keys.iter().all(|key| buffer.has(*key)) && !buffer.has(1));
        assert_eq!(keys.len() as u64, shape.buffer_entries(1));
        let staged = buffer.take();
        assert!(buffer.is_empty() && keys.iter().all(|key| !buffer.has(*key)));
        for slot in 0..shape.blocks as usize {
            let blocks = staged.of_slot(slot).iter().map(|key| shape.block(*key) as usize);
            assert!(blocks.into_iter().all(|block| block == slot));
        }
        assert_eq!(staged.keys.into_iter().collect::<HashSet<_>>(), keys);
    }
}
