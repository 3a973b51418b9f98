//! Documents come in, and each is decided on: is it new?

use std::collections::{HashMap, HashSet};

use nandex::Table;
use nandex::signature::Family;
use nandex_corpus::DocumentResult;

use super::record::{Decision, Described, Neighbor, Record};
use super::verify::{Sketch, Verified};
use super::{Index, id_hash, number_key, refused, text_hash};
use crate::measure::nearness;
use crate::tables::{Hash, put_numbers};
use crate::{Document, Error, Result};

/// Pairs that are kept of a document: the nearest of the earlier ones.
pub const PAIRS_MAX: usize = 64;

/// Documents of a batch, at most, and bytes of text at which it is full.
pub(super) const BATCH_DOCUMENTS: usize = 4096;
const BATCH_BYTES: usize = 8 << 20;

/// What happens to a document whose id is in the index already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Repeats {
    /// It is an error.
    #[default]
    Refuse,
    /// If its text is the same, its decision is given again, and nothing changes; an error if not. So a run that has
    /// failed can be repeated.
    Skip,
}

/// What a run has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Updated {
    /// Documents added.
    pub documents: u64,
    /// Of these, new ones.
    pub kept: u64,
    /// Of these, with a text equal to another one's.
    pub exact: u64,
    /// Of these, near another one.
    pub near: u64,
    /// Documents that were there.
    pub repeated: u64,
}

/// The kept document that another is a duplicate of.
#[derive(Clone, PartialEq, Debug)]
pub struct Match {
    /// Its id.
    pub id: String,
    /// How near it is, in the index's [`Measure`](crate::Measure).
    pub estimate: f64,
    /// Are the texts equal, byte for byte?
    pub is_exact: bool,
}

/// What was decided of a document.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// It is new.
    Kept,
    /// It is a duplicate of a kept one.
    Removed(Match),
    /// It was a duplicate of a document that was taken out of the index since.
    RemovedForGone,
}

/// A document's verdict, and where it is from.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Is it new?
    pub verdict: Verdict,
    /// Was the document in the index before?
    pub is_repeated: bool,
}

/// Documents of the index that one is near.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Near {
    /// These, the nearest first, and of equally near ones the earliest.
    pub matches: Vec<Match>,
    /// Documents that shared a bucket with it, near or not.
    pub candidates: u64,
}

/// What the tables say of a document that comes in.
struct Known {
    id: Hash,
    text: Hash,
    /// The document of this id.
    same_id: Option<(u64, Record)>,
    /// The first document of this text.
    same_text: Option<(u64, Record)>,
}

/// What becomes of a document of a batch.
enum Plan {
    /// It is in the index.
    Stored(Record),
    /// It came before in this batch, at that place.
    Again(usize),
    /// It has the text of another.
    Equal(Decision),
    /// It has the text of an earlier one of this batch, at that place.
    EqualTo(usize),
    /// Its text is new.
    New(Option<Sketch>),
}

/// A decision that was made in this batch.
#[derive(Clone, Default)]
struct Decided {
    decision: Option<Decision>,
    pairs: Vec<Neighbor>,
    number: Option<u64>,
}

/// A batch that is being decided on.
struct Batch {
    documents: Vec<Document>,
    known: Vec<Known>,
    plans: Vec<Plan>,
    decided: Vec<Decided>,
    /// Names of stored documents, by their numbers.
    names: HashMap<u64, String>,
}

impl Index {
    /// Adds documents, and calls `take` with each and what was decided of it, in their order.
    ///
    /// Documents count in batches, and a batch as a whole; `take` is called when its batch counts. After an error or a
    /// crash the index has the batches before, and none of the batch at hand; where `documents` has the error, also
    /// those before it. The same run with [`Repeats::Skip`] then
    /// gives the decisions of these again and adds the others.
    ///
    /// # Errors
    /// Those of `documents` and of `take`, [`Error::Repeated`], [`Error::NoSpace`], a failed read or write.
    pub fn update(
        &mut self,
        documents: impl IntoIterator<Item = DocumentResult>,
        repeats: Repeats,
        mut take: impl FnMut(&Document, &Outcome) -> Result<()>,
    ) -> Result<Updated> {
        self.check_sure()?;
        let mut documents = documents.into_iter();
        let mut updated = Updated::default();
        loop {
            let (batch, failure) = next_batch(&mut documents, self.batch_documents);
            if !batch.is_empty() {
                let batch = self.apply(batch, repeats, &mut updated)?;
                for (place, document) in batch.documents.iter().enumerate() {
                    take(document, &self.outcome(&batch, place))?;
                }
            } else if failure.is_none() {
                return Ok(updated);
            }
            if let Some(error) = failure {
                return Err(error.into());
            }
        }
    }

