//! Record tables on flash in groups: the pages of a structure whose tables are one page each, rewritten by full
//! buffers.
//!
//! A **group** is some record tables next to one another, an extent of their own, written at once and replaced at once.
//! A flush reads groups in order ([`GroupReader`]), puts its updates in, and writes new ones ([`GroupWriter`]); one
//! checkpoint replaces the old by the new. Which table has a key, and when tables split or spill, is the structure's.

mod check;
mod checkpoint;
mod iter;
mod reader;
mod writer;

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use nandex_device::{Error as DeviceError, PageId};
use nandex_store::buffer::Buffer;
use nandex_store::bytes::Reader;
use nandex_store::entries::Entry;
use nandex_store::hash::KeyHash;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::page::{PageKind, RawPage};
use nandex_store::pages::PagePlace;
use nandex_store::records::RecordLayout;
use nandex_store::space::Extent;
use nandex_store::{Error as StoreError, StructureId};

use super::{Core, Layout, OnFlash, TableLayout};
use crate::{Error, Result};

pub(crate) use check::{GroupCheck, GroupRules};
pub(crate) use checkpoint::{GroupMap, RestoredMaps, capture_maps};
pub(crate) use iter::{GroupItems, GroupIter};
pub(crate) use reader::GroupReader;
pub(crate) use writer::{GroupWriter, WriteQueue};

/// The most tables of a group.
pub(crate) const GROUP_PAGES_MAX: u32 = 256;

/// Groups in memory while tables are rewritten: those that are read, one that is filled, and those that are written.
pub(crate) const GROUPS_IN_RAM: u64 = (reader::IN_FLIGHT_MAX + 1 + writer::IN_FLIGHT_MAX) as u64;

/// Bytes of a group in a checkpoint, without its notes.
pub(crate) const GROUP_BYTES: usize = 22;

/// RAM of a group, without its notes: its place in a list, and what it counts.
pub(crate) const GROUP_RAM_BYTES: u64 = (size_of::<Group>() + 3 * size_of::<usize>()) as u64;

/// Copies in RAM of what a checkpoint keeps, at most: the volume's, and the one that is written, twice.
pub(crate) const CHECKPOINT_COPIES: u64 = 3;

/// RAM that checkpoints take for a group, without its notes: what they keep of it, and its extent in five lists, of
/// the last checkpoint and of this one.
pub(crate) const GROUP_CHECKPOINT_RAM_BYTES: u64 =
    CHECKPOINT_COPIES * (GROUP_BYTES + size_of::<Extent>()) as u64 + 5 * size_of::<Extent>() as u64;

/// The share of all tables after whose replacement the next checkpoint is asked for: an eighth. So much flash has
/// old tables in addition to the new ones, and twice as much if the checkpoint is late.
const CHECKPOINT_SHARE: u64 = 8;

/// The least number of pages that are replaced before a checkpoint is asked for.
const REPLACED_MIN: u64 = 64;

/// Tables that were written together, one page each, and will be replaced together.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Group {
    pub place: PagePlace,
    /// A byte for each table, whose meaning is the structure's: a depth, or whether it has entries.
    pub notes: Box<[u8]>,
    /// Entries in all of them.
    pub entries: u64,
}

impl OnFlash for Group {
    fn extent(&self) -> Extent {
        self.place.extent
    }
}

impl Group {
    pub(crate) fn new(
        structure: StructureId,
        (start, generation): (PageId, u64),
        notes: Vec<u8>,
        entries: u64,
    ) -> Self {
        let extent = Extent { start, pages: notes.len() as u64 };
        let place = PagePlace { kind: PageKind::Records, structure, extent, generation };
        Self { place, notes: notes.into(), entries }
    }

    /// Is a page of the group what it should be?
    ///
    /// # Errors
    /// Damage.
    pub(crate) fn prove(&self, page: usize, bytes: &[u8]) -> Result<()> {
        if is_on(Barrier::RecordsProvePages) {
            RawPage::new(bytes).check(self.place.label(page as u64))?;
        }
        Ok(())
    }

    /// RAM in bytes.
    pub(crate) fn ram_bytes(&self) -> u64 {
        GROUP_RAM_BYTES + self.notes.len() as u64
    }

    /// RAM that checkpoints take for it, in bytes.
    pub(crate) fn checkpoint_ram_bytes(&self) -> u64 {
        GROUP_CHECKPOINT_RAM_BYTES + self.notes.len() as u64 * CHECKPOINT_COPIES
    }

    /// Bytes that a checkpoint keeps of it.
    pub(crate) fn encoded_bytes(&self) -> usize {
        GROUP_BYTES + self.notes.len()
    }

