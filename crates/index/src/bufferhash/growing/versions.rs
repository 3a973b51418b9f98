//! The versions that a merge of tables reads of a growing table: generation by generation, newest first.

use nandex_store::entries::EntryLayout;
use nandex_store::hash::KeyHasher;

use super::Generations;
use crate::Result;
use crate::bufferhash::Inner as Core;
use crate::grow::{Owner, Parts};
use crate::write::absorb::{Pause, Share, VersionSource, Visit};

impl VersionSource for Owner<Generations> {
    fn hasher(&self) -> KeyHasher {
        self.volume.hasher()
    }

    fn layout(&self) -> EntryLayout {
        self.parts.core(self.parts.first()).entry_layout()
    }

    /// Those of the first generation, which has the fewest.
    fn partitions(&self) -> usize {
        self.parts.cores().map(VersionSource::partitions).min().unwrap_or(1)
    }

    fn versions_max(&self) -> u64 {
        self.parts.cores().map(VersionSource::versions_max).sum()
    }

    /// Those of the generation with the largest buffers, which has the most.
    fn page_parts(&self) -> usize {
        self.parts.cores().map(VersionSource::page_parts).max().unwrap_or(1)
    }

    /// Pauses taking over from older generations.
    fn pause(&self) -> Option<Box<dyn Pause + '_>> {
        Some(Box::new(self.parts.requests().pause()))
    }

    fn each_version_in(
        &self,
        share: Share,
        part: (usize, usize),
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        // No generation takes over from others meanwhile.
        let _held = self.parts.keep();
        let mut newer: Vec<Whole<'_>> = Vec::new();
        for number in (self.parts.first()..self.parts.len()).rev() {
            let core = self.parts.core(number);
            core.each_version_in(share, part, &mut |entry| {
                if newer.iter().any(|it| it.has(entry.key)) { Ok(()) } else { visit(entry) }
            })?;
            if core.layout.config.cleans() {
                newer.push(Whole::of(core));
            }
        }
        Ok(())
    }
}

/// The super tables of a generation that are whole, while the generations are locked: so they need not be checked for
/// each version.
struct Whole<'c> {
    core: &'c Core,
    whole: Vec<bool>,
}

impl<'c> Whole<'c> {
    fn of(core: &'c Core) -> Self {
        let whole = (0..core.partitions.len()).map(|index| core.is_whole_at(index));
        Self { core, whole: whole.collect() }
    }

    /// Returns whether the generation has the newest version of a key, or its removal.
    fn has(&self, key: &[u8]) -> bool {
        self.whole[self.core.partition_of(self.core.hasher.hash(key))]
    }
}