    /// Decides on the documents of a batch and makes it count.
    fn apply(
        &mut self,
        documents: Vec<Document>,
        repeats: Repeats,
        updated: &mut Updated,
    ) -> Result<Batch> {
        let known = self.known(&documents)?;
        let names = self.live_targets(&known)?;
        let plans = self.plans((&documents, &known), &names, repeats)?;
        let decided = vec![Decided::default(); documents.len()];
        let mut batch = Batch { documents, known, plans, decided, names };
        batch.number(self.state.next);
        self.decide(&mut batch)?;
        self.find_names(&mut batch)?;
        self.commit(&batch, updated)?;
        Ok(batch)
    }

    /// Asks the table of keys for all ids and texts, and the records whether it is right.
    fn known(&self, documents: &[Document]) -> Result<Vec<Known>> {
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

    fn plans(
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

    /// Of the documents that known ones are near, those that are still there, with their names.
    fn live_targets(&self, known: &[Known]) -> Result<HashMap<u64, String>> {
        let target = |known: &Known| match known.same_text.as_ref()?.1.decision {
            Decision::Near(neighbor) => Some(neighbor.number),
            _ => None,
        };
        let records = self.records_by_number(known.iter().filter_map(target).collect())?;
        Ok(records.into_iter().map(|(number, record)| (number, record.name)).collect())
    }

    /// Decides on the documents with new texts, in order: by the stored ones that are near, and by earlier ones of the
    /// batch. They are in the buckets afterwards.
    fn decide(&self, batch: &mut Batch) -> Result<()> {
        let first = self.state.next;
        let (mut places, mut ids, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        for (place, plan) in batch.plans.iter().enumerate() {
            if let (Plan::New(Some(sketch)), Some(number)) = (plan, batch.decided[place].number) {
                places.push(place);
                ids.push(number);
                keys.extend_from_slice(&sketch.keys);
            }
        }
        let mut candidates =
            self.alike.candidates_then_insert_many(&ids, &keys).map_err(refused)?;
        let sketches = places.iter().filter_map(|place| match &batch.plans[*place] {
            Plan::New(sketch) => sketch.as_ref(),
            _ => None,
        });
        self.probe(&sketches.collect::<Vec<_>>(), &mut candidates)?;
        let stored: Vec<Vec<u64>> = candidates
            .iter()
            .map(|all| all.iter().copied().filter(|number| *number < first).collect())
            .collect();
        let rows = places.iter().zip(&stored).filter_map(|(place, stored)| {
            let Plan::New(Some(sketch)) = &batch.plans[*place] else { return None };
            Some((sketch, &stored[..]))
        });
        let verified = self.verified(&rows.collect::<Vec<_>>())?;
        let by_number: HashMap<u64, usize> =
            ids.iter().copied().zip(places.iter().copied()).collect();
        for (((place, number), near), candidates) in
            places.into_iter().zip(&ids).zip(verified).zip(candidates)
        {
            let fresh = candidates.iter().filter(|it| (first..*number).contains(it));
            let fresh: Vec<usize> = fresh.filter_map(|it| by_number.get(it).copied()).collect();
            self.decide_one(batch, place, (near, fresh));
        }
        for (place, plan) in batch.plans.iter().enumerate() {
            batch.decided[place].decision = match plan {
                Plan::New(None) => Some(Decision::Kept),
                Plan::Equal(decision) => Some(*decision),
                Plan::EqualTo(earlier) => {
                    let Decided { decision, number, .. } = &batch.decided[*earlier];
                    match (decision, number) {
                        (Some(near @ Decision::Near(_)), _) => Some(*near),
                        (_, number) => number.map(Decision::Exact),
                    }
                }
                Plan::New(Some(_)) | Plan::Stored(_) | Plan::Again(_) => continue,
            };
        }
        Ok(())
    }

    /// Decides on one by stored documents that are near, and earlier ones of the batch that may be.
    fn decide_one(&self, batch: &mut Batch, place: usize, found: (Vec<Verified>, Vec<usize>)) {
        let (stored, fresh) = found;
        let nearness_min = self.nearness_min();
        let mut near: Vec<(Neighbor, bool)> = Vec::new();
        for Verified { number, nearness, is_kept, name } in stored {
            near.push((Neighbor { number, nearness }, is_kept));
            if is_kept {
                batch.names.insert(number, name);
            }
        }
        for other in fresh {
            let (Plan::New(Some(left)), Plan::New(Some(right))) =
                (&batch.plans[place], &batch.plans[other])
            else {
                continue;
            };
            let nearness = nearness(&self.sketcher, &left.signature, &right.signature);
            let Decided { decision, number: Some(number), .. } = batch.decided[other] else {
                continue;
            };
            if nearness >= nearness_min {
                let is_kept = decision == Some(Decision::Kept);
                near.push((Neighbor { number, nearness }, is_kept));
            }
        }
        near.sort_unstable_by_key(|(it, _)| (std::cmp::Reverse(it.nearness), it.number));
        let best = near.iter().find(|(_, is_kept)| *is_kept);
        let decision = best.map_or(Decision::Kept, |(neighbor, _)| Decision::Near(*neighbor));
        // However many are nearer, the one that it is removed for is a pair.
        let mut pairs: Vec<Neighbor> = near.iter().take(PAIRS_MAX).map(|(it, _)| *it).collect();
        if let Decision::Near(neighbor) = decision
            && !pairs.contains(&neighbor)
        {
            pairs.pop();
            pairs.push(neighbor);
        }
        let decided = &mut batch.decided[place];
        decided.decision = Some(decision);
        decided.pairs = pairs;
    }

    /// Finds the names of the stored documents that others are removed for.
    fn find_names(&self, batch: &mut Batch) -> Result<()> {
        let decisions = batch.decided.iter().filter_map(|it| it.decision);
        let stored = batch.plans.iter().filter_map(|plan| match plan {
            Plan::Stored(record) => Some(record.decision),
            _ => None,
        });
        let targets: HashSet<u64> = decisions.chain(stored).filter_map(target).collect();
        let mut numbers: Vec<u64> = targets.iter().copied().collect();
        numbers.retain(|number| *number < self.state.next && !batch.names.contains_key(number));
        let records = self.records_by_number(numbers)?;
        batch.names.extend(records.into_iter().map(|(number, record)| (number, record.name)));
        let fresh = batch.decided.iter().zip(&batch.documents);
        let fresh = fresh.filter_map(|(it, document)| Some((it.number?, document)));
        let fresh = fresh.filter(|(number, _)| targets.contains(number));
        batch.names.extend(fresh.map(|(number, document)| (number, document.id.clone())));
        Ok(())
    }

    /// Writes records and keys, and then the state that makes them count.
    fn commit(&mut self, batch: &Batch, updated: &mut Updated) -> Result<()> {
        let mut next = self.state.clone();
        let mut step = *updated;
        let (mut records, mut keys) = (Vec::new(), Vec::new());
        for (place, decided) in batch.decided.iter().enumerate() {
            let (Some(number), Some(decision)) = (decided.number, decided.decision) else {
                step.repeated += 1;
                continue;
            };
            let (known, plan) = (&batch.known[place], &batch.plans[place]);
            keys.push((known.id, number));
            if matches!(plan, Plan::New(_)) {
                keys.push((known.text, number));
            }
            let record = batch.record(place, decision, self.sketcher.family());
            records.push((number_key(number), record));
            let (counted, total) = match decision {
                Decision::Kept => (&mut next.counts.kept, &mut step.kept),
                Decision::Exact(_) => (&mut next.counts.exact, &mut step.exact),
                Decision::Near(_) => (&mut next.counts.near, &mut step.near),
            };
            (*counted, *total) = (*counted + 1, *total + 1);
            step.documents += 1;
            next.next = number + 1;
        }
        if next.next == self.state.next {
            *updated = step;
            return Ok(());
        }
        let pairs: Vec<(&[u8], &[u8])> =
            records.iter().map(|(key, record)| (&key[..], &record[..])).collect();
        self.records.put_many(&pairs).map_err(refused)?;
        put_numbers(&self.keys, &keys).map_err(refused)?;
        self.records.sync()?;
        self.keys.sync()?;
        self.alike.sync()?;
        self.put_state(next)?;
        *updated = step;
        Ok(())
    }

    /// What is said of a document of a batch that counts.
    fn outcome(&self, batch: &Batch, place: usize) -> Outcome {
        let verdict = |decision| match decision {
            Decision::Kept => Verdict::Kept,
            Decision::Exact(number) => batch.verdict(number, self.measure().of_equal(), true),
            Decision::Near(Neighbor { number, nearness }) => {
                batch.verdict(number, self.estimate(nearness), false)
            }
        };
        match &batch.plans[place] {
            Plan::Stored(record) => {
                Outcome { verdict: verdict(record.decision), is_repeated: true }
            }
            Plan::Again(earlier) => Outcome { is_repeated: true, ..self.outcome(batch, *earlier) },
            _ => {
                let decision = batch.decided[place].decision.unwrap_or(Decision::Kept);
                Outcome { verdict: verdict(decision), is_repeated: false }
            }
        }
    }

    /// The documents of the index that each of these is near. Changes nothing, and needs no ids.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn query(&self, texts: &[&str]) -> Result<Vec<Near>> {
        let hashes: Vec<Hash> = texts.iter().map(|text| text_hash(text)).collect();
        let numbers = self.numbers_of(&hashes)?;
        let records = self.records_by_number(numbers.iter().flatten().copied().collect())?;
        let mut sketches = self.sketches();
        let mut found = vec![Near::default(); texts.len()];
        let (mut places, mut rows, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        for (place, text) in texts.iter().enumerate() {
            let equal = numbers[place].and_then(|number| records.get(&number));
            let equal = equal.filter(|record| record.text == hashes[place]);
            let named = equal.map(|record| {
                let id = record.name.clone();
                Match { id, estimate: self.measure().of_equal(), is_exact: true }
            });
            found[place].matches.extend(named);
            if let Some(sketch) = sketches.of(text)? {
                places.push(place);
                keys.extend_from_slice(&sketch.keys);
                rows.push(sketch);
            }
        }
        let mut candidates = self.alike.candidates_many(&keys)?;
        self.probe(&rows.iter().collect::<Vec<_>>(), &mut candidates)?;
        let rows: Vec<_> = rows.iter().zip(candidates.iter().map(|it| &it[..])).collect();
        for ((place, mut near), candidates) in
            places.into_iter().zip(self.verified(&rows)?).zip(&candidates)
        {
            near.sort_unstable_by_key(|it| (std::cmp::Reverse(it.nearness), it.number));
            found[place].candidates = candidates.len() as u64;
            let exact = found[place].matches.first().map(|it| it.id.clone());
            let others = near.into_iter().filter(|it| Some(&it.name) != exact.as_ref());
            let others = others.map(|it| {
                let (id, estimate) = (it.name, self.estimate(it.nearness));
                Match { id, estimate, is_exact: false }
            });
            found[place].matches.extend(others);
        }
        Ok(found)
    }
}

impl Batch {
    /// Numbers the documents that come in, from that number on.
    fn number(&mut self, first: u64) {
        let mut numbers = first..;
        for (plan, decided) in self.plans.iter().zip(&mut self.decided) {
            if !matches!(plan, Plan::Stored(_) | Plan::Again(_)) {
                decided.number = numbers.next();
            }
        }
    }

    /// The record of a document.
    fn record(&self, place: usize, decision: Decision, family: &Family) -> Vec<u8> {
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

    fn verdict(&self, number: u64, estimate: f64, is_exact: bool) -> Verdict {
        match self.names.get(&number) {
            Some(id) => Verdict::Removed(Match { id: id.clone(), estimate, is_exact }),
            None => Verdict::RemovedForGone,
        }
    }
}

/// The decision on a document whose text is that of a stored one; nothing if the document that this one was near has
/// gone.
fn equal_to((number, record): (u64, &Record), is_live: impl Fn(u64) -> bool) -> Option<Decision> {
    match record.decision {
        near @ Decision::Near(neighbor) => is_live(neighbor.number).then_some(near),
        _ => Some(Decision::Exact(number)),
    }
}

/// The document that another is removed for.
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

/// The next documents, few enough to be held, and the error that came after them.
fn next_batch(
    documents: &mut impl Iterator<Item = DocumentResult>,
    documents_max: usize,
) -> (Vec<Document>, Option<nandex_corpus::Error>) {
    let mut batch = Vec::new();
    let mut bytes = 0;
    while batch.len() < documents_max && bytes < BATCH_BYTES {
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
