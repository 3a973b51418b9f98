//! Maps of keys and values of any size as subjects, as `db.map` makes them, in a database of their own.

use anyhow::Result;
use nandex::device::Create;
use nandex::{AnyTable, Database, DatabaseOptions, LargeTable, OpenOptions};

use crate::filters::Keys;
use crate::keys::KEY_BYTES;
use crate::on_flash::{OnFlash, durability, file, hash_key};
use crate::subject::{Client, Spec, Status, Subject};
use crate::values::Values;

/// The name of the map, on command lines and in its volume.
pub(crate) const KIND: &str = "map";

/// A map that grows, within the RAM of its database.
pub(crate) struct MapSubject {
    map: LargeTable<AnyTable>,
    value_bytes: usize,
    /// The database, whose RAM the map shares.
    _db: Database,
}

/// Creates an empty map; an earlier one in the directory is removed.
pub(crate) fn create(spec: &Spec) -> Result<Box<dyn Subject>> {
    crate::on_flash::remove(&file(KIND, spec))?;
    opened(spec, options(spec).create(Create::New).hash_key(hash_key(spec)))
}

/// Opens the map that [`create`] made.
pub(crate) fn open(spec: &Spec) -> Result<Box<dyn Subject>> {
    opened(spec, options(spec).create(Create::Open))
}

fn options(spec: &Spec) -> DatabaseOptions {
    nandex::options().ram(spec.ram_bytes).durability(durability(spec.durability))
}

fn opened(spec: &Spec, options: DatabaseOptions) -> Result<Box<dyn Subject>> {
    let file = file(KIND, spec);
    let db = options.open(&file)?;
    let reads = OpenOptions { read_depth: Some(spec.depth), ..OpenOptions::default() };
    let builder = db.map(KIND).options(reads);
    let builder = spec.cache_bytes.into_iter().fold(builder, |builder, it| builder.cache(it));
    let map = builder.create_or_open()?;
    let volume = db.volume().clone();
    Ok(Box::new(OnFlash {
        subject: MapSubject { map, value_bytes: spec.value_bytes, _db: db },
        volume,
        file,
    }))
}

impl Subject for MapSubject {
    fn client(&self) -> Result<Box<dyn Client + '_>> {
        let (keys, values) = (Keys::default(), Values::new(self.value_bytes));
        Ok(Box::new(MapClient { map: &self.map, keys, values }))
    }

    fn sync(&self) -> Result<()> {
        Ok(self.map.sync()?)
    }

    /// Returns the figures of its table of keys, with the bytes of its value log added.
    fn status(&self) -> Status {
        let stats = self.map.stats();
        let mut table = stats.table;
        table.data_bytes_written += stats.values.written_bytes;
        table.flash_bytes += stats.values.flash_bytes;
        table.ram_bytes = stats.ram_bytes;
        (table.hits, table.misses) = (stats.hits, stats.misses);
        Status {
            entries: Some(table.entries),
            ram_bytes: Some(table.ram_bytes),
            flash_bytes: table.flash_bytes,
            table: Some(table),
            ..Status::default()
        }
    }
}

struct MapClient<'a> {
    map: &'a LargeTable<AnyTable>,
    keys: Keys,
    values: Values,
}

impl Client for MapClient<'_> {
    fn insert(&mut self, key: u64, value: u64) -> Result<()> {
        Ok(self.map.put(&key.to_le_bytes(), self.values.one(value))?)
    }

    fn insert_many(&mut self, pairs: &[(u64, u64)]) -> Result<()> {
        let keys = self.keys.take(pairs.iter().map(|pair| pair.0)).iter();
        let values = self.values.all(pairs.iter().map(|pair| pair.1));
        let keys = keys.map(<[u8; KEY_BYTES]>::as_slice);
        Ok(self.map.put_many(&keys.zip(values).collect::<Vec<_>>())?)
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let value = self.map.get(&key.to_le_bytes())?;
        value.map(|value| self.values.number(&value)).transpose()
    }

    fn get_many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()> {
        for value in self.map.get_many(&self.keys.of(keys.iter().copied()))? {
            found.push(value.map(|value| self.values.number(&value)).transpose()?);
        }
        Ok(())
    }

    /// Removes keys one by one: a map has no call for several removals.
    fn delete_many(&mut self, keys: &[u64]) -> Result<()> {
        keys.iter().try_for_each(|key| Ok(self.map.remove(&key.to_le_bytes())?))
    }
}
