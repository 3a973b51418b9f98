//! Lookups: which documents share a bucket, which names are there, what all documents are.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use nandex::{Error, Result};

use super::block::{Block, Entry, NameList, documents_of};
use super::directory::Listed;
use super::update::place_of;
use super::{BUCKET_DOCUMENTS_MAX, Core, LshIndex};

/// Blocks that a scan reads at a time.
const SCANNED: u64 = 64;

/// Blocks that an opening reads at a time.
const READ_AT_ONCE: u64 = 512;

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
    blocks: Vec<Arc<Block>>,
    /// Names of documents that wait: behind those of all blocks.
    waiting: NameList,
    /// Names by their block and the index there, row after row.
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
        self.names[start..end].iter().map(|name| self.name(*name))
    }

    fn name(&self, (block, index): (u32, u32)) -> &[u8] {
        let block = self.blocks.get(block as usize);
        block.map_or_else(|| self.waiting.get(index as usize), |it| it.name(index as usize))
    }

    /// Adds the names of a row that have come since the last: each once, if some may be there twice.
    fn end_row(&mut self, may_repeat: bool) {
        let start = self.ends.last().copied().unwrap_or(0);
        if may_repeat {
            let mut seen = HashSet::new();
            let names = self.names[start..].iter().copied();
            let once: Vec<_> = names.filter(|name| seen.insert(self.name(*name))).collect();
            self.names.truncate(start);
            self.names.extend(once);
        }
        self.ends.push(self.names.len());
    }
}

/// Blocks by their numbers.
struct Blocks {
    block_documents: u64,
    /// Rising.
    numbers: Vec<u64>,
    blocks: Vec<Arc<Block>>,
}

impl Blocks {
    /// The block of that number, which is one of those that were asked for, and its index.
    fn get(&self, number: u64) -> Option<(usize, &Arc<Block>)> {
        let index = self.numbers.binary_search(&number).ok()?;
        Some((index, &self.blocks[index]))
    }

    /// The latest document of a block that has this name.
    fn latest(&self, number: u64, name: &[u8]) -> Option<u64> {
        let (_, block) = self.get(number)?;
        let place = block.places().enumerate().filter(|(index, _)| block.name(*index) == name);
        place.last().map(|(_, place)| number * self.block_documents + u64::from(place))
    }
}

