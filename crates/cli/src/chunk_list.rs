//! A run's progress on the meter, and the list of its chunks in a file.

use std::cell::{Cell, RefCell};
use std::io::{Error, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nandex::raw::device::output::OutputFile;
use nandex_dedup::{Done, Listed, Progress};

use crate::console::{Console, Meter};
use crate::unfinished::{begin_output, cannot_write};

/// The file of `--list`, if given. Its first failure is kept until the end of the run.
pub struct ChunkList<'a> {
    path: Option<&'a Path>,
    out: Option<RefCell<OutputFile>>,
    failure: Cell<Option<Error>>,
}

impl<'a> ChunkList<'a> {
    /// Opens the file.
    ///
    /// # Errors
    /// A file that cannot be created.
    pub fn begin(path: Option<&'a Path>, console: &Console) -> Result<Self> {
        let out = path.map(|path| begin_output(path, console)).transpose()?;
        Ok(Self { path, out: out.map(RefCell::new), failure: Cell::new(None) })
    }

    /// Returns the files of the list: the one that is written, and the one that it replaces.
    pub fn files(&self) -> Vec<PathBuf> {
        let unfinished = self.out.iter().filter_map(|out| Some(out.borrow().unfinished()?.into()));
        let replaced = self.path.iter().filter(|path| path.exists()).map(|path| path.into());
        unfinished.chain(replaced).collect()
    }

    /// Writes what is still in RAM, and gives the file its name.
    ///
    /// # Errors
    /// The first failure of any write.
    pub fn finish(self) -> Result<()> {
        let (Some(path), Some(out)) = (self.path, self.out) else { return Ok(()) };
        let failure = self.failure.into_inner();
        let done = failure.map_or_else(|| out.into_inner().finish(), Err);
        done.with_context(|| cannot_write(path))
    }

    fn write(&self, listed: Listed<'_>) {
        let Some(out) = &self.out else { return };
        if let Err(error) = writeln!(out.borrow_mut(), "{listed}") {
            let first = self.failure.take().unwrap_or(error);
            self.failure.set(Some(first));
        }
    }
}

/// The meter and the list of a run.
pub struct Watching<'a> {
    /// Shows the progress.
    pub meter: &'a Meter,
    /// Receives the chunks.
    pub list: &'a ChunkList<'a>,
}

impl Progress for Watching<'_> {
    fn update(&self, done: Done) {
        self.meter.at(done.bytes);
    }

    fn list(&self, listed: Listed<'_>) {
        self.list.write(listed);
    }
}
