//! The surviving conclusions of a paper: with every chosen constant halved and doubled, and on a drive of
//! today.
//!
//! A fitted constant makes one printed number come out, and an assumed one is a judgement; neither says
//! anything about the relation of two structures.
//! So each conclusion is run again with every constant that its experiment uses halved, and doubled, one at a
//! time. Then it is run on another SSD.

mod claim;
mod list;

use std::collections::BTreeSet;

use crate::vary::{By, Variation, during};
use crate::{Error, Experiment, Origin, Outcome, Paper, Result, Row, Scale, Table, experiments};
use claim::{Claim, On};

pub use list::claims;

/// The name of these experiments.
pub const NAME: &str = "conclusions";

/// The SSD of today.
pub const TODAY: &str = "modern-nvme";

/// The conclusions of a paper, as an experiment.
pub struct Conclusions(pub Paper);

/// A conclusion and its numbers.
struct Tried {
    claim: Claim,
    /// The number with all constants as they are.
    plain: f64,
    origin: Origin,
    /// The number that breaks the bound first, and the change that made it.
    worst: f64,
    worst_by: String,
    /// The number of changes, and of those under which it does not hold.
    changes: usize,
    broken_by: Vec<String>,
    /// The number on the SSD of today, if an SSD decides.
    today: Option<f64>,
}

impl Experiment for Conclusions {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Which conclusions survive"
    }

    fn reference(&self) -> &'static str {
        "the paper's own words, section by section"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let small = Scale::new(Scale::MOST, scale.seed())?;
        let mut names: Vec<&str> = Vec::new();
        for claim in claims(self.0) {
            if !names.contains(&claim.experiment) {
                names.push(claim.experiment);
            }
        }
        let mut tried = Vec::new();
        for name in names {
            tried.extend(try_all(self.0, name, small)?);
        }
        Ok(Outcome {
            setup: setup(&tried),
            tables: vec![as_fitted(&tried), varied(&tried), today(&tried)],
            charts: Vec::new(),
        })
    }
}

/// Tries all conclusions that rows of one experiment decide.
fn try_all(paper: Paper, name: &str, scale: Scale) -> Result<Vec<Tried>> {
    let all = experiments(paper);
    let missing = || Error::Conclusion { experiment: name.into(), says: "no experiment".into() };
    let experiment = all.iter().find(|it| it.name() == name).ok_or_else(missing)?;
    let run = |change| {
        let (outcome, used) = during(change, || experiment.run(scale));
        Ok::<_, Error>((outcome?, used))
    };
    let (plain, used) = run(Variation::Nothing)?;
    let mut tried = Vec::new();
    for claim in claims(paper).iter().filter(|claim| claim.experiment == name) {
        let (number, origin) = number(claim, &plain)?;
        tried.push(Tried {
            claim: *claim,
            plain: number,
            origin,
            worst: number,
            worst_by: String::new(),
            changes: 0,
            broken_by: Vec::new(),
            today: None,
        });
    }
    vary_all(&mut tried, &used, |change| Ok(run(change)?.0))?;
    if tried.iter().any(|it| it.claim.on == On::Drive) {
        let (outcome, _) = run(Variation::Drive(TODAY))?;
        for it in tried.iter_mut().filter(|it| it.claim.on == On::Drive) {
            it.today = Some(number(&it.claim, &outcome)?.0);
        }
    }
    Ok(tried)
}

/// Runs the experiment with each constant that it uses halved and doubled.
fn vary_all(
    tried: &mut [Tried],
    used: &BTreeSet<&'static str>,
    run: impl Fn(Variation) -> Result<Outcome>,
) -> Result<()> {
    for name in used {
        for by in By::BOTH {
            let outcome = run(Variation::Constant(name, by))?;
            for it in tried.iter_mut() {
                it.note(number(&it.claim, &outcome)?.0, format!("{name} {}", by.word()));
            }
        }
    }
    Ok(())
}

impl Tried {
    fn note(&mut self, number: f64, change: String) {
        self.changes += 1;
        if !self.claim.bound.holds(number) {
            self.broken_by.push(change.clone());
        }
        let worse = self.claim.bound.worse(self.worst, number);
        if worse != self.worst {
            (self.worst, self.worst_by) = (worse, change);
        }
    }

    fn holds(&self) -> bool {
        self.claim.bound.holds(self.plain)
    }

    fn survives(&self) -> bool {
        self.holds() && self.broken_by.is_empty()
    }

    fn row(&self, number: f64) -> Row {
        self.claim.bound.on(Row::of(self.origin, self.claim.says, "", number))
    }
}

fn number(claim: &Claim, outcome: &Outcome) -> Result<(f64, Origin)> {
    claim.number.of(outcome).ok_or_else(|| Error::Conclusion {
        experiment: claim.experiment.into(),
        says: claim.says.into(),
    })
}

