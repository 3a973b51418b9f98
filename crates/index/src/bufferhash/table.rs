//! A super table: the partition of BufferHash, its incarnations, and its filters.

use std::sync::Arc;

use nandex_store::entries::KeyState;
use nandex_store::hash::KeyHash;
use nandex_store::reads::LookupStep;
use nandex_store::ring::SegmentId;

use super::Incarnations;
use super::filter::{
    Columns, FilterKind, FilterShape, IncarnationFilter, Positions, Slices, Window,
};
use crate::api::Value;
use crate::write;

/// A super table.
pub(crate) type SuperTable = write::Partition<Incarnations>;
/// The mutable state of a super table.
pub(crate) type State = write::PartitionState<Incarnations>;
/// A full buffer that is being written. It has the segment that was reserved when it was frozen, if no eviction may
/// free one later.
pub(crate) type Frozen = write::Frozen<Incarnations>;

/// The position of a key in RAM: its super table and page by the hash, and its slots in the filters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyPlace {
    pub(super) hash: KeyHash,
    pub(super) positions: Positions,
    /// The number of entries of the filters for which it has these positions.
    pub(super) filter_entries: u32,
}

/// The next step of a lookup, as far as a super table can determine it.
pub(super) type Step = LookupStep<Candidates, KeyState<Value>>;

/// The incarnations of a super table.
#[derive(Debug)]
pub(crate) struct Level {
    /// The live columns of the filters, and their order.
    pub(super) window: Window,
    /// The filters, bit-sliced, as wide as the window's circle. Columns that are not live are written without the lock;
    /// under it a wider copy replaces them.
    pub(super) slices: Arc<Slices>,
    /// The incarnation of each column.
    pub(super) incarnations: Vec<Incarnation>,
    /// The number of incarnations that it has lost.
    pub(super) dropped: u64,
    /// The number of times that its columns were renumbered.
    renumbered: u64,
    /// Whether the filters of the incarnations found at open have been loaded.
    pub(super) filters_loaded: bool,
    /// Whether entries of other tables are on their way past the buffers. Entries that lookups have found on flash may
    /// then be older.
    pub(super) absorbs: bool,
    /// Whether it is being rewritten. A buffer that is frozen meanwhile would get an older segment than the entries it
    /// shadows.
    pub(super) is_cleaned: bool,
    /// The number of entries added since it was rewritten: some of them and of the older ones may be superseded.
    pub(super) unclean: u64,
    /// The approximate number of keys in its incarnations.
    pub(super) keys: i64,
    /// The number of entries that it had before a newer generation took them over.
    pub(super) released: Option<u64>,
    /// Whether a rewrite of it found damage.
    pub(super) is_damaged: bool,
    /// Whether it was rewritten together with older generations' entries, in this opening.
    pub(super) has_taken_over: bool,
}

/// Background work in addition to flushes.
#[derive(Debug)]
pub(crate) enum Job {
    /// Put an entry that was found on flash back into the buffer (LRU).
    Reinsert {
        table: usize,
        key: Vec<u8>,
        value: Vec<u8>,
        /// The segment in which it was found.
        source: SegmentId,
        /// The newest incarnation's number when the lookup began.
        newest_sequence: u64,
    },
    /// Load the filters of a super table after an open.
    LoadFilters(usize),
    /// Rewrite a super table, or the one with the most to gain, without updated or removed entries.
    Clean(Option<usize>),
    /// Free the buffer of a super table that takes no more inserts.
    Retire(usize),
}

/// An incarnation on flash.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Incarnation {
    pub(super) id: SegmentId,
    pub(super) entries: u32,
    /// The approximate number of keys that it adds to the super table.
    pub(super) keys: i32,
    /// Whether the super table has no older version of its keys.
    pub(super) is_clean: bool,
}

/// The incarnations that may hold a key, newest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidates {
    /// The newest of them.
    pub(super) next: SegmentId,
    /// The columns of the others.
    rest: Columns,
    /// The number of incarnations that the super table had lost when RAM was searched.
    dropped: u64,
    /// The number of times that its columns had been renumbered.
    renumbered: u64,
    /// The newest incarnation's sequence number at that time.
    pub(super) newest_when_asked: u64,
}

