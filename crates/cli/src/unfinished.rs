//! New volumes and outputs until they are complete, and the messages about them.
//!
//! The files of a volume are [`UnfinishedFiles`] and get their names when they are complete. A block device has its
//! name already; there the volume itself is marked until it is complete ([`Completion`](nandex::raw::Completion)), and
//! `--force` replaces a marked one. All other named outputs are [`OutputFile`]s.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use nandex::Database;
use nandex::raw::device::output::{OutputFile, UnfinishedFiles, unfinished_path};

use crate::console::Console;

/// A new volume whose structures are closed. It stays open only if it is marked, as one on block devices is.
#[derive(Debug, Default)]
pub struct Unfinished {
    files: UnfinishedFiles,
    marked: Option<Database>,
}

impl Unfinished {
    /// Returns the remaining work for a volume; none if it was opened.
    pub fn of(db: Database) -> Self {
        let files = db.unfinished();
        Self { files, marked: db.volume().is_unfinished().then_some(db) }
    }

    /// Returns the remedy for a new volume that a stopped run has left in `place`.
    #[must_use]
    pub fn remedy(&self, name: &Path, place: &Path) -> Option<String> {
        if self.marked.is_some() {
            return Some(format!("{} stays unfinished; --force makes it again", name.display()));
        }
        (place != name).then(|| "add the rest there, then rename it".to_owned())
    }

    /// Returns the current path of the file of this name.
    #[must_use]
    pub fn path_of(&self, name: &Path) -> PathBuf {
        self.files.path_of(name)
    }

    /// Removes the mark of a volume on block devices, and gives the files their names, durably.
    ///
    /// # Errors
    /// A file that has got one of the names meanwhile; a folder that cannot be written to.
    pub fn finish(mut self) -> Result<()> {
        match self.marked {
            Some(db) => Ok(db.finish()?),
            None => Ok(self.files.finish()?),
        }
    }
}

/// Returns the path at which to create the file of this name; reports what it replaces of an earlier run.
///
/// # Errors
/// As [`UnfinishedFiles::begin`].
pub fn begin(files: &mut UnfinishedFiles, name: &Path, console: &Console) -> Result<PathBuf> {
    let is_left = unfinished_path(name).symlink_metadata().is_ok();
    let place = files.begin(name)?;
    if is_left {
        tell_replaced(&place, console);
    }
    Ok(place)
}

/// Opens a named output, and reports what it replaces of an earlier run.
///
/// # Errors
/// As [`OutputFile::begin`].
pub fn begin_output(path: &Path, console: &Console) -> Result<OutputFile> {
    let output = OutputFile::begin(path).with_context(|| cannot_write(path))?;
    if let Some(left) = output.unfinished().filter(|_| output.replaces_unfinished()) {
        tell_replaced(left, console);
    }
    Ok(output)
}

/// Writes a whole named output at once.
///
/// # Errors
/// As [`begin_output`]; no space.
pub fn write_output(path: &Path, bytes: impl AsRef<[u8]>, console: &Console) -> Result<()> {
    let mut output = begin_output(path, console)?;
    let written = output.write_all(bytes.as_ref()).and_then(|()| output.finish());
    written.with_context(|| cannot_write(path))
}

/// Returns the prefix of an error of an output.
pub fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

fn tell_replaced(left: &Path, console: &Console) {
    let left = left.display();
    console.note(&format!("{left} is replaced: the run that made it did not finish"));
}

/// Returns the error for a volume that is marked as unfinished.
#[must_use]
pub fn marked(cannot: &str) -> anyhow::Error {
    anyhow!(
        "{cannot}: it is unfinished: the run that makes it has failed or was stopped; run that command again with \
         --force, which makes it again"
    )
}
