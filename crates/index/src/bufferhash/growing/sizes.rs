//! How large the generations of a growing table are.
//!
//! Each has about as much space as all before it. One for few entries has one super table with small buffers, so that
//! a small table takes little RAM and flash; one for more has larger buffers, up to those that flash writes best, and
//! one for many has more super tables.
//!
//! ```text
//!   entries            500   2 k     20 k                  100 k                          1 M
//!   buffer, pages        3     3       3                     10                            39
//!   super tables         1     1       1                      1                           1, 2, 4, ...
//! ```

use super::Config;
use crate::bufferhash;
use crate::bufferhash::filter::{FilterKind, FilterShape};
use crate::bufferhash::model::{
    BufferFill, INCARNATIONS_MIN, LIVE_SHARE, REWRITE_SPARE, incarnations_peak,
};
use crate::model::page_slots;

/// Numbers of super tables that are tried for a generation that takes over from others. More of them take less RAM
/// while one is rewritten, and more otherwise.
const SIZES_TRIED: usize = 4;

/// Super tables of a generation that takes over, at least: flash for rewriting one of them is kept free.
const TAKING_OVER_MIN: u32 = 4;

/// Segments that it fills, at least, with the largest buffers for which it fills that many.
const TAKING_OVER_SEGMENTS: f64 = 64.0;

/// Super tables of a generation, at most.
pub(super) const SUPER_TABLES_MAX: u32 = 1 << 16;

/// How many times the pages of a size of buffers the next larger one has.
const SIZE_STEP: u32 = 4;

/// Pages of the smallest buffers.
const PAGES_MIN: u32 = 2;

impl Config {
    /// A generation of one super table for each size of buffers, the smallest first.
    pub(super) fn sizes(&self) -> Vec<bufferhash::Config> {
        let least = self.first.buffer_pages;
        let sizes = buffer_sizes(self.buffer_pages_max).take_while(|pages| *pages > least);
        let sizes = sizes.filter_map(|pages| with_buffers(&self.first, pages));
        let mut sizes: Vec<_> = sizes.collect();
        sizes.push(self.first.clone());
        sizes.reverse();
        let incarnations_max = self.incarnations_max;
        let whole = |first| of_super_tables(&bufferhash::Config { incarnations_max, ..first }, 1);
        sizes.into_iter().map(whole).collect()
    }

    /// A later generation of this many super tables, with the largest buffers.
    pub(super) fn of_super_tables(&self, super_tables: u32) -> bufferhash::Config {
        let largest = self.sizes().pop().expect("the first generation's size at least");
        of_super_tables(&largest, super_tables)
    }

