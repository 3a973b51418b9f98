//! The incomplete volume of a stopped run, to continue with it.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use nandex::Database;
use nandex::device::{Access, Create, Device, FileDevice, FileOptions};
use nandex::raw::device::output::{refuse_existing, unfinished_path};
use nandex::raw::store::{Holds, holds};

use crate::devices::EngineArgs;

/// A volume that is incomplete.
pub struct Left {
    /// The volume, which gets its name, or loses its mark, at the end.
    pub db: Database,
    /// The current place.
    pub place: PathBuf,
}

impl Left {
    /// Opens the incomplete volume of this name; returns `None` if there is none. A file takes space when it is
    /// written.
    ///
    /// # Errors
    /// A file that is complete; one that is in use or damaged.
    pub fn find((name, engine): (&Path, EngineArgs)) -> Result<Option<Self>> {
        let is_device = fs::metadata(name).is_ok_and(|it| it.file_type().is_block_device());
        let (place, is_left) = if is_device {
            (name.to_owned(), is_marked(name, engine)?)
        } else {
            refuse_existing(&[name])?;
            let place = unfinished_path(name);
            let is_left = place.exists();
            (place, is_left)
        };
        if !is_left {
            return Ok(None);
        }
        let options =
            nandex::options().resume().create(Create::Open).sparse().engine(engine.choice());
        let db = options.open(name).with_context(|| format!("cannot open {}", place.display()))?;
        Ok(Some(Self { db, place }))
    }
}

/// Returns whether the volume of a block device is unfinished. The caller that creates one rejects a complete one.
fn is_marked(name: &Path, engine: EngineArgs) -> Result<bool> {
    let cannot = || format!("cannot open {}", name.display());
    let options =
        FileOptions { access: Access::ReadOnly, engine: engine.choice(), ..FileOptions::default() };
    let device = FileDevice::open(name, &options).with_context(cannot)?;
    let device: Arc<dyn Device> = Arc::new(device);
    Ok(holds(&device).with_context(cannot)? == Holds::Unfinished)
}
