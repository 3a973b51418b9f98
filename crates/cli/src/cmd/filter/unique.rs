//! `nandex filter unique`: prints each key the first time it is seen; a filter remembers the seen keys.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use nandex::Durability;
use nandex::raw::store::hash::KeyHasher;
use nandex::raw::store::schedule::Channels;
use serde::Serialize;

use crate::cmd::dedup::in_scratch;
use crate::console::Console;
use crate::devices::{EngineArgs, VolumeArgs};
use crate::exit::{FAILURE, Quiet};
use crate::interrupt::Interrupt;
use crate::size;

use super::kind::KeyFilter;
use super::open::{NameArgs, Opened, open};
use super::requirements::{Aim, FilterRequirementArgs};
use crate::held::{Making, create};
use crate::key_feed::{FeedRam, KeyArgs};

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
    /// Rate of new keys that are left out because they seem to have been seen, for a smaller filter; by default
    /// fingerprints have 62 bits, and one of 100 million different keys is left out with a chance of 1 in 900
    #[arg(long, visible_alias = "fpr", value_name = "RATE", value_parser = size::parse_rate)]
    rate: Option<f64>,
    #[command(flatten)]
    requirements: FilterRequirementArgs,
}

/// The result.
#[derive(Debug, Serialize)]
struct UniqueOutput {
    keys_read: u64,
    unique: u64,
    rate: f64,
    /// The number of new keys that were left out because they seemed to have been seen, as the rate makes us expect.
    left_out_expected: f64,
    elapsed_s: f64,
    keys_per_s: f64,
    interrupted: bool,
    /// The most RAM that the filter, the keys and the work on them took.
    ram_bytes: u64,
}

/// The bytes for each key of a batch: its slice among those that are looked up, its fingerprint with its position, the
/// slice of a key whose page is read, and two answers.
const KEY_BYTES: u64 = 2 * size_of::<&[u8]>() as u64 + 16 + 2;

/// The RAM of the keys. Once the filter is larger than its buffers, it is read from front to back for each batch, so
/// half of the RAM is for large batches.
#[derive(Clone, Copy, Debug)]
struct KeysRam {
    feed: FeedRam,
    recent_bytes: u64,
}

impl KeysRam {
    /// Returns the share of a run that may take `ram` bytes: a quarter of the first 4 MiB, and half of what follows, up
    /// to 16 MiB.
    fn of_run(ram: u64) -> Self {
        let first = (ram / 4).clamp(512 << 10, 1 << 20);
        let bytes = first + (ram.saturating_sub(4 << 20) / 2).min(15 << 20);
        let recent_bytes = bytes / 8;
        Self { feed: FeedRam { bytes: bytes - recent_bytes, per_key: KEY_BYTES }, recent_bytes }
    }

    fn bytes_of_run(ram: u64) -> u64 {
        let Self { feed, recent_bytes } = Self::of_run(ram);
        feed.bytes + recent_bytes
    }
}

/// Prints each key the first time, in the order of the input. With `--json` prints the number of keys.
///
/// # Errors
/// An input that cannot be read, no space, a failed write to stdout.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    args.keys.check()?;
    let form = args.keys.form()?;
    let opened = place(args, console)?;
    let ram = KeysRam::of_run(args.requirements.ram());
    let mut out = BufWriter::new(io::stdout().lock());
    let mut recent = RecentKeys::new(opened.volume().hasher(), ram.recent_bytes);
    let filter = opened.structure.filter();
    let (mut unique, mut filter_bytes, before) = (0, 0, filter.stats());
    let heard = (console, &interrupt);
    let (fed, result) = args.keys.feed(("read", ram.feed), heard, &mut |keys| {
        let new = first_seen(&opened.structure, &mut recent, keys)?;
        unique += new.len() as u64;
        if !console.json {
            new.iter().try_for_each(|key| form.write(&mut out, key))?;
            out.flush()?;
        }
        // Only printed keys count as seen.
        filter.insert_many(&new)?;
        filter_bytes = opened.structure.ram_bytes().max(filter_bytes);
        Ok(true)
    });
    drop(out);
    let rate = opened.structure.rate_with(&before, unique);
    let seen = UniqueOutput {
        keys_read: fed.keys,
        unique,
        rate,
        left_out_expected: unique as f64 * f64::midpoint(before.rate, rate),
        elapsed_s: fed.elapsed_s,
        keys_per_s: fed.keys_per_s(),
        interrupted: fed.interrupted,
        ram_bytes: fed.ram_bytes + ram.recent_bytes + filter_bytes,
    };
    opened.close()?;
    result?;
    if console.json {
        console.print_peak(&seen, |_| String::new())?;
    }
    if seen.interrupted { Err(Quiet(FAILURE).into()) } else { Ok(()) }
}

