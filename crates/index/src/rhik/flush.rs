//! Flushing a full buffer: rewrites its partition's tables with the buffer's updates, and builds their directory.

use std::sync::Arc;

use nandex_store::page::PAGE_HEADER_BYTES;
use nandex_store::records::RecordLayout;

use super::Directories;
use super::directory::{Directory, HashRange};
use super::rewrite::{Bodies, Rewrite, Sink};
use crate::Result;
use crate::groups::{GroupMap, GroupReader, GroupRewrite, GroupWriter, Incoming, RewrittenMap};

/// Writes tables with their depths as notes.
struct Tables<'v> {
    layout: RecordLayout,
    writer: GroupWriter<'v>,
}

impl Sink for Tables<'_> {
    fn push(&mut self, range: HashRange, body: &[u8]) -> Result<()> {
        self.writer.push(range.depth, self.layout.count(body), body)
    }
}

impl Directories {
    /// Rewrites all tables of a partition.
    pub(super) fn write_tables(
        &self,
        before: &Directory,
        rewrite: GroupRewrite<'_, '_, Bodies>,
    ) -> Result<RewrittenMap<Directory>> {
        let GroupRewrite { updates, records, hasher, reader, writer, scratch, progress, .. } =
            rewrite;
        let sink = Tables { layout: records, writer };
        let mut rewrite = Rewrite::new(records, hasher, self.occupancy, scratch, sink);
        pass(before, &updates, reader, &mut rewrite, progress)?;
        let (sink, changes) = rewrite.finish()?;
        let groups = sink.writer.finish()?;
        let map = Directory::new(groups.into_iter().map(Arc::new).collect());
        self.counters.note(before, &map, changes);
        let (replaced, pages_written) = (before.groups().cloned().collect(), map.pages());
        Ok(RewrittenMap { map, replaced, pages_written })
    }
}

/// Passes on each table of a partition with its updates, in order.
fn pass<S: Sink>(
    before: &Directory,
    mut updates: &[Incoming<'_>],
    reader: &mut GroupReader,
    rewrite: &mut Rewrite<'_, S>,
    progress: &dyn Fn(f64),
) -> Result<()> {
    if before.is_empty() {
        return rewrite.first_table(updates);
    }
    let pages = before.pages() as f64;
    let mut done = 0;
    let mut range: Option<HashRange> = None;
    let groups = before.group_list();
    reader.begin(groups)?;
    for (number, group) in groups.iter().enumerate() {
        let mut read = reader.next(groups, number)?;
        for (page, depth) in group.notes.iter().enumerate() {
            let own = HashRange::behind(range, *depth);
            let count = updates.partition_point(|update| own.ends_after(update.hash));
            let (those, rest) = updates.split_at(count);
            group.prove(page, read.page(page))?;
            rewrite.table(own, &mut read.page_mut(page)[PAGE_HEADER_BYTES..], those)?;
            (updates, range) = (rest, Some(own));
            done += 1;
        }
        reader.give(read);
        progress(f64::from(done) / pages);
    }
    Ok(())
}
