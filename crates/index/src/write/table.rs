//! Tables on the write path: entries of keys and values, in which a later entry replaces an earlier one of the same
//! key.

use nandex_device::PageId;
use nandex_store::buffer::{Buffer, STASH_LEN_MAX};
use nandex_store::entries::{Entry, EntryLayout, KeyState, SlotState};
use nandex_store::hash::{KeyHash, KeyHasher};
use nandex_store::reads::ReadPool;
use nandex_store::{Log, Lsn, Structure, StructureId, Volume};

use super::format::{
    LOG_ENTRY_EXTRA_BYTES, LOG_PUT, LOG_PUT_BACK, LOG_REMOVE, LOG_REMOVE_BACK, decode_log_entry,
    decode_put_back, encode_log_put,
};
use super::page_snapshots::SnapshotPlaces;
use super::update::{BATCH, LOCKED_MAX, Locked};
use super::{
    Core, LogCodec, Opening, Options, PageSnapshots, PartitionState, Stagger, TableLayout,
    WriteBuffer, WriteShape, by_partition,
};
use crate::lookup::TableCache;
use crate::{Error, Result};

/// The number of updates of one buffer, or entries that leave it, whose places are prefetched together: as many cache
/// misses as a core has in flight at once.
const PREFETCHED: usize = 16;

/// The shape of a table's buffers, from its configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TableShape {
    /// The layout of entry pages.
    pub layout: EntryLayout,
    /// The number of partitions, a power of two.
    pub partitions: u32,
    /// Pages of 4 KiB in a buffer.
    pub buffer_pages: u32,
    /// The number of entries in a buffer's pages at which it counts as full; its stash is extra.
    pub entries_max: u32,
    /// The maximum number of entries that flushes carry over from the buffers that one snapshot has to hold, without
    /// stashes.
    pub carry_over_max: u32,
    /// The number of buffers in addition to one per partition.
    pub spare_buffers: u32,
    /// Whether the first buffer of each partition is flushed early, each at another fill.
    pub stagger: bool,
}

impl TableShape {
    /// Returns the number of entries that fit a buffer, including its stash.
    pub(crate) fn buffer_limit(&self) -> usize {
        (self.entries_max as usize).saturating_add(STASH_LEN_MAX)
    }

    /// Returns the partition of a key: the first bits of its hash.
    #[inline]
    pub(crate) fn partition_of(&self, hash: KeyHash) -> usize {
        self.partition_of_place(hash.place)
    }

    /// Returns the partition of a key whose hash has this place.
    #[inline]
    pub(crate) fn partition_of_place(&self, place: u64) -> usize {
        // The shift is split so that a single partition (0 bits) works too.
        (place >> 1 >> (63 - self.partitions.trailing_zeros())) as usize
    }

    /// Creates an empty buffer for `entries_max` entries, which may have fewer pages than others.
    pub(crate) fn new_small_buffer(&self, hasher: KeyHasher, entries_max: usize) -> Buffer {
        Buffer::new(self.layout, hasher, self.small_buffer_pages(entries_max))
    }

    /// Returns the pages of a small buffer for `entries_max` entries.
    pub(crate) fn small_buffer_pages(&self, entries_max: usize) -> usize {
        let pages = entries_max.div_ceil(self.layout.slots() * 3 / 4).max(1);
        pages.min(self.buffer_pages as usize)
    }

    /// Creates an empty buffer.
    pub(crate) fn new_buffer(&self, hasher: KeyHasher) -> Buffer {
        Buffer::new(self.layout, hasher, self.buffer_pages as usize)
    }

    /// Returns the write path's view of this shape.
    pub(super) fn write_shape(&self) -> WriteShape {
        let most = self.buffer_limit() as u64;
        let half = Stagger::Between { least: most / 2, most };
        WriteShape {
            partitions: self.partitions,
            spare_buffers: self.spare_buffers,
            buffer_entries_max: most,
            stagger: if self.stagger { half } else { Stagger::Off },
        }
    }
}

/// The parameters of the write path for opening a table.
pub(crate) struct TableOpening {
    pub shape: TableShape,
    /// The threads that write full buffers; with 0 the updating thread does.
    pub flush_threads: usize,
    /// The first page of the places for snapshots.
    pub snapshots_at: PageId,
    /// The pool that reads the table's pages for lookups.
    pub reads: ReadPool,
}

