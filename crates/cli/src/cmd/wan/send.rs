//! `nandex wan send`: sends a file to the other side of a channel.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::console::Console;
use crate::refuse;

use super::cache::CacheArgs;
use super::channel::Channel;
use super::encoding::EncodeArgs;
use super::report::{self, Figures};

/// The file, the channel and the cache.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// File to send; - is stdin, if --to gives the channel
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    /// Command that leads to the other side, such as `ssh host nandex wan receive ...`
    #[arg(long, value_name = "COMMAND")]
    to: Option<String>,
    #[command(flatten)]
    cache: CacheArgs,
    #[command(flatten)]
    encoding: EncodeArgs,
}

/// Sends the file.
///
/// # Errors
/// An input, a channel or a cache that fails; another side that does not receive all of it.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    if args.to.is_none() && args.input.as_os_str() == "-" {
        refuse!("stdin cannot be the input and the channel; name a file, or a command with --to");
    }
    let input = Input::open(&args.input)?;
    send((&args.cache, &args.encoding), input, args.to.as_deref(), console)
}

/// Sends an input through a command, or to stdout.
///
/// # Errors
/// As [`run`].
pub fn send(
    (cache, encoding): (&CacheArgs, &EncodeArgs),
    mut input: Input,
    to: Option<&str>,
    console: &Console,
) -> Result<()> {
    let options = encoding.options()?;
    let cache = cache.open_or_make(console)?;
    let channel = Channel::open(to)?;
    let sent = nandex_wan::send(&cache, &mut input, (channel.from, channel.to), options);
    let stats = channel.ends.end(sent.map_err(Into::into))?;
    let ram_bytes = cache.stats().ram_bytes;
    cache.close()?;
    let figures = if to.is_none() { Figures::Stderr } else { Figures::Stdout };
    report::encoded((&stats, ram_bytes), figures, console)
}

/// A file that is read, or stdin.
pub enum Input {
    /// A file.
    File(File),
    /// Standard input, mostly a pipe.
    Stdin(io::Stdin),
}

impl Input {
    /// Opens a file; `-` is stdin.
    ///
    /// # Errors
    /// A file that cannot be opened.
    pub fn open(path: &Path) -> Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stdin(io::stdin()));
        }
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        Ok(Self::File(file))
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Stdin(stdin) => stdin.read(buffer),
        }
    }
}
