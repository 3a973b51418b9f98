//! `nandex count top` and `nandex count dump`: keys with their counts.

use std::io::{self, BufWriter, IsTerminal, Write};

use anyhow::{Context, Result};
use nandex::Filter;
use nandex::counting::TopKeys;

use super::form::KeyForm;
use super::open::{CountsArgs, OpenedCounts};
use super::written::WrittenKeys;
use crate::console::{Console, ProgressMode};
use crate::field::FieldFormat;
use crate::size;

/// The number of keys between two progress reports.
const KEYS_PER_NOTE: u64 = 1024;

/// The table, and the number of keys.
#[derive(Debug, clap::Args)]
pub struct TopArgs {
    #[command(flatten)]
    table: DumpArgs,
    /// Number of keys, which are kept in RAM
    #[arg(value_name = "N", value_parser = size::parse_count)]
    count: u64,
}

/// The table.
#[derive(Debug, clap::Args)]
pub struct DumpArgs {
    #[command(flatten)]
    counts: CountsArgs,
    /// Format of keys; default: text, but u64 for numbers and hex for others of fixed width
    #[arg(long, value_name = "FORMAT")]
    key_format: Option<FieldFormat>,
}

/// Prints the most frequent keys.
///
/// # Errors
/// A failed read, damage, a failed write to stdout.
pub fn top(args: &TopArgs, console: &Console) -> Result<()> {
    let (opened, mut printer) = begin(&args.table, console)?;
    let mut top = TopKeys::new(usize::try_from(args.count)?);
    each(&opened, console, |key, sum| {
        top.offer(key, sum);
        Ok(())
    })?;
    for (key, count) in top.into_sorted() {
        printer.print(&key, i64::try_from(count)?)?;
    }
    printer.out.flush()?;
    opened.close().map(drop)
}

/// Prints all keys, including those with negative sums.
///
/// # Errors
/// As [`top`].
pub fn dump(args: &DumpArgs, console: &Console) -> Result<()> {
    let (opened, mut printer) = begin(args, console)?;
    let is_shown = console.progress == ProgressMode::Auto && io::stdout().is_terminal();
    // A progress bar would appear between the keys.
    let progress = if is_shown { ProgressMode::None } else { console.progress };
    each(&opened, &Console { progress, ..*console }, |key, sum| printer.print(key, sum))?;
    printer.out.flush()?;
    opened.close().map(drop)
}

fn begin(args: &DumpArgs, console: &Console) -> Result<(OpenedCounts, Printer)> {
    let opened = args.counts.open_to_read()?;
    let written = WrittenKeys::new(opened.form(), args.key_format)?;
    if matches!(opened.form(), KeyForm::Fingerprints(_)) {
        console.note("the table keeps fingerprints: keys are shown as those, in hex");
    }
    let out = BufWriter::new(io::stdout().lock());
    Ok((opened, Printer { written, is_json: console.json, out }))
}

/// Passes all keys, as they are stored, with their sums.
fn each(
    opened: &OpenedCounts,
    console: &Console,
    mut act: impl FnMut(&[u8], i64) -> Result<()>,
) -> Result<()> {
    let bytes = opened.structure.stats().flash_bytes;
    let meter = console.meter("reading", Some(bytes));
    let mut counts = opened.structure.iter();
    let mut number = 0_u64;
    while let Some(entry) = counts.next() {
        let (key, sum) = entry.context("cannot read the counts")?;
        act(&key, sum)?;
        number += 1;
        if number.is_multiple_of(KEYS_PER_NOTE) {
            meter.at((counts.share_read() * bytes as f64) as u64);
        }
    }
    meter.finish();
    Ok(())
}

/// Prints a key and its count on each line.
struct Printer {
    written: WrittenKeys,
    is_json: bool,
    out: BufWriter<io::StdoutLock<'static>>,
}

impl Printer {
    fn print(&mut self, stored: &[u8], count: i64) -> Result<()> {
        if self.is_json {
            writeln!(self.out, "{}", self.written.json(stored, count)?)?;
        } else {
            writeln!(self.out, "{}\t{count}", self.written.line(stored)?)?;
        }
        Ok(())
    }
}
