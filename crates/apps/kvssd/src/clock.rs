//! Pages of an index in DRAM, replaced by a clock: which are there.

use std::collections::HashMap;

/// Names of pages in DRAM. It has no bytes: it says what a drive would read.
///
/// A page that was used since the clock's hand last passed it stays for another round.
#[derive(Debug)]
pub struct PageCache {
    pages_max: usize,
    slots_of: HashMap<u64, usize>,
    slots: Vec<Slot>,
    hand: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    page: u64,
    is_used: bool,
}

impl PageCache {
    /// An empty cache of at most that many pages; 0 for none.
    #[must_use]
    pub fn new(pages_max: usize) -> Self {
        Self { pages_max, slots_of: HashMap::new(), slots: Vec::new(), hand: 0 }
    }

    /// The most pages that it has.
    #[must_use]
    pub fn pages_max(&self) -> usize {
        self.pages_max
    }

    /// Is the page there? Uses it if so.
    pub fn hit(&mut self, page: u64) -> bool {
        let Some(slot) = self.slots_of.get(&page) else { return false };
        self.slots[*slot].is_used = true;
        true
    }

    /// Takes a page in that is not there, in place of another.
    pub fn add(&mut self, page: u64) {
        let slot = Slot { page, is_used: true };
        if self.slots.len() < self.pages_max {
            self.slots_of.insert(page, self.slots.len());
            return self.slots.push(slot);
        }
        if self.pages_max == 0 {
            return;
        }
        while std::mem::replace(&mut self.slots[self.hand].is_used, false) {
            self.hand = (self.hand + 1) % self.slots.len();
        }
        let old = std::mem::replace(&mut self.slots[self.hand], slot);
        self.slots_of.remove(&old.page);
        self.slots_of.insert(page, self.hand);
        self.hand = (self.hand + 1) % self.slots.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_used_stay() {
        let mut cache = PageCache::new(2);
        assert!(!cache.hit(7));
        [7, 8, 9].into_iter().for_each(|page| cache.add(page));
        // All were used, so the hand goes round once and takes the first.
        assert!(cache.hit(9) && !cache.hit(7));
        // 9 was used since the hand passed it, and 8 was not.
        cache.add(10);
        assert!(cache.hit(9) && cache.hit(10) && !cache.hit(8));
    }

    #[test]
    fn a_cache_of_no_pages_has_none() {
        let mut cache = PageCache::new(0);
        cache.add(7);
        assert!(!cache.hit(7));
        assert_eq!(cache.pages_max(), 0);
    }
}
