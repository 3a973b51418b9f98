//! What the log's callers and its threads share, and the act of appending.
//!
//! Two locks, never held together but for the write lane around both: `staging` is held for a copy,
//! `progress` for a comparison. No lock of these two is held while the device works.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use super::block::OpenBlock;
use super::region::LogRegion;
use super::staging::Staging;
use super::writer::Lane;
use super::{Durability, LogEnd, LogOptions, Lsn};
use crate::mutants::{Barrier, is_on};
use crate::{Error, Poison, Result, StructureId, Threads};

/// Why taking one of the log's locks cannot fail.
pub(super) const LOCKED: &str = "no holder of this lock panics";

/// How often one who waits for room looks whether the volume was poisoned meanwhile.
const POISON_POLL: Duration = Duration::from_millis(50);

/// How long one who makes room itself leaves it to others.
const PAUSE: Duration = Duration::from_millis(1);

/// How far the log has come.
#[derive(Default)]
pub(super) struct Progress {
    /// Every block before this place is written.
    pub written: u64,
    /// Is somebody writing blocks?
    pub draining: bool,
    /// Every block before this place is durable.
    pub synced: u64,
    /// Is somebody syncing?
    pub syncing: bool,
}

/// The log itself.
pub(super) struct Shared {
    pub region: LogRegion,
    pub volume_id: u128,
    pub epoch: u64,
    pub durability: Durability,
    pub threads: Threads,
    pub poison: Arc<Poison>,
    staging: Mutex<Staging>,
    /// There are closed blocks, or the threads are to end.
    pub work: Condvar,
    /// The threads are to end.
    pub stopped: Condvar,
    /// The tail has moved.
    pub room: Condvar,
    progress: Mutex<Progress>,
    /// Blocks have been written, or their writer has given up.
    pub written_moved: Condvar,
    /// A sync has ended.
    pub sync_done: Condvar,
    pub lane: Mutex<Lane>,
    /// Copy of `Staging::start`.
    pub next: AtomicU64,
    /// Copy of `Staging::tail`.
    pub tail: AtomicU64,
    /// Copy of `Progress::synced`.
    pub synced: AtomicU64,
    /// When a period of [`Durability::Every`] was over last, by the device's clock.
    pub period_start_ns: AtomicU64,
    pub bytes_written: AtomicU64,
    pub syncs: AtomicU64,
    /// How many wait for room.
    pub waiting: AtomicU64,
}

