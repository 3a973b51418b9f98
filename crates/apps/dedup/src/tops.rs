//! The files and directories with the most duplicate bytes, kept during the run.
//!
//! Only the best are kept, so memory does not grow with the tree. A directory's figures are those of the files directly
//! in it: a directory full of duplicates is listed itself, and not every directory around it. They are complete when
//! the walk has left it, because its content is contiguous in the walk.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use crate::FileEntry;
use crate::summary::Largest;

/// The number of files and of directories that a summary lists.
pub const LARGEST_LISTED_MAX: usize = 20;

/// The entries with the most duplicate bytes; among equals the smaller path.
#[derive(Debug, Default)]
struct Top {
    best: Vec<Largest>,
}

impl Top {
    fn offer(&mut self, path: &Path, sizes: Sizes) {
        if sizes.duplicate == 0 || self.is_full_of_better_than(sizes.duplicate) {
            return;
        }
        let path = path.display().to_string();
        let entry = Largest { path, bytes: sizes.total, duplicate_bytes: sizes.duplicate };
        let place = self.best.partition_point(|other| rank(other) < rank(&entry));
        self.best.insert(place, entry);
        self.best.truncate(LARGEST_LISTED_MAX);
    }

    fn is_full_of_better_than(&self, duplicate: u64) -> bool {
        self.best.len() == LARGEST_LISTED_MAX
            && self.best.last().is_some_and(|worst| worst.duplicate_bytes > duplicate)
    }
}

/// Returns the sort key of a list: more duplicate bytes first, then the smaller path.
fn rank(entry: &Largest) -> (Reverse<u64>, &str) {
    (Reverse(entry.duplicate_bytes), &entry.path)
}

/// Bytes of a file or directory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    pub(crate) total: u64,
    pub(crate) duplicate: u64,
}

impl Sizes {
    fn add(&mut self, other: Self) {
        self.total += other.total;
        self.duplicate += other.duplicate;
    }
}

/// Both lists during a run.
#[derive(Debug, Default)]
pub(crate) struct Tops {
    files: Top,
    directories: Top,
    /// The directories of the last file, outermost first.
    open: Vec<(PathBuf, Sizes)>,
}

impl Tops {
    /// Counts a file for itself and for its directory.
    pub(crate) fn add(&mut self, file: &FileEntry, sizes: Sizes) {
        self.files.offer(&file.path, sizes);
        let mut parents: Vec<&Path> = file.path.ancestors().skip(1).take(file.depth).collect();
        parents.reverse();
        let shared = self.open.iter().zip(&parents).take_while(|((open, _), path)| open == *path);
        let kept = shared.count();
        self.close_to(kept);
        for parent in &parents[kept..] {
            self.open.push((parent.to_path_buf(), Sizes::default()));
        }
        if let Some((_, innermost)) = self.open.last_mut() {
            innermost.add(sizes);
        }
    }

    /// Leaves directories until `depth` are open.
    fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth {
            let Some((path, sizes)) = self.open.pop() else { return };
            self.directories.offer(&path, sizes);
        }
    }

    /// Returns the largest files and the largest directories.
    pub(crate) fn finish(mut self) -> (Vec<Largest>, Vec<Largest>) {
        self.close_to(0);
        (self.files.best, self.directories.best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(tops: &mut Tops, path: &str, depth: usize, duplicate: u64) {
        let entry = FileEntry { path: path.into(), bytes: 10, depth, tree: 0 };
        tops.add(&entry, Sizes { total: 10, duplicate });
    }

    #[test]
    fn a_directory_takes_the_bytes_of_its_own_files_and_of_no_directory_in_it() {
        let mut tops = Tops::default();
        add(&mut tops, "/r/t/a/x", 2, 1);
        add(&mut tops, "/r/t/a/y", 2, 2);
        add(&mut tops, "/r/t/b/c/z", 3, 4);
        add(&mut tops, "/r/t/w", 1, 8);
        add(&mut tops, "/lone", 0, 16);
        let (files, directories) = tops.finish();
        let files: Vec<_> = files.iter().map(|f| (&*f.path, f.duplicate_bytes)).collect();
        let expected =
            [("/lone", 16), ("/r/t/w", 8), ("/r/t/b/c/z", 4), ("/r/t/a/y", 2), ("/r/t/a/x", 1)];
        assert_eq!(files, expected);
        let directories: Vec<_> =
            directories.iter().map(|d| (&*d.path, d.bytes, d.duplicate_bytes)).collect();
        let expected = [("/r/t", 10, 8), ("/r/t/b/c", 10, 4), ("/r/t/a", 20, 3)];
        assert_eq!(directories, expected);
    }

    #[test]
    fn only_the_best_are_listed_and_equals_stand_in_order_of_path() {
        let mut tops = Tops::default();
        for number in (0..100).rev() {
            add(&mut tops, &format!("/t/{number:03}"), 1, if number < 30 { 5 } else { 1 });
        }
        let (files, _) = tops.finish();
        let paths: Vec<_> = files.iter().map(|f| f.path.clone()).collect();
        let first: Vec<_> = (0..LARGEST_LISTED_MAX).map(|n| format!("/t/{n:03}")).collect();
        assert_eq!(paths, first);
    }

    #[test]
    fn what_has_no_duplicates_is_not_listed() {
        let mut tops = Tops::default();
        add(&mut tops, "/t/a", 1, 0);
        assert_eq!(tops.finish(), (vec![], vec![]));
    }
}
