//! `nandex-bench-lives`: tables that are lived in, next to what they were after their first fill.
//!
//! Each structure takes its keys once, and then as many updates again and again, or a new key for each that it removes.
//! After each round all is put on flash. It prints rates, bytes written, flash, RAM and how many keys the table says
//! that it has. In the end a part of the keys is looked up: a wrong value is an error.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use nandex::device::{Create, FileDevice, FileOptions};
use nandex::raw::{bufferhash, slicehash};
use nandex::{
    AnyTable, LargeTable, Policy, Requirements, Table, TableStats, Volume, VolumeOptions, rhik,
};
use nandex_bench::keys::{ENTRY_BYTES, KEY_BYTES, KeySpace, Rng, VALUE_BYTES};
use nandex_bench::process::finish;

/// Entries put in a call.
const BATCH: u64 = 1024;
/// Keys that are looked up in the end, at most.
const LOOKUPS: u64 = 20_000;
/// RAM of the volume that a map is in, if none was stated.
const MAP_RAM_BYTES: u64 = 256 << 20;

/// Measures tables over many rounds of updates.
#[derive(Parser, Debug)]
#[command(name = "nandex-bench-lives", version)]
struct Arguments {
    /// Keys of each table.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1000..))]
    entries: u64,
    /// Rounds after the first fill, of as many updates as there are keys.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// What a round does.
    #[arg(long, value_enum, default_value_t = Workload::Update)]
    workload: Workload,
    /// The structures; without it all.
    #[arg(long, value_enum)]
    structure: Vec<Structure>,
    /// RAM that each may take, in bytes; without it as much as it needs.
    #[arg(long)]
    ram: Option<u64>,
    /// Where the volumes are.
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// One line of JSON instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq, Debug)]
enum Workload {
    /// Puts keys again, drawn uniformly.
    Update,
    /// Puts new keys, and removes as many of the oldest.
    Churn,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq, Debug)]
enum Structure {
    /// Made for the keys.
    Bufferhash,
    /// Made for the keys.
    Slicehash,
    Growing,
    GrowingSlicehash,
    Rhik,
    /// A map of keys and values of any size, as `db.map` makes it.
    Map,
}

/// A table or a map.
enum Subject {
    Table(AnyTable),
    Map(LargeTable<AnyTable>),
}

/// What a table is after a round.
#[derive(Clone, serde::Serialize, Debug)]
struct Figures {
    /// Puts a second, a removal and a put together being one; without the flush after them.
    puts_per_s: f64,
    /// Bytes written for each byte of a key and value that was put, with the log.
    written_per_byte: f64,
    /// Keys, as the table says.
    entries: u64,
    flash_bytes: u64,
    file_bytes: u64,
    ram_bytes: u64,
}

/// The life of a table.
#[derive(serde::Serialize, Debug)]
struct Life {
    structure: String,
    fresh: Figures,
    rounds: Vec<Figures>,
    /// Median and least puts a second of the second half of the rounds, over those of the first fill.
    puts_ratio_median: f64,
    puts_ratio_min: f64,
    /// Of the same rounds.
    written_per_byte_median: f64,
    /// The most after a round, over what there was after the first fill.
    flash_ratio_max: f64,
    file_ratio_max: f64,
    ram_ratio_max: f64,
    /// The most keys that a round's count was off, of a hundred.
    entries_off_percent_max: f64,
    /// After the rounds and a first pass over them: keys looked up a second, and put again a second, one in each call.
    gets_per_s: f64,
    single_puts_per_s: f64,
}

