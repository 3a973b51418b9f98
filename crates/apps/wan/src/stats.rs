//! Figures of a stream, in bytes and counts.

use serde::Serialize;

/// The statistics of an encoder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct EncodeStats {
    /// Bytes of the stream.
    pub stream_bytes: u64,
    /// Bytes of frames sent.
    pub frame_bytes: u64,
    /// Segments.
    pub segments: u64,
    /// Chunks.
    pub chunks: u64,
    /// Chunks replaced by references.
    pub known_chunks: u64,
    /// Their bytes.
    pub known_bytes: u64,
    /// Containers given to zstd as prefix.
    pub prefix_containers: u64,
    /// Their bytes.
    pub prefix_bytes: u64,
    /// Segments that the other side requested again.
    pub again_segments: u64,
}

/// The statistics of a decoder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct DecodeStats {
    /// Bytes of the stream.
    pub stream_bytes: u64,
    /// Bytes of frames received.
    pub frame_bytes: u64,
    /// Segments.
    pub segments: u64,
    /// Segments that were requested again.
    pub again_segments: u64,
}
