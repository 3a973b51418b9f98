//! The note on the content of a loaded engine, so that the next run need not load again.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nandex_device::output::write_output;
use serde::{Deserialize, Serialize};

use crate::documents::DocumentSettings;
use crate::keys::KEY_BYTES;
use crate::plan::{FilterSettings, KeyStorage, Load, Plan, discipline_name};
use crate::subject::{Durability, Maker};
use crate::workload::Kind;

/// The version of the note, increased whenever keys, values or the note itself change meaning.
const NOTE_VERSION: u32 = 2;

/// The content of an engine in a directory. All of it must match for the engine to be reused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Loaded {
    /// Version of this note.
    pub version: u32,
    /// The name of the engine. There is one note for each engine, as there is one file.
    pub engine: String,
    /// The name with the settings that shape a filter's file.
    pub index: String,
    /// The requested entries.
    pub entries: u64,
    /// Entries of the engine's configuration.
    pub entries_max: u64,
    /// The entries in it: fewer than requested if the time ran out.
    pub count: u64,
    /// The kind of load.
    pub load: Load,
    /// Seed of the keys.
    pub seed: u64,
    /// The engine's RAM budget, which shapes its files.
    pub ram_bytes: u64,
    /// The durability it was created with.
    pub durability: Durability,
    /// Width of keys.
    pub key_bytes: usize,
    /// Width of values.
    pub value_bytes: usize,
}

impl Loaded {
    /// Creates the note of a load of `count` entries by `plan`.
    #[must_use]
    pub fn of(plan: &Plan, maker: &dyn Maker, count: u64) -> Self {
        Self {
            version: NOTE_VERSION,
            engine: maker.name().to_owned(),
            index: name(plan, maker),
            entries: plan.entries,
            entries_max: plan.entries_max(),
            count,
            load: plan.load,
            seed: plan.seed,
            ram_bytes: plan.ram_bytes,
            durability: plan.durability,
            key_bytes: KEY_BYTES,
            value_bytes: plan.value_bytes(),
        }
    }

    /// Returns the number of entries in this plan's engine, or `None` if it must be loaded first.
    #[must_use]
    pub fn find(plan: &Plan, maker: &dyn Maker) -> Option<u64> {
        let text = fs::read_to_string(path(&plan.dir, maker.name())).ok()?;
        let note: Self = serde_json::from_str(&text).ok()?;
        let complete = note.count == note.entries || plan.load_time_max.is_some();
        (note == Self::of(plan, maker, note.count) && complete && note.count > 0)
            .then_some(note.count)
    }

    /// Writes the note; the engine must be closed and durable.
    ///
    /// # Errors
    /// Returns the file system's error.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let path = path(dir, &self.engine);
        let text = serde_json::to_string_pretty(self)?;
        write_output(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Removes the note, before anything is changed.
    ///
    /// # Errors
    /// Returns the file system's error.
    pub fn forget(plan: &Plan, maker: &dyn Maker) -> Result<()> {
        let path = path(&plan.dir, maker.name());
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", path.display()))
            }
            _ => Ok(()),
        }
    }
}

fn name(plan: &Plan, maker: &dyn Maker) -> String {
    let engine = maker.name();
    match maker.kind() {
        Kind::Table => engine.to_owned(),
        Kind::Filter => {
            let FilterSettings { rate, fan_out, stored_keys, discipline, .. } = plan.filter;
            let stored = match stored_keys {
                KeyStorage::Fingerprints => rate.to_string(),
                KeyStorage::Whole => "whole".to_owned(),
            };
            let fan_out = fan_out.map(|times| format!("-x{times}")).unwrap_or_default();
            let discipline = discipline.map(|it| format!("-{}", discipline_name(it)));
            format!("{engine}-{stored}{fan_out}{}", discipline.unwrap_or_default())
        }
        Kind::Neighbors => {
            let DocumentSettings { tables, near_share, similarity, rows } = plan.documents;
            format!("{engine}-{tables}x{rows}-{near_share}-{similarity}")
        }
    }
}

fn path(dir: &Path, engine: &str) -> PathBuf {
    dir.join(format!("{engine}.loaded.json"))
}
