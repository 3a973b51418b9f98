//! A super table: the buffer that takes inserts, the ones being written, and the incarnations.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use nandex_device::prefetch;
use nandex_store::Lsn;
use nandex_store::buffer::{Buffer, Found};
use nandex_store::hash::KeyHash;
use nandex_store::ring::SegmentId;

use super::filter::{Columns, Filter, Positions, Slices, Window};
use super::format::ImageRef;
use crate::api::Value;

/// A super table.
#[derive(Debug)]
pub(super) struct SuperTable {
    state: Mutex<TableState>,
    /// The filters of its incarnations, bit-sliced. Read without a lock.
    pub(super) slices: Slices,
    /// Held by whoever changes which incarnations there are, or writes columns; taken before `state`.
    pub(super) turn: Mutex<()>,
}

/// What changes in a super table.
#[derive(Debug)]
pub(super) struct TableState {
    /// Takes inserts.
    pub(super) active: Buffer,
    /// The log's place before the first entry in it that is nowhere else.
    pub(super) since: Option<Lsn>,
    /// Counts the buffers this super table has had: names the active one.
    pub(super) number: u64,
    /// Puts into the active buffer: tells whether it changed.
    pub(super) puts: u64,
    /// How many of them its image holds.
    pub(super) saved_puts: u64,
    /// Those of them that were the user's and not put back by an eviction.
    pub(super) user_puts: u64,
    /// The user's inserts and removes since the table was opened.
    pub(super) inserts: u64,
    /// Is a background thread at work on the frozen buffers?
    pub(super) flushing: bool,
    /// The image that holds part of the active buffer.
    pub(super) image: Option<ImageRef>,
    /// Full buffers, oldest first, until they are incarnations.
    pub(super) frozen: VecDeque<Frozen>,
    /// Which columns of the filters are live, and in which order.
    pub(super) window: Window,
    /// The incarnation of each column.
    pub(super) incarnations: Vec<Incarnation>,
    /// How many incarnations it has lost.
    pub(super) dropped: u64,
    /// Have the filters of the incarnations found at open been loaded?
    pub(super) filters_loaded: bool,
}

/// A full buffer that is being written.
#[derive(Clone, Debug)]
pub(super) struct Frozen {
    pub(super) buffer: Arc<Buffer>,
    pub(super) since: Option<Lsn>,
    pub(super) image: Option<ImageRef>,
    pub(super) user_puts: u64,
    /// Taken when the buffer was frozen, where nothing may be evicted to make room later.
    pub(super) segment: Option<SegmentId>,
}

/// An incarnation on flash.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Incarnation {
    pub(super) id: SegmentId,
    pub(super) entries: u32,
}

/// What RAM tells of a key.
#[derive(Debug)]
pub(super) enum Known {
    /// Everything: its value, or that it was removed or never there.
    Answer(Option<Value>),
    /// Some incarnations may hold it.
    Candidates(Candidates),
    /// The filters have to be loaded first.
    Unloaded,
}

/// The incarnations that may hold a key, newest first.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    /// The newest of them.
    pub(super) next: SegmentId,
    rest: Columns,
    newest_sequence: u64,
    /// Incarnations that the super table had lost when RAM was asked.
    dropped: u64,
    /// The newest incarnation's sequence number at that time.
    pub(super) newest_when_asked: u64,
}

/// Where a lookup goes on after a candidate that does not hold the key.
#[derive(Debug)]
pub(super) enum Next {
    /// To an older candidate.
    Candidate(Candidates),
    /// Nowhere: the key is not there.
    Absent,
    /// Back to RAM: a candidate is gone, and its eviction may have put the key back into a buffer.
    AskAgain,
}

impl SuperTable {
    pub(super) fn new(active: Buffer, window: Window, filter: &Filter) -> Self {
        let slices = Slices::new(filter.shape());
        let incarnations = vec![Incarnation::default(); slices.columns()];
        let state = TableState {
            active,
            since: None,
            number: 0,
            puts: 0,
            saved_puts: 0,
            user_puts: 0,
            inserts: 0,
            flushing: false,
            image: None,
            frozen: VecDeque::new(),
            window,
            incarnations,
            dropped: 0,
            filters_loaded: true,
        };
        Self { state: Mutex::new(state), slices, turn: Mutex::default() }
    }

