//! The search for partitions, buffers and slicetables that meet the requirements.
//!
//! A table's costs follow from three numbers: partitions, pages of a buffer, slices of a slicetable. The last follows
//! from the first, so all of the few thousand combinations are tried.

use std::f64::consts::LN_2;

use nandex_store::buffer::STASH_LEN_MAX;

use super::{report, several};
use crate::model::chance::PageFill;
use crate::model::{
    BUFFER_BYTES_MAX, BUFFER_BYTES_MIN, Load, OperationCosts, PAGE_BYTES, PAGE_HEADER_BYTES,
    Policy, Prediction, Requirements, buffer_entries, log_bytes, page_slots, too_little_flash,
    too_little_ram,
};
use crate::slicehash::Config;
use crate::{Error, Result};

/// Bytes of a slice's page other than entries: the page's header and the slice's own.
pub const SLICE_HEADER_BYTES: u64 = PAGE_HEADER_BYTES + 8;
/// The maximum number of partitions.
pub const PARTITIONS_MAX: u32 = 1 << 16;
/// The maximum number of slices of a slicetable: 256 MiB.
pub const SLICES_MAX: u32 = 1 << 16;
/// The least k: with fewer incarnations, more RAM gains almost nothing. Tables too small for this get the smallest
/// buffer.
pub const INCARNATIONS_MIN: f64 = 4.0;
/// The greatest k: each entry is written at least this number of times.
pub const INCARNATIONS_MAX: f64 = 256.0;
/// The greatest k, unless RAM or a load determines it: the paper's own choice (section 7.1).
pub const INCARNATIONS_BEST: f64 = 32.0;
/// The default for the share of entries that may find their slice full.
pub const LOSS_MAX: f64 = 1e-4;
/// RAM of a stashed entry beyond its key and value.
const STASH_EXTRA_BYTES: u64 = 32;
/// RAM of a partition beyond its buffer: locks, counts, the places of its slicetable.
pub(crate) const PARTITION_BYTES: u64 = 256;
/// RAM of the I/O chunks in which slicetables are rewritten: one read, one changed, one written.
pub(super) const CHUNK_BYTES: u64 = 1 << 20;
const CHUNKS: u64 = 3;
/// RAM of the log's blocks.
const LOG_BLOCK_BYTES: u64 = 128 << 10;
const LOG_BLOCKS: u64 = 8;
/// RAM that does not depend on the size: pages of lookups in progress, the volume's maps.
const FIXED_RAM_BYTES: u64 = 1 << 19;
/// The RAM that it shares with other structures of the volume.
pub(crate) const SHARED_RAM_BYTES: u64 =
    CHUNKS * CHUNK_BYTES + LOG_BLOCKS * LOG_BLOCK_BYTES + FIXED_RAM_BYTES;
/// The preferred size of a slicetable (section 7.1).
const SLICETABLE_BYTES_BEST: f64 = (4 << 20) as f64;
/// The least preferred number of partitions: inserting threads then rarely meet in one.
const PARTITIONS_GOOD: u32 = 16;
/// Combinations this close to the least RAM, or to the fewest bytes written, count as equal.
const TOLERANCE: f64 = 1.025;

/// The filters that are tried if RAM may be left for them: reads per miss, starting with no filter.
const MISS_READS: [f64; 7] = [1.0, 0.7, 0.5, 0.3, 0.1, 0.03, 0.01];

/// Returns the parameters and costs of a SliceHash if one entry in ten thousand may find its slice full; see
/// [`advise_with`].
///
/// # Errors
/// As [`advise_with`].
pub fn advise(requirements: &Requirements) -> Result<Prediction> {
    advise_with(requirements, LOSS_MAX)
}

