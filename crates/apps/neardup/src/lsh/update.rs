//! Documents come in, one by one or in batches, and go.

use std::collections::HashMap;
use std::sync::PoisonError;

use nandex::{Durability, Error, Result, Table, Volume};

use super::block::{Block, Entry, documents_of};
use super::generation::{Generation, Shape};
use super::state::State;
use super::waiting::NewDocument;
use super::{Core, LshIndex, STATE_KEY, free_bytes, share_of};
use crate::tables::{Hash, numbers_of, put_numbers};

/// The longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 1 << 20;

/// Bytes of names at which a block has no space for more, so that it stays a value.
const BLOCK_NAME_BYTES_MAX: usize = 4 << 20;

/// Documents that wait, at most, and from how many on a batch goes to the tables itself.
const WAITING_MAX: usize = 1024;
const FEW: usize = 64;

/// How many more documents each generation is for than the one before.
const GROWTH: u64 = 4;

/// Numbers that are taken at a time.
const NUMBERS_TAKEN: u64 = 1 << 16;

/// What has become of new documents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inserted {
    /// All are there.
    All,
    /// Those before this one are; its name is another document's.
    Before(usize),
}

/// What happens to a document whose name is there already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repeats {
    /// It is refused.
    Refuse,
    /// It is in its buckets in addition.
    Add,
}

/// What whoever changes the index knows.
#[derive(Debug)]
pub(super) struct Writer {
    state: State,
    /// Numbers of a block.
    block_documents: u64,
    /// Bytes of the names of the block that the next document comes into.
    name_bytes: usize,
    /// The latest block that the table of records has, and its number.
    last: (u64, Block),
    /// Documents whose records are gone, and which names and buckets still have.
    gone: Vec<Gone>,
}

/// A document that is no more.
#[derive(Debug)]
struct Gone {
    number: u64,
    hash: Hash,
    keys: Vec<u64>,
}

/// Documents on their way into the tables.
struct Batch<'b> {
    numbers: &'b [u64],
    hashes: &'b [Hash],
    names: &'b [&'b [u8]],
    keys: &'b [u64],
    earlier: &'b [Option<u64>],
}

/// How many documents may wait. Where each acknowledgement is durable, none do.
pub(super) fn waiting_max(volume: &Volume) -> usize {
    if volume.durability() == Durability::Always { 1 } else { WAITING_MAX }
}

impl Writer {
    /// What follows a state. A block that an earlier process has begun is left as it is.
    pub(super) fn new(mut state: State, tables: u32) -> Self {
        let block_documents = documents_of(tables);
        state.next = state.next.next_multiple_of(block_documents);
        let last = (0, Block::new(tables as usize));
        Self { state, block_documents, name_bytes: 0, last, gone: Vec::new() }
    }

    pub(super) fn documents(&self) -> u64 {
        self.state.documents.unwrap_or(0)
    }

    /// All documents have numbers below this one.
    pub(super) fn next(&self) -> u64 {
        self.state.next
    }

    pub(super) fn block_documents(&self) -> u64 {
        self.block_documents
    }

    pub(super) fn set_documents(&mut self, documents: u64) {
        self.state.documents = Some(documents);
    }

    fn add_documents(&mut self, count: usize) {
        self.state.documents = self.state.documents.map(|it| it + count as u64);
    }

    /// The number of the next document, whose name has that many bytes.
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

