//! An index of documents by the bucket keys of their signatures, with any bytes as names: the equivalent of
//! `MinHashLSH` of datasketch, on flash.
//!
//! ```text
//!   hashvalues, a row a document --bands--> a bucket key of 8 bytes for each band -.           .-> directory, in RAM
//!                                                                                   >- waiting -+-> blocks, on flash
//!   name: any bytes --------------------------------------------------------------'      |             |
//!                                           query: documents that share a bucket <-------+-------------'
//! ```
//!
//! | structure | key | value | RAM |
//! |---|---|---|---|
//! | `lsh-records` | number of a block | its records; and the state | 2 MiB, and 1/32 of the index's |
//! | directory | bucket keys, hashes of names | blocks with such a document | 3 to 4 bytes per key |
//! | cache | number of a block | itself, if it was asked for | 1/16 of the index's |
//!
//! Single inserts wait in RAM until a thousand have come or a twentieth of a second has passed, and then go to the
//! blocks together. All calls see them while they wait.
//!
//! Invariants
//! 1. The blocks are authoritative. The directory names blocks that may have a document, and an opening rebuilds it
//!    from all blocks. A document is in the directory before its block has it, and leaves the directory after its
//!    block.
//! 2. Numbers rise and are never reused: the state durably has one that is higher than all used ones.
//! 3. Only the holder of the writer's lock writes a block. The cache has its latest version.
//! 4. A document waits, or its block has it, or both for a moment. A reader of both therefore looks first at the
//!    waiting ones.
//!
//! | operation | flash reads | flash writes |
//! |---|---|---|
//! | insert a new document | 1 for each 100 | its share of a block |
//! | query of a new document | 3 to 6 for each 100, and generation | 0 |
//! | query of a known one | 1 for each block that has a document of its buckets, unless that is cached | 0 |
//! | look up a name | 1, if it exists | 0 |
//! | remove a document | its block, twice | its block |
//! | opening | all blocks | 0 |

mod bands;
mod block;
mod cache;
mod directory;
mod generation;
mod query;
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
use std::time::Duration;

use nandex::device::{Device, MemoryDevice};
use nandex::raw::Stated;
use nandex::raw::store::Timer;
use nandex::raw::store::hash::{HashKind, KeyHasher};
use nandex::{AnyTable, Durability, LargeTable, Result, Threads, Volume, VolumeOptions};
use nandex_corpus::tables::{DOCUMENTS_FIRST, TablePlan, growing_values, log_bytes};

pub use bands::BandShape;
use block::documents_of;
use cache::BlockCache;
use directory::Directory;
use generation::Plan;
pub use query::{Found, Record};
use state::State;
use update::Writer;
pub use update::{Inserted, NAME_BYTES_MAX, Repeats};
use waiting::Waiting;

/// The longest time that documents wait. Then the tables have them, which make them durable in a tenth of a second.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// The name of the table of records.
const RECORDS: &str = "lsh-records";

/// The most documents of a bucket that a query finds: its oldest. A bucket has as many blocks.
const BUCKET_DOCUMENTS_MAX: usize = 253;

/// RAM of the table of records with few documents. With more documents it takes up to a 32nd of the index's.
const RECORDS_BYTES: u64 = 2 << 20;

/// The key of the state among the records.
const STATE_KEY: &[u8] = b"state";

/// The options of the creation and the opening of an index.
#[derive(Clone, Debug)]
pub struct LshOptions {
    /// RAM of all its tables, in bytes.
    pub ram_bytes: u64,
    /// The documents of its first generation. Each further one is for four times as many, and a query searches all of
    /// them.
    pub documents: u64,
    /// The number of bucket keys of a document, 1 or more.
    pub tables: u32,
    /// A description by its owner. An index is opened with the one that it was created with.
    pub about: String,
}

