//! Documents by the bucket keys of their signatures, with any bytes as names.
//!
//! | structure | key | value | share of the RAM |
//! |---|---|---|---|
//! | `lsh-records` | a document's number | its [record](super::record); and the state of the index | 3/16 |
//! | `lsh-keys` | hash of a name | the number of the document that has it | 1/4 |
//! | `lsh-alike-*` | bucket keys | numbers of documents, in [generations](super::generation) | 9/16 |
//!
//! Records alone are believed. A document is put into its buckets first, under its name next, and its record comes
//! last; a number without a record is no document, whatever the others say. Numbers are never used twice: the state has
//! durably one that is higher than all that were.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use nandex::device::{Allocation, Create, Device, FileDevice, FileOptions, MemoryDevice};
use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig, WhenFull, table_name};
use nandex::{
    AnyConfig, AnyOptions, AnyTable, Durability, Error, LargeTable, Neighbors, OpenOptions, Policy,
    Requirements, Result, Table, Threads, Volume, VolumeOptions, bufferhash,
};

use super::generation::{Generation, Shape};
use super::record::Record;
use super::state::State;

/// The structures' names.
const RECORDS: &str = "lsh-records";
const NAMES: &str = "lsh-keys";

/// The key of the state among the records.
const STATE_KEY: &[u8] = b"state";

/// Documents for which the tables begin; they grow from there.
const DOCUMENTS_FIRST: u64 = 10_000;

/// Bytes of the log, at least and at most.
const LOG_BYTES_MIN: u64 = 8 << 20;
const LOG_BYTES_MAX: u64 = 256 << 20;

/// How many more documents each generation is for than the one before.
const GROWTH: u64 = 4;

/// Numbers that are taken at a time.
const NUMBERS: u64 = 1 << 16;

/// Numbers whose records are read at a time.
const SCANNED: u64 = 512;

/// What an index is made with and opened with.
#[derive(Clone, Debug)]
pub struct LshOptions {
    /// RAM of all its tables, in bytes.
    pub ram_bytes: u64,
    /// Documents of its first generation.
    pub documents: u64,
    /// Bucket keys of a document.
    pub tables: u32,
    /// What its owner says of it.
    pub about: String,
}

/// The index.
#[derive(Debug)]
pub struct LshIndex {
    options: LshOptions,
    volume: Volume,
    records: LargeTable<AnyTable>,
    names: AnyTable,
    generations: RwLock<Vec<Generation>>,
    /// Held by whoever changes something.
    state: Mutex<State>,
}

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

impl LshIndex {
    /// Opens the index of a file, or makes it; without a path it is in memory.
    ///
    /// # Errors
    /// A file that is something else or in use, options that cannot work, too little RAM, a failed read or write.
    pub fn create_or_open(path: Option<&Path>, options: LshOptions) -> Result<Self> {
        let first = Shape { first: 0, documents: options.documents, tables: options.tables };
        let log_bytes = first.log_bytes_best(alike_bytes(&options))? + options.ram_bytes / 32;
        let log_bytes = log_bytes.next_multiple_of(1 << 20).clamp(LOG_BYTES_MIN, LOG_BYTES_MAX);
        let create = VolumeOptions { log_bytes, ..VolumeOptions::default() };
        let Some(path) = path else {
            let (durability, threads) = (Durability::Never, Threads::Inline);
            let create = VolumeOptions { durability, threads, ..create };
            return Self::create(&Volume::create(Arc::new(MemoryDevice::new()), create)?, options);
        };
        let (create_file, allocation) = (Create::OpenOrCreate, Allocation::Sparse);
        let file = FileOptions { create: create_file, allocation, ..FileOptions::default() };
        let device = Arc::new(FileDevice::open(path, &file)?);
        if device.is_empty_file()? {
            return Self::create(&Volume::create(device as Arc<dyn Device>, create)?, options);
        }
        Self::open(&Volume::open(device as Arc<dyn Device>, OpenOptions::default())?, options)
    }

