//! The volume: one file or device that holds many named structures, and survives crashes.
//!
//! ```text
//!   page 0   1        2 ..
//!  +-----+-----+------------+--------------+---------------------+--------------+-----
//!  | superblocks | the log  | checkpoint   | structure's extents | checkpoint   | ...
//!  +-----+-----+------------+--------------+---------------------+--------------+-----
//!     |  points at the log's tail and at one of the two checkpoints
//! ```
//!
//! Invariants
//! 1. The newest valid superblock points at a whole checkpoint and at a log tail from which every acknowledged durable
//!    update that is not in a structure's own pages can be replayed.
//! 2. Nothing that the newest durable checkpoint refers to is overwritten.
//! 3. A failed write or sync poisons the volume: nothing is acknowledged after it.
//! 4. Opening reads superblocks, the checkpoint and the log's tail, never a structure's pages.

mod backup;
mod checkpointing;
mod completion;
mod log_growth;
mod opening;
mod options;
mod replacement;
mod replay;
mod root;
mod stats;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use nandex_device::{Access, Device, Geometry, PageId};

use crate::checkpoint::CatalogEntry;
use crate::hash::KeyHasher;
use crate::log::LogEnd;
use crate::reads::{IdleReads, ReadPool};
use crate::schedule::Channels;
use crate::space::Extent;
use crate::workers::{Asker, BackgroundWork, Workers};
use crate::{Durability, Error, Log, Lsn, Poison, Result, StructureId};

pub use backup::{VolumeDevices, copy_closed, superblock_generation};
pub use completion::{Completion, Holds, UNFINISHED_KIND, holds, remove_unfinished};
pub(crate) use opening::{log_region, read_superblock, space_of};
pub use options::{StaleSuperblock, Threads, VolumeOpenOptions, VolumeOptions};
pub use replacement::{Replacement, is_replacement};
pub use stats::{StructureInfo, VolumeStats};

use checkpointing::Maintenance;
use root::Root;

/// A handle to an open volume; clones share it, and the last one closes it.
#[derive(Clone, Debug)]
pub struct Volume {
    inner: Arc<Inner>,
    /// Ends the maintenance thread when the last handle is dropped.
    _keeper: Arc<Keeper>,
}

#[derive(Debug)]
struct Inner {
    /// The device, with its writes watched for a backup.
    device: Arc<dyn Device>,
    backup: backup::Source,
    hasher: KeyHasher,
    log: Log,
    replay: replay::LogReplay,
    poison: Arc<Poison>,
    work: Work,
    /// The length that the log grows to as it fills, in bytes; 0 if it does not.
    log_bytes_expected: AtomicU64,
    workers: Workers,
    idle_reads: IdleReads,
    root: Mutex<Root>,
    open: Mutex<HashMap<StructureId, Weak<dyn Checkpointed>>>,
    /// Structures that are being replaced.
    replaced: Mutex<HashSet<String>>,
    /// Held during a checkpoint, so that there is one at a time.
    maintenance_lock: Mutex<()>,
    maintenance: Maintenance,
}

/// The options of a running volume.
#[derive(Clone, Copy, Debug)]
struct Work {
    access: Access,
    durability: Durability,
    threads: Threads,
    /// The most bytes that the log may grow to, if it may grow.
    log_bytes_max: Option<u64>,
}

/// The part of a structure that takes part in checkpoints.
pub trait Checkpointed: Send + Sync {
    /// Performs the work that must precede the capture, such as evicting ahead of the head.
    ///
    /// # Errors
    /// Any failure; the checkpoint is then not taken.
    fn prepare(&self) -> Result<()>;

    /// Returns the small maps, and the oldest place of the log that is still needed.
    ///
    /// Every update that was logged before that place is in pages whose writes have completed.
    fn capture(&self) -> Captured;

    /// Notes that a checkpoint with the last result of `capture` is durable.
    fn committed(&self);

