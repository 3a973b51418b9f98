//! A SliceHash under trial.

use nandex::slicehash::Config;
use nandex::testing::Retention;
use nandex::{OpenOptions, Threads, WhenFull};
use nandex_sim::workload::SplitMix64;

use super::cache_bytes;
use super::setup::Widths;
use crate::contract::pick;

/// All policies.
pub const POLICIES: [WhenFull; 2] = [WhenFull::EvictOldest, WhenFull::Refuse];

/// Parts of a slice, slots in a bucket, runs of the front table, and RAM for filters in bytes. Each policy
/// comes with each of these.
const SORTS: [(u32, u32, u32, u64); 6] = [
    (1, 4, 0, 0),
    (3, 3, 0, 16 << 10),
    (1, 2, 6, 16 << 10),
    (3, 4, 5, 0),
    (1, 3, 3, 0),
    (3, 2, 0, 0),
];

/// A SliceHash.
#[derive(Clone, Copy, Debug)]
pub struct Slices {
    /// The policy of a full slice.
    pub policy: WhenFull,
    widths: Widths,
    slice_parts: u32,
    bucket_slots: u32,
    front_runs: u32,
    filter_bytes: u64,
    partitions: u32,
    buffer_pages: u32,
    /// The minimum capacity of a slicetable, if there is little space, in thirds of a full buffer.
    space_thirds: u32,
    group_slices: u32,
    align_pages: u32,
    spare_blocks: u32,
    spare_buffers: u32,
    io_chunk_pages: u32,
    stagger: bool,
    cache_bytes: u64,
}

impl Slices {
    /// Creates a SliceHash. Among 48 consecutive numbers each policy and kind comes four times, eight numbers
    /// in a row the same kind.
    pub(super) fn numbered(number: u64, widths: Widths, rng: &mut SplitMix64) -> Self {
        let policy = POLICIES[(number % 2) as usize];
        let (slice_parts, bucket_slots, runs, filter_bytes) = SORTS[(number / 8 % 6) as usize];
        // A table that refuses has no front table, and one without a second partition never uses it.
        let front_runs = if policy == WhenFull::Refuse { 0 } else { runs };
        let partitions = if front_runs > 0 { &[2, 2, 4] } else { &[1, 1, 2] };
        Self {
            policy,
            widths,
            slice_parts,
            bucket_slots,
            front_runs,
            filter_bytes,
            partitions: pick(rng, partitions),
            buffer_pages: pick(rng, &[1, 1, 2]),
            space_thirds: pick(rng, &[6, 9, 12, 18]),
            group_slices: pick(rng, &[1, 2]),
            align_pages: pick(rng, &[1, 1, 4]),
            spare_blocks: pick(rng, &[1, 1, 2]),
            spare_buffers: pick(rng, &[1, 2, 3]),
            io_chunk_pages: pick(rng, &[1, 5]),
            stagger: rng.below(2) == 0,
            cache_bytes: cache_bytes(number / 2),
        }
    }

    fn plain(&self) -> Config {
        Config {
            key_bytes: self.widths.key_bytes,
            value_bytes: self.widths.value_bytes,
            partitions: self.partitions,
            buffer_pages: self.buffer_pages,
            bucket_slots: self.bucket_slots,
            slice_parts: self.slice_parts,
            group_slices: self.group_slices,
            align_pages: self.align_pages,
            spare_blocks: self.spare_blocks,
            spare_buffers: self.spare_buffers,
            policy: self.policy,
            stagger: self.stagger,
            front_runs: self.front_runs,
            ..Config::tiny()
        }
    }

    /// Returns the slots of a buffer, all of which may be used.
    fn buffer_entries(&self) -> u32 {
        let layout = self.plain().layout().expect("these widths are in range");
        self.buffer_pages * u32::try_from(layout.slots()).expect("at most 508")
    }

    /// Returns the entries of all buffers when they are full.
    pub(super) fn buffered_entries(&self) -> u64 {
        u64::from(self.partitions) * u64::from(self.buffer_entries())
    }

    /// Returns whether `entries` entries with random keys find space in `slices` slices of each partition. A
    /// slice has space for its share plus eight deviations.
    fn fits(&self, entries: u64, slices: u32) -> bool {
        let all = f64::from(slices * self.partitions);
        let mean = entries as f64 / all;
        let spread = if all > 1.0 { 8.0 * mean.sqrt() } else { 0.0 };
        mean + spread <= f64::from(self.plain().slice_entries())
    }

    fn slices(&self, is_roomy: bool) -> u32 {
        if is_roomy {
            let all = 2 * self.buffered_entries();
            return (1..).find(|slices| self.fits(all, *slices)).expect("slices can be many");
        }
        (self.space_thirds * self.buffer_entries()).div_ceil(3 * self.plain().slice_entries())
    }

    /// Returns the configuration of the table.
    pub(super) fn config(&self, is_roomy: bool) -> Config {
        let plain = self.plain();
        let slices = self.slices(is_roomy);
        Config { slices, entries_max: slices * plain.slice_entries(), ..plain }
    }

    /// Returns the options to open it with.
    pub(super) fn options(&self, threads: Threads) -> OpenOptions {
        OpenOptions {
            // The front table is for buffers that fill while a merge is running elsewhere: only threads use
            // it.
            flush_threads: Some(usize::from(threads != Threads::Inline)),
            filter_bytes: self.filter_bytes,
            io_chunk_pages: Some(self.io_chunk_pages),
            cache_bytes: self.cache_bytes,
            ..OpenOptions::default()
        }
    }

    /// Returns the number of keys: as many as fill two buffers, and more if there is little space.
    pub(super) fn keys(&self, is_roomy: bool) -> u64 {
        let space = u64::from(self.partitions) * u64::from(self.config(is_roomy).entries_max);
        let two = 2 * self.buffered_entries();
        if is_roomy { two } else { two.max(space * 5 / 4) }
    }

    /// Returns the entries that it must still have if there is little space.
    pub(super) fn retention(&self) -> Retention {
        if self.policy == WhenFull::Refuse {
            return Retention::Refuses;
        }
        // Other entries of its buffer may seem newer than they are.
        let mates = self.buffered_entries();
        let slices = self.slices(false);
        let lost = (0..).find(|puts| !self.fits(mates + puts, slices));
        Retention::Newest(lost.expect("slices have an end").saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use nandex::testing::Retention;

    use crate::plan::BLOCK;
    use crate::table::{TableContract, TableSetup};

    #[test]
    fn most_tables_that_evict_are_held_to_their_newest_entries() {
        let newest = |number| match TableSetup::slicehash(number).retention() {
            Retention::Newest(count) => Some(count),
            _ => None,
        };
        let windows: Vec<_> = (BLOCK..2 * BLOCK).filter_map(newest).collect();
        let held = windows.iter().filter(|window| **window >= 10).count();
        assert!(windows.len() > 100 && 3 * held >= 2 * windows.len(), "{held}: {windows:?}");
    }
}
