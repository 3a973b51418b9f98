//! Documents by the bucket keys of their signatures, with any bytes as names: what `MinHashLSH` of datasketch is, on
//! flash.
//!
//! ```text
//!   hashvalues, a row a document --bands--> a bucket key of 8 bytes for each band -.
//!                                                                                   >-- waiting --a batch--> tables
//!   name: any bytes --------------------------------------------------------------'        |                  |
//!                                           query: documents that share a bucket <---------+------------------+
//! ```
//!
//! | structure | key | value | share of the RAM |
//! |---|---|---|---|
//! | `lsh-records` | a number divided by the documents of a block | a block of records; and the state | 3/16 |
//! | `lsh-keys` | hash of a name | the number of the document that has it | 4/16 |
//! | `lsh-alike-*` | bucket keys | numbers of documents, in generations | 8/16 |
//! | in RAM only | a block | its names, of those that were asked for | 1/16 |
//!
//! Single inserts wait in RAM until a thousand have come or a twentieth of a second has passed, and then go to the
//! tables together. All calls see them meanwhile.
//!
//! Invariants
//! 1. Records alone are believed. A document is put into its buckets first, under its name next, and its record comes
//!    last; a number without a record is no document, whatever the others say. Its record goes first, durably, before
//!    it leaves its buckets.
//! 2. Numbers rise and are never used twice: the state has durably one that is higher than all that were.
//! 3. A block is written by the holder of the writer's lock only. Its names in the cache are those of its latest
//!    version.
//! 4. A document waits, or the tables have it, or both for a moment. So who looks at both looks first at those that
//!    wait.
//!
//! | operation | flash reads | flash writes |
//! |---|---|---|
//! | insert a new document | 0 | its share of a batch: its record, a key, its buckets |
//! | query of a new document | next to 0 | 0 |
//! | query of a known one | a page of each generation and table that has its bucket; two for names not cached | 0 |
//! | is a name there? | two, if it is | 0 |
//! | remove a document | its name, its block | its block; later a removal in each table, and a sync for many |

mod bands;
mod block;
mod generation;
mod names;
mod query;
mod saver;
mod state;
#[cfg(test)]
mod sweep;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(test)]
mod tests;
mod update;
mod waiting;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use nandex::device::{Create, Device, MemoryDevice};
use nandex::{
    AnyTable, Durability, Error, LargeTable, Neighbors, OpenOptions, Result, Table, Threads,
    Volume, VolumeOptions,
};

use crate::tables::{DocumentTables, DocumentTablesPlan, file, log_bytes};
pub use bands::BandShape;
use generation::{Generation, Shape};
use names::NameCache;
pub use query::{Found, Record};
use saver::Saver;
use state::State;
use update::Writer;
pub use update::{Inserted, NAME_BYTES_MAX, Repeats};
use waiting::Waiting;

/// The structures' names.
const RECORDS: &str = "lsh-records";
const NUMBERS: &str = "lsh-keys";

/// The key of the state among the records.
const STATE_KEY: &[u8] = b"state";

/// What an index is made with and opened with.
#[derive(Clone, Debug)]
pub struct LshOptions {
    /// RAM of all its tables, in bytes.
    pub ram_bytes: u64,
    /// Documents of its first generation. Each further one is for four times as many, and a query asks all of them.
    pub documents: u64,
    /// Bucket keys of a document, 1 or more.
    pub tables: u32,
    /// What its owner says of it. An index is opened with what it was made with.
    pub about: String,
}

/// What an index takes and has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LshStats {
    /// Different names.
    pub documents: u64,
    /// Bytes of RAM.
    pub ram_bytes: u64,
    /// Bytes of flash.
    pub flash_bytes: u64,
    /// Generations of buckets.
    pub generations: u64,
    /// Documents that full buckets have left out since the opening.
    pub dropped: u64,
}

