//! What both indexes have in common: accesses, and the requests that they make.

use nandex_sim::RequestKind;

use crate::Result;
use crate::tape::Step;

/// Bytes of a page of the index.
pub const PAGE_BYTES: u64 = 4096;

/// DRAM of a page that is kept there, in bytes: its own, and what is known of it, as the multi-level index counts it.
pub const CACHED_PAGE_BYTES: u64 = PAGE_BYTES + 96;

/// The paper's DRAM for the index: 10 MB of a drive of 10 GB, a thousandth.
pub const CAPACITY_PER_DRAM: u64 = 1000;

/// The size of an index, and how it was scaled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexSize {
    /// DRAM that it has, in bytes.
    pub dram_bytes: u64,
    /// Keys for which it is made.
    pub keys: u64,
    /// How many times smaller both are than the paper's: a power of two.
    pub times: u64,
    /// The seed of its hashes.
    pub seed: u64,
}

/// Whether an access of an index adds or removes its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// It looks the key up.
    Lookup,
    /// It adds the key, or finds it.
    Insert,
    /// It removes the key, if it is there.
    Remove,
}

/// The requests of an access.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Requests {
    /// Reads of the access itself.
    pub reads: Vec<Step>,
    /// What the update behind it asks for: rewrites by full buffers, and checkpoints.
    pub update: Vec<Step>,
}

/// An index of a key-value drive.
pub trait KvIndex {
    /// Looks a key up and then adds or removes it, if the access is more than a lookup.
    ///
    /// # Errors
    /// As those of its table.
    fn access(&mut self, key: u64, access: Access) -> Result<Requests>;
}

/// The key of a number: numbers in order are keys without any.
#[must_use]
pub fn key(number: u64) -> u64 {
    nandex::raw::store::hash::mix(number ^ 0x5261_686b)
}

/// Pages of these requests of that kind.
#[must_use]
pub fn pages(steps: &[Step], kind: RequestKind) -> u64 {
    steps.iter().filter(|it| it.kind == kind).map(|it| u64::from(it.pages)).sum()
}
