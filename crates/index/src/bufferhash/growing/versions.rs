//! What a merge of tables reads of a growing table: generation by generation, the newest first.

use nandex_store::entries::EntryLayout;
use nandex_store::hash::KeyHasher;

use super::Generations;
use crate::Result;
use crate::grow::Owner;
use crate::write::absorb::{Share, VersionSource, Visit};

impl VersionSource for Owner<Generations> {
    fn hasher(&self) -> KeyHasher {
        self.volume.hasher()
    }

    fn layout(&self) -> EntryLayout {
        self.parts.core(0).entry_layout()
    }

    /// Those of the first generation, which has the fewest.
    fn partitions(&self) -> usize {
        self.parts.cores().map(VersionSource::partitions).min().unwrap_or(1)
    }

    fn versions_max(&self) -> u64 {
        self.parts.cores().map(VersionSource::versions_max).sum()
    }

    fn each_version(&self, share: Share, visit: &mut Visit<'_>) -> Result<()> {
        let newest_first = (0..self.parts.len()).rev();
        newest_first
            .map(|number| self.parts.core(number))
            .try_for_each(|core| core.each_version(share, visit))
    }
}