    /// The blocks that a batch changes, with their numbers. The first may be the last that was written, with more.
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

/// The block of a document, and its place there.
pub(super) fn place_of(number: u64, block_documents: u64) -> (u64, u32) {
    (number / block_documents, (number % block_documents) as u32)
}

impl LshIndex {
    /// Adds documents, in their order, as if one by one: `keys` has a row for each. Few are in the tables some time
    /// later, and a failure may be that of documents that came before: they wait until it can be done.
    ///
    /// # Errors
    /// Names that are too long, too little RAM for more, no space, a failed read or write: of a batch of many nothing
    /// is there then.
    pub fn insert_many(&self, names: &[&[u8]], keys: &[u64], repeats: Repeats) -> Result<Inserted> {
        let core = &self.core;
        core.check_rows(names.len(), keys)?;
        names.iter().try_for_each(|name| check_name(name))?;
        let mut writer = core.lock_writer();
        if names.len() >= FEW {
            core.commit_locked(&mut writer)?;
        }
        let hashes: Vec<Hash> = names.iter().map(|name| core.hash(name)).collect();
        let there = core.find(&hashes, names)?;
        if names.len() < FEW {
            return core.insert_few(&mut writer, (names, &hashes, &there), keys, repeats);
        }
        let mut seen: HashMap<Hash, u64> = HashMap::with_capacity(names.len());
        let (mut numbers, mut earlier) = (Vec::new(), Vec::new());
        for ((name, hash), there) in names.iter().zip(&hashes).zip(there) {
            let there = seen.get(hash).copied().or(there);
            if there.is_some() && repeats == Repeats::Refuse {
                break;
            }
            let number = writer.take_number(name.len());
            seen.insert(*hash, number);
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
        writer.add_documents(earlier.iter().filter(|it| it.is_none()).count());
        Ok(if count == names.len() { Inserted::All } else { Inserted::Before(count) })
    }

    /// Takes out the documents of a name, and tells whether there was one. They leave their buckets some time later:
    /// the record is durably gone before.
    ///
    /// # Errors
    /// A failed read or write.
    pub fn remove(&self, name: &[u8]) -> Result<bool> {
        let core = &self.core;
        let mut writer = core.lock_writer();
        core.commit_locked(&mut writer)?;
        if writer.gone.len() >= WAITING_MAX {
            core.clear_gone(&mut writer)?;
        }
        let hash = core.hash(name);
        let mut next = core.find(&[hash], &[name])?[0];
        if next.is_none() {
            return Ok(false);
        }
        core.take_numbers(&mut writer)?;
        while let Some(number) = next {
            next = core.remove_document(&mut writer, (number, hash))?;
        }
        writer.state.documents = writer.state.documents.map(|it| it.saturating_sub(1));
        Ok(true)
    }
}

impl Core {
    /// Lets documents wait, in their order. `there` has the numbers of documents of the same names.
    fn insert_few(
        &self,
        writer: &mut Writer,
        (names, hashes, there): (&[&[u8]], &[Hash], &[Option<u64>]),
        keys: &[u64],
        repeats: Repeats,
    ) -> Result<Inserted> {
        let waiting_max = waiting_max(&self.volume);
        for (index, (name, hash)) in names.iter().zip(hashes).enumerate() {
            // One of the same name may have come with this call.
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
            writer.add_documents(usize::from(earlier.is_none()));
            if waiting_max == 1 {
                self.commit_locked(writer)?;
            }
        }
        Ok(Inserted::All)
    }

    /// Gives the documents that wait to the tables. After a failure they wait on.
    pub(super) fn commit(&self) -> Result<()> {
        self.commit_locked(&mut self.lock_writer())
    }

