//! The generations of a growing table, oldest first, and how one more comes.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard};

use nandex_store::{Volume, part_name};

use super::{Config, GENERATION_KIND};
use crate::bufferhash::model::FIXED_RAM_BYTES;
use crate::bufferhash::{self, BufferHash, Inner as Core, RuntimeOptions};
use crate::grow::Requests;
use crate::model::text;
use crate::{Error, Result};

/// Generations of a table, at most; each holds as much as all before it, unless the log is too short.
pub(super) const GENERATIONS_MAX: usize = 256;

/// The part of a generation that is full when the next one is made in the background.
const FULL_ENOUGH: (u64, u64) = (7, 8);

/// The generations of a table.
#[derive(Debug)]
pub(super) struct Generations {
    volume: Volume,
    name: String,
    config: Config,
    options: RuntimeOptions,
    /// Those that are in use. Only added to, so that lookups need no lock.
    cores: Box<[OnceLock<Arc<Core>>]>,
    len: AtomicUsize,
    /// Read by updates, written when a generation is added: then all updates of the one before have ended.
    updates: RwLock<()>,
    tables: Mutex<Tables>,
    /// Entries on flash with which the newest one is nearly full.
    full_enough: AtomicU64,
    /// Was the next generation asked for?
    is_asked: AtomicBool,
    requests: Requests,
}

/// What owns the generations.
#[derive(Debug, Default)]
struct Tables {
    used: Vec<BufferHash>,
    /// The next one, made before it is needed.
    next: Option<BufferHash>,
}

/// The newest generation, for as long as it is the newest.
pub(super) struct Newest<'g> {
    pub(super) core: &'g Core,
    /// How many generations there are.
    pub(super) count: usize,
    _updates: RwLockReadGuard<'g, ()>,
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
        options: RuntimeOptions,
    ) -> Result<Self> {
        let generations = Self {
            volume: volume.clone(),
            name: name.to_owned(),
            config,
            options,
            cores: (0..GENERATIONS_MAX).map(|_| OnceLock::new()).collect(),
            len: AtomicUsize::new(0),
            updates: RwLock::default(),
            tables: Mutex::default(),
            full_enough: AtomicU64::default(),
            is_asked: AtomicBool::new(false),
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

    /// The newest one, kept the newest meanwhile.
    #[inline]
    pub(super) fn newest(&self) -> Newest<'_> {
        let updates = self.updates.read().expect("no holder of the lock of updates panics");
        let count = self.len();
        Newest { core: self.core(count - 1), count, _updates: updates }
    }

    /// Has the next generation made in the background if the newest one is nearly full.
    #[inline]
    pub(super) fn look_ahead(&self, newest: &Core) {
        let entries = newest.counters.flushed_entries.load(Relaxed);
        if entries >= self.full_enough.load(Relaxed)
            && self.options.flush_threads > 0
            && !self.is_asked.swap(true, Relaxed)
        {
            self.requests.prepare();
        }
    }

    pub(super) fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Makes the next generation before it is needed. A failure is told by the update that needs it, which tries
    /// again.
    pub(super) fn prepare(&self) {
        let mut tables = self.tables();
        if tables.next.is_none() {
            tables.next = self.create(&tables).ok();
        }
    }

    /// Adds a generation, unless there are more than `count` already.
    ///
    /// # Errors
    /// RAM that is spent, no space on the device, a failed write.
    #[cold]
    pub(super) fn grow(&self, count: usize) -> Result<()> {
        let mut tables = self.tables();
        if tables.used.len() > count {
            return Ok(());
        }
        let table = match tables.next.take() {
            Some(next) => next,
            None => self.create(&tables)?,
        };
        self.use_next(&mut tables, table);
        self.core(count - 1).retire();
        self.is_asked.store(false, Relaxed);
        Ok(())
    }

    fn use_next(&self, tables: &mut Tables, table: BufferHash) {
        let number = tables.used.len();
        let set = self.cores[number].set(Arc::clone(&table.handle.core));
        assert!(set.is_ok(), "generation {number} is new");
        let updates = self.updates.write().expect("no holder of the lock of updates panics");
        self.len.store(number + 1, Release);
        let (part, whole) = FULL_ENOUGH;
        let full_enough = (table.config().entries_capacity() * part).div_ceil(whole);
        self.full_enough.store(full_enough, Relaxed);
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
            _ => self.config.next(before, self.volume.log().capacity_bytes()),
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
        BufferHash::create_as(&self.volume, create, config, self.options.clone())
    }

    fn check_ram(&self, tables: &Tables, next: &bufferhash::Config) -> Result<()> {
        let Some(most) = self.config.ram_bytes_max else { return Ok(()) };
        let of_all: u64 = tables.used.iter().map(|it| it.config().ram_bytes()).sum();
        let taken = FIXED_RAM_BYTES + of_all;
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
        let entries = tables.used.iter().map(|it| it.handle.core.stats().entries).sum();
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

    /// Closes all, oldest first.
    pub(super) fn close(&self) -> Result<()> {
        let tables = std::mem::take(&mut *self.tables());
        let all = tables.used.into_iter().chain(tables.next);
        all.map(BufferHash::close).fold(Ok(()), Result::and)
    }
}
