//! Builders of tables of fixed widths.

use super::ram::{Shares, fitting};
use super::{Database, Quantity};
use crate::{AnyOptions, AnyTable, Error, Policy, Prediction, Requirements, Result, Table};

/// The default number of entries of a table.
const ENTRIES: u64 = 1_000_000;

/// Builds or opens a table; see [`Database::table`].
///
/// By default it holds a million entries of 8 + 8 bytes and refuses more. What is stated applies when the
/// table is created; the widths of an existing table are checked.
///
/// ```
/// use nandex::Table;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("seen.nandex");
/// let db = nandex::open(&path)?;
/// let seen = db.table("seen").entries("100k").widths(20, 12).create_or_open()?;
/// seen.insert(&[7; 20], &[1; 12])?;
/// assert!(seen.contains(&[7; 20])?);
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `create_or_open`"]
pub struct TableBuilder<'db> {
    db: &'db Database,
    name: String,
    entries: Quantity,
    widths: (u32, u32),
    ram: Option<Quantity>,
    policy: Policy,
}

impl<'db> TableBuilder<'db> {
    pub(super) fn new(db: &'db Database, name: String) -> Self {
        let (entries, policy) = (ENTRIES.into(), Policy::Reject);
        Self { db, name, entries, widths: (8, 8), ram: None, policy }
    }

    /// Entries that it must hold.
    pub fn entries(mut self, count: impl Into<Quantity>) -> Self {
        self.entries = count.into();
        self
    }

    /// Bytes of every key, 8 to 32, and of every value, 0 to 64.
    pub fn widths(mut self, key_bytes: u32, value_bytes: u32) -> Self {
        self.widths = (key_bytes, value_bytes);
        self
    }

    /// The RAM that it may take, at most.
    pub fn ram(mut self, bytes: impl Into<Quantity>) -> Self {
        self.ram = Some(bytes.into());
        self
    }

    /// The policy of a full table, such as [`Policy::Lru`]; it refuses by default. With [`Policy::Grow`] `entries` is
    /// where it begins, and its RAM is how far it grows.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Its name in the volume.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Opens the table of that name, or creates it as the structure that suits the requirements.
    ///
    /// # Errors
    /// A structure of that name that is not a table or has other widths, or is already open; too little RAM
    /// or log; damage, no space, a failed read or write.
    pub fn create_or_open(self) -> Result<AnyTable> {
        let db = self.db;
        let kind = db.kind(&self.name, "table")?;
        let mut shares = db.shares();
        self.create_or_open_in(&mut shares, kind.as_deref())
    }

    /// The same, for a known kind, with the shares locked.
    pub(super) fn create_or_open_in(
        &self,
        shares: &mut Shares,
        kind: Option<&str>,
    ) -> Result<AnyTable> {
        match kind {
            Some(kind) => self.open(shares, kind),
            None => self.create(shares),
        }
    }

    fn create(&self, shares: &mut Shares) -> Result<AnyTable> {
        let limit = shares.limit(&self.db.volume, &self.name, self.ram.as_ref())?;
        let advised = self.advise(limit, |asked| Ok(asked.advise()?.into_chosen()));
        let Prediction { config, options, .. } = match &advised {
            Ok(advised) => advised,
            Err(error) => return Err(shares.explain(&self.name, limit, error)),
        };
        let table = AnyTable::create_with(&self.db.volume, &self.name, config, options)
            .map_err(|error| self.db.explain(&self.name, error))?;
        let needed = self.ram_bytes(&table, advised.as_ref().ok(), limit);
        shares.take(&self.db.volume, &self.name, needed).map(|()| table)
    }

    fn open(&self, shares: &mut Shares, kind: &str) -> Result<AnyTable> {
        let limit = shares.limit(&self.db.volume, &self.name, self.ram.as_ref())?;
        // Options such as SliceHash's filters are chosen again at each opening.
        let advised = self.advise(limit, |asked| asked.advise_one(kind)).ok();
        let mut options =
            advised.as_ref().map_or_else(AnyOptions::default, |it| it.options.clone());
        options.ram_bytes_max = Some(limit);
        let table = AnyTable::open_with(&self.db.volume, &self.name, &options)?;
        self.check_widths(&table)?;
        let needed = self.ram_bytes(&table, advised.as_ref(), limit);
        shares.take(&self.db.volume, &self.name, needed).map(|()| table)
    }

    /// The structure that works well if it is within the limit and the log is long enough for it, else the
    /// best one that is.
    fn advise(
        &self,
        limit: u64,
        ask: impl Fn(&Requirements) -> Result<Prediction>,
    ) -> Result<Prediction> {
        let (key_bytes, value_bytes) = self.widths;
        let entries = self.entries.count("entries")?;
        let policy = self.policy;
        let asked = Requirements { policy, ..Requirements::new(entries, key_bytes, value_bytes) };
        let fits = |it: &Prediction| self.db.log_holds(it.config.log_bytes_best());
        if self.ram.is_none()
            && policy != Policy::Grow
            && let Ok(best) = ask(&asked)
            && best.ram_bytes() <= limit
            && fits(&best)
        {
            return Ok(best);
        }
        fitting(limit, |ram_bytes| ask(&asked.clone().ram(ram_bytes)), fits)
    }

    /// A table's RAM now, or once it is full if that is known; all that it may take if it grows.
    fn ram_bytes(&self, table: &AnyTable, advised: Option<&Prediction>, limit: u64) -> u64 {
        if table.config().describe().when_full == Policy::Grow.to_string() {
            return limit;
        }
        let same = advised.filter(|it| it.config == table.config());
        same.map_or_else(|| table.stats().ram_bytes, Prediction::ram_bytes)
    }

    fn check_widths(&self, table: &AnyTable) -> Result<()> {
        let found = (table.key_bytes(), table.value_bytes());
        let (key_bytes, value_bytes) = self.widths;
        if found == (key_bytes as usize, value_bytes as usize) {
            return Ok(());
        }
        let reason = format!(
            "{:?} exists with keys of {} bytes and values of {}, and was required with {key_bytes} and \
             {value_bytes}; ask with .widths({}, {}), or choose another name",
            self.name, found.0, found.1, found.0, found.1
        );
        Err(Error::Config { field: "widths", reason })
    }
}
