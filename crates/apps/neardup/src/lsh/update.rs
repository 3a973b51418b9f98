//! Insertions, one by one or in batches, and removals.

use std::collections::{BTreeMap, HashMap};

use nandex::{Durability, Error, Result, Volume};

use super::block::{Block, Entry, documents_of};
use super::directory::Listed;
use super::state::State;
use super::waiting::NewDocument;
use super::{Core, LshIndex, STATE_KEY};

/// The longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 1 << 20;

/// The bytes of names at which a block is full, so that it still fits a value.
const BLOCK_NAME_BYTES_MAX: usize = 4 << 20;

/// The most documents that wait, and the size from which a batch goes directly into blocks.
const WAITING_MAX: usize = 1024;
const FEW: usize = 64;

/// The number of blocks from which documents are removed at a time.
const BLOCKS_REMOVED: usize = 64;

/// The number of numbers taken at a time: a sixteenth of those used, within these bounds. A crash loses them.
const NUMBERS_TAKEN: (u64, u64) = (1 << 12, 1 << 16);

/// The result of an insertion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inserted {
    /// All were inserted.
    All,
    /// Those before this one were inserted; its name is another document's.
    Before(usize),
}

/// The treatment of a document whose name already exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repeats {
    /// It is an error.
    Refuse,
    /// It is inserted in addition.
    Add,
}

/// The state that changes of the index need.
#[derive(Debug)]
pub(super) struct Writer {
    state: State,
    /// Numbers of a block.
    block_documents: u64,
    /// The bytes of the names of the block that the next document goes into.
    name_bytes: usize,
    /// The latest written block, and its number.
    last: (u64, Block),
    /// All documents with numbers below this one are in their buckets.
    listed: u64,
    /// The number of different names.
    documents: u64,
}

/// Documents to be put into blocks.
struct Batch<'b> {
    numbers: &'b [u64],
    hashes: &'b [u64],
    names: &'b [&'b [u8]],
    keys: &'b [u64],
    earlier: &'b [Option<u64>],
}

/// Returns how many documents may wait. If each acknowledgement must be durable, none do.
pub(super) fn waiting_max(volume: &Volume) -> usize {
    if volume.durability() == Durability::Always { 1 } else { WAITING_MAX }
}

impl Writer {
    /// Creates the writer of a state. A block that an earlier process has begun is left unchanged.
    pub(super) fn new(mut state: State, tables: u32) -> Self {
        let block_documents = documents_of(tables);
        state.next = state.next.next_multiple_of(block_documents);
        let (last, listed) = ((0, Block::new(tables as usize)), state.next);
        Self { state, block_documents, name_bytes: 0, last, listed, documents: 0 }
    }

    pub(super) fn documents(&self) -> u64 {
        self.documents
    }

    /// Returns the number that exceeds those of all documents.
    pub(super) fn next(&self) -> u64 {
        self.state.next
    }

    /// Returns how the signatures are made, if that is known.
    pub(super) fn scheme(&self) -> Option<&str> {
        self.state.scheme.as_deref()
    }

    pub(super) fn set_documents(&mut self, documents: u64) {
        self.documents = documents;
    }

    /// Returns the number of the next document, whose name has `name_bytes` bytes.
    fn take_number(&mut self, name_bytes: usize) -> u64 {
        if self.name_bytes + name_bytes > BLOCK_NAME_BYTES_MAX {
            self.state.next = self.state.next.next_multiple_of(self.block_documents);
        }
        if self.state.next.is_multiple_of(self.block_documents) {
            self.name_bytes = 0;
        }
        self.name_bytes += name_bytes;
        self.state.next += 1;
        self.state.next - 1
    }

