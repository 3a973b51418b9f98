//! `nandex count build` and `nandex count add`: count the keys of files or stdin.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::ValueEnum;
use nandex::cascade::model::SHARED_HASH_KEY;
use nandex::counting::{Config, Discipline, Keys};
use nandex::store::hash::{HashKind, KeyHasher};
use nandex::{Counter, Filter};
use serde::Serialize;

use super::form::{KeyForm, TEXT_BYTES_MAX, TEXT_BYTES_MIN};
use super::input::{Amount, InputArgs};
use super::open::{OpenedCounts, create, open};
use crate::console::{Console, aligned};
use crate::devices::VolumeArgs;
use crate::exit::{FAILURE, Quiet};
use crate::interrupt::Interrupt;
use crate::place::DurabilityArg;
use crate::size::{self, show_count};

/// Different keys that a table is made for if nothing is known; it grows.
const KEYS_UNKNOWN: u64 = 1_000_000;
/// The fewest keys that an estimate makes a table for.
const KEYS_MIN: u64 = 10_000;

/// The inputs, the output and the sizes.
#[derive(Debug, clap::Args)]
pub struct BuildArgs {
    #[command(flatten)]
    volume: VolumeArgs,
    #[command(flatten)]
    input: InputArgs,
    /// Keys are numbers from 0 to 2^64 - 1, and take 8 bytes
    #[arg(long, conflicts_with_all = ["words", "longest", "rate"])]
    numbers: bool,
    /// The longest key in bytes; all take that many and one more
    #[arg(long, value_name = "BYTES", default_value_t = TEXT_BYTES_MAX,
        value_parser = longest_parser())]
    longest: u8,
    /// Keep fingerprints instead of keys, of any length: they are narrow and cannot be read back, and a key that was
    /// never counted has another's count at this rate
    #[arg(long, visible_alias = "fpr", value_name = "RATE", conflicts_with = "longest")]
    rate: Option<f64>,
    /// Different keys it is made for, and it grows; without it, the estimated number of lines
    #[arg(long, value_name = "COUNT", value_parser = size::parse_count)]
    keys: Option<u64>,
    /// RAM that it may take
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "64MiB")]
    ram: u64,
    /// How counts reach the flash; without it, what suits the RAM
    #[arg(long, value_name = "NAME")]
    discipline: Option<DisciplineArg>,
    /// When a key that was read is durable: always, every:MS or never, which means at the end
    #[arg(long, default_value = "never")]
    durability: DurabilityArg,
}

/// A discipline by its word.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum DisciplineArg {
    /// A full buffer is merged
    Mb,
    /// A full buffer is staged; each group of data blocks has a share of the stage
    Mdb,
    /// A full buffer is staged in one log
    MdbL,
}

/// From where, to where.
#[derive(Debug, clap::Args)]
pub struct AddArgs {
    #[command(flatten)]
    volume: VolumeArgs,
    #[command(flatten)]
    input: InputArgs,
    /// When a key that was added is durable: always, every:MS or never, which means at the end
    #[arg(long, default_value = "every:100")]
    durability: DurabilityArg,
}

/// The result.
#[derive(Debug, Serialize)]
struct Counted {
    path: PathBuf,
    lines_read: u64,
    keys_counted: u64,
    elapsed_s: f64,
    interrupted: bool,
}

/// The hash of all tables of this command, so that they merge.
fn hasher() -> KeyHasher {
    KeyHasher::new(HashKind::Xxh3, SHARED_HASH_KEY)
}

/// Lengths that texts may be limited to.
fn longest_parser() -> clap::builder::RangedI64ValueParser<u8> {
    clap::value_parser!(u8).range(i64::from(TEXT_BYTES_MIN)..=TEXT_BYTES_MAX.into())
}

impl BuildArgs {
    fn config(&self) -> Result<Config> {
        let estimate = || self.input.keys.estimate();
        let q = match self.keys {
            Some(keys) => keys,
            None => estimate()?.map_or(KEYS_UNKNOWN, |keys| keys.max(KEYS_MIN)),
        };
        let keys = match self.rate {
            Some(rate) => Keys::for_rate(q, rate)?,
            None if self.numbers => KeyForm::Numbers.keys(),
            None => KeyForm::Texts(self.longest).keys(),
        };
        let mut config = Config::for_budget(keys, q, self.ram, 1.0)?;
        // More are never buffered, and the log is as long as the buffers.
        config.buffer_entries = config.buffer_entries.min(q.max(config.partitions()));
        config.discipline = match self.discipline {
            None => config.discipline,
            Some(DisciplineArg::Mb) => Discipline::Mb,
            Some(DisciplineArg::Mdb) => Discipline::Mdb,
            Some(DisciplineArg::MdbL) => Discipline::MdbL,
        };
        Ok(config)
    }
}

/// Makes the volume and the table, and counts all keys.
///
/// # Errors
/// An existing file, sizes that cannot work, a bad key. What was counted before is in a file that is marked unfinished.
pub fn build(args: &BuildArgs, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    args.input.keys.check()?;
    let made = (args.config()?, hasher());
    let opened = create(&args.volume, made, args.durability.0, console)?;
    count(opened, (&args.volume, &args.input), (console, &interrupt))
}

/// Counts all keys in a table that is there.
///
/// # Errors
/// A table that cannot be opened, a bad key. What was counted before is in the table and durable.
pub fn add(args: &AddArgs, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    args.input.keys.check()?;
    let opened = open(&args.volume, args.durability.0)?;
    count(opened, (&args.volume, &args.input), (console, &interrupt))
}

fn count(
    opened: OpenedCounts,
    (volume, input): (&VolumeArgs, &InputArgs),
    (console, interrupt): (&Console, &Interrupt),
) -> Result<()> {
    let mut keys_counted = 0;
    let (fed, result) = input.feed(opened.form, (console, interrupt), &mut |amounts| {
        let amounts: Vec<(&[u8], i64)> =
            amounts.iter().map(|it: &Amount| (&it.0[..], it.1)).collect();
        let partly = "of the lines after these, those before the failure may be counted, too";
        opened.table.add_many(&amounts).context(partly)?;
        keys_counted += amounts.len() as u64;
        Ok(())
    });
    let path = volume.file.as_path();
    let place = opened.made.path_of(path);
    let stopped = || format!("stopped after {} lines, which are in {}", fed.keys, place.display());
    if result.is_ok() {
        opened.table.flush()?;
    }
    let mut made = opened.close()?;
    result.with_context(stopped)?;
    if !fed.interrupted {
        made.publish()?;
    } else if let Some(remedy) = made.remedy(path, &place) {
        console.note(&format!("{}; {remedy}", stopped()));
    }
    let counted = Counted {
        path: if fed.interrupted { place } else { path.to_owned() },
        lines_read: fed.keys,
        keys_counted,
        elapsed_s: fed.elapsed_s,
        interrupted: fed.interrupted,
    };
    console.print(&counted, text)?;
    if fed.interrupted { Err(Quiet(FAILURE).into()) } else { Ok(()) }
}

fn text(counted: &Counted) -> String {
    let note = if counted.interrupted { ", interrupted" } else { "" };
    let (keys, lines) = (show_count(counted.keys_counted), show_count(counted.lines_read));
    let counts = format!("{keys} keys of {lines} lines in {:.1} s{note}", counted.elapsed_s);
    aligned(&[("file", counted.path.display().to_string()), ("counted", counts)])
}
