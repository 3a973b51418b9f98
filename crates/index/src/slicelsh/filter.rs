//! A filter in RAM of the buckets that slicetables have: a lookup of any other bucket reads no page.
//!
//! It is a Bloom filter of blocks, each one line of the processor's cache, so that a query costs one cache miss. A
//! bucket that a merge has put on flash is in it before the new slicetables are, and none is ever removed: an entry
//! that was removed or evicted costs a read. Closing the index [saves](super::saved_filter) it. If an opening does not
//! find it whole, after a crash for instance, it is rebuilt from the slicetables, read in their order, once lookups
//! have read an eighth as many pages one by one: reading all of them then costs no more.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

use nandex_device::{PAGE_BYTES, PageBuf, prefetch};
use nandex_store::bytes::get_u64;
use nandex_store::hash::KeyHash;
use nandex_store::page::{PageKind, RawPage};
use nandex_store::shadow::Block;

use super::flush::FillFilter;
use super::saved_filter::pages_of;
use super::{Config, Inner};
use crate::Result;
use crate::write::pool::Job;

/// Bits of a block.
const BLOCK_BITS: u64 = 512;

/// The least and the most bits of the filter for an entry of a full index. With fewer it has too many false positives
/// to be worth its RAM, and with more hardly fewer.
const ENTRY_BITS_MIN: u64 = 4;
const ENTRY_BITS_MAX: u64 = 12;

/// Bits that are set for a bucket.
const HASHES: u32 = 4;

/// Marks the absence of a generation: this number is never issued.
const UNSAVED: u64 = u64::MAX;

/// The pages that are read at a time while it is built.
const CHUNK_PAGES: u64 = 512;

/// The number of pages that are read in order in the time of one page that a lookup reads.
const PAGES_PER_LOOKUP: u64 = 8;

/// Bytes of a block.
pub(super) const LINE_BYTES: usize = (BLOCK_BITS / 8) as usize;

/// A block of the filter, and one line of the cache.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct FilterLine(pub [AtomicU64; LINE_BYTES / 8]);

/// The buckets that slicetables have, and false positives.
#[derive(Debug)]
pub(super) struct BucketFilter {
    lines: Vec<FilterLine>,
    /// Whether it has all buckets of each partition.
    pub(super) is_whole: Box<[AtomicBool]>,
    /// The generation of each partition's slicetables whose buckets are saved on flash; [`UNSAVED`] for none.
    saved: Box<[AtomicU64]>,
    /// The number of lookups in partitions that are not whole.
    unanswered: AtomicU64,
}

/// The line of a bucket, and its bits in the words of that line.
pub(super) struct Bits {
    pub line: usize,
    bits: [(usize, u64); HASHES as usize],
}

impl BucketFilter {
    /// Creates an empty filter for an index of this configuration with at most `bytes_max` bytes, which has all buckets
    /// of the partitions for which `is_empty` holds; `None` if that is too little.
    pub(super) fn new(
        config: &Config,
        bytes_max: u64,
        is_empty: impl Fn(u32) -> bool,
    ) -> Option<Self> {
        let entries = u64::from(config.partitions) * u64::from(config.entries_max);
        let bits = (bytes_max.saturating_mul(8) / entries.max(1)).min(ENTRY_BITS_MAX);
        if bits < ENTRY_BITS_MIN {
            return None;
        }
        let partitions = u64::from(config.partitions);
        let lines = (entries * bits / BLOCK_BITS / partitions).max(1) * partitions;
        let lines = (0..lines).map(|_| FilterLine::default()).collect();
        let is_whole = (0..config.partitions).map(|it| AtomicBool::new(is_empty(it))).collect();
        let saved = (0..config.partitions).map(|_| AtomicU64::new(UNSAVED)).collect();
        Some(Self { lines, is_whole, saved, unanswered: AtomicU64::new(0) })
    }

    /// Returns the lines of one partition; all partitions have the same number.
    pub(super) fn lines_of(&self, partition: usize) -> &[FilterLine] {
        let each = self.lines.len() / self.is_whole.len();
        &self.lines[partition * each..][..each]
    }

    /// The pages that it takes on flash.
    pub(super) fn pages(&self) -> u64 {
        (self.is_whole.len() * pages_of(self.lines_of(0).len())) as u64
    }

    /// Returns whether the buckets of a partition's slicetables of this generation are saved on flash.
    pub(super) fn is_saved(&self, partition: usize, generation: u64) -> bool {
        self.saved[partition].load(Relaxed) == generation
    }