impl TableOpening {
    /// Adds what the write path needs for a table of this volume.
    pub(crate) fn of(self, volume: &Volume, structure: &Structure) -> Opening<Buffer> {
        let Self { shape, flush_threads, snapshots_at, reads } = self;
        let places = SnapshotPlaces::new(structure.id, &shape, snapshots_at);
        Opening {
            shape: shape.write_shape(),
            options: Options { flush_threads },
            reads,
            codec: EntryCodec { shape, hasher: volume.hasher() },
            snapshots: PageSnapshots::new(volume, shape, places),
        }
    }
}

/// An entry to be put into a buffer, with the hash of its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryUpdate<'e> {
    pub hash: KeyHash,
    pub entry: Entry<'e>,
}

/// Copies all entries of a buffer into an empty one of any size.
pub(crate) fn copy_entries(from: &Buffer, to: &mut Buffer, hasher: KeyHasher) {
    let of_pages = from.page_entries().map(|(_, _, entry)| entry);
    of_pages.chain(from.stash_entries()).for_each(|it| to.force(hasher.hash(it.key), it));
}

impl WriteBuffer for Buffer {
    type Update<'u> = EntryUpdate<'u>;
    type Codec = EntryCodec;
    type Snapshots = PageSnapshots;

    const ADDS_UP: bool = false;

    #[inline]
    fn apply(&mut self, updates: &[EntryUpdate<'_>]) -> Result<usize> {
        if let [update] = updates {
            return Ok(usize::from(self.put(update.hash, update.entry).is_ok()));
        }
        for (number, group) in updates.chunks(PREFETCHED).enumerate() {
            group.iter().for_each(|it| self.prefetch(it.hash));
            let full = group.iter().position(|it| self.put(it.hash, it.entry).is_err());
            if let Some(at) = full {
                return Ok(number * PREFETCHED + at);
            }
        }
        Ok(updates.len())
    }

    fn force(&mut self, update: EntryUpdate<'_>) -> bool {
        Self::force(self, update.hash, update.entry);
        update.entry.state == SlotState::Tombstone
    }

    fn entries(&self) -> u64 {
        self.len() as u64
    }

    fn limit(&mut self, entries_max: u64) {
        Self::limit(self, usize::try_from(entries_max).unwrap_or(usize::MAX));
    }

    fn clear(&mut self) {
        self.reset();
    }

    /// Updates the cache with the entries of this buffer: a newer buffer with the key is searched first.
    fn leave(&self, cache: &TableCache, hasher: KeyHasher) {
        let of_pages = self.page_entries().map(|(_, _, entry)| entry);
        leave(cache, hasher, of_pages.chain(self.stash_entries()));
    }

    fn ram_bytes(&self) -> u64 {
        Self::ram_bytes(self) as u64
    }
}

/// Updates the cache with these entries, which are about to leave RAM for flash.
pub(crate) fn leave<'e>(
    cache: &TableCache,
    hasher: KeyHasher,
    mut entries: impl Iterator<Item = Entry<'e>>,
) {
    if cache.entries.is_unused() {
        return;
    }
    let mut leaving = cache.leaving();
    let mut group = Vec::with_capacity(PREFETCHED);
    loop {
        group.extend(entries.by_ref().take(PREFETCHED).map(|it| (hasher.hash(it.key), it)));
        if group.is_empty() {
            return;
        }
        group.iter().for_each(|(hash, _)| leaving.prefetch(*hash));
        for (hash, entry) in group.drain(..) {
            leaving.leave(hash, entry.key, entry.into());
        }
    }
}

/// The encoding of entries in the log: a tag, the key, and the value of a put.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryCodec {
    pub shape: TableShape,
    pub hasher: KeyHasher,
}

impl EntryCodec {
    /// Returns the bytes of an entry in the log.
    pub(crate) fn entry_bytes(&self) -> usize {
        LOG_ENTRY_EXTRA_BYTES + self.shape.layout.entry_bytes()
    }

    /// Appends an entry that a flush has put back to the log, with the position from which a replay finds it anyway.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub(super) fn append_put_back(
        &self,
        log: &Log,
        id: StructureId,
        place: Lsn,
        entry: Entry<'_>,
    ) -> Result<()> {
        let place = place.0.to_le_bytes();
        match entry.state {
            SlotState::Live => {
                log.append(id, &[&[LOG_PUT_BACK], &place, entry.key, entry.value])?
            }
            SlotState::Tombstone => log.append(id, &[&[LOG_REMOVE_BACK], &place, entry.key])?,
        };
        Ok(())
    }

    fn update<'b>(&self, entry: Entry<'b>) -> (usize, EntryUpdate<'b>) {
        let hash = self.hasher.hash(entry.key);
        (self.shape.partition_of(hash), EntryUpdate { hash, entry })
    }
}

