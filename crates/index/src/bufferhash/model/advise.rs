//! The search for the parameters that take the least RAM.
//!
//! Section 6.4 finds the best buffers in closed form because its filters come in any size. Ours do not: rows are whole
//! words of 64 columns, fingerprints whole bits, super tables a power of two. There are about ten thousand
//! combinations, and all are tried.
//!
//! The size of one buffer determines how long a flush takes, so a limit on the worst insert excludes the larger ones.
//! On a chip a segment is whole blocks, where Figure 4 has the least cost, on average and in the worst case. If
//! channels are known, it is whole rounds of their chunks.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use super::fill::BufferFill;
use super::report;
use super::sizing::{
    BufferHashSizing, LIVE_SHARE, UnfilteredSizes, incarnations_peak, segment_pages,
};
use crate::bufferhash::filter::{FilterKind, FilterShape, WORDS_MAX, fuse_bumped_share};
use crate::bufferhash::{Config, Policy};
use crate::model::{
    BUFFER_BYTES_MAX, BUFFER_BYTES_MIN, Medium, PAGE_BYTES, Prediction, Requirements, page_slots,
    too_little_ram,
};
use crate::{Error, Result};

/// Capacity beyond the required entries.
pub const CAPACITY_SLACK: f64 = 1.01;
/// The standard deviations by which a super table may exceed its share of the entries.
const SHARE_SIGMAS: f64 = 5.0;
/// The maximum number of super tables.
pub const SUPER_TABLES_MAX: u32 = 1 << 16;
/// The preferred size of a buffer.
const BUFFER_BYTES_BEST: f64 = (256 << 10) as f64;
/// The least preferred number of super tables, if RAM allows: inserting threads then rarely meet in one.
const SUPER_TABLES_GOOD: u32 = 16;
/// The minimum number of incarnations per super table: with fewer, an eviction drops too large a part of the table.
pub const INCARNATIONS_MIN: u32 = 4;
/// Columns of a fuse filter that are not live: one being written, one being evicted.
const FUSE_SPARE_COLUMNS: u32 = 2;
/// Columns of a Bloom filter that are not live: the paper's w, reset at once.
const BLOOM_SPARE_COLUMNS: u32 = 8;
/// Combinations this close to the least RAM count as equal; the most convenient of them is chosen.
const RAM_TOLERANCE: f64 = 1.02;

/// The numbers of rounds that are tried for a segment, and of buffers for each.
const TARGETS: usize = 4;
const STEPS: usize = 6;

/// The default for pages read by a lookup of an absent key.
const MISS_READS: f64 = 0.01;
/// The fewest pages read by a lookup of an absent key: reading even fewer is worth no RAM (Figure 3).
const MISS_READS_MIN: f64 = 0.0001;

/// Returns the parameters and costs of a BufferHash with fuse filters; see [`advise_with`].
///
/// # Errors
/// As [`advise_with`].
pub fn advise(requirements: &Requirements) -> Result<Prediction> {
    advise_with(requirements, FilterKind::Fuse)
}

/// Returns the parameters and costs of a BufferHash: those that take the least RAM and keep the reads per miss, one in
/// a hundred if no limit is stated. Among several within 2 % of it, it chooses the one with the narrowest rows, buffers
/// near 256 KiB and at least 16 super tables. If there is less RAM, the filters are made smaller until it fits, and
/// misses read more. Additional RAM is not used.
///
/// No flush takes longer than an insert may wait. On a chip a buffer and its filter fill whole blocks. If one of these
/// determines the buffers, the rest of the stated RAM is for filters (section 6.4): until one absent key in 10,000
/// reads a page, if no limit on reads is stated.
///
/// Tries about ten thousand combinations; takes tens of milliseconds.
///
/// # Errors
/// [`Error::Config`] for a number out of its range, more entries than any parameters hold, and a limit that cannot be
/// met, with what would be enough.
pub fn advise_with(requirements: &Requirements, filter: FilterKind) -> Result<Prediction> {
    let search = Search::new(requirements, filter)?;
    let found = search.find()?;
    let prediction = report::predict(&search, &found)?;
    requirements.check_miss_reads(prediction.costs.reads_per_miss)?;
    requirements.check_load(&prediction.costs)?;
    Ok(prediction)
}

