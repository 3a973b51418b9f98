//! `nandex kvssd list`: lists the keys of a key space.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use nandex::device::Access;
use nandex_kvssd::{IteratedPair, IteratorKind};
use serde_json::Map;

use super::pairs::filter;
use super::place::SpaceArgs;
use super::shown::{field, key_text};
use crate::console::Console;
use crate::exit::{FAILURE, Quiet};
use crate::interrupt::Interrupt;

/// The number of bytes of pairs that are read together: two of the longest, and more of others.
const LIST_BYTES: u64 = 5 << 20;

/// The keys to list.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    place: SpaceArgs,
    /// List only keys that begin with these bytes, at most four
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
    /// Print the values as well: key, tab, value
    #[arg(long)]
    values: bool,
}

/// Prints keys, in no particular order.
///
/// # Errors
/// No such key space, damage; silently, an interrupt.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let filter = filter(args.prefix.as_deref())?;
    let kind = if args.values { IteratorKind::Pairs } else { IteratorKind::Keys };
    let is_end = args.place.with(Access::ReadOnly, |_, space| {
        let number = space.open_iterator(filter, kind)?;
        let mut out = BufWriter::new(io::stdout().lock());
        let mut is_end = false;
        while !is_end && !interrupt.is_set() {
            let part = space.iterate(number, LIST_BYTES)?;
            part.pairs.iter().try_for_each(|pair| print_one(&mut out, pair, console))?;
            is_end = part.is_end;
        }
        out.flush()?;
        Ok(is_end)
    })?;
    if is_end { Ok(()) } else { Err(Quiet(FAILURE).into()) }
}

fn print_one(out: &mut impl Write, pair: &IteratedPair, console: &Console) -> Result<()> {
    if console.json {
        let value = pair.value.iter().map(|value| field("value", value));
        let fields = std::iter::once(field("key", &pair.key)).chain(value);
        serde_json::to_writer(&mut *out, &Map::from_iter(fields))?;
        return Ok(writeln!(out)?);
    }
    let value = pair.value.as_ref().map(|value| format!("\t{}", key_text(value)));
    Ok(writeln!(out, "{}{}", key_text(&pair.key), value.unwrap_or_default())?)
}
