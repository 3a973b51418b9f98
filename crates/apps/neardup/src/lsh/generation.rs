//! Generations of buckets: an index begins with a small one, and each full one is followed by a larger one.
//!
//! Documents have rising numbers, so the number says which generation has a document's buckets. A lookup asks all of
//! them. Tables beyond the most that a SliceLSH takes are in more of these, which a generation has side by side.

use nandex::slicelsh::{Config, RuntimeOptions, TABLES_MAX};
use nandex::{Error, Neighbors, NeighborsRequirements, Policy, Result, SliceLsh, Volume};

/// Ids that a bucket keeps: as many as a page has.
const BUCKET_IDS_MAX: u32 = 253;

/// RAM of the filter of a full index for an entry, in bits.
const FILTER_BITS: u64 = 12;

/// Buckets of documents from a number on.
#[derive(Debug)]
pub(super) struct Generation {
    first: u64,
    documents: u64,
    /// One for each 64 tables.
    groups: Vec<SliceLsh>,
    ram_bytes: u64,
}

/// What decides of a generation's shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The number of the first document.
    pub(super) first: u64,
    /// Documents that it is made for.
    pub(super) documents: u64,
    /// Tables in all groups.
    pub(super) tables: u32,
}

impl Shape {
    fn groups(self) -> impl Iterator<Item = u32> {
        let whole = (0..self.tables / TABLES_MAX).map(|_| TABLES_MAX);
        whole.chain(Some(self.tables % TABLES_MAX).filter(|rest| *rest > 0))
    }

    /// The configuration of a group, in that much RAM and for that log.
    fn config(self, tables: u32, ram_bytes: u64, log_bytes: Option<u64>) -> Result<Config> {
        let asked = NeighborsRequirements {
            bucket_ids_max: BUCKET_IDS_MAX,
            policy: Policy::Reject,
            ..NeighborsRequirements::new(self.documents, tables)
        };
        let log_bytes = log_bytes.unwrap_or(u64::MAX);
        let mut config = Config::advised(&asked)?;
        // Smaller buffers are merged more often.
        while config.ram_bytes() > ram_bytes || config.log_bytes_best() > log_bytes {
            let smaller = Some((config.ram_bytes() / 4 * 3).min(ram_bytes));
            config =
                Config::advised(&NeighborsRequirements { ram_bytes: smaller, ..asked.clone() })
                    .map_err(|error| self.too_little(&error))?;
        }
        Ok(config)
    }

    fn too_little(self, error: &Error) -> Error {
        let documents = self.first + self.documents;
        Error::Config {
            field: "ram",
            reason: format!(
                "too little for the buckets of {documents} documents ({error}); give the index more with `ram`"
            ),
        }
    }

    /// The length of the log that it works well with, in bytes.
    ///
    /// # Errors
    /// RAM that is too little; numbers out of range.
    pub(super) fn log_bytes_best(self, ram_bytes: u64) -> Result<u64> {
        let groups = self.groups().count() as u64;
        let of = |tables| Ok(self.config(tables, ram_bytes / groups, None)?.log_bytes_best());
        self.groups().map(of).sum()
    }
}

impl Generation {
    /// Makes the generation of that index, within `ram_bytes`.
    ///
    /// # Errors
    /// RAM that is too little, no space, a failed write.
    pub(super) fn create(
        volume: &Volume,
        index: usize,
        shape: Shape,
        ram_bytes: u64,
    ) -> Result<Self> {
        let count = shape.groups().count() as u64;
        let log_bytes = volume.log().capacity_bytes() / count;
        let create = |(group, tables)| {
            let config = shape.config(tables, ram_bytes / count, Some(log_bytes))?;
            let options = options(volume, (shape.documents, tables), ram_bytes / count);
            SliceLsh::create_with(volume, &name(index, group), config, options)
        };
        Self::of(shape, create)
    }

    /// Drops what a crash has left of the generation of that index.
    ///
    /// # Errors
    /// A failed write.
    pub(super) fn drop_unfinished(volume: &Volume, index: usize) -> Result<()> {
        let prefix = name(index, 0);
        let prefix = prefix.trim_end_matches('0');
        let structures = volume.structures();
        let left = structures.iter().filter(|it| it.name.starts_with(prefix));
        Ok(left.map(|it| &it.name).try_for_each(|name| volume.drop_structure(name))?)
    }

