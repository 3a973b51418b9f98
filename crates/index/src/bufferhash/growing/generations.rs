//! The generations of a growing table, oldest first, and how the next one is added.

use std::cell::Cell;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock};

use nandex_store::mutants::{Barrier, is_on};
use nandex_store::space::LEFT_PAGES_MIN;
use nandex_store::{StructureId, Volume, part_name};

use super::config::without_cache;
use super::ram::{
    columns_alone, columns_fresh, ram_bytes_of_newest, ram_bytes_of_older, ram_bytes_with,
    taking_over_bytes, without_filters,
};
use super::{Config, GENERATION_KIND};
use crate::api::TableStats;
use crate::bufferhash::model::FIXED_RAM_BYTES;
use crate::bufferhash::{self, BufferHash, Incarnations, Inner as Core};
use crate::grow::{Newest, Parts, Requests, full_enough, refused};
use crate::lookup::TableCache;
use crate::model::{text, too_little_ram};
use crate::ram::SpareRam;
use crate::write;
use crate::{Error, OpenOptions, Result};

/// The maximum number of generations of a table, including those that were dropped since it was opened; each holds as
/// much as all before it, unless the log is too short.
pub(super) const GENERATIONS_MAX: usize = 256;

/// A generation takes over from all before it if less than this share of their entries are keys.
const KEYS_SHARE: f64 = 0.8;
/// The second condition: less than this share of the latest entries are new keys.
const NEW_SHARE: f64 = 0.5;

/// The generations of a table.
#[derive(Debug)]
pub struct Generations {
    volume: Volume,
    name: String,
    config: Config,
    options: OpenOptions,
    cache: OnceLock<TableCache>,
    /// The generations in use, from `first` on, preceded by those that were dropped. The list only grows, so lookups
    /// need no lock.
    cores: Box<[OnceLock<Arc<Core>>]>,
    first: AtomicUsize,
    len: AtomicUsize,
    /// The catalog number of the first generation of all.
    number: usize,
    /// Read-locked by updates; write-locked when a generation is added, so that all updates of the one before have
    /// ended.
    updates: RwLock<()>,
    tables: Mutex<Tables>,
    /// The counts of generations that were dropped.
    gone: Mutex<TableStats>,
    requests: Requests,
    spare: Arc<SpareRam>,
}

/// The generations that the owner manages.
#[derive(Debug, Default)]
pub(super) struct Tables {
    used: Vec<BufferHash>,
    /// The next one, created before it is needed.
    next: Option<BufferHash>,
    /// The number of columns that the newest may have, if it is cleaned, while older ones have their filters.
    columns: u64,
}

impl Tables {
    /// Returns the RAM that the generations in use take when they are full, in bytes.
    fn taken_bytes(&self) -> u64 {
        let Some((newest, older)) = self.used.split_last() else { return FIXED_RAM_BYTES };
        let newest = newest.config();
        let newest_bytes = match newest.cleans() {
            true => ram_bytes_with(newest, self.columns),
            false => ram_bytes_of_newest(newest),
        };
        ram_bytes_of_older(older.iter().map(BufferHash::config)) + newest_bytes
    }

    /// Returns the configurations of the generations in use.
    fn configs(&self) -> Vec<&bufferhash::Config> {
        self.used.iter().map(BufferHash::config).collect()
    }
}

/// Returns the name of a generation among the table's parts, from 1 on.
fn part(number: usize) -> String {
    format!("g{number}")
}

/// The name of a generation in the catalog.
pub(super) fn generation_name(name: &str, number: usize) -> String {
    part_name(name, &part(number))
}

/// The number of a generation with this name in the catalog.
pub(super) fn generation_number(name: &str, found: &str) -> Option<usize> {
    let number = found.strip_prefix(&part_name(name, "g"))?.parse().ok()?;
    (found == generation_name(name, number)).then_some(number)
}

