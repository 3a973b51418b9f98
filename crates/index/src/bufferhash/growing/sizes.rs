//! The sizes of the generations of a growing table.
//!
//! Each has about as much space as all before it. One for few entries has one super table with small buffers, so that a
//! small table takes little RAM and flash; one for more has larger buffers, up to those that flash writes best, and one
//! for many has more super tables.
//!
//! ```text
//!   entries            500   2 k     20 k                  100 k                          1 M
//!   buffer, pages        3     3       3                     10                            39
//!   super tables         1     1       1                      1                           1, 2, 4, ...
//! ```

use std::cmp::Reverse;

use super::Config;
use super::ram::ram_bytes_of_newest;
use crate::bufferhash;
use crate::bufferhash::filter::{FilterKind, FilterShape};
use crate::bufferhash::model::{BufferFill, INCARNATIONS_MIN, REWRITE_SPARE};
use crate::model::page_slots;

/// The largest share of live entries in the flash of a generation that takes over from others: the first of these for
/// which there is RAM. An update then writes 3, 5.5 or 8.8 entries, since a share of u makes that 1 + u / (2 (1 - u)).
const LIVE_SHARES: [f64; 3] = [0.8, 0.9, 0.94];

/// The peak numbers of columns of a super table that are tried.
const COLUMNS_TRIED: [u32; 8] = [64, 60, 56, 48, 44, 32, 24, 16];

/// The additional share that a generation that takes over may take, compared with the one that takes the least, if its
/// buffers are larger: a sixteenth.
const MORE_FOR_LARGER: u64 = 16;

/// The minimum number of super tables of a generation that takes over: flash for rewriting one of them is kept free.
const TAKING_OVER_MIN: u32 = 4;

/// Columns of a super table in addition to its incarnations at the peak: one is being written, and some super tables
/// have more than others.
const COLUMNS_SPARE: u32 = 3;

/// The maximum number of super tables of a generation.
pub(super) const SUPER_TABLES_MAX: u32 = 1 << 16;

/// The ratio of pages between one size of buffers and the next.
const SIZE_STEP: u32 = 4;

/// The pages of the smallest buffers.
const PAGES_MIN: u32 = 2;

impl Config {
    /// Returns a generation of one super table for each size of buffers, smallest first.
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

    /// Returns a later generation of this many super tables, with the largest buffers.
    pub(super) fn of_super_tables(&self, super_tables: u32) -> bufferhash::Config {
        let largest = self.sizes().pop().expect("the first generation's size at least");
        of_super_tables(&largest, super_tables)
    }

    /// Returns the next generation after these, for as many entries as they have together: of one super table, with the
    /// smallest buffers that are enough, or of more. It is smaller if `log_bytes` of log or `ram_bytes` of RAM are too
    /// little.
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

    /// Returns a generation that has space for the entries of all before it, `keys` keys, and for a sixteenth more, and
    /// that `works`. Among those with the most space for superseded entries it is the one that takes the least RAM, or
    /// slightly more with larger buffers. `None` if none works.
    pub(super) fn taking_over(
        &self,
        keys: u64,
        works: impl Fn(&bufferhash::Config) -> bool,
    ) -> Option<bufferhash::Config> {
        let entries_max = keys.saturating_add(keys / 16).max(1);
        LIVE_SHARES.iter().find_map(|share| {
            let mut all = self.all_taking_over(entries_max, *share);
            all.retain(&works);
            let least = all.iter().map(ram_bytes_of_newest).min()?;
            let is_small = |it: &bufferhash::Config| {
                ram_bytes_of_newest(it) <= least + least / MORE_FOR_LARGER
            };
            let small = all.into_iter().filter(is_small);
            small.max_by_key(|it| (it.buffer_pages, Reverse(it.super_tables)))
        })
    }

