//! SQLite through rusqlite, tuned for a load that may be lost and for random lookups.
//!
//! * One `WITHOUT ROWID` table of two BLOBs: the B-tree of the key holds the value, and there is no other.
//! * WAL. `synchronous` is NORMAL, which syncs the log before a checkpoint; FULL at `--durability always`, OFF at
//!   `never`. A checkpoint follows every 64 MiB of log, so that pages which many transactions change are copied
//!   once. The load ends with one, which is timed.
//! * Each batch is a transaction, and so is each single call; a removal and the insert that goes with it are in one.
//!   Batches are sorted first, so that neighbours in the tree are touched together.
//! * Statements are prepared once for each connection. Connections wait in a pool between passes, with their caches.
//! * The page caches of all connections are half of the budget; SQLite reads through the page cache of the kernel,
//!   which has the rest.
//! * SQLite has no batched lookup; a batch is a loop in one read transaction.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use nandex_bench::order::Order;
use nandex_bench::subject::{Bulk, Client, Durability, Spec, Subject};
use nandex_bench::values::Values;
use rusqlite::{Connection, OptionalExtension, Row, Statement, Transaction, TransactionBehavior};

use crate::budget::{pairs_as_long_as, part};

const CREATE: &str =
    "CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID";
/// The statement that inserts a pair, or overwrites the pair of its key.
const PUT: &str = "INSERT OR REPLACE INTO entries (key, value) VALUES (?1, ?2)";
const GET: &str = "SELECT value FROM entries WHERE key = ?1";
const DELETE: &str = "DELETE FROM entries WHERE key = ?1";
/// The pages of 4 KiB in the log at which a checkpoint begins.
const CHECKPOINT_PAGES: u32 = 1 << 14;
/// Pairs of 8 + 8 bytes in a transaction of a load in key order.
const APPENDS: usize = 1 << 20;
/// The maximum time for which a transaction waits for another connection's.
const BUSY: Duration = Duration::from_secs(600);

/// An open SQLite database with its one table.
pub struct Sqlite {
    path: PathBuf,
    cache_kib: usize,
    synchronous: &'static str,
    value_bytes: usize,
    appends: usize,
    /// The connections that no client uses. At least one keeps the log open.
    idle: Mutex<Vec<Connection>>,
}

impl Sqlite {
    /// Opens the database in `dir`, or creates it.
    pub fn open(dir: &Path, spec: &Spec) -> Result<Self> {
        let synchronous = match spec.durability {
            Durability::Always => "FULL",
            Durability::Every => "NORMAL",
            Durability::Never => "OFF",
        };
        let cache_kib = part(spec.ram_bytes, 1, 2) / spec.threads.max(1) / 1024;
        let path = dir.join("entries.sqlite");
        let (value_bytes, idle) = (spec.value_bytes, Mutex::default());
        let appends = pairs_as_long_as(APPENDS, spec.entry_bytes());
        let sqlite = Self { path, cache_kib, synchronous, value_bytes, appends, idle };
        let first = sqlite.connect()?;
        first.execute_batch(CREATE)?;
        sqlite.put_back(first);
        Ok(sqlite)
    }

    fn connect(&self) -> Result<Connection> {
        let connection = Connection::open(&self.path)?;
        connection.busy_timeout(BUSY)?;
        let mode: String =
            connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        anyhow::ensure!(mode == "wal", "SQLite has the journal mode {mode}, and not WAL");
        let Self { cache_kib, synchronous, .. } = self;
        connection.execute_batch(&format!(
            "PRAGMA synchronous = {synchronous};
             PRAGMA cache_size = -{cache_kib};
             PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES};"
        ))?;
        Ok(connection)
    }

    fn put_back(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }

    fn take(&self) -> Result<Connection> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| self.connect(), Ok)
    }

    fn new_client(&self) -> Result<SqliteClient<'_>> {
        let (connection, values) = (Some(self.take()?), Values::new(self.value_bytes));
        Ok(SqliteClient { sqlite: self, connection, sorted: Vec::new(), values })
    }
}

