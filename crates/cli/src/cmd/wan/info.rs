//! `nandex wan info`: shows a cache's content and size.

use std::path::PathBuf;

use anyhow::Result;
use nandex::device::Access;
use nandex_wan::CacheStats;
use serde::Serialize;

use crate::console::{Console, aligned};
use crate::devices::EngineArgs;
use crate::lost::LostPages;
use crate::size::{show_bytes, show_count};
use crate::stated::StatedArgs;

use super::cache;

/// The cache.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// File of the cache, or its block device
    #[arg(value_name = "CACHE")]
    file: PathBuf,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    stated: StatedArgs,
}

/// The figures, for people and programs.
#[derive(Debug, Serialize)]
struct Info {
    #[serde(flatten)]
    stats: CacheStats,
    /// Damaged pages of saved buffers, whose entries are not counted.
    #[serde(skip_serializing_if = "LostPages::is_empty")]
    lost_pages: LostPages,
}

/// Shows the figures.
///
/// # Errors
/// A file that is not a cache or is in use, damage; silently, after the figures are shown, if damaged pages are missing
/// from them.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let cache = cache::open((&args.file, args.engine), Access::ReadOnly, &args.stated.stated())?;
    let info = Info { stats: cache.stats(), lost_pages: LostPages::of(&cache.lost_pages()) };
    console.print(&info, |info| aligned(&rows(info)))?;
    info.lost_pages.result()
}

fn rows(Info { stats, lost_pages }: &Info) -> Vec<(&'static str, String)> {
    let rows = [
        ("ring", show_bytes(stats.content_bytes_max)),
        ("overwritten segments", show_count(stats.recycled_segments)),
        ("chunks and containers", show_count(stats.index_entries)),
        ("anchors", show_count(stats.anchor_entries)),
        ("RAM", show_bytes(stats.ram_bytes)),
        ("flash", show_bytes(stats.flash_bytes)),
    ];
    rows.into_iter().chain(lost_pages.row()).collect()
}
