//! A file that appears under its name when it is whole.

use std::fs::Permissions;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::{Error, Result};

/// Bytes of a buffer.
const BUFFER_BYTES: usize = 256 << 10;

/// The folder of a file.
pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file under another name until it is finished.
#[derive(Debug)]
pub(super) struct Target {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
}

impl Target {
    pub(super) fn new(path: &Path) -> Result<Self> {
        // As for any new file, the process's mask takes permissions away.
        let file = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder(path))
            .map_err(Error::file("make a file next to", path))?;
        Ok(Self { path: path.to_path_buf(), file: BufWriter::with_capacity(BUFFER_BYTES, file) })
    }

    /// Its path in the end; for errors.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn finish(self) -> Result<()> {
        let Self { path, file } = self;
        let file = file.into_inner().map_err(std::io::IntoInnerError::into_error);
        let file = file.map_err(Error::file("write", &path))?;
        let renamed = file.persist(&path).map_err(|error| error.error);
        renamed.map(drop).map_err(Error::file("write", &path))
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
