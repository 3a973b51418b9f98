//! A batch of incoming documents: what the tables know of each, the decision on it, and its record.

use std::collections::HashMap;

use nandex::raw::signature::Family;
use nandex_corpus::DocumentResult;

use super::numbers::Hash;
use super::record::{Decision, Described, Neighbor, Record};
use super::update::{Match, Repeats, Verdict};
use super::verify::Sketch;
use super::{Index, id_hash, text_hash};
use crate::{Document, Error, Result};

/// The most documents of a batch. The bytes of text at which it is full are a part of the RAM, within these limits.
pub(super) const BATCH_DOCUMENTS: usize = 4096;
const BATCH_BYTES_MAX: usize = 8 << 20;
const BATCH_BYTES_MIN: usize = 1 << 20;
const BATCHES_EACH: u64 = 32;

/// The hashes of an incoming document, and the records in the tables with its id or its text.
pub(super) struct Known {
    pub(super) id: Hash,
    pub(super) text: Hash,
    /// The document of this id.
    pub(super) same_id: Option<(u64, Record)>,
    /// The first document of this text.
    pub(super) same_text: Option<(u64, Record)>,
}

/// The treatment of a document of a batch.
pub(super) enum Plan {
    /// It is in the index.
    Stored(Record),
    /// It occurred earlier in this batch, at that place.
    Again(usize),
    /// It has the text of another.
    Equal(Decision),
    /// It has the text of an earlier one of this batch, at that place.
    EqualTo(usize),
    /// Its text is new.
    New(Option<Sketch>),
}

/// A decision made in this batch.
#[derive(Clone, Default)]
pub(super) struct Decided {
    pub(super) decision: Option<Decision>,
    pub(super) pairs: Vec<Neighbor>,
    pub(super) number: Option<u64>,
}

/// A batch under decision.
pub(super) struct Batch {
    pub(super) documents: Vec<Document>,
    pub(super) known: Vec<Known>,
    pub(super) plans: Vec<Plan>,
    pub(super) decided: Vec<Decided>,
    /// Names of stored documents, by their numbers.
    pub(super) names: HashMap<u64, String>,
}

impl Index {
    /// Looks up all ids and texts in the table of keys, and checks the answers against the records.
    pub(super) fn known(&self, documents: &[Document]) -> Result<Vec<Known>> {
        let hash = |document: &Document| [id_hash(&document.id), text_hash(&document.text)];
        let hashes: Vec<Hash> = documents.iter().flat_map(hash).collect();
        let numbers = self.numbers_of(&hashes)?;
        let records = self.records_by_number(numbers.iter().flatten().copied().collect())?;
        let record = |number: Option<u64>, is_right: &dyn Fn(&Record) -> bool| {
            let number = number?;
            let record = records.get(&number).filter(|record| is_right(record))?;
            Some((number, record.clone()))
        };
        let rows = documents.iter().zip(hashes.chunks_exact(2)).zip(numbers.chunks_exact(2));
        Ok(rows
            .map(|((document, hashes), numbers)| Known {
                id: hashes[0],
                text: hashes[1],
                same_id: record(numbers[0], &|record| record.name == document.id),
                same_text: record(numbers[1], &|record| record.text == hashes[1]),
            })
            .collect())
    }

    pub(super) fn plans(
        &self,
        (documents, known): (&[Document], &[Known]),
        live: &HashMap<u64, String>,
        repeats: Repeats,
    ) -> Result<Vec<Plan>> {
        let (mut ids, mut texts) = (HashMap::new(), HashMap::new());
        let mut plans = Vec::with_capacity(documents.len());
        for (place, (document, known)) in documents.iter().zip(known).enumerate() {
            let is_same = match (&known.same_id, ids.get(&known.id)) {
                (Some((_, record)), _) => Some((record.text == known.text, None)),
                (None, Some(&(earlier, text))) => Some((text == known.text, Some(earlier))),
                (None, None) => None,
            };
            if let Some((is_same, earlier)) = is_same {
                if !(is_same && repeats == Repeats::Skip) {
                    return Err(repeated(&document.id, is_same));
                }
                plans.push(match (earlier, &known.same_id) {
                    (None, Some((_, record))) => Plan::Stored(record.clone()),
                    (earlier, _) => Plan::Again(earlier.unwrap_or(place)),
                });
                continue;
            }
            ids.insert(known.id, (place, known.text));
            let equal = known.same_text.as_ref().and_then(|(number, record)| {
                equal_to((*number, record), |target| live.contains_key(&target))
            });
            plans.push(match (equal, texts.get(&known.text)) {
                (Some(decision), _) => Plan::Equal(decision),
                (None, Some(&earlier)) => Plan::EqualTo(earlier),
                (None, None) => {
                    texts.insert(known.text, place);
                    Plan::New(None)
                }
            });
        }
        let new = documents.iter().zip(&mut plans).filter_map(|(document, plan)| match plan {
            Plan::New(sketch) => Some((document.text.as_str(), sketch)),
            _ => None,
        });
        self.sketch_all(&mut new.collect::<Vec<_>>())?;
        Ok(plans)
    }