/// An index of documents by bucket keys.
///
/// All calls may come from any thread. Documents are durable some 150 ms after they came, or with [`sync`](Self::sync).
/// After a crash a document is there with its name and all of its buckets, or not. Dropping the index saves it;
/// [`close`](Self::close) also tells of a failure. Failures are those of the structures below it, so that a caller
/// can tell too little RAM from a full device.
///
/// ```
/// use nandex_neardup::lsh::{Inserted, LshIndex, LshOptions, Repeats};
///
/// let options = LshOptions { ram_bytes: 64 << 20, documents: 1000, tables: 3, about: String::new() };
/// let index = LshIndex::create_or_open(None, options)?;
/// let inserted = index.insert_many(&[b"fish", b"dog"], &[1, 2, 3, 7, 8, 9], Repeats::Refuse)?;
/// assert_eq!(inserted, Inserted::All);
/// let found = index.query_many(&[1, 5, 9])?;
/// assert_eq!(found.row(0).collect::<Vec<_>>(), [&b"fish"[..], b"dog"]);
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Debug)]
pub struct LshIndex {
    core: Arc<Core>,
    saver: Option<Saver>,
}

/// What calls and the saver share.
#[derive(Debug)]
struct Core {
    options: LshOptions,
    volume: Volume,
    records: LargeTable<AnyTable>,
    numbers: AnyTable,
    generations: RwLock<Vec<Generation>>,
    names: NameCache,
    /// Documents that are in no table yet.
    waiting: RwLock<Waiting>,
    /// Held by whoever changes something.
    writer: Mutex<Writer>,
}

impl LshIndex {
    /// Opens the index of a file, or makes it; without a path it is in memory.
    ///
    /// # Errors
    /// A file that is something else or in use, options that cannot work, too little RAM, a failed read or write.
    pub fn create_or_open(path: Option<&Path>, options: LshOptions) -> Result<Self> {
        let first = Shape { first: 0, documents: options.documents, tables: options.tables };
        let neighbors_bytes = first.log_bytes_best(alike_bytes(&options))?;
        let log_bytes = log_bytes(neighbors_bytes, options.ram_bytes);
        let create = VolumeOptions { log_bytes, ..VolumeOptions::default() };
        let Some(path) = path else {
            let (durability, threads) = (Durability::Never, Threads::Inline);
            let create = VolumeOptions { durability, threads, ..create };
            return Self::create_in(
                &Volume::create(Arc::new(MemoryDevice::new()), create)?,
                options,
            );
        };
        let device = file(path, Create::OpenOrCreate)?;
        if device.is_empty_file()? {
            return Self::create_in(&Volume::create(device as Arc<dyn Device>, create)?, options);
        }
        let volume = Volume::open(device as Arc<dyn Device>, OpenOptions::default())?;
        Self::open_in(&volume, options)
    }

    /// Makes an index in a volume that has none.
    ///
    /// # Errors
    /// As [`create_or_open`](Self::create_or_open); a volume with such structures.
    pub fn create_in(volume: &Volume, options: LshOptions) -> Result<Self> {
        let tables = DocumentTables::create(volume, plan(&options)).map_err(too_little)?;
        let shape = Shape { first: 0, documents: options.documents, tables: options.tables };
        let first = Generation::create(volume, 0, shape, share_of(alike_bytes(&options)))?;
        let state = State::new(&options.about, options.tables, first.place());
        tables.records.put(STATE_KEY, &state.encode())?;
        tables.records.sync()?;
        Self::over(volume, options, (tables, vec![first], state))
    }

    /// Opens the index of a volume. After a crash it reads all records once, to count the documents.
    ///
    /// # Errors
    /// As [`create_or_open`](Self::create_or_open); other tables or another owner than it was made with.
    pub fn open_in(volume: &Volume, options: LshOptions) -> Result<Self> {
        let tables = DocumentTables::open(volume, plan(&options))?;
        let state = State::decode(tables.records.get(STATE_KEY)?.as_deref())?;
        state.check(&options.about, options.tables)?;
        let mut generations: Vec<Generation> = Vec::new();
        for (first, documents) in state.generations.iter().copied() {
            let shape = Shape { first, documents, tables: options.tables };
            let ram_bytes = share_of(free_bytes(&options, &generations));
            generations.push(Generation::open(volume, generations.len(), shape, ram_bytes)?);
        }
        let is_known = state.documents.is_some();
        let index = Self::over(volume, options, (tables, generations, state))?;
        if !is_known {
            index.core.recount()?;
        }
        Ok(index)
    }

