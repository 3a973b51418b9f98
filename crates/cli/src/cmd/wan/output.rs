//! The output of a stream: a file by its name, or stdout.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nandex::raw::device::output::OutputFile;

use crate::console::Console;
use crate::unfinished::{begin_output, cannot_write};

/// A file that is being written, or stdout.
pub enum Output {
    /// A file, and its name.
    File(OutputFile, PathBuf),
    /// Standard output, mostly a pipe.
    Stdout(io::Stdout),
}

impl Output {
    /// Begins a file, or uses stdout.
    ///
    /// # Errors
    /// A file that cannot be created, or that another run is creating.
    pub fn begin(path: Option<&Path>, console: &Console) -> Result<Self> {
        let Some(path) = path else { return Ok(Self::Stdout(io::stdout())) };
        Ok(Self::File(begin_output(path, console)?, path.to_owned()))
    }

    /// Returns whether it is stdout, so that nothing else may go there.
    pub fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout(_))
    }

    /// Finishes the file on success; otherwise the existing file stays.
    ///
    /// # Errors
    /// The error of `result`; a file that cannot be written.
    pub fn end<T>(self, result: Result<T>) -> Result<T> {
        let value = result?;
        if let Self::File(file, path) = self {
            file.finish().with_context(|| cannot_write(&path))?;
        }
        Ok(value)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file, _) => file.write(bytes),
            Self::Stdout(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file, _) => file.flush(),
            Self::Stdout(out) => out.flush(),
        }
    }
}
