//! An index of terms, as `nandex tfidf` makes it.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use anyhow::{Result, ensure};
use nandex::Volume;
use nandex_neardup::Document;
use nandex_tfidf::{Analysis, Corpus, CorpusConfig, Repeats, TermFrequency};

use crate::Workload;
use crate::documents::{self, Index, Indexed, Planted};
use crate::subject::{Row, Work};

pub(crate) const ROW: Row = Row {
    name: "tfidf",
    items: "documents",
    workload: Workload::Churn,
    create: |arguments, file| {
        let config = config(arguments.ram);
        let create = |volume: &Volume| {
            Ok(Terms { corpus: Corpus::create_in(volume, &Analysis::default(), config)? })
        };
        let asked = (arguments.documents, arguments.ram);
        Indexed::boxed((file, config.log_bytes()), create, open, asked)
    },
};

struct Terms {
    corpus: Corpus,
}

fn config(ram: Option<u64>) -> CorpusConfig {
    ram.map_or_else(CorpusConfig::default, |ram_bytes| CorpusConfig { ram_bytes })
}

fn open(volume: &Volume, ram: Option<u64>) -> Result<Terms> {
    Ok(Terms { corpus: Corpus::open_in(volume, config(ram))? })
}

impl Index for Terms {
    fn add(&mut self, documents: &[Document]) -> Result<()> {
        self.corpus.update(documents.iter().cloned().map(Ok), Repeats::Refuse)?;
        Ok(())
    }

    fn remove(&mut self, documents: &[Document]) -> Result<()> {
        self.corpus.remove(documents.iter().cloned().map(Ok))?;
        Ok(())
    }

    fn check_counts(&self, live: &[Document], _planted: &Planted) -> Result<()> {
        let documents = self.corpus.documents();
        ensure!(documents == live.len() as u64, "it has {documents} documents of {}", live.len());
        Ok(())
    }

    /// Compares the counts of all terms with those of a model, from the added and the removed documents.
    fn check(&self, documents: &documents::Corpus) -> Result<Work> {
        let model = model(&documents.live);
        let all = documents.live.iter().chain(&documents.gone);
        let terms: HashSet<String> = all.flat_map(|document| words(&document.text)).collect();
        let terms: Vec<String> = terms.into_iter().collect();
        let start = Instant::now();
        let found = self.corpus.frequencies(&terms)?;
        let seconds = start.elapsed().as_secs_f64();
        for (term, found) in terms.iter().zip(found) {
            let right = model.get(term).copied().unwrap_or_default();
            ensure!(found == right, "{term:?} is {found:?}, and should be {right:?}");
        }
        Ok(Work { items: terms.len() as u64, bytes: 0, seconds })
    }

    fn entries(&self, planted: &Planted) -> (u64, u64) {
        (self.corpus.documents(), planted.originals.len() as u64)
    }

    fn ram_bytes(&self) -> u64 {
        self.corpus.stats().ram_bytes
    }

    fn close(self) -> Result<()> {
        Ok(self.corpus.close()?)
    }
}

/// Returns the frequencies that an index of these documents must have for each term.
fn model(documents: &[Document]) -> HashMap<String, TermFrequency> {
    let mut model: HashMap<String, TermFrequency> = HashMap::new();
    for document in documents {
        let mut seen = HashSet::new();
        for word in words(&document.text) {
            let frequency = model.entry(word.clone()).or_default();
            frequency.occurrences += 1;
            frequency.documents += u64::from(seen.insert(word));
        }
    }
    model
}

/// Returns the terms of a text that has only English letters, spaces and full stops: its words of two letters
/// or more.
fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphabetic());
    words.filter(|word| word.len() >= 2).map(str::to_ascii_lowercase)
}
