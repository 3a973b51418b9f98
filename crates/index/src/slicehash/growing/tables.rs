//! The tables of a growing SliceHash: the newest, the one it takes over from, and the next.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock};

use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::{StructureId, Volume, part_name};

use super::config::{
    FIXED_RAM_BYTES, capacity, io_chunk_pages, next, ram_bytes, shared_ram_bytes, without_cache,
};
use super::{Config, TABLE_KIND};
use crate::api::TableStats;
use crate::grow::{Newest, Parts, Requests, full_enough, refused};
use crate::lookup::TableCache;
use crate::model::text;
use crate::ram::SpareRam;
use crate::slicehash::older::Older;
use crate::slicehash::{self, Inner as Core, SliceHash, Slicetables, recover};
use crate::{Error, OpenOptions, Result};

/// The tables.
#[derive(Debug)]
pub struct Tables {
    volume: Volume,
    name: String,
    config: Config,
    options: OpenOptions,
    cache: OnceLock<TableCache>,
    /// The table that answers lookups and takes updates.
    newest: RwLock<Arc<Core>>,
    /// Read-locked by updates; write-locked when the newest table changes, so that all updates of the one before have
    /// ended.
    updates: RwLock<()>,
    owned: Mutex<Owned>,
    requests: Requests,
    spare: Arc<SpareRam>,
}

/// The tables that the owner manages.
#[derive(Debug, Default)]
struct Owned {
    /// The number of the newest table, from 1 on.
    number: usize,
    newest: Option<SliceHash>,
    /// The table that it takes over from.
    older: Option<SliceHash>,
    /// The next table, created before it is needed.
    next: Option<SliceHash>,
    /// The counts of tables that no longer exist.
    gone: TableStats,
}

impl Owned {
    fn newest(&self) -> &SliceHash {
        self.newest.as_ref().expect("an open table has a newest one")
    }
}

/// Returns the name of a table among the parts, from 1 on.
fn part(number: usize) -> String {
    format!("t{number}")
}

/// The name of a table in the catalog.
pub(super) fn table_name(name: &str, number: usize) -> String {
    part_name(name, &part(number))
}

/// The number of a table with this name in the catalog.
pub(super) fn table_number(name: &str, found: &str) -> Option<usize> {
    let number = found.strip_prefix(&part_name(name, "t"))?.parse().ok()?;
    (found == table_name(name, number)).then_some(number)
}

impl Tables {
    /// Opens the existing tables, and creates the first one if there is none.
    pub(super) fn open(
        volume: &Volume,
        name: &str,
        config: Config,
        (options, cache): (OpenOptions, Option<TableCache>),
    ) -> Result<Self> {
        let (config, options) = without_cache(config, options);
        let spare = SpareRam::new(name, options.ram_pool.as_ref());
        let owned = open_tables(volume, name, &config, &options)?;
        for table in [&owned.older, &owned.newest].into_iter().flatten() {
            table.core.lookups.share_cache(cache.as_ref());
        }
        owned.older.iter().for_each(|it| it.core.lookups.supersede());
        let newest = Arc::clone(&owned.newest().core);
        let tables = Self {
            volume: volume.clone(),
            name: name.to_owned(),
            config,
            options,
            cache: cache.map_or_else(OnceLock::new, OnceLock::from),
            newest: RwLock::new(newest),
            updates: RwLock::default(),
            owned: Mutex::new(owned),
            requests: Requests::default(),
            spare,
        };
        tables.requests.due_at(due_at(&tables.owned()));
        tables.leave_spare(&tables.owned(), None)?;
        Ok(tables)
    }

    /// Returns the newest table.
    #[inline]
    pub(super) fn core(&self) -> Arc<Core> {
        Arc::clone(&self.newest.read().expect("no holder of the newest table's lock panics"))
    }

    /// Makes the newest table take over the rest of the older one, and drops that.
    fn settle(&self, owned: &mut Owned) -> Result<()> {
        if let Some(older) = &owned.older {
            let newest = &owned.newest().core;
            newest.take_over_all()?;
            newest.forget_older();
            let counted = older.core.stats();
            // The newest table takes over the life counts.
            let gone = TableStats {
                entries: 0,
                ram_bytes: 0,
                flash_bytes: 0,
                evicted_life: 0,
                forced_evictions_life: 0,
                ..counted
            };
            owned.gone.add_part(&gone, 0);
        }
        if let Some(older) = owned.older.take() {
            let core = Arc::clone(&older.core);
            older.close()?;
            owned.newest().core.counters.take_over(core.counters.life());
        }
        let name = table_name(&self.name, owned.number - 1);
        if self.volume.structures().iter().any(|it| it.name == name) {
            self.volume.drop_structure(&name)?;
        }
        self.leave_spare(owned, None)
    }

