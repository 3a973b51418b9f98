//! The index: how many documents have each term, how often it occurs, and its text.
//!
//! ```text
//!   documents --analyse--> batch in RAM --added up--> df, cf: counts on flash
//!       |                                \--new terms--> texts on flash
//!       \--hash of id and text--> documents on flash
//! ```
//!
//! Invariants
//! 1. A count of a term is the sum over the documents in the index: no more, no less.
//! 2. Each term with a count above 0 has its text.
//! 3. A batch is counted whole, or the index says that it was interrupted: a durable mark is set before the first
//!    count of a batch, and taken away when all of them are durable.
//!
//! | operation | flash reads | flash writes |
//! |---|---|---|
//! | add or remove a document | about 0 for its id | 32 bytes |
//! | each different term of a batch | one for each of its two counts; two for its text unless it was seen lately | its counts |
//! | a new term | about 0 | its text, once, and its counts |
//! | listing the terms | the counts once, in sequence, and one for each text | 0 |
//!
//! RAM is fixed when the index is opened, whatever its vocabulary: see [`CorpusConfig::ram_bytes`].

mod batch;
mod counts;
mod merge;
mod state;
mod tables;
#[cfg(test)]
mod tests;
mod texts;
mod update;

use std::path::Path;

use nandex::{AnyTable, Table, Volume};

pub use batch::TERM_BYTES_MAX;
pub(crate) use counts::TermCounts;
pub(crate) use tables::create_dense;
pub use update::{Repeats, Updated};

use crate::tokenise::{Analyser, TermKey};
use crate::{Analysis, Error, Result};
use state::State;
use tables::Tables;
use texts::Texts;

/// The key of the state among the texts of terms; keys of terms have 16 bytes.
const STATE_KEY: &[u8] = b"state";

/// The least RAM of an index, in bytes.
pub const RAM_BYTES_MIN: u64 = 64 << 20;

/// What an index may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CorpusConfig {
    /// RAM of all its tables and batches, in bytes; 256 MiB by default and at least [`RAM_BYTES_MIN`]. It may be another
    /// at each opening. An index whose vocabulary needs more says so when a table cannot grow. The text at hand and its
    /// different terms, about 100 bytes each, are in RAM as a whole, so a very long document may take more.
    pub ram_bytes: u64,
    /// Bytes of flash for the texts of all terms, with about 60 more for each; 4 GiB by default. It is chosen when the
    /// index is made, and ignored at later openings. The file takes only what is used of it.
    pub text_bytes_max: u64,
}

impl Default for CorpusConfig {
    fn default() -> Self {
        Self { ram_bytes: 256 << 20, text_bytes_max: 4 << 30 }
    }
}

impl CorpusConfig {
    /// Refuses what cannot work.
    ///
    /// # Errors
    /// [`Error::Options`], naming the field.
    pub fn validate(&self) -> Result<()> {
        if self.ram_bytes < RAM_BYTES_MIN || self.ram_bytes > 1 << 40 {
            let reason = format!(
                "{} bytes; give {RAM_BYTES_MIN} (64 MiB) or more, and at most 1 TiB",
                self.ram_bytes
            );
            return Err(Error::option("ram_bytes", reason));
        }
        if !(1 << 20..=1 << 44).contains(&self.text_bytes_max) {
            let reason = format!("{} bytes; give 1 MiB to 16 TiB", self.text_bytes_max);
            return Err(Error::option("text_bytes_max", reason));
        }
        Ok(())
    }

    /// The RAM of one table.
    fn share(&self) -> u64 {
        self.ram_bytes / 8
    }

    /// The RAM of a batch.
    pub(crate) fn batch_bytes(&self) -> usize {
        usize::try_from(self.ram_bytes / 4).unwrap_or(usize::MAX / 4)
    }
}

/// What is known of a term.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TermFrequency {
    /// Documents that have it.
    pub documents: u64,
    /// How often it occurs in all of them.
    pub occurrences: u64,
}

/// What an index takes and has done since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CorpusStats {
    /// Bytes of RAM of its tables.
    pub ram_bytes: u64,
    /// Lookups of counts.
    pub lookups: u64,
    /// Pages of 4 KiB that these read.
    pub lookup_reads: u64,
}

/// An index of documents on flash.
///
/// One at a time changes it, so these calls take `&mut self`. Dropping it saves it; [`close`](Self::close) also tells
/// of a failure.
///
/// ```
/// use nandex_tfidf::{Analysis, Corpus, CorpusConfig, Document, Repeats};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("words.nandex");
/// let config = CorpusConfig { ram_bytes: 64 << 20, ..CorpusConfig::default() };
/// let mut corpus = Corpus::create(&path, &Analysis::default(), config)?;
/// let documents = [Document::new("1", "red fish, red cat"), Document::new("2", "blue fish")];
/// corpus.update(documents.map(Ok), Repeats::Refuse)?;
/// let fish = corpus.frequencies(&["fish", "red"])?;
/// assert_eq!((fish[0].documents, fish[1].documents, fish[1].occurrences), (2, 1, 2));
/// corpus.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Corpus {
    config: CorpusConfig,
    analyser: Analyser,
    state: State,
    df: Box<dyn TermCounts>,
    cf: Box<dyn TermCounts>,
    texts: Texts,
    documents: AnyTable,
}

