//! Documents come in, and the index decides whether each is new.

use nandex::Table;
use nandex_corpus::DocumentResult;

use super::batch::{Batch, Decided, Plan, next_batch};
use super::numbers::put_numbers;
use super::record::{Decision, Neighbor};
use super::{Index, number_key, refused};
use crate::{Document, Result};

/// The most pairs stored per document: those with the nearest earlier ones.
pub const PAIRS_MAX: usize = 64;

/// The treatment of a document whose id is already in the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Repeats {
    /// It is an error.
    #[default]
    Refuse,
    /// If its text is the same, its decision is given again, and nothing changes; otherwise it is an error. So a failed
    /// run can be repeated.
    Skip,
}

/// The result of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Updated {
    /// The number of documents added.
    pub documents: u64,
    /// The number of new ones among these.
    pub kept: u64,
    /// The number of those with the text of another one.
    pub exact: u64,
    /// The number of those near another one.
    pub near: u64,
    /// The number of documents that were already there.
    pub repeated: u64,
}

/// The kept document that another is a duplicate of.
#[derive(Clone, PartialEq, Debug)]
pub struct Match {
    /// Its id.
    pub id: String,
    /// The similarity or distance, in the index's [`Measure`](crate::Measure).
    pub estimate: f64,
    /// Whether the texts are equal, byte for byte.
    pub is_exact: bool,
}

/// The decision on a document.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// It is new.
    Kept,
    /// It is a duplicate of a kept one.
    Removed(Match),
    /// It was a duplicate of a document that has since been removed from the index.
    RemovedForGone,
}

/// A document's verdict, and its source.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The decision on the document.
    pub verdict: Verdict,
    /// Whether the document was in the index before.
    pub is_repeated: bool,
}

impl Index {
    /// Adds documents, and calls `take` with each document and the decision on it, in their order.
    ///
    /// Documents count in batches, and a batch as a whole; `take` is called when its batch counts. After an error or a
    /// crash the index has the previous batches, and none of the current batch; if the error came from `documents`, it
    /// also has the documents before it. The same run with [`Repeats::Skip`] then repeats the decisions on these and
    /// adds the others.
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
            let (batch, failure) =
                next_batch(&mut documents, (self.batch_documents, self.config.ram_bytes));
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

    /// Returns the outcome of a document of a batch that counts.
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
