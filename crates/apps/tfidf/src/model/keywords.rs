//! The words that characterise each document most.

use std::collections::HashMap;

use nandex_corpus::DocumentResult;

use super::rows::Rows;
use super::{Entry, Model};
use crate::{Error, Result};

/// A term of a document, with its weight there.
#[derive(Clone, PartialEq, Debug)]
pub struct Keyword {
    /// The term.
    pub term: String,
    /// The number in the document's row.
    pub value: f64,
}

impl Model<'_> {
    /// Finds the terms of the highest weights of each document, at most `count` and the highest first; equal weights
    /// are in the order of code points. `take` gets each document's id and its keywords.
    ///
    /// Costs as much as [`rows`](Self::rows), and the reads of the keywords' texts.
    ///
    /// # Errors
    /// As `rows`.
    pub fn keywords(
        &self,
        documents: impl IntoIterator<Item = DocumentResult>,
        count: usize,
        mut take: impl FnMut(&str, &[Keyword]) -> Result<()>,
    ) -> Result<()> {
        Rows::new(self).run(documents.into_iter(), |rows| {
            let best: Vec<Vec<Entry>> = rows.iter().map(|(_, row)| best(row, count)).collect();
            let texts = self.texts(&best)?;
            for ((id, _), best) in rows.iter().zip(best) {
                let keywords = best.iter().map(|entry| keyword(&texts, entry));
                take(id, &keywords.collect::<Result<Vec<_>>>()?)?;
            }
            Ok(())
        })
    }

    /// Returns the texts of all these columns.
    fn texts(&self, best: &[Vec<Entry>]) -> Result<HashMap<u64, String>> {
        let mut wanted: Vec<u64> = best.iter().flatten().map(|entry| entry.column).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let texts = self.vocabulary.texts(&wanted, self.weigher)?;
        Ok(wanted.into_iter().zip(texts).collect())
    }
}

/// Returns the entries of the highest values.
fn best(row: &[Entry], count: usize) -> Vec<Entry> {
    let mut best = row.to_vec();
    // Columns are in the order of code points.
    best.sort_unstable_by(|a, b| b.value.total_cmp(&a.value).then(a.column.cmp(&b.column)));
    best.truncate(count);
    best
}

fn keyword(texts: &HashMap<u64, String>, entry: &Entry) -> Result<Keyword> {
    let term = texts.get(&entry.column).cloned().ok_or_else(|| Error::Contradiction {
        reason: format!("column {} has no text", entry.column),
    })?;
    Ok(Keyword { term, value: entry.value })
}
