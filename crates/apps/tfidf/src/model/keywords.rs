//! The words that say most about each document.

use std::collections::HashMap;

use super::rows::{Found, Rows};
use super::{Entry, Model};
use crate::tokenise::TermKey;
use crate::{Document, Error, Result};

/// A term of a document, with its weight there.
#[derive(Clone, PartialEq, Debug)]
pub struct Keyword {
    /// The term.
    pub term: String,
    /// The number in the document's row.
    pub value: f64,
}

impl Model<'_> {
    /// The terms of the highest weights of each document, at most `count` and the highest first; of equal weights the
    /// first by code points. `take` gets each document's id and its keywords.
    ///
    /// Costs what [`rows`](Self::rows) costs, and the reads of the keywords' texts.
    ///
    /// # Errors
    /// As `rows`.
    pub fn keywords(
        &self,
        documents: impl IntoIterator<Item = Result<Document>>,
        count: usize,
        mut take: impl FnMut(&str, &[Keyword]) -> Result<()>,
    ) -> Result<()> {
        Rows::new(self).run(documents.into_iter(), |found, rows| {
            let best: Vec<Vec<Entry>> = rows.iter().map(|(_, row)| best(row, count)).collect();
            let texts = self.texts(found, &best)?;
            for ((id, _), best) in rows.iter().zip(best) {
                let keywords = best.iter().map(|entry| keyword(&texts, entry));
                take(id, &keywords.collect::<Result<Vec<_>>>()?)?;
            }
            Ok(())
        })
    }

    /// The texts of all these columns.
    fn texts(&self, found: &Found<'_>, best: &[Vec<Entry>]) -> Result<HashMap<u64, String>> {
        let keys = found.keys();
        let mut wanted: Vec<u64> = best.iter().flatten().map(|entry| entry.column).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let wanted: Vec<(u64, TermKey)> =
            wanted.into_iter().filter_map(|column| Some((column, *keys.get(&column)?))).collect();
        let keys: Vec<TermKey> = wanted.iter().map(|(_, key)| *key).collect();
        let texts = self.corpus.texts_of(&keys)?;
        let text = |text: Vec<u8>| {
            String::from_utf8(text).map_err(|error| Error::Contradiction {
                reason: format!("the text of a term is no UTF-8 ({error})"),
            })
        };
        let pairs = wanted.into_iter().zip(texts);
        pairs.map(|((column, _), bytes)| Ok((column, text(bytes)?))).collect()
    }
}

/// The entries of the highest values.
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
