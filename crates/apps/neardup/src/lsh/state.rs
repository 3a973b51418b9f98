//! What an index says of itself: JSON among its records.

use nandex::{Error, Result};
use serde_json::{Value, json};

/// The word that tells an index from other tables, and its version.
const FORMAT: &str = "nandex-lsh";
const VERSION: u64 = 2;

/// The state of an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct State {
    about: String,
    tables: u32,
    /// The number of the next document.
    pub(super) next: u64,
    /// All numbers from here on were never used.
    pub(super) taken: u64,
    /// How many documents there are; `None` after a crash.
    pub(super) documents: Option<u64>,
    /// The first number of each generation, and for how many documents it is made.
    pub(super) generations: Vec<(u64, u64)>,
    /// Does the file say that the index was not closed?
    pub(super) is_open: bool,
}

impl State {
    pub(super) fn new(about: &str, tables: u32, generation: (u64, u64)) -> Self {
        Self {
            about: about.to_owned(),
            tables,
            next: 0,
            taken: 0,
            documents: Some(0),
            generations: vec![generation],
            is_open: false,
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let generations: Vec<_> = self.generations.iter().map(|it| json!([it.0, it.1])).collect();
        let value = json!({
            "format": FORMAT,
            "version": VERSION,
            "about": self.about,
            "tables": self.tables,
            "taken": self.taken,
            "documents": self.documents.filter(|_| !self.is_open),
            "generations": generations,
        });
        value.to_string().into_bytes()
    }

    /// Reads a state.
    ///
    /// # Errors
    /// None, or bytes that are none.
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
        let generations = value["generations"].as_array()?.iter();
        let taken = value["taken"].as_u64()?;
        is_known.then_some(())?;
        Some(Self {
            about: value["about"].as_str()?.to_owned(),
            tables: u32::try_from(value["tables"].as_u64()?).ok()?,
            next: taken,
            taken,
            documents: value["documents"].as_u64(),
            generations: generations
                .map(|pair| Some((pair[0].as_u64()?, pair[1].as_u64()?)))
                .collect::<Option<_>>()?,
            is_open: false,
        })
    }

    /// Refuses another index than was asked for.
    ///
    /// # Errors
    /// One that was made with other parameters.
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
