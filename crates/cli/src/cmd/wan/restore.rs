//! `nandex wan restore`: restores the stream of a file of references.

use std::path::PathBuf;

use anyhow::{Context, Result};
use nandex_wan::decode;

use crate::console::Console;
use crate::devices::EngineArgs;
use crate::stated::StatedArgs;

use super::cache;
use super::output::Output;
use super::report::{self, Figures};
use super::send::Input;

/// The file, the cache and the output.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// File of references; - is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// File to write; default: stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Cache that it was stored with
    #[arg(long, value_name = "FILE")]
    cache: PathBuf,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    stated: StatedArgs,
}

/// Restores the stream.
///
/// # Errors
/// A file that is damaged or refers to content that was recycled; an output or a cache that fails. No file is left
/// then.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let mut input = Input::open(&args.file)?;
    let cache = cache::open_made((&args.cache, args.engine), &args.stated.stated())?;
    let mut output = Output::begin(args.output.as_deref(), console)?;
    let figures = if output.is_stdout() { Figures::Stderr } else { Figures::Stdout };
    let decoded = decode(&cache, &mut input, &mut output);
    let decoded = decoded.with_context(|| format!("cannot restore {}", args.file.display()));
    let stats = output.end(decoded)?;
    let ram_bytes = cache.stats().ram_bytes;
    cache.close()?;
    report::decoded((&stats, ram_bytes), figures, console)
}
