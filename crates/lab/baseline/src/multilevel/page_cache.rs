//! The cache of level pages in RAM: the pages that lookups have used lately, by a clock.
//!
//! A page is named by its number and its group's generation, so a page of a replaced group is never returned
//! for the page that is written in its place. A lookup uses each level's page on its way, so pages of upper
//! levels are used most and stay.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard};

use nandex_device::{PAGE_BYTES, PageId};
use nandex_store::hash::mix;
use nandex_store::page::{PAGE_HEADER_BYTES, PageLabel};

use crate::clock::Clock;

/// RAM of a page, in bytes: its body, its clock slot, and its place in a map that is half empty.
const SLOT_BYTES: u64 = PAGE_BYTES as u64 + 96;

/// The number of parts with a lock each, if there are enough pages.
const SHARDS: u64 = 16;

/// The minimum pages of a cache that has more than one shard.
const SHARDED_PAGES_MIN: u64 = 1024;

/// A cache of proven pages.
#[derive(Debug)]
pub(crate) struct PageCache {
    shards: Box<[Mutex<Shard>]>,
    pages_max: u64,
    hits: AtomicU64,
}

/// A proven page: its group's generation, and its body.
#[derive(Debug, Default)]
struct CachedPage {
    generation: u64,
    body: Box<[u8]>,
}

type Shard = Clock<PageId, CachedPage>;

impl PageCache {
    /// Creates an empty cache within this RAM; without space for a page it holds none.
    pub(super) fn new(bytes: u64) -> Self {
        let pages_max = bytes / SLOT_BYTES;
        let count = if pages_max < SHARDED_PAGES_MIN { 1 } else { SHARDS };
        let pages = usize::try_from(pages_max / count).unwrap_or(usize::MAX);
        let shard = |_| Mutex::new(Shard::new(pages));
        let shards: Box<[_]> = (0..count).map(shard).collect();
        Self { shards, pages_max: pages_max / count * count, hits: AtomicU64::new(0) }
    }

    /// Returns the maximum number of pages.
    pub(super) fn pages_max(&self) -> u64 {
        self.pages_max
    }

    /// Returns the RAM of a full cache, in bytes.
    pub(super) fn ram_bytes(&self) -> u64 {
        self.pages_max * SLOT_BYTES
    }

    /// Returns the number of hits.
    pub(super) fn hits(&self) -> u64 {
        self.hits.load(Relaxed)
    }

    fn shard(&self, page: PageId) -> MutexGuard<'_, Shard> {
        let at = mix(page.0) % self.shards.len() as u64;
        self.shards[at as usize].lock().expect("no holder of a cache's lock panics")
    }

    /// Applies `look` to the body of a page, if the page is in the cache.
    pub(super) fn with<T>(&self, label: PageLabel, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
        if self.pages_max == 0 {
            return None;
        }
        let mut shard = self.shard(label.page);
        let found = shard.get(label.page, |it| it.generation == label.generation)?;
        self.hits.fetch_add(1, Relaxed);
        Some(look(&found.body))
    }

    /// Inserts a page that was proven to have this label.
    pub(super) fn put(&self, label: PageLabel, page: &[u8]) {
        let body = &page[PAGE_HEADER_BYTES..];
        if let Some(cached) = self.shard(label.page).put(label.page) {
            cached.generation = label.generation;
            if cached.body.len() == body.len() {
                cached.body.copy_from_slice(body);
            } else {
                cached.body = body.into();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use nandex_store::StructureId;
    use nandex_store::page::PageKind;

    use super::*;

    fn label(page: u64, generation: u64) -> PageLabel {
        let (kind, structure) = (PageKind::Records, StructureId(1));
        PageLabel { kind, structure, generation, page: PageId(page) }
    }

    fn put(cache: &PageCache, page: u64, generation: u64) {
        cache.put(label(page, generation), &[page as u8; PAGE_BYTES]);
    }

    fn first(cache: &PageCache, page: u64, generation: u64) -> Option<u8> {
        cache.with(label(page, generation), |body| body[0])
    }

    #[test]
    fn pages_that_are_used_stay_and_another_generation_is_another_page() {
        let cache = PageCache::new(2 * SLOT_BYTES + 1);
        assert_eq!((cache.pages_max(), cache.ram_bytes()), (2, 2 * SLOT_BYTES));
        put(&cache, 7, 1);
        put(&cache, 8, 1);
        put(&cache, 9, 1);
        // The hand has cleared both, and taken the first.
        assert_eq!((first(&cache, 7, 1), first(&cache, 9, 1)), (None, Some(9)));
        put(&cache, 10, 1);
        assert_eq!([8, 9, 10].map(|it| first(&cache, it, 1)), [None, Some(9), Some(10)]);
        assert_eq!(first(&cache, 9, 2), None);
        put(&cache, 9, 2);
        assert_eq!((first(&cache, 9, 1), first(&cache, 9, 2)), (None, Some(9)));
        assert_eq!(cache.hits(), 4);
    }

    #[test]
    fn without_ram_there_is_none_and_a_large_one_has_parts() {
        let none = PageCache::new(SLOT_BYTES - 1);
        put(&none, 7, 1);
        assert_eq!((first(&none, 7, 1), none.ram_bytes()), (None, 0));
        let large = PageCache::new(2000 * SLOT_BYTES);
        assert_eq!((large.shards.len(), large.pages_max()), (16, 2000));
        (0..2000).for_each(|page| put(&large, page, 3));
        let kept = (0..2000).filter(|page| first(&large, *page, 3).is_some()).count();
        assert!((1700..=2000).contains(&kept), "{kept}");
    }
}