    /// Does all that waits, for documents that came and for those that went.
    pub(super) fn settle(&self) -> Result<()> {
        let mut writer = self.lock_writer();
        self.commit_locked(&mut writer)?;
        self.clear_gone(&mut writer)
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

    /// Puts documents into the tables, their records last. Doing it again changes nothing.
    fn apply(&self, writer: &mut Writer, batch: &Batch<'_>) -> Result<()> {
        if batch.numbers.is_empty() {
            return Ok(());
        }
        self.take_numbers(writer)?;
        self.insert_alike(writer, batch.numbers, batch.keys)?;
        let pairs = batch.hashes.iter().copied().zip(batch.numbers.iter().copied());
        let (again, new): (Vec<_>, Vec<_>) =
            pairs.zip(batch.earlier).partition(|(_, earlier)| earlier.is_some());
        put_numbers(&self.numbers, &new.iter().map(|(pair, _)| *pair).collect::<Vec<_>>())?;
        let blocks = writer.blocks(batch);
        self.write_blocks(writer, blocks)?;
        if again.is_empty() {
            return Ok(());
        }
        // A name leads to an earlier document until the record of the later one is durable.
        self.records.sync()?;
        put_numbers(&self.numbers, &again.iter().map(|(pair, _)| *pair).collect::<Vec<_>>())
    }

    /// Writes blocks, of which the last may get more documents.
    fn write_blocks(&self, writer: &mut Writer, blocks: Vec<(u64, Block)>) -> Result<()> {
        let encode = |(number, block): &(u64, Block)| (number.to_le_bytes(), block.encode());
        let encoded: Vec<_> = blocks.iter().map(encode).collect();
        let pairs = encoded.iter().map(|(key, bytes)| (&key[..], &bytes[..]));
        self.records.put_many(&pairs.collect::<Vec<_>>())?;
        if let Some(last) = blocks.last().filter(|(number, _)| *number >= writer.last.0) {
            writer.last = last.clone();
        }
        let names = blocks.into_iter().map(|(number, block)| (number, block.into_names()));
        self.names.note_written(names);
        Ok(())
    }

    /// Takes a document out of its block; returns the earlier one of the same name.
    fn remove_document(
        &self,
        writer: &mut Writer,
        (number, hash): (u64, Hash),
    ) -> Result<Option<u64>> {
        let (own, place) = place_of(number, writer.block_documents);
        let Some(block) = self.read_blocks(&[own])?.remove(0) else { return Ok(None) };
        let Some(entry) = block.get(place) else { return Ok(None) };
        self.write_blocks(writer, vec![(own, block.without(place))])?;
        writer.gone.push(Gone { number, hash, keys: entry.keys.to_vec() });
        Ok(entry.earlier)
    }

    /// Takes documents that are gone out of their buckets, and their names out of the table. Doing it again changes
    /// nothing, and what a crash keeps from it does no harm.
    fn clear_gone(&self, writer: &mut Writer) -> Result<()> {
        if writer.gone.is_empty() {
            return Ok(());
        }
        self.records.sync()?;
        let hashes: Vec<Hash> = writer.gone.iter().map(|gone| gone.hash).collect();
        let named = numbers_of(&self.numbers, &hashes)?;
        let generations = self.generations();
        for (Gone { number, hash, keys }, named) in writer.gone.iter().zip(named) {
            let generation = generations.iter().rev().find(|it| it.place().0 <= *number);
            generation.map_or(Ok(()), |it| it.remove(*number, keys))?;
            // It may be another document's name by now.
            if named == Some(*number) {
                self.numbers.remove(hash)?;
            }
        }
        writer.gone.clear();
        Ok(())
    }

    /// Sees to it that all numbers that were given are durably taken.
    fn take_numbers(&self, writer: &mut Writer) -> Result<()> {
        let state = &mut writer.state;
        if state.next <= state.taken && state.is_open {
            return Ok(());
        }
        state.taken = state.next + NUMBERS_TAKEN;
        self.put_state(state, false)
    }

    /// Writes the state, durably.
    fn put_state(&self, state: &mut State, is_closing: bool) -> Result<()> {
        state.is_open = !is_closing;
        if is_closing {
            state.taken = state.next;
        }
        self.records.put(STATE_KEY, &state.encode())?;
        self.records.sync()
    }

    /// Makes everything durable, and the count of documents with it.
    pub(super) fn finish(&self) -> Result<()> {
        let mut writer = self.lock_writer();
        self.commit_locked(&mut writer)?;
        self.clear_gone(&mut writer)?;
        if writer.state.is_open {
            self.sync()?;
            self.put_state(&mut writer.state, true)?;
        }
        Ok(())
    }

    /// Puts documents into the buckets of the newest generation, or of the next if that is full.
    fn insert_alike(&self, writer: &mut Writer, numbers: &[u64], keys: &[u64]) -> Result<()> {
        let end = numbers.last().map_or(0, |last| last + 1);
        let newest = self.generations().last().map(|it| it.has_space(end));
        let is_new = newest.is_none_or(|has_space| !has_space);
        if is_new {
            self.begin_generation(&mut writer.state, numbers)?;
        }
        let insert = || match self.generations().last() {
            Some(newest) => newest.insert_many(numbers, keys),
            None => Ok(()),
        };
        match insert() {
            // Buckets do not fill alike.
            Err(Error::Full { .. }) if !is_new => {
                self.begin_generation(&mut writer.state, numbers)?;
                insert()
            }
            done => done,
        }
    }

    /// Begins a generation that has space for these documents and more.
    fn begin_generation(&self, state: &mut State, numbers: &[u64]) -> Result<()> {
        let mut generations = self.generations.write().unwrap_or_else(PoisonError::into_inner);
        let before = generations.last().map_or(self.options.documents, |last| last.place().1);
        let documents = (before * GROWTH).max(2 * numbers.len() as u64);
        let shape = Shape { first: numbers[0], documents, tables: self.options.tables };
        let ram_bytes = share_of(free_bytes(&self.options, &generations));
        // One that a crash or a failure has left without a place in the state.
        Generation::drop_unfinished(&self.volume, generations.len())?;
        let next = Generation::create(&self.volume, generations.len(), shape, ram_bytes)?;
        state.generations.push(next.place());
        generations.push(next);
        self.put_state(state, false)
    }
}

fn check_name(name: &[u8]) -> Result<()> {
    if name.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    let (limit, found) = (NAME_BYTES_MAX as u64, name.len() as u64);
    Err(Error::TooLong { what: "key", limit, found, remedy: "use a hash of it as the key" })
}
