//! Tables: what a structure with keys and values implements, and what its handle does in terms of that.
#![expect(private_bounds, reason = "only this crate implements the seams of the engine")]

use std::sync::Arc;

use nandex_store::Volume;
use nandex_store::bytes::get_u64;

use super::Structure;
use crate::any::{AnyConfig, AnyEntries, AnyEntriesPastDamage, AnyTable, OpenTable, cannot_merge};
use crate::api::{LookupStream, Table, TableStats, Value};
use crate::lookup::{self, Cached, TableCache, TableLookup};
use crate::model::{Prediction, Requirements};
use crate::ram::SpareRam;
use crate::registry::{Family, Row, TableRow};
use crate::scan::{Entries, EntriesPastDamage, Scan};
#[cfg(feature = "testing")]
use crate::testing::TableTests;
use crate::write::absorb::{
    AbsorbOptions, Absorbed, BulkLayout, VersionSource, Versions, Watch, absorb, unwatched,
};
use crate::write::{Core, Handle, TableLayout};
use crate::{OpenOptions, Result};

/// A structure from keys to values of fixed widths.
pub(crate) trait TableStructure: Structure + TableLayout {
    /// Whether it serves requirements of a growing table, and only those.
    const GROWS: bool = false;
    /// Whether tables of this kind can be merged in hash order.
    const MERGES: bool = false;
    /// Its configurations for tests.
    #[cfg(feature = "testing")]
    const TESTS: TableTests;

    /// Returns the prediction for the requirements.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config), naming the requirement that cannot be met.
    fn advise(requirements: &Requirements) -> Result<Prediction>;

    /// Begins a pass over the table.
    fn scan(core: &Arc<Core<Self>>) -> impl Scan + '_;

    /// Preloads what opening has left on flash, so that lookups need not.
    ///
    /// # Errors
    /// A failed read, damage.
    fn warm_up(_core: &Core<Self>) -> Result<()> {
        Ok(())
    }

    /// Returns whether a table of this configuration can have a cache of entries.
    fn has_cache(_config: &Self::Config) -> bool {
        true
    }

    /// Returns whether a table of this configuration counts its entries by keys.
    fn counts_keys(_config: &Self::Config) -> bool {
        true
    }

    /// Returns the table as one that merges with others in hash order, if tables of this kind can.
    fn merges(_core: &Core<Self>) -> Option<&dyn Merges> {
        None
    }
}

/// A table that merges with others in hash order.
pub(crate) trait Merges {
    /// Its versions of keys, for another table to absorb.
    fn versions(&self) -> Versions<'_>;

    /// Adds all entries of other tables; see [`Handle::absorb`].
    ///
    /// # Errors
    /// Those of [`Handle::absorb`].
    fn absorb(
        &self,
        others: &[Versions<'_>],
        options: &AbsorbOptions,
        watch: &Watch<'_>,
    ) -> Result<Absorbed>;
}

impl<L: BulkLayout> Merges for Core<L>
where
    Self: VersionSource,
{
    fn versions(&self) -> Versions<'_> {
        Versions(self)
    }

    fn absorb(
        &self,
        others: &[Versions<'_>],
        options: &AbsorbOptions,
        watch: &Watch<'_>,
    ) -> Result<Absorbed> {
        absorb(self, others, options, watch)
    }
}

impl<S: TableStructure> Handle<S> {
    /// Returns all entries, each key once with its newest value, in no particular order.
    ///
    /// Each portion of a partition is seen as it was when the iteration reached it; entries that are evicted while they
    /// are read are missing. Does not need filters. Reads the whole table once, in long runs. It holds in memory: for a
    /// BufferHash the keys of 4 MiB, or of 64 KiB of each incarnation of a super table if that is more; for a SliceHash
    /// one slicetable's keys; for a table of groups the keys of one partition's buffers.
    #[must_use]
    pub fn iter(&self) -> Entries<'_> {
        Entries::new(S::scan(&self.core))
    }

