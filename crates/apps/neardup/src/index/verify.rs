//! Checks by their stored signatures which candidates are near.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

use nandex::raw::signature::{Family, Scheme, Signature};
use nandex_corpus::cut::{PART_BYTES, is_long, parts_of};
use nandex_corpus::documents::vector_of;
use nandex_corpus::parts::{Threads, in_parts};

use super::Index;
use super::record::Decision;
use crate::measure::{self, nearness_to_bytes};
use crate::{Error, Result, Shingles, Unit};

/// The number of records read at a time, about half a KiB each.
const RECORDS_MAX: usize = 4096;

/// The number of lookups of neighbouring cells done at a time: some MiB of keys and candidates.
const PROBES_AT_A_TIME: usize = 4096;

/// The number of texts that justify a thread: some hundred us of work.
const SKETCHES_MIN: usize = 64;

/// A document in the form that buckets and records use.
#[derive(Clone, Debug)]
pub(super) struct Sketch {
    pub(super) signature: Signature,
    pub(super) keys: Vec<u64>,
}

/// A stored document that is near.
#[derive(Clone, Debug)]
pub(super) struct Verified {
    pub(super) number: u64,
    pub(super) nearness: u32,
    pub(super) is_kept: bool,
    pub(super) name: String,
}

/// A document and its candidates.
pub(super) type Candidates<'s> = (&'s Sketch, &'s [u64]);

impl Index {
    /// Creates a computer of sketches of texts.
    pub(super) fn sketches(&self) -> Sketches<'_> {
        Sketches { index: self, shingles: Shingles::new(self.state.shingling), hashes: Vec::new() }
    }

    /// Computes the sketch of each text into its place, on several threads if there are many.
    pub(super) fn sketch_all(&self, texts: &mut [(&str, &mut Option<Sketch>)]) -> Result<()> {
        let sketch = |part: &mut [(&str, &mut Option<Sketch>)]| -> Result<()> {
            let mut sketches = self.sketches();
            part.iter_mut().try_for_each(|(text, place)| {
                **place = sketches.of(text)?;
                Ok(())
            })
        };
        let threads = Threads { most: self.config.sketch_threads, items_min: SKETCHES_MIN };
        in_parts(texts, threads, sketch).into_iter().collect()
    }

    /// Returns the least nearness of two near documents.
    pub(super) fn nearness_min(&self) -> u32 {
        measure::nearness_min(self.family(), self.state.threshold)
    }

    /// Converts a nearness into the family's measure.
    pub(super) fn estimate(&self, nearness: u32) -> f64 {
        measure::estimate(self.family(), nearness)
    }

    /// Adds to the candidates of each document those in the cells next to its own, if the family has cells. Among
    /// documents that were inserted together, these may include later ones and the document itself.
    pub(super) fn probe(&self, sketches: &[&Sketch], candidates: &mut [Vec<u64>]) -> Result<()> {
        let probes = self.state.probes as usize;
        if probes == 0 {
            return Ok(());
        }
        let step = (PROBES_AT_A_TIME / probes).max(1);
        for (some, candidates) in sketches.chunks(step).zip(candidates.chunks_mut(step)) {
            let mut keys = Vec::new();
            for sketch in some {
                self.sketcher.probe_keys(&sketch.signature, probes, &mut keys)?;
            }
            let found = self.alike.candidates_many(&keys)?;
            for (candidates, found) in candidates.iter_mut().zip(found.chunks(probes)) {
                candidates.extend(found.iter().flatten());
                candidates.sort_unstable();
                candidates.dedup();
            }
        }
        Ok(())
    }

    /// Returns the candidates of each document that count and are near. Reads each record once per some thousand
    /// candidates.
    pub(super) fn verified(&self, all: &[Candidates<'_>]) -> Result<Vec<Vec<Verified>>> {
        let nearness_min = self.nearness_min();
        let mut verified = Vec::with_capacity(all.len());
        let mut rest = all;
        while !rest.is_empty() {
            let (group, numbers) = self.next_group(rest);
            let records = self.records_by_number(numbers)?;
            for (sketch, candidates) in &rest[..group] {
                let near = candidates.iter().filter_map(|number| {
                    let record = records.get(number)?;
                    let nearness =
                        nearness_to_bytes(&self.sketcher, &sketch.signature, &record.signature);
                    (nearness >= nearness_min).then(|| Verified {
                        number: *number,
                        nearness,
                        is_kept: record.decision == Decision::Kept,
                        name: record.name.clone(),
                    })
                });
                verified.push(near.collect());
            }
            rest = &rest[group..];
        }
        Ok(verified)
    }

    /// Returns how many of the first documents have few enough candidates together, and these candidates. At least one
    /// document.
    fn next_group(&self, all: &[Candidates<'_>]) -> (usize, Vec<u64>) {
        let mut numbers = BTreeSet::new();
        let mut group = 0;
        for (_, candidates) in all {
            if group > 0 && numbers.len() + candidates.len() > RECORDS_MAX {
                break;
            }
            numbers.extend(candidates.iter().copied().filter(|number| self.counts(*number)));
            group += 1;
        }
        (group, numbers.into_iter().collect())
    }
}

/// Computes sketches; reuses its memory for the next text.
pub(super) struct Sketches<'i> {
    index: &'i Index,
    shingles: Shingles,
    hashes: Vec<u64>,
}

