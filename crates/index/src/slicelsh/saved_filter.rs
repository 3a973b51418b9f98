//! The filter on flash: closing an index saves its filter, so that the next opening need not read the slicetables.
//!
//! It has its own extent, which the catalog names after that of the slicetables, with several pages for each partition.
//! Closing writes the pages of partitions that have changed, in place. The generation of a page is that of the
//! slicetables whose buckets it has. So after another merge, or a crash in the middle of writing, it is invalid, and
//! lookups of its partition read until the filter is rebuilt.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Mutex, MutexGuard};

use nandex_device::{Device, PAGE_BYTES, PageBuf};
use nandex_store::bytes::{get_u32, get_u64, put_u32, put_u64};
use nandex_store::page::{
    PAGE_BODY_BYTES, PAGE_HEADER_BYTES, PageKind, PageLabel, RawPage, StructureId, seal,
};
use nandex_store::shadow::Block;
use nandex_store::space::Extent;

use super::Inner;
use super::filter::{BucketFilter, FilterLine, LINE_BYTES};
use crate::{Error, Result};

/// The bytes of a page before its lines: the number of lines of the partition, and zeros.
const HEAD_BYTES: usize = 32;

/// Lines of a page.
pub(super) const PAGE_LINES: usize = (PAGE_BODY_BYTES - HEAD_BYTES) / LINE_BYTES;

/// The pages that are read at a time, if a partition has no more.
const CHUNK_PAGES: usize = 512;

/// The location of the saved filter of an index.
#[derive(Debug)]
pub(super) struct SavedFilter {
    /// The extent of the slicetables.
    slicetables: Extent,
    extent: Mutex<Option<Extent>>,
}

impl SavedFilter {
    /// Returns the location for an index with these extents.
    pub(super) fn new(extents: &[Extent]) -> Self {
        let slicetables = *extents.first().expect("an index that is opened has one");
        Self { slicetables, extent: Mutex::new(extents.get(1).copied()) }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Extent>> {
        self.extent.lock().expect("no holder of this lock panics")
    }

    /// The extents of the index.
    pub(super) fn extents(&self) -> Vec<Extent> {
        std::iter::once(self.slicetables).chain(*self.lock()).collect()
    }
}

/// Returns the pages of a partition that has `lines` lines.
pub(super) const fn pages_of(lines: usize) -> usize {
    lines.div_ceil(PAGE_LINES)
}

/// The pages of one partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct SavedLines {
    structure: StructureId,
    extent: Extent,
    /// Pages of each partition.
    pages: usize,
    partition: usize,
    /// The slicetables whose buckets they have.
    block: Block,
}

impl SavedLines {
    fn label(&self, index: usize) -> PageLabel {
        let page = self.extent.start.plus((self.partition * self.pages + index) as u64);
        let (kind, structure) = (PageKind::Filter, self.structure);
        PageLabel { kind, structure, generation: self.block.generation, page }
    }

    /// Encodes these lines as sealed pages.
    pub(super) fn encode(&self, lines: &[FilterLine]) -> PageBuf {
        let mut buf = PageBuf::zeroed(self.pages);
        for (index, chunk) in lines.chunks(PAGE_LINES).enumerate() {
            let page = buf.page_mut(index);
            let body = &mut page[PAGE_HEADER_BYTES..];
            put_u32(body, 0, u32::try_from(lines.len()).expect("2^32 lines are 256 GiB"));
            let words = chunk.iter().flat_map(|line| &line.0);
            for (at, word) in words.enumerate() {
                put_u64(body, HEAD_BYTES + 8 * at, word.load(Relaxed));
            }
            seal(page, self.label(index));
        }
        buf
    }

    /// Reads these lines; returns false, with some of them read, if a page is invalid.
    pub(super) fn decode(&self, lines: &[FilterLine], bytes: &[u8]) -> bool {
        let pages = bytes.chunks_exact(PAGE_BYTES).zip(lines.chunks(PAGE_LINES));
        pages.enumerate().all(|(index, (bytes, chunk))| {
            let Ok(page) = RawPage::new(bytes).check(self.label(index)) else { return false };
            let body = page.body();
            let words = chunk.iter().flat_map(|line| &line.0);
            for (at, word) in words.enumerate() {
                word.store(get_u64(body, HEAD_BYTES + 8 * at), Relaxed);
            }
            get_u32(body, 0) as usize == lines.len()
        })
    }

