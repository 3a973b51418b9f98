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
//! Entries of every structure of a volume go into one open block in memory. A block is closed when it is full or when a
//! caller needs its entries to be durable; then it is sealed and written, in order. docs/reference/format.md draws the
//! bytes.
//!
//! Invariants:
//! 1. A block never wraps, and its start is known when its predecessor is closed: if less than a largest
//!    block remains before the region's end, the next block starts the next lap.
//! 2. A block carries its place in the stream, the volume's id, the session's epoch and its
//!    predecessor's checksum, so no block of another lap, session or volume is taken for it.
//! 3. `synced` moves only after a device sync that began when everything before it was written.
//! 4. A block says how much was durable when it was sealed. That distinguishes a hole before a later block from a torn
//!    tail: only what was never durable may be missing.
//!
//! | act | flash | memory |
//! |---|---|---|
//! | append | none; one write of a block each time a block is full | none; at most 8 blocks in all |
//! | commit, `Always` | one write and one sync, shared by all callers that wait | one short block |
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

/// The time at which an acknowledged update is safe from a power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// Before it is acknowledged: writers that arrive together share one sync (group commit).
    Always,
    /// At most this long after it was acknowledged, plus the time of the device's syncs. Less than a
    /// millisecond counts as a millisecond.
    Every(Duration),
    /// When the write buffer is flushed, or at `sync`, `flush` and close.
    Never,
}

impl Default for Durability {
    fn default() -> Self {
        Self::Every(Duration::from_millis(100))
    }
}

/// A place in the endless stream of log bytes. It only grows. Its remainder modulo the region's size is the place in
/// the log's region.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "log byte {}", self.0)
    }
}

/// The options of a log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Its pages.
    pub region: LogRegion,
    /// The volume it belongs to; blocks of another volume are never read.
    pub volume_id: u128,
    /// The number of this session, greater than that of every session before ([`LogEnd::epoch`]).
    pub epoch: u64,
    /// The time at which entries become durable.
    pub durability: Durability,
    /// The threads that write full blocks and sync periodically.
    pub threads: Threads,
}

/// The superblock that an anchor is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AnchorSource {
    /// Unknown: the anchor is not compared with the superblocks that blocks name.
    #[default]
    Unnamed,
    /// The superblock of this generation. A block that names a newer one proves that the anchor is stale.
    Superblock(u64),
    /// A stale superblock. Durable blocks may have been overwritten since, so the log ends where its blocks do.
    Stale,
}

/// The part of the volume's superblock that describes its log: where reading starts and what must be present.
///
/// The places and the session come from one session, at one time: take them from [`Log::anchor`]. Sealing a new epoch
/// with an older session's `synced` would make [`replay`] refuse that session's last blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogAnchor {
    /// The oldest place still needed: a block's start, or [`Log::next_lsn`].
    pub tail: Lsn,
    /// The place before which every byte of the log was durable.
    pub synced: Lsn,
    /// The session that noted this anchor. From `synced` on, older blocks were left by a crash.
    pub epoch: u64,
    /// The superblock that contains the anchor.
    pub source: AnchorSource,
}

/// The end of a log: the result of [`replay`] and the start of a [`Log`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogEnd {
    /// The place of the next block.
    pub next: Lsn,
    /// The checksum of the last block; 0 when there is none.
    pub prev_crc: u32,
    /// The newest session that the anchor or a block names; the next one must be greater.
    pub epoch: u64,
}

/// The numbers of what a log has written since it was started, and its memory.
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
    /// Continues after `end`, keeping everything from `tail` on, after one device sync that makes durable everything
    /// that [`replay`] has found. With [`Threads::Background`] it starts one thread that writes, and for
    /// [`Durability::Every`] one that syncs. Nothing is written before the first append: the superblock must get the
    /// new [`anchor`](Self::anchor) before that.
    ///
    /// # Errors
    /// [`Error::Config`] for an impossible region, place or epoch; the device's failure.
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

    /// The start of the open block: every later append returns this place or a later one. Costs one atomic load.
    #[must_use]
    pub fn next_lsn(&self) -> Lsn {
        Lsn(self.shared.next.load(Ordering::Acquire))
    }

    /// The place before which every byte of the log is durable.
    #[must_use]
    pub fn synced(&self) -> Lsn {
        Lsn(self.shared.synced.load(Ordering::Acquire))
    }

    /// Returns the anchor for the superblock when everything before `tail` is no longer needed. Once that is durable,
    /// [`release`](Self::release) may follow.
    #[must_use]
    pub fn anchor(&self, tail: Lsn) -> LogAnchor {
        let source = AnchorSource::Unnamed;
        LogAnchor { tail, synced: self.synced(), epoch: self.shared.epoch, source }
    }

    /// Notes that the superblock of this generation is durable: blocks name it from now on. Before this call, nothing
    /// that an older superblock needs may be overwritten.
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

    /// The size of a block in bytes: the most that a sync may close early, and so leave unused.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.shared.block()
    }

    /// The most bytes that the log holds, as long as it does not grow.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.shared.capacity()
    }

    /// Returns what the log has written, and its memory.
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
