//! Lookups: which documents share a bucket, which names are there, what all documents are.

use std::collections::HashSet;
use std::sync::Arc;

use nandex::{Error, Result};

use super::block::{Block, Entry, documents_of};
use super::names::BlockNames;
use super::update::place_of;
use super::{Core, LshIndex};
use crate::tables::{Hash, numbers_of};

/// Blocks that a scan reads at a time.
const SCANNED: u64 = 64;

/// A document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// What it is called.
    pub name: Vec<u8>,
    /// A bucket key of each table.
    pub keys: Vec<u64>,
    /// Is there an earlier document of the same name?
    pub is_repeat: bool,
}

impl Record {
    fn of(entry: Entry<'_>) -> Self {
        let is_repeat = entry.earlier.is_some();
        Self { name: entry.name.to_vec(), keys: entry.keys.to_vec(), is_repeat }
    }
}

/// The documents that share a bucket with each row of keys.
#[derive(Debug)]
pub struct Found {
    lists: Vec<Arc<BlockNames>>,
    /// Names by their list and the index there, row after row.
    names: Vec<(u32, u32)>,
    /// Where the names of each row end.
    ends: Vec<usize>,
}

impl Found {
    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.ends.len()
    }

    /// The names of a row, each once, in the order of their documents. None of a row that is not there.
    pub fn row(&self, row: usize) -> impl ExactSizeIterator<Item = &[u8]> {
        let start =
            row.checked_sub(1).map_or(0, |before| self.ends.get(before).copied().unwrap_or(0));
        let end = self.ends.get(row).copied().unwrap_or(start);
        let names = self.names[start..end].iter();
        names.map(|(list, index)| self.lists[*list as usize].names.get(*index as usize))
    }
}

/// Names of documents by their numbers.
struct Resolved {
    block_documents: u64,
    /// Rising numbers of blocks, and the names of each.
    blocks: Vec<u64>,
    lists: Vec<Arc<BlockNames>>,
}

impl Resolved {
    /// The list of a document's name and its index there, if the document is there.
    fn place(&self, number: u64) -> Option<(u32, u32)> {
        let (block, place) = place_of(number, self.block_documents);
        let list = self.blocks.binary_search(&block).ok()?;
        let index = self.lists[list].index_of(place)?;
        Some((list as u32, index as u32))
    }

    fn name(&self, number: u64) -> Option<&[u8]> {
        let (list, index) = self.place(number)?;
        Some(self.lists[list as usize].names.get(index as usize))
    }
}

impl LshIndex {
    /// The names of the documents that share a bucket with each row of keys. The reads of all overlap.
    ///
    /// # Errors
    /// Keys that are no whole rows, a failed read, damage.
    pub fn query_many(&self, keys: &[u64]) -> Result<Found> {
        let core = &self.core;
        let rows = keys.len() / core.tables();
        core.check_rows(rows, keys)?;
        let (waiting, waiting_rows) = core.find_waiting(keys);
        let mut found: Vec<Vec<u64>> = vec![Vec::new(); rows];
        for generation in &*core.generations() {
            generation.add_candidates(keys, &mut found)?;
        }
        let known = waiting_rows.iter().map(|(_, number)| *number).collect::<HashSet<u64>>();
        for row in &mut found {
            row.sort_unstable();
            row.dedup();
            row.retain(|number| !known.contains(number));
        }
        let resolved = core.resolve(found.iter().flatten().copied().collect())?;
        Ok(joined(resolved, &found, (waiting, &waiting_rows)))
    }

    /// The names of a bucket.
    ///
    /// # Errors
    /// A failed read, damage; a table that is none.
    pub fn bucket(&self, table: usize, key: u64) -> Result<Vec<Vec<u8>>> {
        let core = &self.core;
        core.commit()?;
        let mut row = vec![!key; core.tables()];
        let Some(place) = row.get_mut(table) else {
            let reason = format!("{table}; give 0 to {}", core.tables() - 1);
            return Err(Error::Config { field: "table", reason });
        };
        *place = key;
        let mut found = [Vec::new()];
        for generation in &*core.generations() {
            generation.add_candidates(&row, &mut found)?;
        }
        let [mut numbers] = found;
        numbers.sort_unstable();
        numbers.dedup();
        let records = core.read(&numbers)?.into_iter().flatten();
        // Other tables may have a bucket of the other key.
        Ok(records.filter(|it| it.keys[table] == key).map(|it| it.name).collect())
    }

