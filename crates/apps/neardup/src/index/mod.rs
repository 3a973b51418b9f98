//! The index: its documents, and which are near-duplicates of which.
//!
//! ```text
//!   documents --hash of id, of text--> keys: known? an equal text?                       --> a document's number
//!       | new text                                                                             |
//!       '--shingles--> signature --bucket keys--> alike: candidates --their records--> estimates, a decision
//!                                                                                              |
//!                                                       record: name, decision, pairs, signature
//! ```
//!
//! Invariants
//! 1. A document counts if its number is below the state's and its record exists. The state becomes durable only after
//!    the records, keys and buckets of all documents below its number.
//! 2. The tables of keys and buckets give hints: a hint is valid only if the record of that number has the same id, the
//!    same text, or a near signature. So the remains of a batch that does not count after a crash do no harm.
//! 3. A number is never reused, except for those of a batch that did not count.
//!
//! | operation | flash reads | flash writes |
//! |---|---|---|
//! | add a new document | one in each table that has its bucket, two per candidate | its record, two keys, its buckets
//! |
//! | add an equal text | four: the other's key and record | its record without a signature; a key |
//! | ask for a document | as adding it | 0 |
//! | remove a document | the key of its id, where its record is, its record | a removal in each table |
//! | remove many | the same, but each page once for a batch | the same, and the state twice for a batch |
//! | a batch | 0 | a record of the state, and some syncs |
//! | list pairs | two for each document, and two for each pair | 0 |
//!
//! RAM is fixed when the index is opened: see [`IndexConfig::ram_bytes`].

mod batch;
#[cfg(test)]
mod brute;
mod decide;
#[cfg(test)]
mod families;
mod numbers;
mod pairs;
mod query;
mod record;
#[cfg(test)]
mod removals;
mod remove;
mod state;
#[cfg(test)]
mod sweep;
mod tables;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(test)]
mod tests;
mod update;
mod verify;

use std::collections::HashMap;
use std::path::Path;

use nandex::raw::Stated;
use nandex::raw::signature::{Bands, Family, Sketcher};
use nandex::{AnyNeighbors, AnyTable, LargeTable, NeighborsStats, Table, Volume};
use nandex_corpus::documents::Content;
use nandex_corpus::tables::{create_volume, is_full, open_volume};
use twox_hash::XxHash3_128;

pub use pairs::Pair;
pub use query::Near;
pub use remove::Removed;
pub use update::{Match, Outcome, PAIRS_MAX, Repeats, Updated, Verdict};

use crate::measure::described;
use crate::options::check_near;
use crate::{Error, IndexConfig, Measure, NearOptions, Result, Shingling};
use numbers::{Hash, NUMBER_BYTES, numbers_of};
use record::Record;
use state::State;
use tables::Tables;

/// The key of the state among the records; it is longer than a number.
const STATE_KEY: &[u8] = b"neardup-state";

/// Seeds of the hashes of ids and of texts, so that the two never match.
const ID_SEED: u64 = 1;
const TEXT_SEED: u64 = 2;

/// The memory and the counters of an index since it was opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexStats {
    /// Bytes of RAM of its tables.
    pub ram_bytes: u64,
    /// Bytes of flash of its tables.
    pub flash_bytes: u64,
    /// The number of records of candidates and of known documents that were read.
    pub records_read: u64,
    /// The number of computed signatures.
    pub signatures: u64,
    /// The statistics of the index of neighbours.
    pub neighbors: NeighborsStats,
}

/// An index of documents on flash.
///
/// Calls that change it take `&mut self`. Dropping it saves it; [`close`](Self::close) also reports failures.
pub struct Index {
    config: IndexConfig,
    sketcher: Sketcher,
    state: State,
    volume: Volume,
    records: LargeTable<AnyTable>,
    keys: AnyTable,
    alike: AnyNeighbors,
    records_read: std::sync::atomic::AtomicU64,
    signatures: std::sync::atomic::AtomicU64,
    /// The most documents of a batch.
    batch_documents: usize,
    /// Whether a commit has failed, so that it is unknown whether it counts.
    is_unsure: bool,
}

