//! Bloom filters for the partitions with the most false-positive reads (paper, section 5.1.2).
//!
//! A lookup of an absent key costs a false-positive read. If there is memory for it, a partition has a filter of its
//! slicetable, in pieces: one for each slice, so that a merge, which goes through the slices one after another, builds
//! the new filter along the way. The budget is smaller than what all partitions need. So misses are counted per
//! partition, and from time to time the filters go to the partitions with the most recent ones; counts are halved each
//! time, so that old misses fade.

use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use nandex_store::hash::{KeyHash, mix};
use nandex_store::page::PageKind;

use super::{Config, Inner, SlicetableJob};
use crate::Result;
use crate::write::pool;

/// Bits for each entry: with seven probes one miss in 120 passes.
const BITS_PER_ENTRY: usize = 10;

/// Bits that are set for each entry.
const PROBES: usize = 7;

/// The ratio of misses at which a partition takes another's filter.
const ADVANTAGE: u32 = 2;

/// A Bloom filter in pieces.
#[derive(Clone, Debug)]
pub(super) struct SliceFilter {
    words: Box<[u64]>,
    piece_words: usize,
}

impl SliceFilter {
    /// An empty filter with this many pieces, each for this many entries.
    pub fn new(pieces: usize, entries: usize) -> Self {
        let piece_words = Self::piece_words(entries);
        Self { words: vec![0; pieces * piece_words].into(), piece_words }
    }

    fn piece_words(entries: usize) -> usize {
        (entries * BITS_PER_ENTRY).div_ceil(64).max(1)
    }

    /// RAM that it holds, in bytes.
    pub fn ram_bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// Returns the words and bits of a key, in its piece.
    fn bits(&self, piece: u32, hash: KeyHash) -> impl Iterator<Item = (usize, u64)> + use<> {
        let first = piece as usize * self.piece_words;
        let bits = self.piece_words as u64 * 64;
        // The upper half of these bits chose the slice; after mixing, all of them matter.
        let mut state = mix(hash.filter ^ hash.place.rotate_left(17));
        (0..PROBES).map(move |_| {
            let bit = ((state >> 32) * bits) >> 32;
            state = mix(state);
            (first + (bit / 64) as usize, 1 << (bit % 64))
        })
    }

    pub fn add(&mut self, piece: u32, hash: KeyHash) {
        self.bits(piece, hash).for_each(|(word, bit)| self.words[word] |= bit);
    }

    /// Returns whether a key may be in its piece. It always is if it was added.
    pub fn may_hold(&self, piece: u32, hash: KeyHash) -> bool {
        self.bits(piece, hash).all(|(word, bit)| self.words[word] & bit != 0)
    }
}

/// The number of recent lookups of a partition's slicetable that found nothing.
#[derive(Debug, Default)]
pub(crate) struct RecentMisses(AtomicU32);

/// The partitions that have a filter, and when to reassign the filters.
#[derive(Debug)]
pub(super) struct Filters {
    /// The number of filters that the budget allows in addition to those being built.
    held_max: usize,
    /// The number of misses between two reassignments.
    period: u64,
    misses: AtomicU64,
    /// Partitions that have a filter, or are being given one.
    chosen: Mutex<Vec<u32>>,
    ram_bytes: AtomicU64,
}

impl Filters {
    pub fn new(config: &Config, budget_bytes: u64, builders: usize) -> Self {
        let one = SliceFilter::piece_words(config.slice_entries() as usize) as u64 * 8;
        let each = one * u64::from(config.slices);
        let held_max = (budget_bytes / each).saturating_sub(builders.max(1) as u64);
        let held_max = held_max.min(u64::from(config.partitions));
        Self {
            held_max: usize::try_from(held_max).expect("at most 65,536"),
            period: 16 * u64::from(config.partitions).max(64),
            misses: AtomicU64::new(0),
            chosen: Mutex::default(),
            ram_bytes: AtomicU64::new(0),
        }
    }

    /// The RAM of all filters, in bytes.
    pub fn ram_bytes(&self) -> u64 {
        self.ram_bytes.load(Relaxed)
    }

    fn chosen(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.chosen.lock().expect("no holder of this lock panics")
    }

    /// Returns whether this partition's next merge builds a filter.
    pub fn wants(&self, index: usize) -> bool {
        self.held_max > 0 && self.chosen().contains(&(index as u32))
    }
}

impl Inner {
    /// Counts a lookup that found nothing in its partition's slicetable; from time to time, reassigns the filters. The
    /// caller holds no lock.
    #[inline]
    pub(super) fn missed(&self, index: usize) {
        let filters = &self.layout.filters;
        if filters.held_max == 0 {
            return;
        }
        self.partitions[index].unlocked.0.fetch_add(1, Relaxed);
        if filters.misses.fetch_add(1, Relaxed) % filters.period == filters.period - 1 {
            self.choose_filters();
        }
    }

