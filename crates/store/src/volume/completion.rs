//! The mark of unfinished volumes where the name cannot show it: on a block device.
//!
//! A file gets its name when it is whole. A block device has its name before, so its first catalog has an entry that
//! marks it as unfinished. The last step of the creation removes the entry, in one checkpoint.

use std::sync::Arc;

use nandex_device::{Device, PAGE_BYTES, PageBuf, PageId};

use super::{Volume, read_superblock};
use crate::checkpoint::{self, Catalog, CatalogEntry};
use crate::superblock::{SUPERBLOCK_PAGES, Superblock};
use crate::{Error, Lsn, Result, StructureId};

/// The kind of the entry that marks an unfinished volume.
pub const UNFINISHED_KIND: &str = "unfinished";

/// The entry's name, which no structure has.
const UNFINISHED_NAME: &str = "/unfinished";

/// Whether a new volume is complete at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Completion {
    /// The volume is complete when it is created.
    #[default]
    Whole,
    /// The volume is marked as unfinished until [`Volume::finish`], so that an opening after an interrupted run can
    /// tell.
    Unfinished,
}

/// The content of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holds {
    /// No volume.
    Nothing,
    /// A volume that is unfinished, or whose creation was cut short.
    Unfinished,
    /// A volume, whole or damaged.
    Volume,
}

impl Completion {
    /// Returns the first catalog of a volume.
    pub(super) fn first_catalog(self) -> Catalog {
        let entry = CatalogEntry {
            id: StructureId(1),
            name: UNFINISHED_NAME.into(),
            kind: UNFINISHED_KIND.into(),
            config: Vec::new(),
            state: Vec::new(),
            tail: Lsn(0),
            extents: Vec::new(),
        };
        match self {
            Self::Whole => Catalog { next_id: 1, entries: Vec::new() },
            Self::Unfinished => Catalog { next_id: 2, entries: vec![entry] },
        }
    }
}

impl Volume {
    /// Returns whether the volume is marked as unfinished.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.inner.root().catalog.find(UNFINISHED_NAME).is_some()
    }

    /// Removes the mark of an unfinished volume, durably. Costs a checkpoint, and nothing if there is no mark.
    ///
    /// # Errors
    /// A failed write or sync; the mark may then still be there or not.
    pub fn finish(&self) -> Result<()> {
        let mark = self.inner.root().catalog.find(UNFINISHED_NAME).map(|entry| entry.id);
        let Some(id) = mark else { return Ok(()) };
        self.inner.poison.check()?;
        self.inner.refuse_read_only()?;
        self.inner.root().remove(id);
        self.checkpoint()
    }
}

/// Returns the content of a device, judged by its superblock and catalog.
///
/// # Errors
/// A failed read.
pub fn holds(device: &Arc<dyn Device>) -> Result<Holds> {
    if device.page_count() < SUPERBLOCK_PAGES {
        return Ok(Holds::Nothing);
    }
    let pages = device.read(PageId(0), PageBuf::zeroed(2))?;
    match Superblock::choose([pages.page(0), pages.page(1)]) {
        Err(Error::Foreign { .. }) => Ok(Holds::Nothing),
        // A volume has written both of its pages before it contains anything.
        Err(Error::Corrupt { .. }) if pages.chunks_exact(PAGE_BYTES).any(is_blank) => {
            Ok(Holds::Unfinished)
        }
        Err(_) => Ok(Holds::Volume),
        Ok(_) => {
            let catalog = read_superblock(&**device).and_then(|it| checkpoint::read(device, &it));
            let is_marked = catalog.is_ok_and(|it| it.find(UNFINISHED_NAME).is_some());
            Ok(if is_marked { Holds::Unfinished } else { Holds::Volume })
        }
    }
}

fn is_blank(page: &[u8]) -> bool {
    page.iter().all(|&byte| byte == 0)
}

/// Removes an unfinished volume from a device, durably. A device without a volume stays as it is.
///
/// # Errors
/// A volume that is not unfinished; a failed read or write.
pub fn remove_unfinished(device: &Arc<dyn Device>) -> Result<()> {
    match holds(device)? {
        Holds::Nothing => return Ok(()),
        Holds::Unfinished => {}
        Holds::Volume => {
            let reason = "there is a volume that is not unfinished; it is left as it is";
            return Err(Error::config("path", reason));
        }
    }
    // One page alone would be a volume.
    device.write(PageId(0), PageBuf::zeroed(2))?;
    Ok(device.sync()?)
}
