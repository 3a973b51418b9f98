//! The seam between workloads and filters: what a workload needs, and who offers it.

use std::path::PathBuf;

use anyhow::{Result, bail};
use nandex::{Counter, Filter, FilterStats};

use crate::subject::Durability;
use crate::workload::KEY_BYTES;

/// 64 bits of a key: one multiplication, folded. Filters in RAM that take hashes all get this one, so that
/// it is not their hashers that are compared.
#[inline]
#[must_use]
pub const fn hash(key: u64) -> u64 {
    let product = (key ^ 0x2D35_8DCC_AA6C_78A5) as u128 * 0x8BB8_4B93_962E_ACC9;
    (product >> 64) as u64 ^ product as u64
}

/// What a filter is asked to be.
#[derive(Clone, PartialEq, Debug)]
pub struct FilterSpec {
    /// Where its files go; the directory exists.
    pub dir: PathBuf,
    /// Keys it will hold.
    pub keys: u64,
    /// Rate of false positives at that many keys, at most.
    pub rate: f64,
    /// RAM it may use in all, where it is on flash.
    pub ram_bytes: u64,
    /// Levels on flash between one and the next: how many times larger, where it has levels.
    pub fan_out: Option<u32>,
    /// Device operations in flight per lane.
    pub depth: usize,
    /// Lanes used at once.
    pub threads: usize,
    /// When changes must last.
    pub durability: Durability,
    /// Will it count?
    pub counts: Counts,
}

/// What is kept of a key beside that it is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counts {
    /// Nothing.
    Membership,
    /// How often it was added.
    Kept,
}

/// What only some filters can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ability {
    /// Take inserts at any time, between lookups too.
    Change,
    /// Take back an insert.
    Delete,
    /// Say how often a key was added.
    Count,
}

/// Creates and reopens one kind of filter.
pub trait FilterMaker {
    /// The filter's name in reports.
    fn name(&self) -> &str;

    /// Is it on flash? Then it is there again when it is dropped and opened.
    fn on_flash(&self) -> bool;

    /// Can it do this?
    fn can(&self, ability: Ability) -> bool;

    /// An empty filter; what an earlier one left in the directory is removed.
    ///
    /// # Errors
    /// Whatever the filter or the file system refuses.
    fn create(&self, spec: &FilterSpec) -> Result<Box<dyn FilterSubject>>;

    /// The filter that `create` made with the same spec and that was dropped since.
    ///
    /// # Errors
    /// As `create`, and when there is none.
    fn open(&self, spec: &FilterSpec) -> Result<Box<dyn FilterSubject>>;
}

/// An open filter.
pub trait FilterSubject: Send + Sync {
    /// One thread's view.
    ///
    /// # Errors
    /// Whatever the filter refuses.
    fn lane(&self) -> Result<Box<dyn FilterLane + '_>>;

    /// Makes everything so far durable; a static filter is built here. Part of the timed inserts.
    ///
    /// # Errors
    /// A failed write or sync.
    fn sync(&self) -> Result<()>;

    /// Puts everything buffered on flash, and waits for merges; not timed.
    ///
    /// # Errors
    /// As `sync`.
    fn settle(&self) -> Result<()>;

    /// How it is now.
    fn state(&self) -> State;
}

/// How a filter is at one moment.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct State {
    /// Keys or fingerprints held, where it knows.
    pub entries: Option<u64>,
    /// RAM it says it holds.
    pub ram_bytes: u64,
    /// Flash it occupies.
    pub flash_bytes: u64,
    /// The rate of false positives it says it has now.
    pub rate: f64,
    /// Pages read by lookups since it was opened, where it counts them.
    pub lookup_reads: Option<u64>,
    /// Levels on flash that lookups ask.
    pub levels: Option<u64>,
}

impl From<FilterStats> for State {
    fn from(stats: FilterStats) -> Self {
        Self {
            entries: Some(stats.entries),
            ram_bytes: stats.ram_bytes,
            flash_bytes: stats.flash_bytes,
            rate: stats.rate,
            lookup_reads: Some(stats.lookup_reads),
            levels: Some(stats.levels.len() as u64),
        }
    }
}

/// One thread's view of a filter. Keys come as numbers; each filter hashes them as its users would.
pub trait FilterLane {
    /// Notes a key.
    ///
    /// # Errors
    /// Whatever the filter refuses.
    fn insert(&mut self, key: u64) -> Result<()>;

    /// Notes each key, in one call of the filter where it has one.
    ///
    /// # Errors
    /// Whatever the filter refuses.
    fn insert_many(&mut self, keys: &[u64]) -> Result<()>;