    /// Gives the filters to the partitions with the most recent misses, and halves the counts.
    fn choose_filters(&self) {
        let heat = |index: &u32| self.partitions[*index as usize].unlocked.0.load(Relaxed);
        let mut chosen = self.layout.filters.chosen();
        let mut others: Vec<u32> =
            (0..self.partitions.len() as u32).filter(|index| !chosen.contains(index)).collect();
        others.sort_by_key(|index| std::cmp::Reverse(heat(index)));
        chosen.sort_by_key(heat);
        let mut lost = Vec::new();
        let mut won = Vec::new();
        for index in others.into_iter().filter(|index| heat(index) > 0) {
            if chosen.len() + won.len() < self.layout.filters.held_max {
                won.push(index);
                continue;
            }
            let Some(&coldest) = chosen.get(lost.len()) else { break };
            if heat(&index) < ADVANTAGE * heat(&coldest).max(1) {
                break;
            }
            lost.push(coldest);
            won.push(index);
        }
        chosen.retain(|index| !lost.contains(index));
        chosen.extend(&won);
        drop(chosen);
        lost.iter().for_each(|index| self.set_filter(*index as usize, None));
        for partition in &self.partitions {
            let heat = &partition.unlocked.0;
            heat.store(heat.load(Relaxed) / 2, Relaxed);
        }
        won.into_iter().for_each(|index| {
            self.work.push(pool::Job::Own(SlicetableJob::BuildFilter(index as usize)))
        });
    }

    fn set_filter(&self, index: usize, filter: Option<SliceFilter>) {
        let mut state = self.partitions[index].write();
        self.swap_filter(&mut state.level, filter);
    }

    /// Replaces a partition's filter; the caller holds its lock.
    pub(super) fn swap_filter(&self, level: &mut super::Level, filter: Option<SliceFilter>) {
        let bytes =
            |filter: &Option<SliceFilter>| filter.as_ref().map_or(0, SliceFilter::ram_bytes);
        self.layout.filters.ram_bytes.fetch_add(bytes(&filter), Relaxed);
        self.layout.filters.ram_bytes.fetch_sub(bytes(&level.filter), Relaxed);
        level.filter = filter;
    }

    /// Returns an empty filter for a partition that will have one.
    pub(super) fn wanted_filter(&self, index: usize) -> Option<SliceFilter> {
        let config = &self.layout.config;
        let wanted = self.layout.filters.wants(index);
        wanted.then(|| SliceFilter::new(config.slices as usize, config.slice_entries() as usize))
    }

    /// Reads a partition's slicetable for its filter.
    pub(super) fn build_filter(&self, index: usize) -> Result<()> {
        let _lock = self.partitions[index].maintain();
        let Some(mut filter) = self.wanted_filter(index) else { return Ok(()) };
        let Some(block) = self.layout.shadow.block(index as u32) else { return Ok(()) };
        self.each_page(block, PageKind::Slice, &mut |page, body| {
            self.add_page(&mut filter, page, body);
            Ok(())
        })?;
        self.set_filter(index, Some(filter));
        Ok(())
    }

    /// Adds the keys of a slice's page.
    pub(super) fn add_page(&self, filter: &mut SliceFilter, page: u64, body: &[u8]) {
        let Some((slice, _)) = self.layout.slicing.slice_of(page) else { return };
        let layout = self.layout.slices;
        for at in 0..layout.count(body).unwrap_or(0) {
            filter.add(slice, self.hasher.hash(layout.key(body, at)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u64) -> KeyHash {
        KeyHash { place: mix(number), filter: mix(number ^ 0x5555_5555) }
    }

    #[test]
    fn a_filter_holds_what_was_added_and_little_else() {
        let (pieces, entries) = (20u64, 200u64);
        let mut filter = SliceFilter::new(pieces as usize, entries as usize);
        for number in 0..pieces * entries {
            filter.add((number % pieces) as u32, hash(number));
        }
        let may_hold = |number: u64| filter.may_hold((number % pieces) as u32, hash(number));
        assert!((0..pieces * entries).all(may_hold));
        let trials = 100_000;
        let passed = (0..trials).filter(|number| may_hold(number + (1 << 40))).count() as f64;
        // 0.82 % for ten bits and seven probes; five standard deviations are 0.14 %.
        let rate = passed / trials as f64;
        assert!((0.0068..0.0097).contains(&rate), "{rate}");
    }
}
