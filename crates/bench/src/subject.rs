//! The seam between workloads and engines: what a workload needs, and who offers it.
//!
//! A [`Maker`] creates or reopens one engine; a [`Subject`] is the open engine; a [`Lane`] is one
//! thread's view of it, so that engines with transactions can keep one open across calls. nandex's own
//! rooms are wired here; `nandex-peers` adds makers of its own and changes nothing else.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use nandex::oracle::MapTable;
use nandex::{Table, TableStats};
use serde::{Deserialize, Serialize};

use crate::bufferhash::BufferHashRoom;
use crate::room;
use crate::slicehash::SliceHashRoom;
use crate::sorted::{Batches, Order};
use crate::workload::{KEY_BYTES, VALUE_BYTES};

/// When an acknowledged write is durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// When the call returns.
    Always,
    /// Some milliseconds later; the engine's own default interval.
    Every,
    /// When the engine flushes, or at the sync that ends the timed load.
    Never,
}

/// What an engine is asked to be.
#[derive(Clone, PartialEq, Debug)]
pub struct Spec {
    /// Where its files go; the directory exists.
    pub dir: PathBuf,
    /// Entries it will hold.
    pub entries: u64,
    /// RAM it may use in all.
    pub ram_bytes: u64,
    /// Device operations in flight per lane.
    pub depth: usize,
    /// Lanes used at once.
    pub threads: usize,
    /// When writes must last.
    pub durability: Durability,
}

/// Creates, reopens and removes one kind of engine.
pub trait Maker {
    /// The engine's name in reports.
    fn name(&self) -> &str;

    /// Does it keep its entries when it is dropped and opened again?
    fn lasting(&self) -> bool {
        true
    }

    /// Does it take writes from one thread at a time? Then one thread loads it: more would only wait,
    /// each with buffers of its own.
    fn has_one_writer(&self) -> bool {
        false
    }

    /// An empty engine; what an earlier one left in the directory is removed.
    ///
    /// # Errors
    /// Whatever the engine or the file system refuses.
    fn create(&self, spec: &Spec) -> Result<Box<dyn Subject>>;

    /// The engine that `create` made with the same spec and that was dropped since.
    ///
    /// # Errors
    /// As `create`, and when there is none.
    fn open(&self, spec: &Spec) -> Result<Box<dyn Subject>>;
}

/// An open engine.
pub trait Subject: Send + Sync {
    /// One thread's view.
    ///
    /// # Errors
    /// Whatever the engine refuses.
    fn lane(&self) -> Result<Box<dyn Lane + '_>>;

    /// Makes everything written so far durable; part of the timed load.
    ///
    /// # Errors
    /// A failed write or sync.
    fn sync(&self) -> Result<()>;

    /// The order in which it keeps its keys.
    fn order(&self) -> Order {
        Order::Number
    }

    /// Begins a load in that order of an empty engine, by the fastest way the engine has.
    ///
    /// # Errors
    /// Whatever the engine refuses.
    fn bulk(&self) -> Result<Box<dyn Bulk + '_>>;

    /// Waits for work in the background (compactions) to end; not timed, but its bytes count.
    ///
    /// # Errors
    /// A failure of that work.
    fn settle(&self) -> Result<()> {
        Ok(())
    }

    /// The engine's own figures since it was opened, where it keeps them in nandex's terms.
    fn stats(&self) -> Option<TableStats> {
        None
    }

    /// RAM the engine says it holds.
    fn ram_bytes(&self) -> Option<u64> {
        self.stats().map(|stats| stats.ram_bytes)
    }
}

/// One thread's view of an engine.
pub trait Lane {
    /// Puts one pair.
    ///
    /// # Errors
    /// Whatever the engine refuses.
    fn insert(&mut self, key: u64, value: u64) -> Result<()>;

    /// Puts each pair, in one call of the engine where it has one.
    ///
    /// # Errors
    /// Whatever the engine refuses.
    fn insert_many(&mut self, pairs: &[(u64, u64)]) -> Result<()>;

    /// The value under `key`.
    ///
    /// # Errors
    /// Whatever the engine refuses.
    fn get(&mut self, key: u64) -> Result<Option<u64>>;

    /// Appends the values under all `keys` to `found`, in one call of the engine where it has one.
    ///
    /// # Errors
    /// Whatever the engine refuses.
    fn get_many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()>;

    /// Looks up all `keys` and gives each answer to `answer` with its key, in any order. Engines that can
    /// keep the device's queue full from the first key to the last do so; others take batches of `batch`.
    ///
    /// # Errors
    /// Whatever the engine or `answer` refuses.
    fn stream(
        &mut self,
        keys: &mut dyn Iterator<Item = u64>,
        batch: usize,
        answer: &mut dyn FnMut(u64, Option<u64>) -> Result<()>,
    ) -> Result<()> {
        let (mut some, mut found) = (Vec::new(), Vec::new());
        loop {
            some.clear();
            some.extend((&mut *keys).take(batch));
            if some.is_empty() {
                return Ok(());
            }
            found.clear();
            self.get_many(&some, &mut found)?;
            some.iter().zip(&found).try_for_each(|(&key, &value)| answer(key, value))?;
        }
    }

    /// Ends what is open, such as a transaction; the last call, and timed.
    ///
    /// # Errors
    /// Whatever the engine refuses.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A load in key order. It is never timed.
pub trait Bulk {
    /// Puts pairs that ascend in the engine's order and come after all that were put before.
    ///
    /// # Errors
    /// Whatever the engine refuses.
    fn append(&mut self, sorted: &[(u64, u64)]) -> Result<()>;