    #[inline]
    pub(super) fn lock(&self) -> MutexGuard<'_, TableState> {
        self.state.lock().expect("no holder of a super table's lock panics")
    }

    pub(super) fn take_turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().expect("no holder of a super table's turn panics")
    }

    /// Asks the processor to bring near what [`ask`](Self::ask) will look at.
    #[inline]
    pub(super) fn prefetch(&self, filter: &Filter, positions: &Positions, hash: KeyHash) {
        filter.for_each_run(&self.slices, positions, |run| {
            // A cache line holds 8 words; a run begins anywhere in one, so its last word counts too.
            run.iter().step_by(8).chain(run.last()).for_each(prefetch);
        });
        self.lock().active.prefetch(hash);
    }

    /// What RAM tells of a key: buffers first, newest to oldest, then the filters of all incarnations.
    #[inline]
    pub(super) fn ask(
        &self,
        filter: &Filter,
        positions: &Positions,
        hash: KeyHash,
        key: &[u8],
    ) -> Known {
        let state = self.lock();
        if let Some(found) = state.buffered(hash, key) {
            return Known::Answer(match found {
                Found::Live(value) => Some(Value::new(value)),
                Found::Tombstone => None,
            });
        }
        if !state.filters_loaded {
            return Known::Unloaded;
        }
        let live = state.window.live_mask();
        let mask = filter.candidates_at(&self.slices, positions, &live);
        match state.candidates(mask, u64::MAX) {
            None => Known::Answer(None),
            Some(candidates) => Known::Candidates(candidates),
        }
    }

    /// The next older candidate, after the one before did not hold the key.
    pub(super) fn next_candidate(&self, candidates: &Candidates) -> Next {
        if candidates.rest == [0; 4] {
            return Next::Absent;
        }
        let state = self.lock();
        match state.candidates(candidates.rest, candidates.newest_sequence) {
            Some(next) => {
                let Candidates { dropped, newest_when_asked, .. } = *candidates;
                Next::Candidate(Candidates { dropped, newest_when_asked, ..next })
            }
            None if state.dropped == candidates.dropped => Next::Absent,
            None => Next::AskAgain,
        }
    }
}

impl TableState {
    /// What the buffers know of a key.
    #[inline]
    pub(super) fn buffered(&self, hash: KeyHash, key: &[u8]) -> Option<Found<'_>> {
        let frozen = || self.frozen.iter().rev().find_map(|frozen| frozen.buffer.get(hash, key));
        self.active.get(hash, key).or_else(frozen)
    }

    /// Is a key in a buffer that is being written?
    pub(super) fn in_frozen(&self, hash: KeyHash, key: &[u8]) -> bool {
        self.frozen.iter().any(|frozen| frozen.buffer.get(hash, key).is_some())
    }

    /// The newest incarnation of these columns that is not newer than `newest_sequence`, and the rest.
    /// A column that was given to a newer incarnation meanwhile is passed over.
    #[inline]
    fn candidates(&self, mask: Columns, newest_sequence: u64) -> Option<Candidates> {
        if mask == [0; 4] {
            return None;
        }
        let mut columns = self.window.newest_first(mask);
        let sequence = |column: &usize| self.incarnations[*column].id.sequence();
        let column = columns.find(|column| sequence(column) <= newest_sequence)?;
        let next = self.incarnations[column].id;
        let mut rest = mask;
        rest[column / 64] &= !(1 << (column % 64));
        let newest_sequence = newest_sequence.min(next.sequence());
        let (dropped, newest_when_asked) = (self.dropped, self.newest_sequence());
        Some(Candidates { next, rest, newest_sequence, dropped, newest_when_asked })
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

    /// The oldest place of the log that this super table still needs.
    pub(super) fn tail(&self) -> Option<Lsn> {
        let frozen = self.frozen.iter().filter_map(|frozen| frozen.since);
        frozen.chain(self.since).min()
    }

    /// The image that recovery has to load before it replays the log.
    pub(super) fn needed_image(&self) -> Option<ImageRef> {
        self.frozen.iter().find_map(|frozen| frozen.image).or(self.image)
    }

    /// Notes that a place was written anew after its buffer was frozen: who referred to the older image
    /// there now has the newer one of the same buffer, and the log's entries after the older one.
    pub(super) fn replace_image(&mut self, image: ImageRef) {
        let frozen = self.frozen.iter_mut().map(|frozen| &mut frozen.image);
        let stale = frozen.chain([&mut self.image]).flatten();
        stale.filter(|old| old.slot == image.slot).for_each(|old| *old = image);
    }

    /// Entries held, counting each version of a key.
    pub(super) fn entries(&self) -> u64 {
        let buffered = self.frozen.iter().map(|frozen| frozen.buffer.len() as u64).sum::<u64>();
        let on_flash = self.newest_first().iter().map(|(_, i)| u64::from(i.entries)).sum::<u64>();
        buffered + self.active.len() as u64 + on_flash
    }

    /// Puts a fresh buffer in the place of the active one.
    pub(super) fn freeze(&mut self, fresh: Buffer, segment: Option<SegmentId>) {
        let buffer = Arc::new(std::mem::replace(&mut self.active, fresh));
        self.frozen.push_back(Frozen {
            buffer,
            since: self.since.take(),
            image: self.image.take(),
            user_puts: std::mem::take(&mut self.user_puts),
            segment,
        });
        self.number += 1;
        self.puts = 0;
        self.saved_puts = 0;
    }
}
