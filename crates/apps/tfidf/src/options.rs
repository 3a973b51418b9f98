//! The analysis of text into terms, the selection of terms, and their weighting: the options of scikit-learn's
//! `TfidfVectorizer`, with its names and defaults.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The most tokens in an n-gram.
pub const NGRAM_MAX: usize = 32;

/// The division of text into terms. An index has one analysis, which cannot change.
///
/// A token is two or more characters of words in a row, as with scikit-learn's pattern `(?u)\b\w\w+\b`. See
/// [`tokenise`](crate::tokenise) for the meaning of that for each character.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Analysis {
    /// Text is converted to lower case first, as by Python's `str.lower`. On by default.
    pub lowercase: bool,
    /// The number of tokens of the shortest n-gram, 1 or more.
    pub ngram_min: usize,
    /// The number of tokens of the longest n-gram, at least `ngram_min` and at most [`NGRAM_MAX`].
    pub ngram_max: usize,
    /// Tokens that are skipped, before n-grams are formed. None by default.
    pub stop_words: StopWords,
}

/// Tokens that are skipped.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopWords {
    /// None: every token counts.
    #[default]
    None,
    /// The 318 English words that scikit-learn calls `english`.
    English,
    /// These, compared with tokens in their lower-case form.
    List(BTreeSet<String>),
}

impl Default for Analysis {
    /// Lower case, single tokens, no stop words.
    fn default() -> Self {
        Self { lowercase: true, ngram_min: 1, ngram_max: 1, stop_words: StopWords::None }
    }
}

impl Analysis {
    /// Returns the same with n-grams of `min` to `max` tokens.
    #[must_use]
    pub fn ngrams(self, min: usize, max: usize) -> Self {
        Self { ngram_min: min, ngram_max: max, ..self }
    }

    /// Checks the values.
    ///
    /// # Errors
    /// [`Error::Options`] for a range of n-grams that is empty, begins at 0 or passes [`NGRAM_MAX`].
    pub fn validate(&self) -> Result<()> {
        let (min, max) = (self.ngram_min, self.ngram_max);
        if min == 0 || min > max || max > NGRAM_MAX {
            let reason = format!(
                "{min} to {max} tokens; give a first number of 1 or more, and a second that is not less and at most \
                 {NGRAM_MAX}"
            );
            return Err(Error::option("ngrams", reason));
        }
        Ok(())
    }
}

/// A limit of the number of documents that have a term.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DocumentLimit {
    /// A number of documents.
    Count(u64),
    /// This share of all documents, 0 to 1.
    Share(f64),
}

impl DocumentLimit {
    /// Returns the limit in a collection of `all` documents; it need not be whole.
    #[must_use]
    pub fn documents(self, all: u64) -> f64 {
        match self {
            Self::Count(count) => count as f64,
            Self::Share(share) => share * all as f64,
        }
    }

    fn validate(self, field: &'static str) -> Result<()> {
        let fits = match self {
            Self::Count(count) => count >= 1,
            Self::Share(share) => (0.0..=1.0).contains(&share),
        };
        if fits {
            return Ok(());
        }
        let found = match self {
            Self::Count(count) => format!("{count} documents"),
            Self::Share(share) => format!("a share of {share}"),
        };
        let reason = format!("{found}; give a count of 1 or more, or a share from 0 to 1");
        Err(Error::option(field, reason))
    }
}

/// The selection of the terms of an index that become columns.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// A term in fewer documents is omitted. A count of 1 by default, which keeps all.
    pub min_df: DocumentLimit,
    /// A term in more documents is omitted. A share of 1 by default, which keeps all.
    pub max_df: DocumentLimit,
    /// The most terms; those with the most occurrences in all documents are kept. Of equally frequent terms the first
    /// by code points is kept; scikit-learn's choice among these depends on numpy's sort. `None`, for no limit, by
    /// default.
    pub max_features: Option<u64>,
}

impl Default for Selection {
    /// All terms.
    fn default() -> Self {
        let (min_df, max_df) = (DocumentLimit::Count(1), DocumentLimit::Share(1.0));
        Self { min_df, max_df, max_features: None }
    }
}