fn setup(tried: &[Tried]) -> Vec<String> {
    let count = |is: fn(&Tried) -> bool| tried.iter().filter(|it| is(it)).count();
    let on_drives = count(|it| it.today.is_some());
    let today = count(|it| it.today.is_some_and(|number| it.claim.bound.holds(number)));
    vec![
        format!(
            "Of {} conclusions {} hold here, and {} of them whatever constant is halved or doubled. Of {on_drives} \
             that an SSD decides {today} hold on {TODAY}.",
            tried.len(),
            count(Tried::holds),
            count(Tried::survives),
        ),
        format!(
            "Every experiment runs again at scale {} with each of the fitted and assumed constants that it asks for halved, and doubled, \
             one at a time. Where the paper gives a multiple and not a bound, the \
             conclusion counts as kept from a \
             round number below it on, which is written with it.",
            Scale::MOST
        ),
        format!(
            "On the preset {TODAY} every SSD is replaced by it; disks, raw chips and the processor's times stay. A \
             conclusion that no SSD decides is left out there."
        ),
    ]
}

fn as_fitted(tried: &[Tried]) -> Table {
    let row = |it: &Tried| {
        it.row(it.plain).why(if it.holds() { "Holds." } else { "Does not hold here." })
    };
    Table { title: "As fitted".into(), rows: tried.iter().map(row).collect() }
}

fn varied(tried: &[Tried]) -> Table {
    let row = |it: &Tried| {
        let changes = it.changes;
        let why = match (it.holds(), it.broken_by.len()) {
            _ if changes == 0 => "No chosen constant decides it. ".into(),
            (true, 0) => format!("Survives all {changes} changes. "),
            (true, count) => {
                format!("Falls under {count} of {changes} changes: {}. ", it.broken_by.join(", "))
            }
            (false, count) if count == changes => {
                format!("Holds under none of {changes} changes. ")
            }
            (false, count) => format!("Holds under {} of {changes} changes. ", changes - count),
        };
        let by = match it.worst_by.as_str() {
            "" => String::new(),
            by => format!("This number is with {by}."),
        };
        it.row(it.worst).why(format!("{why}{by}").trim_end())
    };
    let title = "The worst number with a constant halved or doubled".into();
    Table { title, rows: tried.iter().map(row).collect() }
}

fn today(tried: &[Tried]) -> Table {
    let row = |it: &Tried| {
        let number = it.today?;
        let holds = it.claim.bound.holds(number);
        let row = it.row(number);
        Some(row.why(match (it.holds(), holds) {
            (_, true) => "Holds.",
            (true, false) => "Does not hold any more.",
            (false, false) => "Does not hold, nor does it on the paper's drive here.",
        }))
    };
    Table { title: format!("On {TODAY}"), rows: tried.iter().filter_map(row).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fits;

    #[test]
    fn every_claim_names_an_experiment_of_its_paper() {
        for paper in Paper::ALL {
            let names: Vec<_> = experiments(paper).iter().map(|it| it.name()).collect();
            assert!(!claims(paper).is_empty(), "{paper:?}");
            for claim in claims(paper) {
                assert!(names.contains(&claim.experiment), "{paper:?}: {}", claim.says);
                assert_ne!(claim.experiment, "conclusions");
            }
        }
    }

    /// Runs the experiments of a paper's conclusions, and returns the constants that they use.
    fn used(paper: Paper) -> BTreeSet<&'static str> {
        let scale = Scale::new(Scale::MOST, 1).unwrap();
        let all = experiments(paper);
        let names: BTreeSet<_> = claims(paper).iter().map(|claim| claim.experiment).collect();
        let mut used = BTreeSet::new();
        for experiment in all.iter().filter(|it| names.contains(it.name())) {
            used.extend(during(Variation::Nothing, || experiment.run(scale).unwrap()).1);
        }
        used
    }

    /// Checks that the list of constants has none that no conclusion of its paper is asked about.
    #[test]
    fn every_constant_is_halved_and_doubled_for_some_conclusion() {
        for paper in Paper::ALL {
            let used = used(paper);
            let of_paper = fits().filter(|fit| fit.papers.contains(&paper) && fit.is_varied());
            for fit in of_paper {
                assert!(used.contains(fit.name), "{paper:?}: {}", fit.name);
            }
        }
    }

    #[test]
    fn a_conclusion_survives_only_if_no_change_breaks_it() {
        let claim = claims(Paper::BufferHash)[0];
        let mut it = Tried {
            claim,
            plain: 30.0,
            origin: Origin::Measured,
            worst: 30.0,
            worst_by: String::new(),
            changes: 0,
            broken_by: Vec::new(),
            today: Some(5.0),
        };
        it.note(40.0, "a halved".into());
        assert!(it.survives() && it.worst_by.is_empty());
        it.note(9.0, "a doubled".into());
        assert!(it.holds() && !it.survives());
        let row = |table: Table| table.rows[0].clone();
        let tried = [it];
        assert!(row(varied(&tried)).why.contains("Falls under 1 of 2 changes: a doubled."));
        assert_eq!(row(varied(&tried)).ours, Some(9.0));
        assert_eq!(row(today(&tried)).why, "Does not hold any more.");
        assert!(setup(&tried)[0].starts_with("Of 1 conclusions 1 hold here, and 0 of them"));
    }
}