impl Generations {
    /// Opens the existing generations, and creates the first one if there is none.
    pub(super) fn open(
        volume: &Volume,
        name: &str,
        config: Config,
        (options, cache): (OpenOptions, Option<TableCache>),
    ) -> Result<Self> {
        let (config, options) = without_cache(config, options);
        let structures = volume.structures();
        let found = structures.iter().filter(|it| it.kind == GENERATION_KIND);
        let first = found.filter_map(|it| generation_number(name, &it.name)).min();
        let spare = SpareRam::new(name, options.ram_pool.as_ref());
        let generations = Self {
            volume: volume.clone(),
            name: name.to_owned(),
            config,
            options,
            cache: cache.map_or_else(OnceLock::new, OnceLock::from),
            cores: (0..GENERATIONS_MAX).map(|_| OnceLock::new()).collect(),
            first: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            number: first.unwrap_or(1),
            updates: RwLock::default(),
            tables: Mutex::default(),
            gone: Mutex::default(),
            requests: Requests::default(),
            spare,
        };
        let mut tables = generations.tables();
        while generations.exists(generations.next_number()) {
            let table = generations.open_generation(generations.next_number())?;
            generations.use_next(&mut tables, table);
        }
        if tables.used.is_empty() {
            let table = generations.create(&tables)?;
            generations.use_next(&mut tables, table);
        }
        generations.core(generations.len() - 1).release_all_older()?;
        generations.leave_spare(&tables, None)?;
        drop(tables);
        (0..generations.len() - 1).for_each(|number| generations.core(number).retire());
        Ok(generations)
    }