/// The memory and the content of an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LshStats {
    /// The number of different names.
    pub documents: u64,
    /// Bytes of RAM.
    pub ram_bytes: u64,
    /// Bytes of flash.
    pub flash_bytes: u64,
    /// The number of generations of buckets.
    pub generations: u64,
    /// The number of blocks that full buckets have left out since the opening.
    pub dropped: u64,
}

/// An index of documents by bucket keys.
///
/// All calls may come from any thread. Documents are durable some 150 ms after they came, or with [`sync`](Self::sync).
/// After a crash a document is complete, with its name and all of its buckets, or absent. Dropping the index saves it;
/// [`close`](Self::close) also reports failures. Failures are those of the structures below it, so that a caller can
/// distinguish too little RAM from a full device.
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
    saver: Option<Timer>,
}

/// The state shared by calls and the saver.
#[derive(Debug)]
struct Core {
    options: LshOptions,
    volume: Volume,
    records: LargeTable<AnyTable>,
    directory: Directory,
    blocks: BlockCache,
    /// Documents that are not in a table yet.
    waiting: RwLock<Waiting>,
    /// Held during changes.
    writer: Mutex<Writer>,
}

impl LshIndex {
    /// Opens the index of a file, or creates it; without a path it is in memory.
    ///
    /// # Errors
    /// A file that is something else or in use, invalid options, too little RAM, a failed read or write.
    pub fn create_or_open(path: Option<&Path>, options: LshOptions) -> Result<Self> {
        let log_bytes = log_bytes(options.ram_bytes / 32);
        let Some(path) = path else {
            let (durability, threads) = (Durability::Never, Threads::Inline);
            let create = VolumeOptions { durability, threads, ..VolumeOptions::default() };
            let create = create.with_growing_log(log_bytes);
            let memory: Arc<dyn Device> = Arc::new(MemoryDevice::new());
            let db = nandex::options().volume(create).open_on(memory.into())?;
            return Self::create_in(db.volume(), options);
        };
        if path.metadata().map_or(true, |found| found.len() == 0) {
            // An index that cannot be created fails before there is a file.
            let hasher = KeyHasher::new(HashKind::default(), 0);
            Directory::new(plan(hasher, &options), directory_bytes(&options), options.documents)?;
        }
        let create = VolumeOptions::default().with_growing_log(log_bytes);
        let db = nandex::options().volume(create).sparse().open(path)?;
        match db.volume().structures().is_empty() {
            true => Self::create_in(db.volume(), options),
            false => Self::open_in(db.volume(), options),
        }
    }

    /// Creates an index in a volume that has none.
    ///
    /// # Errors
    /// As [`create_or_open`](Self::create_or_open); a volume with such structures.
    pub fn create_in(volume: &Volume, options: LshOptions) -> Result<Self> {
        let ram_bytes = directory_bytes(&options);
        let directory =
            Directory::new(plan(volume.hasher(), &options), ram_bytes, options.documents)?;
        let records =
            records(&options).create_records(volume, growing_values(), &Stated::default())?;
        let state = State::new(&options.about, options.tables, directory.shapes());
        records.put(STATE_KEY, &state.encode())?;
        records.sync()?;
        Self::over(volume, options, (records, directory, state))
    }

    /// Opens the index of a volume. It reads all records once, to rebuild their buckets.
    ///
    /// # Errors
    /// As [`create_or_open`](Self::create_or_open); tables or an owner that differ from those of the creation.
    pub fn open_in(volume: &Volume, options: LshOptions) -> Result<Self> {
        let records = records(&options).open_records(volume, &Stated::default())?;
        let state = State::decode(records.get(STATE_KEY)?.as_deref())?;
        state.check(&options.about, options.tables)?;
        let (plan, ram_bytes) = (plan(volume.hasher(), &options), directory_bytes(&options));
        let documents = (state.next, options.documents);
        let directory = Directory::reopened(plan, ram_bytes, documents, &state.generations)?;
        let index = Self::over(volume, options, (records, directory, state))?;
        index.core.read_all()?;
        Ok(index)
    }

