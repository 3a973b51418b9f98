//! The index of a verb: its file, its RAM, and how it is opened.

use std::path::{Path, PathBuf};

use anyhow::Result;
use nandex::device::Access;
use nandex::raw::Stated;
use nandex_tfidf::{Corpus, CorpusConfig};

use crate::held::open_index;
use crate::size;
use crate::stated::StatedArgs;

use super::hints::explained;

/// The index, and what it may take.
#[derive(Debug, clap::Args)]
pub struct IndexArgs {
    /// The file of the index, or its block device
    #[arg(value_name = "INDEX")]
    pub file: PathBuf,
    #[command(flatten)]
    ram: RamArgs,
    #[command(flatten)]
    stated: StatedArgs,
}

/// The RAM of an index.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct RamArgs {
    /// RAM for the index's tables and for the documents at hand, 64 MiB or more
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "256MiB")]
    ram: u64,
}

impl IndexArgs {
    /// What the index may take, checked.
    ///
    /// # Errors
    /// Too little RAM, or too much.
    pub fn config(&self) -> Result<CorpusConfig> {
        let config = CorpusConfig { ram_bytes: self.ram.ram };
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
    pub fn open(&self) -> Result<Corpus> {
        open(&self.file, Access::ReadWrite, (self.config()?, &self.stated()))
    }

    /// Opens the index and leaves it as it is; several may do so at a time.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_to_read(&self) -> Result<Corpus> {
        open(&self.file, Access::ReadOnly, (self.config()?, &self.stated()))
    }
}

/// Opens the index of a file.
///
/// # Errors
/// As [`IndexArgs::open`].
pub fn open(
    file: &Path,
    access: Access,
    (config, stated): (CorpusConfig, &Stated),
) -> Result<Corpus> {
    let what = "a TF-IDF index, which `nandex tfidf build` makes";
    open_index(file, access, what, |volume| {
        Corpus::open_stated(volume, config, stated).map_err(explained)
    })
}