    /// The number of generations since it was opened.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len.load(Acquire)
    }

    /// The number of the oldest one that was not dropped.
    #[inline]
    pub(super) fn first(&self) -> usize {
        self.first.load(Acquire)
    }

    /// The catalog number of the next one.
    fn next_number(&self) -> usize {
        self.number + self.len()
    }

    /// Returns one of them, counted from 0.
    #[inline]
    pub(super) fn core(&self, number: usize) -> &Core {
        self.cores[number].get().expect("a generation in use")
    }

    /// Returns those in use, oldest first.
    pub(super) fn cores(&self) -> impl Iterator<Item = &Core> {
        (self.first()..self.len()).map(|number| self.core(number))
    }

    fn use_next(&self, tables: &mut Tables, table: BufferHash) {
        let number = self.len();
        table.core.lookups.share_cache(self.cache.get());
        let older = tables.used.iter().rev().map(|it| Arc::clone(&it.core));
        table.core.layout.older.set(older.collect());
        let set = self.cores[number].set(Arc::clone(&table.core));
        assert!(set.is_ok(), "generation {number} is new");
        let updates = self.updates.write().expect("no holder of the lock of updates panics");
        tables.used.last().iter().for_each(|it| it.core.lookups.supersede());
        self.len.store(number + 1, Release);
        let takes_over = table.config().cleans();
        self.requests.due_at(match (takes_over, tables.used.is_empty()) {
            (false, _) => full_enough(table.config().entries_capacity()),
            (true, false) => 0,
            (true, true) => u64::MAX,
        });
        drop(updates);
        tables.used.push(table);
        self.limit_columns(tables);
    }

    /// Limits the columns of the newest, if it is cleaned, to those for which older ones leave RAM.
    fn limit_columns(&self, tables: &mut Tables) {
        let Some((newest, older)) = tables.used.split_last() else { return };
        let config = newest.config();
        if !config.cleans() {
            return;
        }
        let alone = columns_alone(config);
        let others = ram_bytes_of_older(older.iter().map(BufferHash::config));
        let left = |most: u64| most.saturating_sub(others + without_filters(config));
        let columns = self.limit().map_or(alone, |most| left(most) / config.column_bytes());
        let columns = columns.clamp(columns_fresh(config).min(alone), alone);
        newest.core.layout.columns.limit(columns, alone);
        tables.columns = columns;
    }

    /// The RAM that all may take together, in bytes.
    fn limit(&self) -> Option<u64> {
        self.spare.limit(self.config.ram_bytes_max)
    }

    /// Creates the next one. If there is no RAM or flash for it, entries stay as before, and growth has stopped.
    fn create(&self, tables: &Tables) -> Result<BufferHash> {
        self.create_or_open_next(tables).map_err(|error| match tables.used.is_empty() {
            true => error,
            false => refused(error, |reason| self.stopped(reason)),
        })
    }

    fn create_or_open_next(&self, tables: &Tables) -> Result<BufferHash> {
        let number = self.next_number();
        if self.exists(number) {
            return self.open_generation(number);
        }
        if self.len() == GENERATIONS_MAX {
            let reason = format!(
                "it has had {GENERATIONS_MAX} generations since it was opened; open it again"
            );
            return Err(self.stopped(reason));
        }
        let config = self.next_config(tables);
        self.check_ram(tables, &config)?;
        self.leave_spare(tables, Some(&config))?;
        let part = part(number);
        let create = |config, pages| {
            if !tables.used.is_empty() {
                self.volume.leave_free(pages + LEFT_PAGES_MIN)?;
            }
            let name = (&self.name[..], &part[..]);
            Ok(self.volume.create_part(name, GENERATION_KIND, config, pages)?)
        };
        let entry = BufferHash::enter(&self.volume, create, &config, &self.options)?;
        bufferhash::recover::open(&self.volume, &entry, self.options.clone())
    }

    /// Returns the configuration of the next generation: it takes over from all before it if much of these is
    /// superseded and there is RAM for that; otherwise it has as many super tables as they have.
    fn next_config(&self, tables: &Tables) -> bufferhash::Config {
        if tables.used.is_empty() {
            let first = self.options.entries.and_then(|entries| self.config.first_for(entries));
            return first.unwrap_or_else(|| self.config.first.clone());
        }
        let most = self.limit().unwrap_or(u64::MAX);
        if let Some(config) = self.taking_over(tables, most) {
            return config;
        }
        let left = most.saturating_sub(tables.taken_bytes());
        let before = tables.used.iter().map(BufferHash::config);
        self.config.next(before, self.volume.log_bytes_max(), left)
    }

    /// Returns one that takes over within `ram_bytes` for all.
    fn taking_over(&self, tables: &Tables, ram_bytes: u64) -> Option<bufferhash::Config> {
        let cores = || tables.used.iter().map(|it| &it.core);
        let held: u64 = cores().map(|it| it.versions_held()).sum();
        let keys = self.stats().entries;
        let (new, came) = cores().next_back().map_or((0, 0), |newest| newest.came_last());
        let is_superseded = (keys as f64) < KEYS_SHARE * held as f64;
        let are_updates = came > 0 && (new as f64) < NEW_SHARE * came as f64;
        // One with a damaged page could not be taken over the next time either.
        let is_damaged = cores().any(|it| it.is_damaged());
        if is_damaged || !is_superseded && !are_updates {
            return None;
        }
        let older = tables.configs();
        self.config.taking_over(keys, |config| {
            let shape = config.shape();
            let has_log = shape.is_ok_and(|shape| write::may_cover(&self.volume, &shape));
            has_log && taking_over_bytes(&older, config) <= ram_bytes
        })
    }

    fn check_ram(&self, tables: &Tables, next: &bufferhash::Config) -> Result<()> {
        let Some(most) = self.limit() else { return Ok(()) };
        let taken = tables.taken_bytes();
        let has_ram = match next.cleans() {
            true => taking_over_bytes(&tables.configs(), next) <= most,
            false => taken + ram_bytes_of_newest(next) <= most,
        };
        if has_ram {
            return Ok(());
        }
        if tables.used.is_empty() {
            return Err(too_little_ram(most, taken + ram_bytes_of_newest(next)));
        }
        let (taken, needed, most) =
            (text::bytes(taken), text::bytes(ram_bytes_of_newest(next)), text::bytes(most));
        let reason = format!(
            "it takes {taken} of RAM when its generations are full, the next one takes {needed}, and {most} is what it may take; \
             open it with more RAM, or the database, if it shares that of all structures"
        );
        Err(self.stopped(reason))
    }

    /// Notes how much of its RAM is spare, counting a generation that is being created.
    fn leave_spare(&self, tables: &Tables, making: Option<&bufferhash::Config>) -> Result<()> {
        let next = tables.next.as_ref().map(BufferHash::config).or(making);
        let taken = tables.taken_bytes();
        let taken = match next {
            // It takes the RAM that those before it release.
            Some(next) if next.cleans() => {
                let both = taken + ram_bytes_of_newest(next);
                self.limit().map_or(both, |most| both.min(most).max(taken))
            }
            next => taken + next.map_or(0, ram_bytes_of_newest),
        };
        self.spare.leave(self.config.ram_bytes_max, (taken, FIXED_RAM_BYTES))
    }

    fn stopped(&self, reason: String) -> Error {
        Error::GrowthStopped { entries: self.stats().entries, reason }
    }

    fn exists(&self, number: usize) -> bool {
        let name = generation_name(&self.name, number);
        let structures = self.volume.structures();
        structures.iter().any(|it| it.name == name && it.kind == GENERATION_KIND)
    }

    fn open_generation(&self, number: usize) -> Result<BufferHash> {
        let (name, options) = (generation_name(&self.name, number), self.options.clone());
        let table = BufferHash::open_as(&self.volume, (&name, GENERATION_KIND), options)?;
        if !self.config.fits(table.config()) {
            let reason = format!(
                "{name:?} has other buffers or filters than {:?}, whose generation it is by its name; restore the volume \
                 from a copy",
                self.name
            );
            return Err(Error::Config { field: "generation", reason });
        }
        Ok(table)
    }

    /// Locks the generations: while the result is kept, none is added or dropped, and no super table becomes whole.
    /// Waits for at most one that the background is taking over.
    pub(super) fn keep(&self) -> (MutexGuard<'_, Tables>, Vec<MutexGuard<'_, ()>>) {
        let _paused = self.requests.pause();
        let tables = self.tables();
        let older = self.cores().map(|core| core.layout.older.keep());
        (tables, older.collect())
    }

    /// Locks the owned generations. Meanwhile none is added or dropped, and super tables become whole only by cleaning.
    pub(super) fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().expect("no holder of the generations' lock panics")
    }

    /// Locks the statistics of those that were dropped.
    fn gone(&self) -> MutexGuard<'_, TableStats> {
        self.gone.lock().expect("no holder of these figures' lock panics")
    }

    /// Makes the newest generation, if it is cleaned, take over the entries of older ones, until `stops` returns true,
    /// and drops these. Returns whether it has dropped any.
    fn settle(&self, tables: &mut Tables, stops: &dyn Fn() -> bool) -> Result<bool> {
        let newest = self.core(self.len() - 1);
        if tables.used.len() < 2 || !newest.layout.config.cleans() {
            return Ok(false);
        }
        let is_whole = newest.take_over_all(stops)?;
        if !is_whole && is_on(Barrier::OlderStayUntilAllAreWhole) {
            return Ok(false);
        }
        let older = || tables.used.iter().rev().skip(1);
        older().for_each(|it| it.core.leave_buffers());
        {
            // A thread that adds up all statistics finds those of older ones in exactly one place.
            let mut gone = self.gone();
            for older in older() {
                let none =
                    TableStats { entries: 0, ram_bytes: 0, flash_bytes: 0, ..older.core.stats() };
                gone.add_part(&none, 0);
            }
            // From here on, lookups end with the newest; those that have already begun detect it.
            self.first.store(self.len() - 1, Release);
        }
        let last = tables.used.len() - 1;
        for (older, number) in tables.used.drain(..last).zip(self.next_number() - 1 - last..) {
            let core = Arc::clone(&older.core);
            older.close()?;
            core.abandon()?;
            self.volume.drop_structure(&generation_name(&self.name, number))?;
        }
        newest.forget_older();
        self.limit_columns(tables);
        self.leave_spare(tables, None)?;
        self.requests.due_at(u64::MAX);
        Ok(true)
    }
}

