//! What can end a stream, with the place and the remedy.

use std::io;

/// The result of a stream or one of its parts.
pub type Result<T> = std::result::Result<T, Error>;

/// What can end a stream.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A table of the cache failed.
    #[error("the cache: {0}")]
    Index(#[from] nandex::Error),
    /// The volume of the cache failed, or holds what it should not.
    #[error("the cache: {0}")]
    Volume(#[from] nandex::raw::store::Error),
    /// A choice of chunks that there is not.
    #[error(transparent)]
    Chunk(#[from] nandex_chunk::Error),
    /// An option that cannot work.
    #[error("{field}: {reason}")]
    Options {
        /// Which option.
        field: &'static str,
        /// What is wrong with it, and what would do.
        reason: String,
    },
    /// The input that cannot be read.
    #[error("cannot read the input: {0}")]
    Input(#[source] io::Error),
    /// The output that cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[source] io::Error),
    /// Bytes that are no stream of this kind, or of a version that this program does not know.
    #[error("this is no stream of nandex wan that can be read: {reason}")]
    NoStream {
        /// What was expected, what was found, and what to do.
        reason: String,
    },
    /// A frame that was changed on its way, or that no encoder makes.
    #[error(
        "frame {frame} of the stream is damaged: {reason}; what came before it is right, send it again"
    )]
    Frame {
        /// Which frame, from 0 on.
        frame: u64,
        /// What was expected, and what was found.
        reason: String,
    },
    /// The stream has no end.
    #[error(
        "the stream ends after {frames} frames without its last one: it was cut off; send it again"
    )]
    Truncated {
        /// Whole frames that came.
        frames: u64,
    },
    /// Content that the cache does not have, and that nobody can be asked for.
    #[error(
        "segment {segment} needs content that this cache does not have: {reason}; use the cache that \
         the stream was made with, or a larger one next time"
    )]
    Missing {
        /// Which segment, from 0 on.
        segment: u64,
        /// What is missing, and why.
        reason: String,
    },
    /// The other side has ended or does what it must not.
    #[error("the other side: {reason}")]
    Peer {
        /// What happened, and what to do.
        reason: String,
    },
    /// A failure of zstd that is not of the bytes it was given.
    #[error("zstd: {reason}")]
    Compression {
        /// What it said.
        reason: String,
    },
}

impl Error {
    /// Is it of the cache, and not of the stream or the other side?
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
