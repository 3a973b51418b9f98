//! The size and number of the I/O chunks in which large parts of a device are read or written.

use nandex_device::PAGE_BYTES;

use crate::{Error, Result};

/// The size of an I/O chunk, and the number of chunks in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoChunks {
    /// The number of pages that are read or written at once; the last chunk may be shorter.
    pub chunk_pages: usize,
    /// The number of chunks in memory, and the most that are in flight. With two, one is in flight while the other is
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
    /// Rejects chunks without pages, and a number of zero chunks.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn validate(self) -> Result<()> {
        if self.chunk_pages == 0 || self.chunks == 0 {
            let reason = "0 is too small; at least one chunk of one page is needed";
            return Err(Error::config("io_chunks", reason));
        }
        Ok(())
    }

    /// The RAM of all chunks, in bytes.
    #[must_use]
    pub const fn ram_bytes(self) -> usize {
        self.chunks * self.chunk_pages * PAGE_BYTES
    }
}