/// Returns the parameters and costs of a SliceHash. With a limit on RAM, these are the parameters that write the fewest
/// bytes per entry within it; otherwise those that take the least RAM with k up to 32, or with fewer incarnations if
/// the load requires that. Among several within 2.5 % of the best, it chooses the one with slicetables near 4 MiB and
/// at least 16 partitions. `loss_max` is the share of entries that may find their slice full and so drop the oldest one
/// there, 1e-12 to 0.1; a table that rejects entries instead should have less than one in all: less than 1 / entries.
///
/// It has no filters, or filters that keep the required reads per miss. Without a limit on these, it has filters that
/// keep the device less busy and leave enough RAM for buffers that k stays at 32, because filters in place of buffers
/// wear flash out. Only a load that is impossible without filters gets them in any case.
///
/// In a throughput-oriented design each device has its part of the load; in a memory-oriented one its part of the
/// entries, and no filters. Slicetables are whole rounds of the channels.
///
/// Tries about four thousand combinations for each size of filters, which takes about ten milliseconds.
///
/// # Errors
/// [`Error::Config`] for a number out of its range, more entries than any parameters hold, and a limit that cannot be
/// met: for RAM, flash and time with the least that would be enough, for a load with the most that is possible.
pub fn advise_with(requirements: &Requirements, loss_max: f64) -> Result<Prediction> {
    let has_policy = matches!(requirements.policy, Policy::Fifo | Policy::Reject);
    requirements.check_policy("slicehash", "fifo and reject", has_policy)?;
    match requirements.array {
        None => on_one(requirements, loss_max),
        Some(array) => {
            let one = on_one(&several::share(requirements, array)?, loss_max)?;
            several::table(one, requirements, array)
        }
    }
}

/// Returns the parameters and costs for one device, as [`advise_with`] does.
fn on_one(requirements: &Requirements, loss_max: f64) -> Result<Prediction> {
    let with = |miss_reads: f64| {
        let search = Search { requirements, miss_reads, loss_max };
        report::predict(&search, &search.find()?)
    };
    if let Some(most) = requirements.miss_reads_max {
        return with(most.min(1.0));
    }
    if requirements.ram_bytes.is_none() {
        return with(1.0);
    }
    let busy = |it: &Prediction| it.costs.busy_ns(&requirements.device, &requirements.load);
    let able: Vec<_> = MISS_READS.into_iter().filter_map(|reads| with(reads).ok()).collect();
    let is_spare = |it: &&Prediction| {
        let incarnations = it.config.of::<Config>().and_then(Config::incarnations);
        it.filter_bytes == 0 || incarnations.is_ok_and(|k| k <= INCARNATIONS_BEST)
    };
    let least = |a: &&Prediction, b: &&Prediction| busy(a).total_cmp(&busy(b));
    let best = able.iter().filter(is_spare).min_by(least);
    best.or_else(|| able.iter().min_by(least)).cloned().map_or_else(|| with(1.0), Ok)
}

/// The search among all parameters.
pub(super) struct Search<'a> {
    pub(super) requirements: &'a Requirements,
    /// The maximum number of pages read by a lookup of an absent key, on average: 0.0001 to 1. Below 1 all partitions
    /// have Bloom filters.
    pub(super) miss_reads: f64,
    pub(super) loss_max: f64,
}