    /// Appends what a checkpoint keeps of it. docs/format.md draws the bytes.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.place.extent.start.0.to_le_bytes());
        out.extend_from_slice(&self.place.generation.to_le_bytes());
        out.extend_from_slice(&(self.entries as u32).to_le_bytes());
        out.extend_from_slice(&(self.notes.len() as u16).to_le_bytes());
        out.extend_from_slice(&self.notes);
    }

    /// Reads what a checkpoint keeps of one, from bytes that may be anything.
    ///
    /// # Errors
    /// Corruption, told by the reader.
    pub(crate) fn decode(structure: StructureId, reader: &mut Reader<'_>) -> Result<Self> {
        let (start, generation) = (PageId(reader.u64()?), reader.u64()?);
        let (entries, tables) = (reader.u32()?, reader.u16()?);
        if !(1..=GROUP_PAGES_MAX).contains(&tables.into()) {
            return Err(reader.refuse(format!("1 to {GROUP_PAGES_MAX} tables"), tables).into());
        }
        if start.0.checked_add(tables.into()).is_none() {
            return Err(reader.refuse("a group that ends", start).into());
        }
        let notes = reader.take(tables.into())?.to_vec();
        Ok(Self::new(structure, (start, generation), notes, entries.into()))
    }
}

/// A table whose partitions have record tables in groups, each key in one of them.
pub(crate) trait RecordGroups: TableLayout {
    /// The layout of its record tables.
    fn records(&self) -> RecordLayout;

    /// The groups of a partition, in their order.
    fn groups(level: &Self::Level) -> Vec<Arc<Group>>;
}

/// An update of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming<'e> {
    pub hash: KeyHash,
    pub entry: Entry<'e>,
}

/// RAM of groups that were replaced since the last checkpoint, in bytes.
pub(crate) fn retired_ram_bytes(pages: u64, group_pages: u32) -> u64 {
    pages + pages.div_ceil(group_pages.into()) * GROUP_RAM_BYTES
}

/// Is there no space on the device?
pub(crate) fn is_no_space(error: &Error) -> bool {
    matches!(
        error,
        Error::Device(DeviceError::NoSpace { .. })
            | Error::Store(StoreError::Device(DeviceError::NoSpace { .. }))
    )
}

/// The extent of this place, if it is one of the structure's own, which are in order.
fn is_own(ordered: &[Extent], extent: Extent) -> bool {
    ordered.binary_search_by_key(&extent.start, |it| it.start).is_ok_and(|at| ordered[at] == extent)
}

impl<L: RecordGroups> Core<L> {
    /// Replaces what a partition has on flash in the moment in which the flushed buffer leaves RAM, and returns what it
    /// had. The caller holds the lock of the maps.
    pub(crate) fn replace_flushed(&self, index: usize, after: L::Level) -> L::Level {
        let mut state = self.partitions[index].write();
        // It goes back to the pool once its last reference is gone, the caller's.
        drop(state.take_flushed());
        let entries_before = L::entries_below(&state);
        let before = std::mem::replace(&mut state.level, after);
        let entries = L::entries_below(&state);
        drop(state);
        self.counters.flushed_entries.fetch_add(entries, Relaxed);
        self.counters.flushed_entries.fetch_sub(entries_before, Relaxed);
        self.moved.store(true, SeqCst);
        before
    }
}

impl<L: Layout<Buffer = Buffer>> Core<L> {
    /// The updates of a buffer in the order of the tables. `limit` is the most that a buffer has.
    pub(crate) fn sorted_updates<'b>(&self, buffer: &'b Buffer, limit: usize) -> Vec<Incoming<'b>> {
        let of_pages = buffer.page_entries().map(|(_, _, entry)| entry);
        let all = of_pages.chain(buffer.stash_entries());
        let incoming = |entry: Entry<'b>| Incoming { hash: self.hasher.hash(entry.key), entry };
        // Always as long, so that the allocator has a place of that length.
        let mut sorted = Vec::with_capacity(limit.max(buffer.len()));
        sorted.extend(all.map(incoming));
        sorted.sort_unstable_by_key(|update| update.hash.filter);
        sorted
    }

    /// Asks for a checkpoint, after which replaced tables are free, if there are many; takes it if there are too many.
    pub(crate) fn checkpoint_if_much_replaced(&self, replaced: u64, pages: u64) -> Result<()> {
        let most = (pages / CHECKPOINT_SHARE).max(REPLACED_MIN);
        match replaced {
            // The background is behind; updates wait for it, as they wait for a rewrite.
            _ if replaced >= 2 * most => Ok(self.volume.checkpoint()?),
            _ if replaced >= most => self.ask_for_checkpoint(),
            _ => Ok(()),
        }
    }
}
