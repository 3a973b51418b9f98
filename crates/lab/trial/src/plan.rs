//! The plan of a seed: a structure, a device, and the faults.

use nandex::Durability;
use nandex_baseline::registry::{self, Family};
use nandex_sim::workload::SplitMix64;

use crate::contract::pick;
use crate::device_kind::DeviceKind;
use crate::{filter, neighbors, table};

/// The faults of a trial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Adversity {
    /// The power is cut in the middle of every single operation, and again during recoveries.
    EveryCut,
    /// Processes are killed and the power is cut now and then.
    Cuts,
    /// Operations fail with errors, once or from then on.
    Errors,
    /// Reads return wrong, foreign or old pages, with success.
    WrongReads,
    /// Writes and syncs are lost, misdirected or spoiled, with success.
    WrongWrites,
}

/// The faults of 8 neighbours of one structure: each has at least one.
const ADVERSITIES: [Adversity; 8] = [
    Adversity::EveryCut,
    Adversity::Cuts,
    Adversity::Errors,
    Adversity::WrongReads,
    Adversity::EveryCut,
    Adversity::WrongWrites,
    Adversity::Errors,
    Adversity::Cuts,
];

/// The number of configurations of a structure that come in turn: policies by durabilities by kinds of filter
/// or of slices, or fan-outs by durabilities by counts and collisions of keys.
pub const STRUCTURES: u64 = 48;

/// The number of consecutive seeds of one structure: all its configurations under each adversity.
pub const BLOCK: u64 = 8 * STRUCTURES;

/// The structure of a trial. Each has its block of seeds in turn: those with configurations of their own
/// here, then each further row of the registry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Structure {
    /// Seeds 0 to 383, and again after each round.
    BufferHash,
    /// Seeds 384 to 767, and so on.
    SliceHash,
    /// Seeds 768 to 1,151, and so on.
    Cascade,
    /// The table, filter or index of neighbours of a kind.
    Further(&'static str),
}

impl Structure {
    /// Returns all structures, in turn.
    pub fn all() -> impl Iterator<Item = Self> {
        let tables = table::further().map(|(row, _)| Self::Further(row.kind));
        let filters = filter::further().map(|(row, _)| Self::Further(row.kind));
        let neighbors = neighbors::further().map(|(row, _)| Self::Further(row.kind));
        let own = [Self::BufferHash, Self::SliceHash, Self::Cascade].into_iter();
        own.chain(tables).chain(filters).chain(neighbors)
    }

    /// Returns the structure that a seed tries.
    ///
    /// # Panics
    /// Never panics: there are structures.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let turn = seed / BLOCK % Self::all().count() as u64;
        Self::all().nth(turn as usize).expect("as many as were counted")
    }

    fn setup(self, seed: u64) -> StructureSetup {
        match self {
            Self::BufferHash => StructureSetup::Table(table::TableSetup::bufferhash(seed)),
            Self::SliceHash => StructureSetup::Table(table::TableSetup::slicehash(seed)),
            Self::Cascade => StructureSetup::Filter(filter::FilterSetup::cascade(seed)),
            Self::Further(kind) => match registry::find(kind).map(|row| &row.family) {
                Some(Family::Table(row)) => {
                    StructureSetup::Table(table::TableSetup::registered(row, seed))
                }
                Some(Family::Filter(row)) => {
                    StructureSetup::Filter(filter::FilterSetup::registered(row, seed))
                }
                Some(Family::Neighbors(row)) => {
                    StructureSetup::Neighbors(neighbors::NeighborsSetup::registered(row, seed))
                }
                _ => unreachable!("it was taken from the registry"),
            },
        }
    }
}

/// A structure's configuration.
#[derive(Clone, Copy, Debug)]
pub enum StructureSetup {
    /// The configuration of a table.
    Table(table::TableSetup),
    /// The configuration of a filter.
    Filter(filter::FilterSetup),
    /// The configuration of an index of neighbours.
    Neighbors(neighbors::NeighborsSetup),
}

impl StructureSetup {
    /// Returns the structure and its policy, for lists.
    #[must_use]
    pub fn policy(&self) -> String {
        match self {
            Self::Table(setup) => setup.policy(),
            Self::Filter(setup) => setup.policy(),
            Self::Neighbors(setup) => setup.policy(),
        }
    }

    /// Returns the durability of updates.
    #[must_use]
    pub const fn durability(&self) -> Durability {
        match self {
            Self::Table(setup) => setup.durability,
            Self::Filter(setup) => setup.durability,
            Self::Neighbors(setup) => setup.durability,
        }
    }
}

/// A trial before it runs.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The seed it comes from.
    pub seed: u64,
    /// The structure's configuration.
    pub setup: StructureSetup,
    /// The device.
    pub device: DeviceKind,
    /// The faults.
    pub adversity: Adversity,
}

impl Plan {
    /// Returns the plan of a seed. A block of 384 seeds is of one structure. Among these, 48 in a row have
    /// all policies, durabilities and kinds of filter or of slices, or fan-outs and the like, and the block
    /// has all of them under all adversities.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut rng = SplitMix64::stream(seed, 0);
        let turn = seed + seed / STRUCTURES;
        let adversity = ADVERSITIES[(turn % 8) as usize];
        let device = match adversity {
            // Each seed makes thousands of devices.
            Adversity::EveryCut => DeviceKind::Instant,
            _ => pick(&mut rng, &[DeviceKind::Instant, DeviceKind::Ssd]),
        };
        let setup = Structure::of(seed).setup(seed);
        Self { seed, setup, device, adversity }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn pairs(seeds: std::ops::Range<u64>) -> BTreeSet<String> {
        let pair = |seed| {
            let Plan { setup, adversity, .. } = Plan::of(seed);
            format!("{} {:?} {adversity:?}", setup.policy(), setup.durability())
        };
        seeds.map(pair).collect()
    }

    #[test]
    fn each_block_has_every_sort_of_its_structure_under_every_adversity() {
        assert_eq!(pairs(0..BLOCK).len(), 6 * 4 * 5);
        assert_eq!(pairs(BLOCK..2 * BLOCK).len(), 2 * 4 * 5);
        assert_eq!(pairs(2 * BLOCK..3 * BLOCK).len(), 6 * 4 * 5);
        let further: Vec<_> = Structure::all().skip(3).collect();
        for (at, structure) in (3..).zip(further) {
            assert_eq!(Structure::of(at * BLOCK), structure);
            assert!(pairs(at * BLOCK..(at + 1) * BLOCK).len() >= 4 * 5, "{structure:?}");
        }
    }
}
