//! Finds the duplicate chunks of real trees with a fingerprint table bigger than its RAM.
//!
//! This is the content side of the WAN optimizer in section 8 of the BufferHash paper (NSDI'10): data is cut into
//! chunks by its content, each chunk is named by a cryptographic digest, and the digests are stored in a hash table on
//! flash. [`dedup`] walks trees, cuts and hashes their files on all cores, looks every digest up in a [`nandex::Table`]
//! and returns a [`Summary`]: how much is duplicate, where, and what the index costs. [`survey`] is the cheap first
//! pass that sizes the table; [`html`] and [`text`] show a summary to people, and its JSON form shows it to programs.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use nandex::raw::oracle::MapTable;
//! use nandex_dedup::{Options, VALUE_BYTES, dedup};
//!
//! let tree = tempfile::tempdir()?;
//! std::fs::write(tree.path().join("a"), "the same words")?;
//! std::fs::write(tree.path().join("b"), "the same words")?;
//! let options = Options::new([tree.path()]);
//! let table = MapTable::new(options.hash.key_bytes(), VALUE_BYTES);
//! let summary = dedup(&table, &options, &(), &AtomicBool::new(false))?;
//! assert_eq!((summary.total_bytes, summary.duplicate_bytes), (28, 14));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod chunk_value;
mod compare;
mod error;
mod forgotten;
mod indexer;
mod listing;
mod options;
mod progress;
mod provenance;
mod read;
mod report;
mod run;
mod settings;
mod sparse;
mod summary;
mod text;
mod tops;
mod units;
mod walk;

pub use chunk_value::{ChunkValue, VALUE_BYTES};
pub use compare::comparison_value_bytes;
pub use compare::{COPIES_LISTED_MAX, ComparedTree, Comparison, CopiedFile, TREES_MAX};
pub use error::{Error, Result};
pub use listing::Listed;
pub use nandex_chunk as chunk;
pub use nandex_chunk::{Chunker, Chunking, Fingerprint, Hash};
pub use options::Options;
pub use progress::{Done, Progress};
pub use provenance::Provenance;
pub use report::html;
pub use run::dedup;
pub use settings::IndexSettings;
pub use summary::{KindCount, Largest, SKIPPED_LISTED_PER_KIND_MAX, Summary};
pub use text::text;
pub use tops::LARGEST_LISTED_MAX;
pub use units::{is_hidden, printable};
pub use walk::{FileEntry, Found, SkipKind, Skipped, Survey, Walk, survey};
