//! The versions that a merge of tables reads of a growing SliceHash: those of the newest table, and what the older one
//! still has for it.

use nandex_store::entries::EntryLayout;
use nandex_store::hash::KeyHasher;

use super::Tables;
use crate::Result;
use crate::grow::{Owner, Parts};
use crate::write::absorb::{Share, VersionSource, Visit};

impl VersionSource for Owner<Tables> {
    fn hasher(&self) -> KeyHasher {
        self.volume.hasher()
    }

    fn layout(&self) -> EntryLayout {
        self.parts.core().entry_layout()
    }

    fn partitions(&self) -> usize {
        self.parts.core().partitions()
    }

    fn versions_max(&self) -> u64 {
        self.parts.stats().entries
    }

    /// The newest table stays the newest meanwhile: growth waits until the share is read.
    fn each_version_in(
        &self,
        share: Share,
        part: (usize, usize),
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let newest = self.parts.newest();
        newest.core.each_version_in(share, part, visit)
    }
}