impl Corpus {
    /// Makes an index in a new file.
    ///
    /// # Errors
    /// Options that cannot work, a file that exists, no space, a failed write.
    pub fn create(
        path: impl AsRef<Path>,
        analysis: &Analysis,
        config: CorpusConfig,
    ) -> Result<Self> {
        config.validate()?;
        analysis.validate()?;
        Self::create_in(&tables::create_volume(path.as_ref(), &config)?, analysis, config)
    }

    /// Makes an index in a volume that has none.
    ///
    /// # Errors
    /// As [`create`](Self::create); a volume with such structures.
    pub fn create_in(volume: &Volume, analysis: &Analysis, config: CorpusConfig) -> Result<Self> {
        config.validate()?;
        let analyser = Analyser::new(analysis)?;
        let tables = Tables::create(volume, &config)?;
        let state = State::new(analysis.clone(), config.text_bytes_max);
        let corpus = Self::of(tables, analyser, state, config);
        corpus.save_state()?;
        Ok(corpus)
    }

    /// Opens an index.
    ///
    /// # Errors
    /// A file that is no index or is in use, [`Error::Interrupted`], damage, a failed read.
    pub fn open(path: impl AsRef<Path>, config: CorpusConfig) -> Result<Self> {
        config.validate()?;
        Self::open_in(&tables::open_volume(path.as_ref())?, config)
    }

    /// Opens the index of a volume.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(volume: &Volume, config: CorpusConfig) -> Result<Self> {
        config.validate()?;
        let tables = Tables::open(volume, &config)?;
        let Some(bytes) = tables.texts.get(STATE_KEY)? else {
            let reason = "it has no state; give a file that was made for TF-IDF".into();
            return Err(Error::NoIndex { reason });
        };
        let state = State::decode(&bytes)?;
        let analyser = Analyser::new(&state.analysis)?;
        Ok(Self::of(tables, analyser, state, config))
    }

    fn of(tables: Tables, analyser: Analyser, state: State, config: CorpusConfig) -> Self {
        let Tables { df, cf, texts, documents } = tables;
        let texts = Texts::new(texts, &config, state.text_bytes_max);
        Self { config, analyser, state, df: Box::new(df), cf: Box::new(cf), texts, documents }
    }

    /// How its text becomes terms.
    #[must_use]
    pub fn analysis(&self) -> &Analysis {
        &self.state.analysis
    }

    /// How many documents it has.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.state.documents
    }

    /// How many terms all documents have, each counted as often as it occurs.
    #[must_use]
    pub fn occurrences(&self) -> u64 {
        self.state.occurrences
    }

    /// What is known of each of these terms, in their order. A term is looked up as it is given: one in capitals is in
    /// no index with lower case.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn frequencies<T: AsRef<str>>(&self, terms: &[T]) -> Result<Vec<TermFrequency>> {
        let key = |term: &T| TermKey::of(term.as_ref().as_bytes());
        let keys: Vec<TermKey> = terms.iter().map(key).collect();
        let documents = self.df.count_many(&keys)?;
        let occurrences = self.cf.count_many(&keys)?;
        let pairs = documents.into_iter().zip(occurrences);
        Ok(pairs.map(|(documents, occurrences)| TermFrequency { documents, occurrences }).collect())
    }

    /// What it takes and has done.
    #[must_use]
    pub fn stats(&self) -> CorpusStats {
        let (df, cf) = (self.df.lookup_reads(), self.cf.lookup_reads());
        let tables = self.df.ram_bytes() + self.cf.ram_bytes() + self.documents.stats().ram_bytes;
        CorpusStats {
            ram_bytes: tables + self.texts.ram_bytes(),
            lookups: df.1 + cf.1,
            lookup_reads: df.0 + cf.0,
        }
    }

    /// Makes everything durable and closes the file.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn close(self) -> Result<()> {
        self.df.sync()?;
        self.cf.sync()?;
        let Self { df, cf, texts, documents, .. } = self;
        drop((df, cf));
        documents.close()?;
        Ok(texts.into_table().close()?)
    }

    pub(crate) fn analyser(&self) -> &Analyser {
        &self.analyser
    }

    pub(crate) fn config(&self) -> CorpusConfig {
        self.config
    }

    pub(crate) fn df(&self) -> &dyn TermCounts {
        &*self.df
    }

    pub(crate) fn cf(&self) -> &dyn TermCounts {
        &*self.cf
    }

    /// The texts of terms of this index, in their order.
    pub(crate) fn texts_of(&self, keys: &[TermKey]) -> Result<Vec<Vec<u8>>> {
        self.texts.get_many(keys)
    }

    /// Refuses to use counts that may be wrong.
    pub(crate) fn check_whole(&self) -> Result<()> {
        if self.state.is_counting { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Makes the state durable, and everything that was put before.
    fn save_state(&self) -> Result<()> {
        self.texts.put_durably(STATE_KEY, &self.state.encode())
    }
}

impl std::fmt::Debug for Corpus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { config, state, .. } = self;
        f.debug_struct("Corpus")
            .field("config", config)
            .field("state", state)
            .finish_non_exhaustive()
    }
}
