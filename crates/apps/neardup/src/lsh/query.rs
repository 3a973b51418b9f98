//! Lookups: the documents that share a bucket, the existing names, and all documents.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use nandex::{Error, Result};

use super::block::{Block, Entry, NameList};
use super::cache::Known;
use super::directory::Listed;
use super::update::place_of;
use super::{BUCKET_DOCUMENTS_MAX, Core, LshIndex};

/// The number of blocks that a scan reads at a time.
const SCANNED: u64 = 64;

/// The bytes of RAM of a document of a block in addition to its bucket keys: its name, and the bytes read.
const DOCUMENT_BYTES: u64 = 96;

/// The number of blocks that a query reads at a time, as far as the RAM suffices: fewer do not keep a device busy.
const BLOCKS_AT_ONCE: (usize, usize) = (128, 1024);

/// A document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Its name.
    pub name: Vec<u8>,
    /// A bucket key of each table.
    pub keys: Vec<u64>,
    /// Whether there is an earlier document of the same name.
    pub is_repeat: bool,
}

impl Record {
    fn of(entry: Entry<'_>) -> Self {
        let is_repeat = entry.earlier.is_some();
        Self { name: entry.name.to_vec(), keys: entry.keys.to_vec(), is_repeat }
    }
}

/// The names of the documents that share a bucket with each row of keys.
#[derive(Default, Debug)]
pub struct Found {
    /// The names, row after row.
    names: NameList,
    /// The end of the names of each row.
    ends: Vec<usize>,
}

