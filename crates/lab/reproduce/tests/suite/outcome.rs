//! Runs one experiment and finds numbers in its outcome.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use nandex_reproduce::{Outcome, Paper, Ran, Scale, experiments};

/// Returns the smallest scale, with seed 1.
pub(crate) fn scale() -> Scale {
    Scale::new(Scale::MOST, 1).expect("it is in range")
}

/// The runs so far, by paper and experiment.
type Runs = Mutex<HashMap<(&'static str, String), Arc<OnceLock<Ran>>>>;

/// Returns an experiment of a paper at the smallest scale. It runs once for all tests of the process.
pub(crate) fn run(paper: Paper, name: &str) -> Ran {
    static RUNS: OnceLock<Runs> = OnceLock::new();
    let key = (paper.structure(), name.to_owned());
    let runs = RUNS.get_or_init(Runs::default);
    let ran = Arc::clone(runs.lock().expect("no run holds it").entry(key).or_default());
    ran.get_or_init(|| run_now(paper, name)).clone()
}

fn run_now(paper: Paper, name: &str) -> Ran {
    let all = experiments(paper);
    let experiment = all.iter().find(|it| it.name() == name).expect("there is such an experiment");
    let ran = Ran::run(paper, &**experiment, scale()).expect("nothing stops it");
    assert!(!ran.outcome.setup.is_empty() && !ran.outcome.tables.is_empty());
    ran
}

/// Returns nandex's number in a row of a table. A prefix is enough for the table, and for the row if none has
/// that exact name.
pub(crate) fn ours(outcome: &Outcome, table: &str, row: &str) -> f64 {
    let table = outcome.tables.iter().find(|it| it.title.starts_with(table)).expect(table);
    let exact = table.rows.iter().find(|it| it.what == row);
    let row = exact.or_else(|| table.rows.iter().find(|it| it.what.starts_with(row))).expect(row);
    row.ours.expect("it was measured")
}

pub(crate) fn assert_within(what: &str, found: f64, (least, most): (f64, f64)) {
    assert!((least..=most).contains(&found), "{what}: {found} is not within {least}..={most}");
}
