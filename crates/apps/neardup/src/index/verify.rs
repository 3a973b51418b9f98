//! Are candidates near? Their stored signatures say so.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::ScopedJoinHandle;

use nandex::signature::{Family, Scheme, Signature};

use super::Index;
use super::record::Decision;
use crate::{Result, Shingles};

/// Records that are read at a time, about half a KiB each.
const RECORDS_MAX: usize = 4096;

/// Texts that are worth a thread: some hundred us of work.
const SKETCHES_MIN: usize = 64;

/// A document as buckets and records see it.
#[derive(Clone, Debug)]
pub(super) struct Sketch {
    pub(super) values: Vec<u32>,
    pub(super) keys: Vec<u64>,
}

/// A stored document that is near.
#[derive(Clone, Debug)]
pub(super) struct Verified {
    pub(super) number: u64,
    /// Values of the signatures that are the same.
    pub(super) shared: u32,
    pub(super) is_kept: bool,
    pub(super) name: String,
}

/// The candidates of a document, and the document itself.
pub(super) type Candidates<'s> = (&'s Sketch, &'s [u64]);

impl Index {
    /// Computes sketches of texts.
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
        let sketch = &sketch;
        let part = texts.len().div_ceil(self.config.sketch_threads).max(SKETCHES_MIN);
        std::thread::scope(|scope| {
            let mut parts = texts.chunks_mut(part);
            let own = parts.next();
            let others: Vec<_> = parts.map(|part| scope.spawn(move || sketch(part))).collect();
            let own = own.map_or(Ok(()), sketch);
            // A panic goes on: it is a mistake of ours, as one on this thread would be.
            let join = |other: ScopedJoinHandle<'_, Result<()>>| {
                other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            others.into_iter().map(join).fold(own, Result::and)
        })
    }

    /// The fewest same values of two signatures that are near.
    pub(super) fn shared_min(&self) -> u32 {
        let (permutations, _) = self.minhash();
        let is_near =
            |shared: &u32| f64::from(*shared) / f64::from(permutations) >= self.state.threshold;
        (0..=permutations).find(is_near).unwrap_or(permutations)
    }

    /// The estimate of Jaccard similarity by that many same values.
    pub(super) fn estimate(&self, shared: u32) -> f64 {
        f64::from(shared) / f64::from(self.minhash().0)
    }

    /// Which candidates of each document count and are near. Reads each record once for a few thousand candidates.
    pub(super) fn verified(&self, all: &[Candidates<'_>]) -> Result<Vec<Vec<Verified>>> {
        let shared_min = self.shared_min();
        let mut verified = Vec::with_capacity(all.len());
        let mut rest = all;
        while !rest.is_empty() {
            let (group, numbers) = self.next_group(rest);
            let records = self.records_by_number(numbers)?;
            for (sketch, candidates) in &rest[..group] {
                let near = candidates.iter().filter_map(|number| {
                    let record = records.get(number)?;
                    let shared = shared_with_bytes(&sketch.values, &record.signature);
                    (shared >= shared_min).then(|| Verified {
                        number: *number,
                        shared,
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

    /// How many documents of the first have few enough candidates together, and these. At least one document.
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

/// Computes sketches; its memory is used again for the next text.
pub(super) struct Sketches<'i> {
    index: &'i Index,
    shingles: Shingles,
    hashes: Vec<u64>,
}

impl Sketches<'_> {
    /// The sketch of a text; nothing if it has no shingles.
    pub(super) fn of(&mut self, text: &str) -> Result<Option<Sketch>> {
        let scheme = match self.index.sketcher.family() {
            Family::MinHash { scheme, .. } => *scheme,
            _ => Scheme::default(),
        };
        self.shingles.take(text);
        self.shingles.hash(scheme, &mut self.hashes);
        if self.hashes.is_empty() {
            return Ok(None);
        }
        self.index.signatures.fetch_add(1, Relaxed);
        let signature = self.index.sketcher.of_hashes(&self.hashes)?;
        let mut keys = Vec::new();
        self.index.sketcher.bucket_keys(&signature, &mut keys)?;
        let values = match signature {
            Signature::MinHash(values) => values,
            _ => Vec::new(),
        };
        Ok(Some(Sketch { values, keys }))
    }
}

impl Sketch {
    /// The bytes of its signature.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }
}

/// Same values of two signatures.
pub(super) fn shared(left: &[u32], right: &[u32]) -> u32 {
    left.iter().zip(right).map(|(left, right)| u32::from(left == right)).sum()
}

/// The same of a stored one; none if it is of another length.
fn shared_with_bytes(left: &[u32], right: &[u8]) -> u32 {
    let (words, rest) = right.as_chunks::<4>();
    if words.len() != left.len() || !rest.is_empty() {
        return 0;
    }
    let same = |(left, right): (&u32, &[u8; 4])| u32::from(*left == u32::from_le_bytes(*right));
    left.iter().zip(words).map(same).sum()
}
