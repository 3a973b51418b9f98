//! Opens filters for the verbs.

use anyhow::Result;
use nandex::cascade::{self, Config};
use nandex::{Cascade, Counter, Durability, Filter, Volume};

use crate::devices::VolumeArgs;
use crate::held::{self, Held, Words};

/// Which filter of a volume.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct NameArgs {
    /// The filter's name; not needed if the volume holds one
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// An open volume and one of its filters.
pub type Opened = held::Opened<Cascade>;

impl Held for Cascade {
    type Config = Config;

    const WORDS: Words = Words {
        kind: cascade::KIND,
        noun: "filter",
        make: "nandex filter build",
        other: "look keys up with `nandex get`",
        several: "say which with --name",
    };

    fn log_bytes(config: &Config, durability: Durability) -> u64 {
        match durability {
            Durability::Never => Config::LOG_BYTES_MIN,
            _ => config.log_bytes_best(),
        }
    }

    fn create(volume: &Volume, name: &str, config: Config) -> nandex::Result<Self> {
        Self::create(volume, name, config)
    }

    fn open(volume: &Volume, name: &str) -> nandex::Result<Self> {
        Self::open(volume, name)
    }

    fn close(self) -> nandex::Result<()> {
        Self::close(self)
    }
}

impl Opened {
    /// How often each key is there; unless `counted`, at least 1 for those that are. Many keys at once are
    /// looked up by reading the filter from front to back, few by reading a page for each.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn look_up(&self, keys: &[&[u8]], counted: bool) -> Result<Vec<u64>> {
        let filter = &self.structure;
        let pages: u64 = filter.stats().levels.iter().map(|level| level.pages).sum();
        if keys.len() as u64 > pages / 2 {
            return Ok(filter.sweep(keys)?);
        }
        if counted {
            return Ok(filter.count_many(keys)?);
        }
        Ok(filter.contains_many(keys)?.into_iter().map(u64::from).collect())
    }
}

/// Opens a volume and the named filter, or the only one.
///
/// # Errors
/// A file that does not exist, is not a volume, is in use or damaged; a name that does not exist or is a
/// table's.
pub fn open(args: &VolumeArgs, name: &NameArgs, durability: Durability) -> Result<Opened> {
    held::open(args, name.name.as_deref(), durability)
}

/// As `open`, for looking keys up: the volume stays as it is.
///
/// # Errors
/// As `open`.
pub fn open_to_read(args: &VolumeArgs, name: &NameArgs) -> Result<Opened> {
    held::open_to_read(args, name.name.as_deref())
}
