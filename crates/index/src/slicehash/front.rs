//! The front table: full buffers that wait on flash, unchanged, to be merged at a quieter time (paper, section 7.2).
//!
//! A merge reads and writes a whole slicetable for one buffer. When buffers fill faster than that, the next
//! ones go to a ring of runs instead, each in one short write. They are merged later, all runs of a partition
//! at once. Until then a lookup in that partition may read a page of each run that its filter does not
//! exclude, newest first, before it reads its slice.
//!
//! Runs become durable with the next checkpoint, and the log keeps their entries until then. They are removed by the
//! move that merges them.

use nandex_device::{PageBuf, PageId};
use nandex_store::buffer::{Buffer, page_of};
use nandex_store::hash::KeyHash;
use nandex_store::page::{PageKind, PageLabel, RawPage, seal};
use nandex_store::ring::{Ring, SegmentId, SegmentTag};

use super::filter::SliceFilter;
use super::{Config, Inner, Level};
use crate::Result;

/// The ring of runs.
#[derive(Debug)]
pub(super) struct Front {
    /// The ring; `None` if the table has no front.
    pub ring: Option<Ring>,
    pages: usize,
}

/// A run that is not merged yet.
#[derive(Debug)]
pub(super) struct Run {
    pub id: SegmentId,
    pub entries: u32,
    /// Its filter; `None` for a run from before the table was opened, which may hold any key.
    pub filter: Option<SliceFilter>,
}

const HAS_FRONT: &str = "only a table with a front has runs";

impl Front {
    pub fn new(config: &Config, ring: Option<Ring>) -> Self {
        Self { ring, pages: config.buffer_pages as usize }
    }

    fn ring(&self) -> &Ring {
        self.ring.as_ref().expect(HAS_FRONT)
    }

    /// Returns the place of a key's page in a run.
    pub fn page(&self, id: SegmentId, hash: KeyHash) -> PageId {
        self.page_at(id, page_of(hash, self.pages) as u64)
    }

    /// The place of a page of a run.
    pub fn page_at(&self, id: SegmentId, index: u64) -> PageId {
        self.ring().page(id, index)
    }

    /// Returns the label that a key's page of a run must have.
    pub fn label(&self, id: SegmentId, hash: KeyHash) -> PageLabel {
        self.label_at(id, page_of(hash, self.pages) as u64)
    }

    /// Returns the label that a page of a run must have.
    pub fn label_at(&self, id: SegmentId, index: u64) -> PageLabel {
        self.ring().label(id, index, PageKind::Data)
    }

    /// Notes that runs were merged; frees the oldest ones of the ring once all before them were merged.
    pub fn merged(&self, runs: impl Iterator<Item = SegmentId>) {
        let Some(ring) = &self.ring else { return };
        runs.for_each(|id| ring.complete(id, SegmentTag::default()));
        while let Some((id, tag)) = ring.oldest() {
            if tag.entries > 0 {
                return;
            }
            ring.evict(id);
        }
    }

    /// Encodes the map for the checkpoint, and returns its position once that is durable.
    pub fn capture(&self, out: &mut Vec<u8>) -> u64 {
        let Some(ring) = &self.ring else { return 0 };
        let capture = ring.capture();
        out.extend(capture.bytes);
        capture.mark
    }

    pub fn committed(&self, mark: u64) {
        self.ring.iter().for_each(|ring| ring.committed(mark));
    }

    pub fn ram_bytes(&self) -> usize {
        self.ring.as_ref().map_or(0, Ring::ram_bytes)
    }
}

impl Level {
    /// Returns the runs that may hold a key, newest last.
    pub(super) fn runs_of(&self, hash: KeyHash) -> Vec<SegmentId> {
        let may_hold =
            |run: &&Run| run.filter.as_ref().is_none_or(|filter| filter.may_hold(0, hash));
        self.runs.iter().filter(may_hold).map(|run| run.id).collect()
    }

    /// RAM of the runs' filters and of the overflow, in bytes.
    pub(super) fn ram_bytes(&self) -> u64 {
        let filters = self.runs.iter().filter_map(|run| run.filter.as_ref());
        filters.map(SliceFilter::ram_bytes).sum::<u64>() + self.overflow.ram_bytes()
    }
}

impl Inner {
    /// Takes a place for a run, if merges are behind and the front has space.
    pub(super) fn place_in_front(&self) -> Option<SegmentId> {
        let ring = self.layout.front.ring.as_ref()?;
        if self.work.flushes_waiting() == 0 {
            return None;
        }
        if ring.writable_segments() <= ring.shape().segments / 4 {
            self.volume.request_checkpoint();
        }
        ring.reserve()
    }

    /// Writes a buffer's pages as a run.
    pub(super) fn write_run(&self, id: SegmentId, buffer: &Buffer) -> Result<Run> {
        let mut buf = PageBuf::zeroed(buffer.page_count());
        buf.copy_from_slice(buffer.bytes());
        let ring = self.layout.front.ring();
        for index in 0..buf.pages() {
            seal(buf.page_mut(index), ring.label(id, index as u64, PageKind::Data));
        }
        self.count_written(buf.len() as u64);
        self.volume.poison().guard(self.volume.device().write(ring.page(id, 0), buf))?;
        let entries = buffer.len() - buffer.stash_len();
        let mut filter = SliceFilter::new(1, entries);
        buffer.page_entries().for_each(|(_, _, entry)| filter.add(0, self.hasher.hash(entry.key)));
        let entries = u32::try_from(entries).expect("a buffer has fewer than 2^25 entries");
        Ok(Run { id, entries, filter: Some(filter) })
    }

    /// Notes a written run in the ring.
    pub(super) fn complete_run(&self, index: usize, run: &Run) {
        let (owner, entries) = (index as u32, run.entries);
        let tag = SegmentTag { owner, entries, keys: 0, is_clean: false };
        self.layout.front.ring().complete(run.id, tag);
    }

    /// Frees the place of a run that was not written.
    pub(super) fn abandon_run(&self, id: SegmentId) {
        self.layout.front.merged(std::iter::once(id));
    }

    /// Returns the labels that the pages of a run must have.
    pub(super) fn run_labels(&self, id: SegmentId) -> Vec<PageLabel> {
        let ring = self.layout.front.ring();
        let pages = 0..self.layout.front.pages as u64;
        pages.map(|page| ring.label(id, page, PageKind::Data)).collect()
    }

    /// Reads a run's pages and verifies each.
    pub(super) fn read_run(&self, id: SegmentId) -> Result<PageBuf> {
        let labels = self.run_labels(id);
        let buf = self.volume.device().read(labels[0].page, PageBuf::zeroed(labels.len()))?;
        for (index, label) in labels.into_iter().enumerate() {
            RawPage::new(buf.page(index)).check(label)?;
        }
        Ok(buf)
    }
}
