//! Opening: create or find, lock, measure, choose the engine, and make the file's data and name durable.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, SeekFrom, flock, fsync, open as open_at, seek};
use rustix::io::Errno;

use super::engine::{self, ChosenEngine, Kernel};
use super::handle::{Handle, Medium};
use super::{Access, Create, FileOptions, owner};
use crate::{Error, PAGE_BYTES, Result};

/// Opens in named steps. If a later step fails, removes the file that it created.
pub(super) fn open(
    path: &Path,
    options: &FileOptions,
    kernel: Kernel,
) -> Result<(Handle, ChosenEngine)> {
    if options.access != Access::ReadWrite && options.create == Create::New {
        return Err(Error::ReadOnly { path: path.into() });
    }
    let (file, is_new) = find_or_create(path, options)?;
    lock(&file, path, options.access)?;
    let prepared = prepare(&file, path, options, kernel, is_new);
    let (medium, page_count, chosen) = prepared.inspect_err(|_| {
        if is_new {
            // The file was empty, and the lock is ours. This is best effort; the first error counts.
            let _ = fs::remove_file(path);
        }
    })?;
    Ok((Handle::new(file, path.into(), options, medium, page_count), chosen))
}

fn prepare(
    file: &File,
    path: &Path,
    options: &FileOptions,
    kernel: Kernel,
    is_new: bool,
) -> Result<(Medium, u64, ChosenEngine)> {
    let failed = |source| Error::Open { path: path.into(), source };
    let medium = medium(file).map_err(failed)?;
    let bytes = seek(file, SeekFrom::End(0)).map_err(|errno| failed(errno.into()))?;
    let chosen = engine::choose(file, options, kernel)?;
    if options.access == Access::ReadWrite {
        settle(file, path, is_new).map_err(failed)?;
    }
    Ok((medium, bytes / PAGE_BYTES as u64, chosen))
}

/// Syncs the file. Data of an earlier process may be only in the page cache, and the name of a new file only in memory:
/// both must be durable before anything builds on them.
fn settle(file: &File, path: &Path, is_new: bool) -> io::Result<()> {
    fsync(file)?;
    if is_new {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        fsync(File::open(parent.unwrap_or(Path::new(".")))?)?;
    }
    Ok(())
}

fn medium(file: &File) -> io::Result<Medium> {
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(Medium::File);
    }
    if kind.is_block_device() {
        return Ok(Medium::Block);
    }
    let words = "it is neither a regular file nor a block device; name one of these";
    Err(io::Error::new(io::ErrorKind::InvalidInput, words))
}

/// Returns the file, and whether this call created it.
fn find_or_create(path: &Path, options: &FileOptions) -> Result<(File, bool)> {
    let failed = |errno: Errno| Error::Open { path: path.into(), source: errno.into() };
    let may_create = options.create == Create::OpenOrCreate && options.access == Access::ReadWrite;
    let start = Instant::now();
    loop {
        let waited = start.elapsed();
        if options.create != Create::New {
            match find(path, options.access) {
                Ok(file) => return Ok((file, false)),
                Err(Errno::NOENT) if may_create => {}
                // O_EXCL on a block device: mounted, or open in another such handle.
                Err(Errno::BUSY) => {
                    let found = find(path, Access::ReadOnly);
                    pause(path, found.ok().and_then(|file| owner::of(&file)), waited)?;
                    continue;
                }
                Err(Errno::NOENT) => {
                    return Err(Error::Open { path: path.into(), source: missing() });
                }
                Err(errno) => return Err(failed(errno)),
            }
        }
        match create(path) {
            Ok(file) => return Ok((file, true)),
            // Another process was faster: open its file.
            Err(Errno::EXIST) if may_create => {}
            Err(Errno::NOENT) => {
                return Err(Error::Open { path: path.into(), source: no_folder() });
            }
            Err(errno) => return Err(failed(errno)),
        }
    }
}

/// Returns the error for a missing file, with the way to create it.
fn missing() -> io::Error {
    let words = "No such file; create it first (in a program: `Create::OpenOrCreate`)";
    io::Error::new(io::ErrorKind::NotFound, words)
}

/// Returns the error for a file in a missing folder.
fn no_folder() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "No such folder; create it first, or give another path")
}

/// The flags of every opening. O_NONBLOCK keeps a pipe from blocking the opener; it is cleared later.
fn base() -> OFlags {
    OFlags::CLOEXEC | OFlags::NONBLOCK
}

fn find(path: &Path, access: Access) -> rustix::io::Result<File> {
    let mut flags = base();
    flags |= match access {
        Access::ReadWrite => OFlags::RDWR,
        Access::ReadOnly | Access::ReadUnlocked => OFlags::RDONLY,
    };
    let is_block = fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
    if is_block && access == Access::ReadWrite {
        // Fails for a mounted device.
        flags |= OFlags::EXCL;
    }
    open_at(path, flags, Mode::empty()).map(File::from)
}

/// Creates a file that only its owner may access: a volume contains the key of its hash function.
fn create(path: &Path) -> rustix::io::Result<File> {
    let flags = base() | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    open_at(path, flags, Mode::from_raw_mode(0o600)).map(File::from)
}

/// The time to wait for the lock of a live process, which may be about to end.
const LIVING_PATIENCE: Duration = Duration::from_millis(500);
/// The time to wait for the lock of a killed process, whose rings the kernel still takes down.
const KILLED_PATIENCE: Duration = Duration::from_secs(60);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

fn lock(file: &File, path: &Path, access: Access) -> Result<()> {
    let operation = match access {
        Access::ReadWrite => FlockOperation::NonBlockingLockExclusive,
        Access::ReadOnly => FlockOperation::NonBlockingLockShared,
        Access::ReadUnlocked => return Ok(()),
    };
    let start = Instant::now();
    loop {
        // Measured before the attempt, so that one attempt follows the end of the wait, however long the pause was.
        let waited = start.elapsed();
        match flock(file, operation) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) => pause(path, owner::of(file), waited)?,
            Err(errno) => return Err(Error::Open { path: path.into(), source: errno.into() }),
        }
    }
}

/// Pauses, so that the owner of a file may release it; fails once that has lasted too long.
fn pause(path: &Path, owner: Option<u32>, waited: Duration) -> Result<()> {
    let is_killed = owner.is_some_and(|pid| !owner::is_alive(pid));
    let patience = if is_killed { KILLED_PATIENCE } else { LIVING_PATIENCE };
    if waited >= patience {
        return Err(Error::Locked { path: path.into(), owner });
    }
    sleep(LOCK_PAUSE);
    Ok(())
}
