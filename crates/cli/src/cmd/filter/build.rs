//! `nandex filter build`: creates a volume with one filter of all keys of files or stdin.

use anyhow::Result;
use nandex::raw::store::schedule::Channels;

use crate::console::Console;
use crate::devices::VolumeArgs;
use crate::interrupt::Interrupt;
use crate::place::DurabilityArg;
use crate::size;

use super::add;
use super::requirements::{Aim, FilterRequirementArgs};
use crate::geometry::{self, GeometryArg};
use crate::held::{Making, STRIPING, create};
use crate::key_feed::{FeedRam, KeyArgs};

/// The inputs, the output and the sizes.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
    #[command(flatten)]
    keys: KeyArgs,
    /// Name of the filter
    #[arg(long, default_value = "filter")]
    name: String,
    /// Rate of false positives, once the filter holds the number of keys it is sized for
    #[arg(long, visible_alias = "fpr", value_name = "RATE", value_parser = size::parse_rate, default_value = "0.001")]
    rate: f64,
    #[command(flatten)]
    requirements: FilterRequirementArgs,
    /// Keep several levels, as they are when the last key was read
    #[arg(long, conflicts_with = "window")]
    no_compact: bool,
    /// Channels of the device, or of each of several alike, which the volume stores: probe to find them first, a file
    /// with the output of `nandex probe --json`, or none
    #[arg(long, value_name = "SOURCE", default_value = "none")]
    geometry: GeometryArg,
    /// Durability of keys that were read: always, every:MS, or never (only at the end)
    #[arg(long, default_value = "never")]
    durability: DurabilityArg,
}

/// Creates the volume and the filter, adds all keys, and merges all levels into one.
///
/// # Errors
/// An existing file, invalid sizes, an input that cannot be read. The keys read before are in a file that is marked
/// unfinished.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    args.keys.check()?;
    let device = args.geometry.find(&args.volume, console)?;
    let geometry = geometry::of_volume(device, &args.volume, STRIPING)?;
    let channels = geometry.map_or(Channels::opaque(), |it| Channels::of(&it));
    let aim = Aim { rate: Some(args.rate), others: FeedRam::bytes_of_run };
    let config = args.requirements.config(&args.keys, aim, &channels, console)?;
    let making = Making {
        name: &args.name,
        config,
        geometry,
        hasher: args.requirements.hasher()?,
        durability: args.durability.0,
        stated: args.requirements.stated(),
    };
    let opened = create(&args.volume, making, console)?;
    let done = add::feed(
        &opened,
        (&args.keys, FeedRam::of_run(args.requirements.ram(), 0)),
        (console, &interrupt),
    );
    add::finish(&args.volume, opened, done, !args.no_compact, console)
}
