//! Tables whose pages are **record tables** in groups: one page each, rewritten by full buffers.
//!
//! A **group** is several consecutive record tables in one extent, which is written and replaced as a whole. A flush
//! reads groups in order ([`GroupReader`]), applies its updates, and writes new ones ([`GroupWriter`]); one checkpoint
//! replaces the old by the new. All of that is the same for each structure of this kind, as are its handle
//! ([`GroupTable`]), opening, lookup, iteration, check and most of its parameters. A [`GroupStructure`] defines the
//! rest: which table has a key, and when tables split or spill.
//!
//! ```text
//!   GroupTable<S> -> write path -> Grouped<S>: Layout, Checkpoints      open, lookup, iter, check, model
//!                                      |
//!                                      v
//!                          S: GroupStructure, a map of groups in RAM for each partition, S::Map
//! ```

mod check;
mod checkpoint;
mod config;
mod layout;
mod lookup;
pub mod model;
mod open;
mod ram;
mod reader;
mod scan;
mod structure;
mod table;
#[cfg(feature = "testing")]
mod testing;
mod writer;

use nandex_device::PageId;
use nandex_store::StructureId;
use nandex_store::bytes::Reader;
use nandex_store::entries::Entry;
use nandex_store::hash::KeyHash;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::page::{PageKind, RawPage};
use nandex_store::pages::PagePlace;
use nandex_store::space::Extent;

use crate::Result;
use crate::write::OnFlash;

pub use check::{GroupRules, MapCheck};
pub use checkpoint::GroupMap;
pub use config::{GroupConfig, GroupParameters};
pub use model::GroupModel;
pub use ram::GroupRam;
pub use reader::GroupReader;
pub use structure::{
    GroupLookups, GroupPlace, GroupRewrite, GroupScratch, GroupStep, GroupStructure, RewrittenMap,
};
pub use table::GroupTable;
#[cfg(feature = "testing")]
pub use testing::{decode_config, decode_map, test_table};
pub use writer::GroupWriter;

pub(crate) use layout::Grouped;

/// The maximum number of tables of a group.
pub const GROUP_PAGES_MAX: u32 = 256;

/// The groups in memory while tables are rewritten: those being read, one being filled, and those being written.
pub(crate) const GROUPS_IN_RAM: u64 = (reader::IN_FLIGHT_MAX + 1 + writer::IN_FLIGHT_MAX) as u64;

/// Bytes of a group in a checkpoint, without its notes.
pub const GROUP_BYTES: usize = 22;

/// RAM of a group, without its notes: its place in a list, and what it counts.
pub(crate) const GROUP_RAM_BYTES: u64 = (size_of::<Group>() + 3 * size_of::<usize>()) as u64;

/// The maximum number of copies in RAM of the checkpoint's state: the volume's, and the one being written, twice.
pub(crate) const CHECKPOINT_COPIES: u64 = 3;

/// The RAM that checkpoints take for a group, without its notes: its encoding, and its extent in five lists, of the
/// last checkpoint and of this one.
pub(crate) const GROUP_CHECKPOINT_RAM_BYTES: u64 =
    CHECKPOINT_COPIES * (GROUP_BYTES + size_of::<Extent>()) as u64 + 5 * size_of::<Extent>() as u64;

/// The share of all tables whose replacement triggers a request for the next checkpoint: an eighth. This share of the
/// flash has old tables in addition to the new ones, and twice as much if the checkpoint is late.
const CHECKPOINT_SHARE: u64 = 8;

/// The minimum number of replaced pages that triggers a request for a checkpoint.
const REPLACED_MIN: u64 = 64;

/// Tables that were written together, one page each, and will be replaced together.
#[derive(PartialEq, Eq, Debug)]
pub struct Group {
    /// Its pages.
    pub place: PagePlace,
    /// A byte for each table, whose meaning the structure defines: a depth, or whether it has entries.
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
    /// Creates the description of a group that was written at `place` with this generation and a note for each table.
    pub fn new(
        structure: StructureId,
        (start, generation): (PageId, u64),
        notes: Vec<u8>,
        entries: u64,
    ) -> Self {
        let extent = Extent { start, pages: notes.len() as u64 };
        let place = PagePlace { kind: PageKind::Records, structure, extent, generation };
        Self { place, notes: notes.into(), entries }
    }

    /// Verifies a page of the group.
    ///
    /// # Errors
    /// Damage.
    pub fn prove(&self, page: usize, bytes: &[u8]) -> Result<()> {
        if is_on(Barrier::RecordsProvePages) {
            RawPage::new(bytes).check(self.place.label(page as u64))?;
        }
        Ok(())
    }

    /// RAM in bytes.
    pub fn ram_bytes(&self) -> u64 {
        GROUP_RAM_BYTES + self.notes.len() as u64
    }

    /// RAM that checkpoints take for it, in bytes.
    pub fn checkpoint_ram_bytes(&self) -> u64 {
        GROUP_CHECKPOINT_RAM_BYTES + self.notes.len() as u64 * CHECKPOINT_COPIES
    }

    /// The bytes that it takes in a checkpoint.
    pub fn encoded_bytes(&self) -> usize {
        GROUP_BYTES + self.notes.len()
    }

    /// Encodes it for a checkpoint. docs/reference/format.md draws the bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.place.extent.start.0.to_le_bytes());
        out.extend_from_slice(&self.place.generation.to_le_bytes());
        out.extend_from_slice(&(self.entries as u32).to_le_bytes());
        out.extend_from_slice(&(self.notes.len() as u16).to_le_bytes());
        out.extend_from_slice(&self.notes);
    }

    /// Decodes a group of a checkpoint from untrusted bytes.
    ///
    /// # Errors
    /// Corruption, reported by the reader.
    pub fn decode(structure: StructureId, reader: &mut Reader<'_>) -> Result<Self> {
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

/// An update of a table.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'e> {
    /// The hash of its key.
    pub hash: KeyHash,
    /// A key with its value, or a removal.
    pub entry: Entry<'e>,
}

/// RAM of groups that were replaced since the last checkpoint, in bytes.
pub(crate) fn retired_ram_bytes(pages: u64, group_pages: u32) -> u64 {
    pages + pages.div_ceil(group_pages.into()) * GROUP_RAM_BYTES
}
