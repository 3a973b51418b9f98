//! Entries of other tables: incarnations of whole buffers, past the super table's own buffer and the log.

use std::sync::atomic::Ordering::SeqCst;

use nandex_store::buffer::Buffer;
use nandex_store::entries::{Entry, SlotState};
use nandex_store::ring::SegmentId;

use super::flush::Scratch;
use super::{Incarnations, Inner};
use crate::Result;
use crate::write::absorb::{BulkLayout, Chosen, Placed};
use crate::write::{Layout, WriteBuffer};

/// An entry's key and value.
type Owned = (Vec<u8>, Vec<u8>);

impl BulkLayout for Incarnations {
    /// On which side of the buffers it goes.
    const PUT_BYTES: u64 = size_of::<Placed>() as u64;

    /// Fills spare buffers, and writes each full one as the newest incarnation. What fills none goes to the super
    /// table's own buffer, and so does what that would hide, and all of it where something must be evicted first.
    fn put_chosen(
        core: &Inner,
        index: usize,
        chosen: &Chosen<'_>,
        scratch: &mut Option<Scratch>,
    ) -> Result<()> {
        if chosen.len() <= core.layout.config.filter.entries_max() as usize {
            return core.put_each(index, chosen.entries());
        }
        let scratch = match scratch {
            Some(scratch) => scratch,
            None => scratch.insert(Self::new_scratch(core)?),
        };
        core.volume.poison().check()?;
        let (hidden, direct) = core.split_buffered(index, chosen);
        core.put_each(index, chosen.with(&hidden).entries())?;
        let mut left = &direct[..];
        loop {
            match core.put_whole(index, chosen.with(left), scratch)? {
                0 => return core.put_each(index, chosen.with(left).entries()),
                put => left = &left[put..],
            }
        }
    }
}

impl Inner {
    /// Writes as many of these entries as fill a buffer, and returns their number: 0 if they do not fill one, or there
    /// is no space for an incarnation now.
    fn put_whole(&self, index: usize, chosen: Chosen<'_>, scratch: &mut Scratch) -> Result<usize> {
        if !self.partitions[index].read().frozen.is_empty() {
            self.finish_flushes()?;
        }
        let Some(mut buffer) = self.pool.take(self.policy.spares_kept) else { return Ok(0) };
        buffer.limit(self.layout.shape.buffer_limit());
        let is_taken = |entry: &Entry<'_>| buffer.put(self.hasher.hash(entry.key), *entry).is_ok();
        let taken = chosen.entries().take_while(is_taken).count();
        let is_full = taken < chosen.len();
        let left = if is_full { self.write_whole(index, &buffer, scratch) } else { Ok(None) };
        // The super table's own buffer may need it next.
        self.pool.give(buffer);
        let Some(left) = left? else { return Ok(0) };
        let entries = left.iter().map(|(key, value)| Entry { state: SlotState::Live, key, value });
        self.put_each(index, entries)?;
        Ok(taken)
    }

    /// Makes a full buffer the newest incarnation, if there is space for it. Returns the entries that are not in its
    /// pages or its filter.
    fn write_whole(
        &self,
        index: usize,
        buffer: &Buffer,
        scratch: &mut Scratch,
    ) -> Result<Option<Vec<Owned>>> {
        let left_out = self.build_filter(buffer, scratch);
        let kept = buffer.len() - buffer.stash_len() - left_out.len();
        let lock = self.partitions[index].maintain();
        let Some(id) = self.segment_for_whole(index) else { return Ok(None) };
        if let Some(cache) = self.lookups.cache.get() {
            buffer.leave(cache, self.hasher);
        }
        self.write_incarnation((index, id), buffer, &left_out, scratch)?;
        let mut state = self.partitions[index].write();
        self.push_incarnation((index, id), &mut state, kept);
        drop(state);
        drop(lock);
        self.moved.store(true, SeqCst);
        self.credit_flush(buffer, kept, 1000);
        let owned = |entry: Entry<'_>| (entry.key.to_vec(), entry.value.to_vec());
        Ok(Some(self.carried_over(buffer, &left_out).map(owned).collect()))
    }

    /// Takes the next segment, unless something must be evicted for it. The caller holds the maintenance lock. Where a
    /// buffer waits, its segment comes before this one, and so does its incarnation.
    fn segment_for_whole(&self, index: usize) -> Option<SegmentId> {
        let state = self.partitions[index].write();
        let ring = self.layout.rings.of(index);
        let has_space = state.frozen.is_empty()
            && state.level.window.len() + 1 < self.layout.config.incarnations_max as usize
            && ring.free_segments() > self.layout.rings.reserve_segments();
        if has_space { ring.reserve() } else { None }
    }
}
