//! An input table of a merge: opened read-only, and read from its first partition to its last.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nandex::device::Access;
use nandex::raw::Versions;
use nandex::raw::registry::{self, Family};
use nandex::raw::store::hash::KeyHasher;
use nandex::{AnyTable, Durability, OpenOptions, Table, Volume};

use crate::devices::{EngineArgs, VolumeArgs};
use crate::held::open_volume;
use crate::place::{TableArgs, only_table};
use crate::refuse;

/// An open table and its volume.
pub(super) struct Input {
    path: PathBuf,
    volume: Volume,
    name: String,
    table: AnyTable,
}

impl Input {
    /// Opens the table of this name, or the only one. The volume stays as it is.
    ///
    /// # Errors
    /// A file that does not exist, is not a volume, is in use or damaged; no such table; one that cannot be merged.
    pub(super) fn open((path, engine): (&Path, EngineArgs), args: &TableArgs) -> Result<Self> {
        let volume = VolumeArgs::single(path.to_owned(), engine);
        let cannot = || volume.cannot("merge");
        let (db, _) = open_volume(&volume, Access::ReadOnly, Durability::default())?;
        let opened = db.volume();
        let name = match &args.table {
            Some(name) => name.clone(),
            None => only_table(opened).with_context(cannot)?,
        };
        let kind = registry::kind_in(opened, &name).with_context(cannot)?;
        if let Some(Family::Part) = registry::find(&kind).map(|row| &row.family) {
            refuse!(
                "{}: table {name} has keys and values of any size, which do not merge; load one with the dump of the other: \
                 nandex dump, nandex load",
                cannot()
            );
        }
        // Nothing is looked up, so no filter is needed.
        let stated = args.options.stated();
        let options = stated.options(&kind, OpenOptions::default().inline())?;
        let table = AnyTable::open_with(opened, &name, &options).with_context(cannot)?;
        stated.check(&name, &table.config()).with_context(cannot)?;
        table.versions().with_context(cannot)?;
        Ok(Self { path: path.to_owned(), volume: opened.clone(), name, table })
    }

    /// Fails if the other table has other widths.
    ///
    /// # Errors
    /// Tables of different widths.
    pub(super) fn refuse_other_widths(&self, other: &Self) -> Result<()> {
        if self.widths() == other.widths() {
            return Ok(());
        }
        let shown = |input: &Self| {
            let (key, value) = input.widths();
            format!("{} has keys of {key} bytes and values of {value}", input.path.display())
        };
        refuse!("{}, {}; only tables of the same widths merge", shown(other), shown(self))
    }

    /// Returns the bytes of keys and of values.
    pub(super) fn widths(&self) -> (usize, usize) {
        (self.table.key_bytes(), self.table.value_bytes())
    }

    pub(super) fn versions(&self) -> Result<Versions<'_>> {
        Ok(self.table.versions()?)
    }

    /// Returns the kind of table that it merges into.
    pub(super) fn merges_into(&self) -> Option<&'static str> {
        let kind = self.table.kind();
        registry::tables()
            .find(|(row, _)| row.kind == kind)
            .and_then(|(_, table)| table.merges_into)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn hasher(&self) -> KeyHasher {
        self.volume.hasher()
    }

    /// Returns whether both tables hash keys alike, so that the order of keys is the same.
    pub(super) fn hashes_as(&self, other: &Self) -> bool {
        let of = |input: &Self| (input.hasher().kind(), input.hasher().key());
        of(self) == of(other)
    }

    /// Returns the number of versions of entries: at most its keys.
    pub(super) fn entries_max(&self) -> u64 {
        self.table.stats().entries
    }

    /// Returns the bytes of these.
    pub(super) fn bytes(&self) -> u64 {
        let (key, value) = self.widths();
        self.entries_max() * (key + value) as u64
    }

    pub(super) fn ram_bytes(&self) -> u64 {
        self.table.stats().ram_bytes
    }
}