impl Parts for Generations {
    type Layout = Incarnations;
    type Newest<'p> = &'p Core;

    #[inline]
    fn newest(&self) -> Newest<'_, &Core> {
        let updates = self.updates.read().expect("no holder of the lock of updates panics");
        Newest { core: self.core(self.len() - 1), _updates: updates }
    }

    /// Drops older generations, or creates the next one.
    fn prepare(&self) {
        let mut tables = self.tables();
        if self.core(self.len() - 1).layout.config.cleans() {
            let has_paused = Cell::new(false);
            let stops = || {
                let is_paused = self.requests.is_paused();
                has_paused.set(has_paused.get() || is_paused);
                is_paused || self.requests.is_stopped()
            };
            // If this failed, the next growth tries again.
            let _ = self.settle(&mut tables, &stops);
            if has_paused.get() {
                self.requests.due_at(0);
            }
        } else if tables.next.is_none() {
            tables.next = self.create(&tables).ok();
        }
    }

    fn requests(&self) -> &Requests {
        &self.requests
    }

    fn use_cache(&self, cache: TableCache) {
        let tables = self.tables();
        let cache = self.cache.get_or_init(|| cache);
        tables.used.iter().for_each(|it| it.core.lookups.share_cache(Some(cache)));
        let older = tables.used.iter().rev().skip(1);
        older.for_each(|it| it.core.lookups.supersede());
    }

    fn spare(&self) -> &Arc<SpareRam> {
        &self.spare
    }

    #[cold]
    fn grow(&self, full: StructureId) -> Result<()> {
        let stops = || self.requests.is_stopped();
        let first = self.first();
        let mut tables = self.tables();
        let newest = self.core(self.len() - 1);
        // It has space again once it has taken over the entries of older ones.
        if newest.id != full || self.first() != first || self.settle(&mut tables, &stops)? {
            return Ok(());
        }
        let table = match tables.next.take() {
            Some(next) => next,
            None => self.create(&tables)?,
        };
        self.use_next(&mut tables, table);
        self.leave_spare(&tables, None)?;
        newest.retire();
        if self.options.flush_threads == Some(0) {
            self.settle(&mut tables, &stops)?;
        }
        Ok(())
    }

    /// A tombstone shadows a key that an older generation may have.
    fn remove(&self, newest: &Core, key: &[u8]) -> Result<()> {
        newest.check_key_width(key)?;
        let is_older = newest.may_be_in_older(newest.hasher.hash(key), key)?;
        newest.remove_or_grow(key, is_older)
    }

    fn flush(&self) -> Result<()> {
        self.cores().try_for_each(Core::flush_unsaved)
    }

    fn stats(&self) -> TableStats {
        let shared_ram_bytes = self.volume.shared_ram_bytes();
        let (gone, first) = {
            let gone = self.gone();
            (gone.clone(), self.first())
        };
        let mut sum = TableStats { ram_bytes: shared_ram_bytes, ..gone };
        // Newest first: entries that were taken over are counted there.
        let (mut keys, mut left) = (0.0, 1.0);
        for number in (first..self.len()).rev() {
            let core = self.core(number);
            let stats = core.stats();
            let counts = core.layout.config.counts_keys();
            let brought = if counts { core.keys_brought() as f64 } else { stats.entries as f64 };
            keys += left * brought;
            left *= 1.0 - core.whole_share();
            sum.add_part(&stats, shared_ram_bytes);
        }
        TableStats { entries: keys.max(0.0).round() as u64, ..sum }
    }

    fn close(&self) -> Result<()> {
        let tables = std::mem::take(&mut *self.tables());
        let all = tables.used.into_iter().chain(tables.next);
        all.map(BufferHash::close).fold(Ok(()), Result::and)
    }
}
