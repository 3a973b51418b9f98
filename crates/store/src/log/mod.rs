//! The write-ahead log: acknowledged updates that are not in their structure yet.
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
//! Entries of every structure of a volume go into one open block in memory. A block is closed when it is full
//! or when somebody wants its entries durable; then it is sealed and written, in order. docs/format.md draws
//! the bytes.
//!
//! Invariants:
//! 1. A block never wraps, and its start is known when its predecessor is closed: if less than a largest
//!    block remains before the region's end, the next block starts the next lap.
//! 2. A block carries its place in the stream, the volume's id, the session's epoch and its
//!    predecessor's checksum, so no block of another lap, session or volume is taken for it.
//! 3. `synced` moves only after a device sync that began when everything before it was written.
//! 4. A block says how much was durable when it was sealed. That tells a hole before a later block from a
//!    torn tail: only what was never durable may be missing.
//! 5. After a failed write or sync no update is accepted, no block is begun, and no commit succeeds.
//!
//! | act | flash | memory |
//! |---|---|---|
//! | append | none; one write of a block each time a block is full | none; at most 8 blocks in all |
//! | commit, `Always` | one write and one sync, shared by all that wait | one short block |
//! | commit, otherwise | none | none |
//! | replay | reads the region about once | 8 blocks, while it runs |

mod append;
mod block;
pub mod format;
mod grow;
mod parts;
mod reader;
mod region;
mod shared;
mod space;
mod staging;
mod sync;
#[cfg(test)]
mod tests;
mod writer;

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

pub(crate) use parts::EARLIER_MAX;
pub use parts::{LogPart, LogParts};
pub use reader::{Visit, replay, replay_until};
pub use region::LogRegion;
pub use space::Reservation;

use crate::{Error, Poison, Result, Threads, Timer};
use shared::{LOCKED, Shared};

/// When an acknowledged update is safe from a power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// Before it is acknowledged: writers that arrive together share one sync (group commit).
    Always,
    /// At most this long after it was acknowledged, plus the time of the device's syncs. Less than a
    /// millisecond counts as a millisecond.
    Every(Duration),
    /// When its buffer is flushed, or at `sync`, `flush` and close.
    Never,
}

impl Default for Durability {
    fn default() -> Self {
        Self::Every(Duration::from_millis(100))
    }
}

/// A place in the endless stream of log bytes. It only grows. Its remainder by the region's size is its place
/// in the log's region.
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
    /// Its pages.
    pub region: LogRegion,
    /// The volume it belongs to; blocks of another volume are never read.
    pub volume_id: u128,
    /// The number of this session, greater than that of every session before ([`LogEnd::epoch`]).
    pub epoch: u64,
    /// When entries become durable.
    pub durability: Durability,
    /// Who writes full blocks, and syncs periodically.
    pub threads: Threads,
}

/// The superblock that an anchor is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AnchorSource {
    /// It is not compared with what blocks name.
    #[default]
    Unnamed,
    /// That of this generation. A block that names a newer one proves that it is stale.
    Superblock(u64),
    /// A stale one. Durable blocks may have been overwritten since, so the log ends where its blocks do.
    Stale,
}

/// What the volume's superblock keeps of its log: where reading starts and what must be there.
///
/// The places and the session come from one session, at one time: take them from [`Log::anchor`]. Sealing a new epoch
/// with an older session's `synced` would make [`replay`] refuse that session's last blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogAnchor {
    /// The oldest place still needed: a block's start, or [`Log::next_lsn`].
    pub tail: Lsn,
    /// Every byte of the log before this place was durable.
    pub synced: Lsn,
    /// The session that noted this. Older blocks from `synced` on were left by a crash.
    pub epoch: u64,
    /// Which superblock says so.
    pub source: AnchorSource,
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

/// What a log has written since it was started, and its memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogStats {
    /// Bytes written to the device, headers and padding included.
    pub bytes_written: u64,
    /// Bytes of entries appended, without headers and padding.
    pub payload_bytes: u64,
    /// Device syncs, the first one included.
    pub syncs: u64,
    /// Bytes of memory that hold blocks.
    pub ram_bytes: u64,
}

