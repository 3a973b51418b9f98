//! The figures of a life, as JSON and as a line of the table.

use anyhow::{Context, Result};
use serde::Serialize;

use crate::Workload;
use crate::subject::Row;

/// The figures of a subject after a round.
#[derive(Clone, Copy, Serialize, Debug)]
pub(crate) struct Figures {
    /// Keys or documents that were put.
    pub puts: u64,
    /// Puts a second, where a removal and a put together count as one; without the flush after them.
    pub puts_per_s: f64,
    /// Bytes written, log included, for each byte put, if they are known.
    pub written_per_byte: Option<f64>,
    /// Entries, as the subject counts them.
    pub entries: u64,
    /// The error of that count, in percent.
    pub entries_off_percent: f64,
    pub flash_bytes: u64,
    /// Space of the file on disk.
    pub file_bytes: u64,
    pub ram_bytes: u64,
}

/// The life of a subject.
#[derive(Serialize, Debug)]
pub(crate) struct Life {
    pub structure: &'static str,
    /// The kind of the items: keys or documents.
    pub items: &'static str,
    pub workload: Workload,
    pub fresh: Figures,
    pub rounds: Vec<Figures>,
    /// The median and the least puts a second of the second half of the rounds, over those of the first fill.
    pub puts_ratio_median: f64,
    pub puts_ratio_min: f64,
    /// The median of the same rounds.
    pub written_per_byte_median: Option<f64>,
    /// The bytes that each put of the same rounds has added to flash, file and RAM; negative if these have
    /// shrunk.
    pub flash_growth_bytes_per_put: f64,
    pub file_growth_bytes_per_put: f64,
    pub ram_growth_bytes_per_put: f64,
    /// The maximum after a round, over the value after the first fill.
    pub flash_ratio_max: f64,
    pub file_ratio_max: f64,
    pub ram_ratio_max: f64,
    /// The maximum error of a round's count, in percent.
    pub entries_off_percent_max: f64,
    /// After the rounds and a first pass over them: keys or documents looked up a second (terms of tfidf), and put
    /// again a second, one in each call.
    pub gets_per_s: f64,
    pub single_puts_per_s: f64,
    /// The time of closing and opening.
    pub reopen_seconds: f64,
    /// The entries in the end.
    pub entries: u64,
}

impl Life {
    /// Computes the figures of a fill and the rounds after it; rates of later steps are 0.
    ///
    /// # Errors
    /// Fails without rounds.
    pub fn new((row, workload): (&Row, Workload), entries: u64, all: Vec<Figures>) -> Result<Self> {
        let (fresh, rounds) = all.split_first().context("no round was made")?;
        let (fresh, rounds) = (*fresh, rounds.to_vec());
        let before = all[all.len() - 1 - rounds.len().div_ceil(2)];
        let later = &rounds[rounds.len() / 2..];
        let last = rounds.last().copied().context("no round was made after the first fill")?;
        let rates: Vec<_> = later.iter().map(|it| it.puts_per_s / fresh.puts_per_s).collect();
        let puts: u64 = later.iter().map(|it| it.puts).sum();
        let growth =
            |of: fn(&Figures) -> u64| (of(&last) as f64 - of(&before) as f64) / puts as f64;
        let most = |of: &dyn Fn(&Figures) -> f64| rounds.iter().map(of).fold(0.0, f64::max);
        let over = |of: fn(&Figures) -> u64| most(&|it| of(it) as f64 / of(&fresh).max(1) as f64);
        Ok(Self {
            structure: row.name,
            items: row.items,
            workload,
            puts_ratio_min: rates.iter().copied().fold(f64::INFINITY, f64::min),
            puts_ratio_median: median(rates).unwrap_or(0.0),
            written_per_byte_median: median(
                later.iter().filter_map(|it| it.written_per_byte).collect(),
            ),
            flash_growth_bytes_per_put: growth(|it| it.flash_bytes),
            file_growth_bytes_per_put: growth(|it| it.file_bytes),
            ram_growth_bytes_per_put: growth(|it| it.ram_bytes),
            flash_ratio_max: over(|it| it.flash_bytes),
            file_ratio_max: over(|it| it.file_bytes),
            ram_ratio_max: over(|it| it.ram_bytes),
            entries_off_percent_max: most(&|it| it.entries_off_percent),
            gets_per_s: 0.0,
            single_puts_per_s: 0.0,
            reopen_seconds: 0.0,
            entries,
            fresh,
            rounds,
        })
    }
}

fn median(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

/// Returns the table: a line for each life.
pub(crate) fn text(lives: &[Life], rounds: u32) -> String {
    let head = format!(
        "{:<17} {:<9} {:<8} {:>11} {:>13} {:>6} {:>12} {:>7} {:>9} {:>7} {:>7} {:>9} {:>8} {:>10}",
        "structure",
        "of",
        "workload",
        "first put/s",
        "later, median",
        "min",
        "written/byte",
        "flash",
        "B a put",
        "file",
        "RAM",
        "count off",
        "get/s",
        "put/s singly"
    );
    let lines: String = lives.iter().map(line).collect();
    format!(
        "{head}\n{lines}flash, file and RAM over the same after the first fill; the most of {rounds} rounds. B a put: bytes \
         of flash that each put of the later rounds has added\n"
    )
}

fn line(life: &Life) -> String {
    let written = life.written_per_byte_median;
    format!(
        "{:<17} {:<9} {:<8} {:>11.0} {:>13.2} {:>6.2} {:>12} {:>7.2} {:>9.1} {:>7.2} {:>7.2} {:>7.2} % {:>8.0} {:>12.0}\n",
        life.structure,
        life.items,
        format!("{:?}", life.workload).to_lowercase(),
        life.fresh.puts_per_s,
        life.puts_ratio_median,
        life.puts_ratio_min,
        written.map_or_else(|| "-".to_owned(), |written| format!("{written:.2}")),
        life.flash_ratio_max,
        life.flash_growth_bytes_per_put,
        life.file_ratio_max,
        life.ram_ratio_max,
        life.entries_off_percent_max,
        life.gets_per_s,
        life.single_puts_per_s
    )
}