    fn create(volume: &Volume, options: LshOptions) -> Result<Self> {
        let references = (TABLE_KEY_BYTES as u32, TABLE_VALUE_BYTES as u32);
        let table = |name: &str, widths, ram_bytes| {
            AnyTable::create_with(
                volume,
                name,
                &growing(widths, ram_bytes)?,
                &table_options(volume),
            )
        };
        let under = table(&table_name(RECORDS), references, records_bytes(&options))?;
        let values = ValuesConfig::holding(0, WhenFull::Grow);
        let records = LargeTable::create(volume, RECORDS, under, values)?;
        let names = table(NAMES, (16, 8), names_bytes(&options))?;
        let shape = Shape { first: 0, documents: options.documents, tables: options.tables };
        let first = Generation::create(volume, 0, shape, alike_bytes(&options) / 2)?;
        let state = State::new(&options.about, options.tables, first.place());
        records.put(STATE_KEY, &state.encode())?;
        let generations = RwLock::new(vec![first]);
        let state = Mutex::new(state);
        Ok(Self { options, volume: volume.clone(), records, names, generations, state })
    }

    fn open(volume: &Volume, options: LshOptions) -> Result<Self> {
        let table = |name: &str, ram_bytes| {
            let mut options = table_options(volume);
            options.ram_bytes_max = Some(ram_bytes);
            AnyTable::open_with(volume, name, &options)
        };
        let under = table(&table_name(RECORDS), records_bytes(&options))?;
        let records = LargeTable::open(volume, RECORDS, under)?;
        let names = table(NAMES, names_bytes(&options))?;
        let state = State::decode(records.get(STATE_KEY)?.as_deref())?;
        state.check(&options.about, options.tables)?;
        let mut generations: Vec<Generation> = Vec::new();
        for (first, documents) in state.generations.iter().copied() {
            let shape = Shape { first, documents, tables: options.tables };
            let free = free_bytes(&options, &generations);
            generations.push(Generation::open(volume, generations.len(), shape, free / 2)?);
        }
        let is_known = state.documents.is_some();
        let (generations, state) = (RwLock::new(generations), Mutex::new(state));
        let index = Self { options, volume: volume.clone(), records, names, generations, state };
        if !is_known {
            index.recount()?;
        }
        Ok(index)
    }

    /// Counts the documents, after a crash.
    fn recount(&self) -> Result<()> {
        let (mut documents, mut from) = (0, 0);
        loop {
            let (next, records) = self.scan(from)?;
            if records.is_empty() {
                break;
            }
            documents +=
                records.iter().filter(|(_, record)| record.earlier.is_none()).count() as u64;
            from = next;
        }
        self.lock_state().documents = Some(documents);
        Ok(())
    }

    /// Bucket keys of a document.
    pub fn tables(&self) -> usize {
        self.options.tables as usize
    }

    /// How many different names there are.
    pub fn documents(&self) -> u64 {
        self.lock_state().documents.unwrap_or(0)
    }

    /// Adds documents, in their order, as if one by one: `keys` has a row for each.
    ///
    /// # Errors
    /// Too little RAM for more, no space, a failed read or write: nothing is there of these documents then.
    pub fn insert_many(&self, names: &[&[u8]], keys: &[u64], repeats: Repeats) -> Result<Inserted> {
        let mut state = self.lock_state();
        let hashes: Vec<[u8; 16]> = names.iter().map(|name| self.hash(name)).collect();
        let earlier = self.find(&hashes, names)?;
        let mut seen: HashMap<[u8; 16], usize> = HashMap::new();
        let mut before = Vec::with_capacity(names.len());
        for (place, hash) in hashes.iter().enumerate() {
            let there = seen.insert(*hash, place).map(Earlier::InBatch);
            let there = there.or(earlier[place].map(Earlier::Number));
            if there.is_some() && repeats == Repeats::Refuse {
                break;
            }
            before.push(there);
        }
        let count = before.len();
        self.apply(&mut state, (&names[..count], &hashes[..count]), keys, &before)?;
        Ok(if count == names.len() { Inserted::All } else { Inserted::Before(count) })
    }

