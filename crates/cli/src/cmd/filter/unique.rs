//! `nandex filter unique`: prints each key the first time it is seen; a filter remembers the seen keys.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use nandex::raw::store::schedule::Channels;
use nandex::{Durability, Filter};
use serde::Serialize;

use crate::cmd::dedup::in_scratch;
use crate::console::Console;
use crate::devices::{EngineArgs, VolumeArgs};
use crate::exit::{FAILURE, Quiet};
use crate::interrupt::Interrupt;
use crate::size;

use super::kind::LOOKUP_KEY_BYTES;
use super::open::{NameArgs, Opened, open};
use super::requirements::{Aim, FilterRequirementArgs};
use crate::held::{Making, create};
use crate::key_feed::{FeedRam, KeyArgs};
use crate::resident::resident_peak_bytes;

/// The input, and the filter.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    keys: KeyArgs,
    /// Remember the keys in this volume, and continue with it if it exists
    #[arg(long, value_name = "FILE")]
    filter: Option<PathBuf>,
    #[command(flatten)]
    engine: EngineArgs,
    /// Rate of new keys that are left out because they seem to have been seen
    #[arg(long, visible_alias = "fpr", value_name = "RATE", value_parser = size::parse_rate,
        default_value = "0.000001")]
    rate: f64,
    #[command(flatten)]
    requirements: FilterRequirementArgs,
}

/// The result.
#[derive(Debug, Serialize)]
struct UniqueOutput {
    keys_read: u64,
    unique: u64,
    rate: f64,
    elapsed_s: f64,
    keys_per_s: f64,
    interrupted: bool,
    /// The most RAM that the filter, the keys and the work on them took.
    ram_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    resident_peak_bytes: Option<u64>,
}

/// The bytes for each key of a batch: its slices in a list and in a set, and its lookup.
const KEY_BYTES: u64 = 2 * size_of::<&[u8]>() as u64 + 40 + LOOKUP_KEY_BYTES;

/// Prints each key the first time, in the order of the input. With `--json` prints the number of keys.
///
/// # Errors
/// An input that cannot be read, no space, a failed write to stdout.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    args.keys.check()?;
    let form = args.keys.form()?;
    let opened = place(args, console)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let (mut unique, mut recent, mut filter_bytes) = (0, RecentKeys::default(), 0);
    let ram = FeedRam::of_run(args.requirements.ram(), KEY_BYTES);
    let (fed, result) = args.keys.feed(("read", ram), (console, &interrupt), &mut |keys| {
        let new = first_seen(opened.structure.filter(), &mut recent, keys)?;
        unique += new.len() as u64;
        if !console.json {
            new.iter().try_for_each(|key| form.write(&mut out, key))?;
            out.flush()?;
        }
        // Only printed keys count as seen.
        opened.structure.filter().insert_many(&new)?;
        filter_bytes = opened.structure.ram_bytes().max(filter_bytes);
        Ok(true)
    });
    drop(out);
    let mut seen = UniqueOutput {
        keys_read: fed.keys,
        unique,
        rate: opened.structure.filter().stats().rate,
        elapsed_s: fed.elapsed_s,
        keys_per_s: fed.keys_per_s(),
        interrupted: fed.interrupted,
        ram_bytes: fed.ram_bytes + RECENT_RAM_BYTES + filter_bytes,
        resident_peak_bytes: None,
    };
    opened.close()?;
    result?;
    seen.resident_peak_bytes = resident_peak_bytes();
    if console.json {
        console.print(&seen, |_| String::new())?;
    }
    if seen.interrupted { Err(Quiet(FAILURE).into()) } else { Ok(()) }
}

