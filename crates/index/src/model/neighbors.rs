//! The requirements of an index of neighbours, before its parameters are chosen.

use super::Policy;
use crate::{Error, Result};

/// The use of an index of neighbours, and the resources that it may take.
///
/// ```
/// use nandex::{NeighborsRequirements, slicelsh};
///
/// let asked = NeighborsRequirements { ram_bytes: Some(64 << 20), ..NeighborsRequirements::new(5_000_000, 10) };
/// assert_eq!(slicelsh::Config::advised(&asked)?.tables, 10);
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct NeighborsRequirements {
    /// Documents it must hold.
    pub documents: u64,
    /// Hash tables, each with one bucket key of every document.
    pub tables: u32,
    /// RAM that it may take, in bytes; `None` for what it needs.
    pub ram_bytes: Option<u64>,
    /// The ids that a bucket keeps.
    pub bucket_ids_max: u32,
    /// The policy when flash is full: [`Policy::Fifo`] or [`Policy::Reject`].
    pub policy: Policy,
    /// The family of hashes that makes the keys, as bytes that only its owner interprets.
    pub family: Vec<u8>,
}

impl NeighborsRequirements {
    /// Returns the requirements of an index for `documents` documents with `tables` keys each, which evicts its oldest
    /// entries and keeps 64 ids of a bucket.
    #[must_use]
    pub const fn new(documents: u64, tables: u32) -> Self {
        Self {
            documents,
            tables,
            ram_bytes: None,
            bucket_ids_max: 64,
            policy: Policy::Fifo,
            family: Vec::new(),
        }
    }

    /// Fails for requirements that no index can meet.
    ///
    /// # Errors
    /// [`Error::Config`], naming the number.
    pub fn check(&self) -> Result<()> {
        if self.documents == 0 || self.documents > 1 << 40 {
            let reason = format!("{}; expected 1 to 2^40", self.documents);
            return Err(Error::Config { field: "documents", reason });
        }
        Ok(())
    }
}
