//! The rank index: for each term the documents that have it, so that a query reads the postings of its terms and not
//! all documents.
//!
//! ```text
//!   documents --weighed--> postings by document --sorted, in files--> postings by term
//!                     \--> lengths, ids                                    |
//!                                                            tree: text -> its postings
//!   query --terms--> tree --> postings, side by side by document --lengths--> cosines --heap--> best --> ids
//! ```
//!
//! It is for one selection and one weighting, which fix the lengths of rows, and for the counts of the index at its
//! creation: an added or removed document changes idf and so all lengths. Its sums have the order of a scan's, so the
//! cosines are the same, bit for bit.
//!
//! Invariants
//! 1. It exists as a whole or not at all: the state names it once all its blocks are durable.
//! 2. A state that counts other documents does not name it.
//! 3. Postings of a term ascend by document. Terms ascend by code points.
//!
//! | operation | flash reads | flash writes |
//! |---|---|---|
//! | create it | a listing of the index | its sections once, in sequence; two records of the state |
//! | a query | a node of each level for each term, the terms' postings, lengths of documents that have them | 0 |
//! | each document that is printed | its id, and a block of lengths | 0 |

mod format;
mod read;
mod sort;
#[cfg(test)]
mod tests;
mod tree;
mod write;

use std::path::{Path, PathBuf};

use nandex_corpus::DocumentResult;
use serde::Serialize;

use crate::corpus::{RankedBlocks, RankedInfo};
use crate::model::Weigher;
use crate::{Corpus, Model, Ranked, Result, Selection, Weighting};
use write::Gathered;

/// The options of a rank index.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Indexing {
    /// The selection of the terms of its rows.
    pub selection: Selection,
    /// The weighting of these.
    pub weighting: Weighting,
    /// The caller's name for its documents. It is stored, and has no meaning here.
    pub source: String,
}

/// The figures of a rank index.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Indexed {
    /// The number of documents that it ranks.
    pub documents: u64,
    /// The number of terms of its rows.
    pub terms: u64,
    /// The number of pairs of a document and one of its terms.
    pub postings: u64,
    /// The bytes of flash that it takes.
    pub bytes: u64,
}

/// The reason for the absence of a rank index for some options.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NoRankIndex {
    /// None was created.
    #[error("the index has no rank index")]
    Missing,
    /// Documents were added or removed after its creation, which removed it.
    #[error("documents were added or removed since the rank index was made")]
    Stale,
    /// It was created with other options.
    #[error(
        "the rank index was made with other options of terms and weights: expected {expected}, found {found}"
    )]
    OtherOptions {
        /// The requested options.
        expected: String,
        /// Its own options.
        found: String,
    },
}

/// The result of a query in a rank index.
#[derive(Clone, PartialEq, Debug)]
pub struct RankAnswer {
    /// The documents, the most similar first.
    pub ranked: Vec<Ranked>,
    /// The number of documents that share a term with the query.
    pub documents: u64,
    /// The number of read operations of flash.
    pub reads: u64,
    /// The number of pages of 4 KiB that these read.
    pub pages_read: u64,
}

/// The rank index of an index, for queries.
///
/// ```
/// use nandex_tfidf::{Analysis, Corpus, CorpusConfig, Document, Indexing, RankIndex, Repeats};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("words.nandex");
/// let mut corpus = Corpus::create(&path, &Analysis::default(), CorpusConfig::default())?;
/// let documents = [Document::new("1", "red fish, red cat"), Document::new("2", "blue fish")];
/// corpus.update(documents.clone().map(Ok), Repeats::Refuse)?;
/// let indexing = Indexing::default();
/// corpus.index(documents.map(Ok), &indexing, None)?;
///
/// let index = RankIndex::of(&corpus, &indexing.selection, indexing.weighting)?;
/// let answer = index.rank("red", 10)?;
/// assert_eq!((answer.ranked[0].id.as_str(), answer.documents), ("1", 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RankIndex<'c> {
    corpus: &'c Corpus,
    blocks: RankedBlocks<'c>,
    info: RankedInfo,
    weigher: Weigher,
}

impl Corpus {
    /// Creates a rank index of documents, and replaces an existing one. These are usually the documents that were
    /// counted, but need not be.
    ///
    /// Weighs all documents, and sorts their postings in files of `scratch` that vanish; `None` for the system's folder
    /// for temporary files. RAM is that of [`Model::fit`] and of [`Model::rows`], and another quarter of the index's.
    /// After an error or a crash the index is in its state before. The next added or removed document makes it stale,
    /// and frees its space.
    ///
    /// # Errors
    /// As [`Model::fit`] and [`Model::rows`]; more than 2^32 - 1 documents; no space, a failed write.
    pub fn index(
        &mut self,
        documents: impl IntoIterator<Item = DocumentResult>,
        indexing: &Indexing,
        scratch: Option<&Path>,
    ) -> Result<Indexed> {
        self.check_changeable()?;
        let folder = scratch.map_or_else(std::env::temp_dir, PathBuf::from);
        let (selection, weighting) = (&indexing.selection, indexing.weighting);
        let model = Model::fit(self, selection, weighting, Some(&folder))?;
        let ram_bytes = self.config().batch_bytes();
        let gathered = Gathered::read(&model, documents, (&folder, ram_bytes))?;
        let (weigher, vocabulary) = model.into_parts();
        let mut indexed = Indexed {
            documents: gathered.documents_count.into(),
            terms: vocabulary.len(),
            postings: gathered.postings_count,
            bytes: 0,
        };
        let blocks_max = gathered.blocks_max(&vocabulary);
        self.put_ranked(blocks_max, |blocks| {
            let written = write::write(blocks, gathered, (&vocabulary, weigher))?;
            indexed.bytes = written.bytes;
            let Indexed { documents, terms, postings, bytes } = indexed;
            Ok(RankedInfo {
                run: blocks.run(),
                blocks: blocks_max,
                options: options(selection, weighting),
                source: indexing.source.clone(),
                documents,
                terms,
                postings,
                bytes,
                root: written.root,
                height: written.height,
            })
        })?;
        Ok(indexed)
    }
}

impl<'c> RankIndex<'c> {
    /// Returns the rank index that was created with these options.
    ///
    /// # Errors
    /// There is none for them, and the reason.
    pub fn of(
        corpus: &'c Corpus,
        selection: &Selection,
        weighting: Weighting,
    ) -> std::result::Result<Self, NoRankIndex> {
        let info = match corpus.ranked() {
            (Some(info), _) => info.clone(),
            (None, true) => return Err(NoRankIndex::Stale),
            (None, false) => return Err(NoRankIndex::Missing),
        };
        let (expected, found) = (options(selection, weighting), info.options.clone());
        if expected != found {
            return Err(NoRankIndex::OtherOptions { expected, found });
        }
        let weigher = Weigher { weighting, documents: corpus.documents() };
        Ok(Self { corpus, blocks: corpus.ranked_blocks(info.run), info, weigher })
    }

    /// Returns its source, as given at its creation.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.info.source
    }

    /// Returns its figures.
    #[must_use]
    pub fn figures(&self) -> Indexed {
        let RankedInfo { documents, terms, postings, bytes, .. } = self.info;
        Indexed { documents, terms, postings, bytes }
    }
}

/// Returns options as text that is equal if and only if they are.
fn options(selection: &Selection, weighting: Weighting) -> String {
    // Structures of numbers and words have a JSON form.
    serde_json::to_string(&(selection, weighting)).unwrap_or_default()
}