    /// Reads the lines of one partition, whose number only flash knows; returns none that are invalid.
    pub(super) fn read(
        device: &dyn Device,
        (structure, extent): (StructureId, Extent),
        partitions: usize,
        (partition, block): (usize, Block),
    ) -> Option<Vec<FilterLine>> {
        let pages = usize::try_from(extent.pages).ok()? / partitions;
        if pages == 0 {
            return None;
        }
        let saved = Self { structure, extent, pages, partition, block };
        let buf = device.read(saved.label(0).page, PageBuf::zeroed(pages)).ok()?;
        let first = RawPage::new(buf.page(0)).check(saved.label(0)).ok()?;
        let count = get_u32(first.body(), 0) as usize;
        let lines: Vec<_> =
            (0..count.min(pages * PAGE_LINES)).map(|_| FilterLine::default()).collect();
        (pages_of(count) == pages && saved.decode(&lines, &buf)).then_some(lines)
    }
}

impl Inner {
    fn saved_lines(
        &self,
        filter: &BucketFilter,
        extent: Extent,
        partition: usize,
    ) -> Option<SavedLines> {
        let block = self.layout.shadow.block(u32::try_from(partition).ok()?)?;
        let pages = pages_of(filter.lines_of(partition).len());
        Some(SavedLines { structure: self.id, extent, pages, partition, block })
    }

    /// Loads the lines of partitions that are saved. Lookups of the others continue to read.
    pub(super) fn load_filter(&self) -> Result<()> {
        let Some(filter) = &self.layout.filter else { return Ok(()) };
        let extent = *self.layout.saved_filter.lock();
        let Some(extent) = extent.filter(|extent| extent.pages == filter.pages()) else {
            return Ok(());
        };
        let partitions = self.partitions.len();
        let each = pages_of(filter.lines_of(0).len());
        let at_a_time = (CHUNK_PAGES / each).max(1);
        for first in (0..partitions).step_by(at_a_time) {
            let chunk = first..partitions.min(first + at_a_time);
            let buf = PageBuf::zeroed(chunk.len() * each);
            let start = extent.start.plus((first * each) as u64);
            let buf = self.volume.device().read(start, buf)?;
            for (partition, bytes) in chunk.zip(buf.chunks_exact(each * PAGE_BYTES)) {
                let saved = self.saved_lines(filter, extent, partition);
                if let Some(saved) = saved
                    && saved.decode(filter.lines_of(partition), bytes)
                {
                    filter.note_saved(partition, saved.block.generation);
                    filter.is_whole[partition].store(true, Release);
                }
            }
        }
        Ok(())
    }

    /// Saves the lines of partitions that are whole and not yet saved. Does nothing on a device without space for them.
    pub(super) fn save_filter(&self) -> Result<()> {
        let Some(filter) = &self.layout.filter else { return Ok(()) };
        let is_unsaved = |partition: &usize| {
            let block = self.layout.shadow.block(*partition as u32);
            let is_whole = filter.is_whole[*partition].load(Acquire);
            block.is_some_and(|block| is_whole && !filter.is_saved(*partition, block.generation))
        };
        let unsaved: Vec<_> = (0..self.partitions.len()).filter(is_unsaved).collect();
        let is_refused = self.volume.is_read_only() || self.volume.poison().is_set();
        if unsaved.is_empty() || is_refused {
            return Ok(());
        }
        let Some(extent) = self.filter_extent(filter)? else { return Ok(()) };
        for partition in unsaved {
            let _lock = self.partitions[partition].maintain();
            let Some(saved) = self.saved_lines(filter, extent, partition) else { continue };
            let buf = saved.encode(filter.lines_of(partition));
            let bytes = buf.len() as u64;
            let written = self.volume.device().write(saved.label(0).page, buf);
            self.volume.poison().guard(written)?;
            self.count_written(bytes);
        }
        Ok(())
    }

    /// Returns the extent of the filter, which the catalog names, after freeing an earlier one.
    fn filter_extent(&self, filter: &BucketFilter) -> Result<Option<Extent>> {
        let own = *self.layout.saved_filter.lock();
        if let Some(extent) = own.filter(|extent| extent.pages == filter.pages()) {
            return Ok(Some(extent));
        }
        let extent = match self.volume.allocate(filter.pages()).map_err(Error::from) {
            Err(error) if error.is_no_space() => return Ok(None),
            allocated => allocated?,
        };
        *self.layout.saved_filter.lock() = Some(extent);
        self.volume.checkpoint()?;
        Ok(Some(extent))
    }
}

#[cfg(test)]
mod tests {
    use crate::OpenOptions;
    use std::ops::Range;
    use std::sync::Arc;

    use nandex_device::{MemoryDevice, PageId};
    use nandex_store::{Volume, VolumeOpenOptions, VolumeOptions};

    use super::*;
    use crate::slicelsh::Config;
    use crate::{Neighbors, SliceLsh};

