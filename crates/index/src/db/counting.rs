//! Builders of counting tables.

use super::ram::{explain, fitting, limit};
use super::stated::{Calls, Stated};
use super::{Database, Quantity};
use crate::counting::{self, Config, Keys};
use crate::{AnyConfig, Counting, Error, Filter, OpenOptions, Result};

/// The default number of keys of a counting table.
const KEYS: u64 = 1_000_000;

/// The default width of keys, in bytes.
const KEY_BYTES: u8 = 8;

/// The parameter that `stored` sets.
const STORED: Calls = &[("keys", "stored")];

/// The updates per query that a table is sized for.
const UPDATES_PER_QUERY: f64 = 1.0;

/// Builds or opens a counting table; see [`Database::counting`].
/// By default it is sized for a million keys of 8 bytes, and takes more. The options apply when it is created; the keys
/// of an existing table are checked if they are stated.
///
/// ```
/// use nandex::Counter;
/// use nandex::counting::Keys;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("words.nandex");
/// let db = nandex::open(&path)?;
/// let words = db.counting("words").keys(1e5).stored(Keys::Whole(4)).create_or_open()?;
/// words.add_many(&[(&b"that"[..], 2), (b"this", 1), (b"that", 3)])?;
/// assert_eq!(words.top(1)?, [(b"that".to_vec(), 5)]);
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `create_or_open`"]
pub struct CountingBuilder<'db> {
    db: &'db Database,
    name: String,
    keys: Quantity,
    stored: Option<Keys>,
    ram: Option<Quantity>,
    stated: Stated,
}

impl<'db> CountingBuilder<'db> {
    pub(super) fn new(db: &'db Database, name: String) -> Self {
        let (keys, stated) = (KEYS.into(), Stated::default());
        Self { db, name, keys, stored: None, ram: None, stated }
    }

    /// Sets the number of different keys that the table is sized for.
    pub fn keys(mut self, count: impl Into<Quantity>) -> Self {
        self.keys = count.into();
        self
    }

    /// Sets what the table stores of its keys: keys of one width in full, or fingerprints.
    pub fn stored(mut self, stored: Keys) -> Self {
        self.stored = Some(stored);
        self
    }

    /// Limits the RAM that the table may take.
    pub fn ram(mut self, bytes: impl Into<Quantity>) -> Self {
        self.ram = Some(bytes.into());
        self
    }

    /// Sets a parameter of the table, such as `("discipline", "MB")`, in place of the one derived from the
    /// requirements; see [`TableBuilder::parameter`](super::TableBuilder::parameter).
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.stated.add(name, value);
        self
    }

    /// Sets options of this opening; see [`TableBuilder::options`](super::TableBuilder::options).
    pub fn options(mut self, options: OpenOptions) -> Self {
        self.stated.options = options;
        self
    }

    /// Opens the counting table of that name, or creates it.
    ///
    /// # Errors
    /// A structure of that name that is not a counting table, stores other keys, or is already open; too little RAM or
    /// log; damage, no space, a failed read or write.
    pub fn create_or_open(self) -> Result<Counting> {
        let (db, name) = (self.db, &self.name);
        let kind = db.kind(name, "filter")?;
        self.check_kind(kind.as_deref())?;
        let _opening = db.opening();
        let limit = limit(&db.ram, name, self.ram.as_ref())?;
        let options = self.stated.options(counting::KIND, OpenOptions::default())?;
        let table = if kind.is_some() {
            let table = Counting::open_with(&db.volume, name, options)?;
            self.stated.check(name, &(*table.config()).into())?;
            table
        } else {
            let config =
                self.config(limit).map_err(|error| explain(&db.ram, name, limit, error))?;
            let calls = if self.stored.is_some() { STORED } else { &[] };
            let config = *self.stated.on_with(&config.into(), calls)?.of()?;
            Counting::create_with(&db.volume, name, config, options)
                .map_err(|error| db.explain(name, error))?
        };
        self.check_keys(&table)?;
        let needed = table.config().ram_bytes().max(table.stats().ram_bytes);
        let shared = AnyConfig::from(*table.config()).shared_ram_bytes();
        db.ram.claim(name, (needed, shared), None).map(|()| table)
    }

    fn config(&self, limit: u64) -> Result<Config> {
        let stored = self.stored.unwrap_or(Keys::Whole(KEY_BYTES));
        let count = self.keys.count("keys")?;
        let within = |ram| Config::for_budget(stored, count, ram, UPDATES_PER_QUERY);
        fitting(limit, within, |config| self.db.log_holds(config.log_bytes_best()))
    }

    fn check_kind(&self, kind: Option<&str>) -> Result<()> {
        let Some(kind) = kind.filter(|kind| *kind != counting::KIND) else { return Ok(()) };
        let name = &self.name;
        let reason = format!(
            "{name:?} exists and is not a counting table: its kind is {kind:?}; open it with db.filter({name:?}), or \
             choose another name"
        );
        Err(Error::Config { field: "kind", reason })
    }

    fn check_keys(&self, table: &Counting) -> Result<()> {
        let found = table.config().keys;
        let Some(stated) = self.stored.filter(|stated| *stated != found) else { return Ok(()) };
        let reason = format!(
            "{:?} exists with keys stored as {found:?}, and was required with {stated:?}; ask with what it has, or choose \
             another name",
            self.name
        );
        Err(Error::Config { field: "stored", reason })
    }
}
