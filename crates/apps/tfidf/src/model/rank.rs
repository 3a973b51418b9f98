//! The documents most similar to a query.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use nandex_corpus::DocumentResult;

use super::rows::Rows;
use super::weigh::euclidean;
use super::{Entry, Model};
use crate::{Document, Result};

/// A document with its similarity to a query.
#[derive(Clone, PartialEq, Debug)]
pub struct Ranked {
    /// The cosine of its row and that of the query: more than 0, and at most about 1.
    pub cosine: f64,
    /// Its number among the documents that were read, from 0.
    pub number: u64,
    /// Its id.
    pub id: String,
}

impl Eq for Ranked {}

/// The most similar first; among equals the first document.
impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        other.cosine.total_cmp(&self.cosine).then_with(|| self.number.cmp(&other.number))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Model<'_> {
    /// Returns the documents most similar to `query`, at most `count` and the most similar first. Documents that share
    /// no term with it are left out.
    ///
    /// This is a scan: it reads and weighs all of `documents` each time. It is exact.
    ///
    /// # Errors
    /// As [`rows`](Self::rows).
    pub fn rank(
        &self,
        query: &str,
        documents: impl IntoIterator<Item = DocumentResult>,
        count: usize,
    ) -> Result<Vec<Ranked>> {
        let query = self.row(query)?;
        let mut best: BinaryHeap<Ranked> = BinaryHeap::new();
        let mut number = 0;
        self.rows(documents, |row| {
            let cosine = cosine(&query, row.entries);
            if cosine > 0.0 {
                best.push(Ranked { cosine, number, id: row.id.to_owned() });
            }
            if best.len() > count {
                best.pop();
            }
            number += 1;
            Ok(())
        })?;
        Ok(best.into_sorted_vec())
    }

    /// Returns the row of a text.
    fn row(&self, text: &str) -> Result<Vec<Entry>> {
        let mut row = Vec::new();
        Rows::new(self).run([Ok(Document::new("", text))].into_iter(), |rows| {
            row.extend(rows.iter().flat_map(|(_, entries)| entries));
            Ok(())
        })?;
        Ok(row)
    }
}

/// Returns the cosine of two rows; 0 if one has no entries.
fn cosine(a: &[Entry], b: &[Entry]) -> f64 {
    let (mut left, mut right) = (a.iter().peekable(), b.iter().peekable());
    let mut product = 0.0;
    while let (Some(x), Some(y)) = (left.peek(), right.peek()) {
        match x.column.cmp(&y.column) {
            Ordering::Less => drop(left.next()),
            Ordering::Greater => drop(right.next()),
            Ordering::Equal => {
                product += x.value * y.value;
                left.next();
                right.next();
            }
        }
    }
    let lengths = euclidean(a) * euclidean(b);
    if lengths == 0.0 { 0.0 } else { product / lengths }
}
