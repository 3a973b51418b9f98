//! `nandex-bench-growth`: a table that grows from a thousand entries, next to one created large.
//!
//! At each power of two it prints RAM per entry, page reads of hits and misses, the rate of the inserts since the one
//! before and the longest of their calls. In the end it prints the tails of all calls: of the inserts, and of lookups
//! one at a time between them. Both tables take the same keys, one after the other.
#![forbid(unsafe_code)]

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use nandex::device::{Create, FileDevice, FileOptions};
use nandex::raw::bufferhash::growing::Growing as GrowingBufferHash;
use nandex::raw::slicehash::growing::Growing as GrowingSliceHash;
use nandex::raw::{bufferhash, slicehash};
use nandex::{AnyTable, Policy, Requirements, Rhik, Table, Volume, VolumeOptions, rhik};
use nandex_bench::keys::{KEY_BYTES, KeySpace, Rng, VALUE_BYTES};
use nandex_bench::percentiles::Recorder;
use nandex_bench::process::finish;

/// Measures a table while it grows.
#[derive(Parser, Debug)]
#[command(name = "nandex-bench-growth", version)]
struct Arguments {
    /// Entries in the end.
    #[arg(long, default_value_t = 64_000_000)]
    entries: u64,
    /// Lookups of keys that are there, and of others, at each power of two.
    #[arg(long, default_value_t = 20_000)]
    lookups: u64,
    /// Entries inserted in a call.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// Calls of inserts between two lookups of a key that is there, which are timed one by one.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    lookup_every: u64,
    /// The structure that grows: bufferhash, slicehash or rhik.
    #[arg(long, value_enum, default_value_t = Grown::Bufferhash)]
    structure: Grown,
    /// RAM of the growing table, in bytes; by default without limit.
    #[arg(long)]
    ram: Option<u64>,
    /// The folder of the volumes.
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// One line of JSON instead of tables.
    #[arg(long)]
    json: bool,
}

/// The structure that grows, next to one of it that was created large.
#[derive(Clone, Copy, clap::ValueEnum, Debug)]
enum Grown {
    Bufferhash,
    Slicehash,
    Rhik,
}

/// A table with this many entries.
#[derive(serde::Serialize, Debug)]
struct Step {
    entries: u64,
    /// Generations of a growing BufferHash, partitions of a growing SliceHash, record tables of a RHIK; 1 for a table
    /// that was created large.
    parts: usize,
    ram_bytes_per_entry: f64,
    reads_per_hit: f64,
    reads_per_miss: f64,
    /// Since the step before.
    inserts_per_s: f64,
    batch_longest_ms: f64,
}

/// A table from its first entry to its last.
#[derive(serde::Serialize, Debug)]
struct Course {
    structure: &'static str,
    steps: Vec<Step>,
    /// From the first entry to the last, without the lookups between.
    inserts_per_s: f64,
    batch_longest_ms: f64,
    /// The 99.9th percentile of the calls of inserts, in microseconds.
    batch_p999_us: f64,
    /// The 99.9th percentile of the lookups between them, in microseconds.
    lookup_p999_us: f64,
}

/// The calls of inserts and the lookups between them.
#[derive(Default, Debug)]
struct Calls {
    inserts: Recorder,
    lookups: Recorder,
    /// The time of all inserts together.
    insert_s: f64,
    longest_ms: f64,
}

impl Calls {
    fn p999_us(calls: &Recorder) -> f64 {
        calls.summary().map_or(f64::NAN, |summary| summary.p999 as f64 / 1e3)
    }
}

#[derive(serde::Serialize, Debug)]
struct Figures {
    growing: Course,
    created_large: Course,
    /// The insert rate of the growing table over that of the other.
    inserts_ratio: f64,
    /// The tail of its inserts over that of the other's inserts.
    batch_p999_ratio: f64,
    /// The tail of its lookups between inserts over that of the other's lookups.
    lookup_p999_ratio: f64,
}

