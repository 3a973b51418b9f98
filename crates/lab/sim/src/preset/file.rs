//! The format of a preset's file: a kind, and the fields of that kind's description.

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

use super::error::{no_kind, other_kind, refused};
use super::{Machine, PresetError, Result};

/// The names of kinds in files and errors.
const KINDS: &str = "\"ssd\" or \"disk\"";

/// Parses the machine that a text describes, without checking that it is possible.
pub(super) fn parse(text: &str, origin: &str) -> Result<Machine> {
    let mut table = DeTable::parse(text).map_err(|error| refused(&error, text, origin))?;
    let kind = table.get_mut().remove("kind").ok_or_else(|| no_kind(origin, KINDS))?;
    match kind.get_ref().as_str() {
        Some("ssd") => Ok(Machine::Ssd(fields(table, text, origin)?)),
        Some("disk") => Ok(Machine::Disk(fields(table, text, origin)?)),
        _ => Err(other_kind(text, kind.span(), origin, KINDS)),
    }
}

fn fields<T: DeserializeOwned>(table: Spanned<DeTable<'_>>, text: &str, origin: &str) -> Result<T> {
    T::deserialize(Deserializer::from(table)).map_err(|error| refused(&error, text, origin))
}

/// Returns the text of a file that describes this machine.
pub(super) fn write(machine: &Machine) -> Result<String> {
    match machine {
        Machine::Ssd(spec) => text("ssd", &spec.name, spec),
        Machine::Disk(spec) => text("disk", &spec.name, spec),
    }
}

fn text(kind: &str, name: &str, fields: &impl Serialize) -> Result<String> {
    let fields = toml::to_string(fields)
        .map_err(|error| PresetError::Write { name: name.to_owned(), reason: error.to_string() })?;
    Ok(format!("kind = {kind:?}\n{fields}"))
}
