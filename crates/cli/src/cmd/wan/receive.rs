//! `nandex wan receive`: receives a file from the other side of a channel.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use crate::console::Console;

use super::cache::CacheArgs;
use super::channel::Channel;
use super::impatient::Impatient;
use super::output::Output;
use super::report::{self, Figures};

/// The file, the channel and the cache.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Command that leads to the other side, such as `ssh host nandex wan send ...`
    #[arg(long, value_name = "COMMAND")]
    from: Option<String>,
    #[command(flatten)]
    silence: SilenceArgs,
    #[command(flatten)]
    cache: CacheArgs,
}

/// The time that the other side may be silent.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct SilenceArgs {
    /// Fail when nothing arrives from the other side for this long; default: wait forever
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    silence: Option<u64>,
}

impl SilenceArgs {
    /// Returns whether it was given.
    pub fn is_given(self) -> bool {
        self.silence.is_some()
    }

    /// Limits the silence of the other side.
    fn of(self, from: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        match self.silence {
            None => from,
            Some(silence_s) => Box::new(Impatient::new(from, Duration::from_secs(silence_s))),
        }
    }
}

/// Receives the file, which gets its name when it is complete.
///
/// # Errors
/// A stream that is cut off or damaged, another side that is silent for too long; an output, a channel or a cache that
/// fails. No file is left then.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let (output, from) = (Some(&*args.output), args.from.as_deref());
    receive(&args.cache, output, (from, args.silence), console)
}

/// Receives from a command or from stdin, into a file or to stdout.
///
/// # Errors
/// As [`run`].
pub fn receive(
    cache: &CacheArgs,
    output: Option<&Path>,
    (from, silence): (Option<&str>, SilenceArgs),
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
    let received = nandex_wan::receive(&cache, (silence.of(channel.from), channel.to), &mut output);
    let received = channel.ends.end(received.map_err(Into::into));
    let stats = output.end(received)?;
    let ram_bytes = cache.stats().ram_bytes;
    cache.close()?;
    report::decoded((&stats, ram_bytes), figures, console)
}