fn main() -> ExitCode {
    finish("nandex-bench-growth", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<String> {
    let growing = course(arguments, Policy::Grow, 1000)?;
    let large = match arguments.structure {
        Grown::Rhik => Policy::Grow,
        Grown::Bufferhash | Grown::Slicehash => Policy::Reject,
    };
    let created_large = course(arguments, large, arguments.entries)?;
    let inserts_ratio = growing.inserts_per_s / created_large.inserts_per_s;
    let batch_p999_ratio = growing.batch_p999_us / created_large.batch_p999_us;
    let lookup_p999_ratio = growing.lookup_p999_us / created_large.lookup_p999_us;
    let figures =
        Figures { growing, created_large, inserts_ratio, batch_p999_ratio, lookup_p999_ratio };
    if arguments.json {
        return Ok(serde_json::to_string(&figures)?);
    }
    let courses = [&figures.growing, &figures.created_large].map(text).concat();
    Ok(format!(
        "{courses}growing over created large: inserts a second {inserts_ratio:.2}, p99.9 of inserts \
         {batch_p999_ratio:.2}, p99.9 of lookups between them {lookup_p999_ratio:.2}"
    ))
}

fn text(course: &Course) -> String {
    let head = "   entries       parts RAM/entry reads/hit reads/miss inserts/s longest batch";
    let line = |step: &Step| {
        format!(
            "{:>10} {:>11} {:>9.2} {:>9.4} {:>10.4} {:>9.0} {:>10.1} ms\n",
            step.entries,
            step.parts,
            step.ram_bytes_per_entry,
            step.reads_per_hit,
            step.reads_per_miss,
            step.inserts_per_s,
            step.batch_longest_ms
        )
    };
    let lines: String = course.steps.iter().map(line).collect();
    let (rate, longest) = (course.inserts_per_s, course.batch_longest_ms);
    format!(
        "{}\n{head}\n{lines}{rate:>63.0} {longest:>10.1} ms in all\n99.9 % of calls: inserts within {:.1} us, \
         lookups between them within {:.0} us\n\n",
        course.structure, course.batch_p999_us, course.lookup_p999_us
    )
}

fn course(arguments: &Arguments, policy: Policy, entries: u64) -> Result<Course> {
    let (kind, structure) = match (arguments.structure, policy) {
        (Grown::Bufferhash, Policy::Grow) => {
            (bufferhash::growing::KIND, "growing BufferHash, from a thousand entries")
        }
        (Grown::Slicehash, Policy::Grow) => {
            (slicehash::growing::KIND, "growing SliceHash, from a thousand entries")
        }
        (Grown::Rhik, _) if entries == arguments.entries => {
            (rhik::KIND, "RHIK, created for all entries")
        }
        (Grown::Rhik, _) => (rhik::KIND, "RHIK, from a thousand entries"),
        (Grown::Bufferhash, _) => (bufferhash::KIND, "BufferHash, created for all entries"),
        (Grown::Slicehash, _) => (slicehash::KIND, "SliceHash, created for all entries"),
    };
    let widths = (u32::try_from(KEY_BYTES)?, u32::try_from(VALUE_BYTES)?);
    let ram_bytes = arguments.ram.filter(|_| policy == Policy::Grow);
    let asked =
        Requirements { policy, ram_bytes, ..Requirements::new(entries, widths.0, widths.1) };
    let config = asked.advise_one(kind)?.config;
    let file = arguments.dir.join(format!("growth-{kind}.nandex"));
    if file.exists() {
        fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))?;
    }
    let options = FileOptions { create: Create::New, ..FileOptions::default() };
    let device = Arc::new(FileDevice::open(&file, &options)?);
    let options = VolumeOptions { log_bytes: config.log_bytes_best(), ..VolumeOptions::default() };
    let volume = Volume::create(device, options)?;
    let table = AnyTable::create(&volume, "t", &config)?;
    let (steps, calls) = grow(arguments, &table)?;
    table.close()?;
    fs::remove_file(&file)?;
    Ok(Course {
        structure,
        batch_longest_ms: steps.iter().map(|step| step.batch_longest_ms).fold(0.0, f64::max),
        steps,
        inserts_per_s: arguments.entries as f64 / calls.insert_s,
        batch_p999_us: Calls::p999_us(&calls.inserts),
        lookup_p999_us: Calls::p999_us(&calls.lookups),
    })
}

