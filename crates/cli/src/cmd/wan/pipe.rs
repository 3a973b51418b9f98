//! `nandex wan pipe`: sends stdin through a command, or writes what a command sends to stdout.

use std::io;

use anyhow::Result;

use crate::console::Console;
use crate::refuse;

use super::cache::CacheArgs;
use super::encoding::EncodeArgs;
use super::receive::{SilenceArgs, receive};
use super::send::{Input, send};

/// The command and the cache.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("side").required(true)))]
pub struct Args {
    /// Command that starts `receive` at the other side, to which stdin is sent
    #[arg(long, value_name = "COMMAND", group = "side")]
    to: Option<String>,
    /// Command whose stream is written to stdout
    #[arg(long, value_name = "COMMAND", group = "side")]
    from: Option<String>,
    #[command(flatten)]
    silence: SilenceArgs,
    #[command(flatten)]
    cache: CacheArgs,
    #[command(flatten)]
    encoding: EncodeArgs,
}

/// Sends or receives.
///
/// # Errors
/// As `send` and `receive`.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    match &args.to {
        Some(_) if args.silence.is_given() => {
            refuse!("--silence is for --from: a sender waits for its input")
        }
        Some(to) => {
            let input = Input::Stdin(io::stdin());
            send((&args.cache, &args.encoding), input, Some(to), console)
        }
        None => receive(&args.cache, None, (args.from.as_deref(), args.silence), console),
    }
}