impl Search<'_> {
    pub(super) fn find(&self) -> Result<SliceHashSizing> {
        self.check()?;
        let all = self.candidates();
        if all.is_empty() {
            return Err(self.too_many_entries());
        }
        let quick = self.quick_enough(all)?;
        let small = self.small_enough(quick)?;
        let able = self.able_enough(small)?;
        let fitting = self.within_ram(able)?;
        Ok(self.pick(&fitting))
    }

    fn check(&self) -> Result<()> {
        self.requirements.check()?;
        let refuse = |field, reason| Err(Error::Config { field, reason });
        if !(0.0001..=1.0).contains(&self.miss_reads) {
            return refuse("reads per miss", format!("{}; expected 0.0001 to 1", self.miss_reads));
        }
        if !(1e-12..=0.1).contains(&self.loss_max) {
            return refuse("loss", format!("{}; expected 1e-12 to 0.1", self.loss_max));
        }
        Ok(())
    }

    /// s: bytes of key and value.
    fn entry_bytes(&self) -> u64 {
        self.requirements.entry_bytes()
    }

    /// Returns all combinations that hold the entries, whatever their cost.
    fn candidates(&self) -> Vec<SliceHashSizing> {
        let slots = page_slots(self.entry_bytes());
        let (least, most) = PAGES_MIN_MAX;
        let fresh: Vec<f64> =
            (least..=most).map(|pages| buffer_entries(u64::from(pages), slots)).collect();
        let mean = slice_mean(self.entry_bytes(), self.loss_max);
        let mut found = Vec::new();
        for partitions in (0..=PARTITIONS_MAX.ilog2()).map(|power| 1 << power) {
            let slices = (self.requirements.entries as f64 / f64::from(partitions) / mean).ceil();
            if slices > f64::from(SLICES_MAX) {
                continue;
            }
            let tables = (least..=most).zip(&fresh).map(|(buffer_pages, &entries_per_flush)| {
                // A slicetable takes at least one buffer.
                let one = entries_per_flush / slice_entries(self.entry_bytes()) as f64;
                let slices = slices.max(one.ceil()) as u32;
                self.candidate(TableSizes { partitions, slices, buffer_pages, entries_per_flush })
            });
            found.extend(tables.filter(SliceHashSizing::is_sensible));
        }
        found
    }

    fn candidate(&self, layout: TableSizes) -> SliceHashSizing {
        let TableSizes { partitions, buffer_pages, entries_per_flush, .. } = layout;
        let spare_buffers = layout.spare_buffers();
        let one = buffer_bytes(buffer_pages.into(), self.entry_bytes());
        let buffer_bytes = (u64::from(partitions) + u64::from(spare_buffers)) * one;
        // A filter is rebuilt while the old one is in use, when its partition is flushed.
        let in_flight = f64::from(spare_buffers) / f64::from(partitions);
        let filter_bytes = (filter_bytes(self.requirements.entries, self.miss_reads) as f64
            * (1.0 + in_flight)) as u64;
        let other_bytes = other_bytes(partitions);
        let incarnations =
            self.requirements.entries as f64 / (f64::from(partitions) * entries_per_flush);
        let ram_bytes = buffer_bytes + filter_bytes + other_bytes;
        SliceHashSizing { layout, incarnations, buffer_bytes, filter_bytes, other_bytes, ram_bytes }
    }

    pub(super) fn operation_costs(&self, layout: &TableSizes) -> OperationCosts {
        let rewritten = layout.slicetable_bytes() as f64 / layout.entries_per_flush;
        OperationCosts {
            reads_per_hit: 1.0,
            reads_per_miss: self.miss_reads,
            insert_read_bytes: rewritten,
            insert_write_bytes: rewritten + log_bytes(self.entry_bytes()),
            updates: None,
        }
    }

    /// Returns the average device time of reading a slicetable and writing it again, in nanoseconds: in I/O chunks, one
    /// after the other (section 5.4).
    pub(super) fn flush_ns(&self, layout: &TableSizes) -> f64 {
        let costs = &self.requirements.device.costs;
        chunks_ns(layout, |bytes| costs.read.ns(bytes) + costs.flush_ns(bytes))
    }

    /// Returns the same in the worst case: every chunk waits for an erase.
    pub(super) fn flush_worst_ns(&self, layout: &TableSizes) -> f64 {
        let costs = &self.requirements.device.costs;
        chunks_ns(layout, |bytes| costs.read.ns(bytes) + costs.insert_worst_ns(bytes))
    }

    fn quick_enough(&self, all: Vec<SliceHashSizing>) -> Result<Vec<SliceHashSizing>> {
        let took = |candidate: &SliceHashSizing| self.flush_worst_ns(&candidate.layout);
        let least = all.iter().map(took).fold(f64::INFINITY, f64::min);
        self.requirements.check_insert_worst(least)?;
        let is_quick = |it: &SliceHashSizing| self.requirements.allows_insert_worst(took(it));
        Ok(all.into_iter().filter(is_quick).collect())
    }

    fn small_enough(&self, all: Vec<SliceHashSizing>) -> Result<Vec<SliceHashSizing>> {
        let Some(most) = self.requirements.flash_bytes else { return Ok(all) };
        let took = |candidate: &SliceHashSizing| candidate.layout.flash_bytes();
        let least = all.iter().map(took).min().unwrap_or(u64::MAX);
        kept(all, |candidate| took(candidate) <= most).ok_or_else(|| too_little_flash(most, least))
    }

    fn able_enough(&self, all: Vec<SliceHashSizing>) -> Result<Vec<SliceHashSizing>> {
        if !self.requirements.load.has_rates() {
            return Ok(all);
        }
        let busy = |candidate: &SliceHashSizing| {
            self.operation_costs(&candidate.layout)
                .busy_share(&self.requirements.device, &self.requirements.load)
        };
        let least = all.iter().map(busy).fold(f64::INFINITY, f64::min);
        kept(all, |candidate| busy(candidate) <= 1.0).ok_or_else(|| self.too_much(least))
    }

    fn within_ram(&self, all: Vec<SliceHashSizing>) -> Result<Vec<SliceHashSizing>> {
        let Some(most) = self.requirements.ram_bytes else { return Ok(all) };
        let least = all.iter().map(|candidate| candidate.ram_bytes).min().unwrap_or(u64::MAX);
        kept(all, |candidate| candidate.ram_bytes <= most)
            .ok_or_else(|| too_little_ram(most, least))
    }

    /// Returns the most convenient one near the fewest bytes written if RAM is given, otherwise near the least RAM.
    fn pick(&self, fitting: &[SliceHashSizing]) -> SliceHashSizing {
        let written = |candidate: &SliceHashSizing| candidate.incarnations;
        let best = if self.requirements.ram_bytes.is_some() {
            handiest(fitting.iter(), written)
        } else {
            let few = |candidate: &&SliceHashSizing| candidate.incarnations <= INCARNATIONS_BEST;
            let ram = |candidate: &SliceHashSizing| candidate.ram_bytes as f64;
            handiest(fitting.iter().filter(few), ram).or_else(|| handiest(fitting.iter(), written))
        };
        best.expect("one fits")
    }

    fn too_many_entries(&self) -> Error {
        let reason = format!(
            "{} entries of {} bytes; {PARTITIONS_MAX} partitions with slicetables of {SLICES_MAX} slices and \
             buffers of {BUFFER_BYTES_MAX} bytes hold fewer",
            self.requirements.entries,
            self.entry_bytes()
        );
        Error::Config { field: "entries", reason }
    }

    fn too_much(&self, busy: f64) -> Error {
        let Load { inserts_per_s, lookups_per_s, .. } = self.requirements.load;
        let reason = format!(
            "{inserts_per_s} inserts and {lookups_per_s} lookups a second are {busy:.2} times what {} can do \
             even with k = {INCARNATIONS_MIN}; at most {:.0} and {:.0} would do",
            self.requirements.device.name,
            (inserts_per_s / busy).floor(),
            (lookups_per_s / busy).floor()
        );
        Error::Config { field: "load", reason }
    }
}

