//! The selection of terms for columns and their weights: the options of scikit-learn by their names.

use std::str::FromStr;

use anyhow::Result;
use clap::ValueEnum;
use nandex_tfidf::{Corpus, DocumentLimit, Model, Norm, Selection, Weighting};

use crate::size;
use crate::texts::scratch;

use super::hints::explained;

/// The terms that become columns.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct SelectionArgs {
    /// Leave out terms in fewer documents: a count, or a share with a point, such as 0.01
    #[arg(long, value_name = "LIMIT", default_value = "1")]
    min_df: Limit,
    /// Leave out terms in more documents: a count, or a share with a point, such as 0.5
    #[arg(long, value_name = "LIMIT", default_value = "1.0")]
    max_df: Limit,
    /// Keep at most this many terms, the most frequent ones
    #[arg(long, value_name = "N", value_parser = size::parse_some)]
    max_features: Option<u64>,
}

/// The conversion of counts to weights.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct WeightingArgs {
    /// Use 1 + the logarithm of a count
    #[arg(long)]
    sublinear_tf: bool,
    /// Weigh terms regardless of the rarity of their documents
    #[arg(long)]
    no_idf: bool,
    /// Count only real documents, without one more that has every term
    #[arg(long)]
    no_smooth_idf: bool,
    /// Use 1 for every count
    #[arg(long)]
    binary: bool,
    /// Scaling of rows
    #[arg(long, value_name = "NORM", default_value = "l2")]
    norm: NormArg,
}

/// The scaling of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum NormArg {
    /// The sum of a row is 1
    L1,
    /// The sum of its squares is 1
    L2,
    /// Rows are not scaled
    None,
}

/// A limit of documents: a count without a point, a share with one.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Limit(DocumentLimit);

impl FromStr for Limit {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let share = word.contains('.').then(|| word.parse().map(DocumentLimit::Share));
        let limit = match share {
            Some(share) => share.ok(),
            None => size::parse_count(word).map(DocumentLimit::Count).ok(),
        };
        let bad =
            || format!("`{word}` is not a limit; give a count such as 2, or a share such as 0.5");
        limit.map(Self).ok_or_else(bad)
    }
}

impl SelectionArgs {
    /// Returns the options of the library, checked.
    ///
    /// # Errors
    /// An invalid share, a count of 0.
    pub fn selection(&self) -> Result<Selection> {
        let selection = Selection {
            min_df: self.min_df.0,
            max_df: self.max_df.0,
            max_features: self.max_features,
        };
        selection.validate().map_err(explained)?;
        Ok(selection)
    }
}

impl From<WeightingArgs> for Weighting {
    fn from(args: WeightingArgs) -> Self {
        Self {
            use_idf: !args.no_idf,
            smooth_idf: !args.no_smooth_idf,
            sublinear_tf: args.sublinear_tf,
            binary: args.binary,
            norm: match args.norm {
                NormArg::L1 => Norm::L1,
                NormArg::L2 => Norm::L2,
                NormArg::None => Norm::None,
            },
        }
    }
}

/// Returns the index with its columns. Data that does not fit into RAM is in files without names.
///
/// # Errors
/// No remaining term, an index that cannot be read, no space.
pub fn fit(corpus: &Corpus, selection: Selection, weighting: WeightingArgs) -> Result<Model<'_>> {
    Model::fit(corpus, &selection, weighting.into(), Some(&scratch())).map_err(explained)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_with_a_point_is_a_share_and_one_without_a_count() {
        let limit = |word: &str| word.parse::<Limit>().map(|it| it.0);
        assert_eq!(limit("2"), Ok(DocumentLimit::Count(2)));
        assert_eq!(limit("1.0"), Ok(DocumentLimit::Share(1.0)));
        assert_eq!(limit("0.25"), Ok(DocumentLimit::Share(0.25)));
        for word in ["", "half", "0.x", "-1"] {
            assert!(limit(word).unwrap_err().contains("a share such as 0.5"), "{word}");
        }
    }
}
