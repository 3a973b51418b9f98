//! Rows of documents: the terms of some thousand documents are looked up together.

use nandex_corpus::DocumentResult;

use super::{Column, Entry, Model};
use crate::Result;
use crate::tokenise::{KeyMap, TermKey, Tokens};

/// Documents that are gathered at a time, at most.
const DOCUMENTS_MAX: usize = 4096;

/// RAM of a gathered term that others do not have: its key twice, the map's overhead, its last place, its column.
const TERM_RAM_BYTES: usize = 136;

/// RAM of a term of a document: its number and count, and its entry.
const OCCURRING_RAM_BYTES: usize = 24;

/// A term of a document, by its number among those gathered, and how often it occurs.
type Occurring = (u32, u32);

/// The terms of some documents.
#[derive(Debug, Default)]
struct Gathered {
    numbers: KeyMap<u32>,
    keys: Vec<TermKey>,
    /// Of each term, the number of the last document that has it plus one, and its place in `occurring`.
    last: Vec<(usize, usize)>,
    /// The terms of all documents.
    occurring: Vec<Occurring>,
    /// Each document's id, and where its terms end.
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

/// Makes the rows of documents.
#[derive(Debug)]
pub(super) struct Rows<'m, 'c> {
    model: &'m Model<'c>,
    gathered: Gathered,
    ram_bytes: usize,
}

impl<'m, 'c> Rows<'m, 'c> {
    pub(super) fn new(model: &'m Model<'c>) -> Self {
        let ram_bytes = model.corpus.config().batch_bytes();
        Self { model, gathered: Gathered::default(), ram_bytes }
    }

    /// Calls `take` with the rows of some documents after another.
    pub(super) fn run(
        &mut self,
        documents: impl Iterator<Item = DocumentResult>,
        mut take: impl FnMut(&[Weighed]) -> Result<()>,
    ) -> Result<()> {
        self.gather(documents, |rows| rows.weigh(&mut take))
    }

    /// Calls `take` with the id of each document and its terms that have columns, in the order of columns.
    pub(super) fn run_counted(
        &mut self,
        documents: impl Iterator<Item = DocumentResult>,
        mut take: impl FnMut(String, &[CountedTerm]) -> Result<()>,
    ) -> Result<()> {
        self.gather(documents, |rows| rows.count(&mut take))
    }

    /// Gathers documents, and calls `end` when they are many and when all were read. It forgets them.
    fn gather(
        &mut self,
        documents: impl Iterator<Item = DocumentResult>,
        mut end: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let analyser = self.model.corpus.analyser();
        let mut tokens = Tokens::default();
        for document in documents {
            let document = document?;
            analyser.analyse(&document.text, &mut tokens);
            analyser.terms(&tokens).for_each(|term| self.gathered.add(term));
            self.gathered.documents.push((document.id, self.gathered.occurring.len()));
            let is_full = self.gathered.documents.len() >= DOCUMENTS_MAX;
            if is_full || self.gathered.ram_bytes() >= self.ram_bytes {
                end(self)?;
            }
        }
        end(self)
    }

    /// Weighs the documents at hand and forgets them.
    fn weigh(&mut self, take: &mut impl FnMut(&[Weighed]) -> Result<()>) -> Result<()> {
        let weigher = self.model.weigher;
        let mut rows = Vec::new();
        self.count(&mut |id, terms| {
            rows.push((id, weigher.row(terms).0));
            Ok(())
        })?;
        take(&rows)
    }

    /// Looks up the terms of the documents at hand, and forgets these.
    fn count(&mut self, take: &mut impl FnMut(String, &[CountedTerm]) -> Result<()>) -> Result<()> {
        let columns = self.model.columns.find_many(&self.gathered.keys)?;
        let weigher = &self.model.weigher;
        let idf = |column: &Option<Column>| column.map_or(0.0, |it| weigher.idf(it.documents));
        let idfs: Vec<f64> = columns.iter().map(idf).collect();
        let mut start = 0;
        let mut terms: Vec<CountedTerm> = Vec::new();
        for (id, end) in std::mem::take(&mut self.gathered.documents) {
            terms.clear();
            terms.extend(self.gathered.occurring[start..end].iter().filter_map(|found| {
                let (number, occurrences) = (found.0 as usize, found.1);
                let column = columns[number]?.index;
                Some(CountedTerm { column, occurrences, idf: idfs[number] })
            }));
            start = end;
            terms.sort_unstable_by_key(|term| term.column);
            take(id, &terms)?;
        }
        self.gathered.clear();
        Ok(())
    }
}