impl Level {
    /// Creates a level without incarnations yet, for at most `k`, with filters for `columns`.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for a number out of range.
    pub(super) fn new(k: u32, filter: &FilterShape, columns: usize) -> crate::Result<Self> {
        let slices = Slices::with_columns(filter, columns);
        let window = Window::new(k as usize, slices.columns())?;
        let incarnations = vec![Incarnation::default(); slices.columns()];
        let slices = Arc::new(slices);
        Ok(Self {
            window,
            slices,
            incarnations,
            dropped: 0,
            renumbered: 0,
            filters_loaded: true,
            absorbs: false,
            is_cleaned: false,
            unclean: 0,
            keys: 0,
            released: None,
            is_damaged: false,
            has_taken_over: false,
        })
    }

    /// Returns a wider copy of its filters; the caller holds the maintenance lock, and installs it with
    /// [`put_wider`](Self::put_wider).
    pub(super) fn wider(window: &Window, slices: &Slices) -> Slices {
        slices.widened(window.len() + 1, window.first_column())
    }

    /// Replaces all incarnations by rewritten ones, oldest first, with their own filters.
    pub(super) fn put_rewritten(&mut self, rewritten: Self) {
        let dropped = self.dropped + self.window.len() as u64;
        *self = Self { dropped, renumbered: self.renumbered + 1, ..rewritten };
    }

    /// Releases its filters, and replaces them by filters that are never written. Its entries are found in a newer
    /// generation, and stay counted here.
    pub(super) fn release(&mut self, none: Arc<Slices>, window: Window) {
        let incarnations = vec![Incarnation::default(); none.columns()];
        self.has_taken_over = self.is_whole();
        self.released = Some(self.entries());
        self.dropped += self.window.len() as u64;
        self.renumbered += 1;
        (self.window, self.slices, self.incarnations) = (window, none, incarnations);
        self.filters_loaded = true;
    }

    /// Gives it its own filters again, for the remaining entries of its buffers.
    pub(super) fn take_back(&mut self, shape: &FilterShape) {
        self.slices = Arc::new(Slices::with_columns(shape, 1));
        self.released = None;
    }

    /// Assigns the next column to an incarnation that is not in the ring yet.
    pub(super) fn push(&mut self, kind: FilterKind, incarnation: Incarnation, bits: &[u64]) {
        let column = self.window.next_column();
        match kind {
            FilterKind::Bloom => self.slices.or_column(column, bits),
            FilterKind::Fuse => self.slices.write_column(column, bits),
        }
        self.came(incarnation);
    }

    /// Assigns the next column to an incarnation.
    pub(super) fn came(&mut self, incarnation: Incarnation) {
        let column = self.window.push();
        self.incarnations[column] = incarnation;
        self.keys += i64::from(incarnation.keys);
        self.unclean += if incarnation.is_clean { 0 } else { u64::from(incarnation.entries) };
    }

    /// Replaces filters whose columns are all live by a wider copy.
    pub(super) fn put_wider(&mut self, wider: Arc<Slices>) {
        let first = self.window.first_column();
        self.window.widen(wider.columns());
        self.incarnations.rotate_left(first);
        self.incarnations.resize(wider.columns(), Incarnation::default());
        self.slices = wider;
        self.renumbered += u64::from(first > 0);
    }
}

impl SuperTable {
    /// Prefetches what [`search_ram`](Self::search_ram) will read.
    #[inline]
    pub(super) fn prefetch(&self, filter: &IncarnationFilter, place: &KeyPlace) {
        let state = self.read();
        filter.prefetch(&state.level.slices, &place.positions);
        state.prefetch_active(|buffer| buffer.prefetch(place.hash));
    }

