//! Documents come in, and each is decided on: is it new?

use nandex::Table;
use nandex_corpus::DocumentResult;

use super::batch::{Batch, Decided, Plan, next_batch};
use super::numbers::put_numbers;
use super::record::{Decision, Neighbor};
use super::{Index, number_key, refused};
use crate::{Document, Result};

/// Pairs that are kept of a document: the nearest of the earlier ones.
pub const PAIRS_MAX: usize = 64;

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

impl Index {
    /// Adds documents, and calls `take` with each and what was decided of it, in their order.
    ///
    /// Documents count in batches, and a batch as a whole; `take` is called when its batch counts. After an error or a
    /// crash the index has the batches before, and none of the batch at hand; where `documents` has the error, also
    /// those before it. The same run with [`Repeats::Skip`] then
    /// gives the decisions of these again and adds the others.
    ///
    /// # Errors
    /// Those of `documents` and of `take`, [`Error::Repeated`](crate::Error::Repeated),
    /// [`Error::NoSpace`](crate::Error::NoSpace), a failed read or write.
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
}
