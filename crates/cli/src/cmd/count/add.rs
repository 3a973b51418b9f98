//! `nandex count build` and `nandex count add`: count the keys of files or stdin.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::ValueEnum;
use nandex::Filter;
use nandex::counting::{Config, Discipline, Keys};
use serde::Serialize;

use super::adding::Adding;
use super::estimate::{EstimateArgs, EstimatedTop, RAM_BYTES, RunningTop};
use super::form::{FIXED_BYTES_MAX, KeyForm, TEXT_BYTES_MAX, TEXT_BYTES_MIN};
use super::input::{InputArgs, InputRead};
use super::open::{CountsArgs, OpenedCounts, create};
use crate::console::{Console, aligned};
use crate::devices::VolumeArgs;
use crate::exit::{FAILURE, LEFT_OUT, Quiet};
use crate::hashing::HashArgs;
use crate::interrupt::Interrupt;
use crate::key_feed::{FeedRam, advised_beside};
use crate::place::DurabilityArg;
use crate::refuse;
use crate::size::{self, show_bytes, show_count};
use crate::stated::StatedArgs;

/// The number of different keys that a table is sized for if nothing is known; it grows.
const KEYS_UNKNOWN: u64 = 1_000_000;
/// The fewest keys that an estimate sizes a table for.
const KEYS_MIN: u64 = 10_000;

/// The number of counted keys after which the gaps between buffers, which grow and are replaced, are given back.
const GAPS_KEYS: u64 = 1 << 16;

/// The inputs, the output and the sizes.
#[derive(Debug, clap::Args)]
pub struct BuildArgs {
    #[command(flatten)]
    volume: VolumeArgs,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    estimate: EstimateArgs,
    /// Keys are numbers from 0 to 2^64 - 1, and take 8 bytes
    #[arg(long, conflicts_with_all = ["words", "longest", "rate", "key_bytes"])]
    numbers: bool,
    /// All keys have this many bytes, and are stored whole; the default for a --width of up to 32 bytes
    #[arg(long, value_name = "BYTES", conflicts_with_all = ["words", "longest", "rate"],
        value_parser = clap::value_parser!(u8).range(1..=i64::from(FIXED_BYTES_MAX)))]
    key_bytes: Option<u8>,
    /// Longest key in bytes, 31 by default; each key takes this many bytes and one more
    #[arg(long, value_name = "BYTES", value_parser = longest_parser())]
    longest: Option<u8>,
    /// Store fingerprints instead of keys, for keys of any length: they are short and cannot be read back, and a key
    /// that was never counted has the count of another one at this rate
    #[arg(long, visible_alias = "fpr", value_name = "RATE", value_parser = size::parse_rate,
        conflicts_with = "longest")]
    rate: Option<f64>,
    /// Number of different keys to size the table for, which grows; default: the estimated number of lines
    #[arg(long, value_name = "COUNT", value_parser = size::parse_some)]
    keys: Option<u64>,
    /// Most RAM to use
    #[arg(long, value_name = "SIZE", value_parser = size::parse_some_bytes, default_value = "64MiB")]
    ram: u64,
    #[command(flatten)]
    hashing: HashArgs,
    /// Write path of counts to flash; default: the one that suits the RAM
    #[arg(long, value_name = "NAME")]
    discipline: Option<DisciplineArg>,
    #[command(flatten)]
    stated: StatedArgs,
    /// Durability of keys that were read: always, every:MS, or never (only at the end)
    #[arg(long, default_value = "never")]
    durability: DurabilityArg,
}

/// A discipline by its name.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum DisciplineArg {
    /// A full buffer is merged
    Mb,
    /// A full buffer is staged; each group of data blocks has a share of the stage
    Mdb,
    /// A full buffer is staged in one log
    MdbL,
}

/// The inputs and the table.
#[derive(Debug, clap::Args)]
pub struct AddArgs {
    #[command(flatten)]
    counts: CountsArgs,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    estimate: EstimateArgs,
    /// Most RAM to use, which must be enough for the table as it was built; default: that
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    ram: Option<u64>,
    /// Durability of added keys: always, every:MS, or never (only at the end)
    #[arg(long, default_value = "every:100")]
    durability: DurabilityArg,
}

impl AddArgs {
    /// Returns the RAM of the run: at least what the table takes with the keys that are read, and the estimate.
    ///
    /// # Errors
    /// Less than that was stated.
    fn ram(&self, opened: &OpenedCounts) -> Result<u64> {
        let table = opened.structure.config().ram_bytes();
        let estimate = match self.ram {
            Some(ram) => self.estimate.config(opened.form(), ram)?,
            None => None,
        };
        let estimate_bytes = estimate.map_or(0, |it| it.ram_bytes());
        let enough = |ram: u64| FeedRam::of_run(ram, 0).bytes + table + estimate_bytes;
        // The share that reads keys is of all of it, and at most an eighth.
        let least = (table + estimate_bytes) / 7 * 8;
        let least = enough(least).min(enough(u64::MAX)).max(enough(0));
        match self.ram {
            Some(ram) if ram < least => refuse!(
                "--ram {ram} ({}) is too little for {}: its buffers were made for more, and it needs at least {least} \
                 ({}); state that, or more",
                show_bytes(ram),
                self.counts.volume.file.display(),
                show_bytes(least)
            ),
            Some(ram) => Ok(ram),
            None => Ok(least.max(RAM_BYTES)),
        }
    }
}

