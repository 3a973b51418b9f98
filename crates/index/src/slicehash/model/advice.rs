//! The answer to a [`Need`]: every parameter, and what it costs.

use super::advise::{Candidate, Need, slice_entries, slice_mean};
use crate::model::{CostPreset, Load, OperationCosts, PAGE_BYTES};

/// Parameters for a table, and what they cost. Prints as a report that explains each number.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Advice {
    /// What was asked.
    pub need: Need,
    /// n: partitions, a power of two, each with a buffer and a slicetable.
    pub partitions: u32,
    /// Pages of a buffer.
    pub buffer_pages: u32,
    /// Slices of a slicetable, one page each.
    pub slices: u32,
    /// k: flushes' worth of entries that a slicetable holds.
    pub incarnations: f64,
    /// Buffers beyond one per partition, for inserts that go on while a partition is flushed.
    pub spare_buffers: u32,
    /// Slicetables beyond one per partition, to write to while the old one is still the durable one.
    pub spare_slicetables: u32,
    /// Entries that a slice can hold.
    pub slice_entries_max: u64,
    /// Entries that a slice is meant to hold, on average.
    pub slice_entries_mean: f64,
    /// New entries that one flush brings to flash, on average.
    pub entries_per_flush: f64,
    /// Entries all slicetables are meant to hold.
    pub entries_capacity: u64,
    /// RAM of all buffers with their stashes, in bytes.
    pub buffer_bytes: u64,
    /// RAM of all filters, in bytes; 0 for none.
    pub filter_bytes: u64,
    /// RAM of everything else, in bytes.
    pub other_bytes: u64,
    /// All RAM, in bytes.
    pub ram_bytes: u64,
    /// RAM per entry asked for, in bytes.
    pub ram_bytes_per_entry: f64,
    /// All slicetables, in bytes.
    pub flash_bytes: u64,
    /// Pages read by a lookup that finds its key on flash: 1.
    pub reads_per_hit: f64,
    /// Pages read by a lookup that does not find its key, on average: 1, or less with filters.
    pub reads_per_miss: f64,
    /// Device time of such a lookup, in nanoseconds.
    pub hit_ns: f64,
    /// Device time of such a lookup, in nanoseconds.
    pub miss_ns: f64,
    /// Device time per insert, in nanoseconds, reading and writing one after the other.
    pub insert_amortised_ns: f64,
    /// Device time of an insert that must wait for a whole flush, in nanoseconds.
    pub insert_worst_ns: f64,
    /// Bytes that flushes read per entry inserted.
    pub bytes_read_per_entry: f64,
    /// Bytes that flushes write per entry inserted.
    pub bytes_written_per_entry: f64,
    /// The same with the log's records.
    pub bytes_written_per_entry_with_log: f64,
    /// Bytes that flushes write per byte of key and value inserted.
    pub write_amplification: f64,
    /// The same with the log's records.
    pub write_amplification_with_log: f64,
    /// Inserts a second, at the device's bandwidth, when it does nothing else.
    pub inserts_per_s: f64,
    /// Years until the flash that the need names, or the table's own, is worn out by the load's inserts;
    /// `None` for a load that names none.
    pub lifetime_years: Option<f64>,
}

impl Advice {
    pub(super) fn new(need: &Need, candidate: &Candidate) -> Self {
        let layout = &candidate.layout;
        let costs = need.operation_costs(layout);
        let entry_bytes = need.entry_bytes() as f64;
        let read_ns = need.device.costs.read.ns(PAGE_BYTES as f64);
        let flush_ns = need.flush_ns(layout);
        let mean = slice_mean(need.entry_bytes(), need.loss_max);
        let slices = f64::from(layout.partitions) * f64::from(layout.slices);
        let flash_bytes = layout.flash_bytes();
        let worn_bytes = need.flash_bytes.unwrap_or(flash_bytes);
        let years = costs.lifetime_years(&need.device, &need.load, worn_bytes);
        Self {
            need: need.clone(),
            partitions: layout.partitions,
            buffer_pages: layout.buffer_pages,
            slices: layout.slices,
            incarnations: candidate.incarnations,
            spare_buffers: layout.spare_buffers(),
            spare_slicetables: layout.spare_slicetables(),
            slice_entries_max: slice_entries(need.entry_bytes()),
            slice_entries_mean: mean,
            entries_per_flush: layout.entries_per_flush,
            entries_capacity: (slices * mean) as u64,
            buffer_bytes: candidate.buffer_bytes,
            filter_bytes: candidate.filter_bytes,
            other_bytes: candidate.other_bytes,
            ram_bytes: candidate.ram_bytes,
            ram_bytes_per_entry: candidate.ram_bytes as f64 / need.entries as f64,
            flash_bytes,
            reads_per_hit: costs.reads_per_hit,
            reads_per_miss: costs.reads_per_miss,
            hit_ns: costs.reads_per_hit * read_ns,
            miss_ns: costs.reads_per_miss * read_ns,
            insert_amortised_ns: flush_ns / layout.entries_per_flush,
            insert_worst_ns: flush_ns,
            bytes_read_per_entry: costs.insert_read_bytes,
            bytes_written_per_entry: costs.insert_read_bytes,
            bytes_written_per_entry_with_log: costs.insert_write_bytes,
            write_amplification: costs.insert_read_bytes / entry_bytes,
            write_amplification_with_log: costs.insert_write_bytes / entry_bytes,
            inserts_per_s: costs.inserts_per_s(&need.device),
            lifetime_years: (need.load.inserts_per_s > 0.0).then_some(years),
        }
    }

    /// What its operations ask of the device.
    #[must_use]
    pub fn operation_costs(&self) -> OperationCosts {
        OperationCosts {
            reads_per_hit: self.reads_per_hit,
            reads_per_miss: self.reads_per_miss,
            insert_read_bytes: self.bytes_read_per_entry,
            insert_write_bytes: self.bytes_written_per_entry_with_log,
        }
    }

    /// Operations a second that a device allows at most, when they come in the mix of `load`: one page read
    /// per lookup at its rate of random reads, and each insert's share of the strokes at its bandwidth. Give
    /// what was measured of a device to predict what a table will do on it.
    #[must_use]
    pub fn ops_per_s(&self, device: &CostPreset, load: &Load) -> f64 {
        self.operation_costs().ops_per_s(device, load)
    }
}
