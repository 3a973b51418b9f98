//! Errors of the library with the options of the command that solve them.

use nandex_neardup::Error;

use crate::cmd::document_index::with_hint;

/// Adds the option to change to an error, if there is one.
pub fn explained(error: Error) -> anyhow::Error {
    let hint = hint(&error);
    with_hint(error, hint)
}

fn hint(error: &Error) -> Option<&'static str> {
    let of_field = |field: &str| match field {
        "ram_bytes" => Some("--ram"),
        "documents" => Some("--documents"),
        "shingle" => Some("--shingle"),
        "threshold" => Some("--threshold"),
        "permutations" => Some("--permutations"),
        "bands" | "rows" => Some("--bands"),
        "seed" => Some("--seed"),
        "distance" => Some("--distance"),
        "dimensions" => Some("--dimensions"),
        "tables" => Some("--tables"),
        "projections" => Some("--projections"),
        "width" => Some("--width"),
        "probes" => Some("--probes"),
        _ => None,
    };
    match error {
        Error::Options { field, .. } => of_field(field),
        Error::Index(
            nandex::Error::Config { field, .. } | nandex::Error::TooLittleRam { field, .. },
        ) => of_field(field),
        Error::NoSpace(_) => Some("--documents of a new index"),
        Error::Repeated { .. } => Some("--skip-repeats leaves out those with the same text"),
        Error::Input(error) => crate::texts::hint(error),
        _ => None,
    }
}
