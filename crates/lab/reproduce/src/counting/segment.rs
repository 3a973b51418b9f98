//! The data segment `H_D`: a closed hash table with linear probing that never leaves its block.

use super::shape::Shape;

/// The value of an empty entry.
const EMPTY: u64 = 0;
/// The last entry of a block whose probing has continued in the overflow region.
const POINTER: u64 = u64::MAX;

/// The pages touched by a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Search {
    /// Whether the key is present.
    pub found: bool,
    /// Its first page.
    pub page: u64,
    /// The consecutive pages of the block.
    pub pages: u64,
    /// Pages of the overflow region.
    pub overflow_pages: u64,
}

/// The blocks of the segment, and the overflow of each.
#[derive(Clone, Debug)]
pub struct DataSegment {
    shape: Shape,
    keys: Vec<u64>,
    overflow: Vec<Vec<u64>>,
}

impl DataSegment {
    /// Creates an empty one.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let overflow = vec![Vec::new(); shape.blocks as usize];
        Self { shape, keys: vec![EMPTY; shape.entries() as usize], overflow }
    }

    /// Counts a key: inserts it if it is absent.
    pub fn insert(&mut self, key: u64) {
        let end = self.end_of(key);
        let place = self.stop(key);
        if place == end {
            // The probing left the block: its last entry is replaced by a pointer.
            let last = std::mem::replace(&mut self.keys[end - 1], POINTER);
            self.overflow[self.shape.block(key) as usize].extend([last, key]);
        } else if self.keys[place] == EMPTY {
            self.keys[place] = key;
        } else if self.keys[place] == POINTER {
            let overflow = &mut self.overflow[self.shape.block(key) as usize];
            if !overflow.contains(&key) {
                overflow.push(key);
            }
        }
    }

    /// Searches for a key.
    #[must_use]
    pub fn search(&self, key: u64) -> Search {
        let page_entries = self.shape.page_entries;
        let page = self.shape.slot(key) / page_entries;
        let place = self.stop(key).min(self.end_of(key) - 1);
        let at_stop = self.keys[place];
        let pages = place as u64 / page_entries - page + 1;
        if at_stop != POINTER {
            return Search { found: at_stop == key, page, pages, overflow_pages: 0 };
        }
        let overflow = &self.overflow[self.shape.block(key) as usize];
        let index = overflow.iter().position(|it| *it == key);
        let searched = index.map_or(overflow.len(), |index| index + 1) as u64;
        let overflow_pages = searched.div_ceil(page_entries);
        Search { found: index.is_some(), page, pages, overflow_pages }
    }

    /// Returns the entries in the overflow region.
    #[cfg(test)]
    fn overflow_entries(&self) -> usize {
        self.overflow.iter().map(Vec::len).sum()
    }

    /// Returns the end of the block of a key.
    fn end_of(&self, key: u64) -> usize {
        ((self.shape.block(key) + 1) * self.shape.block_entries()) as usize
    }

    /// Returns the place at which the probing for a key stops: at the key, at an empty entry, at a pointer,
    /// or at the end of the block.
    fn stop(&self, key: u64) -> usize {
        let (start, end) = (self.shape.slot(key) as usize, self.end_of(key));
        let stops = |it: &u64| *it == key || *it == EMPTY || *it == POINTER;
        start + self.keys[start..end].iter().position(stops).unwrap_or(end - start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;
    use crate::counting::shape::DataSet;
    use nandex_sim::workload::SplitMix64;

    fn shape() -> Shape {
        DataSet::WIKI.at(Scale::new(Scale::MOST, 1).unwrap())
    }

    #[test]
    fn what_is_put_in_is_found_and_nothing_else_is() {
        let mut segment = DataSegment::new(shape());
        let mut rng = SplitMix64::new(9);
        let keys: Vec<u64> = (0..shape().distinct).map(|_| rng.next_u64()).collect();
        for key in &keys {
            segment.insert(*key);
            segment.insert(*key);
        }
        assert!(keys.iter().all(|key| segment.search(*key).found));
        assert!((0..1000).all(|_| !segment.search(rng.next_u64()).found));
        let stored = segment.keys.iter().filter(|it| **it != EMPTY && **it != POINTER).count();
        assert_eq!(stored + segment.overflow_entries(), keys.len());
    }

    #[test]
    fn probing_crosses_pages_and_at_the_end_of_a_block_goes_on_in_the_overflow() {
        let shape = shape();
        let mut segment = DataSegment::new(shape);
        // Keys of one slot in the last page of the first block: it takes them up to the block's end.
        let of_slot =
            |slot: u64| ((u128::from(slot) << 64) / u128::from(shape.entries())) as u64 + 1;
        let (last, page) =
            (shape.block_entries() - 1, shape.block_entries() / shape.page_entries - 1);
        let keys: Vec<u64> = (0..3).map(|number| of_slot(last) + number).collect();
        segment.insert(keys[0]);
        let alone = Search { found: true, page, pages: 1, overflow_pages: 0 };
        assert_eq!(segment.search(keys[0]), alone);
        segment.insert(keys[1]);
        segment.insert(keys[2]);
        for key in keys {
            assert_eq!(segment.search(key), Search { overflow_pages: 1, ..alone });
        }
        assert_eq!(segment.overflow_entries(), 3);
        // The next block is empty still.
        assert!(segment.keys[shape.block_entries() as usize..].iter().all(|key| *key == EMPTY));
        // An entry pushed from the end of a page to the next one: two pages.
        let pushed = of_slot(shape.page_entries - 1);
        segment.insert(pushed);
        segment.insert(pushed + 1);
        assert_eq!(
            segment.search(pushed + 1),
            Search { found: true, page: 0, pages: 2, overflow_pages: 0 }
        );
    }
}
