//! The common handle of growing tables.
#![expect(private_bounds, reason = "only this crate implements the seams of the engine")]

use std::sync::Arc;

use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::check::{Checker, Contents};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::{Structure as Entry, Volume};

use super::{GrowingOpening, Owner, Parts};
use crate::any::{AnyConfig, AnyEntries, AnyEntriesPastDamage, AnyTable, Configuration, OpenTable};
use crate::api::{LookupStream, Table, TableStats, Value};
use crate::lookup::{self, Cached, TableCache, TableLookup};
use crate::model::{Prediction, Requirements};
use crate::ram::SpareRam;
use crate::registry::{Family, Row, TableRow};
use crate::scan::{Entries, EntriesPastDamage, Scan};
use crate::schema::Stored;
use crate::write::absorb::{VersionSource, Versions};
use crate::{OpenOptions, Result};

/// A kind of growing table, for its users.
pub trait Grows {
    /// The configuration that one is created with.
    type Config: Configuration + Clone;
}

/// A kind of growing table, defined by its parts.
pub(crate) trait GrowingStructure: Parts + Grows<Config: Stored> {
    /// Its name in the volume's catalog.
    const KIND: &'static str;
    /// Its name in sentences.
    const NAME: &'static str;
    /// Its use, in a sentence.
    const GOOD_FOR: &'static str;
    /// The options of an opening that it uses.
    const OPTIONS: &'static [&'static str];
    /// The kind of table that a merge of these tables creates.
    const MERGES_INTO: &'static str;
    /// Its configurations for tests.
    #[cfg(feature = "testing")]
    const TESTS: crate::testing::TableTests;
    /// The decoders of its own bytes, for fuzzing.
    #[cfg(feature = "testing")]
    const DECODERS: &'static [crate::testing::Decoder];

    /// The bytes of a key and of a value.
    fn widths(config: &Self::Config) -> (usize, usize);

    /// The RAM that the table may take, in bytes, in its configuration.
    fn ram_bytes_max(config: &mut Self::Config) -> &mut Option<u64>;

    /// The smallest limits that work.
    fn tiny() -> Self::Config;

    /// Opens the existing parts, and creates the first one if there is none.
    ///
    /// # Errors
    /// Damage, a failed read or write, no space.
    fn open_parts(
        volume: &Volume,
        name: &str,
        config: Self::Config,
        opened: (OpenOptions, Option<TableCache>),
    ) -> Result<Self>;

    /// Returns the prediction for the requirements.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config), naming the requirement that cannot be met.
    fn advise(requirements: &Requirements) -> Result<Prediction>;

    /// Begins a pass over the table.
    fn scan(owner: &Owner<Self>) -> impl Scan + '_;

    /// Preloads what opening has left on flash, so that lookups need not.
    ///
    /// # Errors
    /// A failed read, damage.
    fn warm_up(&self) -> Result<()> {
        Ok(())
    }

    /// Verifies offline that the parts of a table fit its configuration, and notes flaws in the checker.
    fn check(checker: &mut Checker, contents: &Contents, entry: &CatalogEntry);
}

/// A hash table on flash from fixed-width keys to fixed-width values, which grows as it fills.
///
/// It holds everything until its RAM or the device is full. Lookups and updates are cheap from any number of threads.
/// Dropping it saves buffered updates, so that the next opening finds them.
#[derive(Debug)]
pub struct Growing<P: GrowingStructure> {
    config: P::Config,
    pub(crate) owner: Owner<P>,
}

impl<P: GrowingStructure> Growing<P> {
    /// Creates a table in a volume, with default [`OpenOptions`].
    ///
    /// # Errors
    /// A configuration that cannot work, a name that is taken, no space, a failed write.
    pub fn create(volume: &Volume, name: &str, config: P::Config) -> Result<Self> {
        Self::create_with(volume, name, config, OpenOptions::default())
    }