    /// Returns the blocks that a batch changes, with their numbers. The first may be the last written one, with more
    /// documents.
    fn blocks(&self, batch: &Batch<'_>) -> Vec<(u64, Block)> {
        let tables = self.last.1.tables();
        let mut blocks = Vec::new();
        let mut block = self.last.clone();
        for (index, number) in batch.numbers.iter().enumerate() {
            let (own, place) = place_of(*number, self.block_documents);
            if own != block.0 {
                blocks.push(std::mem::replace(&mut block, (own, Block::new(tables))));
            }
            let keys = &batch.keys[index * tables..][..tables];
            let entry = Entry { earlier: batch.earlier[index], keys, name: batch.names[index] };
            block.1.push(place, entry);
        }
        blocks.push(block);
        if blocks[0] == self.last {
            blocks.remove(0);
        }
        blocks
    }
}

/// Returns the block of a document, and its place there.
pub(super) fn place_of(number: u64, block_documents: u64) -> (u64, u32) {
    (number / block_documents, (number % block_documents) as u32)
}

/// A document that has left its block but not yet the directory.
struct Unlisted {
    number: u64,
    hash: u64,
    keys: Vec<u64>,
    /// An earlier document of the same name.
    earlier: Option<u64>,
    /// For each table, and finally for the names: whether a document still in the block has the same.
    has_other: Vec<bool>,
}

impl Unlisted {
    /// Removes a document from a block, if the block has it.
    fn of(block: &mut Block, place: u32, (number, hash): (u64, u64)) -> Option<Self> {
        let rest = block.without(place);
        let entry = block.get(place)?;
        let has_key = |(table, key): (usize, &u64)| rest.rows().any(|row| row[table] == *key);
        let mut has_other: Vec<bool> = entry.keys.iter().enumerate().map(has_key).collect();
        has_other.push(rest.names().any(|name| name == entry.name));
        let (keys, earlier) = (entry.keys.to_vec(), entry.earlier);
        *block = rest;
        Some(Self { number, hash, keys, earlier, has_other })
    }
}

impl LshIndex {
    /// Adds documents, in their order, as if one by one: `keys` has a row for each. Small batches reach their blocks
    /// some time later, and a failure may be that of documents that came before: they wait until it can be done.
    ///
    /// # Errors
    /// Names that are too long, too little RAM for more, no space, a failed read or write: a large batch is then not
    /// inserted at all.
    pub fn insert_many(&self, names: &[&[u8]], keys: &[u64], repeats: Repeats) -> Result<Inserted> {
        let core = &self.core;
        core.check_rows(names.len(), keys)?;
        names.iter().try_for_each(|name| check_name(name))?;
        let mut writer = core.lock_writer();
        if names.len() >= FEW {
            core.commit_locked(&mut writer)?;
        }
        let hashes: Vec<u64> = names.iter().map(|name| core.hash(name)).collect();
        let there = core.find(&hashes, names)?;
        if names.len() < FEW {
            return core.insert_few(&mut writer, (names, &hashes, &there), keys, repeats);
        }
        let mut seen: HashMap<&[u8], u64> = HashMap::with_capacity(names.len());
        let (mut numbers, mut earlier) = (Vec::new(), Vec::new());
        for (name, there) in names.iter().zip(there) {
            let there = seen.get(name).copied().or(there);
            if there.is_some() && repeats == Repeats::Refuse {
                break;
            }
            let number = writer.take_number(name.len());
            seen.insert(name, number);
            numbers.push(number);
            earlier.push(there);
        }
        let count = numbers.len();
        let batch = Batch {
            numbers: &numbers,
            hashes: &hashes[..count],
            names: &names[..count],
            keys: &keys[..count * core.tables()],
            earlier: &earlier,
        };
        core.apply(&mut writer, &batch)?;
        writer.documents += earlier.iter().filter(|it| it.is_none()).count() as u64;
        Ok(if count == names.len() { Inserted::All } else { Inserted::Before(count) })
    }

    /// Removes the documents of a name, and returns whether there was one.
    ///
    /// # Errors
    /// A failed read or write.
    pub fn remove(&self, name: &[u8]) -> Result<bool> {
        Ok(self.remove_many(&[name])?[0])
    }

