//! Replaying the log into the buffers.

use std::sync::atomic::Ordering::{Relaxed, Release};

use nandex_device::{PAGE_BYTES, PageId};
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::{Lsn, Structure};

use super::{
    Boundary, BoundaryRecord, Checkpoints, Core, Layout, LogCodec, PartitionState, WriteBuffer,
    into_store,
};
use crate::{Error, Result};

/// An update of a layout's buffer.
type Update<'u, L> = <<L as Layout>::Buffer as WriteBuffer>::Update<'u>;

pub(super) fn not_an_entry(lsn: Lsn, bytes: &[u8]) -> nandex_store::Error {
    let found = format!("{} bytes that begin with {:02x?}", bytes.len(), bytes.first());
    let page = PageId(lsn.0 / PAGE_BYTES as u64);
    nandex_store::Error::corrupt("log entry", page, "an update of the structure", found)
}

/// The updates of a partition that a replay skips: those that are on flash.
struct Covered {
    /// The updates before this log position.
    tail: Lsn,
    /// The updates before this boundary, until it is reached.
    boundary: Option<u64>,
}

impl<L: Checkpoints> Core<L> {
    /// Applies the log's updates, oldest first, as if they arrived now, but without logging them: until a buffer is
    /// flushed its updates keep their position in the log.
    ///
    /// Skips updates that are on flash: those before the partition's tail, or before its boundary if updates add up. A
    /// boundary ends a buffer at the same update as before, so each boundary keeps its meaning.
    pub(super) fn replay(&self, structure: &Structure, tails: &[Lsn]) -> Result<()> {
        let mut covered = self.covered(structure, tails);
        let visit = &mut |lsn: Lsn, bytes: &[u8]| -> Result<()> {
            self.replayed.store(lsn.0, Release);
            if L::Buffer::ADDS_UP
                && let Some(record) = BoundaryRecord::decode(bytes)
            {
                return self.replay_boundary(lsn, record, &mut covered);
            }
            if let Some((index, place, update)) = self.codec.decode_put_back(bytes) {
                let tail = covered[index].tail;
                let is_replayed = place >= tail && is_on(Barrier::PutBackIsReplayedOnce);
                return if lsn < tail || is_replayed {
                    Ok(())
                } else {
                    self.replay_update(lsn, index, update)
                };
            }
            let is_update = self.codec.decode_each(bytes, &mut |index, update| {
                let Covered { tail, boundary } = &covered[index];
                if lsn < *tail || boundary.is_some() {
                    return Ok(());
                }
                self.replay_update(lsn, index, update)
            })?;
            let is_move =
                || self.policy.logs_moves && super::format::Moved::decode(bytes).is_some();
            if is_update || is_move() { Ok(()) } else { Err(not_an_entry(lsn, bytes).into()) }
        };
        self.volume.replay(structure, &mut |lsn, bytes| visit(lsn, bytes).map_err(into_store))?;
        if self.has_unsaved() {
            // Until the next checkpoint has saved what flushes put back meanwhile, the log keeps its old tail, and
            // another replay would write again what is on flash by then.
            self.finish_flushes()?;
        }
        self.replayed.store(u64::MAX, Release);
        self.ready.store(true, Release);
        Ok(())
    }

    fn covered(&self, structure: &Structure, tails: &[Lsn]) -> Vec<Covered> {
        if !L::Buffer::ADDS_UP {
            let covered = |tail: &Lsn| Covered { tail: *tail, boundary: None };
            return tails.iter().map(covered).collect();
        }
        let of = |(partition, tail): (&super::Partition<L>, &Lsn)| {
            let number = partition.read().covered().number;
            // If the log's tail is past a boundary, all remaining records come after it.
            let is_before = number > 0 && structure.tail <= *tail;
            let skips = is_before && is_on(Barrier::ReplaySkipsToBoundary);
            let tail = if number == 0 { *tail } else { Lsn(0) };
            Covered { tail, boundary: skips.then_some(number) }
        };
        self.partitions.iter().zip(tails).map(of).collect()
    }

    /// Handles a boundary in the log: the end of what is on flash, or the end of a buffer, which ends again.
    fn replay_boundary(
        &self,
        lsn: Lsn,
        record: BoundaryRecord,
        covered: &mut [Covered],
    ) -> Result<()> {
        let BoundaryRecord { number, partition, ends_buffer } = record;
        let index = partition as usize;
        let Some(covered) = covered.get_mut(index) else {
            return Err(not_an_entry(lsn, &record.encode()).into());
        };
        self.next_boundary.fetch_max(number.saturating_add(1), Relaxed);
        if lsn < covered.tail {
            return Ok(());
        }
        if covered.boundary.is_some() {
            covered.boundary = covered.boundary.filter(|it| *it != number);
            return Ok(());
        }
        if !ends_buffer {
            return Ok(());
        }
        let boundary = Boundary { number, at: lsn };
        let mut state = self.partitions[index].write();
        loop {
            if state.active.entries() == 0 && state.frozen.is_empty() {
                state.flushed = boundary;
                state.snapshot = None;
                return Ok(());
            }
            if self.volume.is_read_only() {
                self.keep_full(&mut state, boundary);
                return Ok(());
            }
            if self.freeze_with(index, &mut state, 0, || Ok(boundary))? {
                drop(state);
                return self.catch_up_now().map(drop);
            }
            state = self.wait_for_buffer(index, state)?;
        }
    }

    fn replay_update(&self, lsn: Lsn, index: usize, update: Update<'_, L>) -> Result<()> {
        let mut state = self.partitions[index].write();
        if L::Buffer::ADDS_UP {
            // The log has a boundary wherever a buffer ended before it was full.
            state.active.limit(u64::MAX);
        }
        while state.active.apply(&[update])? == 0 {
            if L::Buffer::ADDS_UP {
                return Err(self.does_not_fit(lsn, &state));
            }
            drop(state);
            let has_changed = !self.volume.is_read_only() && L::make_space(self, index)?;
            state = self.partitions[index].write();
            if has_changed {
                continue;
            }
            state = match self.rotate(index, state) {
                // The update was acknowledged when the same entries were arranged differently. Rejecting it now would
                // make the whole structure unreadable.
                Err(Error::Full { .. }) if self.policy.forces_replayed => {
                    let mut state = self.partitions[index].write();
                    let removes = state.active.force(update);
                    state.forced += u64::from(removes);
                    state
                }
                rotated => rotated?,
            };
        }
        state.updates += 1;
        state.user_updates += 1;
        state.since.get_or_insert(lsn);
        Ok(())
    }

    /// Returns the error of an update that does not fit, although the same updates fitted the same buffer before.
    fn does_not_fit(&self, lsn: Lsn, state: &PartitionState<L>) -> Error {
        let page = PageId(lsn.0 / PAGE_BYTES as u64);
        let expected = "updates that fit the buffer which they were in";
        let found = format!("one more than {} entries", state.active.entries());
        nandex_store::Error::corrupt("log entry", page, expected, found).into()
    }
}