    /// Flushes every buffered update that was logged before this place, because the log is nearly full.
    ///
    /// # Errors
    /// A failed write.
    fn flush_before(&self, before: Lsn) -> Result<()>;

    /// Performs the work that a structure without threads has deferred. Called after checkpoints, with no lock held; it
    /// may take a checkpoint itself.
    ///
    /// # Errors
    /// A failed read or write.
    fn run_deferred(&self) -> Result<()>;
}

/// The way in which a structure was closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shutdown {
    /// A durable checkpoint holds its whole state.
    Clean,
    /// The log holds updates that the structure's next opening must replay.
    NeedsReplay,
}

/// A structure's state at one moment.
#[derive(Clone, Debug)]
pub struct Captured {
    /// Its small maps, encoded by the structure.
    pub state: Vec<u8>,
    /// The oldest place of the log that is still needed.
    pub tail: Lsn,
    /// Its pages, for a structure that allocates and frees extents as it runs ([`Volume::allocate`]); `None` if they
    /// stay the same.
    pub extents: Option<Vec<Extent>>,
}

/// The properties of a structure that the volume stores, to open it.
#[derive(Clone, Debug)]
pub struct Structure {
    /// Its number.
    pub id: StructureId,
    /// Its name.
    pub name: String,
    /// The configuration that it was created with, encoded by the structure.
    pub config: Vec<u8>,
    /// Its small maps, encoded by the structure; empty when it was just created.
    pub state: Vec<u8>,
    /// Its pages.
    pub extents: Vec<Extent>,
    /// The place where its part of the log begins.
    pub tail: Lsn,
}

impl From<&CatalogEntry> for Structure {
    fn from(entry: &CatalogEntry) -> Self {
        Self {
            id: entry.id,
            name: entry.name.clone(),
            config: entry.config.clone(),
            state: entry.state.clone(),
            extents: entry.extents.clone(),
            tail: entry.tail,
        }
    }
}

impl Structure {
    /// Returns the pages of a structure with one fixed extent.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the catalog names no extent.
    pub fn extent(&self) -> Result<Extent> {
        self.extents.first().copied().ok_or_else(|| {
            let expected = format!("an extent of {:?}", self.name);
            Error::corrupt("checkpoint", PageId(0), expected, "none")
        })
    }
}

