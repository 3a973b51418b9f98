//! A SliceHash that grows: a full table is followed by one of twice the partitions, which takes its entries over.
//!
//! Updates and lookups go to the newest table. A partition of it splits one of the older table with its first merge:
//! it reads that partition's slicetable, keeps its own half, and writes it with what its buffer holds. A merge reads
//! and writes a slicetable anyway, so growth costs no pass of its own, and at every moment a lookup reads one page: of
//! the newest table's slicetable, or of the older one's where the partition has not split yet. When all have split, the
//! older table is dropped.
//!
//! ```text
//!   insert, remove, get                                      the next one is made in the background
//!        |                                                   when the newest is 7/8 full
//!        v                                                   . . . . . . . . . . . . . . . . .
//!   newest   | p0 | p1 | p2 | p3 |  buffers in RAM           . p0 p1 p2 p3 p4 p5 p6 p7       .
//!            | ## | ## |    |    |  slicetables              . . . . . . . . . . . . . . . . .
//!                          \  |
//!   older    | ####### | #######  |  its partition 1 still answers for p2 and p3
//! ```
//!
//! Invariants
//! 1. A partition of the newest table either has a slicetable, and needs no older table, or it has none, and what its
//!    buffers do not know is in the older table.
//! 2. Only the newest table takes updates. An update holds the lock of updates for reading, and a table is replaced
//!    while it is held for writing. So the older table never changes again, although its last merges may still move
//!    entries.
//! 3. What the older table had in RAM and a full slice has no space for stays in RAM as the partition's overflow. Only
//!    a checkpoint makes such a slicetable's place in the map durable, together with its overflow.
//! 4. A partition's first slicetable is durable before the map names it, as any other. Until then a crash leaves the
//!    partition without one, and the older table has its entries.
//! 5. There is at most one older table: it is dropped, in one checkpoint with the maps that replace it, before the next
//!    table is made.
//!
//! | operation | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | all operations | as a SliceHash's | as a SliceHash's | as a SliceHash's |
//! | growth | half of a merge's more for each partition | one checkpoint | buffers of both tables |

mod check;
pub mod config;
mod model;
mod read;
mod row;
mod tables;
#[cfg(feature = "testing")]
mod testing;
#[cfg(test)]
mod tests;
mod versions;

use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::{Structure, Volume};

use super::{Inner as Core, RuntimeOptions};
use crate::Result;
use crate::grow::{self, GrowingOpening, Owner};
use crate::lookup::TableCache;
use crate::scan::{Entries, EntriesPastDamage};
use crate::slicehash::scan::Partitions;
use crate::write::absorb::Versions;

pub use config::Config;
pub(crate) use row::{ROW, TABLE_ROW};
use tables::Tables;

/// The name of this kind in the catalog.
pub const KIND: &str = "growing-slicehash";

/// The name of the kind of its tables in the catalog.
pub const TABLE_KIND: &str = "growing-slicehash-table";

/// A SliceHash that doubles as it fills, and reads one page for a lookup at every size.
///
/// It holds everything until its RAM or the device is full. See the [module](self) for how it works and what it
/// costs.
///
/// ```
/// use std::sync::Arc;
/// use nandex::slicehash::growing::{Config, Growing};
/// use nandex::{Table, Volume, VolumeOptions, device::MemoryDevice};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
/// let table = Growing::create(&volume, "seen", Config::tiny())?;
/// for key in 0..10_000u64 {
///     table.insert(&key.to_le_bytes(), &[1; 8])?;
/// }
/// assert!(table.partitions() > 1);
/// assert_eq!(table.get(&17u64.to_le_bytes())?.as_deref(), Some(&[1; 8][..]));
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Debug)]
pub struct Growing {
    config: Config,
    owner: Owner<Tables>,
}

grow::delegate_growing!(Growing);

impl Growing {
    /// Creates a table in a volume, with default [`RuntimeOptions`].
    ///
    /// # Errors
    /// A configuration that cannot work, a name that is taken, no space, a failed write.
    pub fn create(volume: &Volume, name: &str, config: Config) -> Result<Self> {
        Self::create_with(volume, name, config, RuntimeOptions::default())
    }

    /// Creates a table in a volume.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_with(
        volume: &Volume,
        name: &str,
        config: Config,
        options: RuntimeOptions,
    ) -> Result<Self> {
        config.validate()?;
        let structure = volume.create_structure(name, KIND, config.encode(), 0)?;
        Self::start(volume, (name, &structure), None, options)
    }

    /// Opens a table of a volume, with default [`RuntimeOptions`].
    ///
    /// # Errors
    /// No table of that name, another kind of structure, damage, a failed read.
    pub fn open(volume: &Volume, name: &str) -> Result<Self> {
        Self::open_within(volume, name, None, RuntimeOptions::default())
    }

    /// Opens a table of a volume, which from now on may take this RAM in bytes; if `None`, what it was created with.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_within(
        volume: &Volume,
        name: &str,
        ram_bytes_max: Option<u64>,
        options: RuntimeOptions,
    ) -> Result<Self> {
        let structure = volume.open_structure(name, KIND)?;
        Self::start(volume, (name, &structure), ram_bytes_max, options)
    }

    fn start(
        volume: &Volume,
        (name, structure): (&str, &Structure),
        ram_bytes_max: Option<u64>,
        options: RuntimeOptions,
    ) -> Result<Self> {
        let mut reader = Reader::new(&structure.config, "growing configuration", PageId(0));
        let config = Config::decode(&mut reader)?;
        let config = Config { ram_bytes_max: ram_bytes_max.or(config.ram_bytes_max), ..config };
        let opening = GrowingOpening {
            key_bytes: config.first.key_bytes,
            value_bytes: config.first.value_bytes,
            channels: options.channels,
            read_depth: options.read_depth,
            in_background: options.flush_threads > 0,
            cache: TableCache::new(
                options.cache_bytes,
                (config.first.key_bytes, config.first.value_bytes),
            )?,
        };
        let cache = opening.cache.clone();
        let parts = Tables::open(volume, name, config, (options, cache))?;
        Ok(Self { config, owner: Owner::start(volume, structure, parts, opening)? })
    }

    /// What it was created with; its RAM is that of this opening.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The partitions of its newest table.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.owner.parts.core().partitions.len()
    }

    /// How many tables there have been; there are at most two at a time, and one that is made before it is needed.
    #[must_use]
    pub fn tables(&self) -> usize {
        self.owner.parts.number()
    }

    /// All entries, each key once with its newest value, in no order.
    ///
    /// Each partition is seen as it was when the iteration reached it. Reads the whole table once, sequentially, and
    /// holds the buffers and one slicetable's keys in memory: two, or one of the older table, while that is taken over.
    #[must_use]
    pub fn iter(&self) -> Entries<'_> {
        Entries::new(Partitions::new(|| self.owner.parts.core()))
    }

    /// Its versions of keys, for another table to [`absorb`](crate::BufferHash::absorb) or for
    /// [`count_shared`](crate::count_shared).
    #[must_use]
    pub fn versions(&self) -> Versions<'_> {
        Versions(&self.owner)
    }

    /// As [`iter`](Self::iter), but a page that cannot be read or proven ends nothing: it is an item, and all other
    /// entries come. A key whose newest version was on such a page may come with an older one, or although it was
    /// removed.
    ///
    /// Reads and holds as much as [`iter`](Self::iter).
    #[must_use]
    pub fn iter_past_damage(&self) -> EntriesPastDamage<'_> {
        EntriesPastDamage::new(Partitions::new(|| self.owner.parts.core()))
    }
}
