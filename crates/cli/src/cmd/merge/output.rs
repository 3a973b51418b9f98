//! The output table of a merge: its size, its structure, and its hash.

use std::path::Path;

use anyhow::{Context, Result};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use nandex::TableOrMap;
use nandex::device::Create;
use nandex::raw::Absorbed;
use nandex::raw::device::output::{UnfinishedFiles, unfinished_path};
use nandex::raw::registry;
use nandex::raw::{Versions, Watch};
use nandex::{AbsorbOptions, AnyTable, Durability, Policy, Prediction, Requirements};

use crate::console::Console;
use crate::devices::{EngineArgs, VolumeArgs};
use crate::held::{Opened, STRIPING};
use crate::place::{self, OpenedTable, Plan};
use crate::refuse;
use crate::size::show_count;

use super::Args;
use super::input::Input;

/// Parses the structures that a merge can create.
pub(super) fn kinds() -> impl TypedValueParser<Value = String> {
    let made = registry::tables().filter(|(row, table)| table.merges_into == Some(row.kind));
    PossibleValuesParser::new(made.map(|(row, _)| row.kind).collect::<Vec<_>>())
}

/// A table to create.
pub(super) struct Output {
    prediction: Prediction,
    policy: Policy,
}

/// The new table, until it has its name.
pub(super) struct Making {
    opened: OpenedTable,
    /// Whether an earlier run has begun it.
    is_resumed: bool,
    /// Whether it may drop entries.
    evicts: bool,
}

impl Output {
    /// Sizes the table for the requested entries, or for all entries of both.
    ///
    /// # Errors
    /// A policy or requirements that no such table meets.
    pub(super) fn plan(args: &Args, both: &[Input; 2]) -> Result<Self> {
        if args.policy == Policy::Grow {
            refuse!(
                "--policy grow: a merge makes a table of a fixed size; state its size with --entries"
            );
        }
        if args.resume && args.policy != Policy::Reject {
            refuse!(
                "--resume: a table that evicts may have dropped what is missing; omit it, which begins again"
            );
        }
        let kind = match &args.structure {
            Some(word) => registry::find(word).map(|row| row.kind),
            None => both[0].merges_into(),
        };
        let (key_bytes, value_bytes) = both[0].widths();
        let entries = args.entries.unwrap_or_else(|| entries_max(both)).max(1);
        let asked = args.requirements.of(entries, key_bytes as u64, value_bytes as u64)?;
        let asked = Requirements { policy: args.policy, ..asked };
        let prediction = asked.size(kind)?.prediction;
        Ok(Self { prediction, policy: args.policy })
    }

    /// Returns whether it may be too small for all keys of both, when none may be dropped.
    pub(super) fn may_be_too_small(&self, both: &[Input; 2]) -> bool {
        self.policy == Policy::Reject && self.prediction.entries_capacity < entries_max(both)
    }

    /// Fails if the table is too small for this number of keys.
    ///
    /// # Errors
    /// A table that is too small.
    pub(super) fn refuse_too_small(&self, args: &Args, keys: u64) -> Result<()> {
        let capacity = self.prediction.entries_capacity;
        if keys <= capacity {
            return Ok(());
        }
        let [keys, capacity] = [keys, capacity].map(show_count);
        refuse!(
            "{} and {} have {keys} different keys, and the new table surely holds {capacity}; state more --entries, or \
             --policy fifo to drop the oldest; nothing was made",
            args.first.display(),
            args.second.display()
        )
    }

    /// Creates the volume with the empty table. It hashes keys as the larger input does, which is then read once.
    ///
    /// # Errors
    /// An existing file, no space.
    pub(super) fn create(
        &self,
        (path, engine, force): (&Path, EngineArgs, bool),
        both: &[Input; 2],
        console: &Console,
    ) -> Result<Making> {
        let [first, second] = both;
        let larger = if second.entries_max() > first.entries_max() { second } else { first };
        let plan = Plan {
            name: first.name(),
            prediction: &self.prediction,
            values: None,
            geometry: None,
            hasher: Some(larger.hasher()),
        };
        let mut volume = VolumeArgs::single(path.to_owned(), engine);
        volume.devices.force = force;
        let opened = place::create(&volume, STRIPING, plan, Durability::Never, console)?;
        let evicts = self.policy != Policy::Reject;
        Ok(Making { opened, is_resumed: false, evicts })
    }

