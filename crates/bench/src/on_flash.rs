//! A structure in a volume of its own, in a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use nandex::device::{Create, Device, FileDevice, FileOptions};
use nandex::{OpenOptions, Volume, VolumeOptions};

use crate::order::Order;
use crate::reads::RandomReads;
use crate::subject::{Bulk, Client, Durability, Spec, Status, Subject};

/// A subject, and the file that it is in.
pub(crate) struct OnFlash<S> {
    pub(crate) subject: S,
    pub(crate) volume: Volume,
    pub(crate) file: PathBuf,
}

impl<S: Subject> Subject for OnFlash<S> {
    fn client(&self) -> Result<Box<dyn Client + '_>> {
        self.subject.client()
    }

    fn sync(&self) -> Result<()> {
        self.subject.sync()
    }

    fn settle(&self) -> Result<()> {
        self.subject.settle()
    }

    fn order(&self) -> Order {
        self.subject.order()
    }

    fn bulk(&self) -> Result<Option<Box<dyn Bulk + '_>>> {
        self.subject.bulk()
    }

    /// The pages of the structure and of its parts, which are the only ones in the volume.
    fn own_pages(&self) -> Result<Option<RandomReads>> {
        let structures = self.volume.structures();
        let extents: Vec<_> = structures.into_iter().flat_map(|info| info.extents).collect();
        let device = Arc::clone(self.volume.device());
        RandomReads::written(device, &self.file, &extents)
    }

    fn status(&self) -> Status {
        self.subject.status()
    }
}

/// An empty volume in `file`; an earlier one is removed.
pub(crate) fn create_volume(file: &Path, log_bytes: u64, spec: &Spec) -> Result<Volume> {
    if file.exists() {
        fs::remove_file(file).with_context(|| format!("removing {}", file.display()))?;
    }
    let options = FileOptions { create: Create::New, ..FileOptions::default() };
    let device: Arc<dyn Device> = Arc::new(FileDevice::open(file, &options)?);
    let durability = durability(spec.durability);
    Ok(Volume::create(device, VolumeOptions { log_bytes, durability, ..Default::default() })?)
}

/// The volume that [`create_volume`] made.
pub(crate) fn open_volume(file: &Path, spec: &Spec) -> Result<Volume> {
    let device: Arc<dyn Device> = Arc::new(FileDevice::open(file, &FileOptions::default())?);
    let durability = durability(spec.durability);
    Ok(Volume::open(device, OpenOptions { durability, ..OpenOptions::default() })?)
}

/// The same for a volume.
fn durability(durability: Durability) -> nandex::Durability {
    match durability {
        Durability::Always => nandex::Durability::Always,
        Durability::Every => nandex::Durability::default(),
        Durability::Never => nandex::Durability::Never,
    }
}
