//! `nandex wan proxy target`: runs the far end of a measurement.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use nandex_wanproxy::FarEnd;

use super::run::line;
use crate::console::Console;
use crate::interrupt::Interrupt;

/// The interval of the checks whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The address for measurements.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Address for measurements; port 0 is any free one
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Listen on an address that other machines can reach, too
    #[arg(long)]
    public: bool,
}

/// Prints the address, and answers until it must stop.
///
/// # Errors
/// An address in use, or one that other machines reach without `--public`.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let far_end = FarEnd::start(args.listen, args.public)?;
    console.print(&[far_end.address()], |addresses| addresses.iter().map(line).collect())?;
    while !interrupt.is_set() {
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}