    /// The records of documents by their names; none for a name that is not there.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn get_many(&self, names: &[&[u8]]) -> Result<Vec<Option<Record>>> {
        let core = &self.core;
        core.commit()?;
        let hashes: Vec<Hash> = names.iter().map(|name| core.hash(name)).collect();
        let numbers = core.find(&hashes, names)?;
        let there: Vec<u64> = numbers.iter().flatten().copied().collect();
        let mut records = core.read(&there)?.into_iter();
        Ok(numbers.into_iter().map(|it| it.and_then(|_| records.next().flatten())).collect())
    }

    /// Which names are there.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn contains_many(&self, names: &[&[u8]]) -> Result<Vec<bool>> {
        let hashes: Vec<Hash> = names.iter().map(|name| self.core.hash(name)).collect();
        let found = self.core.find(&hashes, names)?;
        Ok(found.iter().map(Option::is_some).collect())
    }

    /// Some documents from a number on, in order, and from which number to go on; none at the end.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn scan(&self, from: u64) -> Result<(u64, Vec<Record>)> {
        self.core.commit()?;
        self.core.scan(from)
    }
}

impl Core {
    pub(super) fn check_rows(&self, rows: usize, keys: &[u64]) -> Result<()> {
        let tables = self.tables();
        if rows.checked_mul(tables) == Some(keys.len()) {
            return Ok(());
        }
        let reason = format!("{} for {rows} documents; give {tables} for each", keys.len());
        Err(Error::Config { field: "keys", reason })
    }

