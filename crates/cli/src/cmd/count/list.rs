//! `nandex count top` and `nandex count dump`: keys with their counts.

use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};

use super::form::KeyForm;
use super::open::{OpenedCounts, open_to_read};
use crate::console::Console;
use crate::devices::VolumeArgs;
use crate::size;

/// Which table, and how many.
#[derive(Debug, clap::Args)]
pub struct TopArgs {
    #[command(flatten)]
    volume: VolumeArgs,
    /// How many keys; they are held in RAM
    #[arg(value_name = "N", value_parser = size::parse_count)]
    count: u64,
}

/// Which table.
#[derive(Debug, clap::Args)]
pub struct DumpArgs {
    #[command(flatten)]
    volume: VolumeArgs,
}

/// Prints the most frequent keys.
///
/// # Errors
/// A failed read, damage, a refusal of stdout.
pub fn top(args: &TopArgs, console: &Console) -> Result<()> {
    let opened = open_to_read(&args.volume)?;
    let top = opened.table.top(usize::try_from(args.count)?)?;
    print(&opened, console, top.into_iter().map(|(key, count)| Ok((key, i64::try_from(count)?))))?;
    opened.close().map(drop)
}

/// Prints all keys, with negative sums, too.
///
/// # Errors
/// As [`top`].
pub fn dump(args: &DumpArgs, console: &Console) -> Result<()> {
    let opened = open_to_read(&args.volume)?;
    let sums = opened.table.iter().map(|entry| {
        let (key, sum) = entry?;
        Ok((key, sum))
    });
    print(&opened, console, sums)?;
    opened.close().map(drop)
}

fn print(
    opened: &OpenedCounts,
    console: &Console,
    entries: impl Iterator<Item = Result<(Vec<u8>, i64)>>,
) -> Result<()> {
    if matches!(opened.form, KeyForm::Fingerprints(_)) {
        console.note("the table keeps fingerprints: keys are shown as those, in hex");
    }
    let mut out = BufWriter::new(io::stdout().lock());
    for entry in entries {
        let (stored, count) = entry.context("cannot read the counts")?;
        let key = opened.form.decode(&stored)?;
        if console.json {
            let line = serde_json::json!({ "key": String::from_utf8_lossy(&key), "count": count });
            serde_json::to_writer(&mut out, &line)?;
        } else {
            out.write_all(&key)?;
            write!(out, "\t{count}")?;
        }
        writeln!(out)?;
    }
    Ok(out.flush()?)
}