impl Subject for Sqlite {
    fn client(&self) -> Result<Box<dyn Client + '_>> {
        Ok(Box::new(self.new_client()?))
    }

    fn sync(&self) -> Result<()> {
        let connection = self.take()?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        self.put_back(connection);
        Ok(())
    }

    fn order(&self) -> Order {
        Order::Bytes
    }

    fn bulk(&self) -> Result<Option<Box<dyn Bulk + '_>>> {
        Ok(Some(Box::new(SqliteBulk { client: self.new_client()? })))
    }
}

struct SqliteBulk<'a> {
    client: SqliteClient<'a>,
}

impl Bulk for SqliteBulk<'_> {
    fn append(&mut self, sorted: &[(u64, u64)]) -> Result<()> {
        let appends = self.client.sqlite.appends;
        sorted.chunks(appends).try_for_each(|pairs| self.client.change(&[], pairs))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let sqlite = self.client.sqlite;
        drop(self);
        sqlite.sync()
    }
}

struct SqliteClient<'a> {
    sqlite: &'a Sqlite,
    /// The connection, until it is returned to the pool at the end.
    connection: Option<Connection>,
    sorted: Vec<(u64, u64)>,
    values: Values,
}

impl SqliteClient<'_> {
    /// Removes keys and puts sorted pairs, in one transaction.
    fn change(&mut self, removed: &[u64], sorted: &[(u64, u64)]) -> Result<()> {
        let connection = open(&self.connection)?;
        let transaction = begin(connection, TransactionBehavior::Immediate)?;
        if !removed.is_empty() {
            let mut delete = connection.prepare_cached(DELETE)?;
            for key in removed {
                delete.execute([key.to_le_bytes()])?;
            }
        }
        if !sorted.is_empty() {
            let mut put = connection.prepare_cached(PUT)?;
            for &(key, value) in sorted {
                put.execute((key.to_le_bytes(), self.values.one(value)))?;
            }
        }
        Ok(transaction.commit()?)
    }
}

fn open(connection: &Option<Connection>) -> Result<&Connection> {
    connection.as_ref().context("the connection was put back")
}

/// Returns the number of the value under `key`.
fn look_up(get: &mut Statement<'_>, key: u64, values: &Values) -> Result<Option<u64>> {
    let number = |row: &Row<'_>| Ok(values.number(row.get_ref(0)?.as_blob()?));
    get.query_row([key.to_le_bytes()], number).optional()?.transpose()
}

fn begin(connection: &Connection, behavior: TransactionBehavior) -> Result<Transaction<'_>> {
    Ok(Transaction::new_unchecked(connection, behavior)?)
}

impl Client for SqliteClient<'_> {
    fn insert(&mut self, key: u64, value: u64) -> Result<()> {
        self.change(&[], &[(key, value)])
    }

    fn insert_many(&mut self, pairs: &[(u64, u64)]) -> Result<()> {
        self.replace_many(&[], pairs)
    }

    fn delete_many(&mut self, keys: &[u64]) -> Result<()> {
        self.replace_many(keys, &[])
    }

    fn replace_many(&mut self, removed: &[u64], pairs: &[(u64, u64)]) -> Result<()> {
        let rank = |key: u64| Order::Bytes.rank(key);
        let mut removed = removed.to_vec();
        removed.sort_unstable_by_key(|&key| rank(key));
        let mut sorted = std::mem::take(&mut self.sorted);
        sorted.clear();
        sorted.extend_from_slice(pairs);
        // A stable sort, so that of two inserts of one key the later one stays.
        sorted.sort_by_key(|pair| rank(pair.0));
        let done = self.change(&removed, &sorted);
        self.sorted = sorted;
        done
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let mut get = open(&self.connection)?.prepare_cached(GET)?;
        look_up(&mut get, key, &self.values)
    }

    fn get_many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()> {
        let connection = open(&self.connection)?;
        let transaction = begin(connection, TransactionBehavior::Deferred)?;
        let mut get = connection.prepare_cached(GET)?;
        for &key in keys {
            found.push(look_up(&mut get, key, &self.values)?);
        }
        drop(get);
        Ok(transaction.commit()?)
    }
}

impl Drop for SqliteClient<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.sqlite.put_back(connection);
        }
    }
}
