//! Chunks of a stream in bounded memory: a buffer that keeps the unfinished tail.
//!
//! A cut needs the longest chunk, or the stream's end. So the buffer is refilled whenever it holds less than
//! that, and its rest moves to the front when no more fits after it.

use std::io::{self, ErrorKind, Read};
use std::ops::ControlFlow;

use super::{Chunking, Cutter};

/// Bytes of a read: few calls, yet the bytes are still in the cache when hashed.
const READ_BYTES: usize = 256 << 10;

/// A reusable buffer that cuts one stream after another.
///
/// It holds twice the longest chunk and at least four reads: 1 MiB up to averages of 64 KiB, and
/// sixteen times the average above that.
#[derive(Debug)]
pub struct ChunkBuffer {
    cutter: Cutter,
    max_bytes: usize,
    read_bytes: usize,
    buffer: Vec<u8>,
}

impl ChunkBuffer {
    /// A buffer for this chunking.
    #[must_use]
    pub fn new(chunking: &Chunking) -> Self {
        let buffer_bytes = (2 * chunking.max_bytes()).max(4 * READ_BYTES);
        Self::with_sizes(chunking, READ_BYTES, buffer_bytes)
    }

    /// A buffer that reads `read_bytes` at once and holds `buffer_bytes`, or more if needed.
    pub(super) fn with_sizes(chunking: &Chunking, read_bytes: usize, buffer_bytes: usize) -> Self {
        let max_bytes = chunking.max_bytes();
        let buffer_bytes = buffer_bytes.max(max_bytes + read_bytes);
        let buffer = vec![0; buffer_bytes];
        Self { cutter: Cutter::new(chunking), max_bytes, read_bytes, buffer }
    }

    /// Passes every chunk of `source` to `take`, in order, until it breaks off or the stream ends.
    ///
    /// # Errors
    /// The error of `source`; earlier chunks have been passed. A read that was only interrupted by a signal
    /// is repeated.
    pub fn for_each_chunk(
        &mut self,
        source: &mut impl Read,
        mut take: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> io::Result<ControlFlow<()>> {
        let (mut start, mut end, mut ended) = (0, 0, false);
        loop {
            if !ended && end - start < self.max_bytes {
                (start, end) = self.make_space(start, end);
                let bytes = read_some(source, &mut self.buffer[end..end + self.read_bytes])?;
                (end, ended) = (end + bytes, bytes == 0);
                continue;
            }
            let length = self.cutter.first_len(&self.buffer[start..end]);
            if length == 0 {
                return Ok(ControlFlow::Continue(()));
            }
            if take(&self.buffer[start..start + length]).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            start += length;
        }
    }

    /// Moves the tail to the front unless one more read fits after it; returns its place.
    fn make_space(&mut self, start: usize, end: usize) -> (usize, usize) {
        if end + self.read_bytes <= self.buffer.len() {
            return (start, end);
        }
        self.buffer.copy_within(start..end, 0);
        (0, end - start)
    }
}

fn read_some(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