    /// Searches RAM for a key: buffers first, newest to oldest, then the filters of all incarnations. `None` if the
    /// filters must be loaded first.
    ///
    /// # Errors
    /// A lost page that may have the key.
    #[inline]
    pub(super) fn search_ram(
        &self,
        filter: &IncarnationFilter,
        place: &KeyPlace,
        key: &[u8],
    ) -> crate::Result<Option<Step>> {
        let KeyPlace { hash, positions, .. } = place;
        let state = self.read();
        let known = state.buffered(*hash, key)?;
        if known.is_known() {
            return Ok(Some(LookupStep::Answer(known.map(Value::new))));
        }
        if !state.level.filters_loaded {
            return Ok(None);
        }
        let level = &state.level;
        let mask = filter.candidates_at(&level.slices, positions, &level.window.live_mask());
        let candidates = level.candidates(mask, u64::MAX);
        Ok(Some(candidates.map_or(LookupStep::Answer(KeyState::Unknown), LookupStep::Read)))
    }

    /// Returns the next older candidate, after the one before did not have the key. `None` if incarnations were dropped
    /// or columns renumbered meanwhile: then RAM must be searched again.
    pub(super) fn next_candidate(&self, candidates: &Candidates) -> Option<Step> {
        let Candidates { next, rest, dropped, renumbered, newest_when_asked } = *candidates;
        if rest == [0; 4] {
            return Some(LookupStep::Answer(KeyState::Unknown));
        }
        let level = &self.read().level;
        if level.renumbered != renumbered {
            return None;
        }
        match level.candidates(rest, next.sequence()) {
            Some(next) => Some(LookupStep::Read(Candidates { dropped, newest_when_asked, ..next })),
            None if level.dropped == dropped => Some(LookupStep::Answer(KeyState::Unknown)),
            None => None,
        }
    }
}

impl Level {
    /// Returns the newest incarnation of these columns that is not newer than `newest_sequence`, and the rest. Skips a
    /// column that was reused for a newer incarnation meanwhile.
    #[inline]
    fn candidates(&self, mask: Columns, newest_sequence: u64) -> Option<Candidates> {
        if mask == [0; 4] {
            return None;
        }
        let mut columns = self.window.newest_first(mask);
        let sequence = |column: &usize| self.incarnations[*column].id.sequence();
        let column = columns.find(|column| sequence(column) <= newest_sequence)?;
        let mut rest = mask;
        rest[column / 64] &= !(1 << (column % 64));
        Some(Candidates {
            next: self.incarnations[column].id,
            rest,
            dropped: self.dropped,
            renumbered: self.renumbered,
            newest_when_asked: self.newest_sequence(),
        })
    }

    /// Removes the oldest incarnation. Returns whether there was one.
    pub(super) fn drop_oldest(&mut self) -> bool {
        let Some(column) = self.window.pop_oldest() else { return false };
        let Incarnation { entries, keys, is_clean, .. } = self.incarnations[column];
        self.dropped += 1;
        self.keys -= i64::from(keys);
        self.unclean -= if is_clean { 0 } else { u64::from(entries) };
        true
    }

    /// The oldest incarnation.
    pub(super) fn oldest(&self) -> Option<Incarnation> {
        self.window.oldest().map(|column| self.incarnations[column])
    }

    /// The sequence number of the newest incarnation.
    pub(super) fn newest_sequence(&self) -> u64 {
        self.window.newest().map_or(0, |column| self.incarnations[column].id.sequence())
    }

    /// Returns whether it still has this incarnation.
    pub(super) fn holds(&self, id: SegmentId) -> bool {
        let live = self.window.live_mask();
        self.window.newest_first(live).any(|column| self.incarnations[column].id == id)
    }

    /// Columns and incarnations, newest first.
    pub(super) fn newest_first(&self) -> Vec<(usize, Incarnation)> {
        let columns = self.window.newest_first(self.window.live_mask());
        columns.map(|column| (column, self.incarnations[column])).collect()
    }

    /// Its incarnations, newest first.
    pub(super) fn incarnations_newest_first(&self) -> Vec<Incarnation> {
        self.newest_first().into_iter().map(|(_, incarnation)| incarnation).collect()
    }

    /// Returns the entries in its incarnations, counting each version of a key, and those that a newer generation has
    /// taken over.
    pub(super) fn entries(&self) -> u64 {
        let newest_first = self.incarnations_newest_first();
        let held: u64 = newest_first.iter().map(|it| u64::from(it.entries)).sum();
        held + self.released.unwrap_or(0)
    }
}
