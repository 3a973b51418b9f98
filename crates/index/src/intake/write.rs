//! The insert path: buffer first, then the log, then the acknowledgement.

use std::sync::MutexGuard;

use nandex_store::Durability;
use nandex_store::entries::{Entry, SlotState};
use nandex_store::hash::KeyHash;
use nandex_store::log::Reservation;
use nandex_store::mutants::{Barrier, is_on};

use super::format::{LOG_ENTRY_EXTRA_BYTES, LOG_PUT, LOG_REMOVE, Moved, encode_log_put};
use super::pool::Job;
use super::{Intake, PartitionState, Room};
use crate::{Error, Result};

/// Full buffers that a partition may have waiting before its inserts wait too.
const FROZEN_MAX: usize = 2;

/// Pairs of a batch that are sorted by partition at a time.
const BATCH: usize = 4096;

impl<R: Room> Intake<R> {
    #[inline]
    pub(crate) fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_key(key)?;
        self.check_value(value)?;
        let room = self.start_write()?;
        let hash = self.hasher.hash(key);
        let entry = Entry { state: SlotState::Live, key, value };
        let index = self.partition_of(hash);
        let state = self.put(index, self.partitions[index].lock(), hash, entry)?;
        drop((state, room));
        Ok(self.volume.log().commit()?)
    }

    /// Removes a key: forgets it where RAM knows that flash does not hold it, else a tombstone.
    pub(crate) fn remove(&self, key: &[u8]) -> Result<()> {
        self.check_key(key)?;
        let room = self.start_write()?;
        let hash = self.hasher.hash(key);
        let index = self.partition_of(hash);
        let mut state = self.partitions[index].lock();
        if R::may_be_older(self, index, &state, hash, key) {
            let entry = Entry { state: SlotState::Tombstone, key, value: &[] };
            state = match self.put(index, state, hash, entry) {
                Err(Error::Full { .. }) if R::FORCES_REMOVALS => self.force(index, hash, entry)?,
                put => put?,
            };
        } else {
            state.active.forget(hash, key);
            self.note_user_put(&mut state);
            self.log_entry(&mut state, Entry { state: SlotState::Tombstone, key, value: &[] })?;
        }
        drop((state, room));
        Ok(self.volume.log().commit()?)
    }

    pub(crate) fn insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        for (key, value) in pairs {
            self.check_key(key)?;
            self.check_value(value)?;
        }
        // An eighth of the log at a time, so that batches of several threads fit side by side; half of that
        // where they reserve twice as much.
        let share = if R::LOGS_MOVES { 16 } else { 8 };
        let entries = self.volume.log().capacity_bytes() / share / self.logged_bytes(1);
        let batch = usize::try_from(entries).unwrap_or(BATCH).clamp(1, BATCH);
        pairs.chunks(batch).try_for_each(|batch| self.insert_batch(batch))?;
        Ok(self.volume.log().commit()?)
    }

    /// Puts a batch partition by partition, so that each is locked once and its pages stay in the
    /// processor's cache. The order of pairs with the same key is kept.
    fn insert_batch(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        self.volume.poison().check()?;
        let _room = self.volume.reserve(self.batch_bytes(pairs.len()))?;
        let hashes: Vec<_> = pairs.iter().map(|(key, _)| self.hasher.hash(key)).collect();
        let order = self.by_partition(&hashes);
        let mut records = Vec::new();
        order.chunk_by(|one, next| one.0 == next.0).try_for_each(|group| {
            let index = group[0].0 as usize;
            let mut state = self.partitions[index].lock();
            for &(_, pair) in group {
                let (key, value) = pairs[pair as usize];
                let entry = Entry { state: SlotState::Live, key, value };
                while state.active.put(&self.hasher, hashes[pair as usize], entry).is_err() {
                    // What is in the full buffer is logged before others can change it again.
                    self.log_records(&mut state, &mut records)?;
                    state = self.rotate(index, state)?;
                }
                self.note_user_put(&mut state);
                encode_log_put(&mut records, key, value);
            }
            self.log_records(&mut state, &mut records)
        })
    }

    /// Logs the puts of a batch into one partition, with one lock of the log for all.
    fn log_records(&self, state: &mut PartitionState<R>, records: &mut Vec<u8>) -> Result<()> {
        if self.logs() && !records.is_empty() {
            let log = self.volume.log();
            if is_on(Barrier::BufferNotesItsPlace) {
                state.since.get_or_insert_with(|| log.next_lsn());
            }
            log.append_many(self.id, 1 + self.layout.entry_bytes(), records)?;
        }
        records.clear();
        Ok(())
    }

    /// The partition and the position of each hash, sorted by partition and then by position.
    fn by_partition(&self, hashes: &[KeyHash]) -> Vec<(u32, u32)> {
        let mut starts = vec![0u32; self.partitions.len() + 1];
        for hash in hashes {
            starts[self.partition_of(*hash) + 1] += 1;
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut order = vec![(0, 0); hashes.len()];
        for (position, hash) in (0u32..).zip(hashes) {
            let index = self.partition_of(*hash);
            order[starts[index] as usize] = (index as u32, position);
            starts[index] += 1;
        }
        order
    }

    /// Refuses on a poisoned volume, and waits for room in the log, before any lock is taken.
    #[inline]
    fn start_write(&self) -> Result<Option<Reservation<'_>>> {
        self.volume.poison().check()?;
        Ok(self.volume.wait_for_space(self.logged_bytes(1))?)
    }

    /// Bytes of so many entries in the log.
    #[inline]
    fn logged_bytes(&self, entries: usize) -> u64 {
        (entries * (LOG_ENTRY_EXTRA_BYTES + self.layout.entry_bytes())) as u64
    }

    /// Bytes of the log that a batch reserves. Where each buffer that it fills is followed by a move, and by
    /// the sync that frees a block for the next one, the log's blocks are closed early: twice as many for its
    /// own buffers, and one for each that waits from before.
    fn batch_bytes(&self, entries: usize) -> u64 {
        let bytes = self.logged_bytes(entries);
        if !R::LOGS_MOVES {
            return bytes;
        }
        let log = self.volume.log();
        let waiting = u64::from(self.shape.spare_buffers) * log.block_bytes() / 2;
        2 * bytes + waiting.min(log.capacity_bytes() / 16)
    }

    /// Puts an entry into the active buffer and the log; changes buffers when this one is full.
    #[inline]
    pub(crate) fn put<'a>(
        &'a self,
        index: usize,
        mut state: MutexGuard<'a, PartitionState<R>>,
        hash: KeyHash,
        entry: Entry<'_>,
    ) -> Result<MutexGuard<'a, PartitionState<R>>> {
        while state.active.put(&self.hasher, hash, entry).is_err() {
            state = self.rotate(index, state)?;
        }
        self.note_user_put(&mut state);
        self.log_entry(&mut state, entry)?;
        Ok(state)
    }

    /// Puts a removal into the buffer of a partition that takes nothing more: removals make room.
    fn force<'a>(
        &'a self,
        index: usize,
        hash: KeyHash,
        entry: Entry<'_>,
    ) -> Result<MutexGuard<'a, PartitionState<R>>> {
        let mut state = self.partitions[index].lock();
        state.active.force(&self.hasher, hash, entry);
        state.forced += 1;
        self.note_user_put(&mut state);
        self.log_entry(&mut state, entry)?;
        Ok(state)
    }

    #[inline]
    fn note_user_put(&self, state: &mut PartitionState<R>) {
        state.puts += 1;
        state.user_puts += 1;
        state.inserts += 1;
    }

    /// Are updates logged? Not where durability waits for the flush; except that a room which puts entries
    /// that were durable back into RAM logs those, and must log what comes after them too, or recovery
    /// would take the older for the newer.
    pub(crate) fn logs(&self) -> bool {
        self.volume.durability() != Durability::Never || self.room.logs_always()
    }

    /// Logs an update that was put into the active buffer.
    #[inline]
    pub(crate) fn log_entry(&self, state: &mut PartitionState<R>, entry: Entry<'_>) -> Result<()> {
        if !self.logs() {
            return Ok(());
        }
        let log = self.volume.log();
        // Noted before the append, so that the place is not after the entry's.
        if is_on(Barrier::BufferNotesItsPlace) {
            state.since.get_or_insert_with(|| log.next_lsn());
        }
        match entry.state {
            SlotState::Live => log.append(self.id, &[&[LOG_PUT], entry.key, entry.value])?,
            SlotState::Tombstone => log.append(self.id, &[&[LOG_REMOVE], entry.key])?,
        };
        Ok(())
    }

    /// Puts a fresh buffer in the place of the full one, which is written in the background, or before
    /// this returns where there is none; waits when there is no fresh buffer.
    #[cold]
    pub(crate) fn rotate<'a>(
        &'a self,
        index: usize,
        mut state: MutexGuard<'a, PartitionState<R>>,
    ) -> Result<MutexGuard<'a, PartitionState<R>>> {
        self.volume.poison().check()?;
        if state.frozen.len() < FROZEN_MAX
            && self.try_freeze(index, &mut state, self.room.spares_left())?
            && self.options.flush_threads > 0
        {
            return Ok(state);
        }
        drop(state);
        if !self.catch_up_now()? {
            self.pool.wait();
        }
        Ok(self.partitions[index].lock())
    }

    /// Freezes the active buffer if the pool has another, beside those it is to leave.
    pub(crate) fn try_freeze(
        &self,
        index: usize,
        state: &mut PartitionState<R>,
        leave: usize,
    ) -> Result<bool> {
        let Some(mut fresh) = self.pool.take(leave) else { return Ok(false) };
        let held = match R::hold(self, index, state) {
            Ok(held) => held,
            Err(full) => {
                self.pool.give(fresh);
                return Err(full);
            }
        };
        fresh.limit(self.shape.buffer_limit());
        state.freeze(fresh, held);
        self.work.push(Job::Flush(index));
        Ok(true)
    }

    /// What the log says when a partition's oldest buffer has moved to flash, before the room's own bytes:
    /// the place from which on the log is still needed, and the image. The caller holds the lock under
    /// which the buffer has left.
    pub(crate) fn move_prefix(&self, index: usize, state: &PartitionState<R>) -> Vec<u8> {
        let now = self.log_now();
        let tail = state.tail().map_or(now, |since| since.min(now));
        let partition = u32::try_from(index).expect("at most 65,536 partitions");
        Moved { partition, tail, image: state.needed_image() }.encode()
    }

    pub(crate) fn sync(&self) -> Result<()> {
        if self.volume.durability() == Durability::Never {
            // Nothing of the user's is in the log: only flash makes it durable.
            return self.flush_all();
        }
        Ok(self.volume.log().sync()?)
    }
}
