//! redb, tuned for a load that may be lost and for random lookups.
//!
//! * `Durability::None` commits of 65,536 inserts, with an immediate one after every sixteenth, because
//!   pages that a volatile commit frees are only reused after a durable one; at `--durability always`
//!   every call is an immediate commit. The load ends with an immediate commit, which is timed.
//! * Batches are sorted first, so that neighbours in the tree are touched together.
//! * redb has no bulk loader, and splits a full page in halves even at the end of the tree. So a load in
//!   key order puts in 13 of each 25 pairs, which leaves pages that are half full, and then the other 12,
//!   which fills them to 97 %.
//! * The cache is five eighths of the budget; redb reads through the page cache, which has the rest. For a
//!   table of many times the budget it is a fifth: leaves that are read once push the branches out of redb's
//!   cache, and the kernel keeps pages that were read twice (measured: 1.06 reads per hit, else 1.29).
//! * Values of 8 bytes are redb's integers, which need no lengths; longer ones are its slices, with 4 bytes more each.
//! * One read transaction and open table per thread. redb has no batched lookup; a batch is a loop.

use std::marker::PhantomData;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use nandex_bench::keys::VALUE_BYTES;
use nandex_bench::subject::{Bulk, Client, Durability, Spec, Subject};
use nandex_bench::values::Values;
use redb::{Database, ReadOnlyTable, ReadableDatabase, Table, TableDefinition, TableError, Value};

use crate::budget::part;

/// Inserts per write transaction.
const COMMIT_AFTER: usize = 1 << 16;
/// The number of commits for each durable one.
const DURABLE_EVERY: u64 = 16;
/// The number of pairs in key order for each [`FIRST`] of them that the first round of a load inserts.
const ROUND: usize = 25;
/// The pairs of the first round: 255 pairs fill a leaf, and 128 stay in it after a split: 128 * 25 / 13 is
/// 246.
const FIRST: usize = 13;

/// Opens the database in `dir`, or creates it.
pub fn open(dir: &Path, spec: &Spec) -> Result<Box<dyn Subject>> {
    Ok(match spec.value_bytes {
        VALUE_BYTES => Box::new(Redb::<u64>::open(dir, spec)?),
        _ => Box::new(Redb::<&[u8]>::open(dir, spec)?),
    })
}

/// A type of redb that values are stored as.
trait Stored: Value + Send + Sync + 'static {
    /// Puts the value of `number` under `key`.
    fn put(
        table: &mut Table<'_, u64, Self>,
        key: u64,
        number: u64,
        values: &mut Values,
    ) -> Result<()>
    where
        Self: Sized;

    /// Returns the number of a value that was read.
    fn number(value: Self::SelfType<'_>, values: &Values) -> Result<u64>;
}

impl Stored for u64 {
    fn put(
        table: &mut Table<'_, u64, u64>,
        key: u64,
        number: u64,
        _values: &mut Values,
    ) -> Result<()> {
        table.insert(key, number)?;
        Ok(())
    }

    fn number(value: u64, _values: &Values) -> Result<u64> {
        Ok(value)
    }
}

impl Stored for &'static [u8] {
    fn put(
        table: &mut Table<'_, u64, Self>,
        key: u64,
        number: u64,
        values: &mut Values,
    ) -> Result<()> {
        table.insert(key, values.one(number))?;
        Ok(())
    }

    fn number(value: &[u8], values: &Values) -> Result<u64> {
        values.number(value)
    }
}

fn table<V: Stored>() -> TableDefinition<'static, u64, V> {
    TableDefinition::new("entries")
}

/// An open redb database.
struct Redb<V> {
    database: Database,
    commit_after: usize,
    always: bool,
    value_bytes: usize,
    waiting: Mutex<Waiting>,
    stored: PhantomData<fn() -> V>,
}

/// The inserts and removals of all threads for the next transaction: redb's own write transaction cannot
/// outlive a call together with its table, so they are collected here, in one place for all threads.
struct Waiting {
    /// The keys with their new values; a removed key has none.
    changes: Vec<(u64, Option<u64>)>,
    commits: u64,
    values: Values,
}

impl<V: Stored> Redb<V> {
    fn open(dir: &Path, spec: &Spec) -> Result<Self> {
        let much_larger = spec.entries.saturating_mul(spec.entry_bytes()) > 8 * spec.ram_bytes;
        let (numerator, denominator) = if much_larger { (1, 5) } else { (5, 8) };
        let cache = part(spec.ram_bytes, numerator, denominator);
        let database =
            Database::builder().set_cache_size(cache).create(dir.join("entries.redb"))?;
        let always = spec.durability == Durability::Always;
        let commit_after = if always { 1 } else { COMMIT_AFTER };
        let (value_bytes, values) = (spec.value_bytes, Values::new(spec.value_bytes));
        let waiting = Mutex::new(Waiting { changes: Vec::new(), commits: 0, values });
        Ok(Self { database, commit_after, always, value_bytes, waiting, stored: PhantomData })
    }

