//! Files without names for data that does not fit into RAM: they vanish with the process.

use std::fs::File;
use std::io::{BufWriter, IntoInnerError, Seek};
use std::path::Path;

use crate::{Error, Result};

/// Creates a file without a name in `folder`.
///
/// # Errors
/// [`Error::Scratch`]: a folder that cannot be written to.
pub fn scratch_file(folder: &Path) -> Result<File> {
    tempfile::tempfile_in(folder).map_err(Error::scratch("make a temporary file"))
}

/// Returns the file of a buffer that was written, at its beginning. The words name the action that failed if writing or
/// reading fails.
///
/// # Errors
/// [`Error::Scratch`]: no space, a failed write.
pub fn rewound(file: BufWriter<File>, (write, read): (&'static str, &'static str)) -> Result<File> {
    let file = file.into_inner().map_err(IntoInnerError::into_error);
    let mut file = file.map_err(Error::scratch(write))?;
    file.rewind().map_err(Error::scratch(read))?;
    Ok(file)
}
