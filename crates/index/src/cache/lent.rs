//! Sets in lent RAM: how many of a chunk's sets exist, and what happens when some must be dropped.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU64, fence};

use super::set::Line;
use super::{CHUNK_SETS, Chunk, EntryCache, Lines};
use crate::ram::Borrower;

/// The number of times that the sets of a chunk are halved until none is left.
const HALVINGS: u32 = CHUNK_SETS.ilog2() + 1;

/// The part of a cache that may be used.
#[derive(Debug)]
pub(super) struct Lent(AtomicU64);

/// The number of times that the sets of each chunk are halved: those before `chunks` once less than the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    halvings: u32,
    chunks: u32,
}

impl Lent {
    /// Returns the plan that uses nothing.
    fn nothing() -> Self {
        Self(AtomicU64::new(Plan { halvings: HALVINGS, chunks: 0 }.bits()))
    }

    pub fn plan(&self) -> Plan {
        let bits = self.0.load(SeqCst);
        Plan { halvings: (bits >> 32) as u32, chunks: bits as u32 }
    }
}

impl Plan {
    /// Returns the plan with the most of `sets` sets, at most `sets_max`.
    pub fn of(sets: usize, sets_max: usize) -> Self {
        let even = (0..HALVINGS).map(|halvings| Self { halvings, chunks: 0 });
        let fits = |plan: &Self| plan.sets(sets) <= sets_max;
        let even = even.clone().find(fits).unwrap_or(Self { halvings: HALVINGS, chunks: 0 });
        if even.halvings == 0 {
            return even;
        }
        let gained = (CHUNK_SETS >> (even.halvings - 1)) - (CHUNK_SETS >> even.halvings);
        let chunks = ((sets_max - even.sets(sets)) / gained).min(sets / CHUNK_SETS);
        Self { chunks: chunks as u32, ..even }
    }

    fn bits(self) -> u64 {
        u64::from(self.halvings) << 32 | u64::from(self.chunks)
    }

    fn halvings_of(self, chunk: usize) -> u32 {
        self.halvings - u32::from(chunk < self.chunks as usize)
    }

    /// Returns the number of sets of a cache that has `sets` without halving.
    pub fn sets(self, sets: usize) -> usize {
        let of_chunk =
            |at: usize| halved(CHUNK_SETS.min(sets - at * CHUNK_SETS), self.halvings_of(at));
        (0..sets.div_ceil(CHUNK_SETS)).map(of_chunk).sum()
    }
}

/// Returns the number of sets after halving `sets` the given number of times.
fn halved(sets: usize, halvings: u32) -> usize {
    if halvings == HALVINGS { 0 } else { sets.div_ceil(1 << halvings) }
}

/// The sets of a chunk, halved the given number of times.
#[derive(Debug)]
pub(super) struct LentLines {
    pub lines: Box<[Line]>,
    halvings: u32,
}

impl LentLines {
    /// Returns the set for the keys of one of the sets that the chunk would have without halving.
    #[inline]
    pub fn set_of(&self, set: usize) -> Option<usize> {
        (self.halvings < HALVINGS).then_some(set >> self.halvings)
    }
}

impl EntryCache {
    /// Creates a cache of at most `bytes_max` bytes of lent RAM; it uses none before [`keep_at_most`] says how much.
    ///
    /// [`keep_at_most`]: Borrower::keep_at_most
    pub(crate) fn lent(bytes_max: u64, key_bytes: usize, value_bytes: usize) -> Option<Self> {
        let cache = Self::new(bytes_max, key_bytes, value_bytes)?;
        Some(Self { lent: Some(Lent::nothing()), ..cache })
    }

    /// Creates the lines of a chunk by a plan, empty.
    pub(super) fn lent_lines(&self, chunk: usize, plan: Plan) -> LentLines {
        let halvings = plan.halvings_of(chunk);
        LentLines { lines: self.new_lines(halved(self.sets_of(chunk), halvings)), halvings }
    }

    /// Returns the bytes of the existing chunks.
    pub(super) fn lent_bytes(&self) -> u64 {
        let lines = |chunk: &Chunk| match &chunk.lines {
            Lines::Own(lines) => lines.len(),
            Lines::Lent(lent) => {
                lent.read().expect("no holder of a chunk's lock panics").lines.len()
            }
        };
        let lines: usize = self.chunks.iter().filter_map(|chunk| chunk.get()).map(lines).sum();
        (lines * size_of::<Line>()) as u64
    }

    /// Releases the RAM of a chunk that exceeds the plan. A chunk that was created while the plan was changed either
    /// does this itself, or the thread that changed the plan has seen the chunk.
    pub(super) fn fit(&self, number: usize) {
        // A thread that changes the plan checks for the chunk afterwards, and one that creates the chunk checks for the
        // plan.
        fence(SeqCst);
        let (Some(lent), Some(chunk)) = (&self.lent, self.chunks[number].get()) else { return };
        let Lines::Lent(lines) = &chunk.lines else { return };
        let halvings = lent.plan().halvings_of(number);
        let mut lines = lines.write().expect("no holder of a chunk's lock panics");
        while lines.halvings < halvings {
            *lines = self.halve(&lines);
        }
    }

    /// Merges each two sets into one.
    fn halve(&self, old: &LentLines) -> LentLines {
        let halvings = old.halvings + 1;
        let sets = old.lines.len() / self.layout.lines();
        if halvings == HALVINGS {
            return LentLines { lines: Box::default(), halvings };
        }
        let lines = self.new_lines(sets.div_ceil(2));
        for at in 0..sets.div_ceil(2) {
            let from = [2 * at, 2 * at + 1].into_iter().filter(|from| *from < sets);
            let from = from.map(|from| self.set_in(&old.lines, from));
            self.set_in(&lines, at).lock().take_from(from);
        }
        LentLines { lines, halvings }
    }
}

impl Borrower for EntryCache {
    fn keep_at_most(&self, bytes: u64) {
        let Some(lent) = &self.lent else { return };
        let sets_max = usize::try_from(bytes).unwrap_or(usize::MAX) / self.layout.bytes();
        lent.0.store(Plan::of(self.sets, sets_max).bits(), SeqCst);
        (0..self.chunks.len()).for_each(|chunk| self.fit(chunk));
    }
}
