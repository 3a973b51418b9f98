//! Every configuration agrees with the oracle, and so with every other.

use nandex::cascade::Cascade;
use nandex::device::EngineChoice;
use nandex::{Counter, Durability, Filter, Result};
use nandex_sim::preset::Preset;
use proptest::prelude::*;
use proptest::test_runner::Config as ProptestConfig;

use super::runner::{Act, Law, Maker, Runner, acts, acts_of};
use super::support::Setup;
use crate::ground::Ground;

/// Filters of one configuration, one after another on the same ground.
pub struct Filters {
    setup: Setup,
    ground: Ground,
    created: bool,
}

impl Filters {
    pub fn new(setup: Setup, ground: Ground) -> Self {
        Self { setup, ground, created: false }
    }
}

impl Maker for Filters {
    type Made = Cascade;

    fn open(&mut self) -> Cascade {
        let device = self.ground.device();
        let created = std::mem::replace(&mut self.created, true);
        if created { self.setup.open(device) } else { self.setup.create(device) }.unwrap()
    }

    fn close(&mut self, filter: Cascade) -> Result<()> {
        filter.close()
    }

    fn filter<'f>(&self, filter: &'f Cascade) -> &'f dyn Filter {
        filter
    }

    fn counter<'f>(&self, filter: &'f Cascade) -> Option<&'f dyn Counter> {
        Some(filter)
    }

    fn compact(&self, filter: &Cascade) -> Result<()> {
        filter.compact()
    }

    fn entries(&self, filter: &Cascade) -> Option<Vec<(u64, i64)>> {
        let entries = filter.iter().map(|entry| entry.unwrap());
        Some(entries.map(|entry| (entry.fingerprint, entry.count)).collect())
    }

    fn law(&self) -> Law {
        Law { universe: Some(self.setup.universe()), shows_figures: true }
    }
}

fn run(setup: Setup, ground: Ground, acts: &[Act]) -> Vec<bool> {
    println!("{setup:?}");
    let mut runner = Runner::new(Filters::new(setup, ground));
    runner.run(acts);
    runner.transcript
}

/// Waiting for each acknowledgement makes a run long.
fn len(setup: Setup, len: usize) -> usize {
    if setup.durability == Durability::Always { len.min(6) } else { len }
}

#[test]
fn every_configuration_in_memory_agrees_with_the_oracle() {
    for (seed, setup) in (0..).zip((0..120).map(Setup::numbered)) {
        run(setup, Ground::memory(), &acts_of(seed, len(setup, 10)));
    }
}

#[test]
fn configurations_of_one_universe_give_the_same_answers() {
    let acts = acts_of(77, 20);
    let with = |number| {
        let setup = Setup::numbered(number);
        let config = Setup::exact(setup.durability).config;
        let nandex::cascade::Config { keys, rate, .. } = config;
        let config = nandex::cascade::Config { keys, rate, ..setup.config };
        Setup { config, ..setup }
    };
    let run = |number| run(with(number), Ground::memory(), &acts);
    let first = run(0);
    assert!((1..16).all(|number| run(number * 7) == first));
}

#[test]
fn filters_in_files_agree_with_the_oracle_on_every_engine() {
    let engines = [EngineChoice::Uring, EngineChoice::Threads, EngineChoice::Buffered];
    for number in 0..12 {
        let setup = Setup::numbered(number * 7);
        let Some(ground) = Ground::file(engines[number % 3]) else { continue };
        run(setup, ground, &acts_of(100 + number as u64, len(setup, 15)));
    }
}

#[test]
fn filters_on_every_simulated_drive_agree_with_the_oracle() {
    let mut drives = 0;
    for (number, name) in Preset::names().enumerate() {
        let Some(ground) = Ground::preset(name) else { continue };
        drives += 1;
        let setup = Setup::numbered(number * 11);
        println!("on {name}");
        run(setup, ground, &acts_of(200 + number as u64, len(setup, 15)));
    }
    assert!(drives >= 14, "{drives} drives");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 12, max_shrink_iters: 100, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn any_acts_on_any_configuration_agree_with_the_oracle(
        number in 0..1200_usize, acts in acts(20),
    ) {
        Runner::new(Filters::new(Setup::numbered(number), Ground::memory())).run(&acts);
    }
}
