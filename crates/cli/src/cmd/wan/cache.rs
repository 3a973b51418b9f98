//! The cache of a verb: opened, or created if there is none.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nandex::VolumeOptions;
use nandex::device::Access;
use nandex::raw::Stated;
use nandex_wan::{Cache, CacheConfig};

use crate::cmd::document_index::with_hint;
use crate::console::Console;
use crate::devices::{EngineArgs, VolumeArgs};
use crate::held::{STRIPING, create_with, open_index};
use crate::size::{self, show_bytes};
use crate::stated::StatedArgs;

/// A cache that is created if there is none.
#[derive(Debug, clap::Args)]
pub struct CacheArgs {
    /// File of the cache, or its block device; it is created if there is none
    #[arg(long = "cache", value_name = "FILE")]
    file: PathBuf,
    /// Bytes of content that a new cache holds; when it is full, the oldest is overwritten. Tables and log take about
    /// two fifths more of the file
    #[arg(long, value_name = "SIZE", value_parser = size::parse_some_bytes, default_value = "1GiB")]
    size: u64,
    /// RAM of the command, for the tables of the cache, content and segments of the stream; default: as much as they
    /// need
    #[arg(long, value_name = "SIZE", value_parser = size::parse_some_bytes)]
    ram: Option<u64>,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    stated: StatedArgs,
}

impl CacheArgs {
    /// Opens the cache, or creates it.
    ///
    /// # Errors
    /// A file that is not a cache or is in use, invalid sizes, no space, damage.
    pub fn open_or_make(&self, console: &Console) -> Result<Cache> {
        let (place, stated) = (VolumeArgs::sparse(&self.file, self.engine), self.stated.stated());
        if place.is_made() {
            let cache = open((&self.file, self.engine), Access::ReadWrite, &stated)?;
            match self.ram {
                Some(ram) => {
                    cache.within(ram).map_err(explained).with_context(|| place.cannot("use"))
                }
                None => Ok(cache),
            }
        } else {
            self.make(&place, &stated, console)
        }
    }

    fn make(&self, place: &VolumeArgs, stated: &Stated, console: &Console) -> Result<Cache> {
        let config =
            CacheConfig { content_bytes: self.size, ram_bytes: self.ram, ..CacheConfig::default() };
        let log_bytes = config.log_bytes_stated(stated).map_err(explained);
        let log_bytes = log_bytes.with_context(|| place.cannot("create"))?;
        let options = VolumeOptions::default().with_growing_log(log_bytes);
        let make = |volume: &_| Ok(Cache::create_stated(volume, config, stated)?);
        let (db, cache) = create_with(place, (STRIPING, options), console, make)?;
        db.finish().inspect_err(|_| db.unfinished().remove())?;
        let (file, size) = (self.file.display(), show_bytes(self.size));
        console.note(&format!("{file} is a new cache, of {size} of content"));
        Ok(cache)
    }
}

/// Adds the option to an error about RAM.
fn explained(error: nandex_wan::Error) -> anyhow::Error {
    let is_ram = matches!(error, nandex_wan::Error::Options { field: "RAM", .. });
    with_hint(error, is_ram.then_some("--ram"))
}

/// Opens the cache that a file of references was stored with.
///
/// # Errors
/// As [`open`]. The error for a missing file says which one to give.
pub fn open_made((file, engine): (&Path, EngineArgs), stated: &Stated) -> Result<Cache> {
    if !VolumeArgs::sparse(file, engine).is_made() {
        let shown = file.display();
        bail!(
            "there is no cache {shown}: a file of references is useful only with the cache that `nandex wan store` made \
             it with; give that one as --cache"
        );
    }
    open((file, engine), Access::ReadWrite, stated)
}

/// Opens an existing cache, read-write or read-only.
///
/// # Errors
/// As [`CacheArgs::open_or_make`]; no such file.
pub fn open(place: (&Path, EngineArgs), access: Access, stated: &Stated) -> Result<Cache> {
    let what = "a cache, which `nandex wan store`, `send` and `receive` make";
    open_index(place, access, what, |volume| Ok(Cache::open_stated(volume, stated)?))
}
