//! The encoding of the map in a checkpoint and of a map update in the log. docs/reference/format.md draws them.

use super::ShadowShape;
use crate::Result;
use crate::bytes::Reader;
use crate::generation::{SEQUENCE_MAX, sequence};

/// The version of the bytes of a [`ShadowMap`] and of a [`MapUpdate`].
pub const SHADOW_VERSION: u8 = 1;

/// Bytes of a [`MapUpdate`] in the log.
pub const MAP_UPDATE_BYTES: usize = 20;

/// Bytes of one logical block in the map.
const ENTRY_BYTES: usize = 16;

/// A whole version of a logical block: its place and its generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// The physical block that holds it.
    pub physical: u32,
    /// The generation on its pages; never 0, and unique in a structure.
    pub generation: u64,
    /// Its number of entries, counted by the structure.
    pub entries: u32,
}

impl Block {
    fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.generation.to_le_bytes());
        out.extend_from_slice(&self.physical.to_le_bytes());
        out.extend_from_slice(&self.entries.to_le_bytes());
    }
}

/// A logical block's move to another physical block: the log's record of a rewrite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapUpdate {
    /// The number of the logical block.
    pub logical: u32,
    /// Its new version.
    pub block: Block,
}

impl MapUpdate {
    /// Encodes the update for the log.
    #[must_use]
    pub fn encode(self) -> [u8; MAP_UPDATE_BYTES] {
        let mut out = Vec::with_capacity(MAP_UPDATE_BYTES);
        out.extend_from_slice(&self.logical.to_le_bytes());
        self.block.encode(&mut out);
        out.try_into().expect("a number of 32 bits and a block are 20 bytes")
    }

    /// Reads a map update from bytes that may be anything, and checks it against this shape.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt).
    pub fn decode(reader: &mut Reader<'_>, shape: ShadowShape) -> Result<Self> {
        let logical = reader.u32()?;
        if logical >= shape.logical {
            return Err(reader.refuse(format!("one of {} logical blocks", shape.logical), logical));
        }
        // One number remains for the map that it goes into, whose next number is higher.
        match decode_block(reader, shape, SEQUENCE_MAX - 1)? {
            Some(block) => Ok(Self { logical, block }),
            None => Err(reader.refuse("a block in place of the old one", "none")),
        }
    }
}

/// The map of a shadow, decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShadowMap {
    /// The sequence number of the next draft; all numbers of the map are lower.
    pub next: u64,
    /// The newest whole version of each logical block; `None` if none was ever written.
    pub blocks: Vec<Option<Block>>,
}

impl ShadowMap {
    /// Returns the map of a shadow that was just created.
    #[must_use]
    pub fn empty(shape: ShadowShape) -> Self {
        // Sequence 0 is never used, so the zeros of fresh flash are no block's generation.
        Self { next: 1, blocks: vec![None; shape.logical as usize] }
    }

    /// Encodes the map: 13 bytes, and 16 for each logical block.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(13 + self.blocks.len() * ENTRY_BYTES);
        out.push(SHADOW_VERSION);
        out.extend_from_slice(&self.next.to_le_bytes());
        let count =
            u32::try_from(self.blocks.len()).expect("logical blocks are numbered by 32 bits");
        out.extend_from_slice(&count.to_le_bytes());
        for block in &self.blocks {
            let none = Block { physical: 0, generation: 0, entries: 0 };
            block.unwrap_or(none).encode(&mut out);
        }
        out
    }

    /// Decodes a map of this shape from bytes that may be anything. Fails unless all numbers are in range, and no
    /// physical block occurs twice.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt).
    pub fn decode(reader: &mut Reader<'_>, shape: ShadowShape) -> Result<Self> {
        let version = reader.u8()?;
        if version != SHADOW_VERSION {
            return Err(reader.refuse(format!("a map of version {SHADOW_VERSION}"), version));
        }
        let next = reader.u64()?;
        if next == 0 || next > SEQUENCE_MAX {
            return Err(reader.refuse(format!("a number of 1 to {SEQUENCE_MAX}"), next));
        }
        let count = reader.count(ENTRY_BYTES)?;
        if count != shape.logical as usize {
            return Err(reader.refuse(format!("{} logical blocks", shape.logical), count));
        }
        let mut used = Used::none(shape);
        let mut blocks = Vec::with_capacity(count);
        for _ in 0..count {
            let block = decode_block(reader, shape, next - 1)?;
            if let Some(block) = block {
                used.take(block.physical, reader)?;
            }
            blocks.push(block);
        }
        Ok(Self { next, blocks })
    }
}

fn decode_block(
    reader: &mut Reader<'_>,
    shape: ShadowShape,
    sequence_max: u64,
) -> Result<Option<Block>> {
    let (generation, physical, entries) = (reader.u64()?, reader.u32()?, reader.u32()?);
    if generation == 0 && physical == 0 && entries == 0 {
        return Ok(None);
    }
    if !(1..=sequence_max).contains(&sequence(generation)) {
        let expected = format!("a generation numbered 1 to {sequence_max}");
        return Err(reader.refuse(expected, format!("{generation:#x}")));
    }
    if u64::from(physical) >= shape.physical() {
        return Err(reader.refuse(format!("one of {} physical blocks", shape.physical()), physical));
    }
    Ok(Some(Block { physical, generation, entries }))
}

/// The set of physical blocks that a map names.
#[derive(Debug)]
pub(super) struct Used(Vec<bool>);

impl Used {
    pub fn none(shape: ShadowShape) -> Self {
        Self(vec![false; shape.logical as usize + shape.spares as usize])
    }

    /// Returns the blocks of a map that was decoded for this shape.
    pub fn by(map: &ShadowMap, shape: ShadowShape) -> Self {
        let mut used = Self::none(shape);
        map.blocks.iter().flatten().for_each(|block| used.0[block.physical as usize] = true);
        used
    }

    /// Notes a block, which is in range; fails if it was named already.
    pub fn take(&mut self, physical: u32, reader: &Reader<'_>) -> Result<()> {
        if std::mem::replace(&mut self.0[physical as usize], true) {
            let expected = "each physical block for one logical block";
            return Err(reader.refuse(expected, format!("{physical} for two")));
        }
        Ok(())
    }

    pub fn give_back(&mut self, physical: u32) {
        self.0[physical as usize] = false;
    }

    /// The blocks that the map does not name, in ascending order.
    pub fn unused(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.0).filter(|(_, used)| !**used).map(|(physical, _)| physical)
    }
}
