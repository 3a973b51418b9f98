//! What a stream was, in bytes and counts.

use serde::Serialize;

/// What an encoder did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct EncodeStats {
    /// Bytes of the stream.
    pub stream_bytes: u64,
    /// Bytes of frames that went out.
    pub frame_bytes: u64,
    /// Segments.
    pub segments: u64,
    /// Chunks.
    pub chunks: u64,
    /// Chunks that a reference stood for.
    pub known_chunks: u64,
    /// Their bytes.
    pub known_bytes: u64,
    /// Containers that zstd had as prefix.
    pub prefix_containers: u64,
    /// Their bytes.
    pub prefix_bytes: u64,
    /// Segments that the other side asked for again.
    pub again_segments: u64,
}

/// What a decoder did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct DecodeStats {
    /// Bytes of the stream.
    pub stream_bytes: u64,
    /// Bytes of frames that came in.
    pub frame_bytes: u64,
    /// Segments.
    pub segments: u64,
    /// Segments that were asked for again.
    pub again_segments: u64,
}
