//! Named outputs: a regular file is replaced whole or not at all, and anything else is opened and written to.
//!
//! | the name leads to | what happens |
//! |---|---|
//! | a regular file, or nothing | `NAME.unfinished` in the same folder is written, synced and renamed |
//! | a link | the link stays, and its target is replaced or written to |
//! | a device, a pipe, a socket with a listener | it is written to |
//! | an open file, such as `/dev/stdout` | it is written to, after its present content |
//! | a folder, a socket without a listener | an error, and nothing changes |
//!
//! So no output removes a device, and a failed run keeps the existing file. A replacement gets the mode and, if this
//! process may change owners, the owner of the file that it replaces.
//!
//! Files of a volume are written in place, by pages, for as long as the volume is being filled: they are
//! [`UnfinishedFiles`] until it is complete.

#[cfg(test)]
mod tests;
mod unfinished;

pub use unfinished::{UnfinishedFiles, refuse_existing, refuse_unfinished};

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, BufWriter, ErrorKind, IntoInnerError, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The number of bytes that are written at once.
const BUFFER_BYTES: usize = 256 << 10;

/// The permissions of a new file, before the process's umask.
const NEW_MODE: u32 = 0o666;

/// A named output that is being written. Dropping it before [`finish`](Self::finish) leaves a regular file as it was.
#[derive(Debug)]
pub struct OutputFile {
    out: BufWriter<File>,
    /// `None` for an output that is written in place.
    replacement: Option<Replacement>,
}

/// A file under its unfinished name. Dropping it removes the file.
#[derive(Debug)]
struct Replacement {
    name: PathBuf,
    unfinished: PathBuf,
    is_named: bool,
    replaces_unfinished: bool,
}

