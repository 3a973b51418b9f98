//! `nandex dump`: all records of a table.

use std::io::{self, BufWriter};

use anyhow::Result;

use crate::console::Console;
use crate::devices::VolumeArgs;
use crate::place::{FieldArgs, TableArgs, open};
use crate::records::{RecordFormat, Writer};
use nandex::device::Access;

/// Which table, and how its records are written.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
    /// How records are written
    #[arg(long, default_value = "ndjson")]
    format: RecordFormat,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    fields: FieldArgs,
}

/// Writes the newest version of every entry to stdout, in no particular order.
///
/// # Errors
/// Damage, or stdout's refusal.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let format = if console.json { RecordFormat::Ndjson } else { args.format };
    let opened = open(&args.volume, &args.table, Access::ReadOnly)?;
    let columns = args.fields.columns(&opened.table)?;
    let mut writer = Writer::new(BufWriter::new(io::stdout().lock()), format, columns)?;
    opened.table.for_each(|key, value| writer.write(key, value))?;
    writer.finish()?;
    opened.close()
}
