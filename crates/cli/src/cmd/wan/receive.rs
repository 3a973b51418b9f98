//! `nandex wan receive`: a file from the other side of a channel.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::console::Console;

use super::cache::CacheArgs;
use super::channel::Channel;
use super::output::Output;
use super::report::{self, Figures};

/// The file, the channel and the cache.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The command that leads to the other side, such as `ssh host nandex wan send ...`
    #[arg(long, value_name = "COMMAND")]
    from: Option<String>,
    #[command(flatten)]
    cache: CacheArgs,
}

/// Receives the file, which gets its name when all of it is there.
///
/// # Errors
/// A stream that is cut off or damaged; an output, a channel or a cache that fails. No file is left then.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let (output, from) = (Some(&*args.output), args.from.as_deref());
    receive(&args.cache, output, from, console)
}

/// Receives from a command or from stdin, into a file or to stdout.
///
/// # Errors
/// As [`run`].
pub fn receive(
    cache: &CacheArgs,
    output: Option<&Path>,
    from: Option<&str>,
    console: &Console,
) -> Result<()> {
    let cache = cache.open_or_make(console)?;
    let mut output = Output::begin(output, console)?;
    let has_stdout = from.is_none() || output.is_stdout();
    let figures = if has_stdout { Figures::Stderr } else { Figures::Stdout };
    let channel = match Channel::open(from) {
        Ok(channel) => channel,
        Err(error) => return output.end(Err(error)),
    };
    let received = nandex_wan::receive(&cache, (channel.from, channel.to), &mut output);
    let received = channel.ends.end(received.map_err(Into::into));
    let stats = output.end(received)?;
    cache.close()?;
    report::decoded(&stats, figures, console)
}
