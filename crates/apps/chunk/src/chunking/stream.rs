//! Chunks of a stream in bounded memory: a buffer that keeps the unfinished tail.
//!
//! A cut needs the longest chunk, or the stream's end. So the buffer is refilled whenever it holds less than
//! that, and its rest moves to the front when no more fits after it.
//!
//! A cut depends on the bytes of its own chunk alone, so a hole is cut without being read: at a cut with nothing but
//! zeros before and the longest chunk of zeros behind, the next chunk is the chunk of zeros, and so are all following
//! ones until less than the longest chunk of the hole is left.

use std::io::{self, ErrorKind, Read};
use std::ops::ControlFlow;

use super::{Chunking, Cutter};

/// The number of bytes of a read: few calls, yet the bytes are still in the cache when hashed.
const READ_BYTES: usize = 256 << 10;

/// A stream that may know where it has holes: bytes that are zero without being stored.
pub trait Holes: Read {
    /// Returns the number of zeros that are known to come next, before stored bytes.
    fn zeros_ahead(&mut self) -> u64;

    /// Skips `bytes` of the zeros ahead.
    fn skip_zeros(&mut self, bytes: u64);
}

/// A stream that knows of no holes.
struct Solid<'s, R>(&'s mut R);

impl<R: Read> Read for Solid<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<R: Read> Holes for Solid<'_, R> {
    fn zeros_ahead(&mut self) -> u64 {
        0
    }

    fn skip_zeros(&mut self, _bytes: u64) {}
}

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
    /// The chunk that endless zeros are cut into; created at the first hole.
    zeros: Vec<u8>,
}

impl ChunkBuffer {
    /// Creates a buffer for this chunking.
    #[must_use]
    pub fn new(chunking: &Chunking) -> Self {
        let buffer_bytes = (2 * chunking.max_bytes()).max(4 * READ_BYTES);
        Self::with_sizes(chunking, READ_BYTES, buffer_bytes)
    }

    /// Creates a buffer that reads `read_bytes` at once and holds `buffer_bytes`, or more if needed.
    pub(super) fn with_sizes(chunking: &Chunking, read_bytes: usize, buffer_bytes: usize) -> Self {
        let max_bytes = chunking.max_bytes();
        let buffer_bytes = buffer_bytes.max(max_bytes + read_bytes);
        let buffer = vec![0; buffer_bytes];
        Self { cutter: Cutter::new(chunking), max_bytes, read_bytes, buffer, zeros: Vec::new() }
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
        self.for_each_run(&mut Solid(source), |chunk, times| {
            debug_assert_eq!(times, 1, "a solid stream has no holes");
            take(chunk)
        })
    }

    /// Passes every chunk of `source` to `take`, in order, with the number of times that it repeats in a row.
    ///
    /// # Errors
    /// As [`for_each_chunk`](Self::for_each_chunk).
    pub fn for_each_run(
        &mut self,
        source: &mut impl Holes,
        mut take: impl FnMut(&[u8], u64) -> ControlFlow<()>,
    ) -> io::Result<ControlFlow<()>> {
        let mut window = Window::default();
        loop {
            if !window.ended && window.bytes() < self.max_bytes {
                let times = self.skip_zero_chunks(source, &mut window);
                if times == 0 {
                    self.refill(source, &mut window)?;
                } else if take(&self.zeros, times).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                continue;
            }
            let length = self.cutter.first_len(&self.buffer[window.start..window.end]);
            if length == 0 {
                return Ok(ControlFlow::Continue(()));
            }
            if take(&self.buffer[window.start..window.start + length], 1).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            window.start += length;
        }
    }

    /// Skips the chunks of zeros with which a hole certainly begins, and returns their number.
    fn skip_zero_chunks(&mut self, source: &mut impl Holes, window: &mut Window) -> u64 {
        if window.start < window.zeros_from {
            return 0;
        }
        let zeros = source.zeros_ahead().saturating_add(window.bytes() as u64);
        let Some(past_first) = zeros.checked_sub(self.max_bytes as u64) else { return 0 };
        if self.zeros.is_empty() {
            self.zeros = vec![0; self.max_bytes];
            self.zeros.truncate(self.cutter.first_len(&self.zeros));
        }
        let times = past_first / self.zeros.len() as u64 + 1;
        let bytes = times * self.zeros.len() as u64;
        let buffered = usize::try_from(bytes).map_or(window.bytes(), |it| it.min(window.bytes()));
        window.start += buffered;
        source.skip_zeros(bytes - buffered as u64);
        times
    }

    /// Adds a read to the window. In a long hole it adds only what a cut needs, and reads nothing.
    fn refill(&mut self, source: &mut impl Holes, window: &mut Window) -> io::Result<()> {
        self.make_space(window);
        if source.zeros_ahead() >= self.max_bytes as u64 {
            let bytes = self.read_bytes.min(self.max_bytes - window.bytes());
            self.buffer[window.end..window.end + bytes].fill(0);
            source.skip_zeros(bytes as u64);
            window.end += bytes;
            return Ok(());
        }
        let bytes = read_some(source, &mut self.buffer[window.end..window.end + self.read_bytes])?;
        window.ended = bytes == 0;
        window.end += bytes;
        window.zeros_from = window.end;
        Ok(())
    }

    /// Moves the window to the front unless one more read fits after it.
    fn make_space(&mut self, window: &mut Window) {
        if window.end + self.read_bytes > self.buffer.len() {
            self.buffer.copy_within(window.start..window.end, 0);
            window.move_by(window.start);
        }
    }
}

/// The part of the buffer that waits to be cut.
#[derive(Debug, Default)]
struct Window {
    start: usize,
    end: usize,
    /// The place from which on there are only zeros of a hole.
    zeros_from: usize,
    /// Whether the stream has ended.
    ended: bool,
}

impl Window {
    fn bytes(&self) -> usize {
        self.end - self.start
    }

    fn move_by(&mut self, bytes: usize) {
        self.start -= bytes;
        self.end -= bytes;
        self.zeros_from = self.zeros_from.saturating_sub(bytes);
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