impl OutputFile {
    /// Opens the output that `path` names. Blocks while a pipe has no reader.
    ///
    /// # Errors
    /// A folder, a file that this process may not write, an output that another run is writing.
    pub fn begin(path: &Path) -> io::Result<Self> {
        let kind = match fs::metadata(path) {
            Ok(found) => Some(found.file_type()),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if kind.is_some_and(|kind| kind.is_dir()) {
            let text = "it is a folder; name a file in it";
            return Err(io::Error::new(ErrorKind::IsADirectory, text));
        }
        match (follow(path)?, kind) {
            (Followed::OpenFile(link), _) => share(&link).map(Self::in_place),
            (Followed::Name(name), Some(kind)) if kind.is_socket() => {
                connect(&name).map(Self::in_place)
            }
            (Followed::Name(name), Some(kind)) if !kind.is_file() => {
                open(&name).map(Self::in_place)
            }
            (Followed::Name(name), _) => Self::replacing(name),
        }
    }

    fn in_place(file: File) -> Self {
        Self { out: BufWriter::with_capacity(BUFFER_BYTES, file), replacement: None }
    }

    fn replacing(name: PathBuf) -> io::Result<Self> {
        // A file that is protected from writing is protected from replacement.
        let mode = match open(&name) {
            Ok(replaced) => replaced.metadata()?.mode() & NEW_MODE,
            Err(error) if error.kind() == ErrorKind::NotFound => NEW_MODE,
            Err(error) => return Err(error),
        };
        let unfinished = unfinished_path(&name);
        let (file, replaces_unfinished) =
            make(&unfinished, mode).map_err(|error| not_made(&unfinished, &error))?;
        let replacement = Replacement { name, unfinished, is_named: false, replaces_unfinished };
        Ok(Self { replacement: Some(replacement), ..Self::in_place(file) })
    }

    /// The path of the bytes until the output is finished; `None` for an output that is written in place.
    #[must_use]
    pub fn unfinished(&self) -> Option<&Path> {
        self.replacement.as_ref().map(|it| &*it.unfinished)
    }

    /// Returns whether an earlier run had left an unfinished file, which was removed.
    #[must_use]
    pub fn replaces_unfinished(&self) -> bool {
        self.replacement.as_ref().is_some_and(|it| it.replaces_unfinished)
    }

    /// Writes what is still in RAM, and gives a regular file its name, durably.
    ///
    /// # Errors
    /// A failed write, sync or rename. A regular file is then unchanged.
    pub fn finish(self) -> io::Result<()> {
        let Self { out, replacement } = self;
        let file = out.into_inner().map_err(IntoInnerError::into_error)?;
        let Some(mut replacement) = replacement else { return sync_stored(&file) };
        replace_file(&file, &replacement.unfinished, &replacement.name)?;
        replacement.is_named = true;
        Ok(())
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Seek for OutputFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.out.seek(to)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.is_named {
            // Best effort: the error that ended the run counts.
            let _ = fs::remove_file(&self.unfinished);
        }
    }
}

/// Writes a whole output at once.
///
/// # Errors
/// As [`OutputFile::begin`] and [`OutputFile::finish`].
pub fn write_output(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let mut output = OutputFile::begin(path)?;
    output.write_all(bytes.as_ref())?;
    output.finish()
}

/// Gives the file at `place` the name of a regular file, durably and atomically, with the mode and, if this process may
/// change owners, the owner of the file that had the name.
///
/// # Errors
/// A failed sync or rename.
pub fn replace_file(file: &File, place: &Path, name: &Path) -> io::Result<()> {
    if let Ok(replaced) = fs::symlink_metadata(name) {
        // A change of the owner clears bits of the mode, so it comes first.
        let _ = fchown(file, Some(replaced.uid()), Some(replaced.gid()));
        file.set_permissions(Permissions::from_mode(replaced.mode() & 0o7777))?;
    }
    file.sync_all()?;
    fs::rename(place, name)?;
    File::open(folder(name))?.sync_all()
}

/// Returns the name of a file while it is incomplete.
#[must_use]
pub fn unfinished_path(name: &Path) -> PathBuf {
    let mut path = name.as_os_str().to_owned();
    path.push(".unfinished");
    path.into()
}

/// The end of a chain of links.
enum Followed {
    /// A name that is not a link.
    Name(PathBuf),
    /// A link in `/proc` to a file that a process has open; the file may have no name.
    OpenFile(PathBuf),
}

/// Follows links to their end. The caller has checked that they are not circular.
fn follow(path: &Path) -> io::Result<Followed> {
    let mut name = path.to_owned();
    while name.is_symlink() {
        let folder = fs::canonicalize(folder(&name))?;
        let link = folder.join(name.file_name().unwrap_or_default());
        if folder.starts_with("/proc") {
            return Ok(Followed::OpenFile(link));
        }
        name = folder.join(fs::read_link(link)?);
    }
    Ok(Followed::Name(name))
}

fn folder(name: &Path) -> &Path {
    name.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens a file that a process has open. Standard output and error are shared, so that later messages on them follow
/// the output.
fn share(link: &Path) -> io::Result<File> {
    let own = format!("/proc/{}/fd", std::process::id());
    match link.strip_prefix(own).ok().and_then(Path::to_str) {
        Some("1") => io::stdout().as_fd().try_clone_to_owned().map(File::from),
        Some("2") => io::stderr().as_fd().try_clone_to_owned().map(File::from),
        _ => OpenOptions::new().append(true).open(link),
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

fn connect(path: &Path) -> io::Result<File> {
    match UnixStream::connect(path) {
        Ok(stream) => Ok(OwnedFd::from(stream).into()),
        Err(error) => {
            let text = format!("it is a socket without a listener: {error}; name a file");
            Err(io::Error::new(error.kind(), text))
        }
    }
}

/// Creates an unfinished file and locks it; returns whether it replaces one of an earlier run.
fn make(unfinished: &Path, mode: u32) -> io::Result<(File, bool)> {
    let create = || OpenOptions::new().write(true).create_new(true).mode(mode).open(unfinished);
    let (file, replaces) = match create() {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            remove_left(unfinished)?;
            (create()?, true)
        }
        created => (created?, false),
    };
    lock(&file)?;
    let (ours, named) = (file.metadata()?, fs::symlink_metadata(unfinished)?);
    // Another run may have removed it before it was locked.
    if (ours.dev(), ours.ino()) == (named.dev(), named.ino()) {
        Ok((file, replaces))
    } else {
        Err(in_use())
    }
}

/// Removes the file of a run that did not finish. Its lock shows whether that run is still active.
fn remove_left(unfinished: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(unfinished)?.is_file() {
        let text = "it exists and is not a regular file; remove it, or name another output";
        return Err(io::Error::new(ErrorKind::AlreadyExists, text));
    }
    let left = File::open(unfinished)?;
    lock(&left)?;
    fs::remove_file(unfinished)
}

/// Locks a file if the file system supports that.
fn lock(file: &File) -> io::Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(in_use()),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

fn in_use() -> io::Error {
    let text =
        "another output of that name is being written; wait until it is done, or name another file";
    io::Error::new(ErrorKind::ResourceBusy, text)
}

fn not_made(unfinished: &Path, error: &io::Error) -> io::Error {
    let folder = folder(unfinished);
    let text = if error.kind() == ErrorKind::NotFound && !folder.exists() {
        format!("there is no folder {}; create it first, or name another one", folder.display())
    } else {
        format!("cannot create {}: {error}", unfinished.display())
    };
    io::Error::new(error.kind(), text)
}

/// Syncs a file or a block device. A pipe, a socket and a terminal store nothing, and cannot be synced.
fn sync_stored(file: &File) -> io::Result<()> {
    let kind = file.metadata()?.file_type();
    if kind.is_file() || kind.is_block_device() { file.sync_all() } else { Ok(()) }
}