impl Volume {
    /// The device of the volume.
    #[must_use]
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.inner.device
    }

    /// The channels of the device that the volume stores; the device's own [`geometry`](Device::geometry) shows which
    /// are used.
    #[must_use]
    pub fn kept_geometry(&self) -> Option<Geometry> {
        self.inner.root().superblock.geometry
    }

    /// The volume's hash function.
    #[must_use]
    pub fn hasher(&self) -> KeyHasher {
        self.inner.hasher
    }

    /// The volume's write-ahead log.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.inner.log
    }

    /// The mark of a failed write or sync.
    #[must_use]
    pub fn poison(&self) -> &Arc<Poison> {
        &self.inner.poison
    }

    /// The time at which an acknowledged update is durable.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.inner.work.durability
    }

    /// Returns whether the volume was opened read-only. Structures then keep in RAM what they replay.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.inner.is_read_only()
    }

    /// The threads that do the volume's own work.
    #[must_use]
    pub fn threads(&self) -> Threads {
        self.inner.work.threads
    }

    /// Returns a pool that reads pages for a structure's lookups, with at most `depth` reads in flight. On the volume's
    /// own device all structures share the idle queues and buffers.
    #[must_use]
    pub fn read_pool(
        &self,
        device: &Arc<dyn Device>,
        channels: Channels,
        depth: usize,
    ) -> ReadPool {
        let own = Arc::clone(device);
        if Arc::ptr_eq(device, self.device()) {
            return ReadPool::sharing(self.inner.idle_reads.clone(), own, channels, depth);
        }
        ReadPool::new(own, channels, depth)
    }

    /// The RAM that the figures of each structure include and that all of them share, in bytes: that of the log, and of
    /// idle queues and page buffers.
    #[must_use]
    pub fn shared_ram_bytes(&self) -> u64 {
        self.log().stats().ram_bytes + self.inner.idle_reads.ram_bytes() as u64
    }

    /// Serves a structure with the background threads, at most `threads` of which work for it at the same time.
    ///
    /// # Errors
    /// The first thread cannot start.
    pub fn serve(
        &self,
        work: &Arc<impl BackgroundWork + 'static>,
        threads: usize,
    ) -> Result<Asker> {
        self.inner.workers.serve(work, threads)
    }

    /// Makes a structure that is served work once in each period of [`Durability::Every`], before others; does nothing
    /// with another durability.
    ///
    /// # Errors
    /// The timer's thread cannot start.
    pub fn serve_in_periods(&self, asker: &Asker) -> Result<()> {
        match self.durability() {
            Durability::Every(period) => self.inner.workers.repeat(asker, period),
            Durability::Always | Durability::Never => Ok(()),
        }
    }

    /// The number of times that the volume was opened for writing.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.inner.root().superblock.epoch
    }

    /// Allocates pages for a new structure and records it in the catalog, durably. With 0 pages it gets no extent: for
    /// a structure that allocates extents as it runs.
    ///
    /// # Errors
    /// [`Error::Exists`], no space on the device, or a failed write.
    pub fn create_structure(
        &self,
        name: &str,
        kind: &str,
        config: Vec<u8>,
        pages: u64,
    ) -> Result<Structure> {
        self.check_own_name(name)?;
        self.inner.refuse_read_only()?;
        self.create_named(name, kind, config, pages)
    }

    /// Like [`create_structure`](Self::create_structure), for a part that a structure creates as it runs. It is named
    /// `OWNER/PART`, which is never the name of a user's structure, and is removed when its owner is dropped.
    ///
    /// # Errors
    /// As `create_structure`; no owner of this name.
    pub fn create_part(
        &self,
        (owner, part): (&str, &str),
        kind: &str,
        config: Vec<u8>,
        pages: u64,
    ) -> Result<Structure> {
        check_name(part)?;
        self.inner.root().kind_of(owner)?;
        self.create_named(&part_name(owner, part), kind, config, pages)
    }

    fn create_named(
        &self,
        name: &str,
        kind: &str,
        config: Vec<u8>,
        pages: u64,
    ) -> Result<Structure> {
        self.inner.poison.check()?;
        // Nothing of it is logged before this place, so it never pins the log's tail unnecessarily.
        let tail = self.inner.log.next_lsn();
        let structure = {
            let device = &*self.inner.device;
            self.inner.root().add(device, name, kind, config, (pages, tail))?
        };
        if let Err(error) = self.checkpoint() {
            self.inner.root().remove(structure.id);
            return Err(error);
        }
        Ok(structure)
    }

    /// Finds a structure of this kind.
    ///
    /// # Errors
    /// [`Error::NoSuchStructure`], [`Error::Kind`], or [`Error::Busy`] when it is open already.
    pub fn open_structure(&self, name: &str, kind: &str) -> Result<Structure> {
        self.check_not_replaced(name)?;
        self.find_closed(name, kind)
    }

    /// Like [`open_structure`](Self::open_structure), but also finds a structure that is being replaced.
    fn find_closed(&self, name: &str, kind: &str) -> Result<Structure> {
        // Updates that a failed write left in RAM are in the log, which only opening the volume reads back.
        self.inner.poison.check()?;
        let mut root = self.inner.root();
        // The log entries of an idle structure may be overwritten while it is opened.
        root.release_idle(self.inner.log.synced());
        let structure = root.find(name, kind)?;
        let open = self.inner.open();
        if open.get(&structure.id).is_some_and(|structure| structure.strong_count() > 0) {
            return Err(Error::Busy { name: name.into() });
        }
        Ok(structure)
    }

    /// Returns the configuration that a structure of this kind was created with, encoded by the structure. It may be
    /// open.
    ///
    /// # Errors
    /// [`Error::NoSuchStructure`], [`Error::Kind`].
    pub fn config_of(&self, name: &str, kind: &str) -> Result<Vec<u8>> {
        Ok(self.inner.root().find(name, kind)?.config)
    }

    /// The names of the structures that are open.
    #[must_use]
    pub fn open_names(&self) -> HashSet<String> {
        let root = self.inner.root();
        let open = self.inner.open();
        let is_open = |id| open.get(id).is_some_and(|structure| structure.strong_count() > 0);
        let entries = root.catalog.entries.iter().filter(|entry| is_open(&entry.id));
        entries.map(|entry| entry.name.clone()).collect()
    }

    /// Removes a structure with its parts and frees their pages, durably.
    ///
    /// # Errors
    /// [`Error::NoSuchStructure`], [`Error::Busy`] while it is open, or a failed write.
    pub fn drop_structure(&self, name: &str) -> Result<()> {
        self.drop_structures(&[name])
    }

    /// Removes structures with their parts in one checkpoint, and frees their pages: after a crash all of them are
    /// there, or none.
    ///
    /// # Errors
    /// As [`drop_structure`](Self::drop_structure).
    pub fn drop_structures(&self, names: &[&str]) -> Result<()> {
        self.inner.poison.check()?;
        self.inner.refuse_read_only()?;
        let mut dropped = Vec::new();
        for name in names {
            let kind = self.inner.root().kind_of(name)?;
            dropped.push(self.open_structure(name, &kind)?);
            for part in self.structures().into_iter().filter(|it| is_part_of(&it.name, name)) {
                dropped.push(self.open_structure(&part.name, &part.kind)?);
            }
        }
        dropped.iter().for_each(|structure| self.inner.root().remove(structure.id));
        self.checkpoint()
    }

    /// Allocates an extent for a structure that grows as it runs. It belongs to the structure once a capture names it;
    /// until a checkpoint with that capture is durable, a crash frees it.
    ///
    /// # Errors
    /// No space on the device.
    pub fn allocate(&self, pages: u64) -> Result<Extent> {
        self.inner.poison.check()?;
        self.inner.root().allocate(&*self.inner.device, pages)
    }

    /// Gives back an extent that was [`allocate`](Self::allocate)d and that no capture has named. A captured
    /// extent is freed by the first checkpoint whose capture leaves it out.
    pub fn give_back(&self, extent: Extent) {
        self.inner.root().space.release(extent);
    }

    /// Makes sure that this many pages are free, for checkpoints and other users.
    ///
    /// # Errors
    /// No space on the device.
    pub fn leave_free(&self, pages: u64) -> Result<()> {
        let missing = pages.saturating_sub(self.stats().free_pages);
        if missing > 0 {
            self.give_back(self.allocate(missing)?);
        }
        Ok(())
    }

    /// Makes an open structure part of every checkpoint from now on. Nothing may be logged for it before: until this
    /// call, a structure that was just created or closed clean needs nothing of the log, and leaves its space to
    /// others.
    pub fn register(&self, id: StructureId, structure: Weak<dyn Checkpointed>) {
        let mut root = self.inner.root();
        self.inner.open().insert(id, structure);
        root.idle.remove(&id);
    }

    /// Removes an open structure from the checkpoints: once this has returned, no checkpoint refers to it. Waits for a
    /// running checkpoint, and calls `shutdown` when none runs. A structure whose last capture held everything needs
    /// nothing of the log until it is opened again.
    pub fn deregister(&self, id: StructureId, shutdown: impl FnOnce() -> Shutdown) {
        let _maintenance = self.inner.lock_maintenance();
        let shutdown = shutdown();
        let mut root = self.inner.root();
        self.inner.open().remove(&id);
        if shutdown == Shutdown::Clean {
            root.idle.insert(id);
        }
    }

    /// Passes a structure its updates in the log, oldest first, with the place of each.
    ///
    /// # Errors
    /// A failed read, damage, or what `visit` returns.
    pub fn replay(
        &self,
        structure: &Structure,
        visit: &mut dyn FnMut(Lsn, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.inner.replay.of(structure, visit)
    }
}