    fn create_next(&self, owned: &mut Owned) -> Result<SliceHash> {
        self.settle(owned)?;
        let table = *owned.newest().config();
        let log_bytes = self.volume.log_bytes_max();
        let Some(next) = next(&table, log_bytes) else {
            let reason = format!(
                "a table of twice the size needs more partitions than there are, or a longer log than {}",
                text::bytes(log_bytes)
            );
            return Err(self.stopped(owned, reason));
        };
        let ram_bytes = self.config.ram_bytes_with(&table, &next);
        let limit = self.spare.limit(self.config.ram_bytes_max);
        if let Some(most) = limit.filter(|most| ram_bytes > *most) {
            let (needed, most) = (text::bytes(ram_bytes), text::bytes(most));
            let reason = format!(
                "to grow takes {needed} of RAM, and {most} is what it may take; open it with more RAM, or the database, \
                 if it shares that of all structures"
            );
            return Err(self.stopped(owned, reason));
        }
        let claimed = self.leave_spare(owned, Some(&next));
        let name = (&*self.name, owned.number + 1);
        let made =
            claimed.and_then(|()| create(&self.volume, name, next, (&self.config, &self.options)));
        made.map_err(|error| refused(error, |reason| self.stopped(owned, reason)))
    }

    /// Notes how much of its RAM is spare, counting a table that is being created.
    fn leave_spare(&self, owned: &Owned, making: Option<&slicehash::Config>) -> Result<()> {
        let tables = [&owned.older, &owned.newest, &owned.next].into_iter().flatten();
        let tables = || tables.clone().map(SliceHash::config).chain(making);
        let taken = FIXED_RAM_BYTES + tables().map(ram_bytes).sum::<u64>();
        let shared = tables().map(shared_ram_bytes).max().unwrap_or_default();
        self.spare.leave(self.config.ram_bytes_max, (taken, shared))
    }

    fn stopped(&self, owned: &Owned, reason: String) -> Error {
        Error::GrowthStopped { entries: owned.newest().core.stats().entries, reason }
    }

    fn owned(&self) -> MutexGuard<'_, Owned> {
        self.owned.lock().expect("no holder of the tables' lock panics")
    }

    /// Returns the number of tables so far.
    pub(super) fn number(&self) -> usize {
        self.owned().number
    }
}

impl Parts for Tables {
    type Layout = Slicetables;
    type Newest<'p> = Arc<Core>;

    #[inline]
    fn newest(&self) -> Newest<'_, Arc<Core>> {
        let updates = self.updates.read().expect("no holder of the lock of updates panics");
        Newest { core: self.core(), _updates: updates }
    }

    /// Drops the older table, or creates the next one.
    fn prepare(&self) {
        let mut owned = self.owned();
        if owned.older.is_some() {
            // If this failed, the next growth tries again.
            if self.settle(&mut owned).is_ok() {
                self.requests.due_at(due_at(&owned));
            }
        } else if owned.next.is_none() {
            owned.next = self.create_next(&mut owned).ok();
        }
    }

    fn requests(&self) -> &Requests {
        &self.requests
    }

    fn use_cache(&self, cache: TableCache) {
        let owned = self.owned();
        let cache = self.cache.get_or_init(|| cache);
        for table in [&owned.older, &owned.newest].into_iter().flatten() {
            table.core.lookups.share_cache(Some(cache));
        }
        owned.older.iter().for_each(|it| it.core.lookups.supersede());
    }

    fn spare(&self) -> &Arc<SpareRam> {
        &self.spare
    }

    #[cold]
    fn grow(&self, full: StructureId) -> Result<()> {
        let mut owned = self.owned();
        let full_core = self.core();
        if full_core.id != full {
            return Ok(());
        }
        if owned.next.is_none() {
            owned.next = Some(self.create_next(&mut owned)?);
        }
        let updates = self.updates.write().expect("no holder of the lock of updates panics");
        // Otherwise a merge of the newer table, which holds a partition of this one, might have to do these first.
        full_core.catch_up_now()?;
        let next = owned.next.take().expect("it was just made");
        next.core.lookups.share_cache(self.cache.get());
        full_core.lookups.supersede();
        next.core.take_over_from(&full_core);
        let mut newest = self.newest.write().expect("no holder of the newest table's lock panics");
        *newest = Arc::clone(&next.core);
        drop(newest);
        drop(updates);
        owned.older = owned.newest.replace(next);
        owned.number += 1;
        full_core.retire();
        self.requests.due_at(due_at(&owned));
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        let owned = self.owned();
        for table in [&owned.older, &owned.newest].into_iter().flatten() {
            table.core.flush_unsaved()?;
        }
        Ok(())
    }

    fn stats(&self) -> TableStats {
        let owned = self.owned();
        let shared_ram_bytes = self.volume.shared_ram_bytes();
        let newest = &owned.newest().core;
        let mut sum = owned.gone.clone();
        sum.ram_bytes = shared_ram_bytes;
        sum.add_part(&newest.stats(), shared_ram_bytes);
        if let Some(older) = &owned.older {
            let older = &older.core;
            let entries = newest.entries_to_take_over(older);
            sum.add_part(&TableStats { entries, ..older.stats() }, shared_ram_bytes);
        }
        if let Some(next) = &owned.next {
            let stats = next.core.stats();
            sum.add_part(&stats, shared_ram_bytes);
        }
        sum
    }

    fn close(&self) -> Result<()> {
        let Owned { older, newest, next, .. } = std::mem::take(&mut *self.owned());
        let all = [older, newest, next].into_iter().flatten();
        all.map(SliceHash::close).fold(Ok(()), Result::and)
    }
}

