//! The constants that were chosen: fitted so that a printed number comes out, or assumed by judgement.
//!
//! A row that merely returns a printed number is marked as [fitted](crate::Row::fitted), and one that rests on
//! an assumed constant as [assumed](crate::Row::assumed). A row for which none of these was chosen is measured
//! or predicted, even if it is of the same drive. Values are read from the presets and the
//! code that use them, so the list has no second copy of any.

mod assumed;
mod cost;
mod field;
mod list;

use serde::Serialize;

pub(crate) use assumed::{
    BERKELEY_FILE, BITS_INSERT, BITS_SWEEP, CACHED_INSERT, CASCADE_INSERT, CASCADE_MERGE,
    DECK_FILL, DECK_INSERT, DIRECTORY_DRAM, FILTER_LINE, FILTER_LOOKUP, LARGER_DRIVE, MERGE_KEY,
    MULTILEVEL_BUFFERS, PAGES_INSERT, PAGES_SWEEP, RAM_JUMP, RAM_NEXT, RHIK_LEFT, TABLE_SPARE,
};
pub(crate) use cost::{CostField, preset as cost_preset};
pub(crate) use field::Field;
pub(crate) use list::{
    BUFFERHASH_INSERT, BUFFERHASH_LOOKUP, DECK_MERGE, INTEL_PRICE, LEVELS, NSDI_PROCESSOR,
    SLICEHASH_INSERT, SLICEHASH_LOOKUP, TOKEN_OFFSET, TOKEN_POWER, WAN_BERKELEY,
};

use crate::{Paper, Result};

/// Reads of preset `flash-chip-paper`.
pub(crate) const CHIP_READ: &str = "0.24 ms for each page read (NSDI 2010, Table 2)";
/// Reads of preset `intel-x18m-paper`.
pub(crate) const INTEL_READ: &str =
    "0.15 ms for a random read (NSDI 2010, 7.2.2); Table 2's 0.31 ms contradicts Figure 6";
/// Erases of preset `intel-x18m-paper`.
pub(crate) const INTEL_FLUSH: &str = "2.72 ms for a flush that erases (NSDI 2010, 7.2.1)";
/// The CPU time of an operation, [`CPU_NS`](crate::bufferhash::CPU_NS).
pub(crate) const INTEL_INSERT: &str = "0.006 ms for an insert, on average (NSDI 2010, 7.2.1)";
/// Reads of preset `transcend-ts32-paper`.
pub(crate) const TRANSCEND_READ: &str = "0.6 ms for nine lookups of ten (NSDI 2010, 7.2.1)";
/// Programs of preset `transcend-ts32-paper`.
pub(crate) const TRANSCEND_FLUSH: &str = "30 ms for a flush that erases (NSDI 2010, 7.2.1)";
/// The time of an operation of the WAN optimizer's Berkeley DB.
pub(crate) const BERKELEY_WAN: &str = "close to 2 x with Berkeley DB at 10 Mb/s (NSDI 2010, 8.1)";
/// The price of the Intel SSD.
pub(crate) const INTEL_PER_DOLLAR: &str =
    "42 lookups a second and dollar, at 0.06 ms (NSDI 2010, 1 and 7.5)";
/// Reads of preset `crucial-m4-paper`, when all buses are busy.
pub(crate) const CRUCIAL_READS: &str = "69 000 reads/s with 32 threads (ANCS 2014, 7.2)";
/// Reads of preset `crucial-m4-paper`, when one channel is.
pub(crate) const CRUCIAL_WORST: &str = "a 5.2th of the best reads/s (ANCS 2014, 4.2)";
/// Programs of preset `crucial-m4-paper`.
pub(crate) const CRUCIAL_WRITES: &str = "175 MB/s of writes (the drive's data sheet)";
/// Requests of preset `crucial-m4`.
pub(crate) const CRUCIAL_SHEET_READS: &str = "40 000 reads/s (the drive's data sheet)";
/// The CPU time of an insert in
/// [`WorkerModel::buffer_hash`](crate::slicehash::workers::WorkerModel::buffer_hash).
pub(crate) const BUFFERHASH_INSERTS: &str =
    "92 % of 8 cores at 1 100 000 inserts/s (ANCS 2014, Table 4 and Figure 5b): 6.7 us";
