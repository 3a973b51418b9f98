//! Files that a verb is making: they get their names once they are whole.
//!
//! A verb makes NAME as `NAME.unfinished`, and renames it in the end. So no run that was killed, stopped or out of
//! space leaves a file that passes as whole. The next run of the verb replaces what such a run has left. The files of
//! one volume are renamed only when all of them are whole, the one that was named first last; whoever opens some of
//! them while others have no name yet is told.
//!
//! A block device has its name already. There the volume itself is marked until it is whole
//! ([`Completion`](nandex::Completion)), and `--force` makes a marked one again.
//!
//! All other outputs that are named are [`OutputFile`]s.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use nandex::Volume;
use nandex::device::output::{OutputFile, replace_file, unfinished_path};
use nandex::device::{Error, FileDevice, FileOptions};

use crate::console::Console;

/// The files of one volume that are being made, by the names that they will have.
#[derive(Clone, Debug, Default)]
pub struct Unfinished {
    names: Vec<PathBuf>,
    /// A volume that is marked, because some of it is on block devices.
    marked: Option<Volume>,
}

impl Unfinished {
    /// Where to make the file of this name, which nobody has. Removes what an earlier run left there.
    ///
    /// # Errors
    /// A file that another run is making, or that is no regular file.
    pub fn begin(&mut self, name: &Path, console: &Console) -> Result<PathBuf> {
        let path = unfinished_path(name);
        if fs::symlink_metadata(&path).is_ok() {
            remove_left(name, &path)?;
            tell_replaced(&path, console);
        }
        self.names.push(name.to_owned());
        Ok(path)
    }

    /// Where a run that did not finish has left the file of this name, to go on with it; nothing if it has left none.
    pub fn resume(&mut self, name: &Path) -> Option<PathBuf> {
        let path = unfinished_path(name);
        let is_there = path.exists();
        self.names.extend(is_there.then(|| name.to_owned()));
        is_there.then_some(path)
    }

    /// Notes the volume that is made, which may be marked.
    #[must_use]
    pub fn of(mut self, volume: &Volume) -> Self {
        self.marked = volume.is_unfinished().then(|| volume.clone());
        self
    }

    /// What to do with what a stopped run has left of a new volume, which is in `place`.
    #[must_use]
    pub fn remedy(&self, name: &Path, place: &Path) -> Option<String> {
        if self.marked.is_some() {
            return Some(format!("{} stays unfinished; --force makes it again", name.display()));
        }
        (place != name).then(|| "add the rest there, then rename it".to_owned())
    }

    /// Takes the mark of a volume on block devices away, and gives the files their names, durably.
    ///
    /// # Errors
    /// A file that has got one of the names meanwhile; a folder that cannot be written to.
    pub fn publish(&mut self) -> Result<()> {
        if let Some(volume) = self.marked.take() {
            volume.finish()?;
        }
        for name in std::mem::take(&mut self.names).iter().rev() {
            rename(&unfinished_path(name), name)
                .with_context(|| format!("cannot rename {}", unfinished_path(name).display()))?;
        }
        Ok(())
    }

    /// Gives the file its name, durably and at once, in place of the regular file that has it.
    ///
    /// # Errors
    /// A folder that cannot be written to.
    pub fn replace(&mut self) -> Result<()> {
        for name in std::mem::take(&mut self.names) {
            let place = unfinished_path(&name);
            let file = File::options().write(true).open(&place);
            let renamed = file.and_then(|file| replace_file(&file, &place, &name));
            renamed.with_context(|| format!("cannot rename {}", place.display()))?;
        }
        Ok(())
    }

    /// The files need no names.
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

    /// Where the file of this name is now.
    #[must_use]
    pub fn path_of(&self, name: &Path) -> PathBuf {
        if self.names.iter().any(|made| made == name) {
            unfinished_path(name)
        } else {
            name.to_owned()
        }
    }
}

/// Opens an output that was named, and says what of an earlier run it replaces.
///
/// # Errors
/// As [`OutputFile::begin`].
pub fn begin_output(path: &Path, console: &Console) -> Result<OutputFile> {
    let output = OutputFile::begin(path).with_context(|| cannot_write(path))?;
    if let Some(left) = output.unfinished().filter(|_| output.replaces_unfinished()) {
        tell_replaced(left, console);
    }
    Ok(output)
}

