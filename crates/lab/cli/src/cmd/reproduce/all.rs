//! `nandex-lab reproduce all`: runs the experiments of all papers, on all cores, and writes pages with an index.

use std::fmt::Write as _;
use std::num::NonZero;
use std::path::Path;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use nandex_reproduce::{
    Constant, Counted, Event, Page, Paper, Part, Scale, Task, constants, pages, spread, tasks,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::Args;
use super::kept::{Kept, KeptFolder, Run};
use nandex_cli::console::{Console, Steps};
use nandex_cli::refuse;
use nandex_cli::size;
use nandex_cli::unfinished::write_output;

/// The outcomes of all papers.
#[derive(Debug, Serialize)]
struct AllRan {
    scale: Scale,
    papers: Vec<PaperRan>,
    constants: Vec<Constant>,
}

/// The outcomes of a paper.
#[derive(Debug, Serialize)]
struct PaperRan {
    paper: &'static str,
    #[serde(skip)]
    structure: &'static str,
    #[serde(skip)]
    counted: Counted,
    experiments: Vec<Box<RawValue>>,
}

/// Runs the experiments whose results an earlier run has not left, writes the pages and prints how near the numbers
/// are.
pub fn run(scale: Scale, args: &Args, console: &Console) -> Result<()> {
    let Some(folder) = &args.report else {
        refuse!("`nandex-lab reproduce all` writes pages: give their folder with --report DIR");
    };
    if args.corpus.is_some() || args.row.is_some() {
        refuse!("--corpus and --row are for one paper, such as `nandex-lab reproduce counting`");
    }
    let tasks = chosen(tasks(), &args.only)?;
    let kept_folder = KeptFolder::open(folder, Run::of(scale)?)?;
    let mut kept = Vec::new();
    let mut to_run = Vec::new();
    for task in tasks {
        match kept_folder.load(task.paper, task.experiment.name())? {
            Some(earlier) => kept.push(earlier),
            None => to_run.push(task),
        }
    }
    if !kept.is_empty() {
        let (count, all) = (kept.len(), kept.len() + to_run.len());
        console.note(&format!(
            "{count} of {all} experiments are there from a run that did not finish"
        ));
    }
    let threads = args.threads.or_else(|| thread::available_parallelism().ok());
    run_tasks(
        &to_run,
        scale,
        threads.unwrap_or(NonZero::<usize>::MIN),
        &kept_folder,
        &mut kept,
        console,
    )?;
    let constants = constants()?;
    let parts: Vec<Part> = kept.iter().map(|kept| kept.part.clone()).collect();
    let bytes = write_pages(folder, &pages(&parts, &constants, scale), console)?;
    kept_folder.remove()?;
    console.note(&format!("report: {}, {}", folder.display(), size::show_bytes(bytes)));
    console.print(&AllRan { scale, papers: by_paper(kept), constants }, text)
}

/// Returns the tasks of these names, `figure-6` or `bufferhash/figure-6`; all if there is no name.
fn chosen(all: Vec<Task>, only: &[String]) -> Result<Vec<Task>> {
    let is = |task: &Task, name: &str| {
        let own = task.experiment.name();
        name == own || name.split_once('/') == Some((task.paper.structure(), own))
    };
    if let Some(unknown) = only.iter().find(|name| !all.iter().any(|task| is(task, name))) {
        let mut names: Vec<_> = all.iter().map(named).collect();
        names.sort_unstable();
        refuse!("there is no experiment {unknown}; there are {}", names.join(", "));
    }
    let wanted = |task: &Task| only.is_empty() || only.iter().any(|name| is(task, name));
    Ok(all.into_iter().filter(wanted).collect())
}

fn named(task: &Task) -> String {
    format!("{}/{}", task.paper.structure(), task.experiment.name())
}

/// Runs the tasks and saves the result of each as soon as it has run.
fn run_tasks(
    tasks: &[Task],
    scale: Scale,
    threads: NonZero<usize>,
    folder: &KeptFolder,
    kept: &mut Vec<Kept>,
    console: &Console,
) -> Result<()> {
    let done_before = kept.len();
    let steps = console.steps(done_before + tasks.len());
    let mut going_on: Vec<(usize, Instant)> = Vec::new();
    let outcome = spread(tasks, scale, threads, |event| {
        match event {
            Event::Began(index) => going_on.push((index, Instant::now())),
            Event::Ended(index, ran) => {
                let task = &tasks[index];
                let ran = ran.with_context(|| format!("cannot run {}", named(task)))?;
                kept.push(folder.save(Part::of(task.paper, &ran, scale), &ran)?);
                if let Some(at) = going_on.iter().position(|(other, _)| *other == index) {
                    let seconds = going_on.remove(at).1.elapsed().as_secs();
                    steps.done(kept.len(), &format!("{}, {seconds} s", named(task)));
                }
            }
        }
        show(&steps, kept.len(), tasks, &going_on);
        Ok(())
    });
    steps.finish();
    outcome
}

fn show(steps: &Steps, done: usize, tasks: &[Task], going_on: &[(usize, Instant)]) {
    let names: Vec<_> = going_on.iter().map(|(index, _)| named(&tasks[*index])).collect();
    steps.at(done, &names.join(" "));
}

/// Writes the pages, the index last, and returns their bytes.
fn write_pages(folder: &Path, pages: &[Page], console: &Console) -> Result<u64> {
    for page in pages {
        write_output(&folder.join(&page.name), &page.text, console)?;
    }
    Ok(pages.iter().map(|page| page.text.len() as u64).sum())
}

/// Returns the outcomes of each paper that has any, in its order.
fn by_paper(mut kept: Vec<Kept>) -> Vec<PaperRan> {
    let order: Vec<(Paper, String)> =
        tasks().into_iter().map(|task| (task.paper, task.experiment.name().to_owned())).collect();
    let place = |kept: &Kept| {
        order.iter().position(|(paper, name)| (*paper, name) == (kept.part.paper, &kept.part.name))
    };
    kept.sort_by_key(place);
    let mut papers = Vec::new();
    for paper in Paper::ALL {
        let (of_paper, others): (Vec<_>, Vec<_>) =
            kept.into_iter().partition(|kept| kept.part.paper == paper);
        kept = others;
        if of_paper.is_empty() {
            continue;
        }
        papers.push(PaperRan {
            paper: paper.title(),
            structure: paper.structure(),
            counted: Part::sum(of_paper.iter().map(|it| &it.part)),
            experiments: of_paper.into_iter().map(|kept| kept.data).collect(),
        });
    }
    papers
}

/// Formats how near the numbers of each paper are, a line for each.
fn text(all: &AllRan) -> String {
    let mut out = format!(
        "{:10}  {:>11}  {:>12}  {:>12}  {:>11}  {:>11}  {:>13}  {:>6}  {:>7}  {:>5}  {:>6}  {:>8}\n",
        "",
        "experiments",
        "within 1/10",
        "within twice",
        "further off",
        "bounds kept",
        "bounds missed",
        "fitted",
        "assumed",
        "given",
        "stated",
        "of ours"
    );
    for ran in &all.papers {
        let Counted { near, off, far, bounds, fitted, assumed, given, stated, own } = ran.counted;
        let (kept, missed) = (bounds.kept(), bounds.missed);
        let count = ran.experiments.len();
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:10}  {count:>11}  {near:>12}  {off:>12}  {far:>11}  {kept:>11}  {missed:>13}  {fitted:>6}  \
             {assumed:>7}  {given:>5}  {stated:>6}  {own:>8}",
            ran.structure
        );
    }
    out
}
