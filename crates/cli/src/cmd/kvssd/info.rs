//! `nandex kvssd info`: shows a drive's limits and use.

use anyhow::Result;
use nandex::device::Access;
use nandex_kvssd::{DriveInfo, DriveStats};
use serde::Serialize;

use super::place::DriveArgs;
use super::shown::use_rows;
use crate::console::{Console, aligned};
use crate::size::{show_bytes, show_count};

/// The drive.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    drive: DriveArgs,
}

/// The limits and the use of a drive.
#[derive(Debug, Serialize)]
struct ShownDrive {
    info: DriveInfo,
    stats: DriveStats,
}

/// Shows the limits and the use.
///
/// # Errors
/// A file that does not exist, has no drive, is in use or damaged.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let shown = args.drive.with(Access::ReadOnly, |drive| {
        Ok(ShownDrive { info: drive.info()?, stats: drive.stats()? })
    })?;
    console.print(&shown, |ShownDrive { info, stats }| {
        let mut rows = vec![
            ("index", info.index.clone()),
            ("space for", format!("{} pairs", show_count(info.pairs_max))),
            ("keys", format!("{} to {} B", info.key_bytes_min, info.key_bytes_max)),
            ("values", format!("0 B to {}", show_bytes(info.value_bytes_max.into()))),
            ("offsets", format!("multiples of {} B", info.offset_unit)),
            ("key spaces", show_count(info.key_spaces as u64)),
        ];
        rows.extend(use_rows(stats, info.capacity_bytes));
        aligned(&rows)
    })
}
