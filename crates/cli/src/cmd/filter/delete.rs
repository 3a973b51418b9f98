//! `nandex filter delete`: deletes keys from a filter.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use nandex::{Counter, Filter};
use serde::Serialize;

use crate::console::{Console, aligned};
use crate::devices::VolumeArgs;
use crate::exit::{FAILURE, Quiet};
use crate::interrupt::Interrupt;
use crate::place::DurabilityArg;
use crate::size::show_count;

use super::figures::FilterFigures;
use super::kind::{KeyFilter, LOOKUP_KEY_BYTES};
use super::open::{NameArgs, open};
use crate::key_feed::KeyArgs;

/// The reason why a window deletes nothing.
const NO_DELETES: &str = "it deletes nothing, and forgets its oldest keys; build one without \
    --window to delete keys";

/// The bytes that a deletion takes for each key of a batch: the lookup, an entry of a hash map, and an amount.
const DELETE_KEY_BYTES: u64 = LOOKUP_KEY_BYTES + 2 * 25 + 24;

/// The keys, and the filter.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Only keys that were added may be deleted. One that was not added may share the fingerprint of \
    one that was, at the filter's rate, and deletes that one. Absent keys are skipped."
)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    name: NameArgs,
    /// Delete each key as often as it was added, instead of once
    #[arg(long, conflicts_with = "unchecked")]
    all: bool,
    /// Skip the test whether keys are present: faster, for keys that are all known to have been added
    #[arg(long)]
    unchecked: bool,
    /// Merge all levels into one, which frees the space of deleted keys
    #[arg(long)]
    compact: bool,
    /// Durability of deletions: always, every:MS, or never (only at the end)
    #[arg(long, default_value = "every:100")]
    durability: DurabilityArg,
}

/// The result.
#[derive(Debug, Serialize)]
struct Deleted {
    path: PathBuf,
    name: String,
    keys_read: u64,
    deleted: u64,
    absent: u64,
    elapsed_s: f64,
    interrupted: bool,
    #[serde(flatten)]
    figures: FilterFigures,
}

/// Deletes the keys.
///
/// # Errors
/// An input that cannot be read; keys before it are deleted durably.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    args.keys.check()?;
    let opened = open(&args.volume, &args.name, args.durability.0)?;
    opened.structure.set(NO_DELETES)?;
    let mut deleted = 0;
    let (ram, mut filter_bytes) = (opened.structure.update_feed(DELETE_KEY_BYTES), 0);
    let (fed, result) = args.keys.feed(("deleting", ram), (console, &interrupt), &mut |keys| {
        deleted += delete(&opened.structure, keys, args)?;
        filter_bytes = opened.structure.ram_bytes().max(filter_bytes);
        Ok(true)
    });
    opened.structure.settle(args.compact && result.is_ok() && !fed.interrupted)?;
    let done = Deleted {
        path: args.volume.file.clone(),
        name: opened.name.clone(),
        keys_read: fed.keys,
        deleted,
        absent: fed.keys - deleted.min(fed.keys),
        elapsed_s: fed.elapsed_s,
        interrupted: fed.interrupted,
        figures: FilterFigures::of(opened.structure.filter(), opened.volume().hasher())
            .at_peak(fed.ram_bytes + filter_bytes),
    };
    opened.close()?;
    result.with_context(|| format!("stopped after {} keys, which are deleted", fed.keys))?;
    console.print_peak(&done, text)?;
    if done.interrupted { Err(Quiet(FAILURE).into()) } else { Ok(()) }
}

/// Deletes the keys of a batch that are present, and returns their number.
fn delete(filter: &KeyFilter, keys: &[&[u8]], args: &Args) -> Result<u64> {
    let set = filter.set(NO_DELETES)?;
    if args.unchecked {
        set.delete_many(keys)?;
        return Ok(keys.len() as u64);
    }
    let counts = filter.look_up(keys, true)?;
    // A key that the batch has more often than the filter is deleted only as often as the filter has it.
    let mut left: HashMap<&[u8], u64> = keys.iter().copied().zip(counts).collect();
    let mut amounts: Vec<(&[u8], i64)> = Vec::with_capacity(keys.len());
    for key in keys {
        let left = left.get_mut(key).expect("each key of the batch was counted");
        let taken = if args.all { *left } else { (*left).min(1) };
        *left -= taken;
        if taken > 0 {
            amounts.push((key, -i64::try_from(taken).unwrap_or(i64::MAX)));
        }
    }
    set.add_many(&amounts)?;
    Ok(amounts.len() as u64)
}

fn text(done: &Deleted) -> String {
    let note = if done.interrupted { ", interrupted" } else { "" };
    let (deleted, absent) = (show_count(done.deleted), show_count(done.absent));
    let mut rows = vec![
        ("filter", format!("{} in {}", done.name, done.path.display())),
        ("deleted", format!("{deleted} keys, {absent} were not there{note}")),
    ];
    rows.extend(done.figures.rows());
    aligned(&rows)
}
