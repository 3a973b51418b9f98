//! Errors in a preset, for the author of the file.

use std::ops::Range;

use super::locate::Tree;
use crate::Error;

/// An error in a preset.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum PresetError {
    /// An unknown name of a preset.
    #[error("no preset {name:?} is built in; there are {names}; a file is given by its path")]
    Unknown {
        /// The requested name.
        name: String,
        /// The known names.
        names: String,
    },
    /// A file that cannot be read.
    #[error("{path} cannot be read: {source}; give a TOML file with a preset")]
    Read {
        /// The file.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A text that is not TOML.
    #[error("{origin}, line {line}: {found}; expected {expected}; correct the line")]
    Syntax {
        /// The file, or its name.
        origin: String,
        /// The line, counted from 1.
        line: usize,
        /// The expected syntax.
        expected: String,
        /// The found text.
        found: String,
    },
    /// A field that is missing, unknown, of a wrong type, or impossible.
    #[error("{origin}, line {line}: {field}: expected {expected}, found {found}; {remedy}")]
    Field {
        /// The file, or its name.
        origin: String,
        /// The line, counted from 1; for a missing field, the line where its table begins.
        line: usize,
        /// The field, with the names of its tables.
        field: String,
        /// The expected value.
        expected: String,
        /// The found value.
        found: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// A description of an impossible device.
    #[error(transparent)]
    Machine(#[from] Error),
    /// A preset of another kind where an SSD is required.
    #[error("{name} is no SSD and keeps no counters of flash; build it as a model")]
    NotSsd {
        /// The preset.
        name: String,
    },
    /// A preset that cannot be written as TOML.
    #[error("{name} cannot be written as TOML: {reason}; TOML's integers end at 2^63 - 1")]
    Write {
        /// The preset.
        name: String,
        /// The reason from the TOML writer.
        reason: String,
    },
}

/// Creates the error for an impossible device, at the line of the field that makes it so.
pub(super) fn impossible(error: &Error, text: &str, origin: &str) -> PresetError {
    let Error::Spec { field, expected, found, .. } = error;
    let (field, line) = match Tree::new(text) {
        Some(tree) => tree.find(field),
        None => ((*field).to_owned(), 1),
    };
    PresetError::Field {
        origin: origin.to_owned(),
        line,
        field,
        expected: expected.clone(),
        found: found.clone(),
        remedy: "change this field or those that it must fit",
    }
}

/// Creates the error for a file without a kind.
pub(super) fn no_kind(origin: &str, kinds: &str) -> PresetError {
    PresetError::Field {
        origin: origin.to_owned(),
        line: 1,
        field: "kind".to_owned(),
        expected: kinds.to_owned(),
        found: "nothing".to_owned(),
        remedy: "say first what the file describes",
    }
}

/// Creates the error for an unknown kind.
pub(super) fn other_kind(text: &str, span: Range<usize>, origin: &str, kinds: &str) -> PresetError {
    PresetError::Field {
        origin: origin.to_owned(),
        line: super::locate::line(text, span.start),
        field: "kind".to_owned(),
        expected: kinds.to_owned(),
        found: text.get(span).unwrap_or_default().to_owned(),
        remedy: "say what the file describes",
    }
}

/// Converts the TOML reader's error, split into its pieces.
pub(super) fn refused(error: &toml::de::Error, text: &str, origin: &str) -> PresetError {
    let origin = origin.to_owned();
    let message = error.message();
    let (found, expected) = match message.split_once(", expected ") {
        Some((found, expected)) => (found.to_owned(), expected.to_owned()),
        None => (message.to_owned(), String::new()),
    };
    let at = error.span().map_or(0, |span| span.start);
    let Some(tree) = Tree::new(text) else {
        let line = super::locate::line(text, at);
        let expected = if expected.is_empty() { "TOML".to_owned() } else { expected };
        return PresetError::Syntax { origin, line, expected, found };
    };
    let (line, mut field) = (tree.line(at), tree.field_at(at));
    let quoted = message.split('`').nth(1).unwrap_or_default();
    if message.starts_with("missing field") {
        // The reader reports the position of the table that lacks it.
        field = if field.is_empty() { quoted.to_owned() } else { format!("{field}.{quoted}") };
        return PresetError::Field {
            origin,
            line,
            field,
            expected: "a value, since nothing is assumed".to_owned(),
            found: "nothing".to_owned(),
            remedy: "add the field",
        };
    }
    let (expected, remedy) = if message.starts_with("unknown field") {
        (expected, "remove the field or correct its name")
    } else {
        (expected, "correct the value")
    };
    PresetError::Field { origin, line, field, expected, found, remedy }
}
