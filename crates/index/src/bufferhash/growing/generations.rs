//! The generations of a growing table, oldest first, and how one more comes.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock};

use nandex_store::{StructureId, Volume, part_name};

use super::config::{ram_bytes_of, without_cache};
use super::{Config, GENERATION_KIND};
use crate::api::TableStats;
use crate::bufferhash::{self, BufferHash, Incarnations, Inner as Core};
use crate::grow::{Newest, Parts, Requests, full_enough};
use crate::lookup::TableCache;
use crate::model::text;
use crate::{Error, OpenOptions, Result};

/// Generations of a table, at most; each holds as much as all before it, unless the log is too short.
pub(super) const GENERATIONS_MAX: usize = 256;

/// The generations of a table.
#[derive(Debug)]
pub struct Generations {
    volume: Volume,
    name: String,
    config: Config,
    options: OpenOptions,
    cache: Option<TableCache>,
    /// Those that are in use. Only added to, so that lookups need no lock.
    cores: Box<[OnceLock<Arc<Core>>]>,
    len: AtomicUsize,
    /// Read by updates, written when a generation is added: then all updates of the one before have ended.
    updates: RwLock<()>,
    tables: Mutex<Tables>,
    requests: Requests,
}

/// What owns the generations.
#[derive(Debug, Default)]
struct Tables {
    used: Vec<BufferHash>,
    /// The next one, made before it is needed.
    next: Option<BufferHash>,
}

/// RAM that the generations in use take when they are full, in bytes.
fn taken_bytes(tables: &Tables) -> u64 {
    ram_bytes_of(tables.used.iter().map(BufferHash::config))
}

/// The name of a generation among the table's parts, from 1 on.
fn part(number: usize) -> String {
    format!("g{number}")
}

/// The name of a generation in the catalog.
pub(super) fn generation_name(name: &str, number: usize) -> String {
    part_name(name, &part(number))
}

impl Generations {
    /// Opens the generations that exist, and makes the first one if there is none.
    pub(super) fn open(
        volume: &Volume,
        name: &str,
        config: Config,
        (options, cache): (OpenOptions, Option<TableCache>),
    ) -> Result<Self> {
        let (config, options) = without_cache(config, options);
        let generations = Self {
            volume: volume.clone(),
            name: name.to_owned(),
            config,
            options,
            cache,
            cores: (0..GENERATIONS_MAX).map(|_| OnceLock::new()).collect(),
            len: AtomicUsize::new(0),
            updates: RwLock::default(),
            tables: Mutex::default(),
            requests: Requests::default(),
        };
        let mut tables = generations.tables();
        while generations.exists(tables.used.len() + 1) {
            let table = generations.open_generation(tables.used.len() + 1)?;
            generations.use_next(&mut tables, table);
        }
        if tables.used.is_empty() {
            let table = generations.create(&tables)?;
            generations.use_next(&mut tables, table);
        }
        drop(tables);
        (0..generations.len() - 1).for_each(|number| generations.core(number).retire());
        Ok(generations)
    }

