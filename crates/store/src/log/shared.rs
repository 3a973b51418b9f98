//! The state that the log's callers and its threads share.
//!
//! Two locks, never held together: `staging` is held for a copy, `progress` for a comparison. The writer's
//! lock may be held around either. Neither is held while the device works.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use nandex_device::Device;

use super::staging::Staging;
use super::writer::BlockWriter;
use super::{Durability, LogEnd, LogOptions, Lsn};
use crate::{Error, Poison, Result, Threads};

/// The reason why taking one of the log's locks cannot fail.
pub(super) const LOCKED: &str = "no holder of this lock panics";

/// The progress of the log.
#[derive(Default)]
pub(super) struct Progress {
    /// Every block before this place is written.
    pub written: u64,
    /// Whether a thread is writing blocks.
    pub draining: bool,
    /// Every block before this place is durable.
    pub synced: u64,
    /// Whether a thread is syncing.
    pub syncing: bool,
}

/// The log itself.
pub(super) struct Shared {
    pub device: Arc<dyn Device>,
    /// The largest block in bytes.
    pub block_bytes: usize,
    pub volume_id: u128,
    pub epoch: u64,
    pub durability: Durability,
    pub threads: Threads,
    pub poison: Arc<Poison>,
    staging: Mutex<Staging>,
    /// There are closed blocks, or the threads must end.
    pub work: Condvar,
    /// The tail has moved, or a reservation was dropped.
    pub space_freed: Condvar,
    progress: Mutex<Progress>,
    /// Blocks have been written, or writing them has failed.
    pub written_moved: Condvar,
    /// A sync has ended.
    pub sync_done: Condvar,
    pub writer: Mutex<BlockWriter>,
    /// Copy of `Staging::start`.
    pub next: AtomicU64,
    /// The size of the part that is written to, in bytes.
    pub capacity: AtomicU64,
    /// Copy of `Staging::tail`.
    pub tail: AtomicU64,
    /// Copy of `Progress::synced`.
    pub synced: AtomicU64,
    /// The time when the last period of [`Durability::Every`] ended, by the device's clock.
    pub period_start_ns: AtomicU64,
    /// The generation of the newest durable superblock.
    pub superblock: AtomicU64,
    pub bytes_written: AtomicU64,
    pub syncs: AtomicU64,
    /// The number of callers that wait for space.
    pub waiting: AtomicU64,
}

impl Shared {
    /// Creates a log that continues after `end`.
    pub fn new(options: LogOptions, end: LogEnd, tail: Lsn, poison: Arc<Poison>) -> Result<Self> {
        check(&options, end, tail)?;
        let LogOptions { region, volume_id, epoch, durability, threads } = options;
        let start = region.start_from(end.next.0);
        let writer = BlockWriter::new(region.clone(), end.prev_crc)?;
        let progress = Progress { written: start, synced: start, ..Progress::default() };
        let period_start_ns = AtomicU64::new(region.device.now());
        Ok(Self {
            device: Arc::clone(&region.device),
            block_bytes: region.block_bytes,
            capacity: AtomicU64::new(region.bytes()),
            staging: Mutex::new(Staging::new(start, tail.0, region)),
            volume_id,
            epoch,
            durability,
            threads,
            poison,
            work: Condvar::new(),
            space_freed: Condvar::new(),
            progress: Mutex::new(progress),
            written_moved: Condvar::new(),
            sync_done: Condvar::new(),
            writer: Mutex::new(writer),
            next: AtomicU64::new(start),
            tail: AtomicU64::new(tail.0),
            synced: AtomicU64::new(start),
            period_start_ns,
            superblock: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
        })
    }

    pub fn staging(&self) -> MutexGuard<'_, Staging> {
        self.staging.lock().expect(LOCKED)
    }

    pub fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().expect(LOCKED)
    }

    /// Closes the open block, if there is one, and returns the start of the next one.
    pub fn close_block(&self, staging: &mut Staging) -> u64 {
        let start = staging.close();
        self.next.store(start, Ordering::Release);
        start
    }

    /// Tells the writing thread to end.
    pub fn stop(&self) {
        self.staging().stop = true;
        self.work.notify_all();
    }

    /// The largest block, in the unit of places in the log.
    pub fn block(&self) -> u64 {
        self.block_bytes as u64
    }

    /// The most bytes that the log holds.
    pub fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    pub fn full(&self, reason: &str) -> Error {
        Error::LogFull { log_bytes: self.capacity(), reason: reason.into() }
    }
}

fn check(options: &LogOptions, end: LogEnd, tail: Lsn) -> Result<()> {
    let LogOptions { region, epoch, .. } = options;
    region.check()?;
    region.check_place("log_end", end.next)?;
    region.check_place("log_tail", tail)?;
    if tail > end.next || end.next.0 - tail.0 > region.bytes() {
        let reason =
            format!("a log of {} bytes cannot reach from {tail} to {}", region.bytes(), end.next);
        return Err(Error::config("log_tail", reason));
    }
    if *epoch <= end.epoch {
        let reason = format!("session {epoch} cannot follow session {}", end.epoch);
        return Err(Error::config("epoch", reason));
    }
    Ok(())
}
