//! The common part of the three designs: they stage, they merge, they answer queries.

use nandex_sim::RequestKind::Read;

use super::mb::Mb;
use super::mdb::Mdb;
use super::mdb_l::MdbL;
use super::ram::Staged;
use super::record::{Places, Record};
use super::segment::DataSegment;
use super::shape::{Change, Shape};

/// A design of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Memory bounded buffering: no change segment.
    Mb,
    /// Memory and disk bounded buffering: a block of the change segment for each `k` data blocks.
    Mdb(Change),
    /// The same with a log as change segment.
    MdbL(Change),
}

impl Kind {
    /// All designs of Table 2.
    pub const ALL: [Self; 7] = {
        let [half, quarter, eighth] = Change::ALL;
        [
            Self::Mb,
            Self::Mdb(half),
            Self::Mdb(quarter),
            Self::Mdb(eighth),
            Self::MdbL(half),
            Self::MdbL(quarter),
            Self::MdbL(eighth),
        ]
    };
    /// The designs with the change segment that most figures fix.
    pub const SMALL: [Self; 3] = [Self::Mb, Self::Mdb(Change::SMALL), Self::MdbL(Change::SMALL)];

    /// Returns its name in the paper.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mb => "MB",
            Self::Mdb(_) => "MDB",
            Self::MdbL(_) => "MDB-L",
        }
    }

    /// Returns its change segment.
    #[must_use]
    pub const fn change(self) -> Option<Change> {
        match self {
            Self::Mb => None,
            Self::Mdb(change) | Self::MdbL(change) => Some(change),
        }
    }

    /// Creates an empty table, with or without the keys that queries search.
    #[must_use]
    pub fn table(self, shape: Shape, keeps: Keeps) -> Box<dyn Design> {
        let data = (keeps == Keeps::Keys).then(|| DataSegment::new(shape));
        match self {
            Self::Mb => Box::new(Mb::new(data)),
            Self::Mdb(change) => Box::new(Mdb::new(shape, change, data)),
            Self::MdbL(change) => Box::new(MdbL::new(shape, change, data)),
        }
    }
}

/// The stored content of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeps {
    /// The counts of its operations.
    Counts,
    /// The counts, and the keys of its data segment too.
    Keys,
}

/// A table on flash, below its RAM buffer.
pub trait Design {
    /// Takes the content of the RAM buffer.
    fn stage(&mut self, staged: &Staged);

    /// Merges the rest of the change segment.
    fn finish(&mut self);

    /// Returns its operations so far.
    fn record(&self) -> &Record;

    /// Records the reads in the change segment for a key of a data block.
    fn read_change(&self, data_block: u64, reads: &mut Record);

    /// Returns the data segment.
    ///
    /// # Panics
    /// Panics if keys are not kept.
    fn data(&self) -> &DataSegment;
}

/// Records the reads of a query for a key, and returns whether the key is in the data segment.
pub fn query(table: &dyn Design, shape: &Shape, places: Places, key: u64) -> (Record, bool) {
    let mut reads = Record::default();
    table.read_change(shape.block(key), &mut reads);
    let search = table.data().search(key);
    (search.page..search.page + search.pages).for_each(|page| reads.page(Read, page));
    (0..search.overflow_pages).for_each(|page| reads.page(Read, places.overflow_page() + page));
    (reads, search.found)
}

/// Merges keys into the data segment, if they are kept.
pub(super) fn merge_keys(data: &mut Option<DataSegment>, keys: impl Iterator<Item = u64>) {
    if let Some(data) = data {
        keys.for_each(|key| data.insert(key));
    }
}