/// Returns the time of a slicetable's I/O chunks.
fn chunks_ns(layout: &TableSizes, chunk_ns: impl Fn(f64) -> f64) -> f64 {
    let bytes = layout.slicetable_bytes();
    let (whole, rest) = (bytes / CHUNK_BYTES, bytes % CHUNK_BYTES);
    let rest_ns = if rest > 0 { chunk_ns(rest as f64) } else { 0.0 };
    whole as f64 * chunk_ns(CHUNK_BYTES as f64) + rest_ns
}

/// Returns those for which the condition holds, or all if it holds for none.
fn kept(
    all: Vec<SliceHashSizing>,
    good: impl Fn(&SliceHashSizing) -> bool,
) -> Option<Vec<SliceHashSizing>> {
    let kept: Vec<_> = all.into_iter().filter(good).collect();
    (!kept.is_empty()).then_some(kept)
}

/// Returns the one with the lowest awkwardness among those whose cost is close to the least.
fn handiest<'a>(
    all: impl Iterator<Item = &'a SliceHashSizing> + Clone,
    cost: impl Fn(&SliceHashSizing) -> f64,
) -> Option<SliceHashSizing> {
    let least = all.clone().map(&cost).fold(f64::INFINITY, f64::min);
    all.filter(|candidate| cost(candidate) <= least * TOLERANCE)
        .min_by(|a, b| a.awkwardness().total_cmp(&b.awkwardness()))
        .copied()
}

/// Pages of the smallest and the largest buffer.
const PAGES_MIN_MAX: (u32, u32) =
    ((BUFFER_BYTES_MIN / PAGE_BYTES) as u32, (BUFFER_BYTES_MAX / PAGE_BYTES) as u32);

/// Returns the number of entries of `entry_bytes` that one slice, a page, can hold.
#[must_use]
pub fn slice_entries(entry_bytes: u64) -> u64 {
    (PAGE_BYTES - SLICE_HEADER_BYTES) / entry_bytes
}

/// Returns the mean number of entries of `entry_bytes` per slice at which at most the share `loss_max` finds its slice
/// full.
#[must_use]
pub fn slice_mean(entry_bytes: u64, loss_max: f64) -> f64 {
    PageFill::new(slice_entries(entry_bytes)).mean_for_share(loss_max)
}

