//! A structure in a volume of its own, in a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use nandex::device::{Create, Device, FileDevice, FileOptions};
use nandex::{Volume, VolumeOpenOptions, VolumeOptions};

use crate::keys::mix;
use crate::order::Order;
use crate::reads::RandomReads;
use crate::subject::{Bulk, Client, Durability, Spec, Status, Subject};

/// A salt that separates the hash keys of seeds from the keys of workloads.
const HASH_KEY_SALT: u64 = 0x6861_7368_206b_6579;

/// A subject, and its file.
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

    /// Returns the pages of the structure and of its parts, which are the only ones in the volume.
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

/// Creates an empty volume in `file`; an earlier one is removed. Its hash key depends on the seed, so that
/// the same seed puts the same keys into the same places: the size of the fullest bucket, and so the
/// evictions of an engine, are the same in each run.
pub(crate) fn create_volume(file: &Path, log_bytes: u64, spec: &Spec) -> Result<Volume> {
    remove(file)?;
    let options = FileOptions { create: Create::New, ..FileOptions::default() };
    let device: Arc<dyn Device> = Arc::new(FileDevice::open(file, &options)?);
    let durability = durability(spec.durability);
    let hash_key = Some(hash_key(spec));
    let options = VolumeOptions { hash_key, log_bytes, durability, ..VolumeOptions::default() };
    Ok(Volume::create(device, options)?)
}

/// Returns the file of a structure of this kind.
pub(crate) fn file(kind: &str, spec: &Spec) -> PathBuf {
    spec.dir.join(format!("{kind}.nandex"))
}

/// Removes a file if it exists.
pub(crate) fn remove(file: &Path) -> Result<()> {
    if file.exists() {
        fs::remove_file(file).with_context(|| format!("removing {}", file.display()))?;
    }
    Ok(())
}

/// Returns the hash key of a new volume.
pub(crate) fn hash_key(spec: &Spec) -> u128 {
    mix(spec.seed ^ HASH_KEY_SALT).into()
}

/// Opens the volume that [`create_volume`] made.
pub(crate) fn open_volume(file: &Path, spec: &Spec) -> Result<Volume> {
    let device: Arc<dyn Device> = Arc::new(FileDevice::open(file, &FileOptions::default())?);
    let durability = durability(spec.durability);
    Ok(Volume::open(device, VolumeOpenOptions { durability, ..VolumeOpenOptions::default() })?)
}

/// Converts a durability to that of a volume.
pub(crate) fn durability(durability: Durability) -> nandex::Durability {
    match durability {
        Durability::Always => nandex::Durability::Always,
        Durability::Every => nandex::Durability::default(),
        Durability::Never => nandex::Durability::Never,
    }
}
