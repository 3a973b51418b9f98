//! The result of a run, for a browser, a terminal, or as data.

mod closeness;
mod compared;
mod page;
mod plain;
mod section;
mod site;

use serde::Serialize;

use crate::{Experiment, Outcome, Paper, Result, Scale, claims};

pub use page::html;
pub use plain::text;
pub use section::{Bounds, Counted, Part};
pub use site::{Page, constants_page, pages};

/// An experiment and its outcome.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Ran {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Its place in the paper.
    pub reference: &'static str,
    /// Its outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Experiments of one paper at one scale.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The paper's title.
    pub paper: &'static str,
    /// The paper.
    #[serde(skip)]
    pub of: Paper,
    /// The scale and the seed.
    pub scale: Scale,
    /// The experiments.
    pub experiments: Vec<Ran>,
}

impl Ran {
    /// Runs an experiment of a paper. Its outcome says first which of the paper's claims do not come out.
    ///
    /// # Errors
    /// Returns the experiment's error.
    pub fn run(paper: Paper, experiment: &dyn Experiment, scale: Scale) -> Result<Self> {
        let outcome = experiment.run(scale)?;
        let (name, title) = (experiment.name(), experiment.title());
        let mut ran = Self { name, title, reference: experiment.reference(), outcome };
        claims::mark(paper, &mut ran);
        Ok(ran)
    }
}

impl Report {
    /// Creates a report of a paper without any experiments yet.
    #[must_use]
    pub fn new(paper: Paper, scale: Scale) -> Self {
        Self { paper: paper.title(), of: paper, scale, experiments: Vec::new() }
    }
}