    fn insert(&self, pairs: &[(u64, u64)]) -> Result<()> {
        self.change(pairs.iter().map(|&(key, value)| (key, Some(value))))
    }

    fn change(&self, changes: impl Iterator<Item = (u64, Option<u64>)>) -> Result<()> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.changes.extend(changes);
        if waiting.changes.len() >= self.commit_after { self.commit(&mut waiting) } else { Ok(()) }
    }

    fn flush(&self) -> Result<()> {
        self.commit(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn commit(&self, waiting: &mut Waiting) -> Result<()> {
        if waiting.changes.is_empty() {
            return Ok(());
        }
        // A stable sort, so that of two changes of one key the later one stays.
        waiting.changes.sort_by_key(|change| change.0);
        waiting.commits += 1;
        let durable = self.always || waiting.commits.is_multiple_of(DURABLE_EVERY);
        let mut write = self.database.begin_write()?;
        write.set_durability(if durable {
            redb::Durability::Immediate
        } else {
            redb::Durability::None
        })?;
        {
            let mut table = write.open_table(table::<V>())?;
            for &(key, value) in &waiting.changes {
                match value {
                    Some(value) => V::put(&mut table, key, value, &mut waiting.values)?,
                    None => drop(table.remove(key)?),
                }
            }
        }
        write.commit()?;
        waiting.changes.clear();
        Ok(())
    }
}

impl<V: Stored> Subject for Redb<V> {
    fn client(&self) -> Result<Box<dyn Client + '_>> {
        let values = Values::new(self.value_bytes);
        Ok(Box::new(RedbClient { redb: self, table: None, inserted: false, values }))
    }

    fn sync(&self) -> Result<()> {
        let mut write = self.database.begin_write()?;
        write.set_durability(redb::Durability::Immediate)?;
        write.open_table(table::<V>())?;
        Ok(write.commit()?)
    }

    fn bulk(&self) -> Result<Option<Box<dyn Bulk + '_>>> {
        Ok(Some(Box::new(RedbBulk { redb: self })))
    }
}

struct RedbBulk<'a, V> {
    redb: &'a Redb<V>,
}

impl<V: Stored> RedbBulk<'_, V> {
    /// Inserts the pairs at the wanted positions.
    fn round(&self, sorted: &[(u64, u64)], wanted: impl Fn(usize) -> bool) -> Result<()> {
        let places = sorted.iter().enumerate();
        let pairs = places.filter(|(place, _)| wanted(place * FIRST % ROUND));
        pairs.map(|(_, pair)| *pair).try_for_each(|pair| self.redb.insert(&[pair]))?;
        self.redb.flush()
    }
}

impl<V: Stored> Bulk for RedbBulk<'_, V> {
    fn append(&mut self, sorted: &[(u64, u64)]) -> Result<()> {
        self.round(sorted, |place| place < FIRST)?;
        self.round(sorted, |place| place >= FIRST)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.redb.sync()
    }
}

struct RedbClient<'a, V: Stored> {
    redb: &'a Redb<V>,
    table: Option<ReadOnlyTable<u64, V>>,
    /// Whether this thread has changed anything since its last lookup. If so, its table is out of date.
    inserted: bool,
    values: Values,
}

impl<V: Stored> RedbClient<'_, V> {
    fn table(&mut self) -> Result<Option<&ReadOnlyTable<u64, V>>> {
        if self.table.is_none() {
            self.table = match self.redb.database.begin_read()?.open_table(table::<V>()) {
                Err(TableError::TableDoesNotExist(_)) => return Ok(None),
                table => Some(table?),
            };
        }
        Ok(self.table.as_ref())
    }
}

impl<V: Stored> Client for RedbClient<'_, V> {
    fn insert(&mut self, key: u64, value: u64) -> Result<()> {
        self.insert_many(&[(key, value)])
    }

    fn insert_many(&mut self, pairs: &[(u64, u64)]) -> Result<()> {
        self.inserted = true;
        self.redb.insert(pairs)
    }

    fn delete_many(&mut self, keys: &[u64]) -> Result<()> {
        self.inserted = true;
        self.redb.change(keys.iter().map(|&key| (key, None)))
    }

    fn replace_many(&mut self, removed: &[u64], pairs: &[(u64, u64)]) -> Result<()> {
        self.inserted = true;
        let removed = removed.iter().map(|&key| (key, None));
        let inserted = pairs.iter().map(|&(key, value)| (key, Some(value)));
        self.redb.change(removed.chain(inserted))
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        self.finish()?;
        let found = match self.table()? {
            Some(table) => table.get(key)?,
            None => None,
        };
        found.map(|value| V::number(value.value(), &self.values)).transpose()
    }

    fn get_many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()> {
        for &key in keys {
            found.push(self.get(key)?);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        if std::mem::take(&mut self.inserted) {
            self.table = None;
            self.redb.flush()?;
        }
        Ok(())
    }
}
