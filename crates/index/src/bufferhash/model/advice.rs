//! The answer to a [`Need`]: every parameter, and what it costs.

use super::advise::{Candidate, LOG_RECORD_EXTRA_BYTES, Need};
use super::paper::Store;
use crate::bufferhash::filter::FilterShape;
use crate::model::{OperationCosts, PAGE_BYTES, PAGE_HEADER_BYTES, page_slots};

/// Parameters for a table, and what they cost. Prints as a report that explains each number.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Advice {
    /// What was asked.
    pub need: Need,
    /// Super tables, a power of two.
    pub super_tables: u32,
    /// k: incarnations of a super table.
    pub incarnations: u32,
    /// Data pages of a buffer, and of an incarnation.
    pub pages_per_buffer: u32,
    /// Buffers beyond one per super table, for inserts that go on while a buffer is flushed.
    pub spare_buffers: u32,
    /// Words of 64 columns in a row of the filters.
    pub words: u32,
    /// The filters.
    pub filter: FilterShape,
    /// Slots of a page.
    pub page_slots: u64,
    /// New entries that one incarnation brings to flash, at the fill that is counted on.
    pub entries_per_incarnation: u64,
    /// Entries all incarnations hold.
    pub entries_capacity: u64,
    /// Pages of an incarnation on flash: data and its column of the filter.
    pub pages_per_incarnation: u64,
    /// Segments of flash: one per incarnation, and one per spare buffer to flush to before an eviction.
    pub segments: u64,
    /// RAM of all buffers, in bytes.
    pub buffer_bytes: u64,
    /// RAM of all filters, in bytes.
    pub filter_bytes: u64,
    /// RAM of everything else, in bytes.
    pub other_bytes: u64,
    /// All RAM, in bytes.
    pub ram_bytes: u64,
    /// RAM per entry asked for, in bytes.
    pub ram_bytes_per_entry: f64,
    /// All segments, in bytes.
    pub flash_bytes: u64,
    /// Pages read by a lookup that finds its key, on average; newer incarnations are asked first.
    pub reads_per_hit: f64,
    /// Pages read by a lookup that does not, on average.
    pub reads_per_miss: f64,
    /// Was the RAM too little for the reads asked for?
    pub relaxed: bool,
    /// Device time of such a lookup, one page at a time, in nanoseconds.
    pub hit_ns: f64,
    /// Device time of such a lookup, in nanoseconds.
    pub miss_ns: f64,
    /// Device time per insert, in nanoseconds.
    pub insert_amortised_ns: f64,
    /// Device time of an insert that must wait for a whole flush, in nanoseconds.
    pub insert_worst_ns: f64,
    /// Bytes written to incarnations per byte of key and value inserted.
    pub write_amplification: f64,
    /// The same with the log's records.
    pub write_amplification_with_log: f64,
    /// The paper's B_opt for as much flash and entries of this size (section 6.4), in bytes.
    pub paper_buffer_bytes_best: f64,
}

impl Advice {
    pub(super) fn new(need: &Need, candidate: &Candidate) -> Self {
        let &Candidate { super_tables, incarnations, pages, spare_buffers, filter, .. } = candidate;
        let filter_pages =
            (filter.column_bits().div_ceil(8) as u64).div_ceil(PAGE_BYTES - PAGE_HEADER_BYTES);
        let pages_per_incarnation = u64::from(pages) + filter_pages;
        let live = u64::from(super_tables) * u64::from(incarnations);
        let segments = live + u64::from(spare_buffers);
        let flush_bytes = (pages_per_incarnation * PAGE_BYTES) as f64;
        let entries = candidate.entries as f64;
        let rate = filter.rate(candidate.entries);
        let reads_per_hit = 1.0 + f64::from(incarnations - 1) / 2.0 * rate;
        let costs = need.device.costs;
        let read_ns = costs.read.ns(PAGE_BYTES as f64);
        let write_amplification = flush_bytes / (entries * need.entry_bytes() as f64);
        let log = (need.entry_bytes() + LOG_RECORD_EXTRA_BYTES) as f64 / need.entry_bytes() as f64;
        let store =
            Store { flash_bytes: live as f64 * flush_bytes, entry_bytes: flush_bytes / entries };
        Self {
            need: need.clone(),
            super_tables,
            incarnations,
            pages_per_buffer: pages,
            spare_buffers,
            words: filter.words(),
            filter,
            page_slots: page_slots(need.entry_bytes()),
            entries_per_incarnation: candidate.entries,
            entries_capacity: live * candidate.entries,
            pages_per_incarnation,
            segments,
            buffer_bytes: candidate.buffer_bytes,
            filter_bytes: candidate.filter_bytes,
            other_bytes: candidate.other_bytes(),
            ram_bytes: candidate.ram_bytes,
            ram_bytes_per_entry: candidate.ram_bytes as f64 / need.entries as f64,
            flash_bytes: segments * pages_per_incarnation * PAGE_BYTES,
            reads_per_hit,
            reads_per_miss: candidate.miss_reads,
            relaxed: candidate.miss_reads > need.miss_reads_max,
            hit_ns: reads_per_hit * read_ns,
            miss_ns: candidate.miss_reads * read_ns,
            insert_amortised_ns: costs.insert_worst_ns(flush_bytes) / entries,
            insert_worst_ns: costs.insert_worst_ns(flush_bytes),
            write_amplification,
            write_amplification_with_log: write_amplification + log,
            paper_buffer_bytes_best: store.buffer_bytes_best(),
        }
    }

    /// What its operations ask of the device: a flush is written and never read.
    #[must_use]
    pub fn operation_costs(&self) -> OperationCosts {
        OperationCosts {
            reads_per_hit: self.reads_per_hit,
            reads_per_miss: self.reads_per_miss,
            insert_read_bytes: 0.0,
            insert_write_bytes: self.write_amplification_with_log * self.need.entry_bytes() as f64,
        }
    }
}
