//! A counting table: each put adds one to the count of its key.

use anyhow::Result;
use nandex::{Counter, Counting, Database, Filter};

use crate::Workload;
use crate::keyed::{Keyed, Pairs, Store};
use crate::subject::{Row, Usage, database};

pub(crate) const ROW: Row = Row {
    name: "counting",
    items: "keys",
    workload: Workload::Update,
    create: |arguments, file| {
        let db = database(arguments, file)?;
        let counts = open(&db, arguments.entries)?;
        Keyed::boxed(CountingStore { counts, db, keys: arguments.entries }, arguments.entries)
    },
};

struct CountingStore {
    counts: Counting,
    db: Database,
    keys: u64,
}

fn open(db: &Database, keys: u64) -> Result<Counting> {
    Ok(db.counting("t").keys(keys).create_or_open()?)
}

impl Store for CountingStore {
    fn put(&self, pairs: &Pairs) -> Result<()> {
        let amounts: Vec<(&[u8], i64)> = pairs.iter().map(|(key, _)| (*key, 1)).collect();
        Ok(self.counts.add_many(&amounts)?)
    }

    fn remove(&self, keys: &[&[u8]]) -> Result<()> {
        Ok(self.counts.remove_many(keys)?)
    }

    fn is_right(&self, (key, _): (&[u8], &[u8]), puts: u64) -> Result<bool> {
        Ok(self.counts.count(key)? == puts)
    }

    fn is_absent(&self, key: &[u8]) -> Result<bool> {
        Ok(self.counts.count(key)? == 0)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.counts.flush()?)
    }

    fn usage(&self) -> Usage {
        (&Filter::stats(&self.counts)).into()
    }

    fn reopened(self) -> Result<Self> {
        let Self { counts, db, keys } = self;
        counts.close()?;
        Ok(Self { counts: open(&db, keys)?, db, keys })
    }

    fn close(self) -> Result<()> {
        Ok(self.counts.close()?)
    }
}