impl LogCodec<Buffer> for EntryCodec {
    #[inline]
    fn logged_bytes(&self, updates: &[EntryUpdate<'_>]) -> u64 {
        (updates.len() * self.entry_bytes()) as u64
    }

    #[inline]
    fn append(
        &self,
        log: &Log,
        (id, _): (StructureId, usize),
        updates: &[EntryUpdate<'_>],
        records: &mut Vec<u8>,
    ) -> Result<()> {
        if let [EntryUpdate { entry, .. }] = updates {
            match entry.state {
                SlotState::Live => log.append(id, &[&[LOG_PUT], entry.key, entry.value])?,
                SlotState::Tombstone => log.append(id, &[&[LOG_REMOVE], entry.key])?,
            };
            return Ok(());
        }
        records.clear();
        for EntryUpdate { entry, .. } in updates {
            assert!(entry.state == SlotState::Live, "entries of a batch have one width");
            encode_log_put(records, entry.key, entry.value);
        }
        log.append_many(id, self.entry_bytes(), records)?;
        Ok(())
    }

    fn decode<'b>(&self, bytes: &'b [u8]) -> Option<(usize, EntryUpdate<'b>)> {
        Some(self.update(decode_log_entry(bytes, self.shape.layout)?))
    }

    fn decode_put_back<'b>(&self, bytes: &'b [u8]) -> Option<(usize, Lsn, EntryUpdate<'b>)> {
        let (place, entry) = decode_put_back(bytes, self.shape.layout)?;
        let (index, update) = self.update(entry);
        Some((index, place, update))
    }
}

impl<L: TableLayout> PartitionState<L> {
    /// Returns the state of a key in the buffers.
    ///
    /// # Errors
    /// The key is not found, and a lost page may have had it.
    #[inline]
    pub(crate) fn buffered(&self, hash: KeyHash, key: &[u8]) -> Result<KeyState<&[u8]>> {
        let frozen = || {
            let mut states = self.frozen.iter().rev().map(|it| it.buffer.get(hash, key));
            states.find(KeyState::is_known).unwrap_or_default()
        };
        let known = self.active.get(hash, key).or_else(frozen);
        // A lost page of the snapshot had at most an older version of a key that is found.
        if !known.is_known() {
            self.lost.iter().try_for_each(|lost| lost.refuse(hash))?;
        }
        Ok(known)
    }

    /// Returns those of these entries for which no buffer has a newer version.
    ///
    /// # Errors
    /// As [`buffered`](Self::buffered).
    pub(crate) fn not_buffered<'k>(
        &self,
        entries: &[(KeyHash, Entry<'k>)],
    ) -> Result<Vec<(KeyHash, Entry<'k>)>> {
        let mut others = Vec::with_capacity(entries.len());
        for &(hash, entry) in entries {
            if !self.buffered(hash, entry.key)?.is_known() {
                others.push((hash, entry));
            }
        }
        Ok(others)
    }

    /// Returns whether a key is in a buffer that is being written.
    pub(crate) fn in_frozen(&self, hash: KeyHash, key: &[u8]) -> bool {
        self.frozen.iter().any(|frozen| frozen.buffer.get(hash, key).is_known())
    }
}

impl<L: TableLayout> Core<L> {
    /// Returns the layout of entry pages.
    #[inline]
    pub(crate) fn entry_layout(&self) -> EntryLayout {
        self.codec.shape.layout
    }

    /// Returns the partition of a key.
    #[inline]
    pub(crate) fn partition_of(&self, hash: KeyHash) -> usize {
        self.codec.shape.partition_of(hash)
    }

    pub(crate) fn check_key_width(&self, key: &[u8]) -> Result<()> {
        Error::check_width("key", key, self.entry_layout().key_bytes())
    }

    pub(crate) fn check_value(&self, value: &[u8]) -> Result<()> {
        Error::check_width("value", value, self.entry_layout().value_bytes())
    }

    #[inline]
    pub(crate) fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_key_width(key)?;
        self.check_value(value)?;
        let entry = Entry { state: SlotState::Live, key, value };
        let update = [EntryUpdate { hash: self.hasher.hash(key), entry }];
        let reservation = self.wait_for_log(self.codec.logged_bytes(&update))?;
        let index = self.partition_of(update[0].hash);
        let state =
            self.apply_locked(index, self.partitions[index].write(), &update, &mut Vec::new())?;
        drop((state, reservation));
        self.acknowledge()
    }

    /// Removes a key: drops its entry if RAM proves that flash does not have the key, else puts a tombstone.
    #[inline]
    pub(crate) fn remove(&self, key: &[u8]) -> Result<()> {
        self.remove_with(key, (false, self.policy.forces_removals))
    }

