//! The write-ahead log: what has been promised and does not lie in its structure yet.
//!
//! ```text
//!  region on flash, written round and round                tail            next
//!  +---------+---------+----+------- - -+-----------------+----+--+-------+-- - -+
//!  | block   | block   | b. |   free    |  already flushed | b. |b.| block | open |
//!  +---------+---------+----+------- - -+-----------------+----+--+-------+-- - -+
//!  block = header | group | group | .. | zeros up to a whole page
//!  group = structure, entry size, count | entry | entry | ..
//! ```
//!
//! Entries of every structure of a volume go into one open block in memory. A block is closed when it
//! is full or when somebody wants its entries durable; then it is sealed and written, in order. The
//! bytes are drawn in docs/format.md.
//!
//! Invariants:
//! 1. A block never wraps, and its start is known when its predecessor is closed: with less than a
//!    largest block left before the region's end, the next block starts the next lap.
//! 2. A block carries its place in the stream, the volume's id, the session's epoch and its
//!    predecessor's checksum, so nothing left over from another lap, session or volume is taken for it.
//! 3. `synced` moves only after a device sync that began when everything before it was written.
//! 4. A block says how much was durable when it was sealed. So a hole before a later block is told from
//!    a torn tail: only what was never durable may be missing.
//! 5. After a failed write or sync nothing is acknowledged any more.
//!
//! | act | flash | memory |
//! |---|---|---|
//! | append | none; one write of a block each time a block is full | none; at most 8 blocks in all |
//! | commit, `Always` | one write and one sync, shared by all that wait | one short block |
//! | commit, otherwise | none | none |
//! | replay | reads the region about once | 8 blocks, while it runs |

mod block;
pub mod format;
mod reader;
mod region;
mod shared;
mod staging;
mod sync;
#[cfg(test)]
mod tests;
mod writer;

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

pub use reader::{Visit, replay, replay_until};
pub use region::LogRegion;

use crate::mutants::{Barrier, is_on};
use crate::{Error, Poison, Result, StructureId, Threads};
use shared::{LOCKED, Shared};

/// When an acknowledged update is safe from a power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// Before it is acknowledged: writers that arrive together share one sync (group commit).
    Always,
    /// At most this long after it was acknowledged, and the time the device needs for its syncs. Less
    /// than a millisecond is taken for a millisecond.
    Every(Duration),
    /// When its buffer is flushed, or at `sync`, `flush` and close.
    Never,
}

/// The shortest period of [`Durability::Every`].
const PERIOD_MIN: Duration = Duration::from_millis(1);

impl Default for Durability {
    fn default() -> Self {
        Self::Every(Duration::from_millis(100))
    }
}

/// A place in the endless stream of log bytes. It only grows; its place in the log's region is its
/// remainder by the region's size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "log byte {}", self.0)
    }
}

/// How to run a log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Where it lies.
    pub region: LogRegion,
    /// The volume it belongs to; blocks of another volume are never read.
    pub volume_id: u128,
    /// The number of this session, greater than that of every session before ([`LogEnd::epoch`]).
    pub epoch: u64,
    /// When entries become durable.
    pub durability: Durability,
    /// Who writes full blocks, and syncs once in a while.
    pub threads: Threads,
}

/// What the volume's superblock keeps of its log: where reading starts and what must be there.
///
/// All three come from one session, at one time: take them from [`Log::anchor`]. Sealing a new epoch
/// with an older session's `synced` would make [`replay`] refuse that session's last blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogAnchor {
    /// The oldest place still needed: a block's start, or [`Log::next_lsn`].
    pub tail: Lsn,
    /// Every byte of the log before this place was durable.
    pub synced: Lsn,
    /// The session that says so. Blocks from `synced` on that are older are left over from a crash.
    pub epoch: u64,
}

/// Where a log ends: the result of [`replay`] and the start of a [`Log`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogEnd {
    /// Where the next block goes.
    pub next: Lsn,
    /// The checksum of the last block; 0 when there is none.
    pub prev_crc: u32,
    /// The newest session that the anchor or a block names; the next one must be greater.
    pub epoch: u64,
}