impl Selection {
    /// Checks the values that are invalid for any index.
    ///
    /// # Errors
    /// [`Error::Options`], naming the field.
    pub fn validate(&self) -> Result<()> {
        self.min_df.validate("min_df")?;
        self.max_df.validate("max_df")?;
        if self.max_features == Some(0) {
            return Err(Error::option("max_features", "0 terms; give 1 or more, or no limit"));
        }
        Ok(())
    }

    /// Returns the least and the most documents of a kept term, in an index of `all` documents.
    ///
    /// # Errors
    /// [`Error::Options`] if the least is more than the most.
    pub fn limits(&self, all: u64) -> Result<(f64, f64)> {
        let (least, most) = (self.min_df.documents(all), self.max_df.documents(all));
        if most < least {
            let reason = format!(
                "of {all} documents it allows {most}, and min_df asks for {least}; lower min_df or raise max_df"
            );
            return Err(Error::option("max_df", reason));
        }
        Ok((least, most))
    }
}

/// The scaling of the rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// The sum of absolute values becomes 1.
    L1,
    /// The sum of squares becomes 1, so that a product of two rows is their cosine.
    #[default]
    L2,
    /// Rows are not scaled.
    None,
}

/// The computation of a term's weight from its count in a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weighting {
    /// Counts are multiplied by the term's inverse document frequency. On by default.
    pub use_idf: bool,
    /// Document frequencies are as if one more document had every term. On by default.
    pub smooth_idf: bool,
    /// A count becomes 1 + its natural logarithm. Off by default.
    pub sublinear_tf: bool,
    /// Every count becomes 1. Off by default. With it, `max_features` uses document frequency.
    pub binary: bool,
    /// The scaling of rows; [`Norm::L2`] by default.
    pub norm: Norm,
}

impl Weighting {
    /// Returns the inverse document frequency of a term in `documents` of `all` documents; 1 if it is not used. It is
    /// infinite for a term in no document, unless it is smooth.
    #[must_use]
    pub fn idf(&self, documents: u64, all: u64) -> f64 {
        if !self.use_idf {
            return 1.0;
        }
        let smooth = u64::from(self.smooth_idf);
        ((all + smooth) as f64 / (documents + smooth) as f64).ln() + 1.0
    }
}

impl Default for Weighting {
    fn default() -> Self {
        let (use_idf, smooth_idf) = (true, true);
        Self { use_idf, smooth_idf, sublinear_tf: false, binary: false, norm: Norm::L2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_out_of_range_are_refused_by_name_with_what_would_do() {
        let text = |result: Result<()>| result.unwrap_err().to_string();
        for (min, max) in [(0, 1), (2, 1), (1, NGRAM_MAX + 1)] {
            let found = text(Analysis::default().ngrams(min, max).validate());
            assert!(found.starts_with("ngrams: ") && found.contains("give a first"), "{found}");
        }
        let min_df = DocumentLimit::Count(0);
        let found = text(Selection { min_df, ..Selection::default() }.validate());
        assert!(found.starts_with("min_df: 0 documents; give"), "{found}");
        for share in [-0.1, 1.1, f64::NAN] {
            let max_df = DocumentLimit::Share(share);
            let found = text(Selection { max_df, ..Selection::default() }.validate());
            assert!(found.starts_with("max_df: a share of"), "{found}");
        }
        let selection = Selection { max_features: Some(0), ..Selection::default() };
        assert!(text(selection.validate()).starts_with("max_features: 0 terms"));
    }

    #[test]
    fn shares_need_not_be_whole_documents_and_must_leave_something() {
        let (min_df, max_df) = (DocumentLimit::Share(0.3), DocumentLimit::Count(2));
        let selection = Selection { min_df, max_df, max_features: None };
        assert_eq!(selection.limits(5).unwrap(), (1.5, 2.0));
        let found = selection.limits(10).unwrap_err().to_string();
        assert!(found.starts_with("max_df: of 10 documents it allows 2, and min_df asks for 3"));
    }
}
