//! The files of a volume until it is whole: they get their names at the end.
//!
//! A file NAME is created as `NAME.unfinished` and renamed at the end. So no run that was killed, stopped or out of
//! space leaves a file that looks complete, and the next run replaces the unfinished file, or continues with it. The
//! files of one volume are renamed only when all of them are complete, the first one last; a program that opens some of
//! them while others have no name yet gets an error.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::mem::take;
use std::path::{Path, PathBuf};

use super::{folder, replace_file, unfinished_path};
use crate::{Error, FileDevice, FileOptions, Result};

/// Files that are being created, by their final names.
///
/// ```
/// use nandex_device::output::UnfinishedFiles;
///
/// # let folder = tempfile::tempdir()?;
/// # let name = folder.path().join("new.nandex");
/// let mut files = UnfinishedFiles::default();
/// let place = files.begin(&name)?;
/// std::fs::write(&place, "all of it")?;
/// assert!(!name.exists());
/// files.finish()?;
/// assert_eq!(std::fs::read(&name)?, b"all of it");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct UnfinishedFiles {
    names: Vec<PathBuf>,
}

impl UnfinishedFiles {
    /// Returns the path at which to create the file `name`, and removes what an earlier run left there. The caller has
    /// checked that no file has that name.
    ///
    /// # Errors
    /// [`Error::Name`] for a file that another run is creating, or that is not a regular file.
    pub fn begin(&mut self, name: &Path) -> Result<PathBuf> {
        let place = unfinished_path(name);
        if fs::symlink_metadata(&place).is_ok() {
            remove_left(name, &place)?;
        }
        self.names.push(name.to_owned());
        Ok(place)
    }

    /// Returns the path at which an earlier run has left the file `name` unfinished, so that this run continues with
    /// it; `None` if there is none.
    pub fn resume(&mut self, name: &Path) -> Option<PathBuf> {
        let place = unfinished_path(name);
        let is_left = place.exists();
        self.names.extend(is_left.then(|| name.to_owned()));
        is_left.then_some(place)
    }

    /// Gives the files their names, durably.
    ///
    /// # Errors
    /// [`Error::Name`] for a file that has got one of the names meanwhile, or a folder that cannot be written to.
    pub fn finish(&mut self) -> Result<()> {
        let named = take(&mut self.names);
        named.iter().rev().try_for_each(|name| rename(&unfinished_path(name), name))
    }

    /// Gives the files their names, durably and atomically, replacing the regular files that have them.
    ///
    /// # Errors
    /// [`Error::Name`] for a folder that cannot be written to.
    pub fn replace(&mut self) -> Result<()> {
        for name in take(&mut self.names) {
            let place = unfinished_path(&name);
            let file = File::options().write(true).open(&place);
            let renamed = file.and_then(|file| replace_file(&file, &place, &name));
            renamed.map_err(|why| refused("rename", &place, why))?;
        }
        Ok(())
    }

    /// Returns whether there are no files.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Leaves the files without their names.
    pub fn forget(&mut self) {
        self.names.clear();
    }

    /// Removes the files after a failure.
    pub fn remove(&self) {
        for name in &self.names {
            // Best effort: the first error counts.
            let _ = fs::remove_file(unfinished_path(name));
        }
    }

    /// Returns the current path of the file `name`.
    #[must_use]
    pub fn path_of(&self, name: &Path) -> PathBuf {
        let is_unfinished = self.names.iter().any(|made| made == name);
        if is_unfinished { unfinished_path(name) } else { name.to_owned() }
    }
}

/// Fails if a file has one of these names, before any is removed or created.
///
/// # Errors
/// [`Error::Name`] for such a file.
pub fn refuse_existing(names: &[&Path]) -> Result<()> {
    let Some(found) = names.iter().find(|name| fs::symlink_metadata(name).is_ok()) else {
        return Ok(());
    };
    refuse_half_named(names, "create")?;
    Err(refused("create", found, "it exists; name another file, or remove it first"))
}

/// Fails if a file of these names is missing but its unfinished version exists.
///
/// # Errors
/// [`Error::Name`] for such a file, with the remedy.
pub fn refuse_unfinished(names: &[&Path]) -> Result<()> {
    let Some(name) = names.iter().find(|name| is_unnamed(name)) else { return Ok(()) };
    refuse_half_named(names, "open")?;
    let place = unfinished_path(name);
    let left = place.display();
    Err(refused(
        "open",
        name,
        match is_locked(&place) {
            true => format!("another run is making it, {left} is in use; wait for its end"),
            false => format!(
                "it is unfinished: the run that makes it has failed or was stopped, and left {left}; run that command \
                 again, which replaces it, or name {left} to use what is in it"
            ),
        },
    ))
}

