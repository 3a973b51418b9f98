//! Selects the terms that become columns: scikit-learn's `_limit_features`, over terms that do not fit into RAM.

use std::path::Path;

use nandex_corpus::sort::{Sorted, Sorter};

use super::sort::{PAYLOAD_BYTES, Sortable};
use crate::tokenise::TermKey;
use crate::{Corpus, Error, Result, Selection, TermFrequency};

/// The selected terms.
pub(super) struct Kept {
    /// Their number.
    pub(super) count: u64,
    /// Their texts in order, with the payload that [`unpack`] reads.
    pub(super) terms: Sorted<Sortable>,
}

/// Packs a term's key and its documents, to be sorted with its text.
fn pack(key: TermKey, documents: u64) -> [u8; PAYLOAD_BYTES] {
    let mut payload = [0; PAYLOAD_BYTES];
    payload[..16].copy_from_slice(&key.0);
    payload[16..].copy_from_slice(&documents.to_le_bytes());
    payload
}

/// Unpacks a term's key and its documents.
pub(super) fn unpack(payload: &[u8; PAYLOAD_BYTES]) -> (TermKey, u64) {
    let mut key = [0; 16];
    key.copy_from_slice(&payload[..16]);
    let documents = payload[16..].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    (TermKey(key), documents)
}

/// Chooses terms and sorts them.
pub(super) fn select(
    corpus: &Corpus,
    selection: &Selection,
    is_binary: bool,
    folder: &Path,
) -> Result<Kept> {
    selection.validate()?;
    let (least, most) = selection.limits(corpus.documents())?;
    let ram_bytes = corpus.config().batch_bytes();
    let mut sorter = Sorter::new(folder, ram_bytes);
    let by_frequency = selection.max_features.is_some();
    let mut sort_key = Vec::new();
    corpus.for_each_term(|key, text, frequency| {
        let TermFrequency { documents, occurrences } = frequency;
        if !(least..=most).contains(&(documents as f64)) {
            return Ok(());
        }
        if !by_frequency {
            return Ok(sorter.push(Sortable::new(text, &pack(*key, documents)))?);
        }
        // If each count is 1, a term occurs once in each of its documents.
        let occurrences = if is_binary { documents } else { occurrences };
        sort_key.clear();
        sort_key.extend((!occurrences).to_be_bytes());
        sort_key.extend_from_slice(text);
        Ok(sorter.push(Sortable::new(&sort_key, &pack(*key, documents)))?)
    })?;
    if sorter.is_empty() {
        return Err(none_left(corpus, least, most));
    }
    match selection.max_features {
        Some(features) => most_frequent(sorter, features, folder, ram_bytes),
        None => Ok(Kept { count: sorter.len(), terms: sorter.finish()? }),
    }
}

fn none_left(corpus: &Corpus, least: f64, most: f64) -> Error {
    let reason = if corpus.occurrences() == 0 {
        "the documents of the index have none; check whether they have only stop words".to_owned()
    } else {
        format!("none is in {least} to {most} documents; try a lower min_df or a higher max_df")
    };
    Error::NoTerms { reason }
}

/// Returns the first terms by frequency, sorted by text.
fn most_frequent(
    by_frequency: Sorter<Sortable>,
    features: u64,
    folder: &Path,
    ram_bytes: usize,
) -> Result<Kept> {
    let mut sorted = by_frequency.finish()?;
    let mut by_text = Sorter::new(folder, ram_bytes);
    while by_text.len() < features {
        let Some(term) = sorted.next() else { break };
        let term = term?;
        let (sort_key, payload) = term.parts();
        by_text.push(Sortable::new(&sort_key[size_of::<u64>()..], payload))?;
    }
    drop(sorted);
    Ok(Kept { count: by_text.len(), terms: by_text.finish()? })
}