/// Writes a whole output that was named.
///
/// # Errors
/// As [`begin_output`]; no space.
pub fn write_output(path: &Path, bytes: impl AsRef<[u8]>, console: &Console) -> Result<()> {
    let mut output = begin_output(path, console)?;
    let written = output.write_all(bytes.as_ref()).and_then(|()| output.finish());
    written.with_context(|| cannot_write(path))
}

/// The prefix of an error of an output.
pub fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

fn tell_replaced(left: &Path, console: &Console) {
    let left = left.display();
    console.note(&format!("{left} is replaced: the run that made it did not finish"));
}

/// Refuses to make files of which one exists, before anything is removed or made.
///
/// # Errors
/// A file of one of the names.
pub fn refuse_existing(names: &[&Path]) -> Result<()> {
    let exists = |name: &&&Path| fs::symlink_metadata(name).is_ok();
    let Some(there) = names.iter().find(exists) else { return Ok(()) };
    refuse_half_named(names, "create")?;
    bail!("cannot create {}: it exists; name another file, or remove it first", there.display())
}

/// Refuses to open files of which one is not there, but is there unfinished.
///
/// # Errors
/// Such a file, with what can be done.
pub fn refuse_unfinished(names: &[&Path]) -> Result<()> {
    let Some(name) = names.iter().find(|name| is_unnamed(name)) else { return Ok(()) };
    refuse_half_named(names, "open")?;
    let (path, name) = (unfinished_path(name), name.display());
    let left = path.display();
    if is_locked(&path) {
        bail!("cannot open {name}: another run is making it, {left} is in use; wait for its end");
    }
    bail!(
        "cannot open {name}: it is unfinished: the run that makes it has failed or was stopped, and left {left}; \
         run that command again, which replaces it, or name {left} to use what is in it"
    )
}

/// Some files of a volume have their names, others not yet: all are whole, the renames were stopped.
fn refuse_half_named(names: &[&Path], verb: &str) -> Result<()> {
    let unnamed = names.iter().find(|name| is_unnamed(name));
    let (Some(unnamed), Some(named)) = (unnamed, names.iter().find(|name| name.exists())) else {
        return Ok(());
    };
    let (path, unnamed, named) = (unfinished_path(unnamed), unnamed.display(), named.display());
    let left = path.display();
    bail!(
        "cannot {verb} {unnamed}: {named} has its name and {left} not yet: the run that made them was stopped \
         between its renames, when all were whole; finish it with mv {left} {unnamed}, or remove them all"
    )
}

/// The refusal of a volume that is marked as unfinished.
#[must_use]
pub fn marked(cannot: &str) -> anyhow::Error {
    anyhow!(
        "{cannot}: it is unfinished: the run that makes it has failed or was stopped; run that command again with \
         --force, which makes it again"
    )
}

fn is_unnamed(name: &Path) -> bool {
    fs::symlink_metadata(name).is_err() && unfinished_path(name).exists()
}

fn is_locked(path: &Path) -> bool {
    matches!(FileDevice::open(path, &FileOptions::default()), Err(Error::Locked { .. }))
}

/// Its lock tells whether a run still makes it.
fn remove_left(name: &Path, path: &Path) -> Result<()> {
    if !fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        let (name, path) = (name.display(), path.display());
        bail!("cannot create {name}: {path} is there and no regular file; remove it first");
    }
    if is_locked(path) {
        let (name, path) = (name.display(), path.display());
        bail!("cannot create {name}: another run is making it, {path} is in use; wait for its end");
    }
    fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
}

/// Renames a file to a name that no file has.
fn rename(from: &Path, to: &Path) -> Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from)?,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => bail!("{} exists", to.display()),
        // The file system has no hard links.
        Err(_) => fs::rename(from, to)?,
    }
    Ok(sync_folder(to)?)
}

/// Makes the name of a file durable.
fn sync_folder(name: &Path) -> std::io::Result<()> {
    let parent = name.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}
