//! `nandex-bench-lives`: structures and indexes after many rounds of updates, compared with their state after
//! the first fill.
//!
//! Each takes its keys or documents once, and then as many changes in every round. A structure is flushed
//! after each round; an index makes its batches durable itself. The table has rates, bytes written, flash,
//! RAM and the error of the count of entries. In the end present keys or documents and some removed ones are
//! looked up, before and after a reopening: a wrong answer is an error.
//!
//! ```text
//!   main ---> subject (the trait, a row)      report (figures, the table)
//!              |
//!              +-- keyed ------ tables  map  counting  cascade
//!              '-- documents -- neardup  tfidf
//! ```
#![forbid(unsafe_code)]

mod cascade;
mod counting;
mod documents;
mod keyed;
mod map;
mod neardup;
mod report;
mod subject;
mod tables;
mod tfidf;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use clap::builder::PossibleValuesParser;
use clap::{Parser, ValueEnum};
use nandex_bench::process::finish;
use report::{Figures, Life};
use subject::{Row, Subject, Usage, Work};

/// All subjects that can be measured, in the order of the table.
const ROWS: [Row; 10] = [
    tables::BUFFERHASH,
    tables::SLICEHASH,
    tables::GROWING,
    tables::GROWING_SLICEHASH,
    tables::RHIK,
    map::ROW,
    counting::ROW,
    cascade::ROW,
    neardup::ROW,
    tfidf::ROW,
];

/// Bytes of a block in a file's metadata.
const BLOCK_BYTES: u64 = 512;

/// Measures structures and indexes over many rounds of updates.
#[derive(Parser, Debug)]
#[command(name = "nandex-bench-lives", version)]
struct Arguments {
    /// Keys of each structure.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1000..))]
    entries: u64,
    /// Documents of each index.
    #[arg(long, default_value_t = 3000, value_parser = clap::value_parser!(u64).range(100..))]
    documents: u64,
    /// Rounds after the first fill, of as many updates as there are keys or documents.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// The changes of a round; by default `churn` for indexes of documents, and `update` for all others.
    #[arg(long, value_enum)]
    workload: Option<Workload>,
    /// The structures and indexes; all by default.
    #[arg(long, value_parser = PossibleValuesParser::new(ROWS.map(|row| row.name)))]
    structure: Vec<String>,
    /// RAM of each, in bytes; by default as much as it needs, and for an index its own default.
    #[arg(long)]
    ram: Option<u64>,
    /// Closes and opens each after every round, as a command would.
    #[arg(long)]
    reopen: bool,
    /// The folder of the volumes.
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// One line of JSON instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum, serde::Serialize, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
enum Workload {
    /// Puts keys again, drawn uniformly; removes all documents and adds the same again.
    Update,
    /// Puts new keys, and removes as many of the oldest; removes all documents and adds as many new ones.
    Churn,
}

fn main() -> ExitCode {
    finish("nandex-bench-lives", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<String> {
    let is_asked = |row: &&Row| {
        arguments.structure.is_empty() || arguments.structure.iter().any(|it| it == row.name)
    };
    let lives = ROWS
        .iter()
        .filter(is_asked)
        .map(|row| live(arguments, row).with_context(|| format!("{} has failed", row.name)));
    let lives = lives.collect::<Result<Vec<_>>>()?;
    match arguments.json {
        true => Ok(serde_json::to_string(&lives)?),
        false => Ok(report::text(&lives, arguments.rounds)),
    }
}

/// Runs a subject through all its rounds, and checks its answers.
fn live(arguments: &Arguments, row: &Row) -> Result<Life> {
    let file = arguments.dir.join(format!("lives-{}.nandex", row.name));
    if file.exists() {
        fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))?;
    }
    let mut subject = (row.create)(arguments, &file)?;
    let workload = arguments.workload.unwrap_or(row.workload);
    let mut rounds = Vec::new();
    for round in 0..=arguments.rounds {
        let workload = (round > 0).then_some(workload);
        let figures = measure(&mut *subject, workload, &file);
        rounds.push(figures.with_context(|| format!("round {round}"))?);
        if arguments.reopen {
            subject = subject.reopened()?;
        }
    }
    subject.check()?;
    let gets_per_s = subject.check()?.per_s();
    let single_puts_per_s = subject.put_singly()?.per_s();
    let start = Instant::now();
    subject = subject.reopened()?;
    let reopen_seconds = start.elapsed().as_secs_f64();
    subject.check().context("after it was opened again")?;
    let life = Life::new((row, workload), subject.entries(), rounds)?;
    subject.close()?;
    fs::remove_file(&file)?;
    Ok(Life { gets_per_s, single_puts_per_s, reopen_seconds, ..life })
}

/// Makes a round, and compares the subject's resources afterwards with those before.
fn measure(subject: &mut dyn Subject, workload: Option<Workload>, file: &Path) -> Result<Figures> {
    let before = subject.usage().written_bytes;
    let Work { items, bytes, seconds } = subject.round(workload)?;
    let Usage { written_bytes, entries, flash_bytes, ram_bytes } = subject.usage();
    let right = subject.entries();
    let written = written_bytes.zip(before).map(|(after, before)| after - before);
    Ok(Figures {
        puts: items,
        puts_per_s: items as f64 / seconds,
        written_per_byte: written.map(|written| written as f64 / bytes as f64),
        entries,
        entries_off_percent: entries.abs_diff(right) as f64 * 100.0 / right.max(1) as f64,
        flash_bytes,
        file_bytes: fs::metadata(file)?.blocks() * BLOCK_BYTES,
        ram_bytes,
    })
}

/// Creates the error of a wrong answer.
fn wrong(answer: impl Into<String>) -> anyhow::Error {
    anyhow!(answer.into())
}