    /// Returns the documents that known ones are near and that still exist, with their names.
    pub(super) fn live_targets(&self, known: &[Known]) -> Result<HashMap<u64, String>> {
        let target = |known: &Known| match known.same_text.as_ref()?.1.decision {
            Decision::Near(neighbor) => Some(neighbor.number),
            _ => None,
        };
        let records = self.records_by_number(known.iter().filter_map(target).collect())?;
        Ok(records.into_iter().map(|(number, record)| (number, record.name)).collect())
    }
}

impl Batch {
    /// Numbers the incoming documents, from `first` on.
    pub(super) fn number(&mut self, first: u64) {
        let mut numbers = first..;
        for (plan, decided) in self.plans.iter().zip(&mut self.decided) {
            if !matches!(plan, Plan::Stored(_) | Plan::Again(_)) {
                decided.number = numbers.next();
            }
        }
    }

    /// Encodes the record of a document.
    pub(super) fn record(&self, place: usize, decision: Decision, family: &Family) -> Vec<u8> {
        let signature = match &self.plans[place] {
            Plan::New(Some(sketch)) => Some(&sketch.signature),
            _ => None,
        };
        let document = Described {
            decision,
            text: &self.known[place].text,
            name: &self.documents[place].id,
            pairs: &self.decided[place].pairs,
        };
        let signature_bytes = signature.map_or(0, |_| family.signature_bytes());
        document.encode(signature_bytes, |bytes| {
            signature.into_iter().for_each(|it| it.encode(family, bytes));
        })
    }

    pub(super) fn verdict(&self, number: u64, estimate: f64, is_exact: bool) -> Verdict {
        match self.names.get(&number) {
            Some(id) => Verdict::Removed(Match { id: id.clone(), estimate, is_exact }),
            None => Verdict::RemovedForGone,
        }
    }
}

/// Returns the decision on a document whose text is that of a stored one, or `None` if the document that the stored one
/// was near has been removed.
fn equal_to((number, record): (u64, &Record), is_live: impl Fn(u64) -> bool) -> Option<Decision> {
    match record.decision {
        near @ Decision::Near(neighbor) => is_live(neighbor.number).then_some(near),
        _ => Some(Decision::Exact(number)),
    }
}

/// The document as whose duplicate another is removed.
pub(super) fn target(decision: Decision) -> Option<u64> {
    match decision {
        Decision::Kept => None,
        Decision::Exact(number) => Some(number),
        Decision::Near(neighbor) => Some(neighbor.number),
    }
}

fn repeated(id: &str, is_same: bool) -> Error {
    let difference = if is_same { "with the same text" } else { "with another text" };
    Error::Repeated { document: id.to_owned(), difference }
}

/// Returns the next documents, as many as fit a batch, and the error that followed them.
pub(super) fn next_batch(
    documents: &mut impl Iterator<Item = DocumentResult>,
    (documents_max, ram_bytes): (usize, u64),
) -> (Vec<Document>, Option<nandex_corpus::Error>) {
    let mut batch = Vec::new();
    let mut bytes = 0;
    let bytes_max = usize::try_from(ram_bytes / BATCHES_EACH).unwrap_or(usize::MAX);
    let bytes_max = bytes_max.clamp(BATCH_BYTES_MIN, BATCH_BYTES_MAX);
    while batch.len() < documents_max && bytes < bytes_max {
        match documents.next() {
            None => break,
            Some(Err(error)) => return (batch, Some(error)),
            Some(Ok(document)) => {
                bytes += document.text.len();
                batch.push(document);
            }
        }
    }
    (batch, None)
}