    pub(super) fn hash(&self, name: &[u8]) -> Hash {
        let hash = self.volume.hasher().hash(name);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&hash.place.to_le_bytes());
        bytes[8..].copy_from_slice(&hash.filter.to_le_bytes());
        bytes
    }

    /// The names of documents that wait and share a bucket with a row, and for each its row and its number.
    fn find_waiting(&self, keys: &[u64]) -> (BlockNames, Vec<(usize, u64)>) {
        let (mut names, mut found) = (BlockNames::default(), Vec::new());
        let waiting = self.waiting();
        if waiting.is_empty() {
            return (names, found);
        }
        let mut places = Vec::new();
        for (row, keys) in keys.chunks(self.tables()).enumerate() {
            places.clear();
            waiting.add_candidates(keys, &mut places);
            for place in &places {
                found.push((row, waiting.numbers[*place]));
                names.names.push(waiting.names.get(*place));
                names.may_repeat |= waiting.earlier[*place].is_some();
            }
        }
        (names, found)
    }

    /// The numbers of the latest documents that have these names.
    pub(super) fn find(&self, hashes: &[Hash], names: &[&[u8]]) -> Result<Vec<Option<u64>>> {
        let waiting: Vec<Option<u64>> = {
            let waiting = self.waiting();
            let named = hashes.iter().zip(names);
            if waiting.is_empty() {
                Vec::new()
            } else {
                named.map(|(hash, name)| waiting.number_of(*hash, name)).collect()
            }
        };
        let mut found = numbers_of(&self.numbers, hashes)?;
        if found.iter().any(Option::is_some) {
            let resolved = self.resolve(found.iter().flatten().copied().collect())?;
            for (found, name) in found.iter_mut().zip(names) {
                *found = found.filter(|number| resolved.name(*number) == Some(*name));
            }
        }
        for (found, waiting) in found.iter_mut().zip(waiting) {
            *found = waiting.or(*found);
        }
        Ok(found)
    }

    /// The names of documents, each block of which is read once if the cache has not its names.
    fn resolve(&self, mut numbers: Vec<u64>) -> Result<Resolved> {
        let block_documents = documents_of(self.options.tables);
        numbers.iter_mut().for_each(|number| *number /= block_documents);
        numbers.sort_unstable();
        numbers.dedup();
        let blocks = numbers;
        if blocks.is_empty() {
            return Ok(Resolved { block_documents, blocks, lists: Vec::new() });
        }
        let mut known = self.names.get_many(&blocks);
        let is_unknown = |(_, names): &(&u64, &Option<_>)| names.is_none();
        let unknown = blocks.iter().zip(&known.blocks).filter(is_unknown);
        let unknown: Vec<u64> = unknown.map(|(block, _)| *block).collect();
        if !unknown.is_empty() {
            let read = self.read_blocks(&unknown)?.into_iter();
            let names = |block: Option<Block>| block.map(Block::into_names).unwrap_or_default();
            let read: Vec<Arc<BlockNames>> = read.map(|it| Arc::new(names(it))).collect();
            self.names.note_read(&known, unknown.into_iter().zip(read.iter().map(Arc::clone)));
            let missing = known.blocks.iter_mut().filter(|names| names.is_none());
            missing.zip(read).for_each(|(names, read)| *names = Some(read));
        }
        let lists = known.blocks.into_iter().map(Option::unwrap_or_default).collect();
        Ok(Resolved { block_documents, blocks, lists })
    }

    /// The blocks of these numbers, if they are there.
    pub(super) fn read_blocks(&self, numbers: &[u64]) -> Result<Vec<Option<Block>>> {
        let keys: Vec<[u8; 8]> = numbers.iter().map(|number| number.to_le_bytes()).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let found = self.records.get_many(&keys)?.into_iter().zip(numbers);
        let decode = |(bytes, number): (Option<Vec<u8>>, &u64)| {
            bytes.map(|bytes| Block::decode(&bytes, self.tables(), *number)).transpose()
        };
        found.map(decode).collect()
    }

    /// The records of these documents, if they are there.
    fn read(&self, numbers: &[u64]) -> Result<Vec<Option<Record>>> {
        let block_documents = documents_of(self.options.tables);
        let places: Vec<_> = numbers.iter().map(|it| place_of(*it, block_documents)).collect();
        let mut blocks: Vec<u64> = places.iter().map(|(block, _)| *block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let read = self.read_blocks(&blocks)?;
        let record = |(block, place): (u64, u32)| {
            let at = blocks.binary_search(&block).ok()?;
            read[at].as_ref()?.get(place).map(Record::of)
        };
        Ok(places.into_iter().map(record).collect())
    }

    fn scan(&self, from: u64) -> Result<(u64, Vec<Record>)> {
        let (end, block_documents) = {
            let writer = self.lock_writer();
            (writer.next(), writer.block_documents())
        };
        let mut block = from / block_documents;
        while block * block_documents < end {
            let numbers: Vec<u64> = (block..block + SCANNED).collect();
            block += SCANNED;
            let mut records = Vec::new();
            for read in self.read_blocks(&numbers)?.iter().flatten() {
                records.extend(read.entries().map(|(_, entry)| Record::of(entry)));
            }
            if !records.is_empty() {
                return Ok((block * block_documents, records));
            }
        }
        Ok((end, Vec::new()))
    }

    /// Counts the documents, after a crash.
    pub(super) fn recount(&self) -> Result<()> {
        let (mut documents, mut from) = (0, 0);
        loop {
            let (next, records) = self.scan(from)?;
            if records.is_empty() {
                break;
            }
            documents += records.iter().filter(|record| !record.is_repeat).count() as u64;
            from = next;
        }
        self.lock_writer().set_documents(documents);
        Ok(())
    }
}

/// The names of all documents that were found: of the tables by their numbers, and those that wait behind them.
fn joined(
    resolved: Resolved,
    found: &[Vec<u64>],
    (waiting, waiting_rows): (BlockNames, &[(usize, u64)]),
) -> Found {
    let own = resolved.lists.len() as u32;
    let (mut names, mut ends) = (Vec::new(), Vec::with_capacity(found.len()));
    let mut waits = waiting_rows.iter().map(|(row, _)| *row).zip(0..).peekable();
    for (row, numbers) in found.iter().enumerate() {
        let start = names.len();
        names.extend(numbers.iter().filter_map(|number| resolved.place(*number)));
        while let Some((_, index)) = waits.next_if(|(of, _)| *of == row) {
            names.push((own, index));
        }
        ends.push(names.len());
        let list = |list: u32| resolved.lists.get(list as usize).map_or(&waiting, |it| &**it);
        if names[start..].iter().any(|(of, _)| list(*of).may_repeat) {
            let mut seen = HashSet::new();
            let kept = |(of, index): &(u32, u32)| seen.insert(list(*of).names.get(*index as usize));
            let once: Vec<_> = names[start..].iter().copied().filter(kept).collect();
            names.truncate(start);
            names.extend(once);
            *ends.last_mut().expect("one was pushed") = names.len();
        }
    }
    let mut lists = resolved.lists;
    lists.push(Arc::new(waiting));
    Found { lists, names, ends }
}