fn main() -> ExitCode {
    finish("nandex-bench-lives", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<String> {
    let all = Structure::value_variants();
    let asked = if arguments.structure.is_empty() { all } else { &arguments.structure };
    let lives = asked.iter().map(|it| live(arguments, *it));
    let lives = lives.collect::<Result<Vec<_>>>()?;
    if arguments.json {
        return Ok(serde_json::to_string(&lives)?);
    }
    let head = "structure          first put/s  later, median     min  written/byte   flash    file     RAM  keys off      get/s  put/s singly";
    let line = |it: &Life| {
        format!(
            "{:<18} {:>11.0} {:>14.2} {:>7.2} {:>13.2} {:>7.2} {:>7.2} {:>7.2} {:>7.2} % {:>10.0} {:>13.0}\n",
            it.structure,
            it.fresh.puts_per_s,
            it.puts_ratio_median,
            it.puts_ratio_min,
            it.written_per_byte_median,
            it.flash_ratio_max,
            it.file_ratio_max,
            it.ram_ratio_max,
            it.entries_off_percent_max,
            it.gets_per_s,
            it.single_puts_per_s
        )
    };
    let lines: String = lives.iter().map(line).collect();
    Ok(format!(
        "{head}\n{lines}flash, file and RAM over the same after the first fill; the most of {} rounds\n",
        arguments.rounds
    ))
}

/// The keys of a table, and the version of each value.
struct Keys {
    space: KeySpace,
    rng: Rng,
    versions: Vec<u32>,
    /// The oldest key that was not removed, and how many there are from it on.
    first: u64,
    count: u64,
}

impl Keys {
    fn pair(&self, number: u64) -> ([u8; KEY_BYTES], [u8; VALUE_BYTES]) {
        let key = self.space.key(number);
        let version = self.versions[(number % self.count) as usize];
        (key.to_le_bytes(), self.space.value(key, version.into()).to_le_bytes())
    }
}

fn live(arguments: &Arguments, structure: Structure) -> Result<Life> {
    let name = structure.to_possible_value().map_or_else(String::new, |it| it.get_name().into());
    let file = arguments.dir.join(format!("lives-{name}.nandex"));
    if file.exists() {
        fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))?;
    }
    let subject = create(arguments, structure, &file)?;
    let count = arguments.entries;
    let mut keys = Keys {
        space: KeySpace::new(1),
        rng: Rng::new(1, 0, 0),
        versions: vec![0; usize::try_from(count)?],
        first: 0,
        count,
    };
    let mut rounds = Vec::new();
    for round in 0..=arguments.rounds {
        let before = subject.stats();
        let workload = (round > 0).then_some(arguments.workload);
        let seconds = put_round(&subject, &mut keys, workload)?;
        subject.flush()?;
        let figures = subject.figures(&before, (count, seconds), &file);
        rounds.push(figures.with_context(|| format!("{name}, round {round}"))?);
    }
    let step = (count / LOOKUPS.min(count)) as usize;
    let some = || (keys.first..keys.first + count).step_by(step);
    let check = || {
        some().try_for_each(|number| {
            let (key, value) = keys.pair(number);
            let found = subject.get(&key)?;
            ensure!(found.as_deref() == Some(&value), "{name}: key {number} has {found:?}");
            Ok(())
        })
    };
    check()?;
    let start = Instant::now();
    check()?;
    let gets_per_s = some().count() as f64 / start.elapsed().as_secs_f64();
    let start = Instant::now();
    for number in some() {
        let (key, value) = keys.pair(number);
        subject.put_many(&[(&key, &value)])?;
    }
    let single_puts_per_s = some().count() as f64 / start.elapsed().as_secs_f64();
    if keys.first > 0 {
        let (gone, _) = keys.pair(keys.first - 1);
        ensure!(subject.get(&gone)?.is_none(), "{name}: a key that was removed is there");
    }
    subject.close()?;
    fs::remove_file(&file)?;
    let fresh = rounds.remove(0);
    Ok(summary((name, count), fresh, rounds, (gets_per_s, single_puts_per_s)))
}

fn summary(
    (structure, keys): (String, u64),
    fresh: Figures,
    rounds: Vec<Figures>,
    (gets_per_s, single_puts_per_s): (f64, f64),
) -> Life {
    let later = &rounds[rounds.len() / 2..];
    let median = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let rates: Vec<_> = later.iter().map(|it| it.puts_per_s / fresh.puts_per_s).collect();
    let most = |of: &dyn Fn(&Figures) -> f64| rounds.iter().map(of).fold(0.0, f64::max);
    let over = |of: fn(&Figures) -> u64| most(&|it| of(it) as f64 / of(&fresh).max(1) as f64);
    Life {
        structure,
        puts_ratio_min: rates.iter().copied().fold(f64::INFINITY, f64::min),
        puts_ratio_median: median(rates),
        written_per_byte_median: median(later.iter().map(|it| it.written_per_byte).collect()),
        flash_ratio_max: over(|it| it.flash_bytes),
        file_ratio_max: over(|it| it.file_bytes),
        ram_ratio_max: over(|it| it.ram_bytes),
        entries_off_percent_max: most(&|it| it.entries.abs_diff(keys) as f64 * 100.0 / keys as f64),
        gets_per_s,
        single_puts_per_s,
        fresh,
        rounds,
    }
}

