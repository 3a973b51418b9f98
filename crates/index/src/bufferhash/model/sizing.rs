//! One combination of a BufferHash's parameters, and its costs: RAM, flash and device operations.

use crate::bufferhash::filter::{FilterKind, FilterShape};
use crate::bufferhash::rewrite::READ_PAGES;
use crate::bufferhash::{Config, Placement};
use crate::model::{PAGE_BYTES, PAGE_HEADER_BYTES, Requirements, page_slots};

/// RAM that does not depend on the size: the log's blocks, page buffers, maps.
pub(in crate::bufferhash) const FIXED_RAM_BYTES: u64 = 3 << 19;
/// RAM per entry of a buffer for building its filter, in addition to the segment that is written.
const SCRATCH_BYTES: u64 = 48;
/// The largest share of live entries in the flash of a table that rejects inserts: the rest has updated or removed
/// entries until a super table is rewritten. An update then writes 1 + .7 / (2 * .3) = 2.2 entries.
pub(in crate::bufferhash) const LIVE_SHARE: f64 = 0.7;
/// RAM per segment: its place and its tag.
pub(super) const SEGMENT_RAM_BYTES: u64 = 24;

/// Segments that rewriting a super table may take in addition to its incarnations: the last one is not full, and
/// filters leave some entries out.
pub(in crate::bufferhash) const REWRITE_SPARE: u64 = 3;

/// Returns the maximum number of incarnations of a super table that is cleaned, if all have `incarnations` on average:
/// it has the most just before it is rewritten.
pub(in crate::bufferhash) fn incarnations_peak(incarnations: u32) -> u32 {
    incarnations + incarnations / 3 + 1
}

/// Returns the RAM of rewriting a super table: its new segments, and the versions in some pages of all old ones.
pub(super) fn rewrite_bytes(
    (incarnations, live): (u32, f64),
    segment_pages: u32,
    entry_bytes: u64,
) -> u64 {
    let segments = live + REWRITE_SPARE as f64;
    let read = u64::from(incarnations_peak(incarnations)).max(READ_PAGES as u64);
    let version_bytes = 17 + entry_bytes + (12 + entry_bytes) / 8;
    let read_bytes = read * (PAGE_BYTES + page_slots(entry_bytes) * version_bytes);
    (segments * f64::from(segment_pages)) as u64 * PAGE_BYTES + read_bytes
}

/// Returns the pages of a buffer on flash, including its column of the filter.
pub(super) fn segment_pages(pages: u32, filter: &FilterShape) -> u32 {
    let filter_bytes = filter.column_bits().div_ceil(8) as u64;
    let filter_pages = filter_bytes.div_ceil(PAGE_BYTES - PAGE_HEADER_BYTES);
    pages + u32::try_from(filter_pages).expect("a column takes fewer pages than flash has")
}

/// Returns the RAM of a flush: the buffer's pages, its column of the filter, and its entries.
pub(super) fn scratch_bytes(pages: u32, filter: &FilterShape, entries: u64) -> u64 {
    u64::from(pages) * PAGE_BYTES + (filter.column_bits() / 8) as u64 + entries * SCRATCH_BYTES
}

/// Sizes without a filter.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnfilteredSizes {
    pub(super) super_tables: u32,
    pub(super) incarnations: u32,
    pub(super) pages: u32,
    pub(super) entries: u64,
    /// Whether it is cleaned.
    pub(super) cleans: bool,
}

/// One combination of all parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferHashSizing {
    pub(super) super_tables: u32,
    pub(super) incarnations: u32,
    pub(super) pages: u32,
    pub(super) spare_buffers: u32,
    /// New entries per incarnation, without bumped ones.
    pub(super) entries: u64,
    /// Whether super tables are rewritten without updated or removed entries.
    pub(super) cleans: bool,
    pub(super) filter: FilterShape,
    pub(super) buffer_bytes: u64,
    pub(super) filter_bytes: u64,
    pub(super) ram_bytes: u64,
    pub(super) miss_reads: f64,
}

