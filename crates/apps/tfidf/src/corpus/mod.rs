//! The index: for each term the number of documents with it, the number of its occurrences, and its text.
//!
//! ```text
//!   documents --analyse--> batch in RAM --sorted--> run on flash --+
//!       |                                          run on flash --+--folded--> df, cf: counting tables; texts
//!       \--hash of id and text--> documents on flash
//! ```
//!
//! This is the counting hash table of "Hash in a Flash" again, one level up: the batch is H_R, the runs are its change
//! segment S_E, and the counting tables are H_D. The difference is that a batch takes effect as a whole or not at all.
//!
//! Invariants
//! 1. The count of a term is the sum of its counts in the tables and all runs: the sum over the documents in the index.
//! 2. Each term with a count above 0 has its text, in the run of texts or in a run.
//! 3. A state names the tables and the runs that count. They are durable before the state names them.
//! 4. Documents of the state's last batch are in its blocks until the table of documents has them durably.
//!
//! | operation | flash reads | flash writes |
//! |---|---|---|
//! | add or remove a document | about 0 for its id | 64 bytes |
//! | each different term of a batch | 0 | its text and some 5 bytes; about as much again in each merge of runs |
//! | a batch | about 0 | two records of the state, and some syncs |
//! | a fold | all runs and tables, once, in sequence | the texts and the tables, once |
//! | the counts of a term | a page of each table, a block of 64 KiB of each run | 0 |
//! | listing the terms | all runs and tables, once, in sequence | 0 |
//!
//! RAM is fixed when the index is opened, whatever its vocabulary: see [`CorpusConfig::ram_bytes`].

mod batch;
mod commit;
mod counts;
mod fold;
mod merge;
mod ranked;
mod runs;
mod state;
#[cfg(test)]
mod sweep;
mod tables;
#[cfg(test)]
mod tests;
mod update;

use std::path::Path;

use nandex::large::ValuesConfig;
use nandex::raw::Stated;
use nandex::{AnyTable, Table, Volume};
use nandex_corpus::tables::{create_volume, growing_values, open_volume};

pub use batch::TERM_BYTES_MAX;
pub(crate) use ranked::{RankedBlocks, RankedInfo, Section};
pub use update::{Repeats, Updated};

use crate::tokenise::{Analyser, TermKey};
use crate::{Analysis, Error, Result};
use counts::CountTables;
use fold::frequency;
use runs::{Blocks, Delta};
use state::State;
use tables::Tables;

/// The least RAM of an index, in bytes.
pub const RAM_BYTES_MIN: u64 = 64 << 20;

/// The limits of an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CorpusConfig {
    /// RAM of all its tables and batches, in bytes; 256 MiB by default and at least [`RAM_BYTES_MIN`]. It may differ
    /// between openings. If the vocabulary of an index needs more, an error reports that a table cannot grow. The
    /// different terms of a document are in RAM as a whole: one whose terms take more than three eighths of it is
    /// refused, with the RAM that it needs.
    pub ram_bytes: u64,
}

impl Default for CorpusConfig {
    fn default() -> Self {
        Self { ram_bytes: 256 << 20 }
    }
}

impl CorpusConfig {
    /// Checks the values.
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
        Ok(())
    }

    /// Returns the length of the log of a volume for a new index, in bytes: a sixteenth of the RAM, 8 MiB at least and
    /// 64 MiB at most.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        tables::log_bytes(self)
    }

    /// Returns the RAM of incoming documents.
    fn update_bytes(&self) -> usize {
        usize::try_from(self.ram_bytes / 8 * 3).unwrap_or(usize::MAX / 4)
    }

    /// Returns the RAM of a part of a model.
    pub(crate) fn batch_bytes(&self) -> usize {
        usize::try_from(self.ram_bytes / 4).unwrap_or(usize::MAX / 4)
    }
}

/// The counts of a term.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TermFrequency {
    /// The number of documents that have it.
    pub documents: u64,
    /// The number of its occurrences in all of them.
    pub occurrences: u64,
}

/// The memory and the counters of an index since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CorpusStats {
    /// Bytes of RAM of its tables.
    pub ram_bytes: u64,
    /// The number of lookups of counts.
    pub lookups: u64,
    /// The number of pages of 4 KiB that these read.
    pub lookup_reads: u64,
}

