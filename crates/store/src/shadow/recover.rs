//! From a checkpoint and the log back to a map.

use super::map::Used;
use super::{Block, MapUpdate, Shadow, ShadowMap, ShadowShape};
use crate::bytes::Reader;
use crate::generation::sequence;
use crate::mutants::{Barrier, is_on};
use crate::space::Extent;
use crate::{Result, StructureId};

/// A shadow that is being recovered: the map of the checkpoint, to which the map updates in the log are applied.
///
/// It hands out no blocks. While map updates are still to come, a block that the map calls free may be a current one,
/// and one that it calls current may hold something else. So a structure replays all map updates first, and reads the
/// log a second time for entries that need blocks.
#[derive(Debug)]
pub struct ShadowRecovery {
    pub(super) structure: StructureId,
    pub(super) extent: Extent,
    pub(super) shape: ShadowShape,
    pub(super) epoch: u64,
    pub(super) map: ShadowMap,
    pub(super) used: Used,
}

impl ShadowRecovery {
    /// Starts with no block ever written: for a structure that was just created, or that has map updates in the log and
    /// no map in a checkpoint.
    #[must_use]
    pub fn blank(structure: StructureId, extent: Extent, shape: ShadowShape, epoch: u64) -> Self {
        let (map, used) = (ShadowMap::empty(shape), Used::none(shape));
        Self { structure, extent, shape, epoch, map, used }
    }

    /// Starts with a map from a checkpoint. `epoch` is the volume's, which no earlier session had.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) when the bytes are no map of this shape.
    pub fn start(
        structure: StructureId,
        extent: Extent,
        shape: ShadowShape,
        epoch: u64,
        state: &mut Reader<'_>,
    ) -> Result<Self> {
        let map = ShadowMap::decode(state, shape)?;
        let used = Used::by(&map, shape);
        Ok(Self { structure, extent, shape, epoch, map, used })
    }

    /// Applies a map update from the log, in the log's order, and returns it. Changes nothing if the map has it
    /// already, or has a newer version.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) when the bytes are not a map update of this shape, or it puts a block
    /// where another one is.
    pub fn replay(&mut self, record: &mut Reader<'_>) -> Result<MapUpdate> {
        let update = MapUpdate::decode(record, self.shape)?;
        let number = sequence(update.block.generation);
        self.map.next = self.map.next.max(number + 1);
        let slot = &mut self.map.blocks[update.logical as usize];
        let known = slot.map_or(0, |block| sequence(block.generation));
        if known >= number && (is_on(Barrier::ShadowKeepsNewest) || known == number) {
            return Ok(update);
        }
        if let Some(old) = slot.take() {
            self.used.give_back(old.physical);
        }
        self.used.take(update.block.physical, record)?;
        *slot = Some(update.block);
        Ok(update)
    }

    /// The newest version of a logical block that is known so far.
    #[must_use]
    pub fn block(&self, logical: u32) -> Option<Block> {
        self.map.blocks.get(logical as usize).copied().flatten()
    }

    /// Returns the shadow, once all map updates are replayed: each physical block is then a logical block's newest
    /// version or free.
    ///
    /// # Panics
    /// If the extent is shorter than [`ShadowShape::pages`], or the shape is invalid.
    #[must_use]
    pub fn finish(self) -> Shadow {
        Shadow::assemble(self)
    }
}
