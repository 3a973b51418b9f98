//! The files of the repository, as the checkers want them: path from the root, and text.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// The names of folders without project files, wherever they are: build output and downloads.
const SKIPPED_NAMES: [&str; 4] = ["target", ".git", "node_modules", ".venv"];

/// The paths of folders without project files: the findings of the fuzzer.
const SKIPPED_PATHS: [&str; 2] = ["fuzz/corpus", "fuzz/artifacts"];

/// One text file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// From the repository's root.
    pub path: PathBuf,
    /// The whole text.
    pub text: String,
}

impl File {
    /// Returns whether the name has this extension.
    #[must_use]
    pub fn is(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|found| found == extension)
    }

    /// Returns whether the whole file is test code, by its name or its folder.
    #[must_use]
    pub fn is_test(&self) -> bool {
        self.path.components().any(|part| part.as_os_str() == "tests")
            || self.path.file_name().is_some_and(|name| name == "tests.rs")
    }
}

/// Returns the root of the repository this crate was built from.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Returns every text file under `root`, sorted by path.
///
/// # Errors
/// Fails if a folder or a file cannot be read.
pub fn files(root: &Path) -> io::Result<Vec<File>> {
    let mut found = Vec::new();
    walk(root, root, &mut found)?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn walk(root: &Path, folder: &Path, found: &mut Vec<File>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if is_skipped(path.strip_prefix(root).unwrap_or(&path)) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            walk(root, &path, found)?;
        } else if let Some(file) = read(root, &path)? {
            found.push(file);
        }
    }
    Ok(())
}

/// Returns whether the walk passes by a folder or file, which is named by its path from the root.
fn is_skipped(path: &Path) -> bool {
    SKIPPED_NAMES.iter().any(|name| path.ends_with(name))
        || SKIPPED_PATHS.iter().any(|skipped| path == Path::new(skipped))
}

fn read(root: &Path, path: &Path) -> io::Result<Option<File>> {
    let Ok(text) = String::from_utf8(fs::read(path)?) else { return Ok(None) };
    let path = path.strip_prefix(root).unwrap_or(path).to_path_buf();
    Ok(Some(File { path, text }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_finds_this_file_and_nothing_that_was_built() {
        let files = files(&root()).unwrap();
        let has = |path: &str| files.iter().any(|file| file.path == Path::new(path));
        assert!(has("crates/lab/xtask/src/tree.rs"));
        assert!(has("Cargo.toml"));
        assert!(files.iter().all(|file| !file.path.starts_with("target")));
    }

    #[test]
    fn sources_named_corpus_are_walked_and_the_findings_of_the_fuzzer_are_not() {
        let files = files(&root()).unwrap();
        let has = |folder: &str| files.iter().any(|file| file.path.starts_with(folder));
        assert!(has("crates/apps/corpus/src") && has("crates/apps/tfidf/src/corpus"));
        for path in ["fuzz/corpus", "fuzz/artifacts", "target", "fuzz/target", "python/.venv"] {
            assert!(is_skipped(Path::new(path)), "{path}");
        }
        for path in ["crates/a/corpus", "crates/a/artifacts", "crates/a/src/target.rs"] {
            assert!(!is_skipped(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn tests_are_known_by_name_and_by_folder() {
        let file = |path: &str| File { path: path.into(), text: String::new() };
        assert!(file("crates/x/tests/a.rs").is_test());
        assert!(file("crates/x/src/shape/tests.rs").is_test());
        assert!(!file("crates/x/src/shape/testing.rs").is_test());
    }
}
