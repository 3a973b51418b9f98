//! Files that a verb is making: they get their names once they are whole.
//!
//! A verb makes NAME as `NAME.unfinished`, and renames it in the end. So no run that was killed, stopped or out of
//! space leaves a file that passes as whole. The next run of the verb replaces what such a run has left.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nandex::device::{Error, FileDevice, FileOptions};

use crate::console::Console;

/// The files of one volume that are being made, by the names that they will have.
#[derive(Clone, Debug, Default)]
pub struct Unfinished(Vec<PathBuf>);

impl Unfinished {
    /// Where to make the file of this name. Removes what an earlier run left there.
    ///
    /// # Errors
    /// A file of that name; one that another run is making.
    pub fn begin(&mut self, name: &Path, console: &Console) -> Result<PathBuf> {
        let shown = name.display();
        if fs::symlink_metadata(name).is_ok() {
            bail!("cannot create {shown}: it exists; name another file, or remove it first");
        }
        let path = unfinished(name);
        if path.exists() {
            remove_left(name, &path)?;
            let left = path.display();
            console.note(&format!("{left} is replaced: the run that made it did not finish"));
        }
        self.0.push(name.to_owned());
        Ok(path)
    }

    /// Gives the files their names, durably.
    ///
    /// # Errors
    /// A file that has got one of the names meanwhile; a folder that cannot be written to.
    pub fn publish(&mut self) -> Result<()> {
        for name in std::mem::take(&mut self.0).iter().rev() {
            rename(&unfinished(name), name)
                .with_context(|| format!("cannot rename {}", unfinished(name).display()))?;
        }
        Ok(())
    }

    /// The files need no names.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// Removes the files after a failure.
    pub fn remove(&self) {
        for name in &self.0 {
            // Best effort: the first error counts.
            let _ = fs::remove_file(unfinished(name));
        }
    }

    /// Where the file of this name is now.
    #[must_use]
    pub fn path_of(&self, name: &Path) -> PathBuf {
        if self.0.iter().any(|made| made == name) { unfinished(name) } else { name.to_owned() }
    }
}

fn unfinished(name: &Path) -> PathBuf {
    let mut path = name.as_os_str().to_owned();
    path.push(".unfinished");
    path.into()
}

/// Its lock tells whether a run still makes it.
fn remove_left(name: &Path, path: &Path) -> Result<()> {
    if let Err(Error::Locked { .. }) = FileDevice::open(path, &FileOptions::default()) {
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
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok(File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?)
}