impl Found {
    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.ends.len()
    }

    /// Returns the names of a row, each once, in the order of their documents. A row that does not exist has no names.
    pub fn row(&self, row: usize) -> impl ExactSizeIterator<Item = &[u8]> {
        let start =
            row.checked_sub(1).map_or(0, |before| self.ends.get(before).copied().unwrap_or(0));
        let end = self.ends.get(row).copied().unwrap_or(start);
        (start..end).map(|index| self.names.get(index))
    }

    /// Ends a row with these names: each once, if `may_repeat` says that some occur twice.
    fn push_row(&mut self, names: &[&[u8]], may_repeat: bool) {
        let mut seen = HashSet::new();
        for name in names {
            if !may_repeat || seen.insert(*name) {
                self.names.push(name);
            }
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
    /// Returns the block of that number, which must be one of those requested.
    fn get(&self, number: u64) -> Option<&Block> {
        self.numbers.binary_search(&number).ok().map(|index| &*self.blocks[index])
    }

    /// Returns the number of the document at a place of a block.
    fn number_of(&self, block: u64, place: u32) -> u64 {
        block * self.block_documents + u64::from(place)
    }

    /// Returns the latest document of a block that has this name.
    fn latest(&self, number: u64, name: &[u8]) -> Option<u64> {
        let block = self.get(number)?;
        let place = block.places().enumerate().filter(|(index, _)| block.name(*index) == name);
        place.last().map(|(_, place)| self.number_of(number, place))
    }
}

/// The number of a block, and its bytes, if it exists.
type BlockBytes = (u64, Option<Vec<u8>>);

/// Cached blocks, and the bytes of the others, in order.
#[derive(Default)]
struct Fetched {
    numbers: Vec<u64>,
    known: Known,
    read: Vec<BlockBytes>,
}

/// Waiting documents that share a bucket with rows.
#[derive(Default)]
struct FoundWaiting {
    names: NameList,
    /// The row and the number of each; rows rise.
    places: Vec<(u32, u64)>,
    /// All numbers.
    numbers: HashSet<u64>,
    may_repeat: bool,
}

impl FoundWaiting {
    fn has(&self, number: u64) -> bool {
        self.numbers.contains(&number)
    }

    /// Returns the places of the documents of a row.
    fn of_row(&self, row: usize) -> Range<usize> {
        let end = |below: usize| self.places.partition_point(|(of, _)| (*of as usize) < below);
        end(row)..end(row + 1)
    }
}

impl LshIndex {
    /// Returns the names of the documents that share a bucket with each row of keys. The reads of all overlap.
    ///
    /// # Errors
    /// Keys that are not whole rows, a failed read, damage.
    pub fn query_many(&self, keys: &[u64]) -> Result<Found> {
        let core = &self.core;
        let rows = keys.len() / core.tables();
        core.check_rows(rows, keys)?;
        let waiting = core.find_waiting(keys);
        let candidates = core.directory.candidates(keys);
        let mut found = Found::default();
        if candidates.is_empty() && waiting.places.is_empty() {
            found.ends.resize(rows, 0);
            return Ok(found);
        }
        let parts = parts_of(&candidates, rows, core.blocks_at_once());
        let fetch = |part: &Part<'_>| core.fetch(part.0.iter().map(|(_, block)| *block).collect());
        let mut join = |place: usize, fetched| {
            core.join(&core.decode(fetched)?, &parts[place], keys, &waiting, &mut found);
            Ok(())
        };
        if let [part] = &parts[..] {
            join(0, fetch(part)?)?;
        } else {
            // The blocks of a part are read while the previous ones are compared.
            read_ahead(parts.iter().map(fetch), join)?;
        }
        Ok(found)
    }

    /// Returns the names of a bucket.
    ///
    /// # Errors
    /// A failed read, damage; an invalid table.
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

    /// Returns the records of documents by their names; `None` for an absent name.
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

    /// Returns which names exist.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn contains_many(&self, names: &[&[u8]]) -> Result<Vec<bool>> {
        let hashes: Vec<u64> = names.iter().map(|name| self.core.hash(name)).collect();
        let found = self.core.find(&hashes, names)?;
        Ok(found.iter().map(Option::is_some).collect())
    }

    /// Returns some documents from a number on, in order, and the number to continue from; no documents at the end.
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

    /// Returns the number of blocks that a query reads at a time; while these are compared others are read.
    fn blocks_at_once(&self) -> usize {
        let document_bytes = 8 * u64::from(self.options.tables) + DOCUMENT_BYTES;
        let block_bytes = self.block_documents() * document_bytes;
        let blocks = self.options.ram_bytes / 16 / block_bytes;
        usize::try_from(blocks).unwrap_or(usize::MAX).clamp(BLOCKS_AT_ONCE.0, BLOCKS_AT_ONCE.1)
    }

    /// Adds the names found for some rows: those of blocks by their numbers, and those of waiting documents behind
    /// them.
    fn join(
        &self,
        blocks: &Blocks,
        (candidates, rows): &Part<'_>,
        keys: &[u64],
        waiting: &FoundWaiting,
        found: &mut Found,
    ) {
        let tables = self.tables();
        let (mut candidates, mut names) = (candidates.iter().peekable(), Vec::new());
        let mut in_buckets = vec![0; tables];
        for row in rows.clone() {
            let (mut may_repeat, own_keys) = (false, &keys[row * tables..][..tables]);
            in_buckets.fill(0);
            while let Some((_, number)) = candidates.next_if(|(of, _)| *of as usize == row) {
                let Some(block) = blocks.get(*number) else { continue };
                may_repeat |= block.may_repeat();
                for (index, (place, own)) in block.places().zip(block.rows()).enumerate() {
                    if shares_bucket(own, own_keys, &mut in_buckets)
                        && !waiting.has(blocks.number_of(*number, place))
                    {
                        names.push(block.name(index));
                    }
                }
            }
            for index in waiting.of_row(row) {
                names.push(waiting.names.get(index));
                may_repeat |= waiting.may_repeat;
            }
            found.push_row(&names, may_repeat);
            names.clear();
        }
    }

    /// Returns the waiting documents that share a bucket with a row.
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
                found.numbers.insert(waiting.numbers[*place]);
                found.names.push(waiting.names.get(*place));
                found.may_repeat |= waiting.earlier[*place].is_some();
            }
        }
        found
    }

    /// Returns the numbers of the latest documents that have these names.
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
        for candidates in candidates.chunks(self.blocks_at_once()) {
            let blocks = self.load(candidates.iter().map(|(_, block)| *block).collect())?;
            for (row, number) in candidates {
                let row = *row as usize;
                let latest = blocks.latest(*number, names[row]);
                // Waiting documents are later than all others.
                found[row] = found[row].max(latest);
            }
        }
        Ok(found)
    }

    /// Loads blocks by their numbers, which may occur several times. Each is read once, unless it is cached.
    fn load(&self, numbers: Vec<u64>) -> Result<Blocks> {
        self.decode(self.fetch(numbers)?)
    }

    /// Reads blocks as [`load`](Self::load) does, without decoding the bytes.
    fn fetch(&self, mut numbers: Vec<u64>) -> Result<Fetched> {
        if numbers.is_empty() {
            return Ok(Fetched::default());
        }
        numbers.sort_unstable();
        numbers.dedup();
        let known = self.blocks.get_many(&numbers);
        let is_unknown = |(_, block): &(&u64, &Option<_>)| block.is_none();
        let unknown = numbers.iter().zip(&known.blocks).filter(is_unknown);
        let read = self.read_bytes(unknown.map(|(number, _)| *number))?;
        Ok(Fetched { numbers, known, read })
    }

    fn decode(&self, Fetched { numbers, mut known, read }: Fetched) -> Result<Blocks> {
        let decode = |(number, bytes)| {
            let block = self.block_of(number, bytes)?;
            Ok((number, Arc::new(block.unwrap_or_else(|| Block::new(self.tables())))))
        };
        let read = read.into_iter().map(decode).collect::<Result<Vec<_>>>()?;
        if !read.is_empty() {
            let kept = read.iter().map(|(number, block)| (*number, Arc::clone(block)));
            self.blocks.note_read(&known, kept);
        }
        let missing = known.blocks.iter_mut().filter(|block| block.is_none());
        missing.zip(read).for_each(|(block, (_, read))| *block = Some(read));
        let block_documents = self.block_documents();
        let blocks = known.blocks.into_iter().flatten().collect();
        Ok(Blocks { block_documents, numbers, blocks })
    }

    /// Reads the blocks of these numbers, if they exist.
    pub(super) fn read_blocks(&self, numbers: &[u64]) -> Result<Vec<Option<Block>>> {
        let read = self.read_bytes(numbers.iter().copied())?.into_iter();
        read.map(|(number, bytes)| self.block_of(number, bytes)).collect()
    }

    /// Returns the numbers with the bytes of their blocks, if they exist.
    fn read_bytes(&self, numbers: impl Iterator<Item = u64>) -> Result<Vec<BlockBytes>> {
        let numbers: Vec<u64> = numbers.collect();
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<[u8; 8]> = numbers.iter().map(|number| number.to_le_bytes()).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        Ok(numbers.into_iter().zip(self.records.get_many(&keys)?).collect())
    }

    fn block_of(&self, number: u64, bytes: Option<Vec<u8>>) -> Result<Option<Block>> {
        bytes.map(|bytes| Block::decode(&bytes, self.tables(), number)).transpose()
    }

    /// Returns the records of these documents, if they exist.
    fn read(&self, numbers: &[u64]) -> Result<Vec<Option<Record>>> {
        let block_documents = self.block_documents();
        let mut records = Vec::with_capacity(numbers.len());
        for numbers in numbers.chunks(self.blocks_at_once()) {
            let blocks = numbers.iter().map(|number| number / block_documents).collect();
            let blocks = self.load(blocks)?;
            records.extend(numbers.iter().map(|number| {
                let (block, place) = place_of(*number, block_documents);
                blocks.get(block)?.get(place).map(Record::of)
            }));
        }
        Ok(records)
    }

    fn scan(&self, from: u64) -> Result<(u64, Vec<Record>)> {
        let (end, block_documents) = (self.lock_writer().next(), self.block_documents());
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

    /// Reads the existing blocks from a number on.
    fn read_some(&self, first: u64, count: u64) -> Result<Vec<(u64, Block)>> {
        let numbers: Vec<u64> = (first..first + count).collect();
        let read = self.read_blocks(&numbers)?;
        let there = numbers.into_iter().zip(read).filter_map(|(number, it)| Some((number, it?)));
        Ok(there.collect())
    }

    /// Puts all documents into the directory, and counts them. Blocks are read while the previous ones are inserted.
    pub(super) fn read_all(&self) -> Result<()> {
        let (end, block_documents) = (self.lock_writer().next(), self.block_documents());
        let count = self.blocks_at_once();
        let firsts = (0..end.div_ceil(block_documents)).step_by(count);
        let mut documents = 0;
        read_ahead(firsts.map(|first| self.read_some(first, count as u64)), |_, blocks| {
            documents += self.list_blocks(&blocks)?;
            Ok(())
        })?;
        self.lock_writer().set_documents(documents);
        Ok(())
    }

    /// Puts the documents of blocks into the directory. Returns the number of their different names.
    fn list_blocks(&self, blocks: &[(u64, Block)]) -> Result<u64> {
        let block_documents = self.block_documents();
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

/// Candidates, and the rows of which they are all the candidates.
type Part<'c> = (&'c [(u32, u64)], Range<usize>);

/// Splits candidates into parts of consecutive rows: each part has at most `most` candidates, or those of one row. At
/// least one part.
fn parts_of(mut candidates: &[(u32, u64)], rows: usize, most: usize) -> Vec<Part<'_>> {
    let (mut parts, mut row) = (Vec::new(), 0);
    while let Some((next, _)) = candidates.get(most) {
        let before = candidates.partition_point(|(of, _)| of < next);
        let through = || candidates.partition_point(|(of, _)| of <= next);
        let (own, others) = candidates.split_at(if before > 0 { before } else { through() });
        let end = others.first().map_or(rows, |(of, _)| *of as usize);
        parts.push((own, row..end));
        (candidates, row) = (others, end);
    }
    if row < rows || parts.is_empty() {
        parts.push((candidates, row..rows));
    }
    parts
}

