//! `nandex kvssd create`: creates a drive in a new file.

use std::path::PathBuf;

use anyhow::{Result, bail};
use nandex_kvssd::DriveInfo;
use serde::Serialize;

use super::place::{DriveArgs, LimitArgs, SPACE, close, create};
use super::shown::use_rows;
use crate::console::{Console, aligned};
use crate::interrupt::Interrupt;
use crate::place::DurabilityArg;

/// The place and the size.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    drive: DriveArgs,
    #[command(flatten)]
    limits: LimitArgs,
    /// Durability of acknowledged stores in this run: always, every:MS or never; each opening chooses its own
    #[arg(long, default_value = "every:100")]
    durability: DurabilityArg,
}

/// The new drive.
#[derive(Debug, Serialize)]
struct CreatedDrive {
    path: PathBuf,
    key_space: &'static str,
    #[serde(flatten)]
    info: DriveInfo,
    flash_bytes: u64,
    index_ram_bytes: u64,
}

/// Creates the drive.
///
/// # Errors
/// An existing file, invalid limits, no space, an interrupt.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let (db, drive) = create(&args.drive, &args.limits, args.durability.0, console)?;
    let (info, stats) = (drive.info()?, drive.stats()?);
    if interrupt.is_set() {
        db.unfinished().remove();
        bail!("stopped; no file was made");
    }
    close((db, drive), Ok(()))?;
    let created = CreatedDrive {
        path: args.drive.volume.file.clone(),
        key_space: SPACE,
        flash_bytes: stats.flash_bytes,
        index_ram_bytes: stats.index_ram_bytes,
        info,
    };
    console.print(&created, |created| {
        let mut rows = vec![
            ("drive", created.path.display().to_string()),
            ("key space", created.key_space.to_owned()),
            ("index", created.info.index.clone()),
        ];
        rows.extend(use_rows(&stats, created.info.capacity_bytes));
        aligned(&rows)
    })
}