    /// Like [`iter`](Self::iter), but a page that cannot be read or verified does not end the iteration: it is reported
    /// as an item, and all other entries follow. A key whose newest version was on such a page may appear with an older
    /// value, or although it was removed. Reads and holds as much as [`iter`](Self::iter).
    #[must_use]
    pub fn iter_past_damage(&self) -> EntriesPastDamage<'_> {
        EntriesPastDamage::new(S::scan(&self.core))
    }
}

impl<S: TableStructure> Handle<S>
where
    Core<S>: TableLookup,
{
    #[inline]
    fn cached(&self) -> Cached<'_, Core<S>> {
        Cached::new(&*self.core)
    }

    /// Inserts `value` under `key`, for tables of 8 + 8 bytes; numbers are stored little-endian.
    ///
    /// # Errors
    /// As [`Table::insert`].
    #[inline]
    pub fn insert_u64(&self, key: u64, value: u64) -> Result<()> {
        self.insert(&key.to_le_bytes(), &value.to_le_bytes())
    }

    /// Returns the value of `key`, for tables of 8 + 8 bytes.
    ///
    /// # Errors
    /// As [`Table::get`].
    #[inline]
    pub fn get_u64(&self, key: u64) -> Result<Option<u64>> {
        self.core.check_value(&[0; 8])?;
        let found = lookup::single(&self.cached(), &key.to_le_bytes())?;
        Ok(found.map(|value: Value| get_u64(&value, 0)))
    }
}

impl<S: TableStructure + BulkLayout> Handle<S>
where
    Core<S>: VersionSource,
{
    /// Adds all entries of other tables, in hash order: all are read in long runs, and new entries are written once,
    /// incarnation by incarnation, or each slicetable together with everything added to it. The options say which entry
    /// wins on duplicate keys. What was added is durable when this returns.
    ///
    /// This table is borrowed exclusively because its updates have to wait meanwhile. The others may be in use: of the
    /// updates that they receive meanwhile some are added and some are not. They may be in the same volume or in
    /// others. Tables whose volumes hash keys like this one's are read once, others as often as [`Absorbed::passes`]
    /// says.
    ///
    /// # Errors
    /// Tables of other widths; too little RAM for their entries; a full table that may not evict, a failed read or
    /// write, damage. What was added before stays.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use nandex::bufferhash::Config;
    /// use nandex::{AbsorbOptions, BufferHash, Volume, VolumeOptions, device::MemoryDevice};
    ///
    /// let table = |name| {
    ///     let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
    ///     BufferHash::create(&volume, name, Config::tiny())
    /// };
    /// let (mut ours, theirs) = (table("ours")?, table("theirs")?);
    /// ours.insert_u64(1, 10)?;
    /// theirs.insert_u64(1, 11)?;
    /// theirs.insert_u64(2, 20)?;
    /// let absorbed = ours.absorb(&[theirs.versions()], &AbsorbOptions::default())?;
    /// assert_eq!((absorbed.shared, absorbed.put), (1, 1));
    /// assert_eq!((ours.get_u64(1)?, ours.get_u64(2)?), (Some(10), Some(20)));
    /// # Ok::<(), nandex::Error>(())
    /// ```
    pub fn absorb(&mut self, others: &[Versions<'_>], options: &AbsorbOptions) -> Result<Absorbed> {
        self.absorb_watched(others, options, &unwatched)
    }

    /// Like [`absorb`](Self::absorb), and reports the share that is done to `watch` from time to time, which may cancel
    /// the operation.
    ///
    /// # Errors
    /// As [`absorb`](Self::absorb), and [`Error::Stopped`](crate::Error::Stopped).
    pub fn absorb_watched(
        &mut self,
        others: &[Versions<'_>],
        options: &AbsorbOptions,
        watch: &Watch<'_>,
    ) -> Result<Absorbed> {
        absorb(&self.core, others, options, watch)
    }

    /// Returns its versions of keys, for another table to [`absorb`](Self::absorb) or for
    /// [`count_shared`](crate::count_shared).
    #[must_use]
    pub fn versions(&self) -> Versions<'_> {
        Versions(&*self.core)
    }
}

impl<S: TableStructure> Table for Handle<S>
where
    Core<S>: TableLookup,
{
    fn key_bytes(&self) -> usize {
        self.core.entry_layout().key_bytes()
    }

    fn value_bytes(&self) -> usize {
        self.core.entry_layout().value_bytes()
    }

    #[inline]
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.core.insert(key, value).map_err(|error| self.core.counted(error))
    }

    fn remove(&self, key: &[u8]) -> Result<()> {
        self.core.remove(key).map_err(|error| self.core.counted(error))
    }

    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        lookup::single(&self.cached(), key)
    }

    fn insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        self.core.insert_many(pairs).map_err(|error| self.core.counted(error))
    }

    fn get_or_insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Option<Value>>> {
        self.core.get_or_insert_many(pairs).map_err(|error| self.core.counted(error))
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        lookup::batch(&self.cached(), keys)
    }

    fn stream(&self) -> Result<Box<dyn LookupStream + '_>> {
        Ok(lookup::stream(&*self.core))
    }

    fn sync(&self) -> Result<()> {
        self.core.sync()
    }

    fn flush(&self) -> Result<()> {
        self.core.flush_all()
    }

    fn stats(&self) -> TableStats {
        self.core.stats()
    }

    fn counts_keys(&self) -> bool {
        S::counts_keys(Self::config(self))
    }

    fn all_versions(&self) -> Option<Versions<'_>> {
        S::merges(&self.core).map(Merges::versions)
    }
}

