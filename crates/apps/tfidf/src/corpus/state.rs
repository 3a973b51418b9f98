//! The state of an index: its version, its analysis, its number of documents, and the places of their terms.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ranked::RankedInfo;
use super::runs::RunInfo;
use crate::{Analysis, Error, Result};

/// The version of the index's content, and the oldest readable one. Version 1 also stored the amount of its space.
const VERSION: u32 = 2;
const VERSION_OLDEST: u32 = 1;

/// The word that distinguishes an index from other tables.
const FORMAT: &str = "nandex-tfidf";

/// The state of an index, stored as JSON among the blocks, under a key that no block has. Replacing it makes a batch
/// count.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct State {
    format: String,
    version: u32,
    /// The division of text into terms.
    pub(super) analysis: Analysis,
    /// The number of its documents.
    pub(super) documents: u64,
    /// The number of occurrences of all terms in these.
    pub(super) occurrences: u64,
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
    /// Blocks that may exist and are not used.
    pub(super) unused: Vec<Unused>,
    /// The rank index, if there is one.
    #[serde(default)]
    pub(super) ranked: Option<RankedInfo>,
    /// Whether there was one that was removed because documents were added or removed.
    #[serde(default)]
    pub(super) ranked_is_stale: bool,
}

/// Documents that count, in blocks under the number of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Unapplied {
    pub(super) run: u64,
    pub(super) blocks: u32,
    /// Whether they were removed.
    pub(super) are_removed: bool,
}

/// The most blocks of a run, of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Unused {
    pub(super) run: u64,
    pub(super) terms: u32,
    pub(super) documents: u32,
    /// The most blocks of each section of a rank index.
    #[serde(default)]
    pub(super) ranked: u32,
}

impl State {
    pub(super) fn new(analysis: Analysis) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            analysis,
            documents: 0,
            occurrences: 0,
            generation: 0,
            texts: None,
            runs: Vec::new(),
            next_run: 0,
            unapplied: None,
            unused: Vec::new(),
            ranked: None,
            ranked_is_stale: false,
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        // A structure of numbers and words has a JSON form.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Decodes a state, and rejects one of another version.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let Header { format, version } = parse(bytes)?;
        if format != FORMAT || !(VERSION_OLDEST..=VERSION).contains(&version) {
            let reason = format!(
                "expected {FORMAT} of version {VERSION_OLDEST} to {VERSION}, found {format} of version {version}; use a \
                 program of its version"
            );
            return Err(Error::NoIndex { reason });
        }
        let state = Self { version: VERSION, ..parse(bytes)? };
        state.analysis.validate()?;
        Ok(state)
    }

    /// Names a run, the newest. One without terms is not named, as it has no blocks: additions and their removals may
    /// leave nothing.
    pub(super) fn add_run(&mut self, run: RunInfo) {
        self.runs.extend(Some(run).filter(|run| run.terms > 0));
    }

    /// Returns the number of entries of terms in the tables, and in runs.
    pub(super) fn terms(&self) -> (u64, u64) {
        let in_runs = self.runs.iter().map(|run| run.terms).sum();
        (self.texts.map_or(0, |texts| texts.terms), in_runs)
    }
}

/// The fields that every version has.
#[derive(Deserialize)]
struct Header {
    format: String,
    version: u32,
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        let reason = format!("its state cannot be read ({error}); restore a copy");
        Error::NoIndex { reason }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let runs = vec![RunInfo { id: 3, blocks: 2, terms: 9 }];
        let unapplied = Some(Unapplied { run: 3, blocks: 1, are_removed: true });
        let unused = vec![Unused { run: 4, terms: 7, documents: 0, ranked: 2 }];
        let fresh = State::new(Analysis::default().ngrams(1, 3));
        let state = State { documents: 7, runs, unapplied, unused, ..fresh };
        assert_eq!(State::decode(&state.encode()).unwrap(), state);
    }

    #[test]
    fn other_versions_and_garbage_are_refused() {
        let refusal = |bytes: &[u8]| State::decode(bytes).unwrap_err().to_string();
        assert!(refusal(b"{}").contains("its state cannot be read (missing field"));
        let later = br#"{"format":"nandex-tfidf","version":3,"terms":"other"}"#;
        assert!(refusal(later).contains("found nandex-tfidf of version 3"));
    }

    #[test]
    fn the_first_version_is_read() {
        let state = State::new(Analysis::default());
        let text = String::from_utf8(state.encode()).unwrap();
        let first = text.replace(r#""version":2"#, r#""version":1,"text_bytes_max":9"#);
        let first = first.replace(r#","ranked":null,"ranked_is_stale":false"#, "");
        assert_ne!(first, text);
        assert_eq!(State::decode(first.as_bytes()).unwrap(), state);
    }
}
