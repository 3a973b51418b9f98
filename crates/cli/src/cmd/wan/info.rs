//! `nandex wan info`: what a cache holds and takes.

use std::path::PathBuf;

use anyhow::Result;
use nandex_wan::CacheStats;

use crate::console::{Console, aligned};
use crate::size::{show_bytes, show_count};

use super::cache;

/// The cache.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file of the cache, or its block device
    #[arg(value_name = "CACHE")]
    file: PathBuf,
}

/// Shows the figures.
///
/// # Errors
/// A file that is no cache or is in use, damage.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let stats = cache::open_to_read(&args.file)?.stats();
    console.print(&stats, |stats| aligned(&rows(stats)))
}

fn rows(stats: &CacheStats) -> [(&'static str, String); 6] {
    [
        ("ring", show_bytes(stats.content_bytes_max)),
        ("overwritten segments", show_count(stats.recycled_segments)),
        ("chunks and containers", show_count(stats.index_entries)),
        ("anchors", show_count(stats.anchor_entries)),
        ("RAM", show_bytes(stats.ram_bytes)),
        ("flash", show_bytes(stats.flash_bytes)),
    ]
}
