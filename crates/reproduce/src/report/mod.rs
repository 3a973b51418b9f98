//! The result of a run, for a browser, a terminal, or as data.

mod chart;
mod closeness;
mod compared;
mod page;
mod plain;

use serde::Serialize;

use crate::{Experiment, Outcome, Paper, Result, Scale};

pub use page::html;
pub use plain::text;

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
    /// The paper.
    pub paper: &'static str,
    /// What is scaled down.
    #[serde(skip)]
    pub scaled: &'static str,
    /// The scale and the seed.
    pub scale: Scale,
    /// The experiments.
    pub experiments: Vec<Ran>,
}

impl Ran {
    /// Runs an experiment.
    ///
    /// # Errors
    /// The experiment's error.
    pub fn run(experiment: &dyn Experiment, scale: Scale) -> Result<Self> {
        let outcome = experiment.run(scale)?;
        let (name, title) = (experiment.name(), experiment.title());
        Ok(Self { name, title, reference: experiment.reference(), outcome })
    }
}

impl Report {
    /// A report of a paper without any experiments yet.
    #[must_use]
    pub fn new(paper: Paper, scale: Scale) -> Self {
        Self { paper: paper.title(), scaled: paper.scaled(), scale, experiments: Vec::new() }
    }
}

/// A number for people: three significant digits, and no powers of ten from a millionth to a million.
fn shown(number: f64) -> String {
    let size = number.abs();
    match size {
        0.0 => "0".into(),
        _ if !(1e-6..1e6).contains(&size) => format!("{number:.2e}"),
        _ => {
            let digits = 2 - size.log10().floor() as i32;
            format!("{number:.*}", usize::try_from(digits).unwrap_or(0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn three_digits_count() {
        let texts = [0.0, 0.000_123_4, 0.9996, 1.5, 12.345, 266.4, 12_345.6, 4e7, 1e-9].map(shown);
        assert_eq!(
            texts,
            ["0", "0.000123", "1.000", "1.50", "12.3", "266", "12346", "4.00e7", "1.00e-9"]
        );
    }
}
