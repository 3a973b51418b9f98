//! Walks trees in a fixed order and reports a reason for everything it skips.
//!
//! 1. The order is that of the given paths, and within a directory that of the names' bytes; the content of a
//!    directory is contiguous.
//! 2. Symbolic links are not followed, unless a given path is one. A directory that is reached twice, by a bind mount
//!    or because given paths overlap, is entered once. So the walk ends.
//! 3. A file with several names is found under the first; the others are skipped.
//! 4. Other file systems are entered, but not pseudo file systems of the kernel, such as `/proc`.
//!
//! Memory: the names in the directories that are open, and 16 bytes (about 40 with the hash set's spare
//! space) for every directory and every file with several names.

mod pseudo;

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, FileType, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::vec;

use serde::Serialize;

use crate::{Chunking, Error, Result};
use pseudo::PseudoFileSystems;

/// A regular file to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Its path.
    pub path: PathBuf,
    /// Its size in bytes when the walk found it.
    pub bytes: u64,
    /// The number of its parent directories that belong to the walk; zero for a given path itself.
    pub depth: usize,
    /// The number of the given path above it, from 0 on.
    pub tree: usize,
}

/// A find of the walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A file to be read.
    File(FileEntry),
    /// Something skipped.
    Skipped(Skipped),
}

/// Something that was skipped, or changed while it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Its path; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// The reason, as a stable word.
    pub kind: SkipKind,
    /// The reason, in words.
    pub reason: String,
}

impl Skipped {
    pub(crate) fn new(path: &Path, kind: SkipKind, reason: impl Into<String>) -> Self {
        Self { path: path.display().to_string(), kind, reason: reason.into() }
    }

    pub(crate) fn unreadable(path: &Path, act: &str, error: &io::Error) -> Self {
        Self::new(path, SkipKind::Unreadable, format!("cannot {act}: {error}"))
    }
}

/// The reason why something was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SkipKind {
    /// A file or directory that could not be opened or read, or not to its end.
    Unreadable,
    /// A file that changed while it was read. The bytes read are counted.
    Changed,
    /// A further name of a file that was counted already.
    HardLink,
    /// A directory that was entered already.
    Repeated,
    /// A symbolic link.
    Symlink,
    /// A socket, a named pipe or a device.
    Special,
    /// A pseudo file system of the kernel.
    PseudoFileSystem,
    /// A file that the caller asked to leave out.
    LeftOut,
}

impl SkipKind {
    /// Returns whether something that a user may want to be read was not read, or changed meanwhile.
    #[must_use]
    pub const fn is_trouble(self) -> bool {
        matches!(self, Self::Unreadable | Self::Changed)
    }

    /// The kind's name for people, in the plural.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable files and directories",
            Self::Changed => "files changed while they were read",
            Self::HardLink => "further names of files already counted",
            Self::Repeated => "directories already entered",
            Self::Symlink => "symbolic links",
            Self::Special => "sockets, pipes and devices",
            Self::PseudoFileSystem => "pseudo file systems",
            Self::LeftOut => "files left out on request",
        }
    }
}

/// The result of a first pass, which reads no file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Survey {
    /// The number of files that a run would read.
    pub files: u64,
    /// The sum of their sizes, in bytes.
    pub bytes: u64,
    /// The number of directories entered.
    pub directories: u64,
    /// The number of things skipped.
    pub skipped: u64,
}

impl Survey {
    /// Returns the expected number of chunks, rather too high than too low: the size for a table.
    ///
    /// A file ends in one short chunk, and the others are on average no shorter than nominal.
    #[must_use]
    pub fn chunks_expected(&self, chunking: &Chunking) -> u64 {
        let average = u64::try_from(chunking.average_bytes()).expect("at most 1 MiB");
        self.files.saturating_add(self.bytes / average)
    }
}

/// Counts the files under `paths` without reading: one `stat` per name, no file is opened. Files that a run leaves out
/// are counted here.
///
/// # Errors
/// [`Error::Path`] if one of `paths` itself cannot be examined.
pub fn survey<P: AsRef<Path>>(paths: &[P]) -> Result<Survey> {
    let mut walk = Walk::new(paths)?;
    let mut survey = Survey::default();
    for found in &mut walk {
        match found {
            Found::File(file) => {
                survey.files += 1;
                survey.bytes = survey.bytes.saturating_add(file.bytes);
            }
            Found::Skipped(_) => survey.skipped += 1,
        }
    }
    survey.directories = walk.directories();
    Ok(survey)
}

/// Device and inode: the identity of a file, whatever its names.
type FileId = (u64, u64);

