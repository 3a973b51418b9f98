//! The drive: creating, opening and closing it, and its key spaces.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use nandex::large::table_name;
use nandex::raw::store::mutants::{Barrier, is_on};
use nandex::raw::{Stated, registry};
use nandex::{AnyConfig, AnyTable, LargeTable, OpenOptions, Volume};

use crate::catalog::{
    CATALOG_KEY, CONFIG_KEY, Catalog, NAME_BYTES_MAX, PREFIX_BYTES, SPACE_BYTES, Space, SpaceId,
    Usage, decode_config, encode_config,
};
use crate::info::Counters;
use crate::iterate::Iterators;
use crate::timing::{Clock, Timing};
use crate::{Config, Error, IndexChoice, KeyOrder, KeySpace, Result};

/// The drive's name in a volume that holds one drive and nothing else.
pub const DRIVE_NAME: &str = "drive";

/// The table of all pairs.
pub(crate) type Pairs = LargeTable<AnyTable>;

/// The number of first bytes of a key that its fingerprint contains: its key space, and its group.
const GROUP_BYTES: usize = SPACE_BYTES + PREFIX_BYTES;

/// The number of fingerprints that are removed together.
const ERASE_BATCH: usize = 1 << 14;

/// A key-value SSD in a volume. Clones share it; all calls may come from any thread.
///
/// Dropping the last clone, and all key spaces and queues, closes it and ignores failures; [`close`](Self::close)
/// reports them.
///
/// ```
/// use std::sync::Arc;
/// use nandex::{Volume, VolumeOptions, device::MemoryDevice};
/// use nandex_kvssd::{Config, Drive, IndexChoice, KeyOrder};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::default())?;
/// let index = IndexChoice { kind: "slicehash", ram_bytes: None };
/// let drive = Drive::create(&volume, "drive", Config::tiny(), index)?;
/// drive.create_key_space("photos", 0, KeyOrder::None)?;
/// let photos = drive.open_key_space("photos")?;
/// photos.store(b"cat.jpg", b"...", Default::default())?;
/// assert_eq!(photos.retrieve(b"cat.jpg", Default::default())?.bytes, b"...");
/// drive.close()?;
/// # Ok::<(), nandex_kvssd::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Drive {
    pub(crate) inner: Arc<DriveInner>,
}

#[derive(Debug)]
pub(crate) struct DriveInner {
    pub(crate) config: Config,
    volume: Volume,
    /// `None` once the drive is closed. Users of pairs hold it for reading; closing, and hiding a key space, for
    /// writing.
    pairs: RwLock<Option<Pairs>>,
    catalog: Mutex<Catalog>,
    /// Held while the list of key spaces on flash is replaced. Taken before `catalog`.
    catalog_writer: Mutex<()>,
    /// Whether the list on flash says that its counts are outdated.
    is_marked: AtomicBool,
    pub(crate) iterators: Mutex<Iterators>,
    pub(crate) counters: Counters,
    pub(crate) clock: Clock,
    openings: AtomicU64,
}

/// The pairs of an open drive.
#[derive(Debug)]
pub(crate) struct PairsGuard<'d>(RwLockReadGuard<'d, Option<Pairs>>);

impl std::ops::Deref for PairsGuard<'_> {
    type Target = Pairs;

    fn deref(&self) -> &Pairs {
        self.0
            .as_ref()
            .expect("it was open when the guard was made, and closing waits for the guard")
    }
}

impl Drive {
    /// Creates a drive in a volume: a value log of this name, its index, and the drive's configuration.
    ///
    /// # Errors
    /// Invalid limits, a name that is in use, no space, a failed write.
    pub fn create(
        volume: &Volume,
        name: &str,
        config: Config,
        index: IndexChoice<'_>,
    ) -> Result<Self> {
        config.validate()?;
        let predicted = index.predict(config.pairs_max)?;
        Self::create_with(volume, name, config, (&predicted.config, &predicted.options))
    }

    /// Like [`create`](Self::create), with an index of this configuration, which must keep everything that is put, and
    /// its options.
    ///
    /// # Errors
    /// As `create`.
    pub fn create_with(
        volume: &Volume,
        name: &str,
        config: Config,
        (index, options): (&AnyConfig, &OpenOptions),
    ) -> Result<Self> {
        config.validate()?;
        let table = AnyTable::create_with(volume, &table_name(name), index, options)?;
        let values = config.values();
        let pairs = LargeTable::create_grouped(volume, name, (table, GROUP_BYTES), values)?;
        pairs.put(CONFIG_KEY, &encode_config(&config))?;
        pairs.put(CATALOG_KEY, &Catalog { is_counted: true, ..Catalog::default() }.encode())?;
        pairs.sync()?;
        Ok(Self::of(volume, pairs, config, Catalog { is_counted: true, ..Catalog::default() }))
    }

