//! All pairs of near-duplicates, as found when documents came in.

use std::collections::{BTreeSet, HashMap};

use super::Index;
use super::record::{Decision, Record};
use crate::Result;

/// The number of records read at a time.
const STEP: u64 = 2048;

/// Two documents that are near-duplicates.
#[derive(Clone, PartialEq, Debug)]
pub struct Pair {
    /// The later one.
    pub id: String,
    /// The earlier one.
    pub earlier: String,
    /// The similarity or distance, in the index's [`Measure`](crate::Measure).
    pub estimate: f64,
    /// Whether the texts are equal, byte for byte.
    pub is_exact: bool,
}

/// A pair by the documents' numbers, and their nearness; `None` for equal texts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Edge {
    pub(crate) number: u64,
    pub(crate) earlier: u64,
    pub(crate) nearness: Option<u32>,
}

impl Index {
    /// Calls `take` with each pair of near-duplicates that are both in the index, in the order in which the later ones
    /// came. Of a document with very many near earlier ones, it lists the nearest [`PAIRS_MAX`](crate::PAIRS_MAX).
    ///
    /// Reads each document's record once, and each earlier one's once for some thousand documents.
    ///
    /// # Errors
    /// Those of `take`; a failed read, damage.
    pub fn pairs(&self, mut take: impl FnMut(&Pair) -> Result<()>) -> Result<()> {
        let of_equal = self.measure().of_equal();
        self.for_each_step(|records, earlier| {
            for (number, record) in records {
                for Edge { earlier: other, nearness, .. } in edges(*number, record) {
                    let Some(name) = earlier.get(&other) else { continue };
                    take(&Pair {
                        id: record.name.clone(),
                        earlier: name.clone(),
                        estimate: nearness.map_or(of_equal, |nearness| self.estimate(nearness)),
                        is_exact: nearness.is_none(),
                    })?;
                }
            }
            Ok(())
        })
    }

    /// Calls `take` with the same pairs as [`pairs`](Self::pairs), by their numbers.
    pub(crate) fn for_each_edge(&self, mut take: impl FnMut(Edge) -> Result<()>) -> Result<()> {
        self.for_each_step(|records, earlier| {
            let edges = records.iter().flat_map(|(number, record)| edges(*number, record));
            edges.filter(|edge| earlier.contains_key(&edge.earlier)).try_for_each(&mut take)
        })
    }

    /// Returns the names of these documents, in their order.
    pub(crate) fn names_of(&self, numbers: &[u64]) -> Result<Vec<Option<String>>> {
        let records = self.records_of(numbers)?.into_iter();
        Ok(records.map(|record| record.map(|record| record.name)).collect())
    }

    /// Reads all documents, some at a time, with the names of their partners.
    fn for_each_step(
        &self,
        mut take: impl FnMut(&[(u64, Record)], &HashMap<u64, String>) -> Result<()>,
    ) -> Result<()> {
        let mut first = 0;
        while first < self.state.next {
            let numbers: Vec<u64> = (first..self.state.next.min(first + STEP)).collect();
            let records = self.records_of(&numbers)?;
            let records: Vec<(u64, Record)> =
                numbers.into_iter().zip(records).filter_map(|(n, it)| Some((n, it?))).collect();
            let earlier = records.iter().flat_map(|(number, record)| edges(*number, record));
            let earlier: BTreeSet<u64> = earlier.map(|edge| edge.earlier).collect();
            let mut names = HashMap::new();
            let all: Vec<u64> = earlier.into_iter().collect();
            for some in all.chunks(2 * STEP as usize) {
                let named = some.iter().copied().zip(self.names_of(some)?);
                names.extend(named.filter_map(|(number, name)| Some((number, name?))));
            }
            take(&records, &names)?;
            first += STEP;
        }
        Ok(())
    }
}

/// Returns the pairs of a document with earlier ones. A document with the text of another is paired with that one, or
/// with the one that both are near.
fn edges(number: u64, record: &Record) -> Vec<Edge> {
    let near = |it: &super::record::Neighbor| Edge {
        number,
        earlier: it.number,
        nearness: Some(it.nearness),
    };
    match record.decision {
        Decision::Exact(earlier) => vec![Edge { number, earlier, nearness: None }],
        Decision::Near(neighbor) if record.pairs.is_empty() => vec![near(&neighbor)],
        _ => record.pairs.iter().map(near).collect(),
    }
}