fn file_id(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

/// An open directory of the walk.
#[derive(Debug)]
struct Level {
    path: PathBuf,
    names: vec::IntoIter<OsString>,
}

/// The walk itself: an iterator of its finds.
#[derive(Debug)]
pub struct Walk {
    roots: vec::IntoIter<PathBuf>,
    /// The number of the root whose files come now.
    tree: usize,
    /// The number of roots at the beginning.
    root_count: usize,
    levels: Vec<Level>,
    /// The files given as paths: the tree may contain them again under their only name.
    given_files: HashSet<FileId>,
    left_out_files: HashSet<FileId>,
    seen_files: HashSet<FileId>,
    seen_directories: HashSet<FileId>,
    pseudo: PseudoFileSystems,
}

impl Walk {
    /// Creates a walk of these paths, in order.
    ///
    /// # Errors
    /// [`Error::Path`] if one of them cannot be examined, before anything else is done.
    pub fn new<P: AsRef<Path>>(paths: &[P]) -> Result<Self> {
        let mut given_files = HashSet::new();
        let mut roots = Vec::with_capacity(paths.len());
        for path in paths {
            let (root, metadata) = resolve(path.as_ref())?;
            if metadata.is_file() {
                given_files.insert(file_id(&metadata));
            }
            roots.push(root);
        }
        Ok(Self {
            tree: 0,
            root_count: roots.len(),
            roots: roots.into_iter(),
            levels: Vec::new(),
            given_files,
            left_out_files: HashSet::new(),
            seen_files: HashSet::new(),
            seen_directories: HashSet::new(),
            pseudo: PseudoFileSystems::default(),
        })
    }

    /// Returns the same walk, which skips these files under any name.
    ///
    /// # Errors
    /// [`Error::Path`] if one of them cannot be examined.
    pub fn leaving_out<P: AsRef<Path>>(mut self, files: &[P]) -> Result<Self> {
        for file in files {
            let (_, metadata) = resolve(file.as_ref())?;
            self.left_out_files.insert(file_id(&metadata));
        }
        Ok(self)
    }

    /// The number of directories entered so far.
    #[must_use]
    pub fn directories(&self) -> u64 {
        u64::try_from(self.seen_directories.len()).expect("usize fits u64")
    }

    /// Returns the next name, from the innermost directory that has one left.
    fn next_path(&mut self) -> Option<PathBuf> {
        while let Some(level) = self.levels.last_mut() {
            if let Some(name) = level.names.next() {
                return Some(level.path.join(name));
            }
            self.levels.pop();
        }
        let root = self.roots.next();
        self.tree = self.root_count - self.roots.len() - usize::from(root.is_some());
        root
    }

    /// Returns the find at `path`; `None` for a directory that was entered.
    fn visit(&mut self, path: PathBuf) -> Option<Found> {
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) => return Some(skip(Skipped::unreadable(&path, "look at it", &error))),
        };
        let kind = metadata.file_type();
        if kind.is_dir() {
            self.enter(path, &metadata).map(skip)
        } else if kind.is_file() {
            Some(self.file(path, &metadata))
        } else {
            Some(skip(other(&path, kind)))
        }
    }

    fn file(&mut self, path: PathBuf, metadata: &Metadata) -> Found {
        let id = file_id(metadata);
        if self.left_out_files.contains(&id) {
            let reason = "it is left out on request, as the index's own files are";
            return skip(Skipped::new(&path, SkipKind::LeftOut, reason));
        }
        let may_come_again = metadata.nlink() > 1 || self.given_files.contains(&id);
        if may_come_again && !self.seen_files.insert(id) {
            let reason = "the same file under another name is counted already";
            return skip(Skipped::new(&path, SkipKind::HardLink, reason));
        }
        Found::File(FileEntry {
            path,
            bytes: metadata.len(),
            depth: self.levels.len(),
            tree: self.tree,
        })
    }

    /// Enters a directory, or returns the reason why not. A list that breaks off is walked as far as it was read.
    fn enter(&mut self, path: PathBuf, metadata: &Metadata) -> Option<Skipped> {
        if self.seen_directories.contains(&file_id(metadata)) {
            let reason = "the same directory is entered already under another name";
            return Some(Skipped::new(&path, SkipKind::Repeated, reason));
        }
        if let Some(name) = self.pseudo.name(&path, metadata.dev()) {
            let reason = format!("{name} holds no files of its own");
            return Some(Skipped::new(&path, SkipKind::PseudoFileSystem, reason));
        }
        let (names, failed) = sorted_names(&path);
        let skipped = failed.map(|error| Skipped::unreadable(&path, "list it", &error));
        self.seen_directories.insert(file_id(metadata));
        self.levels.push(Level { path, names: names.into_iter() });
        skipped
    }
}

impl Iterator for Walk {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            let path = self.next_path()?;
            let found = self.visit(path);
            if found.is_some() {
                return found;
            }
        }
    }
}

/// Returns a given path and its metadata; a symbolic link is replaced by its target.
fn resolve(path: &Path) -> Result<(PathBuf, Metadata)> {
    let say = |source| Error::Path { path: path.to_owned(), source };
    let metadata = fs::symlink_metadata(path).map_err(say)?;
    if !metadata.is_symlink() {
        return Ok((path.to_owned(), metadata));
    }
    let target = fs::canonicalize(path).map_err(say)?;
    let metadata = fs::symlink_metadata(&target).map_err(say)?;
    Ok((target, metadata))
}

fn sorted_names(path: &Path) -> (Vec<OsString>, Option<io::Error>) {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut names = Vec::new();
    let mut failed = None;
    for entry in entries {
        match entry {
            Ok(entry) => names.push(entry.file_name()),
            Err(error) => failed = Some(error),
        }
    }
    names.sort_unstable();
    (names, failed)
}

fn skip(skipped: Skipped) -> Found {
    Found::Skipped(skipped)
}

/// Returns a find that is neither file nor directory.
fn other(path: &Path, kind: FileType) -> Skipped {
    if kind.is_symlink() {
        return Skipped::new(path, SkipKind::Symlink, "symbolic links are not followed");
    }
    let what = if kind.is_socket() {
        "a socket"
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_block_device() {
        "a block device"
    } else if kind.is_char_device() {
        "a character device"
    } else {
        "of an unknown type"
    };
    Skipped::new(path, SkipKind::Special, format!("{what}, not a file"))
}
