//! Opens and creates tables of counts for the verbs.

use std::path::Path;

use anyhow::Result;
use nandex::counting::{self, Config};
use nandex::raw::Stated;
use nandex::raw::store::hash::KeyHasher;
use nandex::{Counting, Durability, OpenOptions, Volume};

use super::form::KeyForm;
use crate::console::Console;
use crate::devices::{EngineArgs, VolumeArgs};
use crate::held::{self, Closing, Held, Making, Words};
use crate::stated::StatedArgs;

/// The most log of a table that is created without durability: only later additions use it, and they save the buffers
/// when it is full.
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

    fn create(
        volume: &Volume,
        name: &str,
        config: Config,
        stated: &Stated,
    ) -> nandex::Result<Self> {
        let options = stated.options(counting::KIND, OpenOptions::default())?;
        Self::create_with(volume, name, config, options)
    }

    fn open(volume: &Volume, name: &str, stated: &Stated) -> nandex::Result<Self> {
        let options = stated.options(counting::KIND, OpenOptions::default())?;
        let counts = Self::open_with(volume, name, options)?;
        stated.check(name, &(*counts.config()).into()).map(|()| counts)
    }
}

/// The table of counts.
#[derive(Clone, Debug, clap::Args)]
pub struct CountsArgs {
    #[command(flatten)]
    pub volume: VolumeArgs,
    #[command(flatten)]
    options: StatedArgs,
}

impl CountsArgs {
    /// Returns the arguments for the counts of a file.
    pub fn of(path: &Path, engine: EngineArgs) -> Self {
        let options = StatedArgs::default();
        Self { volume: VolumeArgs::single(path.to_owned(), engine), options }
    }

    /// Opens the volume and its table of counts.
    ///
    /// # Errors
    /// A file that does not exist, is not a volume, is in use or damaged; a volume without exactly one such table.
    pub fn open(&self, durability: Durability) -> Result<OpenedCounts> {
        held::open(&self.volume, None, &self.options.stated(), durability)
    }

    /// Like `open`, for reading: the volume stays as it is.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_to_read(&self) -> Result<OpenedCounts> {
        held::open_to_read(&self.volume, None, &self.options.stated())
    }
}

impl OpenedCounts {
    /// Returns the form in which keys are stored.
    pub fn form(&self) -> KeyForm {
        KeyForm::of(&self.name, self.structure.config().keys)
    }
}

/// Creates a volume with one empty table for keys of this form.
///
/// # Errors
/// An existing file, invalid sizes, no space.
pub fn create(
    args: &VolumeArgs,
    (form, config, stated): (KeyForm, Config, Stated),
    (hasher, durability): (KeyHasher, Durability),
    console: &Console,
) -> Result<OpenedCounts> {
    let name = form.name();
    held::create(args, Making { name, config, hasher, durability, geometry: None, stated }, console)
}