    fn apply(
        &self,
        state: &mut State,
        (names, hashes): (&[&[u8]], &[[u8; 16]]),
        keys: &[u64],
        before: &[Option<Earlier>],
    ) -> Result<()> {
        let (count, tables) = (names.len() as u64, self.tables());
        if count == 0 {
            return Ok(());
        }
        let keys = &keys[..names.len() * tables];
        self.take_numbers(state, count)?;
        // Whatever happens, these are not used again.
        let first = state.next;
        state.next += count;
        let numbers: Vec<u64> = (first..state.next).collect();
        self.insert_alike(state, &numbers, keys)?;
        let places: Vec<[u8; 8]> = numbers.iter().map(|number| number.to_le_bytes()).collect();
        let rows = keys.chunks(tables).zip(names.iter().zip(before));
        let records: Vec<Vec<u8>> = rows
            .map(|(keys, (name, before))| {
                Record::encode(before.map(|it| it.number(first)), keys, name)
            })
            .collect();
        let by_hash = hashes.iter().zip(&places).map(|(hash, place)| (&hash[..], &place[..]));
        self.names.insert_many(&by_hash.collect::<Vec<_>>())?;
        let by_number = places.iter().zip(&records).map(|(place, it)| (&place[..], &it[..]));
        self.records.put_many(&by_number.collect::<Vec<_>>())?;
        let new = before.iter().filter(|it| it.is_none()).count() as u64;
        state.documents = state.documents.map(|documents| documents + new);
        Ok(())
    }

