//! `nandex wan proxy target`: the far end of a measurement.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use nandex_wanproxy::FarEnd;

use super::run::line;
use crate::console::Console;
use crate::interrupt::Interrupt;

/// How often it is looked whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Where measurements come in.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Measurements come in here; a port 0 is any free one
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Listen on an address that other machines reach, too
    #[arg(long)]
    public: bool,
}

/// Says where it listens, and answers until it is told to stop.
///
/// # Errors
/// An address that is taken, or that other machines reach without `--public`.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let far_end = FarEnd::start(args.listen, args.public)?;
    console.print(&[far_end.address()], |addresses| addresses.iter().map(line).collect())?;
    while !interrupt.is_set() {
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}
