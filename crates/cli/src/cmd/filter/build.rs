//! `nandex filter build`: a volume with one filter, of all keys of files or stdin.

use anyhow::Result;

use crate::console::Console;
use crate::devices::VolumeArgs;
use crate::interrupt::Interrupt;
use crate::place::DurabilityArg;

use super::add;
use super::keys::KeyArgs;
use super::open::{Making, create};
use super::requirements::FilterRequirementArgs;

/// From where, to where, and how large.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
    #[command(flatten)]
    keys: KeyArgs,
    /// The filter's name
    #[arg(long, default_value = "filter")]
    name: String,
    /// Share of absent keys that are said to be there, once it holds as many keys as it is made for
    #[arg(long, visible_alias = "fpr", value_name = "RATE", default_value_t = 0.001)]
    rate: f64,
    #[command(flatten)]
    requirements: FilterRequirementArgs,
    /// Leave several levels, as they are when the last key was read
    #[arg(long)]
    no_compact: bool,
    /// When a key that was read is durable: always, every:MS or never, which is at the end
    #[arg(long, default_value = "never")]
    durability: DurabilityArg,
}

/// Makes the volume and the filter, adds all keys, and makes one level of it.
///
/// # Errors
/// A file that is there already, sizes that cannot work; an input that cannot be read: what was read before it is in
/// a file that is marked unfinished.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    args.keys.check()?;
    let making = Making {
        name: &args.name,
        config: args.requirements.config(&args.keys, args.rate, console)?,
        hasher: args.requirements.hasher()?,
        durability: args.durability.0,
    };
    let opened = create(&args.volume, making, console)?;
    let done = add::feed(&opened, &args.keys, (console, &interrupt));
    add::finish(&args.volume.file, opened, done, !args.no_compact, console)
}
