//! `nandex reproduce`: the experiments of a paper, run again on simulated drives.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nandex_reproduce::counting::{Corpus, on_corpus};
use nandex_reproduce::{Experiment, Paper, Ran, Report, Scale, experiments, html, text};

use crate::console::{Console, ProgressMode};
use crate::size;

/// Which experiments, how large, and where the report goes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The structure whose paper it is
    paper: Structure,
    /// Run only the experiment of this name; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// How many times smaller than the paper's: a power of two from 64 to 8192
    #[arg(long, value_name = "TIMES", default_value_t = Scale::DEFAULT)]
    scale: u32,
    /// Decides all that is random
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Of counting: run it on this text or folder of texts too, as the experiment `corpus`
    #[arg(long, value_name = "PATH")]
    corpus: Option<PathBuf>,
    /// Write all tables and curves to this HTML file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Structures whose papers can be run again.
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
}

impl Structure {
    const fn paper(self) -> Paper {
        match self {
            Self::Bufferhash => Paper::BufferHash,
            Self::Slicehash => Paper::SliceHash,
            Self::Cascade => Paper::Cascade,
            Self::Counting => Paper::Counting,
            Self::Rhik => Paper::Rhik,
        }
    }
}

/// Runs the experiments and prints the results next to the paper's.
///
/// # Errors
/// An experiment that the paper does not have, an impossible scale, a file that cannot be written.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let paper = args.paper.paper();
    let scale = Scale::new(args.scale, args.seed)?;
    let chosen = chosen(all(paper, args.corpus.as_deref())?, &args.only)?;
    if let Some(path) = &args.report {
        // Opened before the run, so that no run is lost to a path that cannot be written; an earlier report
        // stays until there is a new one.
        let file = OpenOptions::new().create(true).write(true).truncate(false).open(path);
        file.with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut report = Report::new(paper, scale);
    for (number, experiment) in chosen.iter().enumerate() {
        if console.progress != ProgressMode::None {
            let (name, title) = (experiment.name(), experiment.title());
            console.note(&format!("{} of {}: {name}, {title}", number + 1, chosen.len()));
        }
        let ran = Ran::run(&**experiment, scale);
        report.experiments.push(ran.with_context(|| format!("cannot run {}", experiment.name()))?);
    }
    if let Some(path) = &args.report {
        let page = html(&report);
        let written = fs::write(path, &page);
        written.with_context(|| format!("cannot write {}", path.display()))?;
        let bytes = size::show_bytes(page.len() as u64);
        console.note(&format!("report: {}, {bytes}", path.display()));
    }
    console.print(&report, text)
}

/// All experiments of a paper, with that on a corpus if there is one.
fn all(paper: Paper, corpus: Option<&Path>) -> Result<Vec<Box<dyn Experiment>>> {
    let mut all = experiments(paper);
    match corpus {
        Some(path) if paper == Paper::Counting => all.push(on_corpus(Corpus::read(path)?)),
        Some(_) => bail!("--corpus is for `nandex reproduce counting`; the others read no text"),
        None => {}
    }
    Ok(all)
}

/// The named experiments, or all if none was named.
fn chosen(all: Vec<Box<dyn Experiment>>, only: &[String]) -> Result<Vec<Box<dyn Experiment>>> {
    let names: Vec<_> = all.iter().map(|experiment| experiment.name()).collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(&name.as_str())) {
        let hint = if unknown == "corpus" { "; `corpus` needs --corpus PATH" } else { "" };
        bail!("there is no experiment {unknown}; there are {}{hint}", names.join(", "));
    }
    let wanted = |name: &str| only.is_empty() || only.iter().any(|it| it == name);
    Ok(all.into_iter().filter(|experiment| wanted(experiment.name())).collect())
}
