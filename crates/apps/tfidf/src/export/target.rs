//! An output of an export, with its name.

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use nandex::raw::device::output::OutputFile;

use crate::{Error, Result};

/// A named output.
#[derive(Debug)]
pub(super) struct Target {
    path: PathBuf,
    file: OutputFile,
}

impl Target {
    pub(super) fn new(path: &Path) -> Result<Self> {
        let file = OutputFile::begin(path).map_err(Error::file("write", path))?;
        Ok(Self { path: path.to_path_buf(), file })
    }

    /// Returns its path; for errors.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether it is a regular file, in which a writer can seek.
    pub(super) fn is_regular(&self) -> bool {
        self.file.unfinished().is_some()
    }

    /// Returns the folder for its temporary parts: that of a regular file, whose file system has space for both.
    pub(super) fn scratch_folder(&self) -> PathBuf {
        let folder = self.file.unfinished().and_then(Path::parent);
        folder.map_or_else(std::env::temp_dir, |folder| Path::new(".").join(folder))
    }

    pub(super) fn finish(self) -> Result<()> {
        let Self { path, file } = self;
        file.finish().map_err(Error::file("write", &path))
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Target {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.file.seek(to)
    }
}
