//! Which terms become columns and how they are weighed: the options of scikit-learn by their names.

use std::str::FromStr;

use anyhow::Result;
use clap::ValueEnum;
use nandex_tfidf::{Corpus, DocumentLimit, Model, Norm, Selection, Weighting};

use crate::size;
use crate::texts::scratch;

use super::hints::explained;

/// Which terms are columns.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct SelectionArgs {
    /// Leave out terms in fewer documents: a count, or a share with a point, such as 0.01
    #[arg(long, value_name = "LIMIT", default_value = "1")]
    min_df: Limit,
    /// Leave out terms in more documents: a count, or a share with a point, such as 0.5
    #[arg(long, value_name = "LIMIT", default_value = "1.0")]
    max_df: Limit,
    /// Keep at most that many terms, those that occur most often
    #[arg(long, value_name = "N", value_parser = size::parse_count)]
    max_features: Option<u64>,
}

/// How counts become weights.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct WeightingArgs {
    /// Take 1 + the logarithm of a count
    #[arg(long)]
    sublinear_tf: bool,
    /// Do not weigh terms by how few documents have them
    #[arg(long)]
    no_idf: bool,
    /// Do not count one more document that has every term
    #[arg(long)]
    no_smooth_idf: bool,
    /// Take 1 for every count
    #[arg(long)]
    binary: bool,
    /// How rows are scaled
    #[arg(long, value_name = "NORM", default_value = "l2")]
    norm: NormArg,
}

/// How rows are scaled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum NormArg {
    /// The sum of a row is 1
    L1,
    /// The sum of its squares is 1
    L2,
    /// Rows stay as they are
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
            || format!("`{word}` is no limit; give a count such as 2, or a share such as 0.5");
        limit.map(Self).ok_or_else(bad)
    }
}

impl SelectionArgs {
    /// The options of the library, checked.
    ///
    /// # Errors
    /// A share that is none, a count of 0.
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

/// The index with its columns. What does not fit into RAM is in files without names.
///
/// # Errors
/// No term that is left, an index that cannot be read, no space.
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
