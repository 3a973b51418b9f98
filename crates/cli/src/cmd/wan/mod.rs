//! `nandex wan`: sends and stores streams in few bytes, from the shell. One file per verb; the other files are shared.

mod cache;
mod channel;
mod encoding;
mod impatient;
mod info;
mod output;
mod pipe;
mod proxy;
mod receive;
mod report;
mod restore;
mod send;
mod store;

use anyhow::Result;
use clap::Subcommand;

use crate::console::Console;

/// The verbs of a cache of content.
#[derive(Debug, Subcommand)]
pub enum WanVerb {
    /// Write a file of references in place of a stream, and put new content into the cache
    Store(store::Args),
    /// Restore the stream of a file of references
    Restore(restore::Args),
    /// Send a file to `receive` at the other side of a channel
    #[command(after_help = CHANNEL)]
    Send(send::Args),
    /// Receive a file from `send` at the other side of a channel
    #[command(after_help = CHANNEL)]
    Receive(receive::Args),
    /// Send stdin through a command, or write what a command sends to stdout
    #[command(after_help = CHANNEL)]
    Pipe(pipe::Args),
    /// Carry TCP connections over a slow link, with a half and a cache at each end
    #[command(subcommand)]
    Proxy(proxy::Half),
    /// Show a cache's content and size
    Info(info::Args),
}

/// The description of a channel in the help.
const CHANNEL: &str = "The channel is the stdin and the stdout of the command of --to or --from, \
    which the shell runs, such as `ssh host nandex wan receive -o copy.tar --cache there.nandex`. \
    Without one it is stdin and stdout: that is the side which such a command starts. It goes both \
    ways: the receiver asks for what its cache lacks. Each side has a cache of its own.";

/// Runs the verb.
///
/// # Errors
/// The error of the verb; the exit code follows from it.
pub fn run(verb: &WanVerb, console: &Console) -> Result<()> {
    match verb {
        WanVerb::Store(args) => store::run(args, console),
        WanVerb::Restore(args) => restore::run(args, console),
        WanVerb::Send(args) => send::run(args, console),
        WanVerb::Receive(args) => receive::run(args, console),
        WanVerb::Pipe(args) => pipe::run(args, console),
        WanVerb::Proxy(args) => proxy::run(args, console),
        WanVerb::Info(args) => info::run(args, console),
    }
}