/// Documents that wait and share a bucket with rows.
#[derive(Default)]
struct FoundWaiting {
    names: NameList,
    /// The row and the number of each.
    places: Vec<(u32, u64)>,
    may_repeat: bool,
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
        let waiting = core.find_waiting(keys);
        let candidates = core.directory.candidates(keys);
        let blocks = core.load(candidates.iter().map(|(_, block)| *block).collect())?;
        Ok(joined(blocks, &candidates, keys, waiting, core.tables()))
    }

    /// The names of a bucket.
    ///
    /// # Errors
    /// A failed read, damage; a table that is none.
    pub fn bucket(&self, table: usize, key: u64) -> Result<Vec<Vec<u8>>> {
        let core = &self.core;
        core.commit()?;
        if table >= core.tables() {
            let reason = format!("{table}; give 0 to {}", core.tables() - 1);
            return Err(Error::Config { field: "table", reason });
        }
        let candidates = core.directory.in_bucket(table, key);
        let blocks = core.load(candidates.into_iter().map(|(_, block)| block).collect())?.blocks;
        let entries = blocks.iter().flat_map(|block| block.entries());
        let in_bucket = entries.filter(|(_, entry)| entry.keys[table] == key);
        let names = in_bucket.map(|(_, entry)| entry.name.to_vec());
        Ok(names.take(BUCKET_DOCUMENTS_MAX).collect())
    }

    /// The records of documents by their names; none for a name that is not there.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn get_many(&self, names: &[&[u8]]) -> Result<Vec<Option<Record>>> {
        let core = &self.core;
        core.commit()?;
        let hashes: Vec<u64> = names.iter().map(|name| core.hash(name)).collect();
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
        let hashes: Vec<u64> = names.iter().map(|name| self.core.hash(name)).collect();
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

    pub(super) fn hash(&self, name: &[u8]) -> u64 {
        self.volume.hasher().hash(name).place
    }

    /// The documents that wait and share a bucket with a row.
    fn find_waiting(&self, keys: &[u64]) -> FoundWaiting {
        let mut found = FoundWaiting::default();
        let waiting = self.waiting();
        if waiting.is_empty() {
            return found;
        }
        let mut places = Vec::new();
        for (row, keys) in (0..).zip(keys.chunks(self.tables())) {
            places.clear();
            waiting.add_candidates(keys, &mut places);
            for place in &places {
                found.places.push((row, waiting.numbers[*place]));
                found.names.push(waiting.names.get(*place));
                found.may_repeat |= waiting.earlier[*place].is_some();
            }
        }
        found
    }

    /// The numbers of the latest documents that have these names.
    pub(super) fn find(&self, hashes: &[u64], names: &[&[u8]]) -> Result<Vec<Option<u64>>> {
        let mut found: Vec<Option<u64>> = {
            let waiting = self.waiting();
            let named = hashes.iter().zip(names);
            if waiting.is_empty() {
                vec![None; names.len()]
            } else {
                named.map(|(hash, name)| waiting.number_of(*hash, name)).collect()
            }
        };
        let candidates = self.directory.named(hashes);
        let blocks = self.load(candidates.iter().map(|(_, block)| *block).collect())?;
        for (row, number) in candidates {
            let row = row as usize;
            let latest = blocks.latest(number, names[row]);
            // Those that wait are later than all others.
            found[row] = found[row].max(latest);
        }
        Ok(found)
    }

    /// Blocks by their numbers, which may be there several times. Each is read once, if the cache has it not.
    fn load(&self, mut numbers: Vec<u64>) -> Result<Blocks> {
        let block_documents = documents_of(self.options.tables);
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.is_empty() {
            return Ok(Blocks { block_documents, numbers, blocks: Vec::new() });
        }
        let mut known = self.blocks.get_many(&numbers);
        let is_unknown = |(_, block): &(&u64, &Option<_>)| block.is_none();
        let unknown = numbers.iter().zip(&known.blocks).filter(is_unknown);
        let unknown: Vec<u64> = unknown.map(|(number, _)| *number).collect();
        if !unknown.is_empty() {
            let none = || Block::new(self.tables());
            let read = self.read_blocks(&unknown)?.into_iter();
            let read = read.map(|it| Arc::new(it.unwrap_or_else(none))).collect::<Vec<_>>();
            self.blocks.note_read(&known, unknown.into_iter().zip(read.iter().map(Arc::clone)));
            let missing = known.blocks.iter_mut().filter(|block| block.is_none());
            missing.zip(read).for_each(|(block, read)| *block = Some(read));
        }
        let blocks = known.blocks.into_iter().flatten().collect();
        Ok(Blocks { block_documents, numbers, blocks })
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
        let blocks = self.load(numbers.iter().map(|number| number / block_documents).collect())?;
        let record = |number: &u64| {
            let (block, place) = place_of(*number, block_documents);
            let (_, block) = blocks.get(block)?;
            block.get(place).map(Record::of)
        };
        Ok(numbers.iter().map(record).collect())
    }

    fn scan(&self, from: u64) -> Result<(u64, Vec<Record>)> {
        let (end, block_documents) = {
            let writer = self.lock_writer();
            (writer.next(), writer.block_documents())
        };
        let mut block = from / block_documents;
        while block * block_documents < end {
            let mut records = Vec::new();
            for (_, read) in self.read_some(block, SCANNED)? {
                records.extend(read.entries().map(|(_, entry)| Record::of(entry)));
            }
            block += SCANNED;
            if !records.is_empty() {
                return Ok((block * block_documents, records));
            }
        }
        Ok((end, Vec::new()))
    }

    /// Blocks from a number on, of those that are there.
    fn read_some(&self, first: u64, count: u64) -> Result<Vec<(u64, Block)>> {
        let numbers: Vec<u64> = (first..first + count).collect();
        let read = self.read_blocks(&numbers)?;
        let there = numbers.into_iter().zip(read).filter_map(|(number, it)| Some((number, it?)));
        Ok(there.collect())
    }

    /// Puts all documents into the directory, and counts them. Blocks are read while those before go in.
    pub(super) fn read_all(&self) -> Result<()> {
        let (end, block_documents) = {
            let writer = self.lock_writer();
            (writer.next(), writer.block_documents())
        };
        let firsts = (0..end.div_ceil(block_documents)).step_by(READ_AT_ONCE as usize);
        let documents = std::thread::scope(|scope| {
            let (sender, read) = sync_channel(1);
            scope.spawn(move || {
                let mut read = firsts.map(|first| self.read_some(first, READ_AT_ONCE));
                // Whoever takes them stops at the first failure.
                while read.next().is_some_and(|blocks| sender.send(blocks).is_ok()) {}
            });
            read.into_iter().map(|blocks| self.list_blocks(&blocks?)).sum::<Result<u64>>()
        })?;
        self.lock_writer().set_documents(documents);
        Ok(())
    }

    /// Puts the documents of blocks into the directory. Returns how many different names they have.
    fn list_blocks(&self, blocks: &[(u64, Block)]) -> Result<u64> {
        let block_documents = documents_of(self.options.tables);
        let (mut numbers, mut keys, mut names) = (Vec::new(), Vec::new(), Vec::new());
        for (number, block) in blocks {
            numbers.extend(block.places().map(|place| number * block_documents + u64::from(place)));
            block.rows().for_each(|row| keys.extend_from_slice(row));
            names.extend(block.names().map(|name| self.hash(name)));
        }
        self.directory.insert_many(Listed { numbers: &numbers, keys: &keys, names: &names })?;
        Ok(blocks.iter().map(|(_, block)| block.documents()).sum())
    }
}

