//! How many entries an index has forgotten: evicted because it was full.
//!
//! A table counts what it evicts over its life, but a crash loses what it counted since the last checkpoint. So an
//! entry of the table keeps the sum too, and the larger one holds. The entry is written after every batch that evicted
//! something, which also keeps it among the newest, out of the eviction's reach. Its key is text and no digest.

use nandex::Table;

use crate::Result;

/// The key of the sum, with zeros behind it up to the width of the table's keys.
const KEY: &[u8] = b"forgotten entries";

/// What a table has forgotten, before this run and in it.
pub(crate) struct Forgotten<'a> {
    table: &'a dyn Table,
    key: Vec<u8>,
    /// In runs before this one.
    before: u64,
    /// What the table had evicted since its opening when this run began.
    evicted_before: u64,
    /// In this run, as far as the table's entry says.
    noted: u64,
}

impl<'a> Forgotten<'a> {
    /// Reads what earlier runs have left.
    pub(crate) fn read(table: &'a dyn Table) -> Result<Self> {
        let mut key = KEY.to_vec();
        key.resize(table.key_bytes(), 0);
        let value = table.get(&key)?;
        let noted = value.and_then(|value| Some(u64::from_le_bytes(value.first_chunk().copied()?)));
        let stats = table.stats();
        let (before, evicted_before) = (stats.evicted_life.max(noted.unwrap_or(0)), stats.evicted);
        Ok(Self { table, key, before, evicted_before, noted: 0 })
    }

    /// Entries forgotten in this run.
    pub(crate) fn in_run(&self) -> u64 {
        self.table.stats().evicted.saturating_sub(self.evicted_before)
    }

    /// Entries forgotten in this run and all before it.
    pub(crate) fn in_life(&self) -> u64 {
        self.before.saturating_add(self.in_run())
    }

    /// As `note`, with what a table that is full evicts when it saves its buffers.
    pub(crate) fn note_all(&mut self) -> Result<()> {
        if self.in_run() > 0 {
            self.table.flush()?;
        }
        self.note()
    }

    /// Keeps the sum in the table, if it has grown.
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