/// Processes what is read, with its place, while another thread reads the next.
fn read_ahead<T: Send>(
    mut read: impl Iterator<Item = Result<T>> + Send,
    mut take: impl FnMut(usize, T) -> Result<()>,
) -> Result<()> {
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(1);
        // The consumer stops at the first failure.
        scope.spawn(move || while read.next().is_some_and(|next| sender.send(next).is_ok()) {});
        receiver.into_iter().enumerate().try_for_each(|(place, next)| take(place, next?))
    })
}

/// Returns whether a document is in a bucket of a row that has space for it.
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

#[cfg(test)]
mod tests {
    use super::parts_of;

    #[test]
    fn rows_keep_all_of_their_candidates_together() {
        let candidates = [(0, 1), (2, 1), (2, 5), (2, 6), (7, 1), (7, 2)];
        for (most, expected) in [
            (1, vec![(1, 0..2), (3, 2..7), (2, 7..9)]),
            (4, vec![(4, 0..7), (2, 7..9)]),
            (5, vec![(4, 0..7), (2, 7..9)]),
            (6, vec![(6, 0..9)]),
        ] {
            let parts = parts_of(&candidates, 9, most);
            let found = parts.iter().map(|(own, rows)| (own.len(), rows.clone()));
            assert_eq!(found.collect::<Vec<_>>(), expected, "{most}");
            assert_eq!(
                parts.iter().flat_map(|(own, _)| *own).copied().collect::<Vec<_>>(),
                candidates
            );
        }
        assert_eq!(parts_of(&[], 9, 1), [(&[][..], 0..9)]);
    }
}