    fn over(
        volume: &Volume,
        options: LshOptions,
        (tables, generations, state): (DocumentTables, Vec<Generation>, State),
    ) -> Result<Self> {
        let waiting_max = update::waiting_max(volume);
        let waiting = Waiting::new(options.tables as usize, waiting_max);
        let core = Arc::new(Core {
            volume: volume.clone(),
            records: tables.records,
            numbers: tables.numbers,
            generations: RwLock::new(generations),
            names: NameCache::new(options.ram_bytes / 16),
            waiting: RwLock::new(waiting),
            writer: Mutex::new(Writer::new(state, options.tables)),
            options,
        });
        let saver = match volume.threads() {
            Threads::Background => Some(Saver::start(&core)?),
            _ => None,
        };
        Ok(Self { core, saver })
    }

    /// Bucket keys of a document.
    #[must_use]
    pub fn tables(&self) -> usize {
        self.core.tables()
    }

    /// How many different names there are.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.core.lock_writer().documents()
    }

    /// Makes everything durable.
    ///
    /// # Errors
    /// A failed write or sync, RAM or flash that is full.
    pub fn sync(&self) -> Result<()> {
        self.core.settle()?;
        self.core.sync()
    }

    /// What it takes and has.
    #[must_use]
    pub fn stats(&self) -> LshStats {
        let core = &self.core;
        let documents = self.documents();
        let (records, numbers) = (core.records.stats(), core.numbers.stats());
        let generations = core.generations();
        let alike: Vec<_> =
            generations.iter().flat_map(Generation::groups).map(Neighbors::stats).collect();
        let own_bytes = core.names.ram_bytes() + core.waiting().ram_bytes();
        let tables_bytes = records.ram_bytes + numbers.ram_bytes;
        LshStats {
            documents,
            ram_bytes: own_bytes + tables_bytes + alike.iter().map(|it| it.ram_bytes).sum::<u64>(),
            flash_bytes: records.table.flash_bytes
                + records.values.flash_bytes
                + numbers.flash_bytes
                + alike.iter().map(|it| it.flash_bytes).sum::<u64>(),
            generations: generations.len() as u64,
            dropped: alike.iter().map(|it| it.dropped).sum(),
        }
    }

    /// Makes everything durable and closes the file.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn close(self) -> Result<()> {
        self.core.finish()?;
        let volume = self.core.volume.clone();
        // The tables take their last checkpoints. One that fails poisons the volume.
        drop(self);
        Ok(volume.poison().check()?)
    }
}

/// Saves what waits. The tables save themselves.
impl Drop for LshIndex {
    fn drop(&mut self) {
        drop(self.saver.take());
        // Nobody can receive this error; what was synced is durable already.
        let _ = self.core.settle();
    }
}

impl Core {
    fn tables(&self) -> usize {
        self.options.tables as usize
    }

    fn sync(&self) -> Result<()> {
        self.generations().iter().flat_map(Generation::groups).try_for_each(Neighbors::sync)?;
        self.numbers.sync()?;
        self.records.sync()
    }

    fn lock_writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> RwLockReadGuard<'_, Waiting> {
        self.waiting.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting_mut(&self) -> RwLockWriteGuard<'_, Waiting> {
        self.waiting.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn generations(&self) -> RwLockReadGuard<'_, Vec<Generation>> {
        self.generations.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tables next to the buckets.
const fn plan(options: &LshOptions) -> DocumentTablesPlan {
    DocumentTablesPlan {
        records: RECORDS,
        records_bytes: options.ram_bytes / 16 * 3,
        numbers: NUMBERS,
        numbers_bytes: options.ram_bytes / 4,
        hashes: 1,
    }
}

fn too_little(error: Error) -> Error {
    match error {
        Error::Config { .. } => Error::Config {
            field: "ram",
            reason: format!(
                "too little for the table of names ({error}); give the index more with `ram`"
            ),
        },
        error => error,
    }
}

/// RAM of all generations, at most.
const fn alike_bytes(options: &LshOptions) -> u64 {
    options.ram_bytes / 2
}

/// What generations leave of their share of the RAM.
fn free_bytes(options: &LshOptions, generations: &[Generation]) -> u64 {
    let taken = generations.iter().map(Generation::ram_bytes).sum();
    alike_bytes(options).saturating_sub(taken)
}

/// What a new generation takes of the free RAM, at most: others follow.
const fn share_of(free_bytes: u64) -> u64 {
    free_bytes / 2
}
