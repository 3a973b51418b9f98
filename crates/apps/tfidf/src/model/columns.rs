//! From a term to its column: a map while it fits into RAM, else a table on flash.

use std::path::Path;
use std::sync::Arc;

use nandex::device::{Allocation, Create, FileDevice, FileOptions};
use nandex::{AnyTable, Durability, Table, Volume, VolumeOptions};
use tempfile::TempDir;

use crate::corpus::create_dense;
use crate::tokenise::{KeyMap, TermKey};
use crate::{Error, Result};

/// RAM of an entry of the map with the map's own overhead, in bytes: 33, for up to 16/7 places.
const ENTRY_RAM_BYTES: u64 = 76;

/// Columns that go to the table at a time.
const CHUNK: usize = 8192;

/// A column of the matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Column {
    /// Its index, from 0.
    pub(super) index: u64,
    /// Documents of the index that have its term.
    pub(super) documents: u64,
}

/// The columns of terms.
#[derive(Debug)]
pub(super) enum Columns {
    /// In RAM.
    Map(KeyMap<Column>),
    /// In a table of a file that goes with it.
    Table(FileTable),
}

/// A table, and the folder of its file.
#[derive(Debug)]
pub(super) struct FileTable {
    table: AnyTable,
    waiting: Vec<(TermKey, [u8; 16])>,
    _folder: TempDir,
}

impl Columns {
    /// For that many columns, in about `ram_bytes` of RAM. A file is made in `folder` if the RAM is too little.
    pub(super) fn new(folder: &Path, count: u64, ram_bytes: u64) -> Result<Self> {
        if count.saturating_mul(ENTRY_RAM_BYTES) > ram_bytes {
            return Ok(Self::Table(FileTable::new(folder, ram_bytes)?));
        }
        let count = usize::try_from(count).unwrap_or(0);
        Ok(Self::Map(KeyMap::with_capacity_and_hasher(count, Default::default())))
    }

    pub(super) fn insert(&mut self, key: TermKey, column: Column) -> Result<()> {
        match self {
            Self::Map(map) => {
                map.insert(key, column);
                Ok(())
            }
            Self::Table(table) => table.insert(key, column),
        }
    }

    /// To be called after the last insert.
    pub(super) fn finish(&mut self) -> Result<()> {
        match self {
            Self::Map(_) => Ok(()),
            Self::Table(table) => table.put_waiting(),
        }
    }

    /// The columns of these terms, in their order; nothing for terms that have none.
    pub(super) fn find_many(&self, keys: &[TermKey]) -> Result<Vec<Option<Column>>> {
        match self {
            Self::Map(map) => Ok(keys.iter().map(|key| map.get(key).copied()).collect()),
            Self::Table(table) => table.find_many(keys),
        }
    }
}

impl FileTable {
    fn new(folder: &Path, ram_bytes: u64) -> Result<Self> {
        let folder = tempfile::tempdir_in(folder).map_err(Error::scratch("make a folder"))?;
        let path = folder.path().join("columns");
        let (create, allocation) = (Create::New, Allocation::Sparse);
        let file = FileOptions { create, allocation, ..FileOptions::default() };
        let device = Arc::new(FileDevice::open(&path, &file)?);
        // Nobody opens it again, so nothing need be durable.
        let durability = Durability::Never;
        let log_bytes = (ram_bytes * 2).next_multiple_of(1 << 20).max(32 << 20);
        let options = VolumeOptions { durability, log_bytes, ..VolumeOptions::default() };
        let volume = Volume::create(device, options)?;
        let table = create_dense(&volume, "columns", (16, 16), ram_bytes)?;
        Ok(Self { table, waiting: Vec::with_capacity(CHUNK), _folder: folder })
    }

    fn insert(&mut self, key: TermKey, column: Column) -> Result<()> {
        let mut value = [0; 16];
        value[..8].copy_from_slice(&column.index.to_le_bytes());
        value[8..].copy_from_slice(&column.documents.to_le_bytes());
        self.waiting.push((key, value));
        if self.waiting.len() < CHUNK { Ok(()) } else { self.put_waiting() }
    }

    fn put_waiting(&mut self) -> Result<()> {
        let pairs: Vec<(&[u8], &[u8])> =
            self.waiting.iter().map(|(key, value)| (&key.0[..], &value[..])).collect();
        self.table.insert_many(&pairs)?;
        self.waiting.clear();
        Ok(())
    }

    fn find_many(&self, keys: &[TermKey]) -> Result<Vec<Option<Column>>> {
        let mut found = Vec::with_capacity(keys.len());
        for chunk in keys.chunks(CHUNK) {
            let keys: Vec<&[u8]> = chunk.iter().map(|key| &key.0[..]).collect();
            let values = self.table.get_many(&keys)?;
            found.extend(values.into_iter().map(|it| it.map(|value| column(&value))));
        }
        Ok(found)
    }
}

fn column(value: &[u8]) -> Column {
    let number =
        |bytes: &[u8]| bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let (index, documents) = value.split_at(value.len() / 2);
    Column { index: number(index), documents: number(documents) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_and_a_table_find_the_same_columns() {
        let folder = tempfile::tempdir().unwrap();
        let mut map = Columns::new(folder.path(), 20_000, 8 << 20).unwrap();
        let mut table = Columns::new(folder.path(), 1 << 20, 8 << 20).unwrap();
        assert!(matches!(map, Columns::Map(_)) && matches!(table, Columns::Table(_)));
        let key = |number: u64| TermKey::of(&number.to_le_bytes());
        for columns in [&mut map, &mut table] {
            for index in 0..20_000 {
                columns.insert(key(index), Column { index, documents: 1 << 33 | index }).unwrap();
            }
            columns.finish().unwrap();
        }
        let keys: Vec<TermKey> = (0..30_000).map(key).collect();
        let found = map.find_many(&keys).unwrap();
        assert_eq!(found[19_999], Some(Column { index: 19_999, documents: 1 << 33 | 19_999 }));
        assert_eq!(found[20_000], None);
        assert_eq!(table.find_many(&keys).unwrap(), found);
        drop((map, table));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "its file goes with it");
    }
}