impl Inner {
    fn is_read_only(&self) -> bool {
        self.work.access != Access::ReadWrite
    }

    fn refuse_read_only(&self) -> Result<()> {
        if self.is_read_only() { Err(Error::ReadOnly) } else { Ok(()) }
    }

    fn lock_maintenance(&self) -> MutexGuard<'_, ()> {
        // It guards no data. A structure that panics in a checkpoint has poisoned the volume.
        self.maintenance_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn root(&self) -> MutexGuard<'_, Root> {
        self.root.lock().expect("no holder of the root's lock panics")
    }

    fn open(&self) -> MutexGuard<'_, HashMap<StructureId, Weak<dyn Checkpointed>>> {
        self.open.lock().expect("no holder of this lock panics")
    }
}

/// Returns the name of a part of a structure.
#[must_use]
pub fn part_name(owner: &str, part: &str) -> String {
    format!("{owner}/{part}")
}

/// Returns whether this is the name of a part of the structure `owner`.
#[must_use]
pub fn is_part_of(name: &str, owner: &str) -> bool {
    name.strip_prefix(owner).is_some_and(|rest| rest.starts_with('/'))
}

fn check_name(name: &str) -> Result<()> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=64).contains(&name.len()) && name.chars().all(fine) {
        return Ok(());
    }
    let reason = format!("{name:?} is not 1 to 64 letters, digits, underscores and hyphens");
    Err(Error::config("name", reason))
}