    /// Opens the drive of this name in a volume. After a crash it reads the first page of each record, to count the
    /// pairs, and continues interrupted deletions of key spaces.
    ///
    /// # Errors
    /// No such drive, one that is open already, damage, a failed read.
    pub fn open(volume: &Volume, name: &str) -> Result<Self> {
        Self::open_with(volume, name, &OpenOptions::default())
    }

    /// Like [`open`](Self::open), with options of the index.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_with(volume: &Volume, name: &str, options: &OpenOptions) -> Result<Self> {
        if !volume.structures().iter().any(|it| it.name == table_name(name)) {
            return Err(Error::NoDrive { name: name.to_owned() });
        }
        let table = AnyTable::open_with(volume, &table_name(name), options)?;
        let pairs = LargeTable::open_grouped(volume, name, (table, GROUP_BYTES))?;
        let missing = || Error::NoDrive { name: name.to_owned() };
        let config = decode_config(&pairs.get(CONFIG_KEY)?.ok_or_else(missing)?)?;
        let mut catalog = Catalog::decode(&pairs.get(CATALOG_KEY)?.ok_or_else(missing)?)?;
        if !catalog.is_counted {
            count_pairs(&pairs, &mut catalog)?;
        }
        let is_marked = !catalog.is_counted;
        let drive = Self::of(volume, pairs, config, catalog);
        drive.inner.is_marked.store(is_marked, Ordering::Release);
        drive.finish_deletions()?;
        Ok(drive)
    }

    /// Like [`open`](Self::open), with the given options of the index, which must have the given parameters.
    ///
    /// # Errors
    /// As `open`; parameters that differ from the given ones.
    pub fn open_stated(volume: &Volume, name: &str, stated: &Stated) -> Result<Self> {
        let Ok(kind) = registry::kind_in(volume, &table_name(name)) else {
            return Err(Error::NoDrive { name: name.to_owned() });
        };
        let options = stated.options(&kind, OpenOptions::default())?;
        let drive = Self::open_with(volume, name, &options)?;
        stated.check(name, &drive.inner.pairs()?.table().config())?;
        Ok(drive)
    }

    fn of(volume: &Volume, pairs: Pairs, config: Config, catalog: Catalog) -> Self {
        let inner = DriveInner {
            iterators: Mutex::new(Iterators::new(config.iterators_max)),
            config,
            volume: volume.clone(),
            pairs: RwLock::new(Some(pairs)),
            catalog: Mutex::new(catalog),
            catalog_writer: Mutex::default(),
            is_marked: AtomicBool::new(false),
            counters: Counters::default(),
            clock: Clock::new(volume.device()),
            openings: AtomicU64::new(0),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Selects the time that commands are reported to take; the device's by default.
    pub fn set_timing(&self, timing: Timing) {
        self.inner.clock.set(timing);
    }

    /// The limits of the drive.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// Fails if the drive was created with another kind of index, which the volume's catalog stores.
    ///
    /// # Errors
    /// [`Error::Config`] with both kinds; a drive that was closed.
    pub fn check_index(&self, kind: &str) -> Result<()> {
        let pairs = self.inner.pairs()?;
        let own = pairs.table().kind();
        if own == kind {
            return Ok(());
        }
        let reason = format!(
            "{kind:?} is not the index of this drive, which was made with {own:?}; leave it out, or make another drive"
        );
        Err(Error::Config { field: "index", reason })
    }

    /// The volume of the drive.
    #[must_use]
    pub fn volume(&self) -> &Volume {
        &self.inner.volume
    }

    /// Creates a key space for at most `limit_bytes` of keys and values, or, with 0, without a limit of its own.
    ///
    /// # Errors
    /// A name that is in use or invalid, a limit that the drive has no space for, too many key spaces, an order of
    /// keys, which a hash index does not have.
    pub fn create_key_space(&self, name: &str, limit_bytes: u64, order: KeyOrder) -> Result<()> {
        check_name(name)?;
        order.check()?;
        let pairs = self.inner.pairs()?;
        let _writer = lock(&self.inner.catalog_writer);
        self.inner.add_space(name, limit_bytes)?;
        self.inner.save_catalog(&pairs).inspect_err(|_| {
            let mut catalog = self.inner.catalog();
            catalog.spaces.retain(|_, space| space.name != name || space.is_deleting);
        })
    }

    /// Deletes a key space with all its pairs, durably, and closes its handles.
    ///
    /// A crash in the middle leaves it deleted: the next opening removes the remaining pairs.
    ///
    /// Costs passes over the index, and a removal for each pair.
    ///
    /// # Errors
    /// No such key space, a failed read or write.
    pub fn delete_key_space(&self, name: &str) -> Result<()> {
        let id = {
            // No call is in progress while it is hidden, so none puts a pair behind the removal.
            let _all = self.inner.write_pairs();
            let mut catalog = self.inner.catalog();
            let id = catalog.find(name)?;
            let space = catalog.spaces.get_mut(&id).expect("it was found");
            (space.is_deleting, space.opened_as) = (true, None);
            id
        };
        lock(&self.inner.iterators).close_all_of(id);
        let pairs = self.inner.pairs()?;
        {
            let _writer = lock(&self.inner.catalog_writer);
            self.inner.save_catalog(&pairs)?;
        }
        self.inner.erase(&pairs, id)
    }

    /// Returns the names of key spaces from the one at `index` on, in the order of their numbers.
    ///
    /// # Errors
    /// An index past the last one.
    pub fn list_key_spaces(&self, index: usize) -> Result<Vec<String>> {
        drop(self.inner.pairs()?);
        let catalog = self.inner.catalog();
        let names: Vec<_> = catalog.visible().map(|(_, space)| space.name.clone()).collect();
        match names.get(index..) {
            Some(rest) if !rest.is_empty() || index == 0 => Ok(rest.to_vec()),
            _ => Err(Error::NoSpaceAt { index, count: names.len() }),
        }
    }

    /// Opens a key space. There is one handle at a time, which threads share.
    ///
    /// # Errors
    /// No such key space, one that is open already.
    pub fn open_key_space(&self, name: &str) -> Result<KeySpace> {
        drop(self.inner.pairs()?);
        let mut catalog = self.inner.catalog();
        let id = catalog.find(name)?;
        let space = catalog.spaces.get_mut(&id).expect("it was found");
        if space.opened_as.is_some() {
            return Err(Error::SpaceIsOpen { name: name.to_owned() });
        }
        let opening = self.inner.openings.fetch_add(1, Ordering::Relaxed);
        space.opened_as = Some(opening);
        drop(catalog);
        Ok(KeySpace::new(self.clone(), (id, opening), name.to_owned()))
    }

    /// Removes all pairs of all key spaces; the key spaces stay, open or not.
    ///
    /// # Errors
    /// A failed read or write.
    pub fn purge(&self) -> Result<()> {
        let names = self.list_key_spaces(0)?;
        for name in names {
            let id = self.inner.catalog().find(&name)?;
            let pairs = self.inner.pairs()?;
            self.inner.mark(&pairs)?;
            self.inner.remove_where(&pairs, id, &|_| true)?;
        }
        self.sync()
    }

    /// Makes everything acknowledged so far durable, whatever the durability mode.
    ///
    /// # Errors
    /// A failed write or sync, after which the volume is poisoned.
    pub fn sync(&self) -> Result<()> {
        Ok(self.inner.pairs()?.sync()?)
    }

    /// Puts everything buffered on flash and makes it durable.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn flush(&self) -> Result<()> {
        Ok(self.inner.pairs()?.flush()?)
    }

    /// Makes everything durable and closes the drive, for all clones and key spaces of it.
    ///
    /// # Errors
    /// A failed write or sync. What was acknowledged as durable stays so.
    pub fn close(&self) -> Result<()> {
        self.inner.close()
    }

    fn finish_deletions(&self) -> Result<()> {
        let pairs = self.inner.pairs()?;
        let deleting = |(id, space): (&SpaceId, &Space)| space.is_deleting.then_some(*id);
        let ids: Vec<_> = self.inner.catalog().spaces.iter().filter_map(deleting).collect();
        ids.into_iter().try_for_each(|id| self.inner.erase(&pairs, id))
    }
}

