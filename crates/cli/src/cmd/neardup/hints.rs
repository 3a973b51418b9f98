//! Errors of the library with the options of the command that solve them, where they name no field of an option.

use nandex_neardup::Error;

use crate::cmd::document_index::with_hint;

/// Adds the option to change to an error, if there is one.
pub fn explained(error: Error) -> anyhow::Error {
    let hint = hint(&error);
    with_hint(error, hint)
}

fn hint(error: &Error) -> Option<&'static str> {
    match error {
        Error::NoSpace(_) => Some("--documents of a new index"),
        Error::Repeated { .. } => Some("--skip-repeats leaves out those with the same text"),
        Error::Input(error) => crate::texts::hint(error),
        _ => None,
    }
}
