//! Recovery: the rings, then the state of the write path, then the filters.

use nandex_device::{PageBuf, PageId};
use nandex_store::bytes::Reader;
use nandex_store::hash::KeyHasher;
use nandex_store::page::{PageKind, RawPage};
use nandex_store::ring::{SegmentId, SegmentTag};
use nandex_store::{Lsn, Structure, Volume};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::clean::Cleaning;
use super::columns::FilterColumns;
use super::config::Ranking;
use super::filter::IncarnationFilter;
use super::format::decode_filter;
use super::older::Older;
use super::rings::Rings;
use super::table::{Incarnation, Job, Level};
use super::{BufferHash, Config, Incarnations, Inner, Policy};
use crate::lookup::TableCache;
use crate::options::FLUSH_THREADS;
use crate::structure::table::TableStructure;
use crate::write::pool;
use crate::write::{self, CapturedMaps, Checkpoints, Levels, Recovery, TableOpening};
use crate::{OpenOptions, Result};

/// Opens a table: a list of steps.
pub(super) fn open(
    volume: &Volume,
    structure: &Structure,
    runtime: OpenOptions,
) -> Result<BufferHash> {
    let place = structure.extent()?.start;
    let mut reader = Reader::new(&structure.config, "bufferhash configuration", place);
    let config = Config::decode(&mut reader)?;
    let mut reader = Reader::new(&structure.state, "bufferhash state", place);
    let rings = Rings::restore(volume, structure, &config, &runtime, &mut reader)?;
    let device = Arc::clone(rings.device());
    let opening = TableOpening {
        shape: config.shape()?,
        flush_threads: runtime.flush_threads.unwrap_or(FLUSH_THREADS),
        snapshots_at: place.plus(config.volume_ring_pages()),
        reads: runtime.reads(volume, &device),
    }
    .of(volume, structure);
    let cache = cache(&config, &runtime)?;
    let layout = assemble(config, &runtime, rings, volume.hasher())?;
    let recovery = Recovering { layout, place };
    let prove = |inner: &Inner| {
        let segments = inner.layout.rings.segments().unwrap_or_default();
        let entries = segments.iter().map(|(_, tag)| u64::from(tag.entries)).sum();
        inner.counters.flushed_entries.store(entries, Relaxed);
        inner.prove_chip()
    };
    let handle = write::open(volume, structure, &mut reader, opening, recovery, prove)?;
    handle.core.lookups.use_cache(cache);
    Ok(handle)
}

fn cache(config: &Config, options: &OpenOptions) -> Result<Option<TableCache>> {
    if !Incarnations::has_cache(config) {
        return Ok(None);
    }
    TableCache::new(options.cache_bytes, (config.key_bytes, config.value_bytes))
}

/// The rings of the checkpoint, with all incarnations: the entries of later ones are in the log.
struct Recovering {
    layout: Incarnations,
    place: PageId,
}

impl Recovery<Incarnations> for Recovering {
    fn finish(self) -> Result<(Incarnations, Levels<Incarnations>)> {
        let levels = levels(&self.layout, self.place)?;
        Ok((self.layout, levels))
    }
}

fn assemble(
    config: Config,
    options: &OpenOptions,
    rings: Rings,
    hasher: KeyHasher,
) -> Result<Incarnations> {
    let threshold = if let Policy::Threshold(priority) = config.policy { priority } else { 0 };
    Ok(Incarnations {
        shape: config.shape()?,
        hasher,
        filter: IncarnationFilter::new(config.filter),
        rings,
        cascade_credit: AtomicU64::new(u64::from(config.cascade_limit) * 1000),
        threshold: AtomicU64::new(threshold),
        cleaning: Cleaning::default(),
        columns: FilterColumns::default(),
        older: Older::default(),
        ranking: Ranking::of(options),
        config,
    })
}

impl Checkpoints for Incarnations {
    fn prepare(core: &Inner) -> Result<()> {
        core.evict_ahead()
    }