    /// Returns generations for `entries_max` keys, which are the given share of their flash, with different super
    /// tables and buffers.
    fn all_taking_over(&self, entries_max: u64, share: f64) -> Vec<bufferhash::Config> {
        let least =
            if self.buffer_pages_max > self.first.buffer_pages { TAKING_OVER_MIN } else { 1 };
        let super_tables = (0..=SUPER_TABLES_MAX.ilog2()).map(|bits| 1_u32 << bits);
        let mut all = Vec::new();
        for super_tables in super_tables {
            for columns in COLUMNS_TRIED {
                let incarnations = f64::from(columns - COLUMNS_SPARE) / (2.0 - share);
                let entries = entries_max as f64 / share / f64::from(super_tables) / incarnations;
                let Some(one) = self.with_entries(entries) else { continue };
                let is_least = one.buffer_pages == self.first.buffer_pages;
                if super_tables < least && !is_least {
                    continue;
                }
                let plain = of_super_tables(&one, super_tables);
                let config = cleaned(&plain, entries_max, share);
                all.extend(config.filter(|it| it.incarnations_max <= self.incarnations_max));
            }
        }
        all
    }

    /// Returns a super table with the smallest buffers that flush `entries` entries, or the largest there are.
    fn with_entries(&self, entries: f64) -> Option<bufferhash::Config> {
        let (least, most) = (self.first.buffer_pages, self.buffer_pages_max);
        let per_page = self.first.entries_per_flush().ok()? / f64::from(least);
        let mut pages = ((entries / per_page) as u32).clamp(least, most.max(least));
        loop {
            let one =
                if pages == least { self.first.clone() } else { with_buffers(&self.first, pages)? };
            if pages >= most || one.entries_per_flush().ok()? >= entries {
                return Some(one);
            }
            pages += 1 + pages / 64;
        }
    }

    /// Returns a first generation for `entries` entries: with the smallest buffers, the fewest super tables, and as few
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

    /// Returns whether a generation has the buffers and filters of this table's generations.
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

/// Returns the pages of buffers of all sizes, largest first.
pub(super) fn buffer_sizes(largest: u32) -> impl Iterator<Item = u32> {
    let smaller = |pages: &u32| Some(pages.div_ceil(SIZE_STEP)).filter(|it| *it >= PAGES_MIN);
    std::iter::successors(Some(largest), smaller)
}

/// Returns a generation with other buffers, and filters for their entries; `None` if there are none.
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

/// Returns a generation of this many super tables, which keeps every version of a key. Each super table has segments
/// for its own number of incarnations, so that none lacks space because of another.
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

/// Returns a generation that is cleaned, whose keys are the given share of its flash. `None` for widths out of range.
fn cleaned(plain: &bufferhash::Config, entries_max: u64, share: f64) -> Option<bufferhash::Config> {
    let segments = entries_max as f64 / share / plain.entries_per_flush().ok()?;
    // Super tables do not fill evenly, but take segments from one ring, and have columns for the peak.
    let incarnations =
        (segments / f64::from(plain.super_tables)).ceil().max(f64::from(INCARNATIONS_MIN));
    let peak = (incarnations * (2.0 - share)).ceil() as u32;
    let incarnations = incarnations as u64;
    let live = u64::from(plain.super_tables) * incarnations;
    let reserve_segments = plain.reserve_segments + incarnations + REWRITE_SPARE;
    Some(bufferhash::Config {
        segments: live + u64::from(plain.spare_buffers) + reserve_segments,
        reserve_segments,
        incarnations_max: peak + COLUMNS_SPARE - 1,
        entries_max,
        keeps_versions: false,
        ..plain.clone()
    })
}

/// Returns the average incarnations of a super table of a generation that is cleaned, after it was rewritten and just
/// before the next time.
pub(super) fn live_incarnations(generation: &bufferhash::Config) -> (u32, u32) {
    let (live, mean) =
        (generation.live_incarnations().ceil() as u32, generation.incarnations() as u32);
    let most = generation.incarnations_max - 1;
    let live = live.clamp(1, most);
    (live, (2 * mean).saturating_sub(live).clamp(live, most))
}
