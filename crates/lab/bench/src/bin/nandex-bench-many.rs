//! `nandex-bench-many`: the number of structures of a kind that one database can have open, and their
//! resources.
//!
//! For each kind it opens one structure after another, as the builders of a database make them, until one is
//! refused or there are enough. Then all of them are used: each takes its keys and is asked for them, in
//! turn.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use nandex::{AnyFilter, AnyTable, Counter, Counting, Database, LargeTable, Policy, Table};
use nandex_bench::keys::{KEY_BYTES, KeySpace, VALUE_BYTES};
use nandex_bench::process::{finish, rss_bytes};

/// Measures how many structures a database holds.
#[derive(Parser, Debug)]
#[command(name = "nandex-bench-many", version)]
struct Arguments {
    /// RAM of the database.
    #[arg(long, default_value = "64MiB")]
    ram: String,
    /// Keys of each structure.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    keys: u64,
    /// The maximum number of structures of a kind.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    structures: u32,
    /// The kinds; without it all.
    #[arg(long, value_enum)]
    kind: Vec<Kind>,
    /// The folder of the databases.
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// One line of JSON instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq, Debug)]
enum Kind {
    /// A table made for the keys.
    Table,
    /// A growing table that begins with the keys.
    GrowingTable,
    /// A map of keys and values of any size, made for the keys.
    Map,
    /// A map with the default options.
    GrowingMap,
    Filter,
    CountingTable,
}

/// An open structure.
enum Subject {
    Table(AnyTable),
    Map(LargeTable<AnyTable>),
    Filter(AnyFilter),
    Counting(Counting),
}

/// The figures when all were open and in use.
#[derive(serde::Serialize, Debug)]
struct Figures {
    kind: String,
    /// Structures that were open at the same time.
    open: usize,
    /// The reason why there were no more; nothing if there were enough.
    refusal: Option<String>,
    /// Mean time of making one, its checkpoints among it.
    make_ms: f64,
    /// Time of closing all, which saves the buffers in RAM.
    close_all_ms: f64,
    /// Time of opening the database again, with all of them closed in it.
    open_database_ms: f64,
    /// Mean time of opening one of them again.
    open_ms: f64,
    /// Keys put a second, and looked up, each structure in turn.
    puts_per_s: f64,
    gets_per_s: f64,
    background_threads: usize,
    /// The RAM that they have claimed, including the maximum of their caches.
    ram_taken_bytes: u64,
    /// The growth of the process's resident memory.
    resident_bytes: Option<u64>,
    file_bytes: u64,
}

fn main() -> ExitCode {
    finish("nandex-bench-many", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<String> {
    let all = Kind::value_variants();
    let asked = if arguments.kind.is_empty() { all } else { &arguments.kind };
    let all = asked.iter().map(|kind| measure(arguments, *kind)).collect::<Result<Vec<_>>>()?;
    if arguments.json {
        return Ok(serde_json::to_string(&all)?);
    }
    let head = "kind             open  ms to make  to open  database  close all  threads  RAM taken  resident  \
                file, MiB    puts/s    gets/s";
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let line = |it: &Figures| {
        format!(
            "{:<15} {:>5} {:>11.2} {:>8.2} {:>9.1} {:>10.1} {:>8} {:>10.1} {:>9.1} {:>10.0} {:>9.0} {:>9.0}\n",
            it.kind,
            it.open,
            it.make_ms,
            it.open_ms,
            it.open_database_ms,
            it.close_all_ms,
            it.background_threads,
            mib(it.ram_taken_bytes),
            it.resident_bytes.map_or(f64::NAN, mib),
            mib(it.file_bytes),
            it.puts_per_s,
            it.gets_per_s
        )
    };
    let lines: String = all.iter().map(line).collect();
    Ok(format!("{head}\n{lines}RAM in MiB; {} of it were stated", arguments.ram))
}

fn measure(arguments: &Arguments, kind: Kind) -> Result<Figures> {
    let path = arguments.dir.join("nandex-bench-many.nandex");
    let before = rss_bytes();
    let options = nandex::options().ram(&*arguments.ram).create(nandex::device::Create::New);
    let db = options.open(&path).with_context(|| path.display().to_string())?;
    let done = measure_in(arguments, kind, &db);
    let file_bytes = std::fs::metadata(&path)?.len();
    drop(db);
    let again = done.and_then(|done| open_again(arguments, kind, &path, done));
    std::fs::remove_file(&path)?;
    let done = again?;
    let resident_bytes = done.resident_bytes.zip(before);
    let resident_bytes = resident_bytes.map(|(after, before)| after.saturating_sub(before));
    Ok(Figures { file_bytes, resident_bytes, ..done })
}

/// Opens the database and its structures again.
fn open_again(arguments: &Arguments, kind: Kind, path: &Path, done: Figures) -> Result<Figures> {
    let began = Instant::now();
    let db = nandex::options().ram(&*arguments.ram).open(path)?;
    let open_database_ms = began.elapsed().as_secs_f64() * 1e3;
    let began = Instant::now();
    let subject = |number| make(&db, kind, format!("s{number}"), arguments.keys);
    let subjects = (0..done.open).map(subject).collect::<nandex::Result<Vec<_>>>()?;
    let open_ms = began.elapsed().as_secs_f64() * 1e3 / subjects.len() as f64;
    let key = KeySpace::new(1).key(0).to_le_bytes();
    for subject in &subjects {
        ensure!(subject.has(&key)?, "a key that was put is not there after an opening");
    }
    Ok(Figures { open_database_ms, open_ms, ..done })
}

fn measure_in(arguments: &Arguments, kind: Kind, db: &Database) -> Result<Figures> {
    let began = Instant::now();
    let (mut subjects, mut refusal) = (Vec::new(), None);
    while subjects.len() < arguments.structures as usize && refusal.is_none() {
        match make(db, kind, format!("s{}", subjects.len()), arguments.keys) {
            Ok(subject) => subjects.push(subject),
            Err(error) => refusal = Some(error.to_string()),
        }
    }
    ensure!(!subjects.is_empty(), "not one: {}", refusal.unwrap_or_default());
    let make_ms = began.elapsed().as_secs_f64() * 1e3 / subjects.len() as f64;
    let space = KeySpace::new(1);
    let numbers = 0..arguments.keys;
    let each = |act: &dyn Fn(&Subject, &[u8]) -> nandex::Result<bool>| -> Result<f64> {
        let began = Instant::now();
        for number in numbers.clone() {
            let key = space.key(number).to_le_bytes();
            for subject in &subjects {
                ensure!(act(subject, &key)?, "a key that was put is not there");
            }
        }
        Ok((subjects.len() as u64 * arguments.keys) as f64 / began.elapsed().as_secs_f64())
    };
    let puts_per_s = each(&|subject, key| subject.put(key).map(|()| true))?;
    let gets_per_s = each(&Subject::has)?;
    let background_threads = db.volume().stats().background_threads;
    let ram_taken_bytes = db.ram_taken().iter().map(|(_, bytes)| bytes).sum();
    let (open, resident_bytes) = (subjects.len(), rss_bytes());
    let began = Instant::now();
    drop(subjects);
    let close_all_ms = began.elapsed().as_secs_f64() * 1e3;
    Ok(Figures {
        kind: kind.to_possible_value().map_or_else(String::new, |it| it.get_name().to_owned()),
        open,
        refusal,
        make_ms,
        close_all_ms,
        open_database_ms: 0.0,
        open_ms: 0.0,
        puts_per_s,
        gets_per_s,
        background_threads,
        ram_taken_bytes,
        resident_bytes,
        file_bytes: 0,
    })
}

fn make(db: &Database, kind: Kind, name: String, keys: u64) -> nandex::Result<Subject> {
    let (key_bytes, value_bytes) = (KEY_BYTES as u32, VALUE_BYTES as u32);
    let table = || db.table(&name).entries(keys).widths(key_bytes, value_bytes);
    Ok(match kind {
        Kind::Table => Subject::Table(table().create_or_open()?),
        Kind::GrowingTable => Subject::Table(table().policy(Policy::Grow).create_or_open()?),
        Kind::Map => Subject::Map(db.map(&name).entries(keys).create_or_open()?),
        Kind::GrowingMap => Subject::Map(db.map(&name).create_or_open()?),
        Kind::Filter => Subject::Filter(db.filter(&name).keys(keys).create_or_open()?),
        Kind::CountingTable => Subject::Counting(db.counting(&name).keys(keys).create_or_open()?),
    })
}

impl Subject {
    fn put(&self, key: &[u8]) -> nandex::Result<()> {
        match self {
            Self::Table(table) => table.insert(key, &[1; VALUE_BYTES]),
            Self::Map(map) => map.put(key, &[1; VALUE_BYTES]),
            Self::Filter(filter) => filter.insert(key),
            Self::Counting(counting) => counting.add(key, 1).map(|_| ()),
        }
    }

    fn has(&self, key: &[u8]) -> nandex::Result<bool> {
        match self {
            Self::Table(table) => table.contains(key),
            Self::Map(map) => Ok(map.get(key)?.is_some()),
            Self::Filter(filter) => filter.contains(key),
            Self::Counting(counting) => Ok(counting.count(key)? > 0),
        }
    }
}