    const PARTITIONS: usize = 4;
    const FILTERED: u64 = 1 << 20;

    fn config() -> Config {
        Config { partitions: 4, slices: 40, entries_max: 3 * 40 * 190, ..Config::tiny() }
    }

    fn row(document: u64) -> [u64; 3] {
        [document, document + 1_000_000, document + 2_000_000]
    }

    /// An index with a number of documents, and its volume.
    struct Opened {
        device: MemoryDevice,
        volume: Volume,
        index: SliceLsh,
    }

    impl Opened {
        /// Returns an index of 2,000 documents that was closed once with its filter.
        fn again() -> Self {
            let device = MemoryDevice::new();
            let volume = Volume::create(Arc::new(device.clone()), VolumeOptions::tiny()).unwrap();
            let index =
                SliceLsh::create_with(&volume, "alike", config(), options(FILTERED)).unwrap();
            let opened = Self { device, volume, index };
            opened.insert(0..2000);
            opened.close_and_open(FILTERED)
        }

        fn insert(&self, documents: Range<u64>) {
            documents.for_each(|it| self.index.insert(it, &row(it)).unwrap());
        }

        fn close_and_open(self, filter_bytes_max: u64) -> Self {
            let Self { device, volume, index } = self;
            index.close().unwrap();
            let index = SliceLsh::open_with(&volume, "alike", options(filter_bytes_max)).unwrap();
            Self { device, volume, index }
        }

        /// Returns the index as opened after a power cut.
        fn crash(self) -> Self {
            let device = MemoryDevice::from_image(self.device.image());
            std::mem::forget((self.index, self.volume));
            let volume =
                Volume::open(Arc::new(device.clone()), VolumeOpenOptions::default()).unwrap();
            let index = SliceLsh::open_with(&volume, "alike", options(FILTERED)).unwrap();
            Self { device, volume, index }
        }

        fn inner(&self) -> &Inner {
            &self.index.core
        }

        fn whole(&self) -> usize {
            let filter = self.inner().layout.filter.as_ref().unwrap();
            filter.is_whole.iter().filter(|it| it.load(Relaxed)).count()
        }

        fn generations(&self) -> Vec<u64> {
            let block = |partition| self.inner().layout.shadow.block(partition).unwrap();
            (0..PARTITIONS as u32).map(|it| block(it).generation).collect()
        }

        /// Returns how many documents it has then, and how many partitions were merged.
        fn insert_until_one_is_merged(&self) -> (u64, usize) {
            let before = self.generations();
            let merged = || self.generations().iter().zip(&before).filter(|(a, b)| a != b).count();
            let mut documents = 2000;
            while merged() == 0 {
                self.insert(documents..documents + 1);
                documents += 1;
            }
            assert!(merged() < PARTITIONS);
            (documents, merged())
        }

        fn filter_extent(&self) -> Extent {
            let extents = self.inner().layout.saved_filter.extents();
            assert_eq!(extents.len(), 2);
            extents[1]
        }

        fn assert_answers(&self, documents: u64) {
            for document in 0..documents {
                assert_eq!(self.index.candidates(&row(document)).unwrap(), [document]);
            }
        }

        fn findings(&self) -> Vec<String> {
            let device = MemoryDevice::from_image(self.device.image());
            let report = crate::check(Arc::new(device), None, &mut |_| {}).unwrap();
            report.findings.iter().map(ToString::to_string).collect()
        }
    }

    fn options(filter_bytes_max: u64) -> OpenOptions {
        OpenOptions {
            flush_threads: Some(0),
            filter_bytes: filter_bytes_max,
            ..OpenOptions::default()
        }
    }

    #[test]
    fn an_index_that_was_closed_has_its_filter_when_it_is_opened() {
        let opened = Opened::again();
        assert_eq!(opened.whole(), PARTITIONS);
        let absent: Vec<_> = (5000..6000).flat_map(row).collect();
        assert!(opened.index.candidates_many(&absent).unwrap().iter().all(Vec::is_empty));
        let reads = opened.index.stats().lookup_reads;
        // One in a hundred of 3,000 buckets may be a false positive.
        assert!(reads < 60, "{reads}");
        opened.assert_answers(2000);
        assert_eq!(opened.findings(), [""; 0]);
    }

    #[test]
    fn closing_writes_the_lines_of_partitions_that_changed() {
        let written = |opened: &Opened| opened.index.stats().data_bytes_written;
        let opened = Opened::again();
        let page_bytes = opened.filter_extent().pages * PAGE_BYTES as u64;
        opened.inner().save_filter().unwrap();
        assert_eq!(written(&opened), 0, "nothing has changed");
        let (_, merged) = opened.insert_until_one_is_merged();
        let bytes = written(&opened);
        opened.inner().save_filter().unwrap();
        assert_eq!(written(&opened) - bytes, page_bytes * merged as u64 / 4);
    }