/// Opens or creates the filter of seen keys.
fn place(args: &Args, console: &Console) -> Result<Opened> {
    let volume = args.filter.clone().map(|path| VolumeArgs::single(path, args.engine));
    if let Some(volume) = volume.filter(VolumeArgs::is_made) {
        return open(&volume, &NameArgs::default(), Durability::default());
    }
    let aim = Aim { rate: args.rate, others: KeysRam::bytes_of_run };
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

/// The hashes of keys that were seen lately, each in the place that its hash names: a key that comes again soon costs
/// no lookup. Two keys of one hash of 128 bits count as one.
struct RecentKeys {
    hasher: KeyHasher,
    /// A power of two; 0 is no hash.
    places: Vec<u128>,
}

impl RecentKeys {
    fn new(hasher: KeyHasher, bytes: u64) -> Self {
        let most = (bytes / size_of::<u128>() as u64).max(1);
        let places = usize::try_from(1_u64 << most.ilog2()).expect("some MiB of hashes");
        Self { hasher, places: vec![0; places] }
    }

    /// Notes a key, and returns whether it was not seen lately.
    fn is_unknown(&mut self, key: &[u8]) -> bool {
        let hash = self.hasher.hash(key);
        let whole = u128::from(hash.place) << 64 | u128::from(hash.filter);
        let place = hash.filter as usize & (self.places.len() - 1);
        std::mem::replace(&mut self.places[place], whole) != whole
    }
}

/// Returns the keys of a batch that were not seen before, each once.
fn first_seen<'k>(
    filter: &KeyFilter,
    recent: &mut RecentKeys,
    keys: &[&'k [u8]],
) -> Result<Vec<&'k [u8]>> {
    let mut unknown = keys.to_vec();
    unknown.retain(|key| recent.is_unknown(key));
    let mut is_new = filter.first_absent(&unknown)?.into_iter();
    unknown.retain(|_| is_new.next() == Some(true));
    Ok(unknown)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nandex::device::MemoryDevice;
    use nandex::raw::store::hash::HashKind;
    use nandex::{Cascade, Threads, Volume, VolumeOptions, cascade};

    use super::*;

    fn recent(bytes: u64) -> RecentKeys {
        RecentKeys::new(KeyHasher::new(HashKind::default(), 0), bytes)
    }

    #[test]
    fn a_key_is_new_once() {
        let options = VolumeOptions { threads: Threads::Inline, ..VolumeOptions::tiny() };
        let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
        let config = cascade::Config { rate: 1e-6, ..cascade::Config::tiny() };
        let filter = KeyFilter::Set(Cascade::create(&volume, "seen", config).unwrap());
        // With one place, each key is forgotten at once, and the filter knows it.
        for mut recent in [recent(0), recent(1 << 10)] {
            let mut new = Vec::new();
            let mut see = |keys: &[&[u8]]| {
                let some = first_seen(&filter, &mut recent, keys).unwrap();
                filter.filter().insert_many(&some).unwrap();
                new.extend(some.into_iter().map(<[u8]>::to_vec));
            };
            see(&[b"a", b"b", b"a"]);
            see(&[b"b", b"c", b"a"]);
            assert_eq!(new, [b"a", b"b", b"c"]);
            filter.filter().delete_many(&[b"a", b"b", b"c"]).unwrap();
        }
    }

    #[test]
    fn recent_keys_and_batches_keep_to_their_bytes() {
        for ram in [1 << 20, 4 << 20, 8 << 20, 1 << 30] {
            let KeysRam { feed, recent_bytes } = KeysRam::of_run(ram);
            assert!(feed.bytes + recent_bytes <= (ram / 2).max(1 << 19));
            let places = recent(recent_bytes).places;
            let taken = (places.len() * size_of::<u128>()) as u64;
            assert!((recent_bytes / 2..=recent_bytes).contains(&taken), "{ram}: {taken}");
        }
        let left = |ram: u64| ram - KeysRam::bytes_of_run(ram);
        assert!((20..400).all(|step| left(step << 17) <= left((step + 1) << 17)));
    }
}