impl Sketches<'_> {
    /// Computes the sketch of a text; `None` if it has no shingles. A vector always has one.
    ///
    /// # Errors
    /// A text that is not a vector, if the family takes vectors.
    pub(super) fn of(&mut self, text: &str) -> Result<Option<Sketch>> {
        let sketcher = &self.index.sketcher;
        let signature = match sketcher.family() {
            Family::PStable { .. } => sketcher.of_vector(&vector_of(text).map_err(no_vector)?)?,
            Family::MinHash { scheme, .. } => {
                if !self.hash(text, *scheme) {
                    return Ok(None);
                }
                sketcher.of_hashes(&self.hashes)?
            }
            Family::SimHash { .. } => {
                if !self.hash(text, Scheme::Fast) {
                    return Ok(None);
                }
                // A shingle that occurs twice has twice the weight.
                let features: Vec<(u64, u32)> = self.hashes.iter().map(|it| (*it, 1)).collect();
                sketcher.of_features(&features)?
            }
        };
        self.index.signatures.fetch_add(1, Relaxed);
        let mut keys = Vec::new();
        sketcher.bucket_keys(&signature, &mut keys)?;
        Ok(Some(Sketch { signature, keys }))
    }

    /// Hashes the shingles of a text, and returns whether there are any.
    fn hash(&mut self, text: &str, scheme: Scheme) -> bool {
        if is_long(text) && self.index.state.shingling.unit == Unit::Words {
            hash_parts(&mut self.shingles, parts_of(text, PART_BYTES), scheme, &mut self.hashes);
        } else {
            self.shingles.take(text);
            self.shingles.hash(scheme, &mut self.hashes);
        }
        !self.hashes.is_empty()
    }
}

/// Replaces `hashes` by those of the shingles of words of a text in parts.
fn hash_parts<'t>(
    shingles: &mut Shingles,
    parts: impl Iterator<Item = &'t str>,
    scheme: Scheme,
    hashes: &mut Vec<u64>,
) {
    hashes.clear();
    shingles.clear();
    for part in parts {
        shingles.take_next(part);
        if shingles.has_whole() {
            shingles.hash_more(scheme, hashes);
        }
    }
    // A text with fewer words has one shingle of them.
    if hashes.is_empty() {
        shingles.hash(scheme, hashes);
    }
}

fn no_vector(reason: String) -> Error {
    Error::Options { field: "vector", reason }
}

#[cfg(test)]
mod tests {
    use nandex::raw::signature::Scheme;
    use nandex_corpus::cut::parts_of;

    use super::hash_parts;
    use crate::{Shingles, Shingling};

    #[test]
    fn a_text_in_parts_has_the_shingles_of_the_whole() {
        let word =
            |it: u64| format!("W{}{}", it * it % 97, if it.is_multiple_of(7) { " . " } else { "" });
        let words: Vec<String> = (0..900).map(word).collect();
        for text in [words.join(" "), words.join(" \u{e9}\u{301} "), "a b".into(), " . ".into()] {
            for length in [1, 3, 5] {
                let mut shingles = Shingles::new(Shingling { length, ..Shingling::default() });
                let mut whole = Vec::new();
                shingles.take(&text);
                shingles.hash(Scheme::Fast, &mut whole);
                for bytes in [1, 7, 1000] {
                    let mut found = Vec::new();
                    hash_parts(&mut shingles, parts_of(&text, bytes), Scheme::Fast, &mut found);
                    assert_eq!(found, whole, "{length} words, {bytes} bytes");
                }
            }
        }
    }
}
