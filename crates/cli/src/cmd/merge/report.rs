//! The result of a merge, or of a count of shared keys: for people and programs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use nandex::raw::Absorbed;
use serde::Serialize;

use super::input::Input;
use crate::console::aligned;
use crate::devices::FileBytes;
use crate::size::{show_bytes, show_count};

/// One of the input tables.
#[derive(Debug, Serialize)]
struct Side {
    path: PathBuf,
    table: String,
    entries: u64,
}

/// The numbers of both tables.
#[derive(Debug, Serialize)]
pub(super) struct Both {
    first: Side,
    second: Side,
    /// The number of different keys of both.
    keys: u64,
    /// The number of keys that both have.
    shared: u64,
    /// The number of those whose values differ.
    differing: u64,
    /// The most reads of one page.
    passes: u64,
}

/// The way in which a merge was done.
pub(super) struct How {
    /// The kind of the new table.
    pub structure: &'static str,
    /// The input that won on duplicate keys.
    pub prefer: &'static str,
    /// Whether it continued an earlier run that was stopped.
    pub resumed: bool,
    /// RAM of the three tables.
    pub ram_bytes: u64,
    pub elapsed: Duration,
}

/// The result of a count.
#[derive(Debug, Serialize)]
pub(super) struct Shared {
    #[serde(flatten)]
    pub(super) both: Both,
}

/// The result of a merge.
#[derive(Debug, Serialize)]
pub(super) struct Merged {
    path: PathBuf,
    structure: &'static str,
    prefer: &'static str,
    resumed: bool,
    #[serde(flatten)]
    both: Both,
    /// The number of entries in the new table.
    entries: u64,
    evicted: u64,
    elapsed_s: f64,
    /// The rate over both tables.
    entries_per_s: f64,
    ram_bytes: u64,
    #[serde(flatten)]
    files: FileBytes,
}

impl Both {
    /// Returns the numbers of both, which follow `after` other tables.
    pub(super) fn of(both: &[Input; 2], found: &Absorbed, after: usize) -> Self {
        let side = |at: usize| Side {
            path: both[at].path().to_owned(),
            table: both[at].name().to_owned(),
            entries: found.keys_of[after + at],
        };
        let &Absorbed { keys, shared, differing, passes, .. } = found;
        Self { first: side(0), second: side(1), keys, shared, differing, passes }
    }

    fn rows(&self) -> Vec<(&'static str, String)> {
        let side = |side: &Side| {
            format!(
                "{} entries in {} of {}",
                show_count(side.entries),
                side.table,
                side.path.display()
            )
        };
        let (shared, differing) = (show_count(self.shared), show_count(self.differing));
        let mut rows = vec![
            ("first", side(&self.first)),
            ("second", side(&self.second)),
            ("both have", format!("{shared} keys, {differing} of them with other values")),
            ("together", format!("{} keys", show_count(self.keys))),
        ];
        if self.passes > 1 {
            let passes = show_count(self.passes);
            rows.push((
                "passes",
                format!(
                    "{passes} over a table; more --merge-ram, or --hash-key shared, makes fewer"
                ),
            ));
        }
        rows
    }
}

impl Shared {
    pub(super) fn text(&self) -> String {
        aligned(&self.both.rows())
    }
}

impl Merged {
    /// Returns the report of a merge that was done in this way.
    ///
    /// # Errors
    /// The new file cannot be inspected.
    pub(super) fn new(path: &Path, how: How, both: Both, absorbed: &Absorbed) -> Result<Self> {
        let How { structure, prefer, resumed, ram_bytes, elapsed } = how;
        let (read, elapsed_s) = (both.first.entries + both.second.entries, elapsed.as_secs_f64());
        Ok(Self {
            path: path.to_owned(),
            structure,
            prefer,
            resumed,
            entries: both.keys.saturating_sub(absorbed.evicted),
            both,
            evicted: absorbed.evicted,
            elapsed_s,
            entries_per_s: read as f64 / elapsed_s.max(f64::MIN_POSITIVE),
            ram_bytes: ram_bytes + absorbed.ram_bytes,
            files: FileBytes::of([path])?,
        })
    }

    /// The number of entries that found no place.
    pub(super) fn evicted(&self) -> u64 {
        self.evicted
    }

    pub(super) fn text(&self) -> String {
        let mut rows = vec![
            ("volume", self.path.display().to_string()),
            ("structure", self.structure.to_owned()),
        ];
        rows.extend(self.both.rows());
        if self.both.differing > 0 {
            rows.push(("kept", format!("values of the {} one", self.prefer)));
        }
        let evicted = match self.evicted {
            0 => String::new(),
            evicted => format!(", after {} were evicted", show_count(evicted)),
        };
        let (elapsed_s, rate) = (self.elapsed_s, self.entries_per_s);
        rows.extend([
            ("holds", format!("{} entries{evicted}", show_count(self.entries))),
            ("took", format!("{elapsed_s:.1} s ({rate:.0} entries of both a second)")),
            ("RAM", show_bytes(self.ram_bytes)),
            ("file", self.files.shown()),
        ]);
        aligned(&rows)
    }
}