    /// Removes the documents of each name, and returns which names had one; of equal names the first.
    ///
    /// Costs the lookups of [`contains_many`](Self::contains_many), which overlap, and then a read and a write of each
    /// block that has some of the documents, however many. After a crash some of the documents may be removed.
    ///
    /// # Errors
    /// A failed read or write; some of the documents may be removed then.
    pub fn remove_many(&self, names: &[&[u8]]) -> Result<Vec<bool>> {
        let core = &self.core;
        let mut writer = core.lock_writer();
        core.commit_locked(&mut writer)?;
        let hashes: Vec<u64> = names.iter().map(|name| core.hash(name)).collect();
        let there = core.find(&hashes, names)?;
        let mut leaving = BTreeMap::new();
        let is_first = |(number, hash): (&Option<u64>, &u64)| {
            number.is_some_and(|number| leaving.insert(number, *hash).is_none())
        };
        let removed: Vec<bool> = there.iter().zip(&hashes).map(is_first).collect();
        let count = leaving.len() as u64;
        while !leaving.is_empty() {
            leaving = core.remove_documents(&mut writer, leaving)?;
        }
        writer.documents -= count;
        Ok(removed)
    }

    /// Durably notes the owner's name for how the signatures are made.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn set_scheme(&self, scheme: &str) -> Result<()> {
        let mut writer = self.core.lock_writer();
        let mut state = writer.state.clone();
        state.scheme = Some(scheme.to_owned());
        self.core.put_state(&state)?;
        writer.state = state;
        Ok(())
    }
}

impl Core {
    /// Queues documents, in their order. `there` has the numbers of documents of the same names.
    fn insert_few(
        &self,
        writer: &mut Writer,
        (names, hashes, there): (&[&[u8]], &[u64], &[Option<u64>]),
        keys: &[u64],
        repeats: Repeats,
    ) -> Result<Inserted> {
        let waiting_max = waiting_max(&self.volume);
        for (index, (name, hash)) in names.iter().zip(hashes).enumerate() {
            // A document of the same name may have come with this call.
            let newer = if index > 0 { self.waiting().number_of(*hash, name) } else { None };
            let earlier = newer.or(there[index]);
            if earlier.is_some() && repeats == Repeats::Refuse {
                return Ok(Inserted::Before(index));
            }
            if self.waiting().len() >= waiting_max {
                self.commit_locked(writer)?;
            }
            let number = writer.take_number(name.len());
            let keys = &keys[index * self.tables()..][..self.tables()];
            let document = NewDocument { name, hash: *hash, keys, earlier };
            self.waiting_mut().push(number, document);
            writer.documents += u64::from(earlier.is_none());
            if waiting_max == 1 {
                self.commit_locked(writer)?;
            }
        }
        Ok(Inserted::All)
    }

    /// Puts the waiting documents into blocks. After a failure they continue to wait.
    pub(super) fn commit(&self) -> Result<()> {
        self.commit_locked(&mut self.lock_writer())
    }

    pub(super) fn commit_locked(&self, writer: &mut Writer) -> Result<()> {
        let waiting = self.waiting();
        if waiting.is_empty() {
            return Ok(());
        }
        let names: Vec<&[u8]> = (0..waiting.len()).map(|at| waiting.names.get(at)).collect();
        let batch = Batch {
            numbers: &waiting.numbers,
            hashes: &waiting.hashes,
            names: &names,
            keys: &waiting.keys,
            earlier: &waiting.earlier,
        };
        self.apply(writer, &batch)?;
        drop(waiting);
        self.waiting_mut().clear();
        Ok(())
    }

    /// Puts documents into the directory and into their blocks. Doing it again changes nothing.
    fn apply(&self, writer: &mut Writer, batch: &Batch<'_>) -> Result<()> {
        if batch.numbers.is_empty() {
            return Ok(());
        }
        self.take_numbers(writer)?;
        self.list(writer, batch)?;
        let blocks = writer.blocks(batch);
        self.write_blocks(writer, blocks)
    }