/// Returns a generation of one super table for `entries` entries, in `incarnations`, with fuse filters of `bits`.
///
/// # Errors
/// [`Error::Config`] for a number of entries that no buffer takes.
pub(in crate::bufferhash) fn one_super_table(
    requirements: &Requirements,
    (entries, incarnations, bits): (u64, u32, u32),
) -> Result<Config> {
    let asked = Requirements { policy: Policy::Reject, ..requirements.clone() };
    let search = Search::new(&asked, FilterKind::Fuse)?;
    let needed = (entries as f64 * CAPACITY_SLACK / f64::from(incarnations)).ceil() as u64;
    let Some(pages) =
        (search.pages_min..=PAGES_MAX).find(|pages| search.entries_kept(*pages) >= needed)
    else {
        return Err(search.too_many_entries());
    };
    let of_pages = |pages| FilterShape::fuse(search.keys(pages), bits, 1).ok();
    let (pages, filter) = match search.whole_rounds(pages, of_pages) {
        Some(whole) => whole,
        None => (pages, FilterShape::fuse(search.keys(pages), bits, 1)?),
    };
    let sizes =
        UnfilteredSizes { super_tables: 1, incarnations, pages, entries: needed, cleans: false };
    let config = sizes.with(filter, search.entry_bytes()).config(&asked);
    // One more is kept for recovery.
    Ok(Config { incarnations_max: incarnations + 1, ..config })
}

/// The search among all parameters.
pub(super) struct Search<'a> {
    pub(super) requirements: &'a Requirements,
    pub(super) filter: FilterKind,
    /// The maximum number of pages read by a lookup of an absent key, on average, if RAM allows.
    pub(super) miss_reads_max: f64,
    /// The fill of buffers, by their pages, from the fewest on.
    fills: Vec<BufferFill>,
    /// Pages of the smallest buffers.
    pages_min: u32,
}

impl<'a> Search<'a> {
    pub(super) fn new(requirements: &'a Requirements, filter: FilterKind) -> Result<Self> {
        requirements.check()?;
        requirements.check_no_extras("bufferhash")?;
        let policies = "every policy but grow, which a growing table has";
        requirements.check_policy("bufferhash", policies, requirements.policy != Policy::Grow)?;
        let miss_reads_max = requirements.miss_reads_max.unwrap_or(MISS_READS);
        if !(MISS_READS_MIN..=10.0).contains(&miss_reads_max) {
            let reason = format!("{miss_reads_max}; expected 0.0001 to 10");
            return Err(Error::Config { field: "reads per miss", reason });
        }
        let slots = page_slots(requirements.entry_bytes());
        let of = |pages_min| {
            let fills = (pages_min..=PAGES_MAX).map(|pages| BufferFill::new(pages, slots));
            Self { requirements, filter, miss_reads_max, fills: fills.collect(), pages_min }
        };
        let usual = of(PAGES_MIN);
        let is_simple = usual.whole_blocks().is_none() && usual.rounds().is_none();
        Ok(if is_simple && usual.holds_in_fewest(1) { of(PAGES_MIN_OF_FEW) } else { usual })
    }

    /// Returns whether this many super tables hold the entries with the smallest buffers and the fewest incarnations.
    fn holds_in_fewest(&self, super_tables: u32) -> bool {
        let kept = self.entries_kept(self.pages_min) as f64;
        kept * f64::from(INCARNATIONS_MIN) >= self.share(super_tables)
    }

    pub(super) fn find(&self) -> Result<BufferHashSizing> {
        let all = self.candidates();
        if all.is_empty() {
            return Err(self.too_many_entries());
        }
        let fitting = self.within_ram(self.quick_enough(all)?)?;
        let found = self.spend_spare_ram(self.pick(&fitting), &fitting);
        self.requirements.check_flash(found.flash_bytes())?;
        Ok(found)
    }

