//! The free pages of a volume, and the owners of the others.
//!
//! Space is allocated in extents, whole runs of pages. There are few of them (a log, two checkpoints, one or
//! two a structure), so first fit over a sorted list is enough.

use nandex_device::PageId;

/// The least number of pages that growth of a structure leaves free, for checkpoints.
pub const LEFT_PAGES_MIN: u64 = 64;

/// A run of pages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Extent {
    /// The first page.
    pub start: PageId,
    /// The number of pages.
    pub pages: u64,
}

impl Extent {
    /// The page after the last.
    #[must_use]
    pub fn end(self) -> PageId {
        self.start.plus(self.pages)
    }
}

/// The free extents of a volume and its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Space {
    free: Vec<Extent>,
    page_count: u64,
}

impl Space {
    /// Creates the space of a volume of `page_count` pages, all of them in use.
    #[must_use]
    pub fn full(page_count: u64) -> Self {
        Self { free: Vec::new(), page_count }
    }

    /// Returns the free space of a volume of `page_count` pages without `taken`; `None` when two of them overlap or one
    /// reaches past the end.
    #[must_use]
    pub fn around(mut taken: Vec<Extent>, page_count: u64) -> Option<Self> {
        taken.sort_by_key(|extent| extent.start);
        let mut space = Self::full(page_count);
        let mut at = 0;
        for extent in taken {
            if extent.start.0 < at || extent.start.0.checked_add(extent.pages)? > page_count {
                return None;
            }
            space.release(Extent { start: PageId(at), pages: extent.start.0 - at });
            at = extent.end().0;
        }
        space.release(Extent { start: PageId(at), pages: page_count - at });
        Some(space)
    }

    /// The volume's length in pages.
    #[must_use]
    pub fn page_count(&self) -> u64 {
        self.page_count
    }

    /// Allocates `pages` pages, from the free ones or by growing the volume.
    ///
    /// The caller must grow the device to [`page_count`](Self::page_count) before it writes there.
    pub fn allocate(&mut self, pages: u64) -> Extent {
        if let Some(index) = self.free.iter().position(|extent| extent.pages >= pages) {
            let extent = &mut self.free[index];
            let taken = Extent { start: extent.start, pages };
            *extent = Extent { start: taken.end(), pages: extent.pages - pages };
            self.free.retain(|extent| extent.pages > 0);
            return taken;
        }
        let taken = Extent { start: PageId(self.page_count), pages };
        self.page_count += pages;
        taken
    }

    /// Frees an extent.
    pub fn release(&mut self, extent: Extent) {
        if extent.pages == 0 {
            return;
        }
        let at = self.free.partition_point(|other| other.start < extent.start);
        self.free.insert(at, extent);
        self.join(at);
        if at > 0 {
            self.join(at - 1);
        }
    }

    /// Joins a free extent and the next one, if they touch.
    fn join(&mut self, at: usize) {
        let touch = self.free.get(at + 1).is_some_and(|next| self.free[at].end() == next.start);
        if touch {
            self.free[at].pages += self.free.remove(at + 1).pages;
        }
    }

    /// The number of pages without an owner.
    #[must_use]
    pub fn free_pages(&self) -> u64 {
        self.free.iter().map(|extent| extent.pages).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(start: u64, pages: u64) -> Extent {
        Extent { start: PageId(start), pages }
    }

    #[test]
    fn what_is_given_back_is_handed_out_again() {
        let mut space = Space::full(2);
        let [a, b, c] = [3, 4, 5].map(|pages| space.allocate(pages));
        assert_eq!((a, b, c), (extent(2, 3), extent(5, 4), extent(9, 5)));
        space.release(a);
        space.release(b);
        assert_eq!(space.free_pages(), 7);
        assert_eq!(space.allocate(7), extent(2, 7));
        assert_eq!(space.allocate(1), extent(14, 1));
    }

    #[test]
    fn overlapping_extents_are_refused() {
        assert!(Space::around(vec![extent(0, 3), extent(2, 2)], 10).is_none());
        assert!(Space::around(vec![extent(8, 3)], 10).is_none());
        let space = Space::around(vec![extent(6, 2), extent(0, 3)], 10).unwrap();
        assert_eq!(space.free_pages(), 5);
    }
}