    /// The next generation after these, for as many entries as they have together: of one super table, with the
    /// smallest buffers that are enough, or of more. Smaller where `log_bytes` of log or `ram_bytes` of RAM are less.
    pub(super) fn next<'g>(
        &self,
        before: impl Iterator<Item = &'g bufferhash::Config>,
        log_bytes: u64,
        ram_bytes: u64,
    ) -> bufferhash::Config {
        let works = |config: &bufferhash::Config| {
            config.log_bytes_good() <= log_bytes && config.ram_bytes() <= ram_bytes
        };
        let sizes = self.sizes();
        let largest = sizes.last().expect("the first generation's size at least").clone();
        let of_one = largest.entries_capacity().max(1);
        let (mut held, mut super_tables) = (0_u64, 0_u64);
        for it in before {
            let is_whole = it.incarnations_max == self.incarnations_max
                && it.buffer_pages == largest.buffer_pages;
            held = held.saturating_add(it.entries_capacity());
            super_tables += match it {
                it if !it.cleans() && is_whole => it.super_tables.into(),
                it => it.entries_capacity() / of_one,
            };
        }
        let least = self.first.super_tables;
        let wanted = u32::try_from(super_tables).unwrap_or(u32::MAX).clamp(least, SUPER_TABLES_MAX);
        let mut next = 1 << wanted.ilog2();
        while next > least {
            let it = of_super_tables(&largest, next);
            if works(&it) {
                return it;
            }
            next /= 2;
        }
        let mut sizes: Vec<_> = sizes.iter().map(|it| of_super_tables(it, least)).collect();
        let enough = sizes.iter().position(|it| it.entries_capacity() >= held);
        sizes.truncate(enough.map_or(sizes.len(), |at| at + 1));
        let found = sizes.iter().rposition(works).unwrap_or(0);
        sizes.swap_remove(found)
    }

    /// A generation that has space for what all before it have, `keys` keys, and for a sixteenth more: the one with the
    /// largest buffers, and of these the one with the fewest super tables, that `works`. `None` if none does.
    pub(super) fn taking_over(
        &self,
        keys: u64,
        works: impl Fn(&bufferhash::Config) -> bool,
    ) -> Option<bufferhash::Config> {
        let entries_max = keys.saturating_add(keys / 16).max(1);
        let sizes = self.sizes();
        let of_size = |(at, one): (usize, &bufferhash::Config)| {
            let per_segment = one.entries_per_flush().ok()?;
            let segments = entries_max as f64 / LIVE_SHARE / per_segment;
            if at > 0 && segments < TAKING_OVER_SEGMENTS {
                return None;
            }
            let of = |super_tables: u32| {
                // Super tables do not fill alike, but take segments from one ring, and have columns for the peak.
                let incarnations = (segments / f64::from(super_tables)).ceil() as u32;
                let incarnations = incarnations.max(INCARNATIONS_MIN);
                let has_columns = incarnations_peak(incarnations) < self.incarnations_max;
                let plain = of_super_tables(one, super_tables);
                has_columns.then(|| cleaned(&plain, incarnations, entries_max))
            };
            let least = if at > 0 { TAKING_OVER_MIN.ilog2() } else { 0 };
            let super_tables = (least..=SUPER_TABLES_MAX.ilog2()).map(|bits| 1 << bits);
            super_tables.filter_map(of).take(SIZES_TRIED).find(&works)
        };
        sizes.iter().enumerate().rev().find_map(of_size)
    }

    /// A first generation for that many entries: with the smallest buffers, of the fewest super tables, with as few
    /// incarnations as they need.
    pub(super) fn first_for(&self, entries: u64) -> Option<bufferhash::Config> {
        // Entries in the order of another table's pages fill some pages of a small buffer, and not the others.
        let holds = |it: &bufferhash::Config| {
            let is_small = it.buffer_pages < self.buffer_pages_max;
            it.entries_capacity() >= if is_small { entries.saturating_mul(2) } else { entries }
        };
        if holds(&self.first) {
            return Some(self.first.clone());
        }
        let sizes = self.sizes();
        let size = sizes.iter().find(|it| holds(it)).or(sizes.last())?;
        let of = |super_tables, incarnations_max| {
            of_super_tables(&bufferhash::Config { incarnations_max, ..size.clone() }, super_tables)
        };
        let mut super_tables = (0..=SUPER_TABLES_MAX.ilog2()).map(|bits| 1 << bits);
        let super_tables = super_tables.find(|it| holds(&of(*it, self.incarnations_max)))?;
        let mut incarnations = (2..=self.incarnations_max).map(|it| of(super_tables, it));
        incarnations.find(holds)
    }

    /// Returns whether a generation has the buffers and filters of one of this table.
    pub(super) fn fits(&self, generation: &bufferhash::Config) -> bool {
        let (first, it) = (&self.first, generation);
        let pages = first.buffer_pages..=self.buffer_pages_max.max(first.buffer_pages);
        let is_first = it.buffer_pages == first.buffer_pages && it.filter == first.filter;
        let is_larger = it.buffer_pages > first.buffer_pages
            && it.filter.kind() == first.filter.kind()
            && it.filter.bits_per_slot() == first.filter.bits_per_slot();
        pages.contains(&it.buffer_pages) && (is_first || is_larger)
    }
}

/// The pages of buffers of all sizes, the largest first.
pub(super) fn buffer_sizes(largest: u32) -> impl Iterator<Item = u32> {
    let smaller = |pages: &u32| Some(pages.div_ceil(SIZE_STEP)).filter(|it| *it >= PAGES_MIN);
    std::iter::successors(Some(largest), smaller)
}

/// A generation with other buffers, and filters for what these hold; `None` where there are none.
pub(super) fn with_buffers(of: &bufferhash::Config, pages: u32) -> Option<bufferhash::Config> {
    if of.filter.kind() != FilterKind::Fuse {
        return None;
    }
    let slots = page_slots((of.key_bytes + of.value_bytes) as u64);
    let keys = BufferFill::new(pages, slots).keys_of(slots * u64::from(pages)) as u32;
    let (bits, words) = (of.filter.bits_per_slot(), of.filter.words());
    let filter = FilterShape::fuse(keys, bits, words).ok()?;
    Some(bufferhash::Config { buffer_pages: pages, filter, ..of.clone() })
}

/// A generation of this many super tables, which keeps every version of a key. Each super table has segments of its own
/// number of incarnations, so that none lacks space because of another.
pub(crate) fn of_super_tables(first: &bufferhash::Config, super_tables: u32) -> bufferhash::Config {
    let spare_buffers = (super_tables / 16).max(2);
    let reserve_segments = u64::from(super_tables).max(4);
    let live = u64::from(super_tables) * u64::from(first.incarnations_max);
    bufferhash::Config {
        super_tables,
        segments: live + u64::from(spare_buffers) + reserve_segments,
        reserve_segments,
        spare_buffers,
        stagger: super_tables > 1,
        entries_max: 0,
        keeps_versions: true,
        ..first.clone()
    }
}

/// A generation that is cleaned, of super tables that have that many incarnations on average.
fn cleaned(plain: &bufferhash::Config, incarnations: u32, entries_max: u64) -> bufferhash::Config {
    let incarnations = u64::from(incarnations);
    let live = u64::from(plain.super_tables) * incarnations;
    let reserve_segments = plain.reserve_segments + incarnations + REWRITE_SPARE;
    bufferhash::Config {
        segments: live + u64::from(plain.spare_buffers) + reserve_segments,
        reserve_segments,
        incarnations_max: incarnations_peak(incarnations as u32) + 1,
        entries_max,
        keeps_versions: false,
        ..plain.clone()
    }
}