/// The names of all documents that were found: those of blocks by their numbers, and those that wait behind them.
fn joined(
    blocks: Blocks,
    candidates: &[(u32, u64)],
    keys: &[u64],
    waiting: FoundWaiting,
    tables: usize,
) -> Found {
    let known: HashSet<u64> = waiting.places.iter().map(|(_, number)| *number).collect();
    let own = blocks.blocks.len() as u32;
    let (mut candidates, mut waits) =
        (candidates.iter().peekable(), waiting.places.iter().zip(0..).peekable());
    let (names, ends) = (Vec::new(), Vec::with_capacity(keys.len() / tables));
    let mut found = Found { blocks: blocks.blocks.clone(), waiting: waiting.names, names, ends };
    let mut in_buckets = vec![0; tables];
    for (row, keys) in (0..).zip(keys.chunks(tables)) {
        let mut may_repeat = false;
        in_buckets.fill(0);
        while let Some((_, number)) = candidates.next_if(|(of, _)| *of == row) {
            let Some((at, block)) = blocks.get(*number) else { continue };
            may_repeat |= block.may_repeat();
            for (index, (place, own)) in (0..).zip(block.places().zip(block.rows())) {
                if shares_bucket(own, keys, &mut in_buckets)
                    && !known.contains(&(number * blocks.block_documents + u64::from(place)))
                {
                    found.names.push((at as u32, index));
                }
            }
        }
        while let Some((_, index)) = waits.next_if(|((of, _), _)| *of == row) {
            found.names.push((own, index));
            may_repeat |= waiting.may_repeat;
        }
        found.end_row(may_repeat);
    }
    found
}

/// Is a document in a bucket of a row that has space for it?
fn shares_bucket(document: &[u64], row: &[u64], in_buckets: &mut [usize]) -> bool {
    let mut is_found = false;
    for ((own, key), count) in document.iter().zip(row).zip(in_buckets) {
        if own == key && *count < BUCKET_DOCUMENTS_MAX {
            *count += 1;
            is_found = true;
        }
    }
    is_found
}