    /// Notes that they are saved on flash.
    pub(super) fn note_saved(&self, partition: usize, generation: u64) {
        self.saved[partition].store(generation, Relaxed);
    }

    pub(super) fn ram_bytes(&self) -> u64 {
        (self.lines.len() * size_of::<FilterLine>()) as u64
    }

    /// Adds a bucket. The caller holds the maintenance lock of its partition, whose lines no other thread changes.
    pub(super) fn insert(&self, table: u8, hash: KeyHash) {
        let Bits { line, bits } = Bits::of(self.lines.len(), (table, hash));
        for (word, bit) in bits {
            let word = &self.lines[line].0[word];
            word.store(word.load(Relaxed) | bit, Relaxed);
        }
    }

    /// Returns whether it has all buckets of this partition.
    fn is_whole(&self, partition: usize) -> bool {
        self.is_whole[partition].load(Acquire)
    }

    /// Prefetches what [`may_have`](Self::may_have) will read.
    fn prefetch(&self, table: u8, hash: KeyHash) {
        prefetch(&self.lines[Bits::of(self.lines.len(), (table, hash)).line]);
    }

    /// Returns whether slicetables may have this bucket, in a partition that is whole.
    fn may_have(&self, table: u8, hash: KeyHash) -> bool {
        let bits = Bits::of(self.lines.len(), (table, hash));
        bits.are_in(&self.lines[bits.line])
    }
}

impl Bits {
    /// The lines of a partition are together, so that a merge, and the building of a filter, find them in the cache. A
    /// bucket key has the same hash in all tables, and its buckets have different bits of one line.
    pub(super) fn of(lines: usize, (table, hash): (u8, KeyHash)) -> Self {
        const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
        let product = u128::from(hash.place) * lines as u128;
        let mixed = hash.filter ^ MULTIPLIER.wrapping_mul(u64::from(table) + 1);
        let mixed = mixed.wrapping_mul(MULTIPLIER);
        let mixed = mixed ^ (mixed >> 32);
        let bits = std::array::from_fn(|nth| {
            let bit = mixed >> (9 * nth) & (BLOCK_BITS - 1);
            ((bit / 64) as usize, 1 << (bit % 64))
        });
        Self { line: (product >> 64) as usize, bits }
    }

    /// Returns whether all of them are set in their line.
    pub(super) fn are_in(&self, line: &FilterLine) -> bool {
        self.bits.iter().all(|(word, bit)| line.0[*word].load(Relaxed) & bit != 0)
    }
}

impl Inner {
    /// Prefetches what [`may_be_on_flash`](Self::may_be_on_flash) will read for a row.
    pub(super) fn prefetch_filter(&self, row: &[u64]) {
        let Some(filter) = &self.layout.filter else { return };
        let buckets = (0..).zip(row);
        buckets.for_each(|(table, key)| filter.prefetch(table, self.layout.placing.hash(*key)));
    }

    /// Returns whether a page must be read for this bucket of a partition.
    pub(super) fn may_be_on_flash(
        &self,
        partition: usize,
        (table, hash): (u8, KeyHash),
    ) -> Result<bool> {
        let Some(filter) = &self.layout.filter else { return Ok(true) };
        if filter.is_whole(partition) {
            return Ok(filter.may_have(table, hash));
        }
        let pages = self.layout.config.block_pages() as u64 * self.partitions.len() as u64;
        let unanswered = filter.unanswered.fetch_add(1, Relaxed) + 1;
        if unanswered == (pages / PAGES_PER_LOOKUP).max(1) {
            self.begin_to_fill(filter)?;
        }
        Ok(true)
    }

    /// Lets the background read the slicetables into the filter, one partition at a time; does so itself if there is no
    /// background.
    fn begin_to_fill(&self, filter: &BucketFilter) -> Result<()> {
        for partition in (0..self.partitions.len()).filter(|it| !filter.is_whole(*it)) {
            if self.options.flush_threads > 0 {
                self.work.push(Job::Own(FillFilter(partition)));
            } else {
                self.fill_filter(partition)?;
            }
        }
        Ok(())
    }

