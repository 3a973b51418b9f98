//! `nandex wan proxy`: TCP connections over a slow link, with a half at each end. One file per half; the others are
//! shared.

mod client;
mod key;
mod latency;
mod measure;
mod options;
mod run;
mod server;
mod target;

use anyhow::Result;
use clap::Subcommand;

use crate::console::Console;

/// The halves, their keys, and measurements of them.
#[derive(Debug, Subcommand)]
pub enum Half {
    /// Run the half next to programs: a TCP forward, SOCKS5, HTTP CONNECT
    #[command(after_help = HALVES)]
    Client(Box<client::Args>),
    /// Run the half next to targets
    #[command(after_help = HALVES)]
    Server(Box<server::Args>),
    /// Create a key that both halves share
    Key(key::Args),
    /// Measure what both halves add to a round trip, on loopback
    Latency(latency::Args),
    /// Measure bandwidth and round trips over a slow link, with and without both halves
    Measure(measure::Args),
    /// Run the far end of a measurement, which receives streams and answers round trips
    Target(target::Args),
}

/// The description of both halves in the help.
const HALVES: &str = "\
Both halves know each other by a key, which `nandex wan proxy key` makes and a safe way brings to \
the other machine, or by certificates of their own. A half runs until it is interrupted or told to \
terminate; then it shows its figures. Addresses that other machines reach need --public.";

/// Runs the half.
///
/// # Errors
/// The error of the half; the exit code follows from it.
pub fn run(half: &Half, console: &Console) -> Result<()> {
    match half {
        Half::Client(args) => client::run(args, console),
        Half::Server(args) => server::run(args, console),
        Half::Key(args) => key::run(args),
        Half::Latency(args) => latency::run(args, console),
        Half::Measure(args) => measure::run(args, console),
        Half::Target(args) => target::run(args, console),
    }
}