    #[test]
    fn after_a_crash_partitions_that_were_merged_read_until_their_lines_are_made_again() {
        let opened = Opened::again();
        let (documents, merged) = opened.insert_until_one_is_merged();
        opened.index.sync().unwrap();
        let opened = opened.crash();
        assert_eq!(opened.whole(), PARTITIONS - merged);
        opened.assert_answers(documents);
        assert_eq!(opened.whole(), PARTITIONS);
        assert_eq!(opened.findings(), [""; 0]);
    }

    #[test]
    fn lines_of_which_a_page_is_torn_are_passed_over() {
        let opened = Opened::again();
        let page = opened.filter_extent().start.plus(1);
        let mut buf = opened.device.read(page, PageBuf::zeroed(1)).unwrap();
        buf[900] ^= 1;
        opened.device.write(page, buf).unwrap();
        let opened = opened.crash();
        assert_eq!(opened.whole(), PARTITIONS - 1);
        opened.assert_answers(2000);
    }

    #[test]
    fn a_filter_of_another_size_replaces_the_one_before() {
        let opened = Opened::again();
        let large = opened.filter_extent();
        // Four bits an entry, and twelve again.
        let few = u64::from(config().entries_max) * PARTITIONS as u64 * 4 / 8;
        let opened = opened.close_and_open(few);
        assert_eq!(opened.whole(), 0);
        opened.assert_answers(2000);
        let opened = opened.close_and_open(few);
        assert!(opened.whole() == PARTITIONS && opened.filter_extent().pages < large.pages);
        let device_pages = opened.device.page_count();
        let mut opened = opened;
        for bytes in [FILTERED, few, FILTERED] {
            opened = opened.close_and_open(bytes);
            opened.assert_answers(2000);
        }
        opened = opened.close_and_open(FILTERED);
        assert_eq!(opened.whole(), PARTITIONS);
        assert!(opened.device.page_count() <= device_pages + large.pages);
        // An index without lookups stays as it is.
        let opened = opened.close_and_open(0).close_and_open(FILTERED);
        assert_eq!(opened.whole(), PARTITIONS);
    }

    #[test]
    fn a_saved_filter_that_lacks_a_bucket_is_found_by_the_check() {
        let opened = Opened::again();
        let extent = opened.filter_extent();
        let filter = opened.inner().layout.filter.as_ref().unwrap();
        let saved = opened.inner().saved_lines(filter, extent, 1).unwrap();
        let lines: Vec<_> = filter.lines_of(1).iter().map(|_| FilterLine::default()).collect();
        opened.device.write(saved.label(0).page, saved.encode(&lines)).unwrap();
        let findings = opened.findings();
        assert!(findings[0].contains("the saved filter does not have its bucket"), "{findings:?}");
        assert!(findings.iter().all(|it| it.contains("partition 1")), "{findings:?}");
    }

    #[test]
    fn lines_read_back_with_the_bytes_that_the_page_shows() {
        let extent = Extent { start: PageId(100), pages: 6 };
        let block = Block { physical: 3, generation: 7, entries: 1 };
        let saved = SavedLines { structure: StructureId(2), extent, pages: 2, partition: 1, block };
        let lines: Vec<_> = (0..PAGE_LINES + 1).map(|_| FilterLine::default()).collect();
        lines[1].0[2].store(0x0102, Relaxed);
        lines[PAGE_LINES].0[0].store(9, Relaxed);
        let buf = saved.encode(&lines);
        let body = &buf.page(0)[PAGE_HEADER_BYTES..];
        assert_eq!((get_u32(body, 0), get_u64(body, 32 + 64 + 16)), (64, 0x0102));
        assert_eq!(get_u64(&buf.page(1)[PAGE_HEADER_BYTES..], 32), 9);
        let read: Vec<_> = lines.iter().map(|_| FilterLine::default()).collect();
        assert!(saved.decode(&read, &buf));
        let words = |lines: &[FilterLine]| -> Vec<u64> {
            lines.iter().flat_map(|line| line.0.iter().map(|it| it.load(Relaxed))).collect()
        };
        assert_eq!(words(&read), words(&lines));
        let other = SavedLines { block: Block { generation: 8, ..block }, ..saved };
        assert!(!other.decode(&read, &buf), "it has the buckets of other slicetables");
        assert!(!saved.decode(&read[1..], &buf), "it has more lines");
    }
}
