//! Appending entries to the open block, and making them durable.

use std::sync::MutexGuard;

use super::block::OpenBlock;
use super::staging::Staging;
use super::{Durability, Log, Lsn};
use crate::mutants::{Barrier, is_on};
use crate::timer::PERIOD_MIN;
use crate::{Error, Result, StructureId, Threads};

/// The staging area, locked.
type Staged<'a> = MutexGuard<'a, Staging>;

impl Log {
    /// Appends one entry, given in parts, and returns the start of the block that holds it. The entry is in
    /// memory until its block is written; see [`commit`](Self::commit).
    ///
    /// Costs a lock and a copy. Never waits for space; waits for the device only while all block buffers are in flight.
    /// Callers first call [`wait_for_space`](Self::wait_for_space), which rejects updates of a poisoned volume; this
    /// function accepts entries until the open block is full, and no block is written then.
    ///
    /// # Errors
    /// [`Error::LogFull`], [`Error::Poisoned`], or [`Error::Config`] for an entry that is empty or
    /// larger than a block (or than 65535 bytes). The entry is then not in the log.
    pub fn append(&self, structure: StructureId, entry: &[&[u8]]) -> Result<Lsn> {
        let entry_bytes = self.check_entry(entry.iter().map(|part| part.len()).sum())?;
        let mut staging = self.shared.staging();
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

    /// Appends entries of `entry_bytes` bytes each, in order, and returns the start of the first block
    /// that holds one of them. Entries of other threads may come between them.
    ///
    /// # Errors
    /// As [`append`](Self::append), and [`Error::Config`] when `entries` is empty or no whole number
    /// of entries. After [`Error::LogFull`] the first of them may be in the log.
    pub fn append_many(
        &self,
        structure: StructureId,
        entry_bytes: usize,
        mut entries: &[u8],
    ) -> Result<Lsn> {
        let size = self.check_entry(entry_bytes)?;
        check_whole(entry_bytes, entries)?;
        let mut first = None;
        let mut staging = self.shared.staging();
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

    /// Makes everything appended before this call as durable as the mode promises. With [`Durability::Always`] it waits
    /// for a sync, shared with all callers that wait at the time; otherwise it returns at once, unless a period has
    /// ended and no background thread syncs periodically.
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

    /// Makes everything appended before this call durable, whatever the mode. Costs a write and a sync, shared with all
    /// callers that wait at the time, and nothing when everything is durable already.
    ///
    /// # Errors
    /// [`Error::Poisoned`], or the failure of the write or sync itself.
    pub fn sync(&self) -> Result<()> {
        self.shared.sync_appended()
    }

    /// Closes the full open block, and opens the next. When all buffers are in use, or no thread writes blocks, it
    /// waits for the device first, and the caller must check again.
    fn next_block<'a>(&'a self, mut staging: Staged<'a>) -> Result<Staged<'a>> {
        let shared = &*self.shared;
        shared.poison.check()?;
        if staging.open.is_some() {
            shared.close_block(&mut staging);
            if shared.threads == Threads::Inline {
                drop(staging);
                shared.write_closed()?;
                return Ok(shared.staging());
            }
            shared.work.notify_one();
        }
        if !staging.fits_block() && is_on(Barrier::LogSparesItsTail) {
            return Err(shared.full(
                "append never waits for its tail to move; call wait_for_space first, or flush the \
                 structures that hold the tail",
            ));
        }
        if let Some(buf) = staging.take_buffer() {
            staging.open = Some(OpenBlock::new(buf));
            return Ok(staging);
        }
        let closed = staging.start;
        drop(staging);
        shared.write_some(closed)?;
        Ok(shared.staging())
    }

    fn check_entry(&self, entry_bytes: usize) -> Result<u16> {
        let entry_bytes_max = OpenBlock::entry_bytes_max(self.shared.block_bytes);
        if entry_bytes == 0 || entry_bytes > entry_bytes_max {
            let reason = format!(
                "an entry of the log has 1 to {entry_bytes_max} bytes, this one has {entry_bytes}"
            );
            return Err(Error::config("entry_bytes", reason));
        }
        Ok(u16::try_from(entry_bytes).expect("the largest entry's size fits 16 bits"))
    }
}

fn check_whole(entry_bytes: usize, entries: &[u8]) -> Result<()> {
    if entries.is_empty() || !entries.len().is_multiple_of(entry_bytes) {
        let reason = format!(
            "{} bytes are not a positive number of entries of {entry_bytes} bytes",
            entries.len()
        );
        return Err(Error::config("entries", reason));
    }
    Ok(())
}
