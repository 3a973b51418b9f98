//! Keeps the repository in order: checks of layout, layering and prose that no compiler makes.
//!
//! Each checker takes text and returns [`Violation`]s, so its own tests feed it bad samples; `tests/tidy.rs`
//! runs all of them over the repository and fails on the first list that is not empty. Rules that rustc and
//! clippy lints can enforce are left to them.
#![forbid(unsafe_code)]

pub mod book;
pub mod clock;
pub mod dependencies;
pub mod form;
pub mod layers;
pub mod locks;
pub mod markdown;
pub mod names;
pub mod outputs;
pub mod pages;
pub mod shape;
pub mod structures;
pub mod tokens;
pub mod tree;
pub mod words;

use std::fmt;
use std::path::{Path, PathBuf};

/// A rule that is broken, and the place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The file, from the repository's root.
    pub path: PathBuf,
    /// The line, counted from one; zero is the whole file.
    pub line: usize,
    /// The broken rule, and the remedy.
    pub message: String,
}

impl Violation {
    /// Creates a violation at a line of a file.
    #[must_use]
    pub fn new(path: &Path, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_path_buf(), line, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.message)
    }
}