    /// Those that are in use, oldest first.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len.load(Acquire)
    }

    /// One of them, from 0 on.
    #[inline]
    pub(super) fn core(&self, number: usize) -> &Core {
        self.cores[number].get().expect("a generation in use")
    }

    /// Those that are in use, oldest first.
    pub(super) fn cores(&self) -> impl Iterator<Item = &Core> {
        (0..self.len()).map(|number| self.core(number))
    }

    fn use_next(&self, tables: &mut Tables, table: BufferHash) {
        let number = tables.used.len();
        table.core.lookups.share_cache(self.cache.as_ref());
        let set = self.cores[number].set(Arc::clone(&table.core));
        assert!(set.is_ok(), "generation {number} is new");
        let updates = self.updates.write().expect("no holder of the lock of updates panics");
        tables.used.last().iter().for_each(|it| it.core.lookups.supersede());
        self.len.store(number + 1, Release);
        self.requests.due_at(full_enough(table.config().entries_capacity()));
        drop(updates);
        tables.used.push(table);
    }

    fn create(&self, tables: &Tables) -> Result<BufferHash> {
        let number = tables.used.len() + 1;
        if self.exists(number) {
            return self.open_generation(number);
        }
        let before = tables.used.iter().map(BufferHash::config);
        let config = match number {
            1 => self.config.first.clone(),
            _ => {
                let left = self.config.ram_bytes_max.unwrap_or(u64::MAX);
                let left = left.saturating_sub(taken_bytes(tables));
                self.config.next(before, self.volume.log().capacity_bytes(), left)
            }
        };
        self.check_ram(tables, &config)?;
        if number > GENERATIONS_MAX {
            return Err(self.stopped(tables, format!("it has {GENERATIONS_MAX} generations")));
        }
        let part = part(number);
        let create = |config, pages| {
            let name = (&self.name[..], &part[..]);
            Ok(self.volume.create_part(name, GENERATION_KIND, config, pages)?)
        };
        let entry = BufferHash::enter(&self.volume, create, &config, &self.options)?;
        bufferhash::recover::open(&self.volume, &entry, self.options.clone())
    }

    fn check_ram(&self, tables: &Tables, next: &bufferhash::Config) -> Result<()> {
        let Some(most) = self.config.ram_bytes_max else { return Ok(()) };
        let taken = taken_bytes(tables);
        if taken + next.ram_bytes() <= most {
            return Ok(());
        }
        let (taken, needed, most) =
            (text::bytes(taken), text::bytes(next.ram_bytes()), text::bytes(most));
        let reason = format!(
            "it takes {taken} of RAM when its generations are full, the next one takes {needed}, and {most} is what it may take; \
             open it with more RAM"
        );
        Err(self.stopped(tables, reason))
    }

    fn stopped(&self, tables: &Tables, reason: String) -> Error {
        let entries = tables.used.iter().map(|it| it.core.stats().entries).sum();
        Error::GrowthStopped { entries, reason }
    }

    fn exists(&self, number: usize) -> bool {
        let name = generation_name(&self.name, number);
        let structures = self.volume.structures();
        structures.iter().any(|it| it.name == name && it.kind == GENERATION_KIND)
    }

    fn open_generation(&self, number: usize) -> Result<BufferHash> {
        let (name, options) = (generation_name(&self.name, number), self.options.clone());
        let table = BufferHash::open_as(&self.volume, (&name, GENERATION_KIND), options)?;
        if table.config().filter != self.config.first.filter
            || table.config().buffer_pages != self.config.first.buffer_pages
        {
            let reason = format!(
                "{name:?} has other buffers or filters than {:?}, whose generation it is by its name; restore the volume \
                 from a copy",
                self.name
            );
            return Err(Error::Config { field: "generation", reason });
        }
        Ok(table)
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().expect("no holder of the generations' lock panics")
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

    /// Makes the next generation.
    fn prepare(&self) {
        let mut tables = self.tables();
        if tables.next.is_none() {
            tables.next = self.create(&tables).ok();
        }
    }

    fn requests(&self) -> &Requests {
        &self.requests
    }

    #[cold]
    fn grow(&self, full: StructureId) -> Result<()> {
        let mut tables = self.tables();
        let newest = self.core(self.len() - 1);
        if newest.id != full {
            return Ok(());
        }
        let table = match tables.next.take() {
            Some(next) => next,
            None => self.create(&tables)?,
        };
        self.use_next(&mut tables, table);
        newest.retire();
        Ok(())
    }

    /// An older generation that may hold the key is hidden by a tombstone.
    fn remove(&self, newest: &Core, key: &[u8]) -> Result<()> {
        newest.check_key_width(key)?;
        let hash = newest.hasher.hash(key);
        let mut is_older = false;
        for core in self.cores().take_while(|core| core.id != newest.id) {
            is_older = is_older || core.may_hold(hash, key)?;
        }
        newest.remove_over(key, is_older)
    }

    fn flush(&self) -> Result<()> {
        self.cores().filter(|core| !core.is_saved()).try_for_each(Core::flush_all)
    }

    fn stats(&self) -> TableStats {
        let log_ram_bytes = self.volume.log().stats().ram_bytes;
        let mut sum = TableStats { ram_bytes: log_ram_bytes, ..TableStats::default() };
        self.cores().for_each(|core| sum.add_part(&core.stats(), log_ram_bytes));
        sum
    }

    fn close(&self) -> Result<()> {
        let tables = std::mem::take(&mut *self.tables());
        let all = tables.used.into_iter().chain(tables.next);
        all.map(BufferHash::close).fold(Ok(()), Result::and)
    }
}
