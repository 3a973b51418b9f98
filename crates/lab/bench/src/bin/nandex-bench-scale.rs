//! `nandex-bench-scale`: one table after another, each larger than the previous one.
//!
//! For each number of entries it prints the rates of inserts, hits and misses, RAM, and the time of an
//! opening after a kill and after a close. A process of its own fills the table and is killed when all
//! entries are durable.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use nandex::device::{Create, FileDevice, FileOptions};
use nandex::raw::device::output::write_output;
use nandex::raw::size::parse;
use nandex::{
    AnyTable, Policy, Requirements, Table, Volume, VolumeOpenOptions, VolumeOptions, bufferhash,
    rhik, slicehash,
};
use nandex_bench::keys::{KEY_BYTES, KeySpace, Rng, VALUE_BYTES};
use nandex_bench::percentiles::Spread;
use nandex_bench::process::{finish, rss_bytes};
use nandex_bench::quantity::{show_bytes, show_count};
use nandex_html::chart::{self, Chart, Scaling, Series};
use serde::{Deserialize, Serialize};

/// Entries in a call.
const BATCH: u64 = 1024;

/// The spare capacity of tables: one entry for this many.
const SPARE_SHARE: u64 = 33;

/// Measures tables of more and more entries.
#[derive(Parser, Debug)]
#[command(name = "nandex-bench-scale", version)]
struct Arguments {
    /// Entries of the smallest table.
    #[arg(long, default_value = "1M", value_parser = parse)]
    from: u64,
    /// Entries of the largest table.
    #[arg(long, default_value = "64M", value_parser = parse)]
    to: u64,
    /// The factor between the entries of a table and of the next.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..))]
    step: u64,
    /// Lookups of keys that are there, and of others, in each round.
    #[arg(long, default_value = "200k", value_parser = parse)]
    lookups: u64,
    /// Rounds of lookups; medians are printed.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// The structure: bufferhash, slicehash or rhik.
    #[arg(long, value_enum, default_value_t = Scaled::Bufferhash)]
    structure: Scaled,
    /// The folder of the volumes.
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// A file for the chart of the rates, in SVG.
    #[arg(long)]
    picture: Option<PathBuf>,
    /// A line of JSON for each table instead of a row.
    #[arg(long)]
    json: bool,
    /// Only fill this file with the entries of the smallest table, report it, and wait to be killed.
    #[arg(long, hide = true)]
    fill: Option<PathBuf>,
}

/// The structure.
#[derive(Clone, Copy, clap::ValueEnum, Debug)]
enum Scaled {
    Bufferhash,
    Slicehash,
    Rhik,
}

impl Scaled {
    const fn kind(self) -> &'static str {
        match self {
            Self::Bufferhash => bufferhash::KIND,
            Self::Slicehash => slicehash::KIND,
            Self::Rhik => rhik::KIND,
        }
    }

    /// Returns a policy under which nothing is evicted.
    const fn policy(self) -> Policy {
        match self {
            Self::Bufferhash | Self::Slicehash => Policy::Reject,
            Self::Rhik => Policy::Grow,
        }
    }
}

/// A table of one size.
#[derive(Serialize, Debug)]
struct Step {
    entries: u64,
    file_bytes: u64,
    inserts_per_s: f64,
    hits_per_s: Spread,
    misses_per_s: Spread,
    reads_per_hit: f64,
    reads_per_miss: f64,
    ram_bytes_per_entry: f64,
    /// The resident memory of the process that looks up.
    resident_bytes: Option<u64>,
    open_killed_s: f64,
    open_closed_s: f64,
}

/// The report of the process that fills a table.
#[derive(Serialize, Deserialize, Debug)]
struct Fill {
    seconds: f64,
}

