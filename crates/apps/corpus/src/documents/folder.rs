//! A document in each file of a folder.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{Document, Reading};
use crate::{Error, Result};

/// The files of a folder and of the folders in it, in the order of their paths.
///
/// Symbolic links and anything that is neither a file nor a folder are left out. Holds the names of the folders on the
/// path of the current file, and the file.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    reading: Reading,
    /// The paths to visit, the next last.
    waiting: Vec<PathBuf>,
}

impl Folder {
    /// Creates a source of the files under `root`.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn new(root: impl Into<PathBuf>, reading: Reading) -> Result<Self> {
        let root = root.into();
        let mut folder = Self { root: root.clone(), reading, waiting: Vec::new() };
        folder.enter(&root)?;
        Ok(folder)
    }

    /// Puts the content of a folder before all waiting paths.
    fn enter(&mut self, path: &Path) -> Result<()> {
        let entries = fs::read_dir(path).map_err(Error::file("list", path))?;
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(entry.map_err(Error::file("list", path))?.path());
        }
        paths.sort_unstable_by(|a, b| b.cmp(a));
        self.waiting.append(&mut paths);
        Ok(())
    }

    /// Returns the document of a path, or `None` if it is not a file.
    fn visit(&mut self, path: &Path) -> Result<Option<Document>> {
        let kind = fs::symlink_metadata(path).map_err(Error::file("look at", path))?.file_type();
        if kind.is_dir() {
            return self.enter(path).map(|()| None);
        }
        if !kind.is_file() {
            return Ok(None);
        }
        let id = self.id(path)?;
        let bytes = self.read(path, &id)?;
        let text = self.reading.text(bytes, || id.clone())?;
        Ok(Some(Document { id, text }))
    }

    fn id(&self, path: &Path) -> Result<String> {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        below.to_str().map(str::to_owned).ok_or_else(|| Error::Malformed {
            document: below.display().to_string(),
            reason: "expected a name in UTF-8, which is the document's id; rename the file".into(),
        })
    }

    fn read(&self, path: &Path, id: &str) -> Result<Vec<u8>> {
        let bytes_max = self.reading.document_bytes_max;
        let file = File::open(path).map_err(Error::file("open", path))?;
        let mut bytes = Vec::new();
        let limit = (bytes_max as u64).saturating_add(1);
        file.take(limit).read_to_end(&mut bytes).map_err(Error::file("read", path))?;
        if bytes.len() > bytes_max {
            return Err(Error::DocumentTooLong { document: id.to_owned(), bytes_max });
        }
        Ok(bytes)
    }
}

impl Iterator for Folder {
    type Item = Result<Document>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let path = self.waiting.pop()?;
            if let Some(found) = self.visit(&path).transpose() {
                return Some(found);
            }
        }
    }
}