/// The CPU time of a merge in [`Costs::fitted`](crate::cascade::rounds::Costs::fitted).
pub(crate) const DECK_INSERTS: &str = "670 000 inserts/s (the deck's summary of results)";
/// The lengths of levels of [`Multilevel`](nandex_baseline::Multilevel).
pub(crate) const MULTILEVEL_READS: &str = "3 to 7 accesses for an index above 10 MB (HPDC 2023, 3)";
/// The offset of the law of tokens, from which [counting](crate::counting) draws.
pub(crate) const COUNTING_STAGES: &str = "209 stages at 1 % of RAM (BigData 2013, Table 2)";
/// The power of the law of tokens.
pub(crate) const COUNTING_TOKENS: &str = "tokens and different tokens (BigData 2013, 3.3)";

/// A chosen constant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fit {
    /// Its name, for a sensitivity analysis: lower case, with hyphens.
    pub name: &'static str,
    /// Its meaning.
    pub about: &'static str,
    /// The reason for its value.
    pub source: Source,
    /// The papers whose experiments use it.
    pub papers: &'static [Paper],
    pub(crate) place: Place,
}

/// The reason for a constant's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The number that it was chosen for, and where that is printed.
    FittedTo(&'static str),
    /// Judgement, for this reason: nobody printed or measured it.
    Assumed(&'static str),
}

/// The place of a constant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Place {
    /// A field of a preset.
    Preset(&'static str, Field),
    /// In the code: a time in nanoseconds.
    Time(u64),
    /// In the code: a count of pages.
    Pages(u64),
    /// In the code: a number and its unit.
    Number(f64, &'static str),
    /// A cost of the paper's formulas: a preset of `nandex advise`.
    Cost(&'static str, CostField),
    /// A reading of the text that was taken. It is no quantity, so it is not varied.
    Reading(&'static str),
    /// The rows that have it, as it is solved for when an experiment runs.
    Rows(&'static str),
}

/// The value of a constant, as the table of constants has it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Constant {
    /// Its name.
    pub name: &'static str,
    /// Its meaning.
    pub about: &'static str,
    /// Its value; `None` if it is solved for in a run, or is a reading of the text.
    pub value: Option<f64>,
    /// Its unit; without a value, the rows that have it, or the reading.
    pub unit: &'static str,
    /// The reason for its value.
    #[serde(flatten)]
    pub source: Source,
    /// Whether the experiments `conclusions` halve and double it.
    pub is_varied: bool,
}

impl Source {
    /// Returns the reason in words: "fitted to ..." or "assumed: ...".
    #[must_use]
    pub fn shown(self) -> String {
        match self {
            Self::FittedTo(number) => format!("fitted to {number}"),
            Self::Assumed(reason) => format!("assumed: {reason}"),
        }
    }
}

impl Fit {
    /// Returns its value.
    ///
    /// # Errors
    /// Fails with [`Error::Drive`](crate::Error::Drive) if there is no such preset.
    pub fn constant(&self) -> Result<Constant> {
        let (value, unit) = match self.place {
            Place::Preset(preset, field) => (Some(field.value(preset)?), field.unit()),
            Place::Time(ns) => (Some(ns as f64), "ns"),
            Place::Pages(count) => (Some(count as f64), "pages"),
            Place::Number(value, unit) => (Some(value), unit),
            Place::Cost(preset, field) => (Some(field.value(&cost::preset(preset)?)), field.unit()),
            Place::Rows(rows) => (None, rows),
            Place::Reading(taken) => (None, taken),
        };
        let Self { name, about, source, .. } = *self;
        Ok(Constant { name, about, value, unit, source, is_varied: self.is_varied() })
    }

    /// Returns whether it is a quantity, which can be halved and doubled, and not a reading of the text.
    #[must_use]
    pub const fn is_varied(&self) -> bool {
        !matches!(self.place, Place::Reading(_))
    }
}

impl Constant {
    /// Returns its value with its unit, in words.
    #[must_use]
    pub fn shown(&self) -> String {
        match self.value {
            Some(value) => format!("{value} {}", self.unit),
            None if self.is_varied => format!("in the rows of {}", self.unit),
            None => self.unit.into(),
        }
    }
}

/// Returns all chosen constants, the fitted ones first.
pub fn fits() -> impl Iterator<Item = &'static Fit> {
    list::FITTED.iter().chain(assumed::ASSUMED)
}

/// Returns the values of all chosen constants, the fitted ones first.
///
/// # Errors
/// Fails with [`Error::Drive`](crate::Error::Drive) if there is no such preset.
pub fn constants() -> Result<Vec<Constant>> {
    fits().map(Fit::constant).collect()
}

/// Formats all constants in lines, for a terminal.
#[must_use]
pub fn constants_text(constants: &[Constant]) -> String {
    let line = |it: &Constant| {
        format!("{}: {}\n  {}\n  {}\n", it.name, it.shown(), it.about, it.source.shown())
    };
    constants.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The strings of this file, in its order.
    fn all() -> Vec<&'static str> {
        let source = include_str!("mod.rs");
        let items = source.split("\npub(crate) const ").skip(1);
        items.map(|item| item.split('"').nth(1).expect("each constant is a string")).collect()
    }

    #[test]
    fn each_number_that_rows_are_fitted_to_has_its_constant() {
        let all = all();
        assert!(all.len() > 10 && all.contains(&MULTILEVEL_READS), "{all:?}");
        for fitted_to in all {
            let source = Source::FittedTo(fitted_to);
            assert!(fits().any(|fit| fit.source == source), "{fitted_to}");
        }
        let names: BTreeSet<_> = fits().map(|fit| fit.name).collect();
        assert_eq!(names.len(), fits().count(), "each has its own name");
    }

    #[test]
    fn values_are_those_of_presets_and_code() {
        let all = constants().unwrap();
        let of = |name: &str| all.iter().find(|it| it.name == name).unwrap();
        assert_eq!(of("nsdi-processor").value, Some(crate::bufferhash::CPU_NS as f64));
        assert_eq!(of("intel-read").shown(), "38933 ns");
        assert!(of("deck-merge").shown().starts_with("in the rows of cascade"));
        assert!(constants_text(&all).contains("intel-erase: 1890000 ns\n"));
    }

    /// Checks that the page's table of constants has one row for each.
    #[test]
    fn the_page_lists_each_constant_with_its_value_and_its_number() {
        let page = include_str!("../../../../../docs/lab/reproduce.md");
        let rows: BTreeSet<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        for constant in constants().unwrap() {
            let Constant { name, about, source, .. } = constant;
            let row = format!("| `{name}` | {about} | {} | {} |", constant.shown(), source.shown());
            assert!(rows.contains(row.as_str()), "docs/lab/reproduce.md lacks this row:\n{row}");
        }
    }

    /// Checks that the list has every constant that the files of presets call fitted or solved for, if an
    /// experiment uses the preset.
    #[test]
    fn no_fitted_field_of_a_preset_is_left_out() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/presets");
        let used: BTreeSet<_> = fits()
            .filter_map(|fit| match fit.place {
                Place::Preset(preset, field) => Some((preset, field.name())),
                _ => None,
            })
            .collect();
        let mut count = 0;
        for preset in list::PRESETS {
            let text = std::fs::read_to_string(format!("{folder}/{preset}.toml")).unwrap();
            for line in text.lines() {
                let Some((field, comment)) = line.split_once(" = ") else { continue };
                let is_number = comment.starts_with(|it: char| it.is_ascii_digit());
                let is_fitted = ["solved", "fitted", "the rest of it", "come from this"]
                    .iter()
                    .any(|word| comment.contains(word));
                if is_number && is_fitted {
                    assert!(used.contains(&(preset, field)), "{preset}: {line}");
                    count += 1;
                }
            }
        }
        assert!(count > 20, "{count}");
    }
}
