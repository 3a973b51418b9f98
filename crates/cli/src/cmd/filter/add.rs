//! `nandex filter add`: adds keys to an existing filter.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::console::{Console, aligned};
use crate::devices::{FileBytes, VolumeArgs};
use crate::exit::{FAILURE, Quiet};
use crate::interrupt::Interrupt;
use crate::place::DurabilityArg;
use crate::size::show_count;

use super::figures::FilterFigures;
use super::open::{NameArgs, Opened, open};
use crate::key_feed::{FeedRam, FeedResult, KeyArgs};

/// The keys and the filter.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    name: NameArgs,
    /// Merge all levels into one, so that a lookup reads one page
    #[arg(long)]
    compact: bool,
    /// Durability of added keys: always, every:MS, or never (only at the end)
    #[arg(long, default_value = "every:100")]
    durability: DurabilityArg,
}

/// The result.
#[derive(Debug, Serialize)]
pub struct Added {
    path: PathBuf,
    name: String,
    keys_read: u64,
    elapsed_s: f64,
    keys_per_s: f64,
    interrupted: bool,
    #[serde(flatten)]
    files: Option<FileBytes>,
    #[serde(flatten)]
    figures: FilterFigures,
}

/// Adds all keys and makes them durable.
///
/// # Errors
/// An input that cannot be read, a filter that refuses keys. Keys before it are in the filter and durable.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    args.keys.check()?;
    let opened = open(&args.volume, &args.name, args.durability.0)?;
    if args.compact {
        opened.structure.set("it has no levels to merge; omit --compact")?;
    }
    let ram = opened.structure.update_feed(0);
    let done = feed(&opened, (&args.keys, ram), (console, &interrupt));
    finish(&args.volume, opened, done, args.compact, console)
}

/// Adds all keys. The result has the most RAM that the filter and the keys took.
pub fn feed(
    opened: &Opened,
    (keys, ram): (&KeyArgs, FeedRam),
    heard: (&Console, &Interrupt),
) -> (FeedResult, Result<()>) {
    let (filter, mut filter_bytes) = (opened.structure.filter(), 0);
    let (fed, result) = keys.feed(("adding", ram), heard, &mut |keys| {
        filter.insert_many(keys)?;
        filter_bytes = opened.structure.ram_bytes().max(filter_bytes);
        Ok(true)
    });
    (FeedResult { ram_bytes: fed.ram_bytes + filter_bytes, ..fed }, result)
}

/// Closes the filter and reports the result. A new filter gets its name once it has all keys.
///
/// # Errors
/// The error that ended the additions; a failed write or sync.
pub fn finish(
    volume: &VolumeArgs,
    opened: Opened,
    (fed, result): (FeedResult, Result<()>),
    compact: bool,
    console: &Console,
) -> Result<()> {
    let FeedResult { keys: keys_read, elapsed_s, interrupted, ram_bytes } = fed;
    let path = volume.file.as_path();
    let place = opened.db.unfinished().path_of(path);
    let stopped = || format!("stopped after {keys_read} keys, which are in {}", place.display());
    if result.is_err() {
        opened.close()?;
        return result.with_context(stopped);
    }
    opened.structure.settle(compact && !interrupted)?;
    let mut added = Added {
        path: if interrupted { place.clone() } else { path.to_owned() },
        name: opened.name.clone(),
        keys_read,
        elapsed_s,
        keys_per_s: fed.keys_per_s(),
        interrupted,
        files: None,
        figures: FilterFigures::of(opened.structure.filter(), opened.volume().hasher())
            .at_peak(ram_bytes),
    };
    let made = opened.close()?;
    if !interrupted {
        made.finish()?;
        added.files = Some(volume.file_bytes()?);
    } else if let Some(remedy) = made.remedy(path, &place) {
        console.note(&format!("{}; {remedy}", stopped()));
    }
    console.print_peak(&added, text)?;
    if interrupted { Err(Quiet(FAILURE).into()) } else { Ok(()) }
}

fn text(added: &Added) -> String {
    let note = if added.interrupted { ", interrupted" } else { "" };
    let read = format!(
        "{} keys in {:.1} s ({:.0} a second){note}",
        show_count(added.keys_read),
        added.elapsed_s,
        added.keys_per_s
    );
    let mut rows =
        vec![("filter", format!("{} in {}", added.name, added.path.display())), ("read", read)];
    rows.extend(added.figures.rows());
    rows.extend(added.files.map(|files| ("file", files.shown())));
    aligned(&rows)
}
