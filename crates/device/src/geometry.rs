//! Sizes and addresses: what a page is, and where one lies.

use std::fmt;

/// Bytes in a page, the unit of every read and of every checksum.
pub const PAGE_BYTES: usize = 4096;

/// The number of a page on a device, counted from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PageId(pub u64);

impl PageId {
    /// The page that lies `pages` further on.
    #[must_use]
    pub const fn plus(self, pages: u64) -> Self {
        Self(self.0 + pages)
    }
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {}", self.0)
    }
}

/// Sizes of a device that never change while it is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Bytes in a page; [`PAGE_BYTES`] on every device of today.
    pub page_bytes: usize,
    /// Channels that can work at once, where the device tells or a probe has found out.
    pub channels: Option<u32>,
    /// Bytes that lie on one channel before the next begins, where known.
    pub chunk_bytes: Option<u32>,
    /// The deepest queue that is worth filling.
    pub depth: usize,
    /// Devices side by side, 1 unless it is an array.
    pub members: u32,
    /// Pages that lie on one member before the next member's begin, 1 where there is one member. Of an
    /// array of extents, page 0 is the first of a run on member 0, so a block that begins at a multiple
    /// of `members * stripe_pages` is spread evenly, `stripe_pages` on each member in turn. Of an array of
    /// partitions it is the partition.
    pub stripe_pages: u64,
}

impl Geometry {
    /// The geometry of a device that tells nothing about its inside.
    #[must_use]
    pub const fn opaque() -> Self {
        Self {
            page_bytes: PAGE_BYTES,
            channels: None,
            chunk_bytes: None,
            depth: 32,
            members: 1,
            stripe_pages: 1,
        }
    }
}
