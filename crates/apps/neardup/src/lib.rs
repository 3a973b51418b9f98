//! Finds near-duplicates among documents, with an index that may be bigger than RAM.
//!
//! This is the application of SliceLSH (ANCS'14, section 6). A document becomes a set of shingles, which becomes a
//! MinHash signature or a SimHash; a vector becomes its positions on lines. The signature gives a bucket key in each of
//! several tables on flash. Documents that share a bucket are candidates, and their stored signatures decide. For the
//! same permutations, bands and seed the candidates are those of datasketch's `MinHashLSH`, which holds everything in
//! RAM.
//!
//! 1. [`documents`] reads texts from folders, lines, JSON lines and Parquet, one at a time.
//! 2. An [`Index`] is on flash and grows with each run. [`Index::update`] adds documents and decides in one pass
//!    whether each is new; [`Index::query`] only looks up; [`Index::remove`] removes documents.
//! 3. [`Index::pairs`] lists which documents are near-duplicates of which, and [`Index::clusters`] joins them.
//! 4. [`Index::summary`] computes an index's figures, and [`html`] renders them as a page.
//! 5. [`lsh`] is an index for signatures made elsewhere: the equivalent of datasketch's `MinHashLSH`.
//!
//! Rules
//! - The [`Hashing`] defines near: a high Jaccard similarity, few differing bits, or a short Euclidean distance of
//!   vectors, whose text is their numbers in brackets.
//! - A document whose text is equal to an earlier one's, byte for byte, is a duplicate of it, and takes no space in the
//!   buckets. Otherwise it is a duplicate of the nearest kept document that is near, and of the earliest among equally
//!   near ones.
//! - Near-duplicates are in the buckets too, so that pairs and clusters include them; but a document is removed only as
//!   a duplicate of a kept one.
//! - A document without words is kept, unless another has the same text. It is not near any other.
//! - A bucket keeps its oldest ids. So of very many documents in one bucket each still meets the first ones, and most
//!   of the pairs among later ones are not found.
//!
//! ```
//! use nandex_neardup::{Document, Hashing, Index, IndexConfig, MinHashing, NearOptions, Repeats, Verdict};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("texts.nandex");
//! let config = IndexConfig { documents: 10_000, ..IndexConfig::default() };
//! let minhash = MinHashing { threshold: 0.5, ..MinHashing::default() };
//! let options = NearOptions { hashing: Hashing::MinHash(minhash), ..NearOptions::default() };
//! let mut index = Index::create(&path, &options, config)?;
//! let texts = ["the red fish saw a blue fish and a cat", "dogs bark", "The red fish saw a blue fish, and a dog"];
//! let documents = texts.iter().zip(1..).map(|(text, id)| Ok(Document::new(id.to_string(), *text)));
//! let mut removed = Vec::new();
//! index.update(documents, Repeats::Refuse, |document, outcome| {
//!     if let Verdict::Removed(found) = &outcome.verdict {
//!         removed.push((document.id.clone(), found.id.clone()));
//!     }
//!     Ok(())
//! })?;
//! assert_eq!(removed, [("3".to_owned(), "1".to_owned())]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod clusters;
mod error;
mod heap;
mod index;
pub mod lsh;
mod measure;
#[cfg(test)]
mod numbers;
mod options;
mod shingles;
mod summary;

pub use clusters::{Cluster, ClusterSizes, Clustered};
pub use error::{Error, Result};
#[cfg(feature = "testing")]
pub use index::testing;
pub use index::{
    Index, IndexStats, Match, Near, Outcome, PAIRS_MAX, Pair, Removed, Repeats, Updated, Verdict,
};
pub use measure::Measure;
pub use nandex_corpus::{Document, DocumentResult, documents};
pub use options::{
    Hashing, IndexConfig, MinHashing, NearOptions, PROBES_MAX, RAM_BYTES_MIN, SHINGLE_LENGTH_MAX,
    SKETCH_THREADS_MAX, Shingling, SimHashing, Unit, VectorHashing,
};
pub use shingles::Shingles;
pub use summary::{Example, IndexSummary, html};