/// Inserts all entries, and looks at the table at each power of two.
fn grow(arguments: &Arguments, table: &AnyTable) -> Result<(Vec<Step>, Calls)> {
    let (mut steps, mut calls, mut held) = (Vec::new(), Calls::default(), 0);
    for power in 0.. {
        let until = (1000 << power).min(arguments.entries);
        let before_s = calls.insert_s;
        calls.longest_ms = 0.0;
        insert(arguments, table, held..until, &mut calls)?;
        let per_s = (until - held) as f64 / (calls.insert_s - before_s);
        steps.push(look(arguments, table, until, (per_s, calls.longest_ms))?);
        held = until;
        if held == arguments.entries {
            break;
        }
    }
    Ok((steps, calls))
}

/// Inserts the entries of these numbers, with lookups between.
fn insert(
    arguments: &Arguments,
    table: &AnyTable,
    numbers: Range<u64>,
    calls: &mut Calls,
) -> Result<()> {
    let (space, mut rng) = (KeySpace::new(1), Rng::new(numbers.end, 1, 0));
    let batch_len = usize::try_from(arguments.batch)?;
    let mut bytes = Vec::with_capacity(batch_len);
    for (call, first) in (0_u64..).zip(numbers.clone().step_by(batch_len)) {
        bytes.clear();
        let batch = (first..(first + batch_len as u64).min(numbers.end)).map(|it| space.key(it));
        bytes.extend(batch.map(|key| (key.to_le_bytes(), space.value(key, 0).to_le_bytes())));
        let pairs: Vec<(&[u8], &[u8])> =
            bytes.iter().map(|(key, it)| (&key[..], &it[..])).collect();
        let start = Instant::now();
        table.insert_many(&pairs)?;
        let took = start.elapsed();
        calls.inserts.record(u64::try_from(took.as_nanos())?);
        calls.insert_s += took.as_secs_f64();
        calls.longest_ms = calls.longest_ms.max(took.as_secs_f64() * 1e3);
        if call % arguments.lookup_every == 0 {
            let key = space.key(rng.below(first + 1)).to_le_bytes();
            let start = Instant::now();
            ensure!(table.get(&key)?.is_some(), "an entry that was inserted is not there");
            calls.lookups.record(u64::try_from(start.elapsed().as_nanos())?);
        }
    }
    Ok(())
}

fn parts(table: &AnyTable) -> usize {
    let generations = table.of::<GrowingBufferHash>().map(GrowingBufferHash::generations);
    let partitions = table.of::<GrowingSliceHash>().map(GrowingSliceHash::partitions);
    let tables = table.of::<Rhik>().map(|table| table.rhik_stats().tables as usize);
    generations.or(partitions).or(tables).unwrap_or(1)
}

fn look(
    arguments: &Arguments,
    table: &AnyTable,
    entries: u64,
    (inserts_per_s, batch_longest_ms): (f64, f64),
) -> Result<Step> {
    let (space, mut rng) = (KeySpace::new(1), Rng::new(entries, 0, 0));
    let before = table.stats();
    let keys: Vec<_> = (0..arguments.lookups)
        .flat_map(|it| [space.key(rng.below(entries)), space.absent(it)])
        .map(u64::to_le_bytes)
        .collect();
    let keys: Vec<&[u8]> = keys.iter().map(|it| &it[..]).collect();
    let found = table.get_many(&keys)?;
    let wrong = found.chunks_exact(2).filter(|pair| pair[0].is_none() || pair[1].is_some()).count();
    ensure!(wrong == 0, "{wrong} of {} lookups are wrong", arguments.lookups);
    let after = table.stats();
    let lookups = arguments.lookups as f64;
    Ok(Step {
        entries,
        parts: parts(table),
        ram_bytes_per_entry: after.ram_bytes as f64 / entries as f64,
        reads_per_hit: (after.hit_reads - before.hit_reads) as f64 / lookups,
        reads_per_miss: (after.miss_reads - before.miss_reads) as f64 / lookups,
        inserts_per_s,
        batch_longest_ms,
    })
}