    /// Opens the file that a stopped run has left; returns `None` if it has left none, or nothing usable.
    ///
    /// # Errors
    /// A table that was begun for other volumes or with other options.
    pub(super) fn resume(
        &self,
        (path, engine): (&Path, EngineArgs),
        table: &str,
        console: &Console,
    ) -> Result<Option<Making>> {
        let place = unfinished_path(path);
        if !place.exists() {
            return Ok(None);
        }
        let shown = place.display();
        let opened = match left((path, engine), table) {
            Ok(opened) => opened,
            Err(error) => {
                console.note(&format!("{shown} has nothing to go on with: {error:#}"));
                return Ok(None);
            }
        };
        if opened.structure.index().config() != self.prediction.config {
            refuse!(
                "--resume: {shown} was begun for other volumes or with other options; omit it, which begins again"
            );
        }
        let entries = show_count(opened.structure.stats().entries);
        console.note(&format!("{shown} is resumed: it has {entries} entries"));
        Ok(Some(Making { opened, is_resumed: true, evicts: false }))
    }
}

/// Opens the volume that a stopped run has left, and its table.
fn left((path, engine): (&Path, EngineArgs), table: &str) -> Result<OpenedTable> {
    let options = nandex::options().resume().create(Create::Open).durability(Durability::Never);
    let options = options.engine(engine.choice());
    let db = options.open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let structure = db.table_or_map(table)?;
    Ok(Opened { db, name: table.to_owned(), structure })
}

fn entries_max(both: &[Input; 2]) -> u64 {
    both.iter().map(Input::entries_max).sum()
}

impl Making {
    /// Returns the file that is being created.
    pub(super) fn made(&self) -> UnfinishedFiles {
        self.opened.db.unfinished()
    }

    /// Returns whether an earlier run has begun it.
    pub(super) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Adds the entries of these tables.
    ///
    /// # Errors
    /// A failed read or write, damage, a full table, or `watch` has stopped it.
    pub(super) fn absorb(
        &mut self,
        others: &[Versions<'_>],
        options: &AbsorbOptions,
        watch: &Watch<'_>,
    ) -> nandex::Result<Absorbed> {
        match &mut self.opened.structure {
            TableOrMap::Table(table) => table.absorb(others, options, watch),
            TableOrMap::Map(_) => unreachable!("a merge makes tables of fixed widths"),
        }
    }

    /// Rejects the file of a stopped run that had other volumes, and so has their keys.
    ///
    /// # Errors
    /// Keys of other volumes.
    pub(super) fn refuse_others(&self, path: &Path, absorbed: &Absorbed) -> Result<()> {
        if !self.is_resumed || absorbed.only_own == 0 {
            return Ok(());
        }
        let (place, count) = (self.made().path_of(path), show_count(absorbed.only_own));
        refuse!(
            "--resume: {} has {count} keys that neither volume has, so it was begun for others; omit it, which begins \
             again",
            place.display()
        )
    }

    /// Ends a merge that was stopped, and reports what is left of it.
    ///
    /// # Errors
    /// A failed write or sync.
    pub(super) fn stop(self, path: &Path) -> Result<String> {
        let made = self.made();
        let place = made.path_of(path);
        if place == path {
            return Ok(format!("{} stays unfinished; --force makes it again", path.display()));
        }
        if self.evicts {
            made.remove();
            return Ok("no file was made".into());
        }
        self.opened.close()?;
        let place = place.display();
        Ok(format!("{place} has what was merged: the same command with --resume adds the rest"))
    }

    fn table(&self) -> &AnyTable {
        self.opened.structure.index()
    }

    pub(super) fn kind(&self) -> &'static str {
        self.table().kind()
    }

    pub(super) fn ram_bytes(&self) -> u64 {
        self.opened.structure.stats().ram_bytes
    }

    /// Closes the volume and gives it its name.
    ///
    /// # Errors
    /// A failed write or sync.
    pub(super) fn close(self) -> Result<()> {
        self.opened.close()?.finish()
    }
}
