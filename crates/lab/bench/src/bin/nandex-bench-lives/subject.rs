//! The trait of a measured subject: a structure with its keys, or an index with its documents.

use std::path::Path;

use anyhow::Result;
use nandex::device::Create;
use nandex::{Database, FilterStats};

use crate::{Arguments, Workload};

/// RAM of a database by default.
const DATABASE_RAM_BYTES: u64 = 256 << 20;

/// Creates a database with the stated RAM.
pub(crate) fn database(arguments: &Arguments, file: &Path) -> Result<Database> {
    let ram_bytes = arguments.ram.unwrap_or(DATABASE_RAM_BYTES);
    Ok(nandex::options().ram(ram_bytes).create(Create::New).open(file)?)
}

/// A line of the table.
pub(crate) struct Row {
    pub name: &'static str,
    /// The kind of the items: keys or documents.
    pub items: &'static str,
    /// The default workload.
    pub workload: Workload,
    /// Creates the subject, empty, in a new file.
    pub create: fn(&Arguments, &Path) -> Result<Box<dyn Subject>>,
}

/// A structure or an index with its content.
pub(crate) trait Subject {
    /// Makes a round, or the first fill if `workload` is `None`, and then flushes. The time is without the flush.
    fn round(&mut self, workload: Option<Workload>) -> Result<Work>;

    /// Returns its present resources.
    fn usage(&self) -> Usage;

    /// Returns the number of entries that [`Usage::entries`] would have if it were exact.
    fn entries(&self) -> u64;

    /// Looks up keys or documents that are present, and some that were removed.
    ///
    /// # Errors
    /// Fails on a wrong answer.
    fn check(&self) -> Result<Work>;

    /// Puts some of its keys or documents again, one in each call.
    fn put_singly(&mut self) -> Result<Work>;

    /// Closes and reopens it.
    fn reopened(self: Box<Self>) -> Result<Box<dyn Subject>>;

    /// Closes it.
    fn close(self: Box<Self>) -> Result<()>;
}

/// The work of a round, of lookups or of single puts.
#[derive(Clone, Copy, Default)]
pub(crate) struct Work {
    /// Keys or documents that were changed or looked up.
    pub items: u64,
    /// The bytes put.
    pub bytes: u64,
    pub seconds: f64,
}

impl Work {
    pub fn per_s(self) -> f64 {
        self.items as f64 / self.seconds
    }
}

/// Resources that a subject takes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Usage {
    /// Bytes written so far, with the log, if they are known.
    pub written_bytes: Option<u64>,
    /// Entries, as the subject counts them.
    pub entries: u64,
    pub flash_bytes: u64,
    pub ram_bytes: u64,
}

impl From<&FilterStats> for Usage {
    fn from(stats: &FilterStats) -> Self {
        Self {
            written_bytes: Some(stats.data_bytes_written + stats.log_bytes_written),
            entries: stats.entries,
            flash_bytes: stats.flash_bytes,
            ram_bytes: stats.ram_bytes,
        }
    }
}
