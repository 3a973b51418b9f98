//! The common part of both indexes: accesses, and the requests that they make.

use nandex_sim::RequestKind;

use crate::Result;
use crate::tape::Step;

/// Bytes of a page of the index.
pub const PAGE_BYTES: u64 = 4096;

/// The DRAM of a cached page, in bytes: the page, and its metadata, as the multi-level index counts them.
pub const CACHED_PAGE_BYTES: u64 = PAGE_BYTES + 96;

/// The paper's DRAM for the index: 10 MB of a drive of 10 GB, a thousandth.
pub const CAPACITY_PER_DRAM: u64 = 1000;

/// The size of an index, and how it was scaled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexSize {
    /// Its DRAM, in bytes.
    pub dram_bytes: u64,
    /// The number of keys that it is made for.
    pub keys: u64,
    /// The divisor of both from the paper's sizes: a power of two.
    pub times: u64,
    /// The seed of its hashes.
    pub seed: u64,
}

/// The kind of an access: whether it adds or removes its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Looks the key up.
    Lookup,
    /// Adds the key, or finds it.
    Insert,
    /// Removes the key, if it is present.
    Remove,
}

/// The requests of an access.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Requests {
    /// Reads of the access itself.
    pub reads: Vec<Step>,
    /// The requests of its update: rewrites by full buffers, and checkpoints.
    pub update: Vec<Step>,
}

/// An index of a key-value drive.
pub trait KvIndex {
    /// Looks a key up and then adds or removes it, if the access is more than a lookup.
    ///
    /// # Errors
    /// Fails as its table does.
    fn access(&mut self, key: u64, access: Access) -> Result<Requests>;
}

/// Returns the key of a number, such that consecutive numbers give unordered keys.
#[must_use]
pub fn key(number: u64) -> u64 {
    nandex::raw::store::hash::mix(number ^ 0x5261_686b)
}

/// Returns the pages of these requests of a kind.
#[must_use]
pub fn pages(steps: &[Step], kind: RequestKind) -> u64 {
    steps.iter().filter(|it| it.kind == kind).map(|it| u64::from(it.pages)).sum()
}
