//! A multi-level hash index: hash tables of growing size, where a full page spills into the next table.
//!
//! It is the index of key-value drives before RHIK: the global hash table of Samsung's device, the baseline
//! of RHIK's paper (HPDC'23, section 2), which states that levels spill and that an access reads 3 to 7 pages
//! once the index exceeds its DRAM. It is for comparisons only: use [`Rhik`](nandex::Rhik) for anything else.
//!
//! A key has one page in each level, by the first bits of its hash. An insert goes to the first of them that
//! has space, so pages fill from the first level on, and a level of twice the pages is added when the last
//! one spills. A lookup reads the key's pages in this order until one has the key, except those in RAM: a
//! cache of pages, in which the upper levels stay. In front of the levels is a write buffer, and a full one
//! is put into the levels of its partition from the first to the last.
//!
//! ```text
//!              partition 0                          partition 1     ...
//!   RAM     +------------------+                 +------------------+
//!           | write buffer     | <- insert       | write buffer     |
//!           +------------------+                 +------------------+
//!           | cache of pages: level 0, most of level 1, some of 2 .. |    lookups look here first
//!           +--------------------------------------------------------+
//!   flash   level 0   [ full | full ]              <- lookup: 1st read        one page each: hopscotch,
//!                       |  \    |  \   spilled                                signatures, keys, values
//!           level 1   [ full | full | full | ok ]  <- 2nd read
//!                       |  \   |  \    |  \
//!           level 2   [ ok | ok | - | ok | ok | - | - | - ]   <- 3rd read
//! ```
//!
//! Differences from the published description: each partition has levels of its own, which together are the
//! global ones; the bits of the hash that name a page of a level name its two pages of the next one, so that
//! a buffer's updates go down in one pass; whether a page has entries is a byte in RAM, in place of a flag on
//! the page before it, and it is exact after removals too; and pages are written in groups, in a new place
//! each time, so that a power cut leaves the old ones. The paper does not state the sizes of levels and the
//! replacement of pages in RAM; they are chosen here.
//!
//! Invariants
//! 1. A key's newest version is in the active buffer, else in the newest frozen buffer that has it, else in one page of
//!    its own of one level, once.
//! 2. A page without entries is not read, and a group without entries is not on flash. The last level has entries.
//! 3. A map and the buffers of its partition change together, under one lock. A lookup reads pages of the map that it
//!    saw, whose groups keep their pages meanwhile.
//! 4. A flush takes new pages. One checkpoint replaces the old groups by the new ones; the old pages are reused only
//!    when that is durable. Until then the log has the buffer's updates.
//! 5. The cache has pages that were proven, by place and generation; a replaced group's are never returned.
//! 6. All of the write path's invariants on partitions.
//!
//! With L for the levels in which the key's page has entries, and g for the groups that a buffer's updates touch:
//!
//! | operation | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | insert, remove | g groups over a buffer's entries | groups that change, and the log | its slot |
//! | lookup, found | its level's number, less pages in RAM: up to L | 0 | 1 to 2 bytes of map for each page |
//! | lookup, not found | L, less the pages in RAM | 0 | the same |
//! | flush | each group with an insert or an entry, once | those that change | six groups, two buffers' entries |
//! | the same of a shrunk table | one of the last level, in addition | where its entries go | the same |
//! | new level | none | the groups that receive spilled keys | 8 bytes for each of its groups |

mod check;
pub mod config;
mod flush;
mod levels;
mod lift;
mod model;
mod page_cache;
mod read;
mod spill;
mod stats;
#[cfg(feature = "testing")]
mod testing;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use nandex::Result;
use nandex::raw::{GroupRewrite, GroupStructure, GroupTable, MapCheck, RewrittenMap, Row};
use nandex_store::StructureId;
use nandex_store::bytes::Reader;
use nandex_store::records::RecordLayout;

pub use config::Config;
pub use stats::MultilevelStats;

use levels::{LevelMap, LevelPlan};
use page_cache::PageCache;

/// The name of this kind in the catalog.
pub const KIND: &str = "multilevel";

/// A hash table on flash from fixed-width keys to fixed-width values, of levels that spill into one another.
///
/// Lookups and inserts come from any number of threads. Dropping it saves buffered entries, so that the next
/// open finds them. See the [module](self) for how it works and what it costs, and [`Rhik`](nandex::Rhik) for
/// an index with fewer reads.
///
/// ```
/// use std::sync::Arc;
/// use nandex::{Table, Volume, VolumeOptions, device::MemoryDevice};
/// use nandex_baseline::multilevel::{Config, Multilevel};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
/// let table = Multilevel::create(&volume, "objects", Config::tiny())?;
/// table.insert_u64(17, 4)?;
/// assert_eq!(table.get_u64(17)?, Some(4));
/// table.remove(&17u64.to_le_bytes())?;
/// assert_eq!(table.get_u64(17)?, None);
/// # Ok::<(), nandex::Error>(())
/// ```
pub type Multilevel = GroupTable<Levels>;

/// Its row in the registry.
pub const ROW: Row = Multilevel::row().baseline();

/// The part of a multi-level index on top of a table of groups: levels for each partition, and a cache of
/// their pages.
#[derive(Debug)]
pub struct Levels {
    plan: LevelPlan,
    records: RecordLayout,
    cache: PageCache,
    counters: stats::LevelCounters,
}

impl GroupStructure for Levels {
    const NAME: &'static str = "multi-level index";
    const GOOD_FOR: &'static str = "A comparison with RHIK: the index of older key-value drives, which reads a page for each of its levels.";
    #[cfg(feature = "testing")]
    const TESTS: nandex::testing::TableTests = testing::TESTS;
    #[cfg(feature = "testing")]
    const DECODERS: &'static [nandex::testing::Decoder] = testing::DECODERS;

    type Config = Config;
    type Scratch = ();
    type Stats = MultilevelStats;

    fn new(config: &Config) -> Self {
        Self {
            plan: config.plan(),
            records: config.record_layout(),
            cache: PageCache::new(config.page_cache_bytes),
            counters: stats::LevelCounters::default(),
        }
    }

    fn decode_map(
        config: &Config,
        structure: StructureId,
        reader: &mut Reader<'_>,
    ) -> Result<LevelMap> {
        LevelMap::decode(structure, config.plan(), reader)
    }

    fn rewrite(
        &self,
        before: &LevelMap,
        rewrite: GroupRewrite<'_, '_, ()>,
    ) -> Result<RewrittenMap<LevelMap>> {
        self.write_updates(before, rewrite)
    }

    fn check_map(config: &Config, map: &LevelMap, check: &mut MapCheck<'_, '_>) {
        check::check_levels(config.plan(), map, check);
    }

    fn stats(&self, maps: &[Arc<LevelMap>]) -> MultilevelStats {
        self.stats_of(maps)
    }

    fn ram_bytes(&self) -> u64 {
        self.cache.ram_bytes()
    }
}