impl Index {
    /// Creates an index in a new file.
    ///
    /// # Errors
    /// Invalid options, an existing file, no space, a failed write.
    pub fn create(
        path: impl AsRef<Path>,
        options: &NearOptions,
        config: IndexConfig,
    ) -> Result<Self> {
        let log_bytes = Self::log_bytes(options, config)?;
        Self::create_in(create_volume(path.as_ref(), log_bytes)?.volume(), options, config)
    }

    /// Creates an index in a volume that has none.
    ///
    /// # Errors
    /// As [`create`](Self::create); a volume with such structures.
    pub fn create_in(volume: &Volume, options: &NearOptions, config: IndexConfig) -> Result<Self> {
        Self::create_stated(volume, (options, &Stated::default()), config)
    }

    /// Creates the same with stated parameters of its index of neighbours in place of the configured ones, and with
    /// options of all its structures for this opening, as in `log_bytes_stated`.
    ///
    /// # Errors
    /// As [`create`](Self::create); parameters that an index of near-duplicates cannot have.
    pub fn create_stated(
        volume: &Volume,
        (options, stated): (&NearOptions, &Stated),
        config: IndexConfig,
    ) -> Result<Self> {
        config.validate()?;
        let family = options.family()?;
        let tables = Tables::create(volume, (&family, stated), &config)?;
        Self::begin(volume, (options, family), (config, tables))
    }

    /// Returns the length of the log of a volume for a new index, in bytes.
    ///
    /// # Errors
    /// Invalid options.
    pub fn log_bytes(options: &NearOptions, config: IndexConfig) -> Result<u64> {
        Self::log_bytes_stated((options, &Stated::default()), config)
    }

    /// Returns the same for stated parameters of its index of neighbours.
    ///
    /// # Errors
    /// As [`create_stated`](Self::create_stated).
    pub fn log_bytes_stated(
        (options, stated): (&NearOptions, &Stated),
        config: IndexConfig,
    ) -> Result<u64> {
        config.validate()?;
        tables::log_bytes((&options.family()?, stated), &config)
    }

    fn begin(
        volume: &Volume,
        (options, family): (&NearOptions, Family),
        (config, tables): (IndexConfig, Tables),
    ) -> Result<Self> {
        let (threshold, probes) = (options.hashing.threshold(), options.hashing.probes());
        let state = State::new(options.shingling, threshold).probing(probes);
        let mut index = Self::over(volume, (config, tables), (state.clone(), family.sketcher()?));
        index.put_state(state)?;
        Ok(index)
    }

    fn over(
        volume: &Volume,
        (config, tables): (IndexConfig, Tables),
        (state, sketcher): (State, Sketcher),
    ) -> Self {
        let Tables { records, keys, alike } = tables;
        Self {
            config,
            sketcher,
            state,
            volume: volume.clone(),
            records,
            keys,
            alike,
            records_read: Default::default(),
            signatures: Default::default(),
            batch_documents: batch::BATCH_DOCUMENTS,
            is_unsure: false,
        }
    }

    /// Opens an index.
    ///
    /// # Errors
    /// A file that is not an index or is in use, damage, a failed read.
    pub fn open(path: impl AsRef<Path>, config: IndexConfig) -> Result<Self> {
        Self::open_in(open_volume(path.as_ref())?.volume(), config)
    }

