//! How many keys a super table has: each flush asks the filters how many of its keys are there already.

use std::sync::Arc;

use nandex_device::PAGE_BYTES;
use nandex_store::buffer::Buffer;
use nandex_store::entries::SlotState;
use nandex_store::ring::{SegmentId, SegmentTag};

use super::Inner;
use super::filter::{Columns, Slices};
use super::table::{Incarnation, Level, State};

/// Entries of a buffer for which the filters are asked, at least.
const SAMPLE: usize = 256;

impl Incarnation {
    /// One whose keys no other one has.
    pub(super) fn clean(id: SegmentId, entries: usize) -> Self {
        let entries = u32::try_from(entries).expect("a segment has fewer than 2^28 entries");
        Self { id, entries, keys: entries.cast_signed(), is_clean: true }
    }

    pub(super) fn of(id: SegmentId, tag: SegmentTag) -> Self {
        let SegmentTag { entries, keys, is_clean, .. } = tag;
        Self { id, entries, keys, is_clean }
    }

    /// What its ring notes about it.
    pub(super) fn tag(&self, super_table: usize) -> SegmentTag {
        let Self { entries, keys, is_clean, .. } = *self;
        SegmentTag { owner: super_table as u32, entries, keys, is_clean }
    }
}

impl Inner {
    /// The next incarnation of a super table, with `kept` entries of these pages. Estimates by how many keys there are
    /// more with it if the table needs to know.
    pub(super) fn incarnation(
        &self,
        (index, id): (usize, SegmentId),
        pages: &[u8],
        kept: usize,
    ) -> Incarnation {
        let all = Incarnation { is_clean: false, ..Incarnation::clean(id, kept) };
        if !self.layout.config.cleans() {
            return all;
        }
        let filters = Filters::of(&self.partitions[index].read().level);
        let first = usize::try_from(id.sequence()).unwrap_or_default();
        let keys = self.share_of_new(filters.as_ref(), pages, first) * kept as f64;
        Incarnation { keys: keys.round() as i32, ..all }
    }

    /// Keys of a super table, about: those on flash, and what its buffers add. Where the filters have not been loaded
    /// yet, these have as many new keys as the last buffer that was flushed.
    pub(super) fn keys_of(&self, state: &State) -> u64 {
        let filters = Filters::of(&state.level);
        let is_unknown = filters.is_none() && !state.level.window.is_empty();
        let of_last = is_unknown.then(|| state.level.share_of_new());
        let new = |buffer: &Buffer| {
            let asked = || self.share_of_new(filters.as_ref(), buffer.bytes(), 0);
            of_last.unwrap_or_else(asked) * buffer.len() as f64
        };
        let buffered: f64 = state.all_buffers().map(new).sum();
        (state.level.keys + buffered.round() as i64).max(0).cast_unsigned()
    }

    /// New keys for each entry of these pages, less than 0 where most are removals, about. The filters are asked for
    /// the entries of some pages, from page `first` on.
    fn share_of_new(&self, filters: Option<&Filters>, pages: &[u8], first: usize) -> f64 {
        let Some(Filters { live, slices }) = filters else { return 1.0 };
        let count = pages.len() / PAGE_BYTES;
        let first = first % count;
        let (mut asked, mut new) = (0_usize, 0_i64);
        for page in (first..count).chain(0..first) {
            let page = &pages[page * PAGE_BYTES..][..PAGE_BYTES];
            for (_, entry) in self.entry_layout().entries(page) {
                let hash = self.hasher.hash(entry.key).filter;
                let is_there = self.layout.filter.candidates(slices, hash, live) != [0; 4];
                new += match entry.state {
                    SlotState::Live => i64::from(!is_there),
                    SlotState::Tombstone => -i64::from(is_there),
                };
                asked += 1;
            }
            if asked >= SAMPLE {
                break;
            }
        }
        new as f64 / asked.max(1) as f64
    }
}

impl Level {
    /// New keys for each entry of the newest incarnation that was a buffer. Without one, what came last were updates:
    /// for these the super table was rewritten.
    fn share_of_new(&self) -> f64 {
        let newest_first = self.incarnations_newest_first();
        let flushed = newest_first.iter().find(|it| !it.is_clean && it.entries > 0);
        flushed.map_or(0.0, |it| f64::from(it.keys) / f64::from(it.entries))
    }
}

/// The filters of a super table with incarnations.
struct Filters {
    live: Columns,
    slices: Arc<Slices>,
}

impl Filters {
    /// `None` if there are none, or not yet: every key counts as new then.
    fn of(level: &Level) -> Option<Self> {
        let is_known = level.filters_loaded && !level.window.is_empty();
        let filters = || Self { live: level.window.live_mask(), slices: Arc::clone(&level.slices) };
        is_known.then(filters)
    }
}