/// The running log of one volume.
///
/// All calls may come from any thread. Dropping it closes it.
pub struct Log {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
    timer: Mutex<Option<Timer>>,
}

impl Log {
    /// Continues after `end`, keeping everything from `tail` on, after one device sync that makes everything
    /// that [`replay`] has found durable. With [`Threads::Background`] it starts one thread that writes, and
    /// for [`Durability::Every`] one that syncs. Nothing is written before the first append: the superblock
    /// must get the new [`anchor`](Self::anchor) before that.
    ///
    /// # Errors
    /// [`Error::Config`] for a region, place or epoch that cannot work; the device's failure.
    pub fn start(options: LogOptions, end: LogEnd, tail: Lsn, poison: Arc<Poison>) -> Result<Self> {
        let LogOptions { durability, threads, .. } = options;
        let shared = Arc::new(Shared::new(options, end, tail, poison)?);
        shared.sync_found()?;
        let log = Self { shared, writer: Mutex::default(), timer: Mutex::default() };
        if threads == Threads::Inline {
            return Ok(log);
        }
        let shared = Arc::clone(&log.shared);
        let thread = Builder::new().name("nandex-log-write".into());
        let thread = thread.spawn(move || shared.run_writer()).map_err(|error| {
            Error::config("threads", format!("the log's writing thread cannot start: {error}"))
        })?;
        *log.writer.lock().expect(LOCKED) = Some(thread);
        if let Durability::Every(period) = durability {
            let (shared, poison) = (Arc::clone(&log.shared), Arc::clone(&log.shared.poison));
            // A failure has poisoned the volume; the next commit reports it.
            let sync = move || shared.sync_appended().is_ok();
            let timer = Timer::start("nandex-log-sync", period, poison, sync)?;
            *log.timer.lock().expect(LOCKED) = Some(timer);
        }
        Ok(log)
    }

    /// Where the open block starts: every later append returns this place or a later one. Costs one
    /// atomic load.
    #[must_use]
    pub fn next_lsn(&self) -> Lsn {
        Lsn(self.shared.next.load(Ordering::Acquire))
    }

    /// Every byte of the log before this place is durable.
    #[must_use]
    pub fn synced(&self) -> Lsn {
        Lsn(self.shared.synced.load(Ordering::Acquire))
    }

    /// What the superblock keeps when everything before `tail` is no longer needed. Once that is durable,
    /// [`release`](Self::release) may follow.
    #[must_use]
    pub fn anchor(&self, tail: Lsn) -> LogAnchor {
        let source = AnchorSource::Unnamed;
        LogAnchor { tail, synced: self.synced(), epoch: self.shared.epoch, source }
    }

    /// The superblock of this generation is durable: blocks name it from now on. Before that is called, nothing may
    /// overwrite what an older superblock needs.
    pub(crate) fn note_superblock(&self, generation: u64) {
        self.shared.superblock.store(generation, Ordering::Release);
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

    /// Bytes of a block: the most that a sync may close early, and so leave unused.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.shared.block()
    }

    /// Bytes that the log holds at most, as long as it does not grow.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.shared.capacity()
    }

    /// What it has written, and its memory.
    #[must_use]
    pub fn stats(&self) -> LogStats {
        let staging = self.shared.staging();
        LogStats {
            bytes_written: self.shared.bytes_written.load(Ordering::Relaxed),
            payload_bytes: staging.payload_bytes,
            syncs: self.shared.syncs.load(Ordering::Relaxed),
            ram_bytes: staging.ram_bytes(),
        }
    }

    /// Makes everything durable and stops the threads. Later entries become durable only by
    /// [`sync`](Self::sync).
    ///
    /// # Errors
    /// As [`sync`](Self::sync); the threads are stopped in any case.
    pub fn close(&self) -> Result<()> {
        let synced = self.sync();
        self.shared.stop();
        let timer = self.timer.lock().expect(LOCKED).take();
        drop(timer);
        let writer = self.writer.lock().expect(LOCKED).take();
        if writer.is_some_and(|writer| writer.join().is_err()) {
            self.shared.poison.set(&"the log's writing thread panicked");
        }
        synced
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // A caller that needs to know has called `close`.
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
