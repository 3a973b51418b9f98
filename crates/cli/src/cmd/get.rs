//! `nandex get`: looks keys up.

use std::io::{self, Write};

use anyhow::Result;
use nandex::device::Access;
use serde_json::json;

use crate::console::Console;
use crate::devices::VolumeArgs;
use crate::exit::{FAILURE, Quiet};
use crate::keys::KeyWords;
use crate::place::{FieldArgs, TableArgs, open};
use crate::records::{Columns, json_field, show};

/// Which keys, and where.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
    #[command(flatten)]
    keys: KeyWords,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    fields: FieldArgs,
}

/// Prints a line for each key: the key, a tab and its value; absent keys are named on stderr. With `--json`,
/// an object for each key, with null for an absent value.
///
/// # Errors
/// A key of the wrong width, damage, or, quietly, an absent key.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let opened = open(&args.volume, &args.table, Access::ReadOnly)?;
    let columns = args.fields.columns(&opened.table)?;
    let mut missing = 0;
    let mut out = io::BufWriter::new(io::stdout().lock());
    args.keys.for_each_batch(&columns.key, |keys| {
        for (key, value) in keys.iter().zip(opened.table.get_many(keys)?) {
            missing += usize::from(value.is_none());
            print_one(&mut out, console, &columns, key, value.as_deref())?;
        }
        Ok(out.flush()?)
    })?;
    opened.close()?;
    if missing == 0 { Ok(()) } else { Err(Quiet(FAILURE).into()) }
}

fn print_one(
    out: &mut impl Write,
    console: &Console,
    columns: &Columns,
    key: &[u8],
    value: Option<&[u8]>,
) -> Result<()> {
    if console.json {
        let value = value.map(|value| json_field(&columns.value, value)).transpose()?;
        writeln!(out, "{}", json!({"key": json_field(&columns.key, key)?, "value": value}))?;
        return Ok(());
    }
    let key = show(&columns.key, key)?;
    match value {
        Some(value) => writeln!(out, "{key}\t{}", show(&columns.value, value)?)?,
        None => console.note(&format!("{key}: not there")),
    }
    Ok(())
}
