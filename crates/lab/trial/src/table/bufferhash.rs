//! A BufferHash under trial.

use nandex::bufferhash::{Config, Policy};
use nandex::raw::bufferhash::filter::FilterShape;
use nandex::raw::store::entries::EntryLayout;
use nandex::testing::Retention;
use nandex::{OpenOptions, Threads};
use nandex_sim::workload::SplitMix64;

use super::cache_bytes;
use super::setup::Widths;
use crate::contract::pick;

/// All eviction policies.
pub const POLICIES: [Policy; 6] = [
    Policy::Fifo,
    Policy::Lru,
    Policy::Update,
    Policy::Threshold(0),
    Policy::Top(500),
    Policy::Reject,
];

/// The incarnations of a super table, if the ring is short.
const INCARNATIONS: u64 = 6;

/// A BufferHash.
#[derive(Clone, Copy, Debug)]
pub struct Rings {
    /// The eviction policy.
    pub policy: Policy,
    fuse: bool,
    filter_words: u32,
    super_tables: u32,
    buffer_pages: u32,
    stagger: bool,
    cache_bytes: u64,
    /// Whether super tables are rewritten, if nothing is evicted.
    is_cleaned: bool,
}

impl Rings {
    /// Creates a BufferHash. Among 48 consecutive numbers 24 have the same kind of filter, and each six all
    /// policies.
    pub(super) fn numbered(number: u64, rng: &mut SplitMix64) -> Self {
        Self {
            policy: POLICIES[(number % 6) as usize],
            fuse: (number / 24).is_multiple_of(2),
            filter_words: pick(rng, &[1, 1, 2]),
            super_tables: pick(rng, &[1, 1, 1, 2]),
            buffer_pages: pick(rng, &[1, 1, 2]),
            stagger: rng.below(2) == 0,
            cache_bytes: cache_bytes(number / 6),
            is_cleaned: (number / 6).is_multiple_of(2),
        }
    }

    /// Returns whether a full table refuses.
    pub(super) fn refuses(&self) -> bool {
        self.policy == Policy::Reject && !self.is_cleaned
    }

    /// Returns whether it has space for all keys whatever happened to them, without evictions.
    pub(super) fn cleans(&self) -> bool {
        self.policy == Policy::Reject && self.is_cleaned
    }

    fn buffer_entries(&self, Widths { key_bytes, value_bytes }: Widths) -> u64 {
        let layout = EntryLayout::new(key_bytes, value_bytes).expect("these widths are in range");
        (layout.slots() * self.buffer_pages as usize * 95 / 100) as u64
    }

    /// Returns the entries of all buffers when they are full.
    pub(super) fn buffered_entries(&self, widths: Widths) -> u64 {
        u64::from(self.super_tables) * self.buffer_entries(widths)
    }

    /// Returns the minimum number of updates that a spacious table takes before it is full, if half of its
    /// space is lost to buffers that were flushed early.
    pub(super) fn full_from(&self, widths: Widths) -> u64 {
        u64::from(self.columns()) * self.buffer_entries(widths) / 2
    }

    fn reserve_segments(&self) -> u64 {
        let rewritten = if self.cleans() { INCARNATIONS + 3 } else { 0 };
        u64::from(self.super_tables).max(2) + rewritten
    }

    fn columns(&self) -> u32 {
        64 * self.filter_words - 8
    }

    /// Returns the configuration of the table.
    pub(super) fn config(&self, widths: Widths, is_roomy: bool) -> Config {
        let entries = u32::try_from(self.buffer_entries(widths)).expect("buffers are small");
        let filter = if self.fuse {
            FilterShape::fuse(entries, 12, self.filter_words)
        } else {
            FilterShape::bloom(entries, 12.0, self.filter_words)
        };
        let tables = u64::from(self.super_tables);
        let per_table = if is_roomy { u64::from(self.columns()) } else { INCARNATIONS };
        Config {
            key_bytes: widths.key_bytes,
            value_bytes: widths.value_bytes,
            super_tables: self.super_tables,
            buffer_pages: self.buffer_pages,
            segments: tables * per_table + self.reserve_segments(),
            incarnations_max: if is_roomy { self.columns() } else { 14 },
            filter: filter.expect("these numbers are in range"),
            policy: self.policy,
            reserve_segments: self.reserve_segments(),
            stagger: self.stagger,
            entries_max: if self.cleans() { self.keys(widths) } else { 0 },
            ..Config::tiny()
        }
    }

    /// Returns the options to open it with.
    pub(super) fn options(&self, threads: Threads) -> OpenOptions {
        let flush_threads = if threads == Threads::Inline { 0 } else { 2 };
        OpenOptions {
            flush_threads: Some(flush_threads),
            cache_bytes: self.cache_bytes,
            ..OpenOptions::default()
        }
    }

    /// Returns the number of keys. If partial discards keep all live entries, few enough that there is space
    /// for them.
    pub(super) fn keys(&self, widths: Widths) -> u64 {
        let buffered = self.buffered_entries(widths);
        let keeps = matches!(self.policy, Policy::Update | Policy::Threshold(_));
        if keeps { buffered * 5 / 4 } else { buffered * 4 }
    }

    /// Returns the entries that it must still have if the ring is short.
    pub(super) fn retention(&self, widths: Widths, threads: Threads) -> Retention {
        if self.cleans() {
            return Retention::All;
        }
        // The ring has six buffers of each super table behind the newest. Buffers are flushed before they are
        // quite full, and most entries left by a partial discard may have been put back.
        let entries = self.buffer_entries(widths);
        match self.policy {
            // With threads a flush that finds no free segment may have to evict a whole one.
            Policy::Update | Policy::Threshold(_) if threads == Threads::Inline => Retention::All,
            Policy::Lru => Retention::NewestUsed(2 * entries),
            policy if policy.is_partial() => Retention::Newest(entries),
            _ => Retention::Newest(2 * entries),
        }
    }
}
