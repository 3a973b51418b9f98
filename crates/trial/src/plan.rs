//! What a seed stands for: a structure, a device, and what goes wrong.

use nandex_sim::workload::SplitMix64;

use crate::ground::Ground;
use crate::subject::{Subject, pick};
use crate::table::{Setup, Subjected};

/// What goes wrong in a trial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Adversity {
    /// The power is cut in the midst of every single operation, and again during recoveries.
    EveryCut,
    /// Processes are killed and the power is cut now and then.
    Cuts,
    /// Operations fail and say so, once or from then on.
    Errors,
    /// Reads bring wrong, foreign or old pages, with success.
    LyingReads,
    /// Writes and syncs are lost, misdirected or spoiled, with success.
    LyingWrites,
}

/// Of 8 neighbours of one structure, one or more has each.
const ADVERSITIES: [Adversity; 8] = [
    Adversity::EveryCut,
    Adversity::Cuts,
    Adversity::Errors,
    Adversity::LyingReads,
    Adversity::EveryCut,
    Adversity::LyingWrites,
    Adversity::Errors,
    Adversity::Cuts,
];

/// Configurations of a structure that come in turn: policies by durabilities by kinds of filter or of slices.
pub const STRUCTURES: u64 = 48;

/// Seeds in a row that have one structure: all its configurations under each adversity.
pub const BLOCK: u64 = 8 * STRUCTURES;

/// What is tried. Structures take turns block by block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Structure {
    /// Seeds 0 to 383, 768 to 1,151, and so on.
    BufferHash,
    /// Seeds 384 to 767, 1,152 to 1,535, and so on.
    SliceHash,
}

impl Structure {
    /// All of them, in turn.
    pub const ALL: [Self; 2] = [Self::BufferHash, Self::SliceHash];

    /// What a seed tries.
    #[must_use]
    pub const fn of(seed: u64) -> Self {
        Self::ALL[(seed / BLOCK % Self::ALL.len() as u64) as usize]
    }

    fn setup(self, seed: u64) -> Setup {
        match self {
            Self::BufferHash => Setup::bufferhash(seed),
            Self::SliceHash => Setup::slicehash(seed),
        }
    }
}

/// A trial before it runs.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The seed it comes from.
    pub seed: u64,
    /// The structure's configuration.
    pub setup: Setup,
    /// The device.
    pub ground: Ground,
    /// What goes wrong.
    pub adversity: Adversity,
}

impl Plan {
    /// The plan of a seed. Of a block of 384 seeds, which are of one structure, 48 in a row have all policies,
    /// durabilities and kinds of filter or of slices, and the block has all of them under all adversities.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut dice = SplitMix64::stream(seed, 0);
        let turn = seed + seed / STRUCTURES;
        let adversity = ADVERSITIES[(turn % 8) as usize];
        let ground = match adversity {
            // Thousands of devices are made.
            Adversity::EveryCut => Ground::Instant,
            _ => pick(&mut dice, &[Ground::Instant, Ground::Ssd]),
        };
        let setup = Structure::of(seed).setup(seed).inline();
        Self { seed, setup, ground, adversity }
    }

    /// The structure, not yet made.
    #[must_use]
    pub fn subject(&self) -> Box<dyn Subject> {
        Box::new(Subjected::new(self.setup))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn pairs(seeds: std::ops::Range<u64>) -> BTreeSet<String> {
        let pair = |seed| {
            let Plan { setup, adversity, .. } = Plan::of(seed);
            format!("{} {:?} {adversity:?}", setup.policy(), setup.durability)
        };
        seeds.map(pair).collect()
    }

    #[test]
    fn each_block_has_every_sort_of_its_structure_under_every_adversity() {
        assert_eq!(pairs(0..BLOCK).len(), 6 * 4 * 5);
        assert_eq!(pairs(BLOCK..2 * BLOCK).len(), 2 * 4 * 5);
        assert_eq!(pairs(0..4 * BLOCK).len(), 8 * 4 * 5);
    }
}