    /// Creates a table in a volume. A RAM limit in the options is stored in the configuration.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_with(
        volume: &Volume,
        name: &str,
        mut config: P::Config,
        options: OpenOptions,
    ) -> Result<Self> {
        let stated = P::ram_bytes_max(&mut config);
        *stated = options.ram_limit().or(*stated);
        config.validate()?;
        options.validate()?;
        let entry = volume.create_structure(name, P::KIND, config.encode(), 0)?;
        let started = Self::start(volume, (name, &entry), options);
        if started.is_err() && !volume.poison().is_set() {
            // A table that was rejected is removed again; the original error is the one to report.
            let _ = volume.drop_structure(name);
        }
        started
    }

    /// Opens a table of a volume, with default [`OpenOptions`].
    ///
    /// # Errors
    /// No table of that name, another kind of structure, damage, a failed read.
    pub fn open(volume: &Volume, name: &str) -> Result<Self> {
        Self::open_with(volume, name, OpenOptions::default())
    }

    /// Opens a table of a volume. The RAM limit of the options applies from now on; without one, the limit that it was
    /// created with does.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(volume: &Volume, name: &str, options: OpenOptions) -> Result<Self> {
        options.validate()?;
        Self::start(volume, (name, &volume.open_structure(name, P::KIND)?), options)
    }

    fn start(volume: &Volume, (name, entry): (&str, &Entry), options: OpenOptions) -> Result<Self> {
        let mut reader = Reader::new(&entry.config, "growing configuration", PageId(0));
        let mut config = P::Config::take(&mut reader)?;
        let stated = P::ram_bytes_max(&mut config);
        *stated = options.ram_limit().or(*stated);
        let (key_bytes, value_bytes) = P::widths(&config);
        let cache = TableCache::new(options.cache_bytes, (key_bytes, value_bytes))?;
        let opening = GrowingOpening {
            key_bytes,
            value_bytes,
            options: options.clone(),
            cache: cache.clone(),
        };
        let parts = P::open_parts(volume, name, config.clone(), (options, cache))?;
        Ok(Self { config, owner: Owner::start(volume, entry, parts, opening)? })
    }

    /// Returns the configuration that it was created with; its RAM limit is that of this opening.
    #[must_use]
    pub fn config(&self) -> &P::Config {
        &self.config
    }

    /// Returns all entries, each key once with its newest value, in no particular order.
    ///
    /// Each portion of a partition is seen as it was when the iteration reached it. Does not need filters. Reads all
    /// parts once, in long runs. For a BufferHash it reads at least 64 KiB of each incarnation at a time, and holds
    /// those entries in memory; it waits while a generation takes over from older ones. For a SliceHash it holds the
    /// keys of one slicetable, or of two or one of the older table while that is taken over.
    #[must_use]
    pub fn iter(&self) -> Entries<'_> {
        Entries::new(P::scan(&self.owner))
    }

    /// Like [`iter`](Self::iter), but a page that cannot be read or verified does not end the iteration: it is reported
    /// as an item, and all other entries follow. A key whose newest version was on such a page may appear with an older
    /// value, or although it was removed.
    #[must_use]
    pub fn iter_past_damage(&self) -> EntriesPastDamage<'_> {
        EntriesPastDamage::new(P::scan(&self.owner))
    }

    /// Preloads what opening has left on flash, so that lookups need not.
    ///
    /// # Errors
    /// A failed read, or damage.
    pub fn load_filters(&self) -> Result<()> {
        self.owner.parts.warm_up()
    }

    /// Saves buffered updates and ends the background threads. Dropping does the same, and ignores failures.
    ///
    /// # Errors
    /// A failed write or sync. Updates acknowledged as durable are in the log nevertheless.
    pub fn close(mut self) -> Result<()> {
        self.owner.shut_down()
    }
}

impl<P: GrowingStructure> Growing<P>
where
    Owner<P>: VersionSource,
{
    /// Returns its versions of keys, for another table to [`absorb`](crate::BufferHash::absorb) or for
    /// [`count_shared`](crate::count_shared).
    #[must_use]
    pub fn versions(&self) -> Versions<'_> {
        Versions(&self.owner)
    }
}

impl<P: GrowingStructure> Table for Growing<P>
where
    Owner<P>: TableLookup + VersionSource,
{
    fn key_bytes(&self) -> usize {
        self.owner.key_bytes
    }

    fn value_bytes(&self) -> usize {
        self.owner.value_bytes
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.owner.update(|newest| newest.insert(key, value))
    }

    fn remove(&self, key: &[u8]) -> Result<()> {
        self.owner.remove(key)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        lookup::single(&Cached::new(&self.owner), key)
    }

    fn insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        self.owner.insert_many(pairs)
    }

    fn get_or_insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Option<Value>>> {
        self.owner.get_or_insert_many(pairs)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        lookup::batch(&Cached::new(&self.owner), keys)
    }

    fn stream(&self) -> Result<Box<dyn LookupStream + '_>> {
        Ok(lookup::stream(&self.owner))
    }

    fn sync(&self) -> Result<()> {
        self.owner.sync()
    }

    fn flush(&self) -> Result<()> {
        self.owner.flush()
    }

    fn stats(&self) -> TableStats {
        self.owner.stats()
    }

    fn all_versions(&self) -> Option<Versions<'_>> {
        Some(Versions(&self.owner))
    }
}

impl<P: GrowingStructure> OpenTable for Growing<P>
where
    Owner<P>: TableLookup + VersionSource,
{
    fn config(&self) -> AnyConfig {
        self.config.clone().into()
    }

    fn iter(&self) -> AnyEntries<'_> {
        Box::new(Self::iter(self))
    }

    fn iter_past_damage(&self) -> AnyEntriesPastDamage<'_> {
        Box::new(Self::iter_past_damage(self))
    }

    fn warm_up(&self) -> Result<()> {
        self.owner.parts.warm_up()
    }

    fn use_spare_ram(&self) {
        self.owner.use_spare_ram();
    }

    fn spare(&self) -> Option<&Arc<SpareRam>> {
        Some(self.owner.parts.spare())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Self::close(*self)
    }
}

impl Row {
    /// The registry row of a growing table.
    #[must_use]
    pub(crate) const fn growing<P: GrowingStructure>() -> Self
    where
        Owner<P>: TableLookup + VersionSource,
    {
        Self {
            kind: P::KIND,
            name: P::NAME,
            good_for: P::GOOD_FOR,
            options: P::OPTIONS,
            family: Family::Table(TableRow {
                grows: true,
                is_baseline: false,
                merges_into: Some(P::MERGES_INTO),
                create: |volume, name, config, options| {
                    let config = config.of::<P::Config>()?.clone();
                    Growing::<P>::create_with(volume, name, config, options.clone())
                        .map(AnyTable::from)
                },
                open: |volume, name, options| {
                    Growing::<P>::open_with(volume, name, options.clone()).map(AnyTable::from)
                },
                advise: P::advise,
                tiny: || P::tiny().into(),
                #[cfg(feature = "testing")]
                testing: P::TESTS,
            }),
            check: |checker, contents, entry, _| {
                P::check(checker, contents, entry);
                Ok(())
            },
            #[cfg(feature = "testing")]
            decoders: P::DECODERS,
        }
    }
}
