//! Indexes of neighbours under trial: their calls and their right answers.

mod oracle;
mod setup;

use nandex::{AnyNeighbors, Volume, VolumeOptions};
use nandex_sim::workload::SplitMix64;

pub use oracle::DocumentsPast;
pub use setup::{NeighborsSetup, further};

use crate::contract::{Contract, Stop, Trust};
use crate::session::Session;

impl Contract for NeighborsSetup {
    type Handle = AnyNeighbors;
    type Past = DocumentsPast;

    fn past(&self) -> DocumentsPast {
        DocumentsPast::new(self.documents())
    }

    fn volume_options(&self) -> VolumeOptions {
        self.volume()
    }

    fn create(&self, volume: &Volume, name: &str) -> nandex::Result<AnyNeighbors> {
        let made = self.made();
        AnyNeighbors::create_with(volume, name, &made.config, &made.options)
    }

    fn open(&self, volume: &Volume, name: &str) -> nandex::Result<AnyNeighbors> {
        AnyNeighbors::open(volume, name, &self.made().options)
    }

    /// Returns true: it is closed without its filter.
    fn asks_for_less(&self) -> bool {
        self.made().has_filter
    }

    fn without_threads(&self) -> Self {
        self.inline()
    }

    fn close(index: AnyNeighbors) -> nandex::Result<()> {
        index.close()
    }

    fn call(session: &mut Session<Self>, rng: &mut SplitMix64) -> Result<(), Stop> {
        let document = rng.below(session.past.count());
        match rng.below(22) {
            0..=2 => session.insert_many(&[document]),
            3..=6 => {
                let documents = session.run(rng, 60);
                session.insert_many(&documents)
            }
            7 | 8 => {
                let documents = session.run(rng, 30);
                session.candidates_then_insert(&documents)
            }
            9..=12 => session.remove(document),
            13 | 14 => session.candidates(document),
            15..=17 => {
                let documents = session.run(rng, 40);
                session.candidates_many(&documents)
            }
            18 => {
                let result = session.handle().sync();
                session.synced(result)
            }
            19 => {
                let result = session.handle().flush();
                session.synced(result)
            }
            _ => session.checkpoint(),
        }
    }

    fn look(session: &mut Session<Self>) -> Result<(), Stop> {
        let documents: Vec<_> = (0..session.past.count()).collect();
        for document in &documents {
            session.look_at(*document)?;
        }
        session.candidates_many(&documents)
    }

    fn updates(session: &mut Session<Self>) -> Vec<(&'static str, nandex::Result<()>)> {
        session.past.attempt(0, true);
        session.past.attempt(0, false);
        let keys: Vec<_> = session.setup().keys(0).collect();
        let index = session.handle();
        vec![
            ("insert", index.insert(0, &keys)),
            ("insert_many", index.insert_many(&[0], &keys)),
            ("candidates_then_insert", index.candidates_then_insert_many(&[0], &keys).map(drop)),
            ("remove", index.remove(0, &keys)),
            ("sync", index.sync()),
            ("flush", index.flush()),
        ]
    }
}

impl Session<NeighborsSetup> {
    fn rows(&self, documents: &[u64]) -> Vec<u64> {
        documents.iter().flat_map(|document| self.setup().keys(*document)).collect()
    }

    /// Inserts these documents in one call.
    ///
    /// # Errors
    /// Fails as [`Contract::call`] does.
    pub fn insert_many(&mut self, documents: &[u64]) -> Result<(), Stop> {
        documents.iter().for_each(|document| self.past.attempt(*document, true));
        let keys = self.rows(documents);
        let result = match documents {
            [one] => self.handle().insert(*one, &keys),
            _ => self.handle().insert_many(documents, &keys),
        };
        self.updated(documents, result)
    }

