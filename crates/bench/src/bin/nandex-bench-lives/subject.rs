//! What is measured: a structure with its keys, or an index with its documents.

use std::path::Path;

use anyhow::Result;

use crate::{Arguments, Workload};

/// RAM of a database, if none was stated.
pub(crate) const DATABASE_RAM_BYTES: u64 = 256 << 20;

/// A line of the table.
pub(crate) struct Row {
    pub name: &'static str,
    /// What it is put: keys or documents.
    pub items: &'static str,
    /// What a round does unless the user says so.
    pub workload: Workload,
    /// Makes it, empty, in a new file.
    pub create: fn(&Arguments, &Path) -> Result<Box<dyn Subject>>,
}

/// A structure or an index with what is in it.
pub(crate) trait Subject {
    /// Makes a round, or the first fill, and puts all of it on flash. The time is without the latter.
    fn round(&mut self, workload: Option<Workload>) -> Result<Work>;

    /// Returns what it takes now.
    fn usage(&self) -> Usage;

    /// The number of entries that [`Usage::entries`] would have if it were exact.
    fn entries(&self) -> u64;

    /// Looks up what must be there and what must not.
    ///
    /// # Errors
    /// A wrong answer.
    fn check(&self) -> Result<Work>;

    /// Changes some of what is there, one in each call.
    fn put_singly(&mut self) -> Result<Work>;

    /// Closes and opens it.
    fn reopened(self: Box<Self>) -> Result<Box<dyn Subject>>;

    /// Closes it.
    fn close(self: Box<Self>) -> Result<()>;
}

/// What was done.
#[derive(Clone, Copy, Default)]
pub(crate) struct Work {
    /// Keys or documents that were changed or looked up.
    pub items: u64,
    /// Bytes of what was put.
    pub bytes: u64,
    pub seconds: f64,
}

impl Work {
    pub fn per_s(self) -> f64 {
        self.items as f64 / self.seconds
    }
}

/// What a subject takes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Usage {
    /// Bytes written so far, with the log, if they are known.
    pub written_bytes: Option<u64>,
    /// Entries, as it says.
    pub entries: u64,
    pub flash_bytes: u64,
    pub ram_bytes: u64,
}