    /// Opens the index of a volume.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(volume: &Volume, config: IndexConfig) -> Result<Self> {
        Self::open_stated(volume, config, &Stated::default())
    }

    /// Opens the same with stated options of all its structures; its index of neighbours must have the stated
    /// parameters.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`Stated::check`].
    pub fn open_stated(volume: &Volume, config: IndexConfig, stated: &Stated) -> Result<Self> {
        config.validate()?;
        Self::resume(volume, (config, Tables::open(volume, (&config, stated))?))
    }

    fn resume(volume: &Volume, (config, tables): (IndexConfig, Tables)) -> Result<Self> {
        let Some(bytes) = tables.records.get(STATE_KEY)? else {
            let reason = "it has no state; give a file that was made for near-duplicates".into();
            return Err(Error::NoIndex { reason });
        };
        let state = State::decode(&bytes)?;
        let family = Family::decode(tables.alike.family())?;
        check_near(&family, state.threshold)?;
        let mut index = Self::over(volume, (config, tables), (state, family.sketcher()?));
        index.recover()?;
        Ok(index)
    }

    /// Ends a removal that the last process may have left. A read-only index needs no recovery: documents under removal
    /// do not count.
    fn recover(&mut self) -> Result<()> {
        if self.volume.is_read_only() { Ok(()) } else { self.finish_removal() }
    }

    /// Fails if the index was created with other options, such as another family.
    ///
    /// # Errors
    /// [`Error::OtherOptions`]; invalid options.
    pub fn check_options(&self, options: &NearOptions) -> Result<()> {
        let family = options.family()?;
        let hashing = &options.hashing;
        let asked = State::new(options.shingling, hashing.threshold()).probing(hashing.probes());
        let expected = shown(&asked, &family);
        let found = shown(&self.state, self.family());
        let is_same = expected == found && family == *self.family();
        if is_same { Ok(()) } else { Err(Error::OtherOptions { expected, found }) }
    }

    /// Returns how text becomes shingles.
    #[must_use]
    pub fn shingling(&self) -> Shingling {
        self.state.shingling
    }

    /// Returns the threshold of near-duplicates: a similarity or a distance, in its [`measure`](Self::measure).
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.state.threshold
    }

    /// Returns the family of hashes.
    #[must_use]
    pub fn family(&self) -> &Family {
        self.sketcher.family()
    }

    /// Returns the measure of how near two documents are.
    #[must_use]
    pub fn measure(&self) -> Measure {
        Measure::of(self.family())
    }

    /// Returns the kind of its documents: texts, or vectors.
    #[must_use]
    pub fn content(&self) -> Content {
        match self.family() {
            Family::PStable { dimensions, .. } => {
                Content::Vector { dimensions: *dimensions as usize }
            }
            _ => Content::Text,
        }
    }

    /// Returns the number of cells next to its own that a lookup of a vector tries in each table; 0 for texts.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.state.probes
    }

    /// Returns how signatures become bucket keys, if they are MinHashes.
    #[must_use]
    pub fn bands(&self) -> Option<Bands> {
        match *self.family() {
            Family::MinHash { bands, .. } => Some(bands),
            _ => None,
        }
    }

    /// Returns about how many documents with different texts it can take.
    #[must_use]
    pub fn documents_capacity(&self) -> u64 {
        self.alike.config().describe().entries_capacity / u64::from(self.family().tables())
    }

    /// Returns the number of its documents, including duplicates.
    #[must_use]
    pub fn documents(&self) -> u64 {
        let counts = self.state.counts;
        counts.kept + counts.exact + counts.near
    }

    /// Returns the number of documents that were new on arrival.
    #[must_use]
    pub fn kept(&self) -> u64 {
        self.state.counts.kept
    }

    /// Returns the number of documents that had the text of another one.
    #[must_use]
    pub fn exact(&self) -> u64 {
        self.state.counts.exact
    }

    /// Returns the number of documents that were near another one.
    #[must_use]
    pub fn near(&self) -> u64 {
        self.state.counts.near
    }

    /// Returns its memory and its counters.
    #[must_use]
    pub fn stats(&self) -> IndexStats {
        use std::sync::atomic::Ordering::Relaxed;
        let (records, keys, neighbors) =
            (self.records.stats(), self.keys.stats(), self.alike.stats());
        IndexStats {
            ram_bytes: records.ram_bytes + keys.ram_bytes + neighbors.ram_bytes,
            flash_bytes: records.table.flash_bytes
                + records.values.flash_bytes
                + keys.flash_bytes
                + neighbors.flash_bytes,
            records_read: self.records_read.load(Relaxed),
            signatures: self.signatures.load(Relaxed),
            neighbors,
        }
    }

    /// Makes everything durable and closes the file.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn close(self) -> Result<()> {
        let Self { records, keys, alike, .. } = self;
        alike.close()?;
        keys.close()?;
        Ok(records.close()?)
    }

    pub(crate) fn config(&self) -> IndexConfig {
        self.config
    }

    /// Fails if a commit failed before, so that it is unknown whether it counts.
    fn check_sure(&self) -> Result<()> {
        if self.is_unsure { Err(Error::Unsure) } else { Ok(()) }
    }

    /// Replaces the state, durably.
    fn put_state(&mut self, next: State) -> Result<()> {
        let put = self.records.put(STATE_KEY, &next.encode()).map_err(refused);
        match put.and_then(|()| Ok(self.records.sync()?)) {
            Ok(()) => {
                self.state = next;
                Ok(())
            }
            // It failed before anything was written.
            Err(error @ Error::NoSpace(_)) => Err(error),
            Err(error) => {
                self.is_unsure = true;
                Err(error)
            }
        }
    }

    /// Returns the records of those of these documents that count, by their numbers. Each is read once, and the reads
    /// overlap.
    fn records_by_number(&self, mut numbers: Vec<u64>) -> Result<HashMap<u64, Record>> {
        numbers.sort_unstable();
        numbers.dedup();
        let records = self.records_of(&numbers)?;
        let found = numbers.into_iter().zip(records);
        Ok(found.filter_map(|(number, record)| Some((number, record?))).collect())
    }

    /// Returns the records of these documents, in their order; `None` for those that do not count. Their reads overlap.
    fn records_of(&self, numbers: &[u64]) -> Result<Vec<Option<Record>>> {
        self.stored_records(numbers, |number| self.counts(number))
    }

    /// Returns the records of the wanted documents among these, in their order; `None` for the others.
    fn stored_records(
        &self,
        numbers: &[u64],
        is_wanted: impl Fn(u64) -> bool,
    ) -> Result<Vec<Option<Record>>> {
        let keys: Vec<[u8; NUMBER_BYTES]> = numbers.iter().map(|it| number_key(*it)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        self.records_read.fetch_add(keys.len() as u64, std::sync::atomic::Ordering::Relaxed);
        let found = self.records.get_many(&keys)?.into_iter().zip(numbers);
        found
            .map(|(bytes, number)| match bytes {
                Some(bytes) if is_wanted(*number) => Record::decode(&bytes, *number).map(Some),
                _ => Ok(None),
            })
            .collect()
    }

    /// Returns whether a document of this number counts if its record exists.
    fn counts(&self, number: u64) -> bool {
        number < self.state.next && !self.state.removing.contains(&number)
    }

    /// Returns the numbers under these keys.
    fn numbers_of(&self, keys: &[Hash]) -> Result<Vec<Option<u64>>> {
        Ok(numbers_of(&self.keys, keys)?)
    }
}