    /// Opens the generation of that index, within `ram_bytes`.
    ///
    /// # Errors
    /// Damage, a failed read.
    pub(super) fn open(
        volume: &Volume,
        index: usize,
        shape: Shape,
        ram_bytes: u64,
    ) -> Result<Self> {
        let count = shape.groups().count() as u64;
        let open = |(group, tables)| {
            let options = options(volume, (shape.documents, tables), ram_bytes / count);
            SliceLsh::open_with(volume, &name(index, group), options)
        };
        Self::of(shape, open)
    }

    /// The generation whose groups `group` gives, by their numbers and their tables.
    fn of(shape: Shape, group: impl Fn((usize, u32)) -> Result<SliceLsh>) -> Result<Self> {
        let groups = (0..).zip(shape.groups()).map(group).collect::<Result<Vec<_>>>()?;
        let ram_bytes = groups.iter().map(|group| group.stats().ram_bytes).sum();
        Ok(Self { first: shape.first, documents: shape.documents, groups, ram_bytes })
    }

    /// The number of its first document, and for how many it is made.
    pub(super) fn place(&self) -> (u64, u64) {
        (self.first, self.documents)
    }

    /// RAM that it takes, in bytes.
    pub(super) fn ram_bytes(&self) -> u64 {
        self.ram_bytes
    }

    /// Has it space for documents up to this number?
    pub(super) fn has_space(&self, end: u64) -> bool {
        end - self.first <= self.documents
    }

    /// Puts documents into their buckets: `keys` has a row for each.
    ///
    /// # Errors
    /// Full buckets, a failed read or write.
    pub(super) fn insert_many(&self, ids: &[u64], keys: &[u64]) -> Result<()> {
        self.each_group(ids.len(), keys, |group, keys| group.insert_many(ids, keys))
    }

    /// Takes a document out of its buckets.
    ///
    /// # Errors
    /// As [`insert_many`](Self::insert_many).
    pub(super) fn remove(&self, id: u64, keys: &[u64]) -> Result<()> {
        self.each_group(1, keys, |group, keys| group.remove(id, keys))
    }

    /// Adds the ids that share a bucket with each row, in any order.
    ///
    /// # Errors
    /// A failed read, damage.
    pub(super) fn add_candidates(&self, keys: &[u64], found: &mut [Vec<u64>]) -> Result<()> {
        self.each_group(found.len(), keys, |group, keys| {
            let candidates = group.candidates_many(keys)?;
            found.iter_mut().zip(candidates).for_each(|(row, more)| row.extend(more));
            Ok(())
        })
    }

    /// Calls `call` for each group with its part of each row.
    fn each_group(
        &self,
        rows: usize,
        keys: &[u64],
        mut call: impl FnMut(&SliceLsh, &[u64]) -> Result<()>,
    ) -> Result<()> {
        if let [group] = &self.groups[..] {
            return call(group, keys);
        }
        let row_keys = (keys.len() / rows.max(1)).max(1);
        let mut start = 0;
        for group in &self.groups {
            let end = start + group.tables() as usize;
            let part = keys.chunks(row_keys).flat_map(|row| &row[start..end]).copied();
            call(group, &part.collect::<Vec<_>>())?;
            start = end;
        }
        Ok(())
    }

    /// Its groups.
    pub(super) fn groups(&self) -> impl Iterator<Item = &SliceLsh> {
        self.groups.iter()
    }
}

fn name(index: usize, group: usize) -> String {
    format!("lsh-alike-{index}-{group}")
}

/// A part of the RAM that the buffers leave is for a filter of the buckets: lookups of new documents read nothing then.
fn options(volume: &Volume, (documents, tables): (u64, u32), ram_bytes: u64) -> RuntimeOptions {
    let shared = crate::tables::options(volume);
    let filter_bytes = documents * u64::from(tables) * FILTER_BITS / 8;
    RuntimeOptions {
        filter_bytes_max: filter_bytes.min(ram_bytes / 2),
        ram_bytes_max: Some(ram_bytes),
        ..shared.of::<RuntimeOptions>().cloned().unwrap_or_default()
    }
}