/// Returns the RAM of a table without filters, in bytes.
pub(crate) fn ram_bytes(config: &Config) -> u64 {
    let one =
        buffer_bytes(config.buffer_pages.into(), (config.key_bytes + config.value_bytes) as u64);
    let buffers = u64::from(config.partitions) + u64::from(config.spare_buffers);
    buffers * one + other_bytes(config.partitions)
}

/// Returns the RAM without its buffers.
fn other_bytes(partitions: u32) -> u64 {
    u64::from(partitions) * PARTITION_BYTES + SHARED_RAM_BYTES
}

/// RAM in bytes of a buffer of this many pages, with its stash.
pub(crate) fn buffer_bytes(pages: u64, entry_bytes: u64) -> u64 {
    pages * PAGE_BYTES + STASH_LEN_MAX as u64 * (STASH_EXTRA_BYTES + entry_bytes)
}

/// Returns the RAM in bytes of Bloom filters with `miss_reads` page reads per lookup of an absent key: log2(1 / m) / ln
/// 2 bits per entry. If all partitions get equally many lookups, equal filters cost least.
#[must_use]
pub fn filter_bytes(entries: u64, miss_reads: f64) -> u64 {
    let bits_per_entry = -miss_reads.min(1.0).log2() / LN_2;
    (entries as f64 * bits_per_entry / 8.0).ceil() as u64
}

/// The numbers that define a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableSizes {
    pub(super) partitions: u32,
    pub(super) slices: u32,
    pub(super) buffer_pages: u32,
    pub(super) entries_per_flush: f64,
}

impl TableSizes {
    /// Returns the buffers for inserts that continue while their partition is flushed. Flushes of partitions are spread
    /// out, so a merge seldom finds more than one other buffer waiting.
    pub(super) fn spare_buffers(&self) -> u32 {
        (self.partitions / 128).clamp(2, 8)
    }

    /// Returns the slicetables to write to before old ones are free again.
    pub(super) fn spare_slicetables(&self) -> u32 {
        (self.partitions / 32).max(4)
    }

    pub(super) fn slicetable_bytes(&self) -> u64 {
        u64::from(self.slices) * PAGE_BYTES
    }

    pub(super) fn flash_bytes(&self) -> u64 {
        let tables = u64::from(self.partitions) + u64::from(self.spare_slicetables());
        tables * self.slicetable_bytes()
    }
}

/// One combination of all parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SliceHashSizing {
    pub(super) layout: TableSizes,
    /// k: the flushes that all slicetables hold.
    pub(super) incarnations: f64,
    pub(super) buffer_bytes: u64,
    pub(super) filter_bytes: u64,
    pub(super) other_bytes: u64,
    pub(super) ram_bytes: u64,
}

impl SliceHashSizing {
    pub(super) fn config(&self, requirements: &Requirements, entries_capacity: u64) -> Config {
        let TableSizes { partitions, slices, buffer_pages, .. } = self.layout;
        let entries_max = u32::try_from(entries_capacity / u64::from(partitions));
        Config {
            key_bytes: requirements.key_bytes as usize,
            value_bytes: requirements.value_bytes as usize,
            partitions,
            buffer_pages,
            slices,
            spare_blocks: self.layout.spare_slicetables(),
            spare_buffers: self.layout.spare_buffers(),
            policy: requirements.policy.when_full().unwrap_or_default(),
            entries_max: entries_max.expect("a slicetable has fewer than 2^32 entries"),
            stagger: partitions > 1,
            front_runs: requirements.front_runs,
            ..Config::tiny()
        }
    }

    /// Returns whether k is within its limits, or the table too small for that.
    fn is_sensible(&self) -> bool {
        let smallest = self.layout.partitions == 1 && self.layout.buffer_pages == PAGES_MIN_MAX.0;
        self.incarnations <= INCARNATIONS_MAX && (self.incarnations >= INCARNATIONS_MIN || smallest)
    }

    /// Returns a penalty for inconvenient sizes: doublings of the slicetable away from 4 MiB, and halvings of the
    /// partitions below 16.
    fn awkwardness(&self) -> f64 {
        let table = self.layout.slicetable_bytes() as f64 / SLICETABLE_BYTES_BEST;
        let few = (f64::from(PARTITIONS_GOOD) / f64::from(self.layout.partitions)).log2().max(0.0);
        table.log2().abs() + 1.5 * few
    }
}
