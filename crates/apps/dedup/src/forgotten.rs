//! The number of entries that an index has forgotten: evicted because it was full.
//!
//! A table counts its evictions over its life, but a crash loses the count since the last checkpoint. So an entry of
//! the table stores the sum too, and the larger one counts. The entry is written after every batch that evicted
//! something, which also keeps it among the newest, out of the eviction's reach. Its key is text, not a digest.

use nandex::Table;

use crate::Result;

/// The key of the sum, with zeros behind it up to the width of the table's keys.
const KEY: &[u8] = b"forgotten entries";

/// The entries that a table has forgotten, before this run and in it.
pub(crate) struct Forgotten<'a> {
    table: &'a dyn Table,
    key: Vec<u8>,
    /// The number in earlier runs.
    before: u64,
    /// The number that the table had evicted since its opening when this run began.
    evicted_before: u64,
    /// The number in this run, according to the table's entry.
    noted: u64,
}

impl<'a> Forgotten<'a> {
    /// Reads the sum of earlier runs.
    pub(crate) fn read(table: &'a dyn Table) -> Result<Self> {
        let mut key = KEY.to_vec();
        key.resize(table.key_bytes(), 0);
        let value = table.get(&key)?;
        let noted = value.and_then(|value| Some(u64::from_le_bytes(value.first_chunk().copied()?)));
        let stats = table.stats();
        let (before, evicted_before) = (stats.evicted_life.max(noted.unwrap_or(0)), stats.evicted);
        Ok(Self { table, key, before, evicted_before, noted: 0 })
    }

    /// The number of entries forgotten in this run.
    pub(crate) fn in_run(&self) -> u64 {
        self.table.stats().evicted.saturating_sub(self.evicted_before)
    }

    /// The number of entries forgotten in this run and all earlier ones.
    pub(crate) fn in_life(&self) -> u64 {
        self.before.saturating_add(self.in_run())
    }

    /// Like `note`, including the evictions of a full table that saves its buffers.
    pub(crate) fn note_all(&mut self) -> Result<()> {
        if self.in_run() > 0 {
            self.table.flush()?;
        }
        self.note()
    }

    /// Stores the sum in the table, if it has grown.
    pub(crate) fn note(&mut self) -> Result<()> {
        let in_run = self.in_run();
        if in_run > self.noted {
            let mut value = self.before.saturating_add(in_run).to_le_bytes().to_vec();
            value.resize(self.table.value_bytes(), 0);
            self.table.insert(&self.key, &value)?;
            self.noted = in_run;
        }
        Ok(())
    }
}
