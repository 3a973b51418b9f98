//! A BufferHash that grows: generations of rising size, each a BufferHash that is filled and then only read.
//!
//! Inserts go to the newest generation. When one of its super tables is full, the next generation follows, with
//! as many super tables as all before it together. So the table doubles each time, no entry is ever written again,
//! and nothing is evicted. A lookup asks the buffers and filters of all generations, newest first: they are in
//! RAM, and their buffers and filters have the same shape, so a key's places are computed once. An update or a
//! removal of an older entry goes to the newest generation and hides it.
//!
//! ```text
//!   insert, remove ------------------------------+        the next one is made in the background
//!                                                v        when the newest is 7/8 full
//!   generation 1   generation 2   generation 3         . . . . . . . . . . . . .
//!   +--------+     +--------+     +--------+--------+  .                       .
//!   |super t.|     |super t.|     |super t.|super t.|  .  4 super tables       .
//!   +--------+     +--------+     +--------+--------+  . . . . . . . . . . . . .
//!        ^              ^              ^
//!        3              2              1. get: the first generation that knows the key
//! ```
//!
//! Invariants
//! 1. A key's newest version is in the newest generation that knows it, as a value or as a tombstone.
//! 2. Only the newest generation takes updates. An update holds the lock of updates for reading, and a generation is
//!    added while it is held for writing. So when the newer one takes its first update, the older one has its last.
//! 3. Each generation is crash-safe by itself, and all share the volume's log, in the order of the updates. So a
//!    crash loses none, and no older version comes back.
//! 4. All generations have buffers and filters of the same shape.
//!
//! With g generations, at most about log2 of the table's growth:
//!
//! | operation | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | insert, remove | 0 | as a BufferHash's | as a BufferHash's |
//! | lookup, found | 1 + at most the filters' rate, of all generations | 0 | |
//! | lookup, not found | the filters' rate, of all generations: g times that of one | 0 | |
//! | growth | 0 | two checkpoints | buffers and filters of the next generation |

mod check;
pub mod config;
mod generations;
mod model;
mod read;
mod row;
#[cfg(feature = "testing")]
mod testing;
#[cfg(test)]
mod tests;
mod versions;

use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::{Structure, Volume};

use super::RuntimeOptions;
use crate::Result;
use crate::bufferhash::scan::SuperTables;
use crate::grow::{self, GrowingOpening, Owner};
use crate::lookup::TableCache;
use crate::scan::{Entries, EntriesPastDamage};
use crate::write::absorb::Versions;

pub use config::Config;
use generations::{Generations, generation_name};
pub(crate) use row::{GENERATION_ROW, ROW};

/// The name of this kind in the catalog.
pub const KIND: &str = "growing";

/// The name of the kind of its generations in the catalog.
pub const GENERATION_KIND: &str = "generation";

/// A hash table on flash from fixed-width keys to fixed-width values, which grows as it fills.
///
/// It holds everything until its RAM or the device is full. See the [module](self) for how it works and what it
/// costs.
///
/// ```
/// use std::sync::Arc;
/// use nandex::bufferhash::growing::{Config, Growing};
/// use nandex::{Table, Volume, VolumeOptions, device::MemoryDevice};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
/// let table = Growing::create(&volume, "seen", Config::tiny())?;
/// for key in 0..10_000u64 {
///     table.insert(&key.to_le_bytes(), &[1; 8])?;
/// }
/// assert!(table.generations() > 1);
/// assert_eq!(table.get(&17u64.to_le_bytes())?.as_deref(), Some(&[1; 8][..]));
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Debug)]
pub struct Growing {
    config: Config,
    owner: Owner<Generations>,
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
        Self::open_with(volume, name, RuntimeOptions::default())
    }

    /// Opens a table of a volume.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(volume: &Volume, name: &str, options: RuntimeOptions) -> Result<Self> {
        Self::open_within(volume, name, None, options)
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
            channels: None,
            read_depth: options.read_depth,
            in_background: options.flush_threads > 0,
            cache: TableCache::new(
                options.cache_bytes,
                (config.first.key_bytes, config.first.value_bytes),
            )?,
        };
        let cache = opening.cache.clone();
        let parts = Generations::open(volume, name, config.clone(), (options, cache))?;
        Ok(Self { config, owner: Owner::start(volume, structure, parts, opening)? })
    }

    /// What it was created with; its RAM is that of this opening.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// How many generations it has.
    #[must_use]
    pub fn generations(&self) -> usize {
        self.owner.parts.len()
    }

    /// All entries, each key once with its newest value, in no order.
    ///
    /// Some pages of a super table are read at a time, in all incarnations of all generations, and seen as they were
    /// when the iteration reached them. Needs no filters. Reads each generation once, at least 64 KiB of each
    /// incarnation at a time, and holds the entries of these pages in memory. Of generations that begin meanwhile it
    /// reads nothing.
    #[must_use]
    pub fn iter(&self) -> Entries<'_> {
        Entries::new(self.super_tables())
    }

    /// The super tables of all generations.
    fn super_tables(&self) -> SuperTables<'_> {
        let mut cores: Vec<_> = self.owner.parts.cores().collect();
        cores.reverse();
        SuperTables::new(cores)
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
        EntriesPastDamage::new(self.super_tables())
    }

    /// Loads the filters of a table that was just opened, so that no lookup has to.
    ///
    /// # Errors
    /// A failed read, or damage.
    pub fn load_filters(&self) -> Result<()> {
        self.owner.parts.cores().try_for_each(|core| {
            (0..core.partitions.len()).try_for_each(|index| core.load_filters(index))
        })
    }
}