fn main() -> ExitCode {
    finish("nandex-bench-scale", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<String> {
    if let Some(file) = &arguments.fill {
        return fill(arguments, file);
    }
    ensure!(arguments.from > 0 && arguments.from <= arguments.to, "--from is 1 to --to");
    let sizes = std::iter::successors(Some(arguments.from), |it| it.checked_mul(arguments.step));
    let sizes = sizes.take_while(|it| *it <= arguments.to);
    let mut out = std::io::stdout();
    if !arguments.json {
        out.write_all(HEAD.as_bytes())?;
    }
    let mut steps = Vec::new();
    for entries in sizes {
        let step = measure(arguments, entries)
            .with_context(|| format!("a table of {}", show_count(entries as f64)))?;
        // The tables after it may take minutes, or fail.
        let said = if arguments.json { serde_json::to_string(&step)? + "\n" } else { row(&step) };
        out.write_all(said.as_bytes())?;
        out.flush()?;
        steps.push(step);
    }
    if let Some(path) = &arguments.picture {
        let drawn = chart::file(&picture(arguments.structure, &steps))?;
        write_output(path, drawn).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(String::new())
}

const HEAD: &str = "| entries | file | inserts/s | hits/s | misses/s | reads per hit | per miss | RAM per entry, B | resident | open \
                    after a kill, s | after a close, s |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";

fn row(step: &Step) -> String {
    let resident = step.resident_bytes.map_or("?".into(), |bytes| show_bytes(bytes as f64));
    format!(
        "| {} | {} | {} | {} | {} | {:.3} | {:.3} | {:.2} | {resident} | {:.2} | {:.2} |\n",
        show_count(step.entries as f64),
        show_bytes(step.file_bytes as f64),
        show_count(step.inserts_per_s),
        spread(&step.hits_per_s),
        spread(&step.misses_per_s),
        step.reads_per_hit,
        step.reads_per_miss,
        step.ram_bytes_per_entry,
        step.open_killed_s,
        step.open_closed_s,
    )
}

fn spread(all: &Spread) -> String {
    let [median, min, max] = [all.median, all.min, all.max].map(show_count);
    format!("{median} ({min} to {max})")
}

fn picture(structure: Scaled, steps: &[Step]) -> Chart {
    let curve = |name: &str, of: fn(&Step) -> f64| {
        Series::ours(name, steps.iter().map(|step| (step.entries as f64, of(step))).collect())
    };
    Chart {
        title: format!("{}: operations a second, by entries", structure.kind()),
        x: "entries",
        y: "operations a second",
        x_scaling: Scaling::Logarithmic,
        y_scaling: Scaling::Logarithmic,
        series: vec![
            curve("inserts", |step| step.inserts_per_s),
            curve("misses", |step| step.misses_per_s.median),
            curve("hits", |step| step.hits_per_s.median),
        ],
    }
}

/// Fills a table, kills the process that filled it, opens the table, looks keys up, closes it, and opens it
/// again.
fn measure(arguments: &Arguments, entries: u64) -> Result<Step> {
    let file = arguments.dir.join(format!("scale-{}.nandex", arguments.structure.kind()));
    remove(&file)?;
    let filled = fill_and_kill(arguments, entries, &file)?;
    let (volume, table, open_killed_s) = open(&file)?;
    let before = table.stats();
    let (mut hits, mut misses) = (Vec::new(), Vec::new());
    for round in 0..arguments.rounds.max(1) {
        let mut rng = Rng::new(entries, 0, round as u64);
        let space = KeySpace::new(1);
        let start = round as u64 * arguments.lookups;
        hits.push(look(&table, arguments.lookups, true, |_| space.key(rng.below(entries)))?);
        misses.push(look(&table, arguments.lookups, false, |it| space.absent(start + it))?);
    }
    let after = table.stats();
    let lookups = (arguments.lookups * hits.len() as u64) as f64;
    let resident_bytes = rss_bytes();
    let file_bytes = fs::metadata(&file)?.len();
    table.close()?;
    drop(volume);
    let (volume, table, open_closed_s) = open(&file)?;
    table.close()?;
    drop(volume);
    remove(&file)?;
    Ok(Step {
        entries,
        file_bytes,
        inserts_per_s: entries as f64 / filled.seconds,
        hits_per_s: Spread::of(hits).context("rounds")?,
        misses_per_s: Spread::of(misses).context("rounds")?,
        reads_per_hit: (after.hit_reads - before.hit_reads) as f64 / lookups,
        reads_per_miss: (after.miss_reads - before.miss_reads) as f64 / lookups,
        ram_bytes_per_entry: after.ram_bytes as f64 / entries as f64,
        resident_bytes,
        open_killed_s,
        open_closed_s,
    })
}

fn remove(file: &Path) -> Result<()> {
    if file.exists() {
        fs::remove_file(file).with_context(|| format!("removing {}", file.display()))?;
    }
    Ok(())
}

/// Opens the table; the last result is the time in seconds.
fn open(file: &Path) -> Result<(Volume, AnyTable, f64)> {
    let start = Instant::now();
    let device = Arc::new(FileDevice::open(file, &FileOptions::default())?);
    let volume = Volume::open(device, VolumeOpenOptions::default())?;
    let table = AnyTable::open(&volume, "t")?;
    Ok((volume, table, start.elapsed().as_secs_f64()))
}

/// Returns the lookups a second.
fn look(
    table: &AnyTable,
    lookups: u64,
    is_there: bool,
    mut key: impl FnMut(u64) -> u64,
) -> Result<f64> {
    let mut seconds = 0.0;
    for first in (0..lookups).step_by(usize::try_from(BATCH)?) {
        let batch = first..(first + BATCH).min(lookups);
        let keys: Vec<_> = batch.map(|it| key(it).to_le_bytes()).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|it| &it[..]).collect();
        let start = Instant::now();
        let found = table.get_many(&keys)?;
        seconds += start.elapsed().as_secs_f64();
        let wrong = found.iter().filter(|it| it.is_some() != is_there).count();
        ensure!(wrong == 0, "{wrong} of {} lookups are wrong", keys.len());
    }
    Ok(lookups as f64 / seconds)
}

/// Starts another process that fills the file, and kills it as soon as all entries are durable.
fn fill_and_kill(arguments: &Arguments, entries: u64, file: &Path) -> Result<Fill> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--from", &entries.to_string(), "--to", &entries.to_string(), "--structure"])
        .args([arguments.structure.kind().as_ref(), "--fill".as_ref(), file.as_os_str()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting the process that fills the table")?;
    let said = first_line(&mut child);
    child.kill()?;
    child.wait()?;
    serde_json::from_str(&said?).context("the process that fills the table has failed")
}

fn first_line(child: &mut Child) -> Result<String> {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().context("its output")?).read_line(&mut line)?;
    Ok(line)
}

fn fill(arguments: &Arguments, file: &Path) -> Result<String> {
    let widths = (u32::try_from(KEY_BYTES)?, u32::try_from(VALUE_BYTES)?);
    // A table that refuses is full when the first of its super tables is, a percent or so early.
    let asked = Requirements {
        policy: arguments.structure.policy(),
        ..Requirements::new(arguments.from + arguments.from / SPARE_SHARE, widths.0, widths.1)
    };
    let config = asked.advise_one(arguments.structure.kind())?.config;
    let options = FileOptions { create: Create::New, ..FileOptions::default() };
    let device = Arc::new(FileDevice::open(file, &options)?);
    let options = VolumeOptions { log_bytes: config.log_bytes_best(), ..VolumeOptions::default() };
    let volume = Volume::create(device, options)?;
    let table = AnyTable::create(&volume, "t", &config)?;
    let (space, start) = (KeySpace::new(1), Instant::now());
    let mut bytes = Vec::with_capacity(usize::try_from(BATCH)?);
    for first in (0..arguments.from).step_by(usize::try_from(BATCH)?) {
        bytes.clear();
        let batch = (first..(first + BATCH).min(arguments.from)).map(|it| space.key(it));
        bytes.extend(batch.map(|key| (key.to_le_bytes(), space.value(key, 0).to_le_bytes())));
        let pairs: Vec<(&[u8], &[u8])> =
            bytes.iter().map(|(key, it)| (&key[..], &it[..])).collect();
        table.insert_many(&pairs)?;
    }
    table.sync()?;
    let said = Fill { seconds: start.elapsed().as_secs_f64() };
    println!("{}", serde_json::to_string(&said)?);
    std::io::stdout().flush()?;
    // The end of the input is the end of the process that started this one.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(String::new())
}
