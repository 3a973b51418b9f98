//! Where a stream goes: a file that is complete or has not its name, or stdout.

use std::fs::{self, File};
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::console::Console;
use crate::unfinished::Unfinished;

/// Bytes that are written at once.
const BUFFER_BYTES: usize = 1 << 20;

/// A file that is being made, or stdout.
pub enum Output {
    /// A file, under another name until it is complete.
    File(BufWriter<File>, Unfinished, PathBuf),
    /// The other end of a pipe, mostly.
    Stdout(io::Stdout),
}

impl Output {
    /// Begins a file, or takes stdout.
    ///
    /// # Errors
    /// A file that cannot be made, or that another run makes.
    pub fn begin(path: Option<&Path>, console: &Console) -> Result<Self> {
        let Some(path) = path else { return Ok(Self::Stdout(io::stdout())) };
        let mut made = Unfinished::default();
        let place = made.begin(path, console)?;
        let file =
            File::create(&place).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self::File(BufWriter::with_capacity(BUFFER_BYTES, file), made, place))
    }

    /// Is it stdout, so that nothing else may go there?
    pub fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout(_))
    }

    /// Gives a file its name if all went well, durably; removes it otherwise.
    ///
    /// # Errors
    /// What went wrong; a file that cannot be written.
    pub fn end<T>(self, result: Result<T>) -> Result<T> {
        let Self::File(out, mut made, place) = self else { return result };
        let finished = result.and_then(|value| {
            let synced = out.into_inner().map_err(IntoInnerError::into_error);
            let synced = synced.and_then(|file| file.sync_all());
            synced.with_context(|| format!("cannot write {}", place.display()))?;
            made.replace()?;
            Ok(value)
        });
        finished.inspect_err(|_| {
            // Best effort: the first error counts.
            let _ = fs::remove_file(&place);
        })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(out, ..) => out.write(bytes),
            Self::Stdout(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(out, ..) => out.flush(),
            Self::Stdout(out) => out.flush(),
        }
    }
}
