//! `nandex-lab reproduce`: runs the experiments of a paper, or of all papers, on simulated drives.

mod all;
mod kept;

use std::io::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nandex_reproduce::counting::{Corpus, on_corpus};
use nandex_reproduce::{
    Experiment, Paper, Ran, Report, Scale, constants, constants_page, constants_text, experiments,
    html, text,
};

use nandex_cli::console::{Console, ProgressMode};
use nandex_cli::refuse;
use nandex_cli::size;
use nandex_cli::unfinished::{begin_output, cannot_write, write_output};
use nandex_cli::usage::Usage;

/// The experiments, the scale, and the report.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Structure whose paper to run, or all of them
    paper: Structure,
    /// Run only the experiment of this name; may be given several times; for all papers `bufferhash/figure-6`
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Print only this row of the only experiment: its table and its place there, as on the page
    #[arg(long, value_name = "TABLE.ROW", value_parser = place)]
    row: Option<(usize, usize)>,
    /// Ratio of the paper's size to this run's: a power of two from 64 to 8192
    #[arg(long, value_name = "TIMES", default_value_t = Scale::DEFAULT)]
    scale: u32,
    /// Seed of everything random
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// For counting: also run it on this text or folder of texts, as the experiment `corpus`
    #[arg(long, value_name = "PATH")]
    corpus: Option<PathBuf>,
    /// Write all tables and curves to this HTML file; for all papers to this folder, a page for each and an index
    #[arg(long, value_name = "PATH")]
    report: Option<PathBuf>,
    /// For all papers: number of experiments that run at once; default: the number of cores
    #[arg(long, value_name = "COUNT")]
    threads: Option<NonZero<usize>>,
}

/// Parses a row's table and its place there, both from 1.
fn place(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('.').map(|(table, row)| (table.parse(), row.parse()));
    match parts {
        Some((Ok(table), Ok(row))) => Ok((table, row)),
        _ => Err("expected the number of a table and that of a row, such as 2.1".into()),
    }
}

/// The structures whose papers can be run.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Structure {
    /// NSDI 2010
    Bufferhash,
    /// ANCS 2014
    Slicehash,
    /// HotStorage 2011
    Cascade,
    /// BigData 2013
    Counting,
    /// HPDC 2023
    Rhik,
    /// All five
    All,
    /// No paper: the chosen constants, fitted or assumed, and why
    Constants,
}

impl Structure {
    /// Returns the paper, if this is the structure of one.
    const fn paper(self) -> Option<Paper> {
        match self {
            Self::Bufferhash => Some(Paper::BufferHash),
            Self::Slicehash => Some(Paper::SliceHash),
            Self::Cascade => Some(Paper::Cascade),
            Self::Counting => Some(Paper::Counting),
            Self::Rhik => Some(Paper::Rhik),
            Self::All | Self::Constants => None,
        }
    }
}

/// Runs the experiments and prints the results next to the paper's.
///
/// # Errors
/// An experiment that the paper does not have, an impossible scale, a file that cannot be written.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let scale = Scale::new(args.scale, args.seed).map_err(|error| Usage(error.to_string()))?;
    match (args.paper, args.paper.paper()) {
        (_, Some(paper)) => run_paper(paper, scale, args, console),
        (Structure::Constants, None) => show_constants(args, console),
        (_, None) => all::run(scale, args, console),
    }
}

fn show_constants(args: &Args, console: &Console) -> Result<()> {
    if !args.only.is_empty() || args.row.is_some() || args.corpus.is_some() {
        refuse!("`nandex-lab reproduce constants` runs nothing: it takes --report and --json only");
    }
    let constants = constants()?;
    if let Some(path) = &args.report {
        write_output(path, constants_page(&constants), console)?;
    }
    console.print(&constants, |constants| constants_text(constants))
}

fn run_paper(paper: Paper, scale: Scale, args: &Args, console: &Console) -> Result<()> {
    if args.threads.is_some() {
        refuse!(
            "--threads is for `nandex-lab reproduce all`; a paper's experiments run one after another"
        );
    }
    let chosen = chosen(all(paper, args.corpus.as_deref())?, &args.only)?;
    if args.row.is_some() && chosen.len() != 1 {
        refuse!(
            "--row names a row of one experiment, and {} are to run: choose by --only",
            chosen.len()
        );
    }
    // Opened before the run, so that no run is lost to a path that cannot be written.
    let page = args.report.as_deref().map(|path| begin_output(path, console)).transpose()?;
    let mut report = Report::new(paper, scale);
    for (number, experiment) in chosen.iter().enumerate() {
        if console.progress != ProgressMode::None {
            let (name, title) = (experiment.name(), experiment.title());
            console.note(&format!("{} of {}: {name}, {title}", number + 1, chosen.len()));
        }
        let ran = Ran::run(paper, &**experiment, scale);
        let ran = ran.with_context(|| format!("cannot run {}", experiment.name()))?;
        report.experiments.push(only_row(ran, args.row)?);
    }
    if let (Some(path), Some(mut page)) = (&args.report, page) {
        let text = html(&report);
        let written = page.write_all(text.as_bytes()).and_then(|()| page.finish());
        written.with_context(|| cannot_write(path))?;
        let bytes = size::show_bytes(text.len() as u64);
        console.note(&format!("report: {}, {bytes}", path.display()));
    }
    console.print(&report, text)
}

/// Returns the experiment with one row only, if one was requested.
fn only_row(ran: Ran, row: Option<(usize, usize)>) -> Result<Ran> {
    let Some((table, place)) = row else { return Ok(ran) };
    let tables = ran.outcome.tables.iter().map(|table| table.rows.len().to_string());
    let lengths = tables.collect::<Vec<_>>().join(", ");
    match ran.outcome.only((table, place)) {
        Some(outcome) => Ok(Ran { outcome, ..ran }),
        None => refuse!("{} has no row {table}.{place}: its tables have {lengths} rows", ran.name),
    }
}

/// Returns all experiments of a paper, including that on a corpus if there is one.
fn all(paper: Paper, corpus: Option<&Path>) -> Result<Vec<Box<dyn Experiment>>> {
    let mut all = experiments(paper);
    match corpus {
        Some(path) if paper == Paper::Counting => all.push(on_corpus(Corpus::read(path)?)),
        Some(_) => {
            refuse!("--corpus is for `nandex-lab reproduce counting`; the others read no text")
        }
        None => {}
    }
    Ok(all)
}

/// Returns the named experiments, or all if none was named.
fn chosen(all: Vec<Box<dyn Experiment>>, only: &[String]) -> Result<Vec<Box<dyn Experiment>>> {
    let names: Vec<_> = all.iter().map(|experiment| experiment.name()).collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(&name.as_str())) {
        let hint = if unknown == "corpus" { "; `corpus` needs --corpus PATH" } else { "" };
        refuse!("there is no experiment {unknown}; there are {}{hint}", names.join(", "));
    }
    let wanted = |name: &str| only.is_empty() || only.iter().any(|it| it == name);
    Ok(all.into_iter().filter(|experiment| wanted(experiment.name())).collect())
}
