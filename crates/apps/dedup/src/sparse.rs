//! A file that is read from front to back, and knows its holes: zeros that need not be read.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use nandex_chunk::Holes;

/// The number of bytes of a block as `stat` counts them.
const BLOCK_BYTES: u64 = 512;

/// A file, and the place of the next read.
#[derive(Debug)]
pub(crate) struct SparseFile {
    file: File,
    at: u64,
    bytes: u64,
    /// The last hole that was looked up; it begins at `bytes` if there are no more.
    hole: Range<u64>,
}

impl SparseFile {
    /// Creates a reader from the file's beginning. A fully allocated file is not searched for holes.
    pub(crate) fn new(file: File, metadata: &Metadata) -> Self {
        let bytes = metadata.len();
        let is_sparse = metadata.blocks().saturating_mul(BLOCK_BYTES) < bytes;
        let hole = if is_sparse { 0..0 } else { bytes..u64::MAX };
        Self { file, at: 0, bytes, hole }
    }

    /// Returns the current metadata of the file.
    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// Returns the first hole that ends after `at`. If the file system knows of none, everything is data.
    fn next_hole(&self, at: u64) -> Range<u64> {
        let none = self.bytes..u64::MAX;
        let Ok(start) = seek(&self.file, SeekFrom::Hole(at)) else { return none };
        match seek(&self.file, SeekFrom::Data(start)) {
            Ok(end) if start < self.bytes => start..end.min(self.bytes),
            // There is no data after it: the hole extends to the end.
            Err(Errno::NXIO) if start < self.bytes => start..self.bytes,
            _ => none,
        }
    }
}

impl Read for SparseFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read_at(buffer, self.at)?;
        self.at += bytes as u64;
        Ok(bytes)
    }
}

impl Holes for SparseFile {
    fn zeros_ahead(&mut self) -> u64 {
        if self.at >= self.bytes {
            return 0;
        }
        if self.at >= self.hole.end {
            self.hole = self.next_hole(self.at);
        }
        if self.at < self.hole.start { 0 } else { self.hole.end - self.at }
    }

    fn skip_zeros(&mut self, bytes: u64) {
        self.at += bytes;
    }
}
