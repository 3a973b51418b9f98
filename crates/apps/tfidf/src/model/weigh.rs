//! The numbers of scikit-learn's `TfidfTransformer`, in 64-bit floating point.

use crate::{Norm, Weighting};

use super::{CountedTerm, Entry};

/// The weighting of terms of a fitted index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weigher {
    pub(crate) weighting: Weighting,
    /// The number of documents of the index.
    pub(crate) documents: u64,
}

impl Weigher {
    /// Returns the inverse document frequency of a term in `documents` documents of the index; 1 if it is not used.
    pub(crate) fn idf(&self, documents: u64) -> f64 {
        self.weighting.idf(documents, self.documents)
    }

    /// Returns the weight of a term that occurs `occurrences` times in a document, before rows are scaled.
    pub(crate) fn weight(&self, occurrences: u32, idf: f64) -> f64 {
        let count = if self.weighting.binary { 1.0 } else { f64::from(occurrences) };
        let tf = if self.weighting.sublinear_tf { count.ln() + 1.0 } else { count };
        tf * idf
    }

    /// Returns the row of a document, and the number by which its weights were divided.
    pub(crate) fn row(&self, terms: &[CountedTerm]) -> (Vec<Entry>, f64) {
        let entry = |term: &CountedTerm| {
            let value = self.weight(term.occurrences, term.idf);
            Entry { column: term.column, value }
        };
        let mut row: Vec<Entry> = terms.iter().map(entry).collect();
        let length = self.scale(&mut row);
        (row, length)
    }

    /// Scales a row, and returns the number by which it was divided. A row of zeros stays unchanged.
    pub(crate) fn scale(&self, row: &mut [Entry]) -> f64 {
        let length = match self.weighting.norm {
            Norm::L1 => row.iter().map(|entry| entry.value.abs()).sum(),
            Norm::L2 => euclidean(row),
            Norm::None => return 1.0,
        };
        if length == 0.0 {
            return 1.0;
        }
        row.iter_mut().for_each(|entry| entry.value /= length);
        length
    }
}

/// Returns the root of the sum of squares.
pub(crate) fn euclidean(row: &[Entry]) -> f64 {
    row.iter().map(|entry| entry.value * entry.value).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weigher(weighting: Weighting) -> Weigher {
        Weigher { weighting, documents: 7 }
    }

    #[test]
    fn idf_is_the_logarithm_of_the_share_plus_one() {
        let smooth = weigher(Weighting::default());
        assert_eq!(smooth.idf(7), 1.0);
        assert_eq!(smooth.idf(1), 4.0_f64.ln() + 1.0);
        let plain = weigher(Weighting { smooth_idf: false, ..Weighting::default() });
        assert_eq!(plain.idf(1), 7.0_f64.ln() + 1.0);
        assert_eq!(weigher(Weighting { use_idf: false, ..Weighting::default() }).idf(1), 1.0);
    }

    #[test]
    fn counts_are_taken_as_they_are_or_as_logarithms_or_as_ones() {
        assert_eq!(weigher(Weighting::default()).weight(3, 2.0), 6.0);
        let sublinear = Weighting { sublinear_tf: true, ..Weighting::default() };
        assert_eq!(weigher(sublinear).weight(1, 2.0), 2.0);
        assert_eq!(weigher(sublinear).weight(3, 1.0), 3.0_f64.ln() + 1.0);
        let binary = Weighting { binary: true, ..sublinear };
        assert_eq!(weigher(binary).weight(3, 2.0), 2.0);
    }

    #[test]
    fn rows_are_scaled_by_their_length_and_rows_of_zeros_are_not() {
        let row = [3.0, 4.0].map(|value| Entry { column: 0, value });
        let scaled = |norm, mut row: Vec<Entry>| {
            weigher(Weighting { norm, ..Weighting::default() }).scale(&mut row);
            row.iter().map(|entry| entry.value).collect::<Vec<_>>()
        };
        assert_eq!(scaled(Norm::L2, row.to_vec()), [0.6, 0.8]);
        assert_eq!(scaled(Norm::L1, row.to_vec()), [3.0 / 7.0, 4.0 / 7.0]);
        assert_eq!(scaled(Norm::None, row.to_vec()), [3.0, 4.0]);
        assert_eq!(scaled(Norm::L2, vec![Entry { column: 0, value: 0.0 }]), [0.0]);
        assert_eq!(scaled(Norm::L1, vec![]), [0.0; 0]);
    }
}
