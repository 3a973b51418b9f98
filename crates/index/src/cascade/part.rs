//! A part: a share of the universe with a buffer and levels of its own.

use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use nandex_store::Lsn;

use super::buffer::Buffer;
use super::format::Covered;
use super::levels::{Goal, Levels};

/// A share of the universe.
#[derive(Debug)]
pub(super) struct Part {
    pub number: u32,
    /// Its first fingerprint; its buffers and runs count from there.
    pub first: u64,
    /// One merge of it at a time.
    turn: Mutex<()>,
    state: RwLock<State>,
}

/// What changes together.
#[derive(Debug)]
pub(super) struct State {
    pub active: Buffer,
    /// Fingerprints at which the active buffer counts as full; the first one's are fewer, so that parts,
    /// which fill alike, are not full all at once.
    pub active_max: u64,
    /// A buffer on its way to flash.
    pub frozen: Option<Frozen>,
    pub levels: Arc<Levels>,
    pub covered: Covered,
    /// Updates taken since the filter was opened.
    pub inserts: u64,
    pub deletes: u64,
}

/// A full buffer, and the end of its updates in the log.
#[derive(Clone, Debug)]
pub(super) struct Frozen {
    pub buffer: Arc<Buffer>,
    pub covered: Covered,
    pub goal: Goal,
}

impl Part {
    pub(super) fn new(number: u32, first: u64, state: State) -> Self {
        Self { number, first, turn: Mutex::default(), state: RwLock::new(state) }
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().expect("no holder of a part's lock panics")
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().expect("no holder of a part's lock panics")
    }

    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().expect("no holder of a part's turn panics")
    }

    pub(super) fn levels(&self) -> Arc<Levels> {
        Arc::clone(&self.read().levels)
    }
}

impl State {
    pub(super) fn buffers(&self) -> impl Iterator<Item = &Buffer> {
        std::iter::once(&self.active).chain(self.frozen.as_ref().map(|frozen| &*frozen.buffer))
    }

    /// What the buffers say of a fingerprint.
    pub(super) fn buffered(&self, fingerprint: u64) -> i64 {
        self.buffers().fold(0, |sum, buffer| sum.saturating_add(buffer.count(fingerprint)))
    }

    /// Fingerprints in buffers.
    pub(super) fn buffered_entries(&self) -> u64 {
        self.buffers().map(Buffer::entries).sum()
    }

    /// May lookups meet tombstones, so that they must see everything?
    pub(super) fn may_have_tombstones(&self) -> bool {
        self.buffers().any(|buffer| buffer.has_deletes)
            || self.levels.readable().any(|run| run.tombstones() > 0)
    }

    /// Where the log begins that the part needs, when the log began at `tail` at its opening.
    pub(super) fn tail(&self, tail: Lsn) -> Lsn {
        if self.covered.cut > 0 { self.covered.cut_at.max(tail) } else { tail }
    }
}