/// Puts as many pairs as there are keys; gives the seconds that it took.
fn put_round(subject: &Subject, keys: &mut Keys, workload: Option<Workload>) -> Result<f64> {
    let mut seconds = 0.0;
    for first in (0..keys.count).step_by(BATCH as usize) {
        let batch = first..(first + BATCH).min(keys.count);
        let mut removed = Vec::new();
        let mut pairs = Vec::new();
        for number in batch {
            let number = match workload {
                None => number,
                Some(Workload::Update) => {
                    let drawn = keys.rng.below(keys.count);
                    keys.versions[drawn as usize] += 1;
                    drawn
                }
                Some(Workload::Churn) => {
                    removed.push(keys.pair(keys.first).0);
                    keys.first += 1;
                    keys.first + keys.count - 1
                }
            };
            pairs.push(keys.pair(number));
        }
        let pairs: Vec<(&[u8], &[u8])> =
            pairs.iter().map(|(key, it)| (&key[..], &it[..])).collect();
        let start = Instant::now();
        removed.iter().try_for_each(|key| subject.remove(key))?;
        subject.put_many(&pairs)?;
        seconds += start.elapsed().as_secs_f64();
    }
    Ok(seconds)
}

fn create(arguments: &Arguments, structure: Structure, file: &Path) -> Result<Subject> {
    let (kind, policy) = match structure {
        Structure::Bufferhash => (bufferhash::KIND, Policy::Reject),
        Structure::Slicehash => (slicehash::KIND, Policy::Reject),
        Structure::Growing => (bufferhash::growing::KIND, Policy::Grow),
        Structure::GrowingSlicehash => (slicehash::growing::KIND, Policy::Grow),
        Structure::Rhik => (rhik::KIND, Policy::Grow),
        Structure::Map => {
            let ram_bytes = arguments.ram.unwrap_or(MAP_RAM_BYTES);
            let db = nandex::options().ram(ram_bytes).create(Create::New).open(file)?;
            return Ok(Subject::Map(db.map("t").create_or_open()?));
        }
    };
    let widths = (u32::try_from(KEY_BYTES)?, u32::try_from(VALUE_BYTES)?);
    // One that grows begins small, and one that does not is made for the keys.
    let entries = if policy == Policy::Grow { 1000 } else { arguments.entries };
    let ram_bytes = arguments.ram;
    let asked =
        Requirements { policy, ram_bytes, ..Requirements::new(entries, widths.0, widths.1) };
    let config = asked.advise_one(kind)?.config;
    let options = FileOptions { create: Create::New, ..FileOptions::default() };
    let device = Arc::new(FileDevice::open(file, &options)?);
    let options = VolumeOptions { log_bytes: config.log_bytes_best(), ..VolumeOptions::default() };
    let volume = Volume::create(device, options)?;
    Ok(Subject::Table(AnyTable::create(&volume, "t", &config)?.with_spare_ram()))
}

impl Subject {
    fn table(&self) -> &AnyTable {
        match self {
            Self::Table(table) => table,
            Self::Map(map) => map.table(),
        }
    }

    fn put_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        match self {
            Self::Table(table) => table.insert_many(pairs)?,
            Self::Map(map) => map.put_many(pairs)?,
        }
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Result<()> {
        match self {
            Self::Table(table) => table.remove(key)?,
            Self::Map(map) => map.remove(key)?,
        }
        Ok(())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(match self {
            Self::Table(table) => table.get(key)?.map(|value| value.to_vec()),
            Self::Map(map) => map.get(key)?,
        })
    }

    fn flush(&self) -> Result<()> {
        match self {
            Self::Table(table) => table.flush()?,
            Self::Map(map) => map.flush()?,
        }
        Ok(())
    }

    fn close(self) -> Result<()> {
        match self {
            Self::Table(table) => table.close()?,
            Self::Map(map) => map.close()?,
        }
        Ok(())
    }

    /// Those of the table, and bytes written to a map's value log.
    fn stats(&self) -> (TableStats, u64) {
        match self {
            Self::Table(table) => (table.stats(), 0),
            Self::Map(map) => {
                let stats = map.stats();
                (stats.table, stats.values.written_bytes)
            }
        }
    }

    fn figures(
        &self,
        before: &(TableStats, u64),
        (puts, seconds): (u64, f64),
        file: &Path,
    ) -> Result<Figures> {
        let (stats, of_values) = self.stats();
        let written = |(stats, of_values): &(TableStats, u64)| {
            stats.data_bytes_written + stats.log_bytes_written + of_values
        };
        let since = written(&(stats.clone(), of_values)) - written(before);
        let (flash_bytes, ram_bytes) = match self {
            Self::Table(_) => (stats.flash_bytes, stats.ram_bytes),
            Self::Map(map) => {
                let stats = map.stats();
                (stats.table.flash_bytes + stats.values.flash_bytes, stats.ram_bytes)
            }
        };
        Ok(Figures {
            puts_per_s: puts as f64 / seconds,
            written_per_byte: since as f64 / (puts * ENTRY_BYTES) as f64,
            entries: self.table().stats().entries,
            flash_bytes,
            file_bytes: fs::metadata(file)?.len(),
            ram_bytes,
        })
    }
}