/// Fails if some files of a volume have their names and others do not yet: all are complete, and the renames were
/// interrupted.
fn refuse_half_named(names: &[&Path], action: &'static str) -> Result<()> {
    let unnamed = names.iter().find(|name| is_unnamed(name));
    let (Some(unnamed), Some(named)) = (unnamed, names.iter().find(|name| name.exists())) else {
        return Ok(());
    };
    let (place, named, name) = (unfinished_path(unnamed), named.display(), unnamed.display());
    let left = place.display();
    Err(refused(
        action,
        unnamed,
        format!(
            "{named} has its name and {left} not yet: the run that made them was stopped between its renames, when all \
             were whole; finish it with mv {left} {name}, or remove them all"
        ),
    ))
}

fn is_unnamed(name: &Path) -> bool {
    fs::symlink_metadata(name).is_err() && unfinished_path(name).exists()
}

fn is_locked(path: &Path) -> bool {
    matches!(FileDevice::open(path, &FileOptions::default()), Err(Error::Locked { .. }))
}

/// Removes what an earlier run has left. The lock of the file shows whether that run is still active.
fn remove_left(name: &Path, place: &Path) -> Result<()> {
    let left = place.display();
    if !fs::symlink_metadata(place).is_ok_and(|found| found.is_file()) {
        let why = format!("{left} exists and is not a regular file; remove it first");
        return Err(refused("create", name, why));
    }
    if is_locked(place) {
        let why = format!("another run is making it, {left} is in use; wait for its end");
        return Err(refused("create", name, why));
    }
    fs::remove_file(place).map_err(|why| refused("remove", place, why))
}

/// Renames a file to a name that no file has.
fn rename(from: &Path, to: &Path) -> Result<()> {
    let linked = match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(io::Error::other(format!("{} exists", to.display())))
        }
        // The file system has no hard links.
        Err(_) => fs::rename(from, to),
    };
    let synced = linked.and_then(|()| File::open(folder(to))?.sync_all());
    synced.map_err(|why| refused("rename", from, why))
}

fn refused(action: &'static str, path: &Path, reason: impl ToString) -> Error {
    Error::Name { action, path: path.to_owned(), reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[&str]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let folder = tempfile::tempdir().unwrap();
        let names = names.iter().map(|name| folder.path().join(name)).collect();
        (folder, names)
    }

    fn text<T: std::fmt::Debug>(result: Result<T>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn files_get_their_names_at_the_end_and_never_another_file_s() {
        let (_folder, names) = files(&["a", "b"]);
        let mut made = UnfinishedFiles::default();
        for name in &names {
            fs::write(made.begin(name).unwrap(), "new").unwrap();
            assert_eq!(made.path_of(name), unfinished_path(name));
        }
        // The first name is given last; here that fails.
        fs::write(&names[0], "mine").unwrap();
        assert!(text(made.finish()).contains("a exists"));
        assert_eq!(fs::read(&names[0]).unwrap(), b"mine");
        assert_eq!(fs::read(&names[1]).unwrap(), b"new");
        let both = [&*names[0], &*names[1]];
        assert!(text(refuse_existing(&both)).contains("it exists; name another file"));
        fs::remove_file(&names[0]).unwrap();
        for found in [text(refuse_existing(&both)), text(refuse_unfinished(&both))] {
            assert!(found.contains("between its renames"), "{found}");
        }
    }

    #[test]
    fn what_a_stopped_run_left_is_replaced_or_resumed_unless_that_run_goes_on() {
        let (_folder, names) = files(&["a"]);
        let name = &*names[0];
        assert!(UnfinishedFiles::default().resume(name).is_none());
        refuse_unfinished(&[name]).unwrap();
        let place = UnfinishedFiles::default().begin(name).unwrap();
        let options = FileOptions { create: crate::Create::New, ..FileOptions::default() };
        let other = FileDevice::open(&place, &options).unwrap();
        let found = text(UnfinishedFiles::default().begin(name));
        assert!(found.contains("another run is making it"), "{found}");
        assert!(text(refuse_unfinished(&[name])).contains("another run is making it"));
        drop(other);
        assert!(text(refuse_unfinished(&[name])).contains("it is unfinished"));
        let mut made = UnfinishedFiles::default();
        assert_eq!(made.resume(name).unwrap(), place);
        made.finish().unwrap();
        assert!(name.exists() && !place.exists() && refuse_unfinished(&[name]).is_ok());
        assert_eq!(made.path_of(name), name);
    }

    #[test]
    fn a_folder_in_the_place_of_a_file_is_kept() {
        let (_folder, names) = files(&["a"]);
        let place = unfinished_path(&names[0]);
        fs::create_dir(&place).unwrap();
        let found = text(UnfinishedFiles::default().begin(&names[0]));
        assert!(found.contains("not a regular file") && place.exists(), "{found}");
    }

    #[test]
    fn a_file_can_take_the_place_of_another() {
        let (_folder, names) = files(&["a"]);
        fs::write(&names[0], "old").unwrap();
        let mut made = UnfinishedFiles::default();
        fs::write(made.begin(&names[0]).unwrap(), "new").unwrap();
        made.replace().unwrap();
        assert_eq!(fs::read(&names[0]).unwrap(), b"new");
    }
}
