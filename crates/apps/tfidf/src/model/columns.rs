//! Maps a term to its column: by a map if it fits into RAM, otherwise by a file in the order of terms' keys.
//!
//! Terms of some thousand documents are looked up together, so their keys are sorted and the file is read in order.
//! Single lookups would read a page of flash for each.

use std::fs::File;
use std::io::{BufWriter, IntoInnerError, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nandex_corpus::scratch::scratch_file;
use nandex_corpus::sort::Sorter;

use super::sort::{PAYLOAD_BYTES, Sortable};
use crate::tokenise::{KeyMap, TermKey};
use crate::{Error, Result};

/// RAM of an entry of the map with the map's own overhead, in bytes: 33, for up to 16/7 places.
const ENTRY_RAM_BYTES: u64 = 76;

/// Bytes of a column in the file: its term's key, its index, its documents.
const ENTRY_BYTES: usize = 32;

/// Columns of a block of the file, of which the first key is in RAM.
const BLOCK_ENTRIES: usize = 128;

/// The number of blocks read at a time if most of them are needed.
const BLOCKS_READ: usize = 64;

/// The most blocks per key for reading all in order, which takes less time than as many single reads.
const BLOCKS_PER_KEY_MAX: usize = 16;

/// Bytes of the buffer for writing the file.
const BUFFER_BYTES: usize = 256 << 10;

/// A column of the matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Column {
    /// Its index, from 0.
    pub(super) index: u64,
    /// The number of documents of the index that have its term.
    pub(super) documents: u64,
}

/// The columns of terms.
#[derive(Debug)]
pub(super) enum Columns {
    /// In RAM.
    Map(KeyMap<Column>),
    /// In an unnamed file.
    File(SortedFile),
}

/// Columns by their terms, under construction.
#[derive(Debug)]
pub(super) enum ColumnsBuilder {
    Map(KeyMap<Column>),
    /// Sorted by key, in runs, and the folder of all files.
    Sorter(Sorter<Sortable>, PathBuf),
}

impl ColumnsBuilder {
    /// Creates a builder for `count` columns, in about `ram_bytes` of RAM. Files are created in `folder` if the RAM
    /// is too little.
    pub(super) fn new(folder: &Path, count: u64, ram_bytes: u64) -> Self {
        if count.saturating_mul(ENTRY_RAM_BYTES) > ram_bytes {
            let ram_bytes = usize::try_from(ram_bytes).unwrap_or(usize::MAX / 4);
            return Self::Sorter(Sorter::new(folder, ram_bytes), folder.to_path_buf());
        }
        let count = usize::try_from(count).unwrap_or(0);
        Self::Map(KeyMap::with_capacity_and_hasher(count, Default::default()))
    }

    pub(super) fn insert(&mut self, key: TermKey, column: Column) -> Result<()> {
        match self {
            Self::Map(map) => {
                map.insert(key, column);
                Ok(())
            }
            Self::Sorter(sorter, _) => {
                let mut payload = [0; PAYLOAD_BYTES];
                payload[..8].copy_from_slice(&column.index.to_le_bytes());
                payload[8..16].copy_from_slice(&column.documents.to_le_bytes());
                Ok(sorter.push(Sortable::new(&key.0, &payload))?)
            }
        }
    }

    /// Completes the columns, after the last insert.
    pub(super) fn finish(self) -> Result<Columns> {
        match self {
            Self::Map(map) => Ok(Columns::Map(map)),
            Self::Sorter(sorter, folder) => Ok(Columns::File(SortedFile::write(sorter, &folder)?)),
        }
    }
}