/// Describes a state and a family in words.
fn shown(state: &State, family: &Family) -> String {
    let near = match Measure::of(family) {
        Measure::Jaccard => format!("{} or more", state.threshold),
        Measure::Hamming | Measure::Euclidean => {
            format!("a distance of {} or less", state.threshold)
        }
    };
    let more = match family {
        Family::PStable { .. } => format!("{} probes", state.probes),
        _ => {
            let shingling = serde_json::to_string(&state.shingling).unwrap_or_default();
            format!("shingles {shingling}")
        }
    };
    format!("{}, near with {near}, {more}", described(family))
}

/// Returns the key of a document's record.
fn number_key(number: u64) -> [u8; NUMBER_BYTES] {
    number.to_be_bytes()
}

/// Returns the hash of an id in the table of keys.
fn id_hash(id: &str) -> Hash {
    XxHash3_128::oneshot_with_seed(ID_SEED, id.as_bytes()).to_le_bytes()
}

/// Returns the hash of a text there.
fn text_hash(text: &str) -> Hash {
    XxHash3_128::oneshot_with_seed(TEXT_SEED, text.as_bytes()).to_le_bytes()
}

/// Converts the error of an update; a lack of space that changed nothing becomes [`Error::NoSpace`].
fn refused(error: nandex::Error) -> Error {
    if is_full(&error) { Error::NoSpace(error) } else { error.into() }
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { config, state, .. } = self;
        f.debug_struct("Index")
            .field("config", config)
            .field("state", state)
            .finish_non_exhaustive()
    }
}