    /// Returns those whose flush is no longer than an insert may wait.
    fn quick_enough(&self, all: Vec<BufferHashSizing>) -> Result<Vec<BufferHashSizing>> {
        let costs = &self.requirements.device.costs;
        let took = |it: &BufferHashSizing| costs.insert_worst_ns(it.segment_bytes() as f64);
        self.requirements.check_insert_worst(all.iter().map(took).fold(f64::INFINITY, f64::min))?;
        let is_quick = |it: &BufferHashSizing| self.requirements.allows_insert_worst(took(it));
        Ok(all.into_iter().filter(is_quick).collect())
    }

    fn within_ram(&self, all: Vec<BufferHashSizing>) -> Result<Vec<BufferHashSizing>> {
        let Some(budget) = self.requirements.ram_bytes else { return Ok(all) };
        let least = all.iter().map(|candidate| candidate.ram_bytes).min().unwrap_or(u64::MAX);
        if least > budget {
            return Err(too_little_ram(budget, least));
        }
        Ok(all.into_iter().filter(|candidate| candidate.ram_bytes <= budget).collect())
    }

    /// e: bytes of key and value.
    fn entry_bytes(&self) -> u64 {
        self.requirements.entry_bytes()
    }

    /// Returns the entries that every super table must have space for: its share, and a margin for chance.
    fn share(&self, super_tables: u32) -> f64 {
        let mean = self.requirements.entries as f64 / f64::from(super_tables);
        let chance = if super_tables == 1 { 0.0 } else { SHARE_SIGMAS * mean.sqrt() };
        let needed = (mean * CAPACITY_SLACK).max(mean + chance);
        if self.cleans() { needed / LIVE_SHARE } else { needed }
    }

    /// Returns whether its super tables are rewritten without updated or removed entries.
    fn cleans(&self) -> bool {
        self.requirements.policy == Policy::Reject
    }

    /// Returns the maximum number of incarnations of a super table that has `incarnations` on average.
    fn incarnations_peak(&self, incarnations: u32) -> u32 {
        if self.cleans() { incarnations_peak(incarnations) } else { incarnations }
    }

    /// Returns all combinations that hold the entries, whatever their RAM and reads.
    fn candidates(&self) -> Vec<BufferHashSizing> {
        let spare = self.spare_columns();
        let words_max = u32::try_from(WORDS_MAX).expect("four words");
        let mut found = Vec::new();
        for super_tables in (0..=SUPER_TABLES_MAX.ilog2()).map(|power| 1 << power) {
            for incarnations in INCARNATIONS_MIN..=64 * words_max - spare {
                self.candidates_of(super_tables, incarnations, &mut found);
            }
            // More super tables would only take more RAM.
            if self.holds_in_fewest(super_tables) {
                break;
            }
        }
        found
    }

    /// Returns the smallest buffers that hold the entries in this many incarnations, with every size of filter.
    fn candidates_of(
        &self,
        super_tables: u32,
        incarnations: u32,
        found: &mut Vec<BufferHashSizing>,
    ) {
        let share = self.share(super_tables) / f64::from(incarnations);
        let (least, most) = (self.pages_min, PAGES_MAX);
        // No page is fuller, so fewer pages never suffice; bumped keys may take a few more.
        let estimate = (share / self.fills[0].kept_of(page_slots(self.entry_bytes()))).ceil();
        if estimate > f64::from(most) {
            return;
        }
        let holds = |pages: &u32| self.entries_kept(*pages) as f64 >= share;
        let Some(pages) = ((estimate as u32).max(least)..=most).find(holds) else { return };
        let words = (self.incarnations_peak(incarnations) + self.spare_columns()).div_ceil(64);
        if words as usize > WORDS_MAX {
            return;
        }
        let with = |pages, filter| {
            let (entries, cleans) = (self.entries_kept(pages), self.cleans());
            UnfilteredSizes { super_tables, incarnations, pages, entries, cleans }
                .with(filter, self.entry_bytes())
        };
        match self.whole_blocks() {
            None if self.rounds().is_some() => found.extend(
                self.filter_sizes()
                    .filter_map(|size| self.whole_rounds(pages, |it| self.filter(it, size, words)))
                    .map(|(pages, filter)| with(pages, filter)),
            ),
            None => found.extend(self.filters(pages, words).map(|filter| with(pages, filter))),
            Some(whole) => {
                let all = (pages..whole)
                    .flat_map(|pages| self.filters(pages, words).map(move |it| (pages, it)));
                let filling = all.filter(|(pages, filter)| segment_pages(*pages, filter) == whole);
                found.extend(filling.map(|(pages, filter)| with(pages, filter)));
            }
        }
    }

