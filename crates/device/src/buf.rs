//! `PageBuf`: owned bytes, aligned to a page, as O_DIRECT requires.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::PAGE_BYTES;

/// Owned, zeroed, page-aligned bytes, a whole number of pages long.
///
/// An operation owns its buffer until the device returns it, so a buffer can never be freed or changed while
/// the kernel reads or fills it.
pub struct PageBuf {
    start: NonNull<u8>,
    bytes: usize,
    /// The number of bytes that were allocated: `bytes` or more.
    capacity_bytes: usize,
}

// SAFETY: a PageBuf owns its allocation alone, as a Box<[u8]> does.
unsafe impl Send for PageBuf {}
// SAFETY: shared access is read-only, as with a Box<[u8]>.
unsafe impl Sync for PageBuf {}

impl PageBuf {
    /// Creates a zeroed buffer of `pages` pages.
    ///
    /// # Panics
    /// If `pages` is zero or the size exceeds `isize::MAX`.
    #[must_use]
    pub fn zeroed(pages: usize) -> Self {
        assert!(pages > 0, "a buffer has at least one page");
        let bytes = pages.checked_mul(PAGE_BYTES).expect("buffer size fits in usize");
        let layout = Self::layout(bytes);
        // SAFETY: the layout's size is at least one page, so it is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, bytes, capacity_bytes: bytes }
    }

    /// The number of pages in the buffer.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.bytes / PAGE_BYTES
    }

    /// The number of pages that the buffer was created with: the most that it can hold.
    #[must_use]
    pub fn capacity_pages(&self) -> usize {
        self.capacity_bytes / PAGE_BYTES
    }

    /// Sets the length to `pages` pages, so that operations of several lengths use one buffer. Bytes stay as they are;
    /// pages that return have their former bytes.
    ///
    /// # Panics
    /// If `pages` is zero or more than the buffer was created with.
    pub fn set_pages(&mut self, pages: usize) {
        let most = self.capacity_pages();
        assert!((1..=most).contains(&pages), "{pages} pages of a buffer of {most}");
        self.bytes = pages * PAGE_BYTES;
    }

    /// Returns the bytes of page `index` of this buffer.
    ///
    /// # Panics
    /// If there is no such page.
    #[must_use]
    pub fn page(&self, index: usize) -> &[u8] {
        &self[index * PAGE_BYTES..(index + 1) * PAGE_BYTES]
    }

    /// Returns the bytes of page `index` of this buffer for modification.
    ///
    /// # Panics
    /// If there is no such page.
    #[must_use]
    pub fn page_mut(&mut self, index: usize) -> &mut [u8] {
        &mut self[index * PAGE_BYTES..(index + 1) * PAGE_BYTES]
    }

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, PAGE_BYTES).expect("buffer size fits in isize")
    }
}

impl Drop for PageBuf {
    fn drop(&mut self) {
        // SAFETY: `start` came from alloc_zeroed with this very layout and is freed once.
        unsafe { dealloc(self.start.as_ptr(), Self::layout(self.capacity_bytes)) }
    }
}

impl Deref for PageBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the allocation is at least `bytes` long, initialised (zeroed) and lives as long as self.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for PageBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in deref, and `&mut self` is the only access.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl fmt::Debug for PageBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageBuf({} pages)", self.pages())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_and_zeroed() {
        let buf = PageBuf::zeroed(3);
        assert_eq!(buf.as_ptr() as usize % PAGE_BYTES, 0);
        assert_eq!(buf.pages(), 3);
        assert!(buf.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_shortened_buffer_keeps_its_bytes_and_becomes_as_long_as_it_was() {
        let mut buf = PageBuf::zeroed(3);
        buf.page_mut(2).fill(7);
        buf.set_pages(1);
        assert_eq!((buf.len(), buf.pages(), buf.capacity_pages()), (PAGE_BYTES, 1, 3));
        buf.set_pages(3);
        assert!(buf.page(2).iter().all(|&byte| byte == 7));
    }

    #[test]
    #[should_panic = "4 pages of a buffer of 3"]
    fn a_buffer_is_never_longer_than_it_was_made() {
        PageBuf::zeroed(3).set_pages(4);
    }
}
