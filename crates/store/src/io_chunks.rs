//! How large parts of a device are read or written: in I/O chunks, a few of them in memory.

use nandex_device::PAGE_BYTES;

use crate::{Error, Result};

/// The size of an I/O chunk, and how many there are in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoChunks {
    /// Pages that are read or written at once; the last chunk may be shorter.
    pub chunk_pages: usize,
    /// Chunks in memory, and the most that are in flight. With two, one is in flight while the other is
    /// processed; with three, reads, changes and writes overlap.
    pub chunks: usize,
}

impl Default for IoChunks {
    /// Three chunks of 1 MiB.
    fn default() -> Self {
        Self { chunk_pages: 256, chunks: 3 }
    }
}

impl IoChunks {
    /// Refuses chunks without pages, and zero chunks.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn validate(self) -> Result<()> {
        if self.chunk_pages == 0 || self.chunks == 0 {
            let reason = "0 does not do; at least one chunk of one page is needed";
            return Err(Error::config("io_chunks", reason));
        }
        Ok(())
    }

    /// RAM that they take.
    #[must_use]
    pub const fn ram_bytes(self) -> usize {
        self.chunks * self.chunk_pages * PAGE_BYTES
    }
}
