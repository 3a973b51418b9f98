//! One entry of the map, which lookups read without a lock.
//!
//! A block takes two words. Its generation is unique. So a reader that finds the same generation before and after it
//! has read the other word has read both words of one block.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::Block;

/// Replaces a generation while the other word is being changed.
const CHANGING: u64 = u64::MAX;

/// The error for a slot that was read while it was changed.
pub(super) struct Changing;

/// A logical block's newest version; `None` while its generation is 0.
#[derive(Debug, Default)]
pub(super) struct Slot {
    generation: AtomicU64,
    /// The physical block, and the entries in the high half.
    place: AtomicU64,
}

impl Slot {
    /// Creates a slot with this content.
    pub fn new(block: Option<Block>) -> Self {
        let slot = Self::default();
        block.into_iter().for_each(|block| slot.set(block));
        slot
    }

    /// Returns its content. Costs three loads.
    #[inline]
    pub fn get(&self) -> Result<Option<Block>, Changing> {
        let generation = self.generation.load(Acquire);
        // Acquire: a reader that sees a new place also sees the mark that was set before it, and stops.
        let place = self.place.load(Acquire);
        if generation == CHANGING || self.generation.load(Relaxed) != generation {
            return Err(Changing);
        }
        let (physical, entries) = (place as u32, (place >> 32) as u32);
        Ok((generation != 0).then_some(Block { physical, generation, entries }))
    }

    /// Stores a block; no two threads may do so at the same time.
    pub fn set(&self, block: Block) {
        let place = u64::from(block.physical) | u64::from(block.entries) << 32;
        self.generation.store(CHANGING, Relaxed);
        self.place.store(place, Release);
        self.generation.store(block.generation, Release);
    }
}
