//! Cuts a stream of bytes into chunks: by its content, or at fixed distances.
//!
//! ```text
//!   file  |----------------|--------|-----------------------|-----|
//!            chunk           chunk            chunk           last
//! ```
//!
//! 1. The chunks of a stream, one after another, are the stream; none is empty.
//! 2. No chunk is longer than `max_bytes`; only the last may be shorter than `min_bytes`.
//! 3. A cut depends on the bytes of its own chunk alone, so equal content that starts at a cut is cut
//!    alike in every file, and streaming gives the same chunks as the file in one piece.
//!
//! Content-defined chunkers find equal content after an insertion or removal. Fixed chunks find none after
//! the first inserted byte, and cost nothing. All three need `max_bytes` of the stream.

mod fastcdc;
mod fixed;
mod rabin;
mod stream;

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

pub use stream::{ChunkBuffer, Holes};

use crate::{Error, Result};

/// The smallest average chunk, in bytes.
pub const AVERAGE_BYTES_MIN: usize = 256;

/// The largest average chunk, in bytes.
pub const AVERAGE_BYTES_MAX: usize = 1 << 20;

/// The default average chunk, in bytes.
pub const AVERAGE_BYTES_DEFAULT: usize = 8 << 10;

/// The algorithm that cuts a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Chunker {
    /// FastCDC as of 2020: a gear hash, normalised sizes. The fastest that follows content.
    #[default]
    FastCdc,
    /// A Rabin-Karp rolling hash over 48 bytes, as in the BufferHash paper, section 8.
    Rabin,
    /// Every chunk has the average size. Finds only equal content at the same distance.
    Fixed,
}

impl Chunker {
    /// All chunkers, the default first.
    pub const ALL: [Self; 3] = [Self::FastCdc, Self::Rabin, Self::Fixed];

    /// The name in options and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FastCdc => "fastcdc",
            Self::Rabin => "rabin",
            Self::Fixed => "fixed",
        }
    }
}

impl fmt::Display for Chunker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Chunker {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        let named = Self::ALL.into_iter().find(|chunker| chunker.name() == word);
        named.ok_or_else(|| Error::Name {
            what: "chunker",
            found: word.to_owned(),
            choices: "fastcdc, rabin, fixed",
        })
    }
}

/// A chunker with its average size, which together determine where a stream is cut.
///
/// Two runs find each other's chunks only if their chunkings are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunking {
    chunker: Chunker,
    average_bytes: usize,
}

impl Default for Chunking {
    fn default() -> Self {
        Self { chunker: Chunker::default(), average_bytes: AVERAGE_BYTES_DEFAULT }
    }
}

impl Chunking {
    /// Creates a chunking of this average size in bytes.
    ///
    /// The average is nominal. Content-defined chunks are never shorter than a quarter of it, which
    /// lifts the measured mean to about 1.25 times the average for Rabin and 1.2 to 1.4 for FastCDC.
    ///
    /// # Errors
    /// [`Error::Average`] unless the size is a power of two from 256 bytes to 1 MiB.
    pub fn new(chunker: Chunker, average_bytes: usize) -> Result<Self> {
        let in_range = (AVERAGE_BYTES_MIN..=AVERAGE_BYTES_MAX).contains(&average_bytes);
        if !in_range || !average_bytes.is_power_of_two() {
            return Err(Error::Average { found: average_bytes });
        }
        Ok(Self { chunker, average_bytes })
    }

    /// The algorithm.
    #[must_use]
    pub fn chunker(&self) -> Chunker {
        self.chunker
    }

    /// The nominal average, in bytes.
    #[must_use]
    pub fn average_bytes(&self) -> usize {
        self.average_bytes
    }

    /// The shortest chunk except the last of a stream, in bytes: a quarter of the average, or all of it.
    #[must_use]
    pub fn min_bytes(&self) -> usize {
        if self.chunker == Chunker::Fixed { self.average_bytes } else { self.average_bytes / 4 }
    }

    /// The longest chunk, in bytes: eight times the average, or the average itself when fixed.
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        if self.chunker == Chunker::Fixed { self.average_bytes } else { self.average_bytes * 8 }
    }

    /// Returns the chunks of data that is in memory as a whole.
    ///
    /// ```
    /// use nandex_chunk::{Chunker, Chunking};
    /// let fixed = Chunking::new(Chunker::Fixed, 256)?;
    /// let lengths: Vec<usize> = fixed.split(&[7; 600]).map(<[u8]>::len).collect();
    /// assert_eq!(lengths, [256, 256, 88]);
    /// # Ok::<(), nandex_chunk::Error>(())
    /// ```
    pub fn split<'a>(&self, data: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let cutter = Cutter::new(self);
        let mut rest = data;
        std::iter::from_fn(move || {
            let (chunk, after) = rest.split_at(cutter.first_len(rest));
            rest = after;
            (!chunk.is_empty()).then_some(chunk)
        })
    }
}

/// A prepared chunking.
#[derive(Clone, Debug)]
enum Cutter {
    FastCdc(fastcdc::FastCdc),
    Rabin(rabin::Rabin),
    Fixed(fixed::Fixed),
}

impl Cutter {
    fn new(chunking: &Chunking) -> Self {
        match chunking.chunker {
            Chunker::FastCdc => Self::FastCdc(fastcdc::FastCdc::new(chunking)),
            Chunker::Rabin => Self::Rabin(rabin::Rabin::new(chunking)),
            Chunker::Fixed => Self::Fixed(fixed::Fixed::new(chunking)),
        }
    }

    /// Returns the length of the first chunk of `data`; zero only if there is none.
    ///
    /// `data` must hold the longest chunk, or the rest of the stream.
    fn first_len(&self, data: &[u8]) -> usize {
        match self {
            Self::FastCdc(cutter) => cutter.first_len(data),
            Self::Rabin(cutter) => cutter.first_len(data),
            Self::Fixed(cutter) => cutter.first_len(data),
        }
    }
}

#[cfg(test)]
mod tests;
