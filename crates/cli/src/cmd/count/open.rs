//! Opens and makes tables of counts for the verbs.

use anyhow::Result;
use nandex::counting::{self, Config};
use nandex::raw::store::hash::KeyHasher;
use nandex::{Counting, Durability, Volume};

use super::form::KeyForm;
use crate::console::Console;
use crate::devices::VolumeArgs;
use crate::held::{self, Closing, Held, Making, Words};

/// The log of a table that is made without durability, at most: it is used by later additions only, which save the
/// buffers when it is full.
const LOG_BYTES_UNUSED: u64 = 4 << 20;

/// An open volume and its table of counts.
pub type OpenedCounts = held::Opened<Counting>;

impl Closing for Counting {
    fn close(self) -> nandex::Result<()> {
        Self::close(self)
    }
}

impl Held for Counting {
    type Config = Config;

    const WORDS: Words = Words {
        kinds: &[counting::KIND],
        noun: "counts",
        make: "nandex count build",
        other: "`nandex info` tells more",
        several: "expected one table of counts: a program made it, and its library reads it",
    };

    fn log_bytes(config: &Config, durability: Durability) -> u64 {
        match durability {
            Durability::Never => config.log_bytes_best().min(LOG_BYTES_UNUSED),
            _ => config.log_bytes_best(),
        }
    }

    fn create(volume: &Volume, name: &str, config: Config) -> nandex::Result<Self> {
        Self::create(volume, name, config)
    }

    fn open(volume: &Volume, name: &str) -> nandex::Result<Self> {
        Self::open(volume, name)
    }
}

impl OpenedCounts {
    /// How its keys are stored.
    pub fn form(&self) -> KeyForm {
        KeyForm::of(&self.name, self.structure.config().keys)
    }
}

/// Makes a volume with one empty table for keys of that form.
///
/// # Errors
/// An existing file, sizes that cannot work, no space.
pub fn create(
    args: &VolumeArgs,
    (form, config): (KeyForm, Config),
    (hasher, durability): (KeyHasher, Durability),
    console: &Console,
) -> Result<OpenedCounts> {
    held::create(
        args,
        Making { name: form.name(), config, hasher, durability, geometry: None },
        console,
    )
}

/// Opens a volume and its table of counts.
///
/// # Errors
/// A file that does not exist, is not a volume, is in use or damaged; a volume without exactly one such table.
pub fn open(args: &VolumeArgs, durability: Durability) -> Result<OpenedCounts> {
    held::open(args, None, durability)
}

/// As `open`, for reading: the volume stays as it is.
///
/// # Errors
/// As `open`.
pub fn open_to_read(args: &VolumeArgs) -> Result<OpenedCounts> {
    held::open_to_read(args, None)
}
