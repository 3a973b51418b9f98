//! The state of an index: JSON among its records.

use nandex::{Error, Result};
use serde_json::{Value, json};

use super::generation::{NUMBERS_MAX, Shape};

/// The word that distinguishes an index from other tables, and its version.
const FORMAT: &str = "nandex-lsh";
const VERSION: u64 = 3;

/// The state of an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct State {
    about: String,
    tables: u32,
    /// The number of the next document.
    pub(super) next: u64,
    /// All numbers from here on are unused.
    pub(super) taken: u64,
    /// The shape of each generation of the directory.
    pub(super) generations: Vec<Shape>,
    /// The owner's name for how the signatures are made, once that is known.
    pub(super) scheme: Option<String>,
}

impl State {
    pub(super) fn new(about: &str, tables: u32, generations: Vec<Shape>) -> Self {
        Self { about: about.to_owned(), tables, next: 0, taken: 0, generations, scheme: None }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let shape = |it: &Shape| json!([it.first, it.documents, it.chance_bits]);
        let generations: Vec<_> = self.generations.iter().map(shape).collect();
        let value = json!({
            "format": FORMAT,
            "version": VERSION,
            "about": self.about,
            "tables": self.tables,
            "taken": self.taken,
            "generations": generations,
            "scheme": self.scheme,
        });
        value.to_string().into_bytes()
    }

    /// Decodes a state.
    ///
    /// # Errors
    /// No bytes, or invalid ones.
    pub(super) fn decode(bytes: Option<&[u8]>) -> Result<Self> {
        let value = bytes.and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
        value.as_ref().and_then(Self::parsed).ok_or_else(|| Error::Config {
            field: "index",
            reason: format!(
                "the file has no state of the format {FORMAT} {VERSION}; give a file that this version has made for a \
                 MinHashLSH, or make the index again"
            ),
        })
    }

    fn parsed(value: &Value) -> Option<Self> {
        let is_known = value["format"] == FORMAT && value["version"] == VERSION;
        let taken = value["taken"].as_u64().filter(|taken| *taken <= NUMBERS_MAX)?;
        let generations = value["generations"].as_array()?.iter();
        is_known.then_some(())?;
        Some(Self {
            about: value["about"].as_str()?.to_owned(),
            tables: u32::try_from(value["tables"].as_u64()?).ok()?,
            next: taken,
            taken,
            generations: generations.map(shape).collect::<Option<_>>()?,
            scheme: value["scheme"].as_str().map(str::to_owned),
        })
    }

    /// Fails if the index is not the requested one.
    ///
    /// # Errors
    /// An index that was created with other parameters.
    pub(super) fn check(&self, about: &str, tables: u32) -> Result<()> {
        if self.about == about && self.tables == tables {
            return Ok(());
        }
        let reason = format!(
            "the index was made with {} and is opened with {about}; give the same, or another path",
            self.about
        );
        Err(Error::Config { field: "params", reason })
    }
}

fn shape(value: &Value) -> Option<Shape> {
    let chance_bits = u32::try_from(value[2].as_u64()?).ok()?;
    let shape = Shape { first: value[0].as_u64()?, documents: value[1].as_u64()?, chance_bits };
    shape.is_possible().then_some(shape)
}