    /// Returns the pages of a segment if it must be whole blocks, as on a chip: the fewest that are enough. Figure 4
    /// has the least cost when a flush fills a block.
    fn whole_blocks(&self) -> Option<u32> {
        let costs = &self.requirements.device.costs;
        let block = ((costs.block_bytes / PAGE_BYTES as f64) as u32).max(1);
        let least = PAGES_MIN + 1;
        (costs.medium == Medium::Chip).then_some(least.div_ceil(block) * block)
    }

    /// Returns the pages of a round of chunks over all channels, if a device with a translation layer has more than
    /// one.
    fn rounds(&self) -> Option<u32> {
        let channels = &self.requirements.channels;
        let has_rounds = channels.count() > 1 && self.whole_blocks().is_none();
        u32::try_from(channels.align_pages()).ok().filter(|_| has_rounds)
    }

    /// Returns the fewest pages of a buffer, from `pages` on, with which a segment is whole rounds, and its filter. So
    /// each segment begins with the same channel, if segments are written one after another. `None` without rounds, or
    /// if no buffer is that large.
    fn whole_rounds(
        &self,
        pages: u32,
        filter: impl Fn(u32) -> Option<FilterShape>,
    ) -> Option<(u32, FilterShape)> {
        let round = self.rounds()?;
        let first = segment_pages(pages, &filter(pages)?).next_multiple_of(round);
        for whole in (first..).step_by(round as usize).take(TARGETS) {
            // The filter grows with the buffer, one page for about ten, so a few steps are enough.
            let mut pages = pages;
            for _ in 0..STEPS {
                let filter = (pages <= PAGES_MAX).then(|| filter(pages))??;
                match segment_pages(pages, &filter).cmp(&whole) {
                    Ordering::Equal => return Some((pages, filter)),
                    Ordering::Less => pages += whole - segment_pages(pages, &filter),
                    Ordering::Greater => pages -= segment_pages(pages, &filter) - whole,
                }
            }
        }
        None
    }

    /// Returns the fill of buffers with this many pages.
    fn fill(&self, pages: u32) -> BufferFill {
        self.fills[(pages - self.pages_min) as usize]
    }

    /// Returns the number of keys that a filter for buffers of this many pages is made for.
    fn keys(&self, pages: u32) -> u32 {
        let slots = page_slots(self.entry_bytes()) * u64::from(pages);
        self.fill(pages).keys_of(slots) as u32
    }

    /// Returns the new entries that one flush adds on flash: the buffer's, without bumped ones.
    fn entries_kept(&self, pages: u32) -> u64 {
        let (slots, fill) = (page_slots(self.entry_bytes()) * u64::from(pages), self.fill(pages));
        let bumped = match self.filter {
            FilterKind::Bloom => 0.0,
            FilterKind::Fuse => fuse_bumped_share(self.keys(pages), fill.kept / fill.keys),
        };
        (fill.kept_of(slots) * (1.0 - bumped)) as u64
    }

    /// Returns filters of every size for buffers of this many pages.
    fn filters(&self, pages: u32, words: u32) -> impl Iterator<Item = FilterShape> {
        self.filter_sizes().filter_map(move |size| self.filter(pages, size, words))
    }

    fn filter_sizes(&self) -> RangeInclusive<u32> {
        match self.filter {
            FilterKind::Bloom => 1..=80,
            FilterKind::Fuse => 1..=24,
        }
    }

    /// Returns the filter of one size for buffers of this many pages.
    fn filter(&self, pages: u32, size: u32, words: u32) -> Option<FilterShape> {
        let keys = self.keys(pages);
        match self.filter {
            FilterKind::Bloom => FilterShape::bloom(keys, f64::from(size) / 2.0, words).ok(),
            FilterKind::Fuse => FilterShape::fuse(keys, size, words).ok(),
        }
    }

    fn spare_columns(&self) -> u32 {
        match self.filter {
            FilterKind::Bloom => BLOOM_SPARE_COLUMNS,
            FilterKind::Fuse => FUSE_SPARE_COLUMNS,
        }
    }