/// An index of documents on flash.
///
/// Calls that change it take `&mut self`. Dropping it saves it; [`close`](Self::close) also reports failures.
///
/// ```
/// use nandex_tfidf::{Analysis, Corpus, CorpusConfig, Document, Repeats};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("words.nandex");
/// let config = CorpusConfig { ram_bytes: 64 << 20 };
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
    volume: Volume,
    /// Options of tables created later.
    stated: Stated,
    /// The tables of the state's generation.
    tables: Option<CountTables>,
    blocks: Blocks,
    documents: AnyTable,
    /// The number of runs at which some are merged, and the RAM of a batch in bytes.
    runs_max: usize,
    batch_bytes: usize,
    /// Runs from this one on were begun since the last commit.
    begun_from: u64,
    /// Whether a commit has failed, so that it is unknown whether it counts.
    is_unsure: bool,
}

impl Corpus {
    /// Creates an index in a new file.
    ///
    /// # Errors
    /// Invalid options, an existing file, no space, a failed write.
    pub fn create(
        path: impl AsRef<Path>,
        analysis: &Analysis,
        config: CorpusConfig,
    ) -> Result<Self> {
        config.validate()?;
        analysis.validate()?;
        let db = create_volume(path.as_ref(), config.log_bytes())?;
        Self::create_in(db.volume(), analysis, config)
    }

    /// Creates an index in a volume that has none.
    ///
    /// # Errors
    /// As [`create`](Self::create); a volume with such structures.
    pub fn create_in(volume: &Volume, analysis: &Analysis, config: CorpusConfig) -> Result<Self> {
        Self::create_stated(volume, (analysis, &Stated::default()), config)
    }

    /// Creates the same with stated parameters of its table of documents in place of the configured ones, and with
    /// options of all its tables for this opening.
    ///
    /// # Errors
    /// As [`create`](Self::create); parameters that this table cannot have.
    pub fn create_stated(
        volume: &Volume,
        (analysis, stated): (&Analysis, &Stated),
        config: CorpusConfig,
    ) -> Result<Self> {
        Self::create_with(volume, (analysis, stated), config, growing_values())
    }

    /// Creates the same with a value log of these sizes for its blocks.
    fn create_with(
        volume: &Volume,
        (analysis, stated): (&Analysis, &Stated),
        config: CorpusConfig,
        values: ValuesConfig,
    ) -> Result<Self> {
        config.validate()?;
        let analyser = Analyser::new(analysis)?;
        let tables = Tables::create(volume, (&config, stated), values)?;
        let state = State::new(analysis.clone());
        let blocks = Blocks::new(tables.texts, volume.hasher());
        blocks.put_state(&state.encode())?;
        Ok(Self {
            runs_max: fold::runs_max(config.ram_bytes),
            batch_bytes: config.update_bytes(),
            config,
            analyser,
            begun_from: state.next_run,
            state,
            volume: volume.clone(),
            stated: stated.clone(),
            tables: None,
            blocks,
            documents: tables.documents,
            is_unsure: false,
        })
    }

    /// Opens an index.
    ///
    /// # Errors
    /// A file that is not an index or is in use, damage, a failed read.
    pub fn open(path: impl AsRef<Path>, config: CorpusConfig) -> Result<Self> {
        config.validate()?;
        Self::open_in(open_volume(path.as_ref())?.volume(), config)
    }

