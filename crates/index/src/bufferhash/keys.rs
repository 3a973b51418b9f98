//! The number of keys of a super table: each flush queries the filters for how many of its keys exist already.

use std::sync::Arc;

use nandex_device::PAGE_BYTES;
use nandex_store::buffer::Buffer;
use nandex_store::entries::SlotState;
use nandex_store::hash::KeyHash;
use nandex_store::ring::{SegmentId, SegmentTag};

use super::Inner;
use super::filter::{Columns, FilterShape, Slices};
use super::table::{Incarnation, Level, State};

/// The entries of a buffer for which the filters are queried.
const SAMPLE: u32 = 256;
/// The numbers that are enough if all of these are new keys, and if one is not, which may be a false positive.
const SAMPLES_FEW: [u32; 2] = [40, 96];
/// The number of these that may be false positives although fewer than one is expected.
const ERRORS_FEW: u32 = 3;

impl Incarnation {
    /// Creates one whose keys no other incarnation has.
    pub(super) fn clean(id: SegmentId, entries: usize) -> Self {
        let entries = u32::try_from(entries).expect("a segment has fewer than 2^28 entries");
        Self { id, entries, keys: entries.cast_signed(), is_clean: true }
    }

    pub(super) fn of(id: SegmentId, tag: SegmentTag) -> Self {
        let SegmentTag { entries, keys, is_clean, .. } = tag;
        Self { id, entries, keys, is_clean }
    }

    /// Returns the tag that its ring stores about it.
    pub(super) fn tag(&self, super_table: usize) -> SegmentTag {
        let Self { entries, keys, is_clean, .. } = *self;
        SegmentTag { owner: super_table as u32, entries, keys, is_clean }
    }
}

impl Inner {
    /// Creates the next incarnation of a super table, with `kept` entries of these pages. Estimates the number of keys
    /// that it adds if the table needs to know.
    pub(super) fn incarnation(
        &self,
        (index, id): (usize, SegmentId),
        pages: &[u8],
        kept: usize,
    ) -> Incarnation {
        let all = Incarnation { is_clean: false, ..Incarnation::clean(id, kept) };
        if !self.layout.config.counts_keys() {
            return all;
        }
        let table = &self.partitions[index];
        // Its lock is not held while filters are queried.
        let known = self.known_keys(&table.read().level);
        let first = usize::try_from(id.sequence()).unwrap_or_default();
        let share = known.share_of_new(pages, first);
        let keys = share.unwrap_or_else(|| self.usual_share(&table.read().level, pages));
        let keys = keys * kept as f64;
        Incarnation { keys: keys.round() as i32, ..all }
    }

    /// Returns the approximate number of keys that a super table has added: those on flash, and those that its buffers
    /// add. If filters have not been loaded yet, buffers have as many new keys as the last one that was flushed, unless
    /// most entries are removals.
    pub(super) fn keys_of(&self, state: &State) -> u64 {
        self.brought_by(state).max(0).cast_unsigned()
    }

    /// Returns the same for all super tables; negative if more keys of older generations were removed than were added.
    pub(super) fn keys_brought(&self) -> i64 {
        self.partitions.iter().map(|table| self.brought_by(&table.read())).sum()
    }

    fn brought_by(&self, state: &State) -> i64 {
        let known = self.known_keys(&state.level);
        let new = |buffer: &Buffer| {
            let share = known.share_of_new(buffer.bytes(), 0);
            share.unwrap_or_else(|| self.usual_share(&state.level, buffer.bytes()))
                * buffer.len() as f64
        };
        let buffered: f64 = state.all_buffers().map(new).sum();
        state.level.keys + buffered.round() as i64
    }

    /// Returns the approximate number of new keys in the newest incarnations of all super tables, and their entries.
    pub(super) fn came_last(&self) -> (i64, u64) {
        let of_newest = |table: &super::table::SuperTable| {
            let level = &table.read().level;
            let newest = level.window.newest().map(|column| level.incarnations[column]);
            newest.map_or((0, 0), |it| (i64::from(it.keys), u64::from(it.entries)))
        };
        let all = self.partitions.iter().map(of_newest);
        all.fold((0, 0), |(keys, entries), of| (keys + of.0, entries + of.1))
    }

    /// Returns the new keys for each entry of these pages, if they are like the latest entries. If most are removals,
    /// all removed keys are assumed to exist.
    fn usual_share(&self, level: &Level, pages: &[u8]) -> f64 {
        let (entries, removals) = self.entries_and_removals(pages);
        let last = self.last_share(level);
        if 2.0 * removals <= entries {
            return last;
        }
        (last.clamp(0.0, 1.0) * (entries - removals) - removals) / entries
    }

    /// Returns the number of entries of these pages, at least 1, and the number of removals among them.
    fn entries_and_removals(&self, pages: &[u8]) -> (f64, f64) {
        let layout = self.entry_layout();
        let entries = || pages.chunks_exact(PAGE_BYTES).flat_map(|page| layout.entries(page));
        let is_removal = |state| state == SlotState::Tombstone;
        let removals = entries().filter(|(_, entry)| is_removal(entry.state)).count();
        (entries().count().max(1) as f64, removals as f64)
    }

    /// Returns the new keys for each of the latest entries of a super table, or of the generation before.
    fn last_share(&self, level: &Level) -> f64 {
        if !level.window.is_empty() {
            return level.share_of_new();
        }
        let of_older = self.layout.older.get().first().map(|older| older.came_last());
        let (new, came) = of_older.filter(|(_, came)| *came > 0).unwrap_or((1, 1));
        new as f64 / came as f64
    }