impl<S: TableStructure> OpenTable for Handle<S>
where
    Core<S>: TableLookup,
{
    fn config(&self) -> AnyConfig {
        Self::config(self).clone().into()
    }

    fn iter(&self) -> AnyEntries<'_> {
        Box::new(Self::iter(self))
    }

    fn iter_past_damage(&self) -> AnyEntriesPastDamage<'_> {
        Box::new(Self::iter_past_damage(self))
    }

    fn warm_up(&self) -> Result<()> {
        S::warm_up(&self.core)
    }

    fn borrow(&self, spare: Arc<SpareRam>) -> bool {
        if !S::has_cache(Self::config(self)) || self.core.lookups.cache.get().is_some() {
            return false;
        }
        let cache = TableCache::borrowed(spare, (self.key_bytes(), self.value_bytes()));
        let borrows = cache.is_some();
        self.core.lookups.use_cache(cache);
        borrows
    }

    fn absorb(
        &mut self,
        others: &[Versions<'_>],
        options: &AbsorbOptions,
        watch: &Watch<'_>,
    ) -> Result<Absorbed> {
        let merges = S::merges(&self.core).ok_or_else(|| cannot_merge(S::KIND))?;
        merges.absorb(others, options, watch)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Self::close(*self)
    }
}

impl Row {
    /// The registry row of a table.
    #[must_use]
    pub(crate) const fn table<S: TableStructure>() -> Self
    where
        Core<S>: TableLookup,
    {
        let table = TableRow {
            grows: S::GROWS,
            is_baseline: false,
            merges_into: if S::MERGES { Some(S::KIND) } else { None },
            create: create::<S>,
            open: open::<S>,
            advise: S::advise,
            tiny: || S::tiny().into(),
            #[cfg(feature = "testing")]
            testing: S::TESTS,
        };
        Self::of::<S>(Family::Table(table))
    }

    /// The registry row of a structure of this family.
    pub(crate) const fn of<S: Structure>(family: Family) -> Self {
        Self {
            kind: S::KIND,
            name: S::NAME,
            good_for: S::GOOD_FOR,
            options: S::OPTIONS,
            family,
            check: S::check,
            #[cfg(feature = "testing")]
            decoders: S::DECODERS,
        }
    }
}

fn create<S: TableStructure>(
    volume: &Volume,
    name: &str,
    config: &AnyConfig,
    options: &OpenOptions,
) -> Result<AnyTable>
where
    Core<S>: TableLookup,
{
    let config = config.of::<S::Config>()?.clone();
    Handle::<S>::create_with(volume, name, config, options.clone()).map(Into::into)
}

fn open<S: TableStructure>(volume: &Volume, name: &str, options: &OpenOptions) -> Result<AnyTable>
where
    Core<S>: TableLookup,
{
    Handle::<S>::open_with(volume, name, options.clone()).map(Into::into)
}