    fn over(
        volume: &Volume,
        options: LshOptions,
        (records, directory, state): (LargeTable<AnyTable>, Directory, State),
    ) -> Result<Self> {
        let waiting_max = update::waiting_max(volume);
        let waiting = Waiting::new(options.tables as usize, waiting_max);
        let core = Arc::new(Core {
            volume: volume.clone(),
            records,
            directory,
            blocks: BlockCache::new(cache_bytes(&options)),
            waiting: RwLock::new(waiting),
            writer: Mutex::new(Writer::new(state, options.tables)),
            options,
        });
        let saver = match volume.threads() {
            Threads::Background => {
                let (core, poison) = (Arc::clone(&core), Arc::clone(volume.poison()));
                Some(Timer::start("nandex-lsh-save", WAIT_MAX, poison, move || {
                    // A failure stays: the next call that needs the tables reports it.
                    let _ = core.commit();
                    true
                })?)
            }
            _ => None,
        };
        Ok(Self { core, saver })
    }

    /// Returns the number of bucket keys of a document.
    #[must_use]
    pub fn tables(&self) -> usize {
        self.core.tables()
    }

    /// Returns the number of different names.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.core.lock_writer().documents()
    }

    /// Returns how the signatures are made, if [`set_scheme`](Self::set_scheme) was ever called.
    #[must_use]
    pub fn scheme(&self) -> Option<String> {
        self.core.lock_writer().scheme().map(str::to_owned)
    }

    /// Makes everything durable.
    ///
    /// # Errors
    /// A failed write or sync, RAM or flash that is full.
    pub fn sync(&self) -> Result<()> {
        self.core.commit()?;
        self.core.records.sync()
    }

    /// Returns its memory and its content.
    #[must_use]
    pub fn stats(&self) -> LshStats {
        let core = &self.core;
        let documents = self.documents();
        let records = core.records.stats();
        let own_bytes =
            core.directory.ram_bytes() + core.blocks.ram_bytes() + core.waiting().ram_bytes();
        LshStats {
            documents,
            ram_bytes: own_bytes + records.ram_bytes,
            flash_bytes: records.table.flash_bytes + records.values.flash_bytes,
            generations: core.directory.shapes().len() as u64,
            dropped: core.directory.left_out(),
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

/// Saves the waiting documents. The tables save themselves.
impl Drop for LshIndex {
    fn drop(&mut self) {
        drop(self.saver.take());
        // This error cannot be returned; everything synced is already durable.
        let _ = self.core.commit();
    }
}

impl Core {
    fn tables(&self) -> usize {
        self.options.tables as usize
    }

    /// Returns the number of documents of a block.
    fn block_documents(&self) -> u64 {
        documents_of(self.options.tables)
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
}

/// Returns the plan of the directory of an index.
fn plan(hasher: KeyHasher, options: &LshOptions) -> Plan {
    Plan {
        tables: options.tables,
        block_documents: documents_of(options.tables),
        seed: hasher.hash(RECORDS.as_bytes()).place,
    }
}

/// Returns the most RAM of cached blocks.
const fn cache_bytes(options: &LshOptions) -> u64 {
    options.ram_bytes / 16
}

/// Returns the plan of the table of records: it takes the rest of the RAM as it grows.
const fn records(options: &LshOptions) -> TablePlan {
    TablePlan {
        name: RECORDS,
        entries_first: DOCUMENTS_FIRST,
        ram_bytes_max: None,
        cache_bytes: options.ram_bytes / 32,
    }
}

/// Returns the most RAM of the directory.
const fn directory_bytes(options: &LshOptions) -> u64 {
    let others = RECORDS_BYTES + options.ram_bytes / 32 + cache_bytes(options);
    options.ram_bytes.saturating_sub(others)
}
