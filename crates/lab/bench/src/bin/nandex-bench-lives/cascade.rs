//! A cascade filter, as `db.filter` makes it. It counts occurrences, so a present key is deleted before it is
//! added again.

use anyhow::Result;
use nandex::{AnyFilter, Database};

use crate::Workload;
use crate::keyed::{Keyed, Pairs, Store};
use crate::subject::{Row, Usage, database};

pub(crate) const ROW: Row = Row {
    name: "cascade",
    items: "keys",
    workload: Workload::Update,
    create: |arguments, file| {
        let db = database(arguments, file)?;
        let filter = open(&db, arguments.entries)?;
        Keyed::boxed(CascadeStore { filter, db, keys: arguments.entries }, arguments.entries)
    },
};

struct CascadeStore {
    filter: AnyFilter,
    db: Database,
    keys: u64,
}

/// The rate of false positives, and the share of removed keys above which answers are wrong. Of 1000 keys more than 50
/// are false positives with a probability below 10^-19.
const RATE: f64 = 0.01;
const WRONG_SHARE_MAX: f64 = 0.05;

fn open(db: &Database, keys: u64) -> Result<AnyFilter> {
    Ok(db.filter("t").keys(keys).rate(RATE).create_or_open()?)
}

fn keys<'a>(pairs: &Pairs<'a>) -> Vec<&'a [u8]> {
    pairs.iter().map(|(key, _)| *key).collect()
}

impl Store for CascadeStore {
    fn put(&self, pairs: &Pairs) -> Result<()> {
        Ok(self.filter.insert_many(&keys(pairs))?)
    }

    fn put_again(&self, pairs: &Pairs) -> Result<()> {
        self.remove(&keys(pairs))?;
        self.put(pairs)
    }

    fn remove(&self, keys: &[&[u8]]) -> Result<()> {
        Ok(self.filter.delete_many(keys)?)
    }

    fn is_right(&self, (key, _): (&[u8], &[u8]), _puts: u64) -> Result<bool> {
        Ok(self.filter.contains(key)?)
    }

    fn is_absent(&self, key: &[u8]) -> Result<bool> {
        Ok(!self.filter.contains(key)?)
    }

    fn wrong_share_max(&self) -> f64 {
        WRONG_SHARE_MAX
    }

    fn flush(&self) -> Result<()> {
        Ok(self.filter.flush()?)
    }

    fn usage(&self) -> Usage {
        (&self.filter.stats()).into()
    }

    fn reopened(self) -> Result<Self> {
        let Self { filter, db, keys } = self;
        filter.close()?;
        Ok(Self { filter: open(&db, keys)?, db, keys })
    }

    fn close(self) -> Result<()> {
        Ok(self.filter.close()?)
    }
}
