//! What a seed stands for: a structure, a device, and what goes wrong.

use nandex_sim::workload::SplitMix64;

use crate::bufferhash::{Setup, Subjected};
use crate::ground::Ground;
use crate::subject::{Subject, pick};

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

/// Configurations that come in turn: policies by durabilities by kinds of filter.
pub const STRUCTURES: u64 = 48;

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
    /// The plan of a seed. 48 consecutive seeds have all policies, durabilities and kinds of filter; 8 times
    /// as many have all of them under all adversities.
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
        Self { seed, setup: Setup::numbered(seed), ground, adversity }
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

    #[test]
    fn eight_rounds_have_every_structure_under_every_adversity() {
        let pairs: BTreeSet<_> = (0..8 * STRUCTURES)
            .map(|seed| {
                let Plan { setup, adversity, .. } = Plan::of(seed);
                format!("{:?} {:?} {adversity:?}", setup.policy, setup.durability)
            })
            .collect();
        assert_eq!(pairs.len(), 6 * 4 * 5);
    }
}
