//! An index in figures: the number of terms, the most frequent ones, and the fall of frequency with rank.

mod page;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use serde::Serialize;

pub use page::html;

use crate::{Corpus, Error, Result, TermFrequency};

/// The number of most frequent terms listed.
pub const TOP_TERMS_MAX: usize = 50;

/// The number of points of the curve for each power of two of the rank.
const POINTS_PER_DOUBLING: f64 = 4.0;

/// The figures of an index.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CorpusSummary {
    /// The number of its documents.
    pub documents: u64,
    /// The number of different terms of these.
    pub terms: u64,
    /// The number of occurrences of all terms in these.
    pub occurrences: u64,
    /// The number of terms that occur once.
    pub terms_once: u64,
    /// The most frequent terms, at most [`TOP_TERMS_MAX`].
    pub top: Vec<TopTerm>,
    /// Ranks of terms by their frequency, from 1 on and at growing distances, and the number of occurrences of the term
    /// of each rank.
    pub ranks: Vec<(u64, u64)>,
    /// Bytes of RAM of the index's tables.
    pub ram_bytes: u64,
    /// The number of lookups of counts since the index was opened.
    pub lookups: u64,
    /// The number of pages of 4 KiB that these read.
    pub lookup_reads: u64,
}

/// A frequent term.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TopTerm {
    /// Its text.
    pub term: String,
    /// The number of documents that have it.
    pub documents: u64,
    /// The number of its occurrences in all documents.
    pub occurrences: u64,
}

impl Corpus {
    /// Returns the figures of the index. Costs a listing of all terms, and RAM for each different count, whose number
    /// is at most about the root of twice the occurrences.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn summary(&self) -> Result<CorpusSummary> {
        let mut top = Top::default();
        let mut terms_of: BTreeMap<u64, u64> = BTreeMap::new();
        self.for_each_term(|_, text, frequency| {
            *terms_of.entry(frequency.occurrences).or_default() += 1;
            top.take(text, frequency);
            Ok(())
        })?;
        let stats = self.stats();
        Ok(CorpusSummary {
            documents: self.documents(),
            terms: terms_of.values().sum(),
            occurrences: self.occurrences(),
            terms_once: terms_of.get(&1).copied().unwrap_or(0),
            top: top.finish()?,
            ranks: ranks(&terms_of),
            ram_bytes: stats.ram_bytes,
            lookups: stats.lookups,
            lookup_reads: stats.lookup_reads,
        })
    }
}

/// The number of occurrences of a term, its text, the first by code points being the greatest among equals, and its
/// documents.
type Counted = (u64, Reverse<Vec<u8>>, u64);

/// The most frequent terms so far.
#[derive(Default)]
struct Top(BinaryHeap<Reverse<Counted>>);

impl Top {
    fn take(&mut self, text: &[u8], TermFrequency { documents, occurrences }: TermFrequency) {
        let least = self.0.peek().map_or(0, |Reverse((least, ..))| *least);
        if self.0.len() == TOP_TERMS_MAX && occurrences < least {
            return;
        }
        self.0.push(Reverse((occurrences, Reverse(text.to_vec()), documents)));
        if self.0.len() > TOP_TERMS_MAX {
            self.0.pop();
        }
    }

    /// Returns the most frequent first; among equals the first by code points.
    fn finish(self) -> Result<Vec<TopTerm>> {
        let sorted = self.0.into_sorted_vec().into_iter();
        let term = |Reverse((occurrences, Reverse(text), documents))| {
            let term = String::from_utf8(text).map_err(|error| Error::Contradiction {
                reason: format!("the text of a term is not UTF-8 ({error})"),
            })?;
            Ok(TopTerm { term, documents, occurrences })
        };
        sorted.map(term).collect()
    }
}

/// Returns the points of the curve, given the number of terms of each count.
fn ranks(terms_of: &BTreeMap<u64, u64>) -> Vec<(u64, u64)> {
    let mut points = Vec::new();
    let (mut below, mut wanted) = (0, 1);
    for (&occurrences, &terms) in terms_of.iter().rev() {
        let last = below + terms;
        while wanted <= last {
            points.push((wanted, occurrences));
            wanted =
                (wanted + 1).max((wanted as f64 * 2_f64.powf(1.0 / POINTS_PER_DOUBLING)) as u64);
        }
        below = last;
    }
    // The last term of all ends the curve.
    if let Some((occurrences, _)) = terms_of.first_key_value()
        && points.last().is_some_and(|(rank, _)| *rank < below)
    {
        points.push((below, *occurrences));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_has_the_first_and_the_last_rank_and_falls() {
        let terms_of: BTreeMap<u64, u64> = [(1, 1000), (5, 10), (90, 1)].into();
        let points = ranks(&terms_of);
        assert_eq!(points[..3], [(1, 90), (2, 5), (3, 5)]);
        assert_eq!(points.last(), Some(&(1011, 1)));
        assert!(points.is_sorted_by(|a, b| a.0 < b.0 && a.1 >= b.1));
        assert!(points.len() < 50, "{} points", points.len());
        assert_eq!(ranks(&BTreeMap::new()), []);
        assert_eq!(ranks(&[(7, 1)].into()), [(1, 7)]);
    }
}