    /// Like [`remove`](Self::remove), if an older table may have the key too. A full table rejects the removal, since
    /// it grows instead.
    pub(crate) fn remove_or_grow(&self, key: &[u8], may_be_elsewhere: bool) -> Result<()> {
        self.remove_with(key, (may_be_elsewhere, false))
    }

    #[inline]
    fn remove_with(&self, key: &[u8], (may_be_elsewhere, forces): (bool, bool)) -> Result<()> {
        self.check_key_width(key)?;
        let entry = Entry { state: SlotState::Tombstone, key, value: &[] };
        let update = EntryUpdate { hash: self.hasher.hash(key), entry };
        let reservation = self.wait_for_log(self.codec.logged_bytes(&[update]))?;
        let index = self.partition_of(update.hash);
        let state = self.partitions[index].write();
        let is_older =
            may_be_elsewhere || L::may_be_older(self, index, &state, update.hash, update.entry.key);
        let state = self.remove_locked((index, state), update, (is_older, forces))?;
        drop((state, reservation));
        self.acknowledge()
    }

    fn remove_locked<'a>(
        &'a self,
        (index, mut state): (usize, Locked<'a, L>),
        update: EntryUpdate<'_>,
        (is_older, forces): (bool, bool),
    ) -> Result<Locked<'a, L>> {
        let EntryUpdate { hash, entry } = update;
        if is_older {
            match self.apply_locked(index, state, &[update], &mut Vec::new()) {
                // Removals make space, so even a full buffer accepts them.
                Err(Error::Full { .. }) if forces => {
                    state = self.partitions[index].write();
                    state.active.force(hash, entry);
                    state.forced += 1;
                }
                applied => return applied,
            }
        } else {
            state.active.forget(hash, entry.key);
        }
        self.note_updates(&mut state, 1);
        self.log_updates(index, &mut state, &[update], &mut Vec::new())?;
        Ok(state)
    }

    /// Fails for keys and values of other widths than the table's.
    pub(crate) fn check_pairs(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        pairs.iter().try_for_each(|(key, value)| {
            self.check_key_width(key)?;
            self.check_value(value)
        })
    }

    pub(crate) fn insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        self.check_pairs(pairs)?;
        pairs.chunks(self.batch_len()).try_for_each(|batch| self.insert_batch(batch))?;
        self.acknowledge()
    }

    /// Returns the number of pairs inserted at a time: an eighth of the log, so that batches of several threads fit at
    /// once; half of that if they reserve twice as much.
    pub(crate) fn batch_len(&self) -> usize {
        let share = if self.policy.logs_moves { 16 } else { 8 };
        let entry_bytes = self.codec.entry_bytes() as u64;
        let entries = self.volume.log().capacity_bytes() / share / entry_bytes;
        usize::try_from(entries).unwrap_or(BATCH).clamp(1, BATCH)
    }

    /// Inserts a batch partition by partition, so that each one's pages stay in the processor's cache. Pairs with the
    /// same key keep their order.
    pub(crate) fn insert_batch(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        let _reservation = self.volume.reserve(self.batch_bytes(pairs.len()))?;
        let hashes: Vec<_> = pairs.iter().map(|(key, _)| self.hasher.hash(key)).collect();
        let positions =
            (0u32..).zip(&hashes).map(|(position, hash)| (self.partition_of(*hash), position));
        let (mut updates, mut records) = (Vec::with_capacity(LOCKED_MAX), Vec::new());
        by_partition(self.partitions.len(), positions, |index, positions| {
            for some in positions.chunks(LOCKED_MAX) {
                updates.clear();
                updates.extend(some.iter().map(|position| {
                    let (key, value) = pairs[*position as usize];
                    let entry = Entry { state: SlotState::Live, key, value };
                    EntryUpdate { hash: hashes[*position as usize], entry }
                }));
                self.apply(index, &updates, &mut records)?;
            }
            Ok(())
        })
    }

    /// Returns the bytes of the log that a batch of entries reserves.
    pub(super) fn batch_bytes(&self, entries: usize) -> u64 {
        self.reserved_bytes((entries * self.codec.entry_bytes()) as u64)
    }

    /// Logs one entry that was put into the active buffer.
    pub(crate) fn log_entry(
        &self,
        index: usize,
        state: &mut PartitionState<L>,
        update: EntryUpdate<'_>,
    ) -> Result<()> {
        self.log_updates(index, state, &[update], &mut Vec::new())
    }
}