    /// Ends the load and makes it durable.
    ///
    /// # Errors
    /// A failed write or sync.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// The engines of nandex itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Index {
    /// A `HashMap` behind a lock: no flash, the ceiling of what the harness can measure.
    Oracle,
    /// NSDI'10's buffered hash table, in a file of the directory.
    Bufferhash,
    /// ANCS'14's sliced hash table, in a file of the directory.
    Slicehash,
}

impl Maker for Index {
    fn name(&self) -> &str {
        match self {
            Self::Oracle => "oracle",
            Self::Bufferhash => "bufferhash",
            Self::Slicehash => "slicehash",
        }
    }

    fn lasting(&self) -> bool {
        match self {
            Self::Oracle => false,
            Self::Bufferhash | Self::Slicehash => true,
        }
    }

    fn create(&self, spec: &Spec) -> Result<Box<dyn Subject>> {
        match self {
            Self::Oracle => Ok(Box::new(TableSubject(MapTable::new(KEY_BYTES, VALUE_BYTES)))),
            Self::Bufferhash => room::create::<BufferHashRoom>(spec),
            Self::Slicehash => room::create::<SliceHashRoom>(spec),
        }
    }

    fn open(&self, spec: &Spec) -> Result<Box<dyn Subject>> {
        match self {
            Self::Oracle => bail!("the oracle keeps nothing; load it anew"),
            Self::Bufferhash => room::open::<BufferHashRoom>(spec),
            Self::Slicehash => room::open::<SliceHashRoom>(spec),
        }
    }
}

/// Any room that implements [`Table`] with 8-byte keys and values.
#[derive(Debug)]
pub struct TableSubject<T>(pub T);

impl<T: Table> Subject for TableSubject<T> {
    fn lane(&self) -> Result<Box<dyn Lane + '_>> {
        Ok(Box::new(TableLane { table: &self.0, keys: Vec::new(), values: Vec::new() }))
    }

    fn sync(&self) -> Result<()> {
        Ok(self.0.sync()?)
    }

    fn bulk(&self) -> Result<Box<dyn Bulk + '_>> {
        Ok(Box::new(Batches { lane: self.lane()?, subject: self }))
    }

    fn stats(&self) -> Option<TableStats> {
        Some(self.0.stats())
    }
}

/// Bytes of keys and values, kept so that a batch costs one allocation and not three.
struct TableLane<'a, T> {
    table: &'a T,
    keys: Vec<[u8; KEY_BYTES]>,
    values: Vec<[u8; VALUE_BYTES]>,
}

impl<T: Table> Lane for TableLane<'_, T> {
    fn insert(&mut self, key: u64, value: u64) -> Result<()> {
        Ok(self.table.insert(&key.to_le_bytes(), &value.to_le_bytes())?)
    }

    fn insert_many(&mut self, pairs: &[(u64, u64)]) -> Result<()> {
        self.keys.clear();
        self.values.clear();
        self.keys.extend(pairs.iter().map(|pair| pair.0.to_le_bytes()));
        self.values.extend(pairs.iter().map(|pair| pair.1.to_le_bytes()));
        let values = self.values.iter().map(<[u8; VALUE_BYTES]>::as_slice);
        let pairs: Vec<_> = self.keys.iter().map(<[u8; KEY_BYTES]>::as_slice).zip(values).collect();
        Ok(self.table.insert_many(&pairs)?)
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        self.table.get(&key.to_le_bytes())?.as_deref().map(number).transpose()
    }

    fn get_many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()> {
        self.keys.clear();
        self.keys.extend(keys.iter().map(|key| key.to_le_bytes()));
        let keys: Vec<_> = self.keys.iter().map(<[u8; KEY_BYTES]>::as_slice).collect();
        for value in self.table.get_many(&keys)? {
            found.push(value.as_deref().map(number).transpose()?);
        }
        Ok(())
    }

    /// The table keeps as many reads in flight as it was opened for, whatever the batch.
    fn stream(
        &mut self,
        keys: &mut dyn Iterator<Item = u64>,
        _batch: usize,
        answer: &mut dyn FnMut(u64, Option<u64>) -> Result<()>,
    ) -> Result<()> {
        let mut stream = self.table.stream()?;
        for key in keys {
            stream.push(&key.to_le_bytes(), key)?;
            while let Some((key, value)) = stream.poll()? {
                answer(key, value.as_deref().map(number).transpose()?)?;
            }
        }
        while let Some((key, value)) = stream.pull()? {
            answer(key, value.as_deref().map(number).transpose()?)?;
        }
        Ok(())
    }
}

/// The value an engine gave back, as the number that was put in.
///
/// # Errors
/// A value of another width than was put in.
pub fn number(bytes: &[u8]) -> Result<u64> {
    let bytes = bytes.try_into();
    let bytes = bytes.with_context(|| format!("a value came back not {VALUE_BYTES} bytes wide"))?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_gives_back_what_was_put_in_singly_and_in_batches() {
        let subject = TableSubject(MapTable::new(KEY_BYTES, VALUE_BYTES));
        let mut lane = subject.lane().unwrap();
        lane.insert(1, 10).unwrap();
        lane.insert_many(&[(2, 20), (3, 30)]).unwrap();
        let mut found = Vec::new();
        lane.get_many(&[1, 2, 4], &mut found).unwrap();
        assert_eq!(found, [Some(10), Some(20), None]);
        assert_eq!(lane.get(3).unwrap(), Some(30));
        let mut answers = Vec::new();
        let mut answer = |key, value| {
            answers.push((key, value));
            Ok(())
        };
        lane.stream(&mut [3, 9].into_iter(), 1, &mut answer).unwrap();
        assert_eq!(answers, [(3, Some(30)), (9, None)]);
    }

    #[test]
    fn a_value_of_another_width_is_an_error() {
        assert!(number(&[1, 2, 3]).is_err());
    }
}
