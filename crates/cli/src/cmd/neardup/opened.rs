//! The index of a verb: its file, its RAM, and how it is opened.

use std::path::{Path, PathBuf};

use anyhow::Result;
use nandex::device::Access;
use nandex::raw::Stated;
use nandex_neardup::{Index, IndexConfig};

use crate::held::open_index;
use crate::size;
use crate::stated::StatedArgs;

use super::hints::explained;

/// The index, and what it may take.
#[derive(Debug, clap::Args)]
pub struct NearIndexArgs {
    /// The file of the index, or its block device
    #[arg(value_name = "INDEX")]
    pub file: PathBuf,
    /// RAM for the index's tables, 64 MiB or more
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "256MiB")]
    ram: u64,
    #[command(flatten)]
    stated: StatedArgs,
}

impl NearIndexArgs {
    /// What the index may take, checked.
    ///
    /// # Errors
    /// Too little RAM, or too much.
    pub fn config(&self) -> Result<IndexConfig> {
        let config = IndexConfig { ram_bytes: self.ram, ..IndexConfig::default() };
        config.validate().map_err(explained)?;
        Ok(config)
    }

    /// What was stated by names.
    pub fn stated(&self) -> Stated {
        self.stated.stated()
    }

    /// Opens the index to change it.
    ///
    /// # Errors
    /// No such file, a file that is no index or is in use, damage.
    pub fn open(&self) -> Result<Index> {
        open(&self.file, Access::ReadWrite, (self.config()?, &self.stated()))
    }

    /// Opens the index and leaves it as it is; several may do so at a time.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_to_read(&self) -> Result<Index> {
        open(&self.file, Access::ReadOnly, (self.config()?, &self.stated()))
    }
}

/// Opens the index of a file.
///
/// # Errors
/// As [`NearIndexArgs::open`].
fn open(file: &Path, access: Access, (config, stated): (IndexConfig, &Stated)) -> Result<Index> {
    let what = "an index of near-duplicates, which `nandex neardup index` makes";
    open_index(file, access, what, |volume| {
        Index::open_stated(volume, config, stated).map_err(explained)
    })
}