/// The running log of one volume.
///
/// All calls may come from any thread. Dropping it closes it.
pub struct Log {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Log {
    /// Goes on behind `end`, keeping everything from `tail` on, after one device sync that makes all
    /// that [`replay`] has found durable. With [`Threads::Background`] it starts one thread that
    /// writes, and for [`Durability::Every`] one that syncs. Nothing is written before the first append,
    /// so the superblock can be given the new [`anchor`](Self::anchor) first, and must be.
    ///
    /// # Errors
    /// [`Error::Config`] for a region, place or epoch that cannot work; the device's failure.
    pub fn start(options: LogOptions, end: LogEnd, tail: Lsn, poison: Arc<Poison>) -> Result<Self> {
        let LogOptions { durability, threads, .. } = options;
        let shared = Arc::new(Shared::new(options, end, tail, poison)?);
        shared.sync_found()?;
        let log = Self { shared, threads: Mutex::default() };
        if threads == Threads::Inline {
            return Ok(log);
        }
        log.spawn("nandex-log-write", Shared::run_writer)?;
        if let Durability::Every(period) = durability {
            let period = period.max(PERIOD_MIN);
            log.spawn("nandex-log-sync", move |shared| shared.run_timer(period))?;
        }
        Ok(log)
    }

    /// Appends one entry, given in parts, and returns the start of the block that holds it. It lies in
    /// memory until its block is written; see [`commit`](Self::commit).
    ///
    /// Costs a lock and a copy. Never waits for room, and waits for the device only while all block
    /// buffers are on their way to it.
    ///
    /// # Errors
    /// [`Error::LogFull`], [`Error::Poisoned`], or [`Error::Config`] for an entry that is empty or
    /// larger than a block (or than 65535 bytes). The entry is then not in the log.
    pub fn append(&self, structure: StructureId, entry: &[&[u8]]) -> Result<Lsn> {
        self.shared.append(structure, entry)
    }

    /// Appends entries of `entry_bytes` bytes each, in order, and returns the start of the first block
    /// that holds one of them. Entries of other threads may come to lie between.
    ///
    /// # Errors
    /// As [`append`](Self::append), and [`Error::Config`] when `entries` is empty or no whole number
    /// of entries. After [`Error::LogFull`] the first of them may be in the log.
    pub fn append_many(
        &self,
        structure: StructureId,
        entry_bytes: usize,
        entries: &[u8],
    ) -> Result<Lsn> {
        self.shared.append_many(structure, entry_bytes, entries)
    }

    /// Where the open block starts: every later append returns this place or a later one. Costs one
    /// atomic load.
    #[must_use]
    pub fn next_lsn(&self) -> Lsn {
        Lsn(self.shared.next.load(Ordering::Acquire))
    }

    /// Makes everything appended before this call as durable as the mode promises: with
    /// [`Durability::Always`] it waits for a sync, shared with all that wait at the time; otherwise it
    /// returns at once, unless a period is over that no thread in the background looks at.
    ///
    /// # Errors
    /// [`Error::Poisoned`], or the failure of the write or sync itself.
    pub fn commit(&self) -> Result<()> {
        match self.shared.durability {
            Durability::Always if is_on(Barrier::CommitWaitsForSync) => self.sync(),
            Durability::Every(period) if self.shared.threads == Threads::Inline => {
                self.shared.sync_if_due(period.max(PERIOD_MIN))
            }
            _ if is_on(Barrier::CommitAsksForPoison) => self.shared.poison.check(),
            _ => Ok(()),
        }
    }

    /// Makes everything appended before this call durable, whatever the mode. Costs a write and a
    /// sync, shared with all that wait at the time, and nothing when all is durable already.
    ///
    /// # Errors
    /// [`Error::Poisoned`], or the failure of the write or sync itself.
    pub fn sync(&self) -> Result<()> {
        self.shared.sync_appended()
    }

    /// Every byte of the log before this place is durable.
    #[must_use]
    pub fn synced(&self) -> Lsn {
        Lsn(self.shared.synced.load(Ordering::Acquire))
    }

    /// What the superblock is to keep when it gives up everything before `tail`. Once it is durable
    /// there, [`release`](Self::release) may follow.
    #[must_use]
    pub fn anchor(&self, tail: Lsn) -> LogAnchor {
        LogAnchor { tail, synced: self.synced(), epoch: self.shared.epoch }
    }

    /// Lets the bytes before `tail` be overwritten. A `tail` behind the present one changes nothing.
    ///
    /// # Panics
    /// If `tail` lies past [`next_lsn`](Self::next_lsn).
    pub fn release(&self, tail: Lsn) {
        let mut staging = self.shared.staging();
        assert!(tail.0 <= staging.start, "the tail stays behind the open block");
        staging.tail = staging.tail.max(tail.0);
        self.shared.tail.store(staging.tail, Ordering::Relaxed);
        self.shared.room.notify_all();
    }

    /// The oldest place that is kept.
    #[must_use]
    pub fn tail(&self) -> Lsn {
        Lsn(self.shared.staging().tail)
    }

