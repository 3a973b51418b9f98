//! BufferHash as a subject: a volume in a file of the directory, made with the advised parameters.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use nandex::bufferhash::model::Need;
use nandex::bufferhash::{Config, RuntimeOptions};
use nandex::device::{Access, Create, Device, FileDevice, FileOptions};
use nandex::{BufferHash, OpenOptions, Volume, VolumeOptions};

use crate::subject::{Durability, Spec, Subject, TableSubject};
use crate::workload::{KEY_BYTES, VALUE_BYTES};

/// The table's name in its volume.
const NAME: &str = "bench";

fn path(spec: &Spec) -> PathBuf {
    spec.dir.join("bufferhash.nandex")
}

fn durability(spec: &Spec) -> nandex::Durability {
    match spec.durability {
        Durability::Always => nandex::Durability::Always,
        Durability::Every => nandex::Durability::default(),
        Durability::Never => nandex::Durability::Never,
    }
}

fn options(spec: &Spec) -> RuntimeOptions {
    RuntimeOptions { read_depth: spec.depth, ..RuntimeOptions::default() }
}

/// An empty table; an earlier one in the directory is removed.
///
/// # Errors
/// A budget too small, no space, a failed write.
pub fn create(spec: &Spec) -> Result<Box<dyn Subject>> {
    let path = path(spec);
    if path.exists() {
        fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
    }
    let widths = (u32::try_from(KEY_BYTES)?, u32::try_from(VALUE_BYTES)?);
    let need =
        Need { ram_bytes: Some(spec.ram_bytes), ..Need::new(spec.entries, widths.0, widths.1) };
    let config = Config::advised(&need.advise()?);
    let file = FileOptions { create: Create::New, ..FileOptions::default() };
    let device: Arc<dyn Device> = Arc::new(FileDevice::open(&path, &file)?);
    let volume_options = VolumeOptions {
        log_bytes: config.log_bytes_best(),
        durability: durability(spec),
        ..VolumeOptions::default()
    };
    let volume = Volume::create(device, volume_options)?;
    let table = BufferHash::create_with(&volume, NAME, config, options(spec))?;
    Ok(Box::new(TableSubject(table)))
}

/// The table that `create` made.
///
/// # Errors
/// None there, damage, a failed read.
pub fn open(spec: &Spec) -> Result<Box<dyn Subject>> {
    let file = FileOptions { access: Access::ReadWrite, ..FileOptions::default() };
    let device: Arc<dyn Device> = Arc::new(FileDevice::open(path(spec), &file)?);
    let volume = Volume::open(
        device,
        OpenOptions { durability: durability(spec), ..OpenOptions::default() },
    )?;
    let table = BufferHash::open_with(&volume, NAME, options(spec))?;
    table.load_filters()?;
    Ok(Box::new(TableSubject(table)))
}
