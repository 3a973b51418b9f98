//! What a run that was stopped has left of a new volume, to go on with it.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use nandex::device::{Allocation, Device, FileDevice, FileOptions};
use nandex::store::{Holds, holds};
use nandex::{Volume, VolumeOpenOptions};

use crate::unfinished::{self, Unfinished};

/// A volume that is not whole.
pub struct Left {
    /// What gives it its name, or takes its mark away, in the end.
    pub made: Unfinished,
    /// The volume.
    pub volume: Volume,
    /// Where it is.
    pub place: PathBuf,
}

impl Left {
    /// Opens what was left of the volume of this name; nothing if there is none. A file takes space when it is written.
    ///
    /// # Errors
    /// A file that is whole; what is in use or damaged.
    pub fn find(name: &Path) -> Result<Option<Self>> {
        let is_device = fs::metadata(name).is_ok_and(|it| it.file_type().is_block_device());
        let mut made = Unfinished::default();
        let place = if is_device {
            name.to_owned()
        } else {
            unfinished::refuse_existing(&[name])?;
            let Some(place) = made.resume(name) else { return Ok(None) };
            place
        };
        let options = FileOptions { allocation: Allocation::Sparse, ..FileOptions::default() };
        let cannot = || format!("cannot open {}", place.display());
        let device: Arc<dyn Device> =
            Arc::new(FileDevice::open(&place, &options).with_context(cannot)?);
        // A device has a name before it is whole. What is whole is refused by who makes one.
        if is_device && holds(&device).with_context(cannot)? != Holds::Unfinished {
            return Ok(None);
        }
        let volume = Volume::open(device, VolumeOpenOptions::default()).with_context(cannot)?;
        Ok(Some(Self { made: made.of(&volume), volume, place }))
    }
}