    /// Is it there?
    ///
    /// # Errors
    /// Whatever the filter refuses.
    fn contains(&mut self, key: u64) -> Result<bool>;

    /// Appends to `found` which of `keys` are there, in one call of the filter where it has one.
    ///
    /// # Errors
    /// Whatever the filter refuses.
    fn contains_many(&mut self, keys: &[u64], found: &mut Vec<bool>) -> Result<()>;

    /// Takes back one insert of each key.
    ///
    /// # Errors
    /// Whatever the filter refuses.
    fn delete_many(&mut self, keys: &[u64]) -> Result<()> {
        bail!("{} keys to delete from a filter that cannot delete", keys.len())
    }

    /// Adds 1 to the count of each key.
    ///
    /// # Errors
    /// Whatever the filter refuses.
    fn add_many(&mut self, keys: &[u64]) -> Result<()> {
        bail!("{} keys to count by a filter that cannot count", keys.len())
    }

    /// Appends the counts of `keys` to `counts`.
    ///
    /// # Errors
    /// Whatever the filter refuses.
    fn count_many(&mut self, keys: &[u64], counts: &mut Vec<u64>) -> Result<()> {
        let _ = counts;
        bail!("{} counts asked of a filter that cannot count", keys.len())
    }
}

/// Any room that implements [`Filter`].
pub struct RoomSubject<F> {
    /// The filter.
    pub filter: F,
    /// The same, as a counter, where it is one.
    pub counter: Option<fn(&F) -> &dyn Counter>,
}

impl<F: Filter> FilterSubject for RoomSubject<F> {
    fn lane(&self) -> Result<Box<dyn FilterLane + '_>> {
        let counter = self.counter.map(|counter| counter(&self.filter));
        Ok(Box::new(RoomLane { filter: &self.filter, counter, keys: Vec::new() }))
    }

    fn sync(&self) -> Result<()> {
        Ok(self.filter.sync()?)
    }

    fn settle(&self) -> Result<()> {
        Ok(self.filter.flush()?)
    }

    fn state(&self) -> State {
        self.filter.stats().into()
    }
}

/// Bytes of keys, kept so that a batch costs one allocation and not two.
struct RoomLane<'a, F> {
    filter: &'a F,
    counter: Option<&'a dyn Counter>,
    keys: Vec<[u8; KEY_BYTES]>,
}

impl<F> RoomLane<'_, F> {
    fn bytes(&mut self, keys: &[u64]) -> Vec<&[u8]> {
        self.keys.clear();
        self.keys.extend(keys.iter().map(|key| key.to_le_bytes()));
        self.keys.iter().map(<[u8; KEY_BYTES]>::as_slice).collect()
    }

    fn counter(&self) -> Result<&dyn Counter> {
        match self.counter {
            Some(counter) => Ok(counter),
            None => bail!("this filter was made without counts"),
        }
    }
}

impl<F: Filter> FilterLane for RoomLane<'_, F> {
    fn insert(&mut self, key: u64) -> Result<()> {
        Ok(self.filter.insert(&key.to_le_bytes())?)
    }

    fn insert_many(&mut self, keys: &[u64]) -> Result<()> {
        let filter = self.filter;
        Ok(filter.insert_many(&self.bytes(keys))?)
    }

    fn contains(&mut self, key: u64) -> Result<bool> {
        Ok(self.filter.contains(&key.to_le_bytes())?)
    }

    fn contains_many(&mut self, keys: &[u64], found: &mut Vec<bool>) -> Result<()> {
        let filter = self.filter;
        found.extend(filter.contains_many(&self.bytes(keys))?);
        Ok(())
    }

    fn delete_many(&mut self, keys: &[u64]) -> Result<()> {
        let filter = self.filter;
        Ok(filter.delete_many(&self.bytes(keys))?)
    }

    fn add_many(&mut self, keys: &[u64]) -> Result<()> {
        let bytes: Vec<_> = keys.iter().map(|key| key.to_le_bytes()).collect();
        let amounts: Vec<_> = bytes.iter().map(|key| (key.as_slice(), 1)).collect();
        Ok(self.counter()?.add_many(&amounts)?)
    }

    fn count_many(&mut self, keys: &[u64], counts: &mut Vec<u64>) -> Result<()> {
        let bytes: Vec<_> = keys.iter().map(|key| key.to_le_bytes()).collect();
        let bytes: Vec<_> = bytes.iter().map(<[u8; KEY_BYTES]>::as_slice).collect();
        counts.extend(self.counter()?.count_many(&bytes)?);
        Ok(())
    }
}
