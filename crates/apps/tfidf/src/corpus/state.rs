//! What an index says of itself: its version, its analysis, how many documents it has.

use serde::{Deserialize, Serialize};

use crate::{Analysis, Error, Result};

/// The version of the index's content.
const VERSION: u32 = 1;

/// The word that tells an index from other tables.
const FORMAT: &str = "nandex-tfidf";

/// The state of an index, kept as JSON among the texts of terms, under a key that no term has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct State {
    format: String,
    version: u32,
    /// How text becomes terms.
    pub(super) analysis: Analysis,
    /// Documents in it.
    pub(super) documents: u64,
    /// Occurrences of all terms in these.
    pub(super) occurrences: u64,
    /// Bytes of flash for texts, as the index was made; for errors.
    pub(super) text_bytes_max: u64,
    /// Is a batch being counted? An index that is opened in this state was interrupted.
    pub(super) is_counting: bool,
}

impl State {
    pub(super) fn new(analysis: Analysis, text_bytes_max: u64) -> Self {
        let (format, version) = (FORMAT.to_owned(), VERSION);
        let (documents, occurrences, is_counting) = (0, 0, false);
        Self { format, version, analysis, documents, occurrences, text_bytes_max, is_counting }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        // A structure of numbers and words has a JSON form.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a state, and refuses one of another version or of an interrupted update.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = |reason: String| Error::NoIndex { reason };
        let state: Self = serde_json::from_slice(bytes).map_err(|error| {
            damaged(format!("its state cannot be read ({error}); restore a copy"))
        })?;
        if (state.format.as_str(), state.version) != (FORMAT, VERSION) {
            let Self { format, version, .. } = &state;
            let reason = format!(
                "expected {FORMAT} of version {VERSION}, found {format} of version {version}; use a program of its \
                 version"
            );
            return Err(damaged(reason));
        }
        state.analysis.validate()?;
        if state.is_counting { Err(Error::Interrupted) } else { Ok(state) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let state = State { documents: 7, ..State::new(Analysis::default().ngrams(1, 3), 9) };
        assert_eq!(State::decode(&state.encode()).unwrap(), state);
    }

    #[test]
    fn other_versions_garbage_and_interrupted_updates_are_refused() {
        let refusal = |bytes: &[u8]| State::decode(bytes).unwrap_err().to_string();
        assert!(refusal(b"{}").contains("its state cannot be read (missing field"));
        let state = State { version: 2, ..State::new(Analysis::default(), 9) };
        assert!(refusal(&state.encode()).contains("found nandex-tfidf of version 2"));
        let state = State { is_counting: true, ..State::new(Analysis::default(), 9) };
        assert!(refusal(&state.encode()).starts_with("an update of this index was interrupted"));
    }
}
