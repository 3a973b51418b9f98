//! A run's progress on the meter, and its chunks in a file.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{BufWriter, Error, Write};
use std::path::Path;

use anyhow::{Context, Result};
use nandex_dedup::{Done, Listed, Progress};

use crate::console::Meter;

/// The file of `--list`, if one is wanted. Its first failure is kept until the end of the run.
pub struct ChunkList<'a> {
    path: Option<&'a Path>,
    out: Option<RefCell<BufWriter<File>>>,
    failure: Cell<Option<Error>>,
}

impl<'a> ChunkList<'a> {
    /// Makes the file, or empties it.
    ///
    /// # Errors
    /// A file that cannot be made.
    pub fn create(path: Option<&'a Path>) -> Result<Self> {
        let create = |path: &Path| {
            File::create(path).with_context(|| format!("cannot write {}", path.display()))
        };
        let out = path.map(create).transpose()?.map(|file| RefCell::new(BufWriter::new(file)));
        Ok(Self { path, out, failure: Cell::new(None) })
    }

    /// Writes what is still in memory.
    ///
    /// # Errors
    /// The first failure of any write.
    pub fn finish(self) -> Result<()> {
        let (Some(path), Some(out)) = (self.path, self.out) else { return Ok(()) };
        let flushed = out.into_inner().flush();
        let done = self.failure.into_inner().map_or(flushed, Err);
        done.with_context(|| format!("cannot write {}", path.display()))
    }

    fn write(&self, listed: Listed<'_>) {
        let Some(out) = &self.out else { return };
        if let Err(error) = writeln!(out.borrow_mut(), "{listed}") {
            let first = self.failure.take().unwrap_or(error);
            self.failure.set(Some(first));
        }
    }
}

/// Both, for a run.
pub struct Watching<'a> {
    /// Shows how far it is.
    pub meter: &'a Meter,
    /// Takes the chunks.
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