    /// Sees to it that at least `count` more numbers are durably taken.
    fn take_numbers(&self, state: &mut State, count: u64) -> Result<()> {
        if state.next + count <= state.taken && state.is_open {
            return Ok(());
        }
        state.taken = state.next + count.max(NUMBERS);
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

    /// Puts documents into the buckets of the newest generation, or of the next if that is full.
    fn insert_alike(&self, state: &mut State, numbers: &[u64], keys: &[u64]) -> Result<()> {
        let end = numbers.last().map_or(0, |last| last + 1);
        let newest = self.generations().last().map(|it| (it.place(), it.has_space(end)));
        let is_new = newest.is_none_or(|(_, has_space)| !has_space);
        if is_new {
            self.begin_generation(state, numbers)?;
        }
        let insert = || match self.generations().last() {
            Some(newest) => newest.insert_many(numbers, keys),
            None => Ok(()),
        };
        match insert() {
            // Buckets do not fill alike.
            Err(Error::Full { .. }) if !is_new => {
                self.begin_generation(state, numbers)?;
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
        let free = free_bytes(&self.options, &generations);
        // One that a crash or a failure has left without a place in the state.
        Generation::drop_unfinished(&self.volume, generations.len())?;
        let next = Generation::create(&self.volume, generations.len(), shape, free / 2)?;
        state.generations.push(next.place());
        generations.push(next);
        self.put_state(state, false)
    }

    /// The names that share a bucket with each row of keys, in the order of their documents.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn query_many(&self, keys: &[u64]) -> Result<Vec<Vec<Arc<[u8]>>>> {
        let tables = self.tables();
        let mut found: Vec<Vec<u64>> = vec![Vec::new(); keys.len() / tables];
        for generation in &*self.generations() {
            generation.add_candidates(keys, &mut found)?;
        }
        let mut numbers: Vec<u64> = found.iter().flatten().copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let records = self.read(&numbers)?;
        let mut known: HashMap<u64, (Arc<[u8]>, bool)> = HashMap::new();
        for (number, record) in numbers.iter().zip(records) {
            if let Some(record) = record {
                known.insert(*number, (record.name.into(), record.earlier.is_some()));
            }
        }
        let names = |row: &mut Vec<u64>| {
            row.sort_unstable();
            row.dedup();
            let there = row.iter().filter_map(|number| known.get(number));
            let may_repeat = there.clone().any(|(_, has_earlier)| *has_earlier);
            let mut seen = HashSet::new();
            let names = there.map(|(name, _)| Arc::clone(name));
            names.filter(|name| !may_repeat || seen.insert(Arc::clone(name))).collect()
        };
        Ok(found.iter_mut().map(names).collect())
    }

    /// The names of a bucket.
    ///
    /// # Errors
    /// A failed read, damage; a table that is none.
    pub fn bucket(&self, table: usize, key: u64) -> Result<Vec<Vec<u8>>> {
        let mut row = vec![!key; self.tables()];
        let Some(place) = row.get_mut(table) else {
            let reason = format!("{table}; give 0 to {}", self.tables() - 1);
            return Err(Error::Config { field: "table", reason });
        };
        *place = key;
        let mut found = [Vec::new()];
        for generation in &*self.generations() {
            generation.add_candidates(&row, &mut found)?;
        }
        let [numbers] = found;
        let records = self.read(&numbers)?.into_iter().flatten();
        // Other tables may have a bucket of the other key.
        Ok(records.filter(|it| it.keys[table] == key).map(|it| it.name).collect())
    }

    /// The records of documents by their names; none for a name that is not there.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn get_many(&self, names: &[&[u8]]) -> Result<Vec<Option<Record>>> {
        let hashes: Vec<[u8; 16]> = names.iter().map(|name| self.hash(name)).collect();
        let numbers = self.find(&hashes, names)?;
        let there: Vec<u64> = numbers.iter().flatten().copied().collect();
        let mut records = self.read(&there)?.into_iter();
        Ok(numbers.into_iter().map(|it| it.and_then(|_| records.next().flatten())).collect())
    }

    /// Takes out the documents of a name, and tells whether there was one.
    ///
    /// # Errors
    /// A failed read or write.
    pub fn remove(&self, name: &[u8]) -> Result<bool> {
        let mut state = self.lock_state();
        let hash = self.hash(name);
        let mut next = self.find(&[hash], &[name])?[0];
        if next.is_none() {
            return Ok(false);
        }
        self.take_numbers(&mut state, 0)?;
        while let Some(number) = next {
            next = None;
            if let Some(record) = self.read(&[number])?.remove(0) {
                self.records.remove(&number.to_le_bytes())?;
                let generations = self.generations();
                let own = generations.iter().rev().find(|it| it.place().0 <= number);
                own.map_or(Ok(()), |own| own.remove(number, &record.keys))?;
                next = record.earlier;
            }
        }
        self.names.remove(&hash)?;
        state.documents = state.documents.map(|documents| documents.saturating_sub(1));
        Ok(true)
    }

    /// The records of some documents from a number on, in order, and from which number to go on; none at the end.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn scan(&self, from: u64) -> Result<(u64, Vec<(u64, Record)>)> {
        let end = self.lock_state().next;
        let mut from = from;
        while from < end {
            let numbers: Vec<u64> = (from..end.min(from + SCANNED)).collect();
            from += numbers.len() as u64;
            let records = numbers.iter().copied().zip(self.read(&numbers)?);
            let there: Vec<_> = records.filter_map(|(number, it)| Some((number, it?))).collect();
            if !there.is_empty() {
                return Ok((from, there));
            }
        }
        Ok((end, Vec::new()))
    }

    /// The numbers of the documents that have these names.
    fn find(&self, hashes: &[[u8; 16]], names: &[&[u8]]) -> Result<Vec<Option<u64>>> {
        let keys: Vec<&[u8]> = hashes.iter().map(|hash| &hash[..]).collect();
        let number = |value: &[u8]| <[u8; 8]>::try_from(value).map_or(u64::MAX, u64::from_le_bytes);
        let found = self.names.get_many(&keys)?;
        let mut found: Vec<Option<u64>> =
            found.into_iter().map(|it| it.map(|value| number(&value))).collect();
        let there: Vec<u64> = found.iter().flatten().copied().collect();
        if there.is_empty() {
            return Ok(found);
        }
        let mut records = self.read(&there)?.into_iter();
        for (found, name) in found.iter_mut().zip(names) {
            if found.is_some() && records.next().flatten().is_none_or(|it| it.name != *name) {
                *found = None;
            }
        }
        Ok(found)
    }

    fn read(&self, numbers: &[u64]) -> Result<Vec<Option<Record>>> {
        let keys: Vec<[u8; 8]> = numbers.iter().map(|number| number.to_le_bytes()).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let found = self.records.get_many(&keys)?.into_iter().zip(numbers);
        let decode = |(bytes, number): (Option<Vec<u8>>, &u64)| {
            bytes.map(|bytes| Record::decode(&bytes, self.tables(), *number)).transpose()
        };
        found.map(decode).collect()
    }

