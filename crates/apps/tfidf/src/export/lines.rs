//! JSON lines.

use std::io::Write;
use std::path::Path;

use serde::Serialize;

use super::target::Target;
use crate::{Error, Result};

/// A line of the vocabulary.
#[derive(Debug, Serialize)]
pub(super) struct TermLine<'a> {
    pub(super) column: u64,
    pub(super) term: &'a str,
    pub(super) documents: u64,
    pub(super) idf: f64,
}

/// A line of the documents.
#[derive(Debug, Serialize)]
pub(super) struct RowLine<'a> {
    pub(super) row: u64,
    pub(super) id: &'a str,
}

/// A writer of a JSON object in each line of a file.
#[derive(Debug)]
pub(super) struct LinesWriter(Target);

impl LinesWriter {
    pub(super) fn new(path: &Path) -> Result<Self> {
        Ok(Self(Target::new(path)?))
    }

    pub(super) fn push(&mut self, line: &impl Serialize) -> Result<()> {
        let written = serde_json::to_writer(&mut self.0, line).map_err(std::io::Error::from);
        let written = written.and_then(|()| self.0.write_all(b"\n"));
        written.map_err(Error::file("write", self.0.path()))
    }

    pub(super) fn finish(self) -> Result<()> {
        self.0.finish()
    }
}