    /// Opens the index of a volume.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(volume: &Volume, config: CorpusConfig) -> Result<Self> {
        Self::open_stated(volume, config, &Stated::default())
    }

    /// Opens the same with stated options of all its tables; its table of documents must have the stated parameters.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`Stated::check`].
    pub fn open_stated(volume: &Volume, config: CorpusConfig, stated: &Stated) -> Result<Self> {
        config.validate()?;
        let tables = Tables::open(volume, (&config, stated))?;
        let blocks = Blocks::new(tables.texts, volume.hasher());
        let Some(bytes) = blocks.state()? else {
            let reason = "it has no state; give a file that was made for TF-IDF".into();
            return Err(Error::NoIndex { reason });
        };
        let state = State::decode(&bytes)?;
        let analyser = Analyser::new(&state.analysis)?;
        let generation = state.generation;
        let open = || CountTables::open(volume, generation, stated);
        let counts = (generation > 0).then(open).transpose()?;
        let mut corpus = Self {
            runs_max: fold::runs_max(config.ram_bytes),
            batch_bytes: config.update_bytes(),
            config,
            analyser,
            begun_from: state.next_run,
            blocks,
            state,
            volume: volume.clone(),
            stated: stated.clone(),
            tables: counts,
            documents: tables.documents,
            is_unsure: false,
        };
        corpus.recover()?;
        Ok(corpus)
    }

    /// Ends the work that the last process may have left: documents of a batch that counts, blocks and tables that do
    /// not. A read-only index needs none of that: only updates look up which documents exist.
    fn recover(&mut self) -> Result<()> {
        if self.volume.is_read_only() {
            return Ok(());
        }
        let generation = self.state.generation;
        counts::remove_others(&self.volume, |found| found == generation)?;
        self.remove_unused()?;
        self.apply_documents()
    }

    /// Returns how its text becomes terms.
    #[must_use]
    pub fn analysis(&self) -> &Analysis {
        &self.state.analysis
    }

    /// Returns the number of its documents.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.state.documents
    }

    /// Returns the number of occurrences of all terms in all documents.
    #[must_use]
    pub fn occurrences(&self) -> u64 {
        self.state.occurrences
    }

    /// Returns the counts of each of these terms, in their order. A term is looked up as given: a term in capitals is
    /// not in an index with lower case.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn frequencies<T: AsRef<str>>(&self, terms: &[T]) -> Result<Vec<TermFrequency>> {
        let texts: Vec<&[u8]> = terms.iter().map(|term| term.as_ref().as_bytes()).collect();
        let keys: Vec<TermKey> = texts.iter().map(|text| TermKey::of(text)).collect();
        let mut deltas = match &self.tables {
            Some(tables) => tables.find_many(&keys)?,
            None => vec![Delta::default(); keys.len()],
        };
        let placed: Vec<(u64, &[u8])> =
            keys.iter().map(|key| self.blocks.place(key)).zip(texts.iter().copied()).collect();
        // An index of earlier than this check may have named runs without terms, which have no blocks.
        for run in self.state.runs.iter().filter(|run| run.terms > 0) {
            runs::add_found(&self.blocks, run, &placed, &mut deltas)?;
        }
        let pairs = texts.into_iter().zip(deltas);
        pairs.map(|(text, delta)| Ok(frequency(text, delta)?.unwrap_or_default())).collect()
    }

    /// Calls `take` with the key, the text and the counts of each term that a document has, in an arbitrary order.
    /// Costs a reading of everything once, in sequence.
    ///
    /// # Errors
    /// Those of `take`; a failed read, damage, different terms of one hash.
    pub(crate) fn for_each_term(
        &self,
        mut take: impl FnMut(&TermKey, &[u8], TermFrequency) -> Result<()>,
    ) -> Result<()> {
        self.merged()?.for_each(|total| match frequency(total.text, total.delta)? {
            Some(frequency) => take(&total.key, total.text, frequency),
            None => Ok(()),
        })
    }

    /// Returns its memory and its counters.
    #[must_use]
    pub fn stats(&self) -> CorpusStats {
        let tables = self.tables.as_ref();
        let (lookup_reads, lookups) = tables.map_or((0, 0), CountTables::lookup_reads);
        let others = self.documents.stats().ram_bytes + self.blocks.ram_bytes();
        let ram_bytes = tables.map_or(0, CountTables::ram_bytes) + others;
        CorpusStats { ram_bytes, lookups, lookup_reads }
    }

    /// Makes everything durable and closes the file.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn close(self) -> Result<()> {
        let Self { tables, blocks, documents, .. } = self;
        tables.map_or(Ok(()), CountTables::close)?;
        documents.close()?;
        Ok(blocks.into_table().close()?)
    }

    pub(crate) fn analyser(&self) -> &Analyser {
        &self.analyser
    }

    pub(crate) fn config(&self) -> CorpusConfig {
        self.config
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