    fn capture(core: &Inner, _log_now: Lsn) -> CapturedMaps {
        CapturedMaps { bytes: core.layout.rings.capture(), extents: None }
    }

    fn committed(core: &Inner) {
        core.layout.rings.committed();
    }

    /// Loads the filters in the background; without a thread, lookups load those they need.
    fn recovered(core: &Inner) {
        if core.options.flush_threads == 0 {
            return;
        }
        for index in 0..core.partitions.len() {
            if !core.partitions[index].read().level.filters_loaded {
                core.work.push(pool::Job::Own(Job::LoadFilters(index)));
            }
        }
    }
}

/// Gives each super table its incarnations, in the order of the ring.
fn levels(layout: &Incarnations, place: PageId) -> Result<Levels<Incarnations>> {
    let config = &layout.config;
    let refuse = |found: String| {
        let expected = format!("segments of {} super tables", config.super_tables);
        nandex_store::Error::corrupt("bufferhash state", place, expected, found)
    };
    let segments = layout.rings.segments();
    let segments = segments.ok_or_else(|| refuse("one in another's ring".into()))?;
    let mut held = vec![0; config.super_tables as usize];
    for (_, SegmentTag { owner, .. }) in &segments {
        match held.get_mut(*owner as usize) {
            Some(held) if *held < config.incarnations_max => *held += 1,
            Some(_) => return Err(refuse(format!("too many of super table {owner}")).into()),
            None => return Err(refuse(format!("one of super table {owner}")).into()),
        }
    }
    let new = |held: u32| Level::new(config.incarnations_max, layout.filter.shape(), held as usize);
    let mut levels = held.into_iter().map(new).collect::<Result<Vec<_>>>()?;
    for (id, tag) in segments {
        let level = &mut levels[tag.owner as usize];
        let incarnation = Incarnation::of(id, tag);
        level.came(incarnation);
        layout.cleaning.came(&incarnation);
        level.filters_loaded = false;
    }
    layout.columns.take(levels.iter().map(|level| level.columns_with(0)).sum());
    Ok(levels.into_iter().map(|level| (level, ())).collect())
}

impl Inner {
    /// Loads the filters of all super tables that lookups have not loaded yet.
    pub(super) fn load_all_filters(&self) -> Result<()> {
        (0..self.partitions.len()).try_for_each(|index| self.load_filters(index))
    }

    /// Loads the filters of the incarnations that existed at opening, once.
    pub(super) fn load_filters(&self, index: usize) -> Result<()> {
        let table = &self.partitions[index];
        if table.read().level.filters_loaded {
            return Ok(());
        }
        let _lock = table.maintain();
        let wanted = {
            let state = table.read();
            if state.level.filters_loaded {
                return Ok(());
            }
            state.level.newest_first()
        };
        let mut columns = Vec::with_capacity(wanted.len());
        for (column, incarnation) in wanted {
            columns.push((column, self.read_filter(index, incarnation.id)?));
        }
        let columns: Vec<_> = columns.iter().map(|(column, bits)| (*column, &bits[..])).collect();
        let slices = Arc::clone(&table.read().level.slices);
        slices.load_columns(&columns);
        table.write().level.filters_loaded = true;
        Ok(())
    }

    fn read_filter(&self, index: usize, id: SegmentId) -> Result<Vec<u64>> {
        let (first, count) =
            (u64::from(self.layout.config.buffer_pages), self.layout.config.filter_pages());
        let pages = PageBuf::zeroed(count as usize);
        let ring = self.layout.rings.of(index);
        let pages = self.layout.rings.device().read(ring.page(id, first), pages)?;
        for page in 0..pages.pages() {
            let label = ring.label(id, first + page as u64, PageKind::Filter);
            RawPage::new(pages.page(page)).check(label)?;
        }
        Ok(decode_filter(&pages, self.layout.config.filter.column_words()))
    }
}
