//! `nandex count remove`: sets counts to 0.

use anyhow::Result;
use nandex::Durability;
use serde::Serialize;

use super::get::NamedKeys;
use super::open::CountsArgs;
use crate::console::{Console, aligned};
use crate::exit::{FAILURE, Quiet};
use crate::interrupt::Interrupt;

/// The table and the keys.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    counts: CountsArgs,
    #[command(flatten)]
    keys: NamedKeys,
}

/// The result.
#[derive(Debug, Default, Serialize)]
struct Removed {
    removed: u64,
    absent: u64,
    interrupted: bool,
}

/// Sets the counts to 0.
///
/// # Errors
/// A bad key, a failed read or write. Keys before it are removed.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let opened = args.counts.open(Durability::default())?;
    let mut done = Removed::default();
    let stopped = args.keys.each_batch(opened.form(), (console, &interrupt), &mut |_, stored| {
        // A key that is named twice counts once.
        let mut keys = stored.to_vec();
        keys.sort_unstable();
        keys.dedup();
        let there =
            opened.structure.sum_many(&keys)?.into_iter().filter(|sum| *sum != 0).count() as u64;
        opened.structure.remove_many(&keys)?;
        done.removed += there;
        done.absent += stored.len() as u64 - there;
        Ok(())
    });
    opened.close()?;
    done.interrupted = stopped?;
    console.print(&done, |done| {
        aligned(&[("removed", done.removed.to_string()), ("not there", done.absent.to_string())])
    })?;
    if done.interrupted { Err(Quiet(FAILURE).into()) } else { Ok(()) }
}
