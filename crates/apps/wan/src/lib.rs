//! Sends streams in few bytes over a slow link, with a cache of earlier content on flash at each end.
//!
//! This is the intended application of the BufferHash paper's index (NSDI'10, sections 3 and 8): a WAN optimizer cuts
//! streams into chunks by their content and sends a reference in place of a chunk that was sent before. The index of
//! fingerprints is a BufferHash, so the history may be much larger than RAM.
//!
//! ```text
//!   stream -> segments -> chunks -> known? --yes--> a reference                    level 1: equal chunks
//!                                     | no
//!                                     +-> anchors -> similar content of cache      level 2: its prefix for zstd
//!                                     +-> zstd ------------------------------> frame -> other side
//! ```
//!
//! 1. A [`Cache`] is a file or device: containers of chunks in a ring, and their places. It is bounded, survives power
//!    cuts, and serves many streams concurrently.
//! 2. [`encode`] and [`decode`] turn a stream into frames and back, for a file of references to a cache.
//! 3. [`send`] and [`receive`] do that over a channel with two directions: the other side requests the content that it
//!    lacks.
//! 4. [`live`] has both ends of a connection that stays open, without input and output: `nandex-wanproxy` moves their
//!    messages. Several [`Owner`]s may share a cache without access to each other's content.
//!
//! The two caches need not be equal. A reference to content that was recycled, or never received, is detected by its
//! name; every chunk is verified by its fingerprint, and every segment by a digest, before it leaves the decoder.
//!
//! ```
//! use std::sync::Arc;
//! use nandex::device::MemoryDevice;
//! use nandex_wan::{Cache, CacheConfig, EncodeOptions, decode, encode};
//!
//! let config = CacheConfig { content_bytes: 4 << 20, ..CacheConfig::default() };
//! let cache = Cache::create(Arc::new(MemoryDevice::new()), config)?;
//! let text = "the same words again and again, ".repeat(10_000);
//! let mut first = Vec::new();
//! encode(&cache, &mut text.as_bytes(), &mut first, EncodeOptions::default())?;
//! let mut second = Vec::new();
//! encode(&cache, &mut text.as_bytes(), &mut second, EncodeOptions::default())?;
//! assert!(second.len() < 500);
//! let mut copy = Vec::new();
//! decode(&cache, &mut &second[..], &mut copy)?;
//! assert_eq!(copy, text.as_bytes());
//! # Ok::<(), nandex_wan::Error>(())
//! ```
#![forbid(unsafe_code)]

mod anchors;
mod cache;
mod channel;
mod container;
mod decode;
mod dictionary;
mod encode;
mod error;
mod exchange;
mod fields;
mod frame;
pub mod live;
mod owner;
mod pack;
mod plan;
mod segment;
mod stats;
mod steps;
mod stream;
#[cfg(test)]
mod sweep;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use cache::{CACHE_BYTES_MIN, Cache, CacheConfig, CacheStats};
pub use channel::{receive, send};
pub use encode::{EncodeOptions, LEVEL_MAX, LEVEL_MIN};
pub use error::{Error, Result};
pub use owner::Owner;
pub use segment::{CHUNK_BYTES_DEFAULT, CHUNK_BYTES_MAX, CHUNK_BYTES_MIN, SEGMENT_BYTES_MAX};
pub use stats::{DecodeStats, EncodeStats};
pub use stream::{decode, encode};