/// The result.
#[derive(Debug, Serialize)]
struct Counted {
    path: PathBuf,
    lines_read: u64,
    keys_counted: u64,
    /// The number of keys that were left out.
    keys_too_long: u64,
    /// The most RAM that the table, the keys and the estimate took.
    ram_bytes: u64,
    elapsed_s: f64,
    interrupted: bool,
    /// The most frequent of the counted keys, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<EstimatedTop>,
}

/// The lengths that texts may be limited to.
fn longest_parser() -> clap::builder::RangedI64ValueParser<u8> {
    clap::value_parser!(u8).range(i64::from(TEXT_BYTES_MIN)..=TEXT_BYTES_MAX.into())
}

impl From<DisciplineArg> for Discipline {
    fn from(word: DisciplineArg) -> Self {
        match word {
            DisciplineArg::Mb => Self::Mb,
            DisciplineArg::Mdb => Self::Mdb,
            DisciplineArg::MdbL => Self::MdbL,
        }
    }
}

impl BuildArgs {
    /// Returns how keys are stored, and the sizes of a table that suits the RAM.
    fn config(&self) -> Result<(KeyForm, Config)> {
        let estimate = || self.input.keys.estimate();
        let q = match self.keys {
            Some(keys) => keys,
            None => estimate()?.map_or(KEYS_UNKNOWN, |keys| keys.max(KEYS_MIN)),
        };
        let form = self.form(q)?;
        let estimate = self.estimate.config(form, self.ram)?;
        let estimate_bytes = estimate.map_or(0, |it| it.ram_bytes());
        let advise = |ram: u64| {
            let ram = ram.saturating_sub(estimate_bytes);
            match self.discipline {
                None => Config::for_budget(form.keys(), q, ram, 1.0),
                Some(word) => Config::of_discipline(word.into(), form.keys(), q, ram),
            }
        };
        let what = format!("counts of {q} keys of {} bytes", form.keys().stored_bytes());
        let mut config = advised_beside((self.ram, &what), FeedRam::bytes_of_run, advise)?;
        // More are never buffered, and the log is as long as the buffers.
        config.buffer_entries = config.buffer_entries.min(q.max(config.partitions()));
        let config = self.stated.on_one(config)?;
        if config.keys != form.keys() {
            refuse!(
                "--set keys: options say how keys are stored; state --numbers, --key-bytes, --longest or --fpr instead"
            );
        }
        Ok((form, config))
    }

    fn form(&self, q: u64) -> Result<KeyForm> {
        if let Some(rate) = self.rate {
            let bytes = Keys::for_rate(q, rate)?.stored_bytes();
            return Ok(KeyForm::Fingerprints(u8::try_from(bytes)?));
        }
        let longest = KeyForm::Texts(self.longest.unwrap_or(TEXT_BYTES_MAX));
        let takes_any = self.input.words || self.numbers || self.longest.is_some();
        match (self.input.keys.width().filter(|_| !takes_any), self.key_bytes) {
            (Some(width), Some(bytes)) if width != u64::from(bytes) => {
                refuse!(
                    "--width {width} and --key-bytes {bytes}: keys have one width; leave one out"
                )
            }
            (Some(width), _) => match u8::try_from(width) {
                Ok(bytes @ 1..=FIXED_BYTES_MAX) => Ok(KeyForm::Fixed(bytes)),
                _ => refuse!(
                    "--width {width}: keys of up to {FIXED_BYTES_MAX} bytes are stored whole; add --fpr for longer ones"
                ),
            },
            (None, Some(bytes)) => Ok(KeyForm::Fixed(bytes)),
            (None, None) if self.numbers => Ok(KeyForm::Numbers),
            (None, None) => Ok(longest),
        }
    }
}

/// Creates the volume and the table, and counts all keys.
///
/// # Errors
/// An existing file, invalid sizes, a bad key. The keys counted before are in a file that is marked unfinished.
pub fn build(args: &BuildArgs, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    args.input.check()?;
    let hashed = (args.hashing.hasher()?, args.durability.0);
    let (form, config) = args.config()?;
    let made = (form, config, args.stated.stated());
    let opened = create(&args.volume, made, hashed, console)?;
    let top = running_top(&opened, args.estimate, (&args.input, args.ram))?;
    let feed_ram = FeedRam::of_run(args.ram, 0);
    Run { console, interrupt: &interrupt, feed_ram, top }.count(opened, &args.volume, &args.input)
}

