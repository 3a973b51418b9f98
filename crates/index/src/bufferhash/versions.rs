//! What a merge reads of a BufferHash: super table by super table, buffers and then incarnations, the newest first.

use nandex_store::entries::EntryLayout;
use nandex_store::hash::KeyHasher;
use nandex_store::page::{PageKind, RawPage};
use nandex_store::ring::SegmentId;
use nandex_store::{PageRun, ReadAhead};

use super::Inner;
use crate::Result;
use crate::write::absorb::{Share, VersionSource, Visit};

impl VersionSource for Inner {
    fn hasher(&self) -> KeyHasher {
        self.hasher
    }

    fn layout(&self) -> EntryLayout {
        self.entry_layout()
    }

    fn partitions(&self) -> usize {
        self.partitions.len()
    }

    fn versions_max(&self) -> u64 {
        self.versions_held()
    }

    fn each_version(&self, share: Share, visit: &mut Visit<'_>) -> Result<()> {
        let mut indexes = share.partitions_of(self.partitions.len());
        indexes.try_for_each(|index| self.versions_of(index, visit))
    }
}

impl Inner {
    /// Passes the versions of a super table. Each incarnation is read in long runs, without its filter.
    fn versions_of(&self, index: usize, visit: &mut Visit<'_>) -> Result<()> {
        let table = &self.partitions[index];
        let _lock = table.maintain();
        let incarnations: Vec<SegmentId> = {
            let state = table.read();
            state.each_buffered(visit)?;
            let newest_first = state.level.incarnations_newest_first();
            newest_first.into_iter().map(|incarnation| incarnation.id).collect()
        };
        let ring = self.layout.rings.of(index);
        let pages = u64::from(self.layout.config.buffer_pages);
        let run = |id: &SegmentId| PageRun { first: ring.page(*id, 0), pages };
        let (layout, mut read) = (self.entry_layout(), 0);
        ReadAhead::default().read(
            &**self.layout.rings.device(),
            incarnations.iter().map(run),
            |run, buf| {
                let (id, first) = (incarnations[(read / pages) as usize], read % pages);
                read += run.pages;
                (first..).zip(0..buf.pages()).try_for_each(|(page, at)| {
                    let label = ring.label(id, page, PageKind::Data);
                    let page = RawPage::new(buf.page(at)).check(label)?;
                    layout.entries(page.bytes()).try_for_each(|(_, entry)| visit(entry))
                })
            },
        )
    }
}