    /// Queries and inserts documents in one batch: each document sees those before it that share a bucket.
    fn candidates_then_insert(&mut self, documents: &[u64]) -> Result<(), Stop> {
        documents.iter().for_each(|document| self.past.attempt(*document, true));
        let keys = self.rows(documents);
        let result = self.handle().candidates_then_insert_many(documents, &keys);
        if let (Ok(answers), Trust::Right) = (&result, self.trust()) {
            for (at, (document, candidates)) in documents.iter().zip(answers).enumerate() {
                let is_new =
                    |it: &&u64| self.setup().is_shared(*document, **it) && !candidates.contains(it);
                if let Some(missed) = documents[..at].iter().find(is_new) {
                    let what = format!("document {document} does not see {missed} of its batch");
                    return Err(Stop::Wrong(what));
                }
            }
        }
        let answers = match result {
            Ok(answers) => answers,
            // A lookup that fails ends the batch: some documents are inserted.
            Err(error) => return self.allowed::<()>(Err(error)).map(drop),
        };
        for (document, candidates) in documents.iter().zip(&answers) {
            self.judge(*document, candidates)?;
        }
        self.updated(documents, Ok(()))
    }

    /// Removes a document.
    ///
    /// # Errors
    /// Fails as [`Contract::call`] does.
    pub fn remove(&mut self, document: u64) -> Result<(), Stop> {
        self.past.attempt(document, false);
        let keys = self.rows(&[document]);
        let result = self.handle().remove(document, &keys);
        self.updated(&[document], result)
    }

    fn candidates(&mut self, document: u64) -> Result<(), Stop> {
        let keys = self.rows(&[document]);
        let result = self.handle().candidates(&keys);
        match self.allowed(result)? {
            Some(candidates) => self.judge(document, &candidates),
            None => Ok(()),
        }
    }

    fn candidates_many(&mut self, documents: &[u64]) -> Result<(), Stop> {
        let keys = self.rows(documents);
        let result = self.handle().candidates_many(&keys);
        let Some(answers) = self.allowed(result)? else { return Ok(()) };
        let mut each = documents.iter().zip(&answers);
        each.try_for_each(|(document, candidates)| self.judge(*document, candidates))
    }

    /// Judges the candidates of a document: the present documents that share a bucket with it.
    fn judge(&mut self, document: u64, candidates: &[u64]) -> Result<(), Stop> {
        candidates.iter().for_each(|candidate| self.note_answer(*candidate));
        if !candidates.is_sorted_by(|one, next| one < next) {
            return Err(Stop::Wrong(format!("candidates out of order, or twice: {candidates:?}")));
        }
        for other in 0..self.past.count() {
            let is_there = candidates.binary_search(&other).is_ok();
            if self.setup().is_shared(document, other) {
                let judged = self.past.judge(other, is_there, self.trust());
                judged.map_err(|what| Stop::Wrong(format!("of {document}: {what}")))?;
            } else if is_there {
                let what = format!("{other} is a candidate of {document}, and shares no bucket");
                return Err(Stop::Wrong(what));
            }
        }
        match candidates.last() {
            Some(last) if *last >= self.past.count() => {
                Err(Stop::Wrong(format!("{last} was never inserted")))
            }
            _ => Ok(()),
        }
    }

    /// Looks a document up in each table alone: it is in all or in none. Takes the answer as its state from
    /// now on.
    fn look_at(&mut self, document: u64) -> Result<(), Stop> {
        let tables = self.setup().tables();
        let keys: Vec<_> =
            (0..tables).flat_map(|table| self.setup().keys_of_one(document, table)).collect();
        let result = self.handle().candidates_many(&keys);
        let Some(answers) = self.allowed(result)? else { return Ok(()) };
        let found: Vec<_> = answers.iter().map(|it| it.contains(&document)).collect();
        let is_there = found.contains(&true);
        self.note_answer(u64::from(is_there));
        if self.trust() < Trust::EverOrError && found.contains(&false) == is_there {
            let what =
                format!("document {document} is in some tables and not in others: {found:?}");
            return Err(Stop::Wrong(what));
        }
        let judged = self.past.judge(document, is_there, self.trust());
        judged.map_err(Stop::Wrong)?;
        if self.trust() < Trust::EverOrError {
            self.past.settle(document, is_there);
        }
        Ok(())
    }
}
