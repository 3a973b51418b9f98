//! Opens and makes tables of counts for the verbs.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use nandex::counting::{self, Config};
use nandex::device::{Access, Striping};
use nandex::store::hash::KeyHasher;
use nandex::{Counting, Durability, Volume, VolumeOptions};

use super::form::KeyForm;
use crate::console::Console;
use crate::devices::{Devices, VolumeArgs};
use crate::place::open_volume;
use crate::unfinished::Unfinished;

/// A table's striping over several devices: a megabyte on each in turn.
const STRIPING: Striping = Striping::Extent { pages: 256 };

/// An open volume and its table of counts.
#[derive(Debug)]
pub struct OpenedCounts {
    pub volume: Volume,
    pub table: Counting,
    pub form: KeyForm,
    /// The files that were made for it.
    pub made: Unfinished,
}

impl OpenedCounts {
    /// Closes table and volume, in that order. Returns the files that were made and not published.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn close(self) -> Result<Unfinished> {
        self.table.close()?;
        self.volume.checkpoint()?;
        Ok(self.made)
    }
}

/// Makes a volume with one empty table. The new files are removed if this fails, and get their names when they are
/// published.
///
/// # Errors
/// An existing file, sizes that cannot work, no space.
pub fn create(
    args: &VolumeArgs,
    (config, hasher): (Config, KeyHasher),
    durability: Durability,
    console: &Console,
) -> Result<OpenedCounts> {
    let devices = args.create(STRIPING, console)?;
    create_on(&devices, config, hasher, durability)
        .with_context(|| args.cannot("create"))
        .inspect_err(|_| devices.made.remove())
}

fn create_on(
    devices: &Devices,
    config: Config,
    hasher: KeyHasher,
    durability: Durability,
) -> Result<OpenedCounts> {
    let options = VolumeOptions {
        hash: hasher.kind(),
        hash_key: Some(hasher.key()),
        log_bytes: config.log_bytes_best(),
        log_device: devices.log.clone(),
        durability,
        completion: devices.completion,
        ..VolumeOptions::default()
    };
    let volume = Volume::create(Arc::clone(&devices.volume), options)?;
    let table = Counting::create(&volume, "counts", config)?;
    let made = devices.made.clone().of(&volume);
    Ok(OpenedCounts { volume, table, form: KeyForm::of(config.keys)?, made })
}

/// Opens a volume and its table of counts.
///
/// # Errors
/// A file that does not exist, is not a volume, is in use or damaged; a volume without exactly one such table.
pub fn open(args: &VolumeArgs, durability: Durability) -> Result<OpenedCounts> {
    open_as(args, Access::ReadWrite, durability)
}

/// As `open`, for reading: the volume stays as it is.
///
/// # Errors
/// As `open`.
pub fn open_to_read(args: &VolumeArgs) -> Result<OpenedCounts> {
    open_as(args, Access::ReadOnly, Durability::default())
}

fn open_as(args: &VolumeArgs, access: Access, durability: Durability) -> Result<OpenedCounts> {
    let (volume, _) = open_volume(args, access, durability)?;
    let name = choose(&volume).with_context(|| args.cannot("open"))?;
    let table = Counting::open(&volume, &name)?;
    let form = KeyForm::of(table.config().keys).with_context(|| args.cannot("open"))?;
    Ok(OpenedCounts { volume, table, form, made: Unfinished::default() })
}

fn choose(volume: &Volume) -> Result<String> {
    let structures = volume.structures();
    let tables: Vec<_> = structures.iter().filter(|it| it.kind == counting::KIND).collect();
    match (&tables[..], structures.first()) {
        ([table], _) => Ok(table.name.clone()),
        ([], Some(other)) => bail!(
            "the volume holds no counts, but {:?} of the kind {:?}; make counts with `nandex count build`",
            other.name,
            other.kind
        ),
        ([], None) => bail!("the volume is empty; make counts with `nandex count build`"),
        (several, _) => bail!(
            "the volume holds {} tables of counts, expected one; a program made it, and its library reads it",
            several.len()
        ),
    }
}