    /// Writes blocks; the last one may get more documents.
    fn write_blocks(&self, writer: &mut Writer, blocks: Vec<(u64, Block)>) -> Result<()> {
        let encode = |(number, block): &(u64, Block)| (number.to_le_bytes(), block.encode());
        let encoded: Vec<_> = blocks.iter().map(encode).collect();
        let pairs = encoded.iter().map(|(key, bytes)| (&key[..], &bytes[..]));
        self.records.put_many(&pairs.collect::<Vec<_>>())?;
        if let Some(last) = blocks.last().filter(|(number, _)| *number >= writer.last.0) {
            writer.last = last.clone();
        }
        self.blocks.note_written(blocks.into_iter());
        Ok(())
    }

    /// Removes documents, with the hashes of their names, from their blocks; returns the earlier ones of the same
    /// names.
    fn remove_documents(
        &self,
        writer: &mut Writer,
        documents: BTreeMap<u64, u64>,
    ) -> Result<BTreeMap<u64, u64>> {
        let block_documents = writer.block_documents;
        let block_of = |(number, _): &(u64, u64)| place_of(*number, block_documents).0;
        let documents: Vec<(u64, u64)> = documents.into_iter().collect();
        let of_blocks: Vec<_> =
            documents.chunk_by(|one, next| block_of(one) == block_of(next)).collect();
        let mut earlier = BTreeMap::new();
        for of_blocks in of_blocks.chunks(BLOCKS_REMOVED) {
            let numbers: Vec<u64> = of_blocks.iter().map(|it| block_of(&it[0])).collect();
            let blocks = self.read_blocks(&numbers)?;
            let (mut rests, mut unlisted) = (Vec::new(), Vec::new());
            for ((own, documents), block) in numbers.iter().zip(of_blocks).zip(blocks) {
                let Some(mut rest) = block else { continue };
                for (number, hash) in *documents {
                    let (_, place) = place_of(*number, block_documents);
                    let Some(left) = Unlisted::of(&mut rest, place, (*number, *hash)) else {
                        continue;
                    };
                    earlier.extend(left.earlier.map(|number| (number, *hash)));
                    unlisted.push(left);
                }
                rests.push((*own, rest));
            }
            self.write_blocks(writer, rests)?;
            for it in unlisted {
                let has_other = |table: usize| it.has_other[table];
                self.directory.remove((it.number, &it.keys, it.hash), has_other)?;
            }
        }
        Ok(earlier)
    }

    /// Ensures that all assigned numbers are durably taken.
    fn take_numbers(&self, writer: &mut Writer) -> Result<()> {
        let state = &mut writer.state;
        if state.next <= state.taken {
            return Ok(());
        }
        state.taken = state.next + (state.next / 16).clamp(NUMBERS_TAKEN.0, NUMBERS_TAKEN.1);
        self.put_state(state)
    }

    /// Writes the state, durably.
    fn put_state(&self, state: &State) -> Result<()> {
        self.records.put(STATE_KEY, &state.encode())?;
        self.records.sync()
    }

    /// Makes everything durable, and returns the unused numbers.
    pub(super) fn finish(&self) -> Result<()> {
        let mut writer = self.lock_writer();
        self.commit_locked(&mut writer)?;
        if writer.state.taken == writer.state.next {
            return self.records.sync();
        }
        writer.state.taken = writer.state.next;
        self.put_state(&writer.state)
    }

    /// Puts documents into the directory, except for those that an earlier attempt inserted.
    fn list(&self, writer: &mut Writer, batch: &Batch<'_>) -> Result<()> {
        let known = batch.numbers.partition_point(|number| *number < writer.listed);
        let Some(last) = batch.numbers[known..].last() else { return Ok(()) };
        self.directory.insert_many(Listed {
            numbers: &batch.numbers[known..],
            keys: &batch.keys[known * self.tables()..],
            names: &batch.hashes[known..],
        })?;
        writer.listed = last + 1;
        let shapes = self.directory.shapes();
        if writer.state.generations != shapes {
            writer.state.generations = shapes;
            self.put_state(&writer.state)?;
        }
        Ok(())
    }
}

fn check_name(name: &[u8]) -> Result<()> {
    if name.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    let (limit, found) = (NAME_BYTES_MAX as u64, name.len() as u64);
    Err(Error::TooLong { what: "key", limit, found, remedy: "use a hash of it as the key" })
}