    /// Bytes from the tail to the end of the open block.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.shared.staging().used_bytes()
    }

    /// Bytes of a block: what a sync may close early, and so leave unused.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.shared.region.block()
    }

    /// Bytes of the region.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.shared.region.bytes()
    }

    /// Bytes written to the device since the start, headers and padding included.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.shared.bytes_written.load(Ordering::Relaxed)
    }

    /// Bytes of entries appended since the start, without headers and padding.
    #[must_use]
    pub fn payload_bytes(&self) -> u64 {
        self.shared.staging().payload_bytes
    }

    /// Device syncs since the start, the first one included.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.shared.syncs.load(Ordering::Relaxed)
    }

    /// Bytes of memory that hold blocks.
    #[must_use]
    pub fn ram_bytes(&self) -> u64 {
        self.shared.staging().ram_bytes()
    }

    /// Waits until `bytes` more bytes of entries fit, with two blocks to spare for the wrap. Each block is
    /// reckoned half full, which holds for entries of 16 bytes and more; with [`Durability::Always`] one
    /// more block is reckoned, since each commit may close its own. Call it before taking any lock that
    /// whoever calls [`release`](Self::release) needs, and append before what it gives is dropped: that
    /// keeps the room from others. It gives nothing, and takes no lock, while the log is far from full.
    ///
    /// # Errors
    /// [`Error::LogFull`] when they would not fit an empty log; [`Error::Poisoned`].
    pub fn wait_for_space(&self, bytes: u64) -> Result<Option<Reservation<'_>>> {
        let is_kept = self.shared.wait_for_space(bytes)?;
        Ok(is_kept.then(|| Reservation { shared: &self.shared, bytes }))
    }

    /// As [`wait_for_space`](Self::wait_for_space), and keeps the room however much there is: for
    /// batches, several of which could otherwise be let in where one fits.
    ///
    /// # Errors
    /// As [`wait_for_space`](Self::wait_for_space).
    pub fn reserve(&self, bytes: u64) -> Result<Reservation<'_>> {
        self.shared.reserve(bytes)?;
        Ok(Reservation { shared: &self.shared, bytes })
    }

    /// As [`reserve`](Self::reserve), and gives nothing where it would wait.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    pub fn try_reserve(&self, bytes: u64) -> Result<Option<Reservation<'_>>> {
        let fits = self.shared.try_reserve(bytes)?;
        Ok(fits.then(|| Reservation { shared: &self.shared, bytes }))
    }

    /// Waits a moment for others to give room back.
    pub fn pause_for_space(&self) {
        self.shared.pause_for_space();
    }

    /// Counts one more who waits for room, until what this gives is dropped.
    pub(crate) fn wait_in_line(&self) -> impl Drop + '_ {
        self.shared.wait_in_line()
    }

    /// How many wait for room.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.shared.waiting.load(Ordering::Relaxed)
    }

    /// Do so many more bytes of entries fit, with a block to spare? Asks for what cannot wait, and may
    /// use some of what those who wait leave free.
    #[must_use]
    pub fn has_space(&self, bytes: u64) -> bool {
        self.shared.has_space(bytes)
    }

    /// Makes everything durable and stops the threads. Entries appended later become durable by
    /// [`sync`](Self::sync) alone.
    ///
    /// # Errors
    /// As [`sync`](Self::sync); the threads are stopped all the same.
    pub fn close(&self) -> Result<()> {
        let synced = self.sync();
        self.shared.stop();
        let threads = std::mem::take(&mut *self.threads.lock().expect(LOCKED));
        for thread in threads {
            if thread.join().is_err() {
                self.shared.poison.set(&"a thread of the log panicked");
            }
        }
        synced
    }

    fn spawn(&self, name: &str, run: impl FnOnce(&Shared) + Send + 'static) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new()
            .name(name.into())
            .spawn(move || run(&shared))
            .map_err(|error| {
                Error::config("durability", format!("the thread {name} cannot start: {error}"))
            })?;
        self.threads.lock().expect(LOCKED).push(thread);
        Ok(())
    }
}

/// Reservation in the log that nobody else is given; see [`Log::reserve`].
#[must_use = "the room is given back when this is dropped"]
pub struct Reservation<'l> {
    shared: &'l Shared,
    bytes: u64,
}

impl fmt::Debug for Reservation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.shared.release_reservation(self.bytes);
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // Whoever needs to know calls `close`; here nobody is left to tell.
        let _ = self.close();
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("next", &self.next_lsn())
            .field("synced", &self.synced())
            .finish_non_exhaustive()
    }
}