/// Opens or creates the filter of seen keys.
fn place(args: &Args, console: &Console) -> Result<Opened> {
    let volume = args.filter.clone().map(|path| VolumeArgs::single(path, args.engine));
    if let Some(volume) = volume.filter(VolumeArgs::is_made) {
        return open(&volume, &NameArgs::default(), Durability::default());
    }
    let others = |ram| FeedRam::bytes_of_run(ram) + RECENT_RAM_BYTES;
    let aim = Aim { rate: args.rate, others };
    let config = args.requirements.config(&args.keys, aim, &Channels::opaque(), console)?;
    let (hasher, kept) = (args.requirements.hasher()?, args.filter.is_some());
    let durability = if kept { Durability::default() } else { Durability::Never };
    let stated = args.requirements.stated();
    let making = Making { name: "seen", config, hasher, durability, geometry: None, stated };
    if let Some(path) = &args.filter {
        let opened = create(&VolumeArgs::single(path.clone(), args.engine), making, console)?;
        // From here on it is a filter of the printed keys, however few.
        opened.db.finish()?;
        return Ok(opened);
    }
    in_scratch(("--filter", args.engine), |volume| create(volume, making, console))
}

/// The number of bytes of keys that each half of the recent keys remembers.
const RECENT_BYTES: usize = 128 << 10;
/// The RAM that both halves take; a set takes about as much again as its keys.
const RECENT_RAM_BYTES: u64 = 4 * RECENT_BYTES as u64;

/// Keys that were seen lately: a key that comes again soon costs no lookup. They are in two halves; when the younger
/// one is full, the older one is forgotten.
#[derive(Default)]
struct RecentKeys {
    younger: HashSet<Vec<u8>>,
    younger_bytes: usize,
    older: HashSet<Vec<u8>>,
}

impl RecentKeys {
    fn has(&self, key: &[u8]) -> bool {
        self.younger.contains(key) || self.older.contains(key)
    }

    fn note(&mut self, key: &[u8]) {
        if self.younger.contains(key) {
            return;
        }
        // A set takes about as much again for each key.
        self.younger_bytes += key.len() + size_of::<Vec<u8>>();
        if self.younger_bytes > RECENT_BYTES {
            self.older = std::mem::take(&mut self.younger);
            self.younger_bytes = 0;
        }
        self.younger.insert(key.to_vec());
    }
}

/// Returns the keys of a batch that were not seen before, each once. Looks up each other key in the filter once.
fn first_seen<'k>(
    filter: &dyn Filter,
    recent: &mut RecentKeys,
    keys: &[&'k [u8]],
) -> Result<Vec<&'k [u8]>> {
    let mut here = HashSet::new();
    let others = keys.iter().copied().filter(|key| !recent.has(key));
    let unknown: Vec<_> = others.filter(|key| here.insert(*key)).collect();
    let before = filter.contains_many(&unknown)?;
    keys.iter().for_each(|key| recent.note(key));
    let new = unknown.iter().zip(before).filter(|(_, before)| !before);
    Ok(new.map(|(key, _)| *key).collect())
}

#[cfg(test)]
mod tests {
    use nandex::raw::oracle::Multiset;

    use super::*;

    #[test]
    fn a_key_is_new_once() {
        let (filter, mut recent) = (Multiset::new(), RecentKeys::default());
        let mut new = Vec::new();
        let mut see = |keys: &[&[u8]]| {
            let some = first_seen(&filter, &mut recent, keys).unwrap();
            filter.insert_many(&some).unwrap();
            new.extend(some.into_iter().map(<[u8]>::to_vec));
        };
        see(&[b"a", b"b", b"a"]);
        see(&[b"b", b"c", b"a"]);
        assert_eq!(new, [b"a", b"b", b"c"]);
    }

    #[test]
    fn recent_keys_keep_to_their_bytes() {
        let mut recent = RecentKeys::default();
        for number in 0..100_000_u64 {
            recent.note(&number.to_le_bytes());
        }
        let keys = recent.younger.len() + recent.older.len();
        assert!(keys * (8 + size_of::<Vec<u8>>()) <= 2 * RECENT_BYTES, "{keys} keys");
        assert!(recent.has(&99_999_u64.to_le_bytes()) && !recent.has(&0_u64.to_le_bytes()));
    }
}
