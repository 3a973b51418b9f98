//! Rows of documents: the terms of some thousand documents are looked up together, by as many threads as the system has
//! processors.

use nandex_corpus::parts::{Threads, in_parts};
use nandex_corpus::{Document, DocumentResult};

use super::{Column, Entry, Model};
use crate::Result;
use crate::tokenise::{KeyMap, TermKey, Tokens};

/// The most documents gathered at a time, and the number of these that justifies a thread: some hundred us of work.
const DOCUMENTS_MAX: usize = 4096;
const DOCUMENTS_MIN: usize = 32;

/// RAM of a gathered term that is new: its key twice, the map's overhead, its last place, its column.
const TERM_RAM_BYTES: usize = 136;

/// RAM of a term of a document: its number and count, and its entry.
const OCCURRING_RAM_BYTES: usize = 24;

/// A term of a document, by its number among the gathered ones, and the number of its occurrences.
type Occurring = (u32, u32);

/// The terms of some documents.
#[derive(Debug, Default)]
struct Gathered {
    numbers: KeyMap<u32>,
    keys: Vec<TermKey>,
    /// For each term, the number of the last document that has it plus one, and its place in `occurring`.
    last: Vec<(usize, usize)>,
    /// The terms of all documents.
    occurring: Vec<Occurring>,
    /// Each document's id, and the end of its terms.
    documents: Vec<(String, usize)>,
}

impl Gathered {
    fn clear(&mut self) {
        self.numbers.clear();
        self.keys.clear();
        self.last.clear();
        self.occurring.clear();
        self.documents.clear();
    }

    fn add(&mut self, term: &[u8]) {
        let next = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        let key = TermKey::of(term);
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.keys.push(key);
            self.last.push((0, 0));
        }
        let document = self.documents.len() + 1;
        let last = &mut self.last[number as usize];
        if last.0 == document {
            self.occurring[last.1].1 += 1;
        } else {
            *last = (document, self.occurring.len());
            self.occurring.push((number, 1));
        }
    }

    fn ram_bytes(&self) -> usize {
        self.keys.len() * TERM_RAM_BYTES + self.occurring.len() * OCCURRING_RAM_BYTES
    }
}

/// A term of a document, with its column.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct CountedTerm {
    pub(crate) column: u64,
    pub(crate) occurrences: u32,
    pub(crate) idf: f64,
}

/// A document's id, and its entries in the order of columns.
pub(super) type Weighed = (String, Vec<Entry>);

/// A producer of the rows of documents.
#[derive(Debug)]
pub(super) struct Rows<'m, 'c> {
    model: &'m Model<'c>,
    /// The RAM of texts, and of all threads' gathered terms.
    text_bytes: usize,
    ram_bytes: usize,
}

impl<'m, 'c> Rows<'m, 'c> {
    pub(super) fn new(model: &'m Model<'c>) -> Self {
        let ram_bytes = model.corpus.config().batch_bytes();
        Self { model, text_bytes: ram_bytes / 4, ram_bytes: ram_bytes / 4 * 3 }
    }

    /// Calls `take` with the rows of some documents after another.
    pub(super) fn run(
        &self,
        documents: impl Iterator<Item = DocumentResult>,
        mut take: impl FnMut(&[Weighed]) -> Result<()>,
    ) -> Result<()> {
        let weigher = self.model.weigher;
        self.each_group(documents, |terms| weigher.row(terms).0, |rows| take(&rows))
    }

    /// Calls `take` with the id of each document and its terms that have columns, in the order of columns.
    pub(super) fn run_counted(
        &self,
        documents: impl Iterator<Item = DocumentResult>,
        mut take: impl FnMut(String, &[CountedTerm]) -> Result<()>,
    ) -> Result<()> {
        let make = |terms: &[CountedTerm]| terms.to_vec();
        self.each_group(documents, make, |rows| {
            rows.into_iter().try_for_each(|(id, terms)| take(id, &terms))
        })
    }

    /// Calls `take` with the result of `make` for the terms of each document, some documents after another.
    fn each_group<R: Send>(
        &self,
        mut documents: impl Iterator<Item = DocumentResult>,
        make: impl Fn(&[CountedTerm]) -> R + Sync,
        mut take: impl FnMut(Vec<(String, R)>) -> Result<()>,
    ) -> Result<()> {
        let mut threads = Threads::of_system(DOCUMENTS_MIN);
        if self.model.columns.are_in_file() {
            // Each thread would read the file.
            threads.most = 1;
        }
        let ram_bytes = self.ram_bytes / threads.most;
        loop {
            let mut group = self.next_group(&mut documents)?;
            if group.is_empty() {
                return Ok(());
            }
            let parts = in_parts(&mut group, threads, |part| self.part(part, ram_bytes, &make));
            let mut rows = Vec::with_capacity(group.len());
            for part in parts {
                rows.extend(part?);
            }
            take(rows)?;
        }
    }

    /// Returns the next documents, as many as fit; none at the end.
    fn next_group(
        &self,
        documents: &mut impl Iterator<Item = DocumentResult>,
    ) -> Result<Vec<Document>> {
        let (mut group, mut bytes) = (Vec::new(), 0);
        while group.len() < DOCUMENTS_MAX && bytes < self.text_bytes {
            let Some(document) = documents.next() else { break };
            let document = document?;
            bytes += document.text.len();
            group.push(document);
        }
        Ok(group)
    }

    /// Returns the results of `make` for the terms of each of these documents, which are looked up together.
    fn part<R>(
        &self,
        documents: &mut [Document],
        ram_bytes: usize,
        make: &impl Fn(&[CountedTerm]) -> R,
    ) -> Result<Vec<(String, R)>> {
        let analyser = self.model.corpus.analyser();
        let (mut tokens, mut gathered) = (Tokens::default(), Gathered::default());
        let mut rows = Vec::with_capacity(documents.len());
        for document in documents {
            analyser.analyse(&document.text, &mut tokens);
            analyser.terms(&tokens).for_each(|term| gathered.add(term));
            let id = std::mem::take(&mut document.id);
            gathered.documents.push((id, gathered.occurring.len()));
            if gathered.ram_bytes() >= ram_bytes {
                self.count(&mut gathered, &mut rows, make)?;
            }
        }
        self.count(&mut gathered, &mut rows, make)?;
        Ok(rows)
    }

    /// Looks up the gathered terms, and clears them.
    fn count<R>(
        &self,
        gathered: &mut Gathered,
        rows: &mut Vec<(String, R)>,
        make: &impl Fn(&[CountedTerm]) -> R,
    ) -> Result<()> {
        let columns = self.model.columns.find_many(&gathered.keys)?;
        let weigher = &self.model.weigher;
        let idf = |column: &Option<Column>| column.map_or(0.0, |it| weigher.idf(it.documents));
        let idfs: Vec<f64> = columns.iter().map(idf).collect();
        let mut start = 0;
        let mut terms: Vec<CountedTerm> = Vec::new();
        for (id, end) in std::mem::take(&mut gathered.documents) {
            terms.clear();
            terms.extend(gathered.occurring[start..end].iter().filter_map(|found| {
                let (number, occurrences) = (found.0 as usize, found.1);
                let column = columns[number]?.index;
                Some(CountedTerm { column, occurrences, idf: idfs[number] })
            }));
            start = end;
            terms.sort_unstable_by_key(|term| term.column);
            rows.push((id, make(&terms)));
        }
        gathered.clear();
        Ok(())
    }
}