impl DriveInner {
    /// Returns the pairs, unless the drive is closed.
    pub(crate) fn pairs(&self) -> Result<PairsGuard<'_>> {
        let pairs = self.pairs.read().unwrap_or_else(PoisonError::into_inner);
        if pairs.is_some() { Ok(PairsGuard(pairs)) } else { Err(Error::Closed) }
    }

    fn write_pairs(&self) -> std::sync::RwLockWriteGuard<'_, Option<Pairs>> {
        self.pairs.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn catalog(&self) -> MutexGuard<'_, Catalog> {
        lock(&self.catalog)
    }

    fn add_space(&self, name: &str, limit_bytes: u64) -> Result<()> {
        let mut catalog = self.catalog();
        if catalog.find(name).is_ok() {
            return Err(Error::SpaceExists { name: name.to_owned() });
        }
        let count = catalog.spaces.len();
        if count >= usize::from(self.config.spaces_max) {
            return Err(Error::SpacesFull { count });
        }
        let free = self.config.capacity_bytes.saturating_sub(catalog.limits_bytes());
        if limit_bytes > free {
            return Err(Error::SpaceTooLarge { asked: limit_bytes, free });
        }
        let (id, usage) = (catalog.free_id(), Usage::default());
        let name = name.to_owned();
        let space = Space { name, limit_bytes, usage, is_deleting: false, opened_as: None };
        catalog.spaces.insert(id, space);
        Ok(())
    }

    /// Writes the list of key spaces, durably. The caller holds its lock.
    fn save_catalog(&self, pairs: &Pairs) -> Result<()> {
        let bytes = {
            let mut catalog = self.catalog();
            catalog.is_counted = false;
            catalog.encode()
        };
        pairs.put(CATALOG_KEY, &bytes)?;
        pairs.sync()?;
        self.is_marked.store(true, Ordering::Release);
        Ok(())
    }

    /// Marks the counts on flash as outdated, durably, before the first update after an opening.
    pub(crate) fn mark(&self, pairs: &Pairs) -> Result<()> {
        let is_marked = self.is_marked.load(Ordering::Acquire);
        if is_marked || !is_on(Barrier::DriveMarksItsCounts) {
            return Ok(());
        }
        let _writer = lock(&self.catalog_writer);
        if self.is_marked.load(Ordering::Acquire) { Ok(()) } else { self.save_catalog(pairs) }
    }

    /// Removes the remaining pairs of a deleted key space, and its number from the list.
    fn erase(&self, pairs: &Pairs, id: SpaceId) -> Result<()> {
        self.mark(pairs)?;
        let first_bytes = id.first_bytes();
        loop {
            let prints = pairs.scan(None, ERASE_BATCH, &|print| print.starts_with(&first_bytes))?;
            if prints.is_empty() {
                break;
            }
            pairs.remove_records(&prints)?;
        }
        pairs.sync()?;
        let _writer = lock(&self.catalog_writer);
        self.catalog().spaces.remove(&id);
        self.save_catalog(pairs)
    }

    fn close(&self) -> Result<()> {
        // The pairs have no other users any more, and nothing waits for the lock below.
        let Some(pairs) = self.write_pairs().take() else { return Err(Error::Closed) };
        let _writer = lock(&self.catalog_writer);
        pairs.sync()?;
        if self.is_marked.load(Ordering::Acquire) {
            let mut catalog = self.catalog().clone();
            catalog.is_counted = true;
            pairs.put(CATALOG_KEY, &catalog.encode())?;
            pairs.sync()?;
        }
        // Buffered entries go to flash, so that the next opening has nothing to replay.
        pairs.flush()?;
        Ok(pairs.close()?)
    }
}

impl Drop for DriveInner {
    fn drop(&mut self) {
        // The error has no receiver; what was acknowledged as durable is durable already.
        let _ = self.close();
    }
}

/// Counts the pairs of each key space if a crash has left no valid counts.
fn count_pairs(pairs: &Pairs, catalog: &mut Catalog) -> Result<()> {
    catalog.spaces.values_mut().for_each(|space| space.usage = Usage::default());
    for stored in pairs.keys()? {
        let stored = stored?;
        let Some((id, key)) = SpaceId::of(&stored.key) else { continue };
        if let Some(space) = catalog.spaces.get_mut(&id) {
            space.usage.add(Usage::pair(key.len() as u64, stored.value_bytes));
        }
    }
    Ok(())
}

fn check_name(name: &str) -> Result<()> {
    match name.len() {
        1..=NAME_BYTES_MAX => Ok(()),
        bytes => Err(Error::SpaceName { bytes }),
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The guarded data is consistent between statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