impl UnfilteredSizes {
    pub(super) fn with(self, filter: FilterShape, entry_bytes: u64) -> BufferHashSizing {
        let Self { super_tables, incarnations, pages, entries, cleans } = self;
        let spare_buffers = (super_tables / 16).max(2);
        let buffers = u64::from(super_tables) + u64::from(spare_buffers);
        let buffer_bytes = buffers * u64::from(pages) * PAGE_BYTES;
        let filter_bytes = u64::from(super_tables) * filter.ram_bytes() as u64;
        let segments = u64::from(super_tables) * u64::from(incarnations) + u64::from(spare_buffers);
        let in_all = segment_pages(pages, &filter);
        let live = f64::from(incarnations) * LIVE_SHARE;
        let rewritten =
            if cleans { rewrite_bytes((incarnations, live), in_all, entry_bytes) } else { 0 };
        let scratch = scratch_bytes(pages, &filter, entries) + rewritten;
        let ram_bytes =
            buffer_bytes + filter_bytes + FIXED_RAM_BYTES + scratch + segments * SEGMENT_RAM_BYTES;
        let miss_reads = f64::from(incarnations) * filter.rate(entries);
        BufferHashSizing {
            super_tables,
            incarnations,
            pages,
            spare_buffers,
            entries,
            cleans,
            filter,
            buffer_bytes,
            filter_bytes,
            ram_bytes,
            miss_reads,
        }
    }
}

impl BufferHashSizing {
    /// Returns the RAM of everything except buffers and filters.
    pub(super) fn other_bytes(&self) -> u64 {
        self.ram_bytes - self.buffer_bytes - self.filter_bytes
    }

    /// Returns the incarnations of all super tables.
    pub(super) fn live(&self) -> u64 {
        u64::from(self.super_tables) * u64::from(self.incarnations)
    }

    /// Returns the entries that it takes, if `entries` were required: as many versions as there is space for, or keys.
    pub(super) fn entries_capacity(&self, entries: u64) -> u64 {
        if self.cleans { entries } else { self.live() * self.entries }
    }

    /// Returns the segments of flash: one per incarnation, and one per spare buffer to flush to before an eviction.
    pub(super) fn segments(&self) -> u64 {
        self.live() + u64::from(self.spare_buffers)
    }

    /// Pages of an incarnation on flash: data and its column of the filter.
    pub(super) fn segment_pages(&self) -> u64 {
        segment_pages(self.pages, &self.filter).into()
    }

    /// Bytes of an incarnation on flash, which one flush writes.
    pub(super) fn segment_bytes(&self) -> u64 {
        self.segment_pages() * PAGE_BYTES
    }

    /// Returns the segments of flash that are kept free for a recovery, and for a super table that is rewritten.
    fn reserve_segments(&self) -> u64 {
        let rewritten = if self.cleans { u64::from(self.incarnations) + REWRITE_SPARE } else { 0 };
        u64::from(self.super_tables).max(4) + rewritten
    }

    pub(super) fn flash_bytes(&self) -> u64 {
        self.segments() * self.segment_bytes()
    }

    pub(super) fn config(&self, requirements: &Requirements) -> Config {
        let columns = 64 * self.filter.words();
        // One column is written while all others are live; a Bloom group is out of use before it is reset.
        let spare_columns = if self.filter.kind() == FilterKind::Bloom { 8 } else { 1 };
        let reserve_segments = self.reserve_segments();
        Config {
            key_bytes: requirements.key_bytes as usize,
            value_bytes: requirements.value_bytes as usize,
            super_tables: self.super_tables,
            buffer_pages: self.pages,
            segments: self.segments() + reserve_segments,
            incarnations_max: columns - spare_columns,
            filter: self.filter,
            policy: requirements.policy,
            cascade_limit: 4,
            reserve_segments,
            spare_buffers: self.spare_buffers,
            stagger: self.super_tables > 1,
            placement: Placement::Shared,
            entries_max: if self.cleans { requirements.entries } else { 0 },
            keeps_versions: false,
        }
    }
}
