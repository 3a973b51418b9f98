//! `nandex drop`: removes structures from a volume.

use anyhow::{Context, Result};
use nandex::Durability;
use nandex::device::Access;
use serde::Serialize;

use crate::console::Console;
use crate::devices::VolumeArgs;
use crate::held::open_volume;
use crate::size::show_bytes;

/// The volume, which no other process may have open, and the structures.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
    /// Names of the structures, as `info` prints them
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

/// The structures that are gone.
#[derive(Debug, Serialize)]
struct Dropped {
    dropped: Vec<One>,
    free_bytes: u64,
}

/// A structure.
#[derive(Debug, Serialize)]
struct One {
    name: String,
    /// The bytes of its pages, which are free now.
    flash_bytes: u64,
}

/// Drops the structures, one after another, durably.
///
/// # Errors
/// No structure of a name, a volume in use, a failed write. Structures named before are dropped.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let (db, _) = open_volume(&args.volume, Access::ReadWrite, Durability::default())?;
    let mut dropped = Vec::with_capacity(args.names.len());
    for name in &args.names {
        let flash_bytes = db.drop_structure(name).with_context(|| args.volume.cannot("change"))?;
        dropped.push(One { name: name.clone(), flash_bytes });
    }
    let page_bytes = u64::try_from(nandex::raw::device::PAGE_BYTES)?;
    let free_bytes = db.volume().stats().free_pages * page_bytes;
    console.print(&Dropped { dropped, free_bytes }, text)
}

fn text(it: &Dropped) -> String {
    let line = |one: &One| format!("{} dropped, {}\n", one.name, show_bytes(one.flash_bytes));
    let lines: String = it.dropped.iter().map(line).collect();
    format!("{lines}{} of the volume are free\n", show_bytes(it.free_bytes))
}
