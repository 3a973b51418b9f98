//! Cuts streams into chunks by their content, and names chunks: the common part of applications that find equal
//! content.
//!
//! [`Chunking`] decides where a stream is cut and [`ChunkBuffer`] cuts it in bounded memory; a hash names each
//! chunk by a [`Fingerprint`]. Equal content is cut and named alike wherever it is.
//!
//! ```
//! use nandex_chunk::{Chunking, Hash};
//!
//! let data = vec![7; 200_000];
//! let names: Vec<_> = Chunking::default().split(&data).map(|it| Hash::Blake3.fingerprint(it)).collect();
//! assert_eq!(names[0], names[1]);
//! # Ok::<(), nandex_chunk::Error>(())
//! ```
#![forbid(unsafe_code)]

mod chunking;
mod error;
mod fingerprint;

pub use chunking::{
    AVERAGE_BYTES_DEFAULT, AVERAGE_BYTES_MAX, AVERAGE_BYTES_MIN, ChunkBuffer, Chunker, Chunking,
    Holes,
};
pub use error::{Error, Result};
pub use fingerprint::{Fingerprint, Hash};
