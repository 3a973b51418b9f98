//! `nandex dump`: writes all records of a table, or those that damage has left.

use std::io::{self, BufWriter, Write};

use anyhow::{Context, Error, Result};
use serde::Serialize;

use crate::console::Console;
use crate::devices::VolumeArgs;
use crate::exit::{DAMAGE, Quiet};
use crate::place::{FieldArgs, TableArgs, open};
use crate::records::{RecordFormat, Writer};
use crate::size::{counted, show_count};
use nandex::TableOrMap;
use nandex::device::Access;

/// The most damaged pages that are named; the others are only counted.
const NAMED_MAX: usize = 20;

/// The table, and the format of its records.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
    /// Format of records
    #[arg(long, default_value = "ndjson")]
    format: RecordFormat,
    /// Leave out damaged pages and write all other records; exits with 3 if there is one
    #[arg(long)]
    skip_damaged: bool,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    fields: FieldArgs,
}

/// The pages that were left out.
#[derive(Debug, Default, Serialize)]
struct Skipped {
    table: String,
    records: u64,
    damaged_pages: u64,
    entries_lost_max: u64,
    damage: Vec<DamagedPage>,
    damage_left_out: u64,
}

/// A page that was left out.
#[derive(Debug, Serialize)]
struct DamagedPage {
    page: u64,
    text: String,
}

/// Writes the newest version of every entry to stdout, in no particular order.
///
/// # Errors
/// Damage, unless damaged pages are skipped; a failed write to stdout. Fails silently if damaged pages were skipped.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let format = if console.json { RecordFormat::Ndjson } else { args.format };
    let opened = open(&args.volume, &args.table, Access::ReadOnly)?;
    let columns = args.fields.columns(&opened.structure)?;
    let mut writer = Writer::new(BufWriter::new(io::stdout().lock()), format, columns)?;
    if args.skip_damaged {
        let skipped = Skipped { table: opened.name, ..Skipped::default() };
        let skipped = skipped.dump(&opened.structure, writer)?;
        return skipped.tell(console);
    }
    let dumped = opened.structure.for_each(|key, value| writer.write(key, value));
    // The records written before a failure are useful.
    dumped.map_err(stopped).and(writer.finish().map_err(Error::from))?;
    opened.close().map(drop)
}

/// Adds the remedy for a page that cannot be read or is invalid.
fn stopped(error: Error) -> Error {
    if error.downcast_ref::<nandex::Error>().is_none() {
        return error;
    }
    error.context("not all records are written; --skip-damaged leaves out damaged pages and writes all others")
}

impl Skipped {
    /// Writes all undamaged records.
    fn dump(mut self, table: &TableOrMap, mut writer: Writer<impl Write>) -> Result<Self> {
        table.for_each_past_damage(|item| match item {
            Ok((key, value)) => {
                self.records += 1;
                writer.write(key, value)
            }
            Err(damage) => {
                self.add(damage);
                Ok(())
            }
        })?;
        writer.finish()?;
        Ok(self)
    }

    fn add(&mut self, damage: &nandex::Damage) {
        self.damaged_pages += 1;
        self.entries_lost_max += damage.entries_max;
        if self.damage.len() < NAMED_MAX {
            self.damage.push(DamagedPage { page: damage.page.0, text: damage.to_string() });
        } else {
            self.damage_left_out += 1;
        }
    }

    /// Prints on stderr what was left out.
    fn tell(&self, console: &Console) -> Result<()> {
        if console.json {
            console.note(&serde_json::to_string(self).context("the summary")?);
        } else {
            self.lines().iter().for_each(|line| console.note(line));
        }
        if self.damaged_pages > 0 { Err(Quiet(DAMAGE).into()) } else { Ok(()) }
    }

    fn lines(&self) -> Vec<String> {
        let Self { table, records, damaged_pages, entries_lost_max, .. } = self;
        if *damaged_pages == 0 {
            return Vec::new();
        }
        let named = self.damage.iter().map(|it| format!("damage: table {table}, {}", it.text));
        let mut lines: Vec<String> = named.collect();
        if self.damage_left_out > 0 {
            lines.push(format!("damage: and {}", counted(self.damage_left_out, "further page")));
        }
        lines.push(format!(
            "{} written; {} left out, with at most {} entries; older versions may stand for entries of damaged pages",
            counted(*records, "record"),
            counted(*damaged_pages, "damaged page"),
            show_count(*entries_lost_max)
        ));
        lines
    }
}
