//! `nandex get`: looks keys up.

use std::io::{self, Write};

use anyhow::Result;
use nandex::device::Access;
use nandex::{OpenOptions, TableStats};
use serde_json::json;

use crate::console::Console;
use crate::devices::VolumeArgs;
use crate::exit::{FAILURE, Quiet};
use crate::keys::KeyWords;
use crate::place::{FieldArgs, TableArgs, open_within};
use crate::records::{Columns, json_field, show};
use crate::size::{self, show_count};

/// The table and the keys.
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
    /// RAM for a cache of entries: useful if the same keys are looked up repeatedly
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    cache: Option<u64>,
}

/// Prints a line for each key: the key, a tab and its value; absent keys are named on stderr. With `--json`, an object
/// for each key, with null for an absent value.
///
/// # Errors
/// A key of the wrong width, damage; silently, an absent key.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let cache_bytes = args.cache.unwrap_or(0);
    let options = OpenOptions { cache_bytes, ..OpenOptions::default() };
    let opened = open_within(&args.volume, &args.table, Access::ReadOnly, &options)?;
    let columns = args.fields.columns(&opened.structure)?;
    let mut missing = 0;
    let mut out = io::BufWriter::new(io::stdout().lock());
    args.keys.for_each_batch(&columns.key, |keys| {
        for (key, value) in keys.iter().zip(opened.structure.get_many(keys)?) {
            missing += usize::from(value.is_none());
            print_one(&mut out, console, &columns, key, value.as_deref())?;
        }
        Ok(out.flush()?)
    })?;
    if args.cache.is_some() {
        tell_of_cache(&opened.structure.stats(), console);
    }
    opened.close()?;
    if missing == 0 { Ok(()) } else { Err(Quiet(FAILURE).into()) }
}

/// Reports the effect of the cache.
fn tell_of_cache(stats: &TableStats, console: &Console) {
    if stats.cache_bytes_max == 0 {
        console.note("--cache: this table has none: too little RAM for one, or the policy lru");
        return;
    }
    let (hits, percent) = (show_count(stats.cache_hits), 100.0 * stats.cache_hit_rate());
    console.note(&format!(
        "the cache answered {hits} lookups, {percent:.1} % of those that would have read a page"
    ));
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
