//! The errors of a stream, with the place and the remedy.

use std::io;

/// The result of a stream or one of its parts.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a stream.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A table of the cache failed.
    #[error("the cache: {0}")]
    Index(#[from] nandex::Error),
    /// The volume of the cache failed, or has unexpected content.
    #[error("the cache: {0}")]
    Volume(#[from] nandex::raw::store::Error),
    /// An invalid choice of chunks.
    #[error(transparent)]
    Chunk(#[from] nandex_chunk::Error),
    /// An invalid option.
    #[error("{field}: {reason}")]
    Options {
        /// The name of the option.
        field: &'static str,
        /// The fault of the value, and a value that would work.
        reason: String,
    },
    /// The input cannot be read.
    #[error("cannot read the input: {0}")]
    Input(#[source] io::Error),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[source] io::Error),
    /// Bytes that are not a stream of this kind, or of a version that this program does not know.
    #[error("this is not a readable stream of nandex wan: {reason}")]
    NoStream {
        /// The expected and the found value, and the remedy.
        reason: String,
    },
    /// A frame that was changed in transit, or that no encoder produces.
    #[error(
        "frame {frame} of the stream is damaged: {reason}; the content before it is intact; send it again"
    )]
    Frame {
        /// The number of the frame, from 0 on.
        frame: u64,
        /// The expected and the found value.
        reason: String,
    },
    /// The stream has no end.
    #[error(
        "the stream ends after {frames} frames without its last one: it was cut off; send it again"
    )]
    Truncated {
        /// The number of complete frames received.
        frames: u64,
    },
    /// Content that the cache does not have, and that cannot be requested.
    #[error(
        "segment {segment} needs content that this cache does not have: {reason}; use the cache that \
         the stream was encoded with, or a larger one next time"
    )]
    Missing {
        /// The number of the segment, from 0 on.
        segment: u64,
        /// The missing content, and the reason.
        reason: String,
    },
    /// The other side has ended or violates the protocol.
    #[error("the other side: {reason}")]
    Peer {
        /// The event, and the remedy.
        reason: String,
    },
    /// A failure of zstd that its input did not cause.
    #[error("zstd: {reason}")]
    Compression {
        /// The message of zstd.
        reason: String,
    },
}

impl Error {
    /// Returns whether it is of the cache, and not of the stream or the other side.
    #[must_use]
    pub fn is_of_cache(&self) -> bool {
        matches!(self, Self::Index(_) | Self::Volume(_) | Self::Options { field: "cache", .. })
    }

    pub(crate) fn frame(frame: u64, reason: impl Into<String>) -> Self {
        Self::Frame { frame, reason: reason.into() }
    }

    pub(crate) fn peer(reason: impl Into<String>) -> Self {
        Self::Peer { reason: reason.into() }
    }
}
