//! The state of an index: its version, its definition of near-duplicates, and the number of documents that count.

use serde::{Deserialize, Serialize};

use crate::options::check_probes;
use crate::{Error, Result, Shingling};

/// The version of the index's content.
const VERSION: u32 = 1;

/// The word that distinguishes an index from other tables.
const FORMAT: &str = "nandex-neardup";

/// The state of an index, stored as JSON among the records, under a key that no record has. Replacing it makes a batch
/// count: documents from `next` on do not exist, whatever the tables contain.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct State {
    format: String,
    version: u32,
    /// The division of text into shingles.
    pub(super) shingling: Shingling,
    /// The threshold of near-duplicates, in the family's measure.
    pub(super) threshold: f64,
    /// The number of cells next to its own that a lookup of a vector tries in each table; omitted if 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) probes: u32,
    /// The number of the next document.
    pub(super) next: u64,
    /// The numbers of existing documents, by decision.
    pub(super) counts: Counts,
    /// Documents that no longer count and may still be in tables.
    pub(super) removing: Vec<u64>,
}

/// The numbers of documents by decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Counts {
    pub(super) kept: u64,
    pub(super) exact: u64,
    pub(super) near: u64,
}

impl State {
    pub(super) fn new(shingling: Shingling, threshold: f64) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            shingling,
            threshold,
            probes: 0,
            next: 0,
            counts: Counts::default(),
            removing: Vec::new(),
        }
    }

    /// Returns the same state with `probes` probes.
    pub(super) fn probing(self, probes: u32) -> Self {
        Self { probes, ..self }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        // A structure of numbers and words has a JSON form.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Decodes a state, and rejects one of another version.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let unreadable = |error: serde_json::Error| {
            let reason = format!("its state cannot be read ({error}); restore a copy");
            Error::NoIndex { reason }
        };
        let Header { format, version } = serde_json::from_slice(bytes).map_err(unreadable)?;
        if format != FORMAT || version != VERSION {
            let reason = format!(
                "expected {FORMAT} of version {VERSION}, found {format} of version {version}; use a program of its version"
            );
            return Err(Error::NoIndex { reason });
        }
        let state: Self = serde_json::from_slice(bytes).map_err(unreadable)?;
        state.shingling.validate()?;
        check_probes(state.probes)?;
        Ok(state)
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The fields that every version has.
#[derive(Deserialize)]
struct Header {
    format: String,
    version: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written_and_others_are_refused() {
        let counts = Counts { kept: 5, exact: 1, near: 1 };
        let fresh = State::new(Shingling::default(), 0.8);
        let state = State { next: 7, counts, removing: vec![3, 4], ..fresh };
        assert_eq!(State::decode(&state.encode()).unwrap(), state);
        let refusal = |text: &str| State::decode(text.as_bytes()).unwrap_err().to_string();
        assert!(refusal("{}").contains("its state cannot be read (missing field"));
        let text = String::from_utf8(state.encode()).unwrap();
        let later = text.replace("\"version\":1", "\"version\":2");
        assert!(refusal(&later).contains("found nandex-neardup of version 2"));
        let other = text.replace("\"next\":7", "\"next\":7,\"probes\":65");
        assert!(refusal(&other).starts_with("probes: 65; give 0 to 64"));
        assert!(!text.contains("probes"), "none are left out");
    }
}
