//! The note beside a loaded table that says what is in it, so that the next run need not load again.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::plan::{Load, Plan};
use crate::subject::Durability;
use crate::workload::{KEY_BYTES, VALUE_BYTES};

/// Raised whenever keys, values or the note itself change meaning.
const NOTE_VERSION: u32 = 1;

/// What a table in a directory holds. All of it must match for the table to be used again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Loaded {
    /// Version of this note.
    pub version: u32,
    /// Name of the engine.
    pub index: String,
    /// Entries asked for.
    pub entries: u64,
    /// Entries the table has room for.
    pub entries_max: u64,
    /// Entries that are in it: fewer than asked for when the time ran out.
    pub count: u64,
    /// How they were put in; notes of before there was a choice have none.
    #[serde(default)]
    pub load: Load,
    /// Seed of the keys.
    pub seed: u64,
    /// The engine's RAM budget, which shapes its files.
    pub ram_bytes: u64,
    /// Durability it was created with.
    pub durability: Durability,
    /// Width of keys.
    pub key_bytes: usize,
    /// Width of values.
    pub value_bytes: usize,
}

impl Loaded {
    /// The note of a load of `count` entries by `plan`.
    #[must_use]
    pub fn of(plan: &Plan, index: &str, count: u64) -> Self {
        Self {
            version: NOTE_VERSION,
            index: index.to_owned(),
            entries: plan.entries,
            entries_max: plan.entries_max(),
            count,
            load: plan.load,
            seed: plan.seed,
            ram_bytes: plan.ram_bytes,
            durability: plan.durability,
            key_bytes: KEY_BYTES,
            value_bytes: VALUE_BYTES,
        }
    }

    /// The entries that are in the table of this plan, or `None` when it must be loaded first.
    #[must_use]
    pub fn find(plan: &Plan, index: &str) -> Option<u64> {
        let text = fs::read_to_string(path(&plan.dir, index)).ok()?;
        let note: Self = serde_json::from_str(&text).ok()?;
        let complete = note.count == note.entries || plan.load_time_max.is_some();
        (note == Self::of(plan, index, note.count) && complete && note.count > 0)
            .then_some(note.count)
    }

    /// Writes the note; the table must be closed and durable.
    ///
    /// # Errors
    /// The file system's.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let path = path(dir, &self.index);
        let text = serde_json::to_string_pretty(self)?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Forgets what is loaded; called before anything is changed.
    ///
    /// # Errors
    /// The file system's.
    pub fn forget(dir: &Path, index: &str) -> Result<()> {
        let path = path(dir, index);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", path.display()))
            }
            _ => Ok(()),
        }
    }
}

fn path(dir: &Path, index: &str) -> PathBuf {
    dir.join(format!("{index}.loaded.json"))
}