/// Counts all keys in an existing table.
///
/// # Errors
/// A table that cannot be opened, a bad key. The keys counted before are in the table and durable.
pub fn add(args: &AddArgs, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    args.input.check()?;
    let opened = args.counts.open(args.durability.0)?;
    let ram = args.ram(&opened)?;
    let top = running_top(&opened, args.estimate, (&args.input, ram))?;
    let feed_ram = FeedRam::of_run(ram, 0);
    Run { console, interrupt: &interrupt, feed_ram, top }.count(
        opened,
        &args.counts.volume,
        &args.input,
    )
}

fn running_top(
    opened: &OpenedCounts,
    args: EstimateArgs,
    (input, run_ram_bytes): (&InputArgs, u64),
) -> Result<Option<RunningTop>> {
    let keys = (opened.form(), input.key_format);
    RunningTop::new(args, keys, (opened.volume().hasher(), run_ram_bytes))
}

/// A run that counts keys and reports.
struct Run<'a> {
    console: &'a Console,
    interrupt: &'a Interrupt,
    feed_ram: FeedRam,
    top: Option<RunningTop>,
}

impl Run<'_> {
    fn count(mut self, opened: OpenedCounts, volume: &VolumeArgs, input: &InputArgs) -> Result<()> {
        let console = self.console;
        let form = opened.form();
        let (read, keys_counted, result) = self.feed(&opened, input);
        let (fed, path) = (read.fed, volume.file.as_path());
        let estimate = self.top.as_ref().map(RunningTop::estimated).transpose()?;
        let place = opened.db.unfinished().path_of(path);
        let stopped =
            || format!("stopped after {} lines, which are in {}", fed.keys, place.display());
        if result.is_ok() {
            opened.structure.flush()?;
        }
        let made = opened.close()?;
        read.left_out.note(form).iter().for_each(|note| console.note(note));
        result.with_context(stopped)?;
        if !fed.interrupted {
            made.finish()?;
        } else if let Some(remedy) = made.remedy(path, &place) {
            console.note(&format!("{}; {remedy}", stopped()));
        }
        self.tell(&Counted {
            path: if fed.interrupted { place } else { path.to_owned() },
            lines_read: fed.keys,
            keys_counted,
            keys_too_long: read.left_out.keys,
            ram_bytes: fed.ram_bytes + estimate.as_ref().map_or(0, EstimatedTop::ram_bytes),
            elapsed_s: fed.elapsed_s,
            interrupted: fed.interrupted,
            estimate,
        })
    }

    /// Counts all batches. Returns the number of keys, also after a failure.
    fn feed(&mut self, opened: &OpenedCounts, input: &InputArgs) -> (InputRead, u64, Result<()>) {
        let (mut adding, mut keys_counted, mut table_bytes) = (Adding::new(opened), 0, 0);
        let heard = (self.console, self.interrupt);
        let feed = (opened.form(), self.feed_ram);
        let (mut read, result) = input.feed(feed, heard, &mut |amounts| {
            if let Some(top) = &mut self.top {
                top.add(amounts)?;
            }
            let partly = "of the lines after these, those before the failure may be counted, too";
            adding.add(amounts).context(partly)?;
            keys_counted += amounts.len() as u64;
            table_bytes = opened.structure.ram_bytes().max(table_bytes);
            if keys_counted / GAPS_KEYS > (keys_counted - amounts.len() as u64) / GAPS_KEYS {
                nandex::device::give_back_gaps();
            }
            Ok(())
        });
        read.fed.ram_bytes += table_bytes;
        // Also after a failure: the keys before it are kept.
        let finished = adding.finish();
        (read, keys_counted, result.and(finished))
    }

    fn tell(&self, counted: &Counted) -> Result<()> {
        let note = counted.estimate.as_ref().and_then(EstimatedTop::note);
        note.iter().for_each(|note| self.console.note(note));
        self.console.print_peak(counted, text)?;
        match (counted.interrupted, counted.keys_too_long) {
            (true, _) => Err(Quiet(FAILURE).into()),
            (false, 1..) => Err(Quiet(LEFT_OUT).into()),
            (false, 0) => Ok(()),
        }
    }
}

fn text(counted: &Counted) -> String {
    let note = if counted.interrupted { ", interrupted" } else { "" };
    let (keys, lines) = (show_count(counted.keys_counted), show_count(counted.lines_read));
    let counts = format!("{keys} keys of {lines} lines in {:.1} s{note}", counted.elapsed_s);
    let mut rows = vec![("file", counted.path.display().to_string()), ("counted", counts)];
    if counted.keys_too_long > 0 {
        rows.push(("too long", format!("{} keys left out", show_count(counted.keys_too_long))));
    }
    rows.extend(counted.estimate.iter().map(|it| ("top", it.summary())));
    let lines = counted.estimate.as_ref().map(EstimatedTop::lines);
    aligned(&rows) + &lines.unwrap_or_default()
}