/// One who waits for room, for as long as it lives.
pub(super) struct Waiting<'s>(&'s Shared);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    /// A log that goes on behind `end`.
    pub fn new(options: LogOptions, end: LogEnd, tail: Lsn, poison: Arc<Poison>) -> Result<Self> {
        check(&options, end, tail)?;
        let LogOptions { region, volume_id, epoch, durability, threads } = options;
        let start = region.start_from(end.next.0);
        let lane = Lane::new(&region, end.prev_crc)?;
        let progress = Progress { written: start, synced: start, ..Progress::default() };
        let period_start_ns = AtomicU64::new(region.device.now());
        Ok(Self {
            staging: Mutex::new(Staging::new(start, tail.0, region.block_bytes)),
            region,
            volume_id,
            epoch,
            durability,
            threads,
            poison,
            work: Condvar::new(),
            stopped: Condvar::new(),
            room: Condvar::new(),
            progress: Mutex::new(progress),
            written_moved: Condvar::new(),
            sync_done: Condvar::new(),
            lane: Mutex::new(lane),
            next: AtomicU64::new(start),
            tail: AtomicU64::new(tail.0),
            synced: AtomicU64::new(start),
            period_start_ns,
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

    /// See [`Log::append`](super::Log::append).
    pub fn append(&self, structure: StructureId, entry: &[&[u8]]) -> Result<Lsn> {
        let entry_bytes = self.check_entry(entry.iter().map(|part| part.len()).sum())?;
        self.poison.check()?;
        let mut staging = self.staging();
        loop {
            if let Some(open) = &mut staging.open
                && open.push(structure, entry, entry_bytes)
            {
                staging.payload_bytes += u64::from(entry_bytes);
                return Ok(Lsn(staging.start));
            }
            staging = self.next_block(staging)?;
        }
    }

    /// See [`Log::append_many`](super::Log::append_many).
    pub fn append_many(
        &self,
        structure: StructureId,
        entry_bytes: usize,
        mut entries: &[u8],
    ) -> Result<Lsn> {
        let size = self.check_entry(entry_bytes)?;
        check_whole(entry_bytes, entries)?;
        self.poison.check()?;
        let mut first = None;
        let mut staging = self.staging();
        loop {
            let start = Lsn(staging.start);
            if let Some(open) = &mut staging.open {
                let taken = open.push_many(structure, size, entries);
                staging.payload_bytes += taken as u64;
                entries = &entries[taken..];
                if taken > 0 {
                    first.get_or_insert(start);
                }
            }
            match first {
                Some(first) if entries.is_empty() => return Ok(first),
                _ => staging = self.next_block(staging)?,
            }
        }
    }

    /// Closes the open block, which is full, and opens the next; when all buffers are in use it waits
    /// for the device first, and the caller has to look again; likewise where no thread writes blocks.
    fn next_block<'a>(&'a self, mut staging: MutexGuard<'a, Staging>) -> Result<Staged<'a>> {
        if staging.open.is_some() {
            self.close_block(&mut staging);
            if self.threads == Threads::Inline {
                drop(staging);
                self.write_closed()?;
                return Ok(self.staging());
            }
            self.work.notify_one();
        }
        let fits = staging.start + self.region.block() <= staging.tail + self.region.bytes();
        if !fits && is_on(Barrier::LogSparesItsTail) {
            return Err(self.full(
                "append never waits for its tail to move; call wait_for_space \
                                  first, or flush the structures that hold the tail",
            ));
        }
        if let Some(buf) = staging.take_buffer() {
            staging.open = Some(OpenBlock::new(buf));
            return Ok(staging);
        }
        let closed = staging.start;
        drop(staging);
        self.write_some(closed)?;
        self.poison.check()?;
        Ok(self.staging())
    }

    /// Closes the open block, if there is one, and tells where the next will start.
    pub fn close_block(&self, staging: &mut Staging) -> u64 {
        let start = staging.close(&self.region);
        self.next.store(start, Ordering::Release);
        start
    }

    /// See [`Log::wait_for_space`](super::Log::wait_for_space).
    ///
    /// Says whether the room is kept for the caller, who then gives it back.
    pub fn wait_for_space(&self, bytes: u64) -> Result<bool> {
        // Half full and asked for little: that needs no lock, which every insert would have to take. A
        // copy that is a moment old makes no difference so far from the end.
        let used =
            self.next.load(Ordering::Relaxed).saturating_sub(self.tail.load(Ordering::Relaxed));
        if used < self.region.bytes() / 2 && bytes < self.region.bytes() / 64 {
            return self.poison.check().map(|()| false);
        }
        self.reserve(bytes).map(|()| true)
    }

    /// See [`Log::reserve`](super::Log::reserve).
    pub fn reserve(&self, bytes: u64) -> Result<()> {
        self.wait_until_fits(bytes)?.reserved += self.reckoned(bytes);
        Ok(())
    }

    pub fn release_reservation(&self, bytes: u64) {
        self.staging().reserved -= self.reckoned(bytes);
        self.room.notify_all();
    }

    /// See [`Log::has_space`](super::Log::has_space).
    pub fn has_space(&self, bytes: u64) -> bool {
        let staging = self.staging();
        staging.used_bytes() + bytes + self.region.block() <= self.region.bytes()
    }

    /// See [`Log::try_reserve`](super::Log::try_reserve).
    pub fn try_reserve(&self, bytes: u64) -> Result<bool> {
        let used_max = self.used_max(bytes)?;
        self.poison.check()?;
        let mut staging = self.staging();
        let fits = staging.used_bytes() + staging.reserved <= used_max;
        staging.reserved += if fits { self.reckoned(bytes) } else { 0 };
        Ok(fits)
    }

    /// See [`Log::pause_for_space`](super::Log::pause_for_space).
    pub fn pause_for_space(&self) {
        // Whether time or room woke us, the caller tries again.
        drop(self.room.wait_timeout(self.staging(), PAUSE));
    }

    pub fn wait_in_line(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(self)
    }

    /// Bytes of the log that so many bytes of entries may come to take: blocks are reckoned half full, and
    /// where every commit syncs, each one may close a block of its own.
    fn reckoned(&self, bytes: u64) -> u64 {
        let closed = if self.durability == Durability::Always { self.region.block() } else { 0 };
        bytes.saturating_mul(2).saturating_add(closed)
    }

    /// Bytes of the log that may be in use for `bytes` bytes of entries to fit.
    fn used_max(&self, bytes: u64) -> Result<u64> {
        let needed = self.reckoned(bytes).saturating_add(2 * self.region.block());
        self.region.bytes().checked_sub(needed).ok_or_else(|| {
            self.full(&format!(
                "{bytes} bytes of entries at once are too many for it; give it more pages, or \
                 append less at a time"
            ))
        })
    }

    fn wait_until_fits(&self, bytes: u64) -> Result<MutexGuard<'_, Staging>> {
        let used_max = self.used_max(bytes)?;
        let mut staging = self.staging();
        let mut waiting = None;
        loop {
            self.poison.check()?;
            if staging.used_bytes() + staging.reserved <= used_max {
                return Ok(staging);
            }
            waiting.get_or_insert_with(|| self.wait_in_line());
            staging = self.room.wait_timeout(staging, POISON_POLL).expect(LOCKED).0;
        }
    }

    /// Tells the threads to end.
    pub fn stop(&self) {
        self.staging().stop = true;
        self.work.notify_all();
        self.stopped.notify_all();
    }

    fn check_entry(&self, entry_bytes: usize) -> Result<u16> {
        let entry_bytes_max = OpenBlock::entry_bytes_max(self.region.block_bytes);
        if entry_bytes == 0 || entry_bytes > entry_bytes_max {
            let reason = format!(
                "an entry of the log has 1 to {entry_bytes_max} bytes, this one has {entry_bytes}"
            );
            return Err(Error::config("entry_bytes", reason));
        }
        Ok(u16::try_from(entry_bytes).expect("the largest entry's size fits 16 bits"))
    }

    fn full(&self, reason: &str) -> Error {
        Error::LogFull { log_bytes: self.region.bytes(), reason: reason.into() }
    }
}

/// The staging area, locked.
type Staged<'a> = MutexGuard<'a, Staging>;

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

fn check_whole(entry_bytes: usize, entries: &[u8]) -> Result<()> {
    if entries.is_empty() || !entries.len().is_multiple_of(entry_bytes) {
        let reason = format!(
            "{} bytes are no positive number of entries of {entry_bytes} bytes",
            entries.len()
        );
        return Err(Error::config("entries", reason));
    }
    Ok(())
}
