//! What an index says of itself: its version, its analysis, how many documents it has, and where their terms are.

use serde::{Deserialize, Serialize};

use super::runs::RunInfo;
use crate::{Analysis, Error, Result};

/// The version of the index's content.
const VERSION: u32 = 1;

/// The word that tells an index from other tables.
const FORMAT: &str = "nandex-tfidf";

/// The state of an index, kept as JSON among the blocks, under a key that no block has. Replacing it is what makes a
/// batch count.
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
    /// The number of the counting tables that count; 0 for none.
    pub(super) generation: u64,
    /// The texts of the terms in these tables.
    pub(super) texts: Option<RunInfo>,
    /// Runs with counts that are not in the tables, the oldest first.
    pub(super) runs: Vec<RunInfo>,
    /// The number of the next run.
    pub(super) next_run: u64,
    /// Documents of the last batch, which the table of documents may not have yet.
    pub(super) unapplied: Option<Unapplied>,
    /// Blocks that may be there and are not used.
    pub(super) unused: Vec<Unused>,
}

/// Documents that count, in blocks under the number of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Unapplied {
    pub(super) run: u64,
    pub(super) blocks: u32,
    /// Did they go?
    pub(super) are_removed: bool,
}

/// Blocks of a run, at most that many of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Unused {
    pub(super) run: u64,
    pub(super) terms: u32,
    pub(super) documents: u32,
}

impl State {
    pub(super) fn new(analysis: Analysis, text_bytes_max: u64) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            analysis,
            documents: 0,
            occurrences: 0,
            text_bytes_max,
            generation: 0,
            texts: None,
            runs: Vec::new(),
            next_run: 0,
            unapplied: None,
            unused: Vec::new(),
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        // A structure of numbers and words has a JSON form.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a state, and refuses one of another version.
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
        Ok(state)
    }

    /// Entries of terms in the tables, and in runs.
    pub(super) fn terms(&self) -> (u64, u64) {
        let in_runs = self.runs.iter().map(|run| run.terms).sum();
        (self.texts.map_or(0, |texts| texts.terms), in_runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let runs = vec![RunInfo { id: 3, blocks: 2, terms: 9 }];
        let unapplied = Some(Unapplied { run: 3, blocks: 1, are_removed: true });
        let unused = vec![Unused { run: 4, terms: 7, documents: 0 }];
        let fresh = State::new(Analysis::default().ngrams(1, 3), 9);
        let state = State { documents: 7, runs, unapplied, unused, ..fresh };
        assert_eq!(State::decode(&state.encode()).unwrap(), state);
    }

    #[test]
    fn other_versions_and_garbage_are_refused() {
        let refusal = |bytes: &[u8]| State::decode(bytes).unwrap_err().to_string();
        assert!(refusal(b"{}").contains("its state cannot be read (missing field"));
        let state = State { version: 2, ..State::new(Analysis::default(), 9) };
        assert!(refusal(&state.encode()).contains("found nandex-tfidf of version 2"));
    }
}