    /// Returns the best of those that fit: the most convenient near the least RAM if one keeps the reads, otherwise the
    /// one that reads least.
    fn pick(&self, fitting: &[BufferHashSizing]) -> BufferHashSizing {
        let keeps = |candidate: &&BufferHashSizing| candidate.miss_reads <= self.miss_reads_max;
        let least = fitting.iter().filter(keeps).map(|candidate| candidate.ram_bytes).min();
        let best = match least {
            Some(least) => fitting
                .iter()
                .filter(keeps)
                .filter(|candidate| candidate.ram_bytes as f64 <= least as f64 * RAM_TOLERANCE)
                .min_by(|a, b| self.awkwardness(a).total_cmp(&self.awkwardness(b))),
            None => fitting.iter().min_by(|a, b| {
                let reads = a.miss_reads.total_cmp(&b.miss_reads);
                reads.then(self.awkwardness(a).total_cmp(&self.awkwardness(b)))
            }),
        };
        *best.expect("one fits")
    }

    /// Returns whether something other than RAM determines the buffers, and no limit on reads is stated. Then the
    /// remaining RAM is for filters.
    pub(super) fn spends_spare_ram(&self) -> bool {
        let Requirements { ram_bytes, miss_reads_max, insert_worst_ns_max, .. } = self.requirements;
        let has_fixed_buffers = insert_worst_ns_max.is_some() || self.whole_blocks().is_some();
        ram_bytes.is_some() && miss_reads_max.is_none() && has_fixed_buffers
    }

    /// Returns the same table with larger filters, if RAM is left for them.
    fn spend_spare_ram(
        &self,
        found: BufferHashSizing,
        fitting: &[BufferHashSizing],
    ) -> BufferHashSizing {
        if !self.spends_spare_ram() {
            return found;
        }
        let Requirements { device, load, .. } = self.requirements;
        let busy = |it: &BufferHashSizing| {
            let costs = it.config(self.requirements).operation_costs();
            costs.map_or(f64::INFINITY, |costs| costs.busy_share(device, load))
        };
        let busy_max = busy(&found).max(1.0);
        let same_table = |it: &&BufferHashSizing| {
            (it.super_tables, it.incarnations) == (found.super_tables, found.incarnations)
                && it.miss_reads < found.miss_reads
                && busy(it) <= busy_max
        };
        let reads = |it: &&BufferHashSizing| it.miss_reads.max(MISS_READS_MIN);
        let more = fitting
            .iter()
            .filter(same_table)
            .min_by(|a, b| reads(a).total_cmp(&reads(b)).then(a.ram_bytes.cmp(&b.ram_bytes)));
        more.copied().unwrap_or(found)
    }

    /// Returns a penalty for inconvenient sizes: doublings of the buffer away from 256 KiB if it may have any size,
    /// halvings of the super tables below 16, and words of columns that every lookup must read.
    fn awkwardness(&self, sizing: &BufferHashSizing) -> f64 {
        let buffer = match self.whole_blocks() {
            None => f64::from(sizing.pages) * PAGE_BYTES as f64 / BUFFER_BYTES_BEST,
            Some(_) => 1.0,
        };
        let few = (f64::from(SUPER_TABLES_GOOD) / f64::from(sizing.super_tables)).log2().max(0.0);
        buffer.log2().abs() + 1.5 * few + 3.0 * f64::from(sizing.filter.words() - 1)
    }

    fn too_many_entries(&self) -> Error {
        let reason = format!(
            "{} entries of {} bytes; {SUPER_TABLES_MAX} super tables with buffers of {BUFFER_BYTES_MAX} bytes hold fewer",
            self.requirements.entries,
            self.entry_bytes()
        );
        Error::Config { field: "entries", reason }
    }
}

/// Pages of the smallest and the largest buffer.
const PAGES_MIN: u32 = (BUFFER_BYTES_MIN / PAGE_BYTES) as u32;
const PAGES_MAX: u32 = (BUFFER_BYTES_MAX / PAGE_BYTES) as u32;

/// Pages of the smallest buffer of a table whose entries fill only a few of these.
const PAGES_MIN_OF_FEW: u32 = 2;