/// Returns the number of entries on flash at which the thread has something to prepare: dropping the older table when
/// almost all of it was taken over, or creating the next one.
fn due_at(owned: &Owned) -> u64 {
    if let Some(older) = &owned.older {
        return older.core.counters.flushed_entries.load(Relaxed);
    }
    full_enough(capacity(owned.newest().config()))
}

fn create(
    volume: &Volume,
    (name, number): (&str, usize),
    table: slicehash::Config,
    (config, options): (&Config, &OpenOptions),
) -> Result<SliceHash> {
    let found = table_name(name, number);
    if volume.structures().iter().any(|it| it.name == found) {
        return open_table(volume, (name, number), (config, options), Older::default());
    }
    let part = part(number);
    let create =
        |config, pages| Ok(volume.create_part((name, &part), TABLE_KIND, config, pages)?);
    let options = for_table(&table, options);
    let entry = SliceHash::enter(volume, create, &table, &options)?;
    recover::open(volume, &entry, options, Some(Older::default()))
}

fn open_table(
    volume: &Volume,
    (name, number): (&str, usize),
    (config, options): (&Config, &OpenOptions),
    older: Older,
) -> Result<SliceHash> {
    let name = table_name(name, number);
    let structure = volume.open_structure(&name, TABLE_KIND)?;
    let mut reader = Reader::new(&structure.config, "slicehash configuration", PageId(0));
    let table = slicehash::Config::decode(&mut reader)?;
    check_shape(config, &table, &name)?;
    recover::open(volume, &structure, for_table(&table, options), Some(older))
}

/// The options for one of the tables.
fn for_table(table: &slicehash::Config, options: &OpenOptions) -> OpenOptions {
    let io_chunk_pages = options.io_chunk_pages.unwrap_or(u32::MAX).min(io_chunk_pages(table));
    OpenOptions { io_chunk_pages: Some(io_chunk_pages), ..options.clone() }
}

/// Opens the newest table, and the one before it if that still exists.
fn open_tables(
    volume: &Volume,
    name: &str,
    config: &Config,
    options: &OpenOptions,
) -> Result<Owned> {
    let structures = volume.structures();
    let found = structures.iter().filter(|it| it.kind == TABLE_KIND);
    let mut numbers: Vec<_> = found.filter_map(|it| table_number(name, &it.name)).collect();
    numbers.sort_unstable();
    let open = |number, older| open_table(volume, (name, number), (config, options), older);
    let (number, older, newest) = match numbers[..] {
        [] => {
            let entries = options.entries.unwrap_or_default();
            let first = config.holding_with(entries, volume.log_bytes_max());
            (1, None, create(volume, (name, 1), first, (config, options))?)
        }
        [only] => (only, None, open(only, Older::default())?),
        [before, last] if before + 1 == last => {
            let older = open(before, Older::default())?;
            older.core.finish_flushes()?;
            let newest = open(last, Older::new(Arc::clone(&older.core)))?;
            older.core.retire();
            (last, Some(older), newest)
        }
        _ => {
            let reason = format!(
                "tables {numbers:?} of {name:?} are there; expected one, or one and the next; restore the volume \
                 from a copy"
            );
            return Err(Error::Config { field: "tables", reason });
        }
    };
    Ok(Owned { number, older, newest: Some(newest), ..Owned::default() })
}

fn check_shape(config: &Config, table: &slicehash::Config, name: &str) -> Result<()> {
    if super::config::has_shape(config, table) {
        return Ok(());
    }
    let reason = format!(
        "{name:?} has other entries or slicetables than the table whose part it is by its name; restore the volume from a \
         copy"
    );
    Err(Error::Config { field: "table", reason })
}
