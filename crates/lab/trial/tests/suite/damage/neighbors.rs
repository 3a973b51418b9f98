//! Indexes of neighbours with damaged pages.

use nandex::testing::TestNeighbors;
use nandex::{AnyNeighbors, Result, Volume};
use nandex_baseline::registry;

use super::answers::Answers;
use super::subject::{NAME, Subject};

/// The number of documents at the beginning, which share buckets with their neighbours.
const DOCUMENTS: u64 = 150;

/// The first of further documents, which share no bucket.
const STRANGERS: u64 = 1000;

/// The document that is inserted last.
const LAST: u64 = 5000;

/// An index of neighbours.
pub struct DamagedNeighbors {
    made: TestNeighbors,
}

/// Returns one in `one_in` variants of each row.
pub fn all(one_in: u64) -> impl Iterator<Item = DamagedNeighbors> {
    registry::neighbors().flat_map(move |(_, row)| {
        let variants = (0..row.testing.variants).step_by(one_in as usize);
        variants.map(move |variant| DamagedNeighbors { made: (row.testing.config)(variant, 0) })
    })
}

/// Returns documents that may be candidates of each other.
fn around(document: u64) -> Vec<u64> {
    (document - 2..document + 3).collect()
}

fn streamed(index: &AnyNeighbors, rows: &[u64]) -> Result<Vec<(u64, Vec<u64>)>> {
    let mut found = Vec::new();
    let mut stream = index.stream()?;
    for (token, row) in (0..).zip(rows.chunks(index.tables() as usize)) {
        stream.push(row, token)?;
    }
    while let Some(answer) = stream.pull()? {
        found.push(answer);
    }
    found.sort_unstable();
    Ok(found)
}

impl DamagedNeighbors {
    /// Returns the bucket keys of documents.
    fn rows(&self, documents: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let tables = u64::from(self.made.tables);
        let row = move |document: u64| {
            let bucket = move |table: u64| match document {
                STRANGERS.. => document,
                _ => (document + table) / 3,
            };
            let key =
                move |table: u64| (bucket(table) << 8 | table).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (0..tables).map(key)
        };
        documents.into_iter().flat_map(row).collect()
    }
}

impl Subject for DamagedNeighbors {
    type Open = AnyNeighbors;

    fn label(&self) -> String {
        self.made.label.clone()
    }

    fn create(&self, volume: &Volume) -> Result<AnyNeighbors> {
        AnyNeighbors::create_with(volume, NAME, &self.made.config, &self.made.options)
    }

    fn open(&self, volume: &Volume) -> Result<AnyNeighbors> {
        AnyNeighbors::open(volume, NAME, &self.made.options)
    }

    fn fill(&self, index: &AnyNeighbors) {
        (0..DOCUMENTS).for_each(|it| index.insert(it, &self.rows([it])).unwrap());
        index.flush().unwrap();
    }

    fn log(&self, index: &AnyNeighbors) {
        let (added, removed) = (DOCUMENTS..DOCUMENTS + 6, (1..DOCUMENTS).step_by(31));
        added.for_each(|it| index.insert(it, &self.rows([it])).unwrap());
        removed.for_each(|it| index.remove(it, &self.rows([it])).unwrap());
    }

    fn log_last(&self, index: &AnyNeighbors) {
        index.insert(LAST, &self.rows([LAST])).unwrap();
    }

    fn ask(&self, index: &AnyNeighbors, answers: &mut Answers) {
        let stats = index.stats();
        answers.entries(stats.entries, &stats.lost_pages);
        let documents = || (0..DOCUMENTS + 10).step_by(2).chain([STRANGERS, LAST, LAST + 1]);
        for document in documents() {
            let found = index.candidates(&self.rows([document]));
            answers.ask_of("candidates", document, found);
        }
        answers.ask("candidates_many", index.candidates_many(&self.rows(documents())));
        answers.ask("stream", streamed(index, &self.rows(documents())));
    }

    fn lend(&self, _index: &AnyNeighbors, _answers: &mut Answers) {}

    fn update(&self, index: &mut AnyNeighbors, answers: &mut Answers) {
        let rows = |document| self.rows([document]);
        for document in [STRANGERS, STRANGERS + 1] {
            answers.update("insert", &[document], index.insert(document, &rows(document)));
        }
        answers.update("remove", &around(20), index.remove(20, &rows(20)));
        for document in [40, STRANGERS + 2] {
            let found = index.candidates_then_insert_many(&[document], &rows(document));
            answers.update("candidates_then_insert_many", &around(document), found);
        }
        let several: Vec<u64> = (STRANGERS + 10..STRANGERS + 20).collect();
        let inserted = index.insert_many(&several, &self.rows(several.iter().copied()));
        answers.update("insert_many", &several, inserted);
        answers.ask("sync", index.sync());
        answers.ask("flush", index.flush());
    }

    fn close(&self, index: AnyNeighbors) -> Result<()> {
        index.close()
    }
}