/// Ends the threads and closes the log when the last handle is dropped.
#[derive(Debug)]
struct Keeper {
    inner: Arc<Inner>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.inner.maintenance.stop();
        let thread = self.thread.lock().ok().and_then(|mut thread| thread.take());
        // A checkpoint may hold the last handle, through a structure that was dropped meanwhile. Its thread then runs
        // this, cannot wait for itself, and ends after it.
        let other = |thread: &JoinHandle<()>| thread.thread().id() != std::thread::current().id();
        if let Some(thread) = thread.filter(other) {
            // The panic has poisoned the volume already.
            let _ = thread.join();
        }
        self.inner.workers.stop();
        // The error has no receiver; what was acknowledged as durable is durable already.
        let _ = self.inner.log.close();
    }
}

impl Volume {
    fn assemble(
        (device, backup): (Arc<dyn Device>, backup::Source),
        root: Root,
        log: Log,
        replay: replay::LogReplay,
        poison: Arc<Poison>,
        work: Work,
    ) -> Result<Self> {
        let inner = Arc::new(Inner {
            device,
            backup,
            hasher: root.superblock.hasher(),
            log,
            replay,
            workers: Workers::new(Arc::clone(&poison)),
            poison,
            work,
            log_bytes_expected: AtomicU64::new(0),
            idle_reads: IdleReads::default(),
            root: Mutex::new(root),
            open: Mutex::default(),
            replaced: Mutex::default(),
            maintenance_lock: Mutex::default(),
            maintenance: Maintenance::default(),
        });
        let thread = match work.threads {
            _ if inner.is_read_only() => None,
            Threads::Background => Some(checkpointing::spawn(Arc::downgrade(&inner))?),
            Threads::Inline => None,
        };
        let keeper = Keeper { inner: Arc::clone(&inner), thread: Mutex::new(thread) };
        Ok(Self { _keeper: Arc::new(keeper), inner })
    }
}

/// The end of a log that was never written.
const FRESH_LOG: LogEnd = LogEnd { next: Lsn(0), prev_crc: 0, epoch: 0 };