    /// Reads the slicetables of a partition into the filter. If a page is damaged, lookups of the partition continue to
    /// read: those that need the page report its damage.
    pub(super) fn fill_filter(&self, partition: usize) -> Result<()> {
        let Some(filter) = &self.layout.filter else { return Ok(()) };
        let _lock = self.partitions[partition].maintain();
        let block = self.layout.shadow.block(partition as u32);
        if block.map_or(Ok(true), |block| self.add_block(filter, block))? {
            filter.is_whole[partition].store(true, Release);
        }
        Ok(())
    }

    /// Adds the buckets of a partition's slicetables; returns false if a page is damaged.
    fn add_block(&self, filter: &BucketFilter, block: Block) -> Result<bool> {
        let layout = &self.layout;
        let pages = u64::from(layout.config.block_pages());
        let mut buf = PageBuf::zeroed(CHUNK_PAGES.min(pages) as usize);
        for first in (0..pages).step_by(CHUNK_PAGES as usize) {
            let count = CHUNK_PAGES.min(pages - first);
            if count as usize * PAGE_BYTES != buf.len() {
                buf = PageBuf::zeroed(count as usize);
            }
            buf = self.volume.device().read(layout.shadow.page(block, first), buf)?;
            let pages = (first..).zip(buf.chunks_exact(PAGE_BYTES));
            for (index, bytes) in pages {
                if !self.add_page(filter, (block, index), bytes) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn add_page(&self, filter: &BucketFilter, (block, index): (Block, u64), bytes: &[u8]) -> bool {
        let layout = &self.layout;
        let Some((table, _)) = layout.placement.slice_of(index) else { return true };
        let label = layout.shadow.label(block, index, PageKind::Slice);
        let Ok(page) = RawPage::new(bytes).check(label) else { return false };
        let body = page.body();
        let Some(count) = layout.slices.count(body) else { return false };
        for at in 0..count {
            filter.insert(table, layout.placing.hash(get_u64(layout.slices.key(body, at), 0)));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nandex_device::{Device, MemoryDevice};
    use nandex_store::hash::{HashKind, KeyHasher};
    use nandex_store::{Volume, VolumeOpenOptions, VolumeOptions};

    use super::*;
    use crate::OpenOptions;
    use crate::{Neighbors, SliceLsh};

    const FILTERED: u64 = 1 << 20;

    fn config() -> Config {
        // Space for all documents of the tests.
        Config { partitions: 4, slices: 40, entries_max: 3 * 40 * 190, ..Config::tiny() }
    }

    fn options(filter_bytes_max: u64) -> OpenOptions {
        OpenOptions {
            flush_threads: Some(0),
            filter_bytes: filter_bytes_max,
            ..OpenOptions::default()
        }
    }

    fn row(document: u64) -> [u64; 3] {
        [document, document + 1_000_000, document % 500 + 2_000_000]
    }

    /// Inserts documents, and returns the volume that has them on flash.
    fn filled(device: &Arc<dyn Device>, options: OpenOptions) -> (Volume, SliceLsh) {
        let volume = Volume::create(Arc::clone(device), VolumeOptions::tiny()).unwrap();
        let index = SliceLsh::create_with(&volume, "alike", config(), options).unwrap();
        for document in 0..2000 {
            index.insert(document, &row(document)).unwrap();
        }
        (volume, index)
    }

    #[test]
    fn buckets_that_were_added_are_there_and_few_others() {
        let config = Config { partitions: 1, entries_max: 50_000, slices: 100, ..Config::tiny() };
        let hasher = KeyHasher::new(HashKind::Xxh3, 1);
        let hash = |key: u64| hasher.hash(&key.to_le_bytes());
        for (bits, most) in [(4_u64, 0.22), (8, 0.04), (12, 0.015)] {
            let filter = BucketFilter::new(&config, 50_000 * bits / 8 + 64, |_| true).unwrap();
            assert!(filter.ram_bytes() <= 50_000 * bits / 8 + 64);
            (0..50_000).for_each(|key| filter.insert((key % 3) as u8, hash(key)));
            assert!((0..50_000).all(|key| filter.may_have((key % 3) as u8, hash(key))));
            let others = (0..50_000).filter(|key| filter.may_have((key % 3 + 1) as u8, hash(*key)));
            let share = others.count() as f64 / 50_000.0;
            assert!(share < most, "{share} with {bits} bits");
        }
        assert!(BucketFilter::new(&config, 50_000 / 2 - 100, |_| true).is_none());
    }

    #[test]
    fn lookups_of_absent_buckets_read_nothing_and_of_others_what_they_need() {
        // Without a filter for a while, the saved one belongs to slicetables that no longer exist.
        for reopened in [false, true] {
            let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
            let (volume, mut index) = filled(&device, options(if reopened { 0 } else { FILTERED }));
            if reopened {
                index.close().unwrap();
                index = SliceLsh::open_with(&volume, "alike", options(FILTERED)).unwrap();
            }
            let filter = index.core.layout.filter.as_ref().unwrap();
            let is_whole = || (0..4).all(|partition| filter.is_whole(partition));
            assert_eq!(is_whole(), !reopened);
            let pages = u64::from(config().block_pages()) * 4;
            for document in 0..pages / PAGES_PER_LOOKUP {
                assert!(index.candidates(&row(document)).unwrap().contains(&document));
            }
            assert!(is_whole(), "lookups have read an eighth of the pages three times");
            let before = index.stats();
            let rows: Vec<u64> =
                (5000..7000).flat_map(|it| [it, it + 1_000_000, it + 3_000_000]).collect();
            assert!(index.candidates_many(&rows).unwrap().iter().all(Vec::is_empty));
            let reads = index.stats().lookup_reads - before.lookup_reads;
            // One in a hundred of 6,000 buckets may be a false positive.
            assert!(reads < 120, "{reads}");
            for document in [0, 777, 1999] {
                assert!(index.candidates(&row(document)).unwrap().contains(&document));
            }
            assert!(index.stats().lookup_reads > before.lookup_reads + reads);
            assert!(index.stats().ram_bytes > filter.ram_bytes() && filter.ram_bytes() > 100_000);
        }
    }

    #[test]
    fn the_filter_takes_no_more_than_the_ram_of_the_index_leaves() {
        let counted = |ram_bytes_max: Option<u64>| {
            let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
            let (volume, index) =
                filled(&device, OpenOptions { ram_bytes_max, ..options(FILTERED) });
            let filter = index.core.layout.filter.as_ref().map(BucketFilter::ram_bytes);
            (filter, index.stats().ram_bytes - volume.log().stats().ram_bytes)
        };
        let own = config().ram_bytes();
        let (whole, _) = counted(None);
        let whole = whole.unwrap();
        let (some, ram_bytes) = counted(Some(own + whole / 2));
        assert!(some.is_some_and(|some| some <= whole / 2), "{some:?} of {whole}");
        assert!(ram_bytes <= own + whole / 2, "{ram_bytes}, {own}, {whole}");
        assert_eq!(counted(Some(own)).0, None);
        // Twelve bits an entry, rounded to whole lines for each partition.
        let most = 4 * u64::from(config().entries_max) * 12 / 8;
        assert!(whole <= most && most - whole < 4 * 64, "{whole} of {most}");
        assert_eq!(counted(Some(own + most)).0, Some(whole));
    }

    #[test]
    fn answers_are_those_without_a_filter() {
        let devices: [Arc<dyn Device>; 2] =
            [Arc::new(MemoryDevice::new()), Arc::new(MemoryDevice::new())];
        let found = [0, FILTERED].into_iter().zip(&devices).map(|(bytes, device)| {
            let (_volume, index) = filled(device, options(bytes));
            for document in (0..2000).step_by(3) {
                index.remove(document, &row(document)).unwrap();
            }
            let rows: Vec<u64> = (0..2500).flat_map(row).collect();
            index.candidates_many(&rows).unwrap()
        });
        let found: Vec<_> = found.collect();
        assert_eq!(found[0], found[1]);
        assert!(found[0].iter().flatten().count() > 1000);
    }

    /// A page that is damaged when the filter is built must not make lookups skip it.
    #[test]
    fn with_a_damaged_page_lookups_read_and_say_so() {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let (volume, index) = filled(&device, options(0));
        let block = index.core.layout.shadow.block(1).unwrap();
        let place = index.core.layout.shadow.page(block, 0);
        index.close().unwrap();
        drop(volume);
        let mut page = device.read(place, PageBuf::zeroed(1)).unwrap();
        page[100] ^= 1;
        device.write(place, page).unwrap();
        let volume = Volume::open(Arc::clone(&device), VolumeOpenOptions::default()).unwrap();
        let index = SliceLsh::open_with(&volume, "alike", options(FILTERED)).unwrap();
        let failures = (0..2000).filter(|it| index.candidates(&row(*it)).is_err()).count();
        assert!(failures > 0);
    }
}
