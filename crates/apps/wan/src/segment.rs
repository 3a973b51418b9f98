//! Segments: a stream is collected into some chunks at a time, and each segment becomes a frame.

use std::io::Read;
use std::ops::ControlFlow;

use nandex_chunk::{ChunkBuffer, Chunker, Chunking};

use crate::container::{Key, key_of};
use crate::{Error, Result};

/// The most bytes of a segment; its last chunk may exceed the chosen number of bytes.
pub const SEGMENT_BYTES_MAX: usize = 8 << 20;

/// The default number of bytes of a segment.
pub(crate) const SEGMENT_BYTES_DEFAULT: usize = 1 << 20;

/// The most chunks of a segment.
pub(crate) const SEGMENT_CHUNKS_MAX: usize = 1 << 16;

/// The decoder's limits of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentLimits {
    pub(crate) bytes_max: usize,
    pub(crate) chunks_max: usize,
}

impl Default for SegmentLimits {
    fn default() -> Self {
        Self { bytes_max: SEGMENT_BYTES_MAX, chunks_max: SEGMENT_CHUNKS_MAX }
    }
}

/// The default average chunk, in bytes.
pub const CHUNK_BYTES_DEFAULT: usize = 4 << 10;

/// The smallest average chunk, in bytes.
pub const CHUNK_BYTES_MIN: usize = 1 << 10;

/// The largest average chunk, in bytes.
pub const CHUNK_BYTES_MAX: usize = 64 << 10;

/// Some neighbouring chunks of a stream.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Segment {
    bytes: Vec<u8>,
    lengths: Vec<usize>,
}

impl Segment {
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
        self.lengths.push(chunk.len());
    }

    /// Returns all of its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Returns its chunks, each with its key.
    pub(crate) fn keyed(&self) -> Vec<(Key, &[u8])> {
        let mut rest = &self.bytes[..];
        let mut chunk = |length: &usize| {
            let (chunk, after) = rest.split_at(*length);
            rest = after;
            (key_of(chunk), chunk)
        };
        self.lengths.iter().map(&mut chunk).collect()
    }

    fn is_full(&self, bytes: usize) -> bool {
        self.bytes.len() >= bytes || self.lengths.len() == SEGMENT_CHUNKS_MAX
    }
}

/// The cutting of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cuts {
    chunking: Chunking,
    segment_bytes: usize,
}

impl Cuts {
    /// Creates it, and rejects sizes that are out of range.
    pub(crate) fn new(chunker: Chunker, chunk_bytes: usize, segment_bytes: usize) -> Result<Self> {
        let refuse = |field, found: usize, (least, most): (usize, usize)| {
            let reason = format!("{found} bytes; expected {least} to {most}");
            Err(Error::Options { field, reason })
        };
        if !(CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX).contains(&chunk_bytes) {
            return refuse("chunk_bytes", chunk_bytes, (CHUNK_BYTES_MIN, CHUNK_BYTES_MAX));
        }
        let chunking = Chunking::new(chunker, chunk_bytes)?;
        let most = SEGMENT_BYTES_MAX - chunking.max_bytes();
        if !(1..=most).contains(&segment_bytes) {
            return refuse("segment_bytes", segment_bytes, (1, most));
        }
        Ok(Self { chunking, segment_bytes })
    }

    /// Returns the same with segments of at most this many bytes, and a chunk.
    pub(crate) fn within(self, bytes: usize) -> Self {
        Self { segment_bytes: self.segment_bytes.min(bytes), ..self }
    }

    /// Returns the segment of these bytes, at most [`SEGMENT_BYTES_MAX`].
    pub(crate) fn segment_of(&self, bytes: &[u8]) -> Segment {
        let mut segment = Segment { bytes: Vec::with_capacity(bytes.len()), lengths: Vec::new() };
        self.chunking.split(bytes).for_each(|chunk| segment.push(chunk));
        segment
    }

    /// Returns an empty segment with space for its bytes. Growing would double it.
    fn begun(&self) -> Segment {
        let bytes = self.segment_bytes + self.chunking.max_bytes();
        Segment { bytes: Vec::with_capacity(bytes), lengths: Vec::new() }
    }

    /// Passes every segment of `input` to `take`, in order.
    ///
    /// # Errors
    /// That of the input, or the first one of `take`.
    pub(crate) fn for_each_segment(
        &self,
        input: &mut impl Read,
        mut take: impl FnMut(Segment) -> Result<()>,
    ) -> Result<()> {
        let mut segment = self.begun();
        let mut taken = Ok(());
        let read = ChunkBuffer::new(&self.chunking).for_each_chunk(input, |chunk| {
            segment.push(chunk);
            if segment.is_full(self.segment_bytes) {
                taken = take(std::mem::replace(&mut segment, self.begun()));
            }
            if taken.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        taken?;
        let _ = read.map_err(Error::Input)?;
        if segment.is_empty() { Ok(()) } else { take(segment) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::noise;

    #[test]
    fn segments_are_the_stream_in_whole_chunks() {
        let data = noise(300_000, 5);
        let cuts = Cuts::new(Chunker::FastCdc, 1024, 40_000).unwrap();
        let mut found = Vec::new();
        cuts.for_each_segment(&mut &data[..], |segment| {
            found.push(segment);
            Ok(())
        })
        .unwrap();
        assert!(found.len() > 5);
        let bytes: Vec<u8> = found.iter().flat_map(|it| it.bytes().to_vec()).collect();
        assert_eq!(bytes, data);
        let chunking = Chunking::new(Chunker::FastCdc, 1024).unwrap();
        let expected: Vec<usize> = chunking.split(&data).map(<[u8]>::len).collect();
        let lengths: Vec<usize> = found.into_iter().flat_map(|it| it.lengths).collect();
        assert_eq!(lengths, expected);
    }

    #[test]
    fn an_empty_stream_has_no_segment() {
        let cuts = Cuts::new(Chunker::FastCdc, 4096, 1 << 20).unwrap();
        cuts.for_each_segment(&mut &[][..], |_| panic!("a segment")).unwrap();
    }

    #[test]
    fn sizes_out_of_range_are_refused_with_the_range() {
        let refusal = |chunk, segment| Cuts::new(Chunker::FastCdc, chunk, segment).unwrap_err();
        assert!(refusal(512, 1 << 20).to_string().contains("expected 1024 to 65536"));
        assert!(refusal(4096, 0).to_string().starts_with("segment_bytes: 0 bytes"));
        assert!(refusal(4096, 9 << 20).to_string().contains("segment_bytes"));
        assert!(refusal(5000, 1 << 20).to_string().contains("power of two"));
    }
}
