//! The content of a device before the first request, as arithmetic instead of a table.
//!
//! A table would cost eight bytes per page before anything has happened; a device of a TiB must open at once.

use super::Layout;
use super::permutation::Permutation;
use crate::spec::Mapping;

/// The content of a device before the first request.
#[derive(Clone, Debug)]
pub(super) enum Initial {
    /// Nothing.
    Empty,
    /// Every host page, as if written once from the first to the last.
    Full,
    /// Every host page, as after endless random writes.
    Steady(Steady),
}

/// A steady state: pages are shuffled, and a block has as many valid ones as blocks of its age have in the
/// long run.
#[derive(Clone, Debug)]
pub(super) struct Steady {
    /// Shuffles the pages of a domain (or, written in order, of the device).
    shuffle: Permutation,
    mapping: Mapping,
    /// Valid pages in the blocks before each block of a plane; the last is the total.
    before: Vec<u32>,
}

impl Steady {
    /// Creates the state from the valid pages of each plane's blocks; their sum is a plane's part of the
    /// host's pages.
    pub fn new(layout: &Layout, mapping: Mapping, valid: &[u32], seed: u64) -> Self {
        let mut before = vec![0];
        for count in valid {
            before.push(before[before.len() - 1] + count);
        }
        debug_assert_eq!(before[valid.len()], Initial::slots(layout));
        let limit = match mapping {
            Mapping::WriteOrder => layout.units,
            Mapping::Lba => layout.units / u64::from(layout.domains()),
        };
        Self { shuffle: Permutation::new(limit, seed), mapping, before }
    }

    /// Returns the valid pages of each block.
    pub fn valid(&self) -> Vec<u32> {
        self.before.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    /// Returns the slot in its plane of the page with this rank.
    fn slot(&self, layout: &Layout, rank: u32) -> u32 {
        let block = self.before.partition_point(|&before| before <= rank) - 1;
        block as u32 * layout.block_units + rank - self.before[block]
    }

    /// Returns the rank of the page at this slot of a plane.
    fn rank(&self, layout: &Layout, slot: u32) -> Option<u32> {
        let block = (slot / layout.block_units) as usize;
        let rank = self.before.get(block)? + slot % layout.block_units;
        (rank < *self.before.get(block + 1)?).then_some(rank)
    }
}

impl Initial {
    /// Returns the physical place of a host page.
    pub fn place(&self, layout: &Layout, unit: u32) -> Option<u32> {
        let unit = match self {
            Self::Empty => return None,
            Self::Full => unit,
            Self::Steady(steady) => match steady.mapping {
                Mapping::WriteOrder => steady.shuffle.forth(u64::from(unit)) as u32,
                Mapping::Lba => {
                    let (domain, index) = layout.index_in_domain(unit);
                    layout.unit_of(domain, steady.shuffle.forth(u64::from(index)) as u32)
                }
            },
        };
        let (plane, rank) = layout.rank_in_plane(unit);
        let slot = match self {
            Self::Steady(steady) => steady.slot(layout, rank),
            _ => rank,
        };
        Some(plane * layout.plane_units() + slot)
    }

    /// Returns the host page at a physical place.
    pub fn owner(&self, layout: &Layout, place: u32) -> Option<u32> {
        let (plane, slot) = (place / layout.plane_units(), place % layout.plane_units());
        let rank = match self {
            Self::Empty => return None,
            Self::Full => (slot < Self::slots(layout)).then_some(slot)?,
            Self::Steady(steady) => steady.rank(layout, slot)?,
        };
        let unit = layout.unit_at_rank(plane, rank);
        let Self::Steady(steady) = self else { return Some(unit) };
        Some(match steady.mapping {
            Mapping::WriteOrder => steady.shuffle.back(u64::from(unit)) as u32,
            Mapping::Lba => {
                let (domain, index) = layout.index_in_domain(unit);
                layout.unit_of(domain, steady.shuffle.back(u64::from(index)) as u32)
            }
        })
    }

    /// Returns the host pages of each plane.
    pub fn slots(layout: &Layout) -> u32 {
        (layout.units / u64::from(layout.planes())) as u32
    }
}
