//! The counters of the followed keys, in an open hash table.

use super::KeyBounds;

/// A slot of the index without a counter.
const FREE: u32 = 0;

/// The counter of a key, whose bytes are in [`Counters::keys`].
#[derive(Clone, Copy, Debug)]
struct Counter {
    bounds: KeyBounds,
    hash: u32,
    key_bytes: u32,
}

/// Counters for a fixed number of keys. All RAM is allocated at once.
#[derive(Debug)]
pub(super) struct Counters {
    /// The bytes reserved for each key, whatever its length.
    stride: usize,
    slots: usize,
    counters: Vec<Counter>,
    keys: Vec<u8>,
    /// The numbers of counters, from 1 on, by linear probing from their hash; the length is a power of two.
    index: Vec<u32>,
}

/// Returns the slots of the index; at most half are used.
fn index_slots(slots: usize) -> usize {
    (2 * slots).next_power_of_two()
}

/// Returns the RAM for `slots` counters, in bytes.
pub(super) fn ram_bytes(slots: usize, stride: usize) -> u64 {
    let counters = slots * (size_of::<Counter>() + stride);
    (counters + index_slots(slots) * size_of::<u32>()) as u64
}

impl Counters {
    pub fn new(slots: usize, stride: usize) -> Self {
        let (counters, keys) = (Vec::with_capacity(slots), Vec::with_capacity(slots * stride));
        Self { stride, slots, counters, keys, index: vec![FREE; index_slots(slots)] }
    }

    pub fn len(&self) -> usize {
        self.counters.len()
    }

    pub fn is_full(&self) -> bool {
        self.len() == self.slots
    }

    /// Returns all keys with their bounds, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], KeyBounds)> {
        (0..self.len()).map(|at| (self.key(at), self.counters[at].bounds))
    }

    fn key(&self, at: usize) -> &[u8] {
        &self.keys[at * self.stride..][..self.counters[at].key_bytes as usize]
    }

    fn mask(&self) -> usize {
        self.index.len() - 1
    }

    fn home(&self, at: usize) -> usize {
        self.counters[at].hash as usize & self.mask()
    }

    /// Returns the first slot of the index, from the hash on, that is free or whose counter satisfies `is_it`.
    fn probe(&self, hash: u32, is_it: impl Fn(usize) -> bool) -> usize {
        let mut slot = hash as usize & self.mask();
        while self.index[slot] != FREE && !is_it(self.index[slot] as usize - 1) {
            slot = (slot + 1) & self.mask();
        }
        slot
    }

    /// Returns the number of the key's counter.
    pub fn find(&self, hash: u32, key: &[u8]) -> Option<usize> {
        let slot = self.probe(hash, |at| self.counters[at].hash == hash && self.key(at) == key);
        (self.index[slot] as usize).checked_sub(1)
    }

    pub fn bounds(&self, at: usize) -> KeyBounds {
        self.counters[at].bounds
    }

    pub fn bounds_mut(&mut self, at: usize) -> &mut KeyBounds {
        &mut self.counters[at].bounds
    }

    /// Follows a key that is not followed yet, while a counter is free.
    pub fn push(&mut self, hash: u32, key: &[u8], bounds: KeyBounds) {
        assert!(!self.is_full(), "a counter must be free");
        let slot = self.probe(hash, |_| false);
        self.counters.push(Counter { bounds, hash, key_bytes: key.len() as u32 });
        self.keys.extend_from_slice(key);
        self.keys.resize(self.len() * self.stride, 0);
        self.index[slot] = self.len() as u32;
    }

    /// Frees a counter; the last one takes over its number.
    pub fn remove(&mut self, at: usize) {
        let slot = self.probe(self.counters[at].hash, |found| found == at);
        self.free(slot);
        let last = self.len() - 1;
        if at < last {
            let slot = self.probe(self.counters[last].hash, |found| found == last);
            self.index[slot] = at as u32 + 1;
        }
        self.counters.swap_remove(at);
        self.keys.copy_within(last * self.stride.., at * self.stride);
        self.keys.truncate(last * self.stride);
    }

    /// Frees a slot of the index. Later slots that could no longer be found move into the hole.
    fn free(&mut self, slot: usize) {
        let (mask, mut hole) = (self.mask(), slot);
        let mut next = (hole + 1) & mask;
        while self.index[next] != FREE {
            let home = self.home(self.index[next] as usize - 1);
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                self.index[hole] = self.index[next];
                hole = next;
            }
            next = (next + 1) & mask;
        }
        self.index[hole] = FREE;
    }

    /// Frees the counters for which `keeps` is false.
    pub fn retain(&mut self, mut keeps: impl FnMut(KeyBounds) -> bool) {
        let mut kept = 0;
        for at in 0..self.len() {
            if keeps(self.bounds(at)) {
                self.counters[kept] = self.counters[at];
                let bytes = at * self.stride..(at + 1) * self.stride;
                self.keys.copy_within(bytes, kept * self.stride);
                kept += 1;
            }
        }
        self.counters.truncate(kept);
        self.keys.truncate(kept * self.stride);
        self.index.fill(FREE);
        for at in 0..kept {
            let slot = self.probe(self.counters[at].hash, |_| false);
            self.index[slot] = at as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nandex_store::hash::mix;

    use super::*;

    /// Hashes of three bits make long clusters, so that most removals move slots, including across the index's end.
    #[test]
    fn keys_are_found_as_in_a_map_while_they_come_and_go() {
        let (mut counters, mut expected) = (Counters::new(24, 4), BTreeMap::new());
        let hash = |key: u8| (u32::from(key) << 29) | ((u32::from(key) & 7) * 7);
        let mut most = 0;
        for step in 0..20_000_u64 {
            let random = mix(step);
            let key = random as u8 % 40;
            let bytes = &[key; 4][..usize::from(key % 5)];
            let name = [bytes, &[key]].concat();
            let name = &name[name.len().saturating_sub(4)..];
            let bounds = KeyBounds { lower: step as i64, upper: (random >> 32) as i64 };
            match (counters.find(hash(key), name), random >> 8 & 3) {
                (Some(at), 0) => {
                    counters.remove(at);
                    expected.remove(name);
                }
                (Some(at), _) => {
                    *counters.bounds_mut(at) = bounds;
                    expected.insert(name.to_vec(), bounds);
                }
                (None, _) if counters.is_full() => {
                    most += 1;
                    counters.retain(|bounds| bounds.upper % 3 == 0);
                    expected.retain(|_, bounds| bounds.upper % 3 == 0);
                }
                (None, _) => {
                    counters.push(hash(key), name, bounds);
                    expected.insert(name.to_vec(), bounds);
                }
            }
            let found: BTreeMap<_, _> =
                counters.iter().map(|(key, it)| (key.to_vec(), it)).collect();
            assert_eq!(found, expected);
        }
        assert!(most > 100, "{most}");
    }
}
