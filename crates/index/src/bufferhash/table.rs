//! A super table: the partition of BufferHash, its incarnations, and what their filters tell of a key.

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
/// What changes in a super table.
pub(crate) type State = write::PartitionState<Incarnations>;
/// A full buffer that is being written. It holds the segment that was reserved when it was frozen, if nothing
/// may be evicted to free one later.
pub(crate) type Frozen = write::Frozen<Incarnations>;

/// Where a key is in RAM: its super table and page by the hash, and its slots in the filters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyPlace {
    pub(super) hash: KeyHash,
    pub(super) positions: Positions,
    /// Entries that the filters are made for in which it has these positions.
    pub(super) filter_entries: u32,
}

/// The next step of a lookup, as far as a super table knows.
pub(super) type Step = LookupStep<Candidates, KeyState<Value>>;

/// The incarnations of a super table.
#[derive(Debug)]
pub(crate) struct Level {
    /// Which columns of the filters are live, and in which order.
    pub(super) window: Window,
    /// The filters, bit-sliced, as wide as the window's circle. Columns that are not live are written without the lock;
    /// under it a wider copy takes their place.
    pub(super) slices: Arc<Slices>,
    /// The incarnation of each column.
    pub(super) incarnations: Vec<Incarnation>,
    /// How many incarnations it has lost.
    pub(super) dropped: u64,
    /// How often its columns were renumbered.
    renumbered: u64,
    /// Have the filters of the incarnations found at open been loaded?
    pub(super) filters_loaded: bool,
    /// Are entries of other tables on their way past the buffers? What lookups have found on flash may be older.
    pub(super) absorbs: bool,
    /// Is it being rewritten? A buffer that is frozen meanwhile would get an older segment than what it hides.
    pub(super) is_cleaned: bool,
    /// Entries that have come to it since it was rewritten: among them and the older ones some may be superseded.
    pub(super) unclean: u64,
    /// Keys in its incarnations, about.
    pub(super) keys: i64,
    /// The entries that it had before a newer generation took them over.
    pub(super) released: Option<u64>,
    /// Was it damaged when it was to be rewritten?
    pub(super) is_damaged: bool,
    /// Whether it was rewritten with what older generations had of its keys, in this opening.
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
        /// Where it was found.
        source: SegmentId,
        /// The newest incarnation's number when the lookup began.
        newest_sequence: u64,
    },
    /// Load the filters of a super table after an open.
    LoadFilters(usize),
    /// Rewrite a super table, or the one with the most to gain, without what was updated or removed.
    Clean(Option<usize>),
    /// Free the buffer of a super table into which nothing will be inserted any more.
    Retire(usize),
}

/// An incarnation on flash.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Incarnation {
    pub(super) id: SegmentId,
    pub(super) entries: u32,
    /// By how many keys the super table has more with it, about.
    pub(super) keys: i32,
    /// Has the super table no older version of its keys?
    pub(super) is_clean: bool,
}

/// The incarnations that may hold a key, newest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidates {
    /// The newest of them.
    pub(super) next: SegmentId,
    /// The columns of the others.
    rest: Columns,
    /// Incarnations that the super table had lost when RAM was asked.
    dropped: u64,
    /// How often its columns had been renumbered.
    renumbered: u64,
    /// The newest incarnation's sequence number at that time.
    pub(super) newest_when_asked: u64,
}

impl Level {
    /// No incarnations yet, `k` at most, and filters for as many as `columns`.
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

    /// A wider copy of its filters; the caller holds the maintenance lock, and [`put_wider`](Self::put_wider)s it.
    pub(super) fn wider(window: &Window, slices: &Slices) -> Slices {
        slices.widened(window.len() + 1, window.first_column())
    }

    /// Puts rewritten incarnations, oldest first, with filters of their own, in the place of all there are.
    pub(super) fn put_rewritten(&mut self, rewritten: Self) {
        let dropped = self.dropped + self.window.len() as u64;
        *self = Self { dropped, renumbered: self.renumbered + 1, ..rewritten };
    }

    /// Gives its filters back, in place of which there are some that nothing is written to. What it had is found in a
    /// newer generation, where its keys stay counted as here.
    pub(super) fn release(&mut self, none: Arc<Slices>, window: Window) {
        let incarnations = vec![Incarnation::default(); none.columns()];
        self.has_taken_over = self.is_whole();
        self.released = Some(self.entries());
        self.dropped += self.window.len() as u64;
        self.renumbered += 1;
        (self.window, self.slices, self.incarnations) = (window, none, incarnations);
        self.filters_loaded = true;
    }

    /// Gives it filters of its own again, for what its buffers still had.
    pub(super) fn take_back(&mut self, shape: &FilterShape) {
        self.slices = Arc::new(Slices::with_columns(shape, 1));
        self.released = None;
    }

    /// Makes the next column one of an incarnation that is not in the ring yet.
    pub(super) fn push(&mut self, kind: FilterKind, incarnation: Incarnation, bits: &[u64]) {
        let column = self.window.next_column();
        match kind {
            FilterKind::Bloom => self.slices.or_column(column, bits),
            FilterKind::Fuse => self.slices.write_column(column, bits),
        }
        self.came(incarnation);
    }

    /// The next column is that of an incarnation.
    pub(super) fn came(&mut self, incarnation: Incarnation) {
        let column = self.window.push();
        self.incarnations[column] = incarnation;
        self.keys += i64::from(incarnation.keys);
        self.unclean += if incarnation.is_clean { 0 } else { u64::from(incarnation.entries) };
    }

    /// Puts a wider copy in the place of filters of which every column is live.
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
    /// Asks the processor to prefetch what [`search_ram`](Self::search_ram) will read.
    #[inline]
    pub(super) fn prefetch(&self, filter: &IncarnationFilter, place: &KeyPlace) {
        let state = self.read();
        filter.prefetch(&state.level.slices, &place.positions);
        state.prefetch_active(|buffer| buffer.prefetch(place.hash));
    }

    /// What RAM knows of a key: buffers first, newest to oldest, then the filters of all incarnations.
    /// `None` if the filters have to be loaded first.
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

    /// The next older candidate, after the one before did not hold the key. `None` if incarnations were dropped or
    /// columns renumbered meanwhile: RAM must be asked again.
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
    /// The newest incarnation of these columns that is not newer than `newest_sequence`, and the rest. A
    /// column that was reused for a newer incarnation meanwhile is skipped.
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

    /// Takes out the oldest incarnation. Returns whether there was one.
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

    /// Is this incarnation still there?
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

    /// Entries in its incarnations, counting each version of a key, and those that a newer generation has taken over.
    pub(super) fn entries(&self) -> u64 {
        let newest_first = self.incarnations_newest_first();
        let held: u64 = newest_first.iter().map(|it| u64::from(it.entries)).sum();
        held + self.released.unwrap_or(0)
    }
}
