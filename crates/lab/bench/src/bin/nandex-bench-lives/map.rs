//! A map of keys and values of any size, as `db.map` makes it.

use anyhow::Result;
use nandex::{AnyTable, Database, LargeTable};

use crate::Workload;
use crate::keyed::{Keyed, Pairs, Store};
use crate::subject::{Row, Usage, database};

pub(crate) const ROW: Row = Row {
    name: "map",
    items: "keys",
    workload: Workload::Update,
    create: |arguments, file| {
        let db = database(arguments, file)?;
        let map = open(&db)?;
        Keyed::boxed(MapStore { map, db }, arguments.entries)
    },
};

struct MapStore {
    map: LargeTable<AnyTable>,
    db: Database,
}

fn open(db: &Database) -> Result<LargeTable<AnyTable>> {
    Ok(db.map("t").create_or_open()?)
}

impl Store for MapStore {
    fn put(&self, pairs: &Pairs) -> Result<()> {
        Ok(self.map.put_many(pairs)?)
    }

    fn remove(&self, keys: &[&[u8]]) -> Result<()> {
        Ok(keys.iter().try_for_each(|key| self.map.remove(key))?)
    }

    fn is_right(&self, (key, value): (&[u8], &[u8]), _puts: u64) -> Result<bool> {
        Ok(self.map.get(key)?.as_deref() == Some(value))
    }

    fn is_absent(&self, key: &[u8]) -> Result<bool> {
        Ok(self.map.get(key)?.is_none())
    }

    fn flush(&self) -> Result<()> {
        Ok(self.map.flush()?)
    }

    fn usage(&self) -> Usage {
        let stats = self.map.stats();
        let (table, values) = (&stats.table, &stats.values);
        let written = table.data_bytes_written + table.log_bytes_written + values.written_bytes;
        Usage {
            written_bytes: Some(written),
            entries: table.entries,
            flash_bytes: table.flash_bytes + values.flash_bytes,
            ram_bytes: stats.ram_bytes,
        }
    }

    fn reopened(self) -> Result<Self> {
        let Self { map, db } = self;
        map.close()?;
        Ok(Self { map: open(&db)?, db })
    }

    fn close(self) -> Result<()> {
        Ok(self.map.close()?)
    }
}
