//! A write-back cache of pages in RAM: the cached pages, the changed ones, and the next one to evict.

use std::collections::{BTreeMap, HashMap};

/// The use of a page by an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Reads it.
    Same,
    /// Reads and changes it.
    Changed,
    /// Creates it, without reading it.
    New,
}

/// The requests that using a page causes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Used {
    /// The changed page that is written to make space, before anything else.
    pub written_back: Option<u64>,
    /// Whether the page must be read.
    pub is_missing: bool,
}

/// A page in the cache.
#[derive(Clone, Copy, Debug)]
struct Cached {
    used_at: u64,
    is_changed: bool,
}

/// The cache, which evicts the least recently used page.
#[derive(Clone, Debug)]
pub struct PageCache {
    pages_max: usize,
    uses: u64,
    pages: HashMap<u64, Cached>,
    by_use: BTreeMap<u64, u64>,
}

impl PageCache {
    /// Creates an empty cache for `pages_max` pages, at least one.
    pub fn new(pages_max: usize) -> Self {
        let pages_max = pages_max.max(1);
        Self { pages_max, uses: 0, pages: HashMap::new(), by_use: BTreeMap::new() }
    }

    /// Uses a page, which is in the cache afterwards.
    pub fn touch(&mut self, page: u64, change: Change) -> Used {
        let before = self.pages.remove(&page);
        if let Some(cached) = before {
            self.by_use.remove(&cached.used_at);
        }
        let written_back = if self.pages.len() < self.pages_max { None } else { self.evict() };
        self.uses += 1;
        let is_changed = change != Change::Same || before.is_some_and(|cached| cached.is_changed);
        self.pages.insert(page, Cached { used_at: self.uses, is_changed });
        self.by_use.insert(self.uses, page);
        Used { written_back, is_missing: before.is_none() && change != Change::New }
    }

    /// Drops the page that was used least recently, and returns it if it was changed.
    fn evict(&mut self) -> Option<u64> {
        let (_, page) = self.by_use.pop_first()?;
        self.pages.remove(&page).filter(|cached| cached.is_changed).map(|_| page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_used_least_recently_goes_and_is_written_if_it_was_changed() {
        let mut cache = PageCache::new(2);
        let used = |written_back, is_missing| Used { written_back, is_missing };
        assert_eq!(cache.touch(1, Change::Changed), used(None, true));
        assert_eq!(cache.touch(2, Change::Same), used(None, true));
        assert_eq!(cache.touch(1, Change::Same), used(None, false));
        assert_eq!(cache.touch(3, Change::New), used(None, false));
        assert_eq!(cache.touch(2, Change::Same), used(Some(1), true));
        assert_eq!(cache.touch(1, Change::Same), used(Some(3), true));
        assert_eq!(cache.touch(3, Change::Same), used(None, true));
    }
}