    fn hash(&self, name: &[u8]) -> [u8; 16] {
        let hash = self.volume.hasher().hash(name);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&hash.place.to_le_bytes());
        bytes[8..].copy_from_slice(&hash.filter.to_le_bytes());
        bytes
    }

    /// Makes everything durable.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn sync(&self) -> Result<()> {
        self.generations().iter().flat_map(Generation::groups).try_for_each(Neighbors::sync)?;
        self.names.sync()?;
        self.records.sync()
    }

    /// RAM and flash that it takes, in bytes, and its generations.
    pub fn sizes(&self) -> (u64, u64, usize) {
        let (records, names) = (self.records.stats(), self.names.stats());
        let generations = self.generations();
        let alike: Vec<_> =
            generations.iter().flat_map(Generation::groups).map(Neighbors::stats).collect();
        let ram_bytes = alike.iter().map(|it| it.ram_bytes).sum::<u64>();
        let flash_bytes = alike.iter().map(|it| it.flash_bytes).sum::<u64>();
        let flash_bytes = flash_bytes
            + records.table.flash_bytes
            + records.values.flash_bytes
            + names.flash_bytes;
        (ram_bytes + records.ram_bytes + names.ram_bytes, flash_bytes, generations.len())
    }

    /// Ids that full buckets have dropped since the opening.
    pub fn dropped(&self) -> u64 {
        let generations = self.generations();
        generations.iter().flat_map(Generation::groups).map(|it| it.stats().dropped).sum()
    }

    /// Makes everything durable and closes the file.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn close(self) -> Result<()> {
        if self.lock_state().is_open {
            self.sync()?;
            self.put_state(&mut self.lock_state(), true)?;
        }
        let Self { records, names, generations, .. } = self;
        let generations = generations.into_inner().unwrap_or_else(PoisonError::into_inner);
        generations.into_iter().try_for_each(Generation::close)?;
        names.close()?;
        records.close()
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn generations(&self) -> RwLockReadGuard<'_, Vec<Generation>> {
        self.generations.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a document of the same name is.
#[derive(Clone, Copy, Debug)]
enum Earlier {
    /// That many documents after the first of the batch.
    InBatch(usize),
    Number(u64),
}

impl Earlier {
    fn number(self, first: u64) -> u64 {
        match self {
            Self::InBatch(place) => first + place as u64,
            Self::Number(number) => number,
        }
    }
}

fn records_bytes(options: &LshOptions) -> u64 {
    options.ram_bytes / 16 * 3
}

fn names_bytes(options: &LshOptions) -> u64 {
    options.ram_bytes / 4
}

fn alike_bytes(options: &LshOptions) -> u64 {
    options.ram_bytes / 16 * 9
}

/// What generations leave of their share of the RAM.
fn free_bytes(options: &LshOptions, generations: &[Generation]) -> u64 {
    let taken = generations.iter().map(Generation::ram_bytes).sum();
    alike_bytes(options).saturating_sub(taken)
}

/// A growing BufferHash, for keys that are asked for before they are there.
fn growing((key_bytes, value_bytes): (u32, u32), ram_bytes: u64) -> Result<AnyConfig> {
    let asked = Requirements::new(DOCUMENTS_FIRST, key_bytes, value_bytes).ram(ram_bytes);
    let asked = Requirements { policy: Policy::Grow, ..asked };
    bufferhash::growing::Config::advised(&asked).map(AnyConfig::from).map_err(|error| {
        let reason =
            format!("too little for the table of keys ({error}); give the index more with `ram`");
        Error::Config { field: "ram", reason }
    })
}

/// Structures of a volume without threads have none.
fn table_options(volume: &Volume) -> AnyOptions {
    if volume.threads() == Threads::Background {
        return AnyOptions::default();
    }
    let usual = bufferhash::RuntimeOptions::default();
    AnyOptions::default().with(bufferhash::RuntimeOptions { flush_threads: 0, ..usual })
}
