//! `nandex wan store`: writes a file of references in place of a stream.

use std::path::PathBuf;

use anyhow::Result;
use nandex_wan::encode;

use crate::console::Console;

use super::cache::CacheArgs;
use super::encoding::EncodeArgs;
use super::output::Output;
use super::report::{self, Figures};
use super::send::Input;

/// The stream, the file and the cache.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// File to store; - is stdin
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    /// File of references to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    cache: CacheArgs,
    #[command(flatten)]
    encoding: EncodeArgs,
}

/// Stores the stream. The file gets its name when the cache durably has everything that it refers to.
///
/// # Errors
/// An input, an output or a cache that fails; invalid options. No file is left then.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let mut input = Input::open(&args.input)?;
    let options = args.encoding.options()?;
    let cache = args.cache.open_or_make(console)?;
    let mut output = Output::begin(Some(&args.output), console)?;
    let encoded = encode(&cache, &mut input, &mut output, options);
    let stats = output.end(encoded.map_err(Into::into))?;
    let ram_bytes = cache.stats().ram_bytes;
    cache.close()?;
    report::encoded((&stats, ram_bytes), Figures::Stdout, console)
}