impl Columns {
    /// Returns whether a file must be read.
    pub(super) fn are_in_file(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// Returns the columns of these terms, in their order; `None` for terms without a column. A file is read in order:
    /// once as a whole for many terms, or a block for each of few.
    pub(super) fn find_many(&self, keys: &[TermKey]) -> Result<Vec<Option<Column>>> {
        match self {
            Self::Map(map) => Ok(keys.iter().map(|key| map.get(key).copied()).collect()),
            Self::File(file) => file.find_many(keys),
        }
    }
}

/// Columns by the keys of their terms, in an unnamed file.
#[derive(Debug)]
pub(super) struct SortedFile {
    file: File,
    /// The first key of each block.
    firsts: Vec<TermKey>,
    bytes: u64,
}

impl SortedFile {
    fn write(sorter: Sorter<Sortable>, folder: &Path) -> Result<Self> {
        let mut file = BufWriter::with_capacity(BUFFER_BYTES, scratch_file(folder)?);
        let (mut firsts, mut bytes) = (Vec::new(), 0);
        let failed = || Error::scratch("write the columns");
        for (number, column) in sorter.finish()?.enumerate() {
            let column = column?;
            let (key, payload) = column.parts();
            if number.is_multiple_of(BLOCK_ENTRIES) {
                firsts.push(<[u8; 16]>::try_from(key).map_or(TermKey([0; 16]), TermKey));
            }
            file.write_all(key).map_err(failed())?;
            file.write_all(&payload[..16]).map_err(failed())?;
            bytes += ENTRY_BYTES as u64;
        }
        let file = file.into_inner().map_err(IntoInnerError::into_error).map_err(failed())?;
        Ok(Self { file, firsts, bytes })
    }

    fn find_many(&self, keys: &[TermKey]) -> Result<Vec<Option<Column>>> {
        let mut order: Vec<u32> = (0..).take(keys.len()).collect();
        order.sort_unstable_by_key(|number| keys[*number as usize]);
        let are_many = self.firsts.len() / BLOCKS_PER_KEY_MAX <= keys.len();
        let blocks_read = if are_many { BLOCKS_READ } else { 1 };
        let mut found = vec![None; keys.len()];
        let (mut window, mut buffer) = (0..0, Vec::new());
        let mut block = 0;
        for number in order {
            let key = keys[number as usize];
            block += self.firsts[block..].partition_point(|first| *first <= key).saturating_sub(1);
            if !window.contains(&block) {
                window = block..(block + blocks_read).min(self.firsts.len());
                self.read(&window, &mut buffer)?;
            }
            let start = (block - window.start) * BLOCK_ENTRIES;
            let (entries, _) = buffer.as_chunks::<ENTRY_BYTES>();
            let entries = entries.get(start..).unwrap_or_default();
            let entries = &entries[..entries.len().min(BLOCK_ENTRIES)];
            let at = entries.binary_search_by(|entry| entry[..16].cmp(&key.0[..]));
            found[number as usize] = at.ok().map(|at| column(&entries[at][16..]));
        }
        Ok(found)
    }

    /// Reads these blocks.
    fn read(&self, blocks: &Range<usize>, buffer: &mut Vec<u8>) -> Result<()> {
        let place = |block: usize| (block * BLOCK_ENTRIES * ENTRY_BYTES) as u64;
        let (start, end) = (place(blocks.start), place(blocks.end).min(self.bytes));
        buffer.resize(usize::try_from(end.saturating_sub(start)).unwrap_or(0), 0);
        let read = self.file.read_exact_at(buffer, start);
        read.map_err(Error::scratch("read the columns"))
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
    fn a_map_and_a_file_find_the_same_columns() {
        let folder = tempfile::tempdir().unwrap();
        let key = |number: u64| TermKey::of(&number.to_le_bytes());
        let build = |count| {
            let mut columns = ColumnsBuilder::new(folder.path(), count, 8 << 20);
            for index in 0..20_000 {
                columns.insert(key(index), Column { index, documents: 1 << 33 | index }).unwrap();
            }
            columns.finish().unwrap()
        };
        let (map, file) = (build(20_000), build(1 << 20));
        assert!(matches!(map, Columns::Map(_)) && matches!(file, Columns::File(_)));
        let keys: Vec<TermKey> = (0..30_000).map(key).collect();
        let found = map.find_many(&keys).unwrap();
        assert_eq!(found[19_999], Some(Column { index: 19_999, documents: 1 << 33 | 19_999 }));
        assert_eq!(found[20_000], None);
        assert_eq!(file.find_many(&keys).unwrap(), found);
        // A few keys read single blocks; some are before the first one or occur twice.
        let few = [key(7), TermKey([0; 16]), key(30_000), key(7), TermKey([0xff; 16])];
        assert_eq!(file.find_many(&few).unwrap(), map.find_many(&few).unwrap());
        assert_eq!(file.find_many(&[]).unwrap(), []);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "files have no names");
    }

    #[test]
    fn a_file_without_columns_finds_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = ColumnsBuilder::new(folder.path(), 1, 0).finish().unwrap();
        assert!(matches!(file, Columns::File(_)));
        assert_eq!(file.find_many(&[TermKey([7; 16])]).unwrap(), [None]);
    }
}