    fn known_keys(&self, level: &Level) -> KnownKeys<'_> {
        let older = if level.is_whole() { Arc::default() } else { self.layout.older.get() };
        let own = level.filters_loaded.then(|| Filters::of(level));
        KnownKeys { core: self, own, older }
    }
}

/// The filters of a super table.
struct Filters {
    live: Columns,
    columns: u64,
    slices: Arc<Slices>,
}

impl Filters {
    fn of(level: &Level) -> Self {
        let (live, columns) = (level.window.live_mask(), level.window.len() as u64);
        Self { live, columns, slices: Arc::clone(&level.slices) }
    }
}

/// The sources that may know a key: the filters of a super table, and those of older generations.
struct KnownKeys<'k> {
    core: &'k Inner,
    /// The filters of this super table; `None` if they have not been loaded.
    own: Option<Filters>,
    older: Arc<[Arc<Inner>]>,
}

/// The results of queries for some entries.
#[derive(Default)]
struct Asked {
    /// The number of live entries, and of those whose keys filters know.
    live: u32,
    known: u32,
    /// The number of removals, and of those whose keys filters know.
    removals: u32,
    removed: u32,
    /// The number of queried columns, each with the filters' false-positive rate.
    columns: u64,
}

impl KnownKeys<'_> {
    /// Returns the approximate number of new keys for each entry of these pages, negative if most are removals. The
    /// filters are queried for the entries of some pages, from page `first` on, and removals are counted in all pages.
    /// `None` if filters have not been loaded.
    fn share_of_new(&self, pages: &[u8], first: usize) -> Option<f64> {
        let own = self.own.as_ref()?;
        let layout = self.core.entry_layout();
        let count = pages.len() / PAGE_BYTES;
        let first = first % count;
        let page = |page: usize| &pages[page * PAGE_BYTES..][..PAGE_BYTES];
        let mut asked = Asked::default();
        let in_turn = (first..count).chain(0..first).flat_map(|at| layout.entries(page(at)));
        for (_, entry) in in_turn {
            let hash = self.core.hasher.hash(entry.key);
            let is_there = self.knows(own, (hash, entry.key), &mut asked.columns)?;
            asked.add(entry.state, is_there);
            if asked.are_enough() {
                break;
            }
        }
        let (new, removed) = asked.shares(&self.core.layout.config.filter);
        if asked.removals == 0 {
            return Some(new);
        }
        let (entries, removals) = self.core.entries_and_removals(pages);
        Some((new * (entries - removals) - removed * removals) / entries)
    }

    /// Returns whether filters know a key, or buffers of older generations do; `None` if some have not been loaded.
    fn knows(
        &self,
        own: &Filters,
        (hash, key): (KeyHash, &[u8]),
        columns: &mut u64,
    ) -> Option<bool> {
        *columns += own.columns;
        if self.core.layout.filter.candidates(&own.slices, hash.filter, &own.live) != [0; 4] {
            return Some(true);
        }
        for core in self.older.iter() {
            let state = core.partitions[core.partition_of(hash)].read();
            let (level, filter) = (&state.level, &core.layout.filter);
            *columns += level.window.len() as u64;
            let live = level.window.live_mask();
            if !level.filters_loaded {
                return None;
            }
            // A lost page of a buffer gives no information.
            let is_buffered = state.buffered(hash, key).is_ok_and(|known| known.is_known());
            if is_buffered || filter.candidates(&level.slices, hash.filter, &live) != [0; 4] {
                return Some(true);
            }
            if level.is_whole() {
                break;
            }
        }
        Some(false)
    }
}

impl Asked {
    fn entries(&self) -> u32 {
        self.live + self.removals
    }

    /// Returns whether more entries would not change the result. While a table is filled for the first time, a few are
    /// enough.
    fn are_enough(&self) -> bool {
        let known = self.known + self.removals;
        let enough = SAMPLES_FEW.get(known as usize).copied().unwrap_or(SAMPLE);
        self.entries() >= enough
    }

    fn add(&mut self, state: SlotState, is_there: bool) {
        let (all, known) = match state {
            SlotState::Live => (&mut self.live, &mut self.known),
            SlotState::Tombstone => (&mut self.removals, &mut self.removed),
        };
        *all += 1;
        *known += u32::from(is_there);
    }

    /// Returns the share of live entries whose keys are new, and of removals whose keys exist. The expected false
    /// positives count as new. If these are very rare, a few of them are not taken as a sign of updates.
    fn shares(&self, filter: &FilterShape) -> (f64, f64) {
        let rate = filter.rate(filter.entries_max().into());
        let errors = self.columns as f64 * rate * f64::from(self.live) / f64::from(self.entries());
        let errors = if errors < 1.0 && self.known <= ERRORS_FEW { f64::INFINITY } else { errors };
        let known = f64::from(self.known) - f64::from(self.known).min(errors);
        let of = |part: f64, all: u32| part / f64::from(all.max(1));
        (1.0 - of(known, self.live), of(self.removed.into(), self.removals))
    }
}

impl Level {
    /// Returns the new keys for each entry of the newest incarnation that was a buffer. Without one, the latest entries
    /// were updates, since the super table was rewritten because of them.
    fn share_of_new(&self) -> f64 {
        let newest_first = self.incarnations_newest_first();
        let flushed = newest_first.iter().find(|it| !it.is_clean && it.entries > 0);
        flushed.map_or(0.0, |it| f64::from(it.keys) / f64::from(it.entries))
    }
}
