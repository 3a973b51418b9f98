//! What the rooms of nandex have in common as subjects: a volume in a file of the directory, with one
//! table in it. A room says how its table is made and opened, and nothing about files.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use nandex::device::{Access, Create, Device, FileDevice, FileOptions};
use nandex::{OpenOptions, Table, Volume, VolumeOptions};

use crate::subject::{Durability, Spec, Subject, TableSubject};

/// The table's name in its volume.
pub const NAME: &str = "bench";

/// One structure under test.
pub trait Room {
    /// Its type.
    type Table: Table + 'static;
    /// What its table is made with: widths, entries and the budget, turned into parameters.
    type Config;

    /// The room's name: of its volume's file, and in reports.
    const ROOM: &'static str;

    /// The parameters that suit `spec` best within its budget.
    ///
    /// # Errors
    /// A budget too small.
    fn config(spec: &Spec) -> Result<Self::Config>;

    /// Bytes of log that suit a table of `config` best.
    fn log_bytes(config: &Self::Config) -> u64;

    /// An empty table named [`NAME`] in `volume`.
    ///
    /// # Errors
    /// No space, a failed write.
    fn create(volume: &Volume, config: Self::Config, spec: &Spec) -> Result<Self::Table>;

    /// The table that `create` made, with all in RAM that lookups need.
    ///
    /// # Errors
    /// None there, damage, a failed read.
    fn open(volume: &Volume, spec: &Spec) -> Result<Self::Table>;
}

/// An empty table of room `R`; an earlier one in the directory is removed.
///
/// # Errors
/// A budget too small, no space, a failed write.
pub fn create<R: Room>(spec: &Spec) -> Result<Box<dyn Subject>> {
    let path = path::<R>(spec);
    if path.exists() {
        fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
    }
    let config = R::config(spec)?;
    let file = FileOptions { create: Create::New, ..FileOptions::default() };
    let device: Arc<dyn Device> = Arc::new(FileDevice::open(&path, &file)?);
    let options = VolumeOptions {
        log_bytes: R::log_bytes(&config),
        durability: durability(spec.durability),
        ..VolumeOptions::default()
    };
    let volume = Volume::create(device, options)?;
    Ok(Box::new(TableSubject(R::create(&volume, config, spec)?)))
}

/// The table that [`create`] made.
///
/// # Errors
/// None there, damage, a failed read.
pub fn open<R: Room>(spec: &Spec) -> Result<Box<dyn Subject>> {
    let file = FileOptions { access: Access::ReadWrite, ..FileOptions::default() };
    let device: Arc<dyn Device> = Arc::new(FileDevice::open(path::<R>(spec), &file)?);
    let options = OpenOptions { durability: durability(spec.durability), ..OpenOptions::default() };
    let volume = Volume::open(device, options)?;
    Ok(Box::new(TableSubject(R::open(&volume, spec)?)))
}

fn path<R: Room>(spec: &Spec) -> PathBuf {
    spec.dir.join(format!("{}.nandex", R::ROOM))
}

/// The same in the words of a volume.
pub(crate) fn durability(durability: Durability) -> nandex::Durability {
    match durability {
        Durability::Always => nandex::Durability::Always,
        Durability::Every => nandex::Durability::default(),
        Durability::Never => nandex::Durability::Never,
    }
}
