//! Every configuration agrees with the oracle, and so with every other.

use nandex::device::EngineChoice;
use nandex::testing::Retention;
use nandex::{AnyTable, Durability, Result, Value};
use nandex_sim::preset::Preset;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config as ProptestConfig, RngAlgorithm, TestRng, TestRunner};

use super::runner::{Act, Law, Maker, Runner, acts};
use super::support::{Ground, Setup};

/// Tables of one configuration, one after another on the same ground.
pub struct Tables {
    setup: Setup,
    ground: Ground,
    created: bool,
}

impl Tables {
    pub fn new(setup: Setup, ground: Ground) -> Self {
        Self { setup, ground, created: false }
    }
}

impl Maker for Tables {
    type Made = AnyTable;

    fn open(&mut self) -> AnyTable {
        let device = self.ground.device();
        let created = std::mem::replace(&mut self.created, true);
        if created { self.setup.open(device) } else { self.setup.create(device) }.unwrap()
    }

    fn close(&mut self, table: AnyTable) -> Result<()> {
        table.close()
    }

    fn pairs(&self, table: &AnyTable) -> Vec<(Vec<u8>, Value)> {
        table.iter().map(|pair| pair.unwrap()).collect()
    }

    fn key(&self, number: u64) -> Vec<u8> {
        self.setup.key(number)
    }

    fn value(&self, number: u64) -> Vec<u8> {
        self.setup.value(number)
    }

    fn law(&self) -> Law {
        match self.setup.made().retention {
            Retention::All => Law::Exact,
            Retention::Refuses => Law::Refusing,
            Retention::Newest(count) => Law::Recent(count),
            // Of 3,000 keys many more are live than the ring can keep: any may have to go.
            Retention::AllUnlessForced(_) => Law::Recent(0),
            Retention::NewestUsed(count) => Law::RecentlyUsed(count),
        }
    }
}

/// Proptest's choice of acts for a seed, without its shrinking.
pub fn acts_of(seed: u64, len: usize) -> Vec<Act> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    acts(len).new_tree(&mut runner).unwrap().current()
}

fn run(setup: Setup, ground: Ground, acts: &[Act]) -> Vec<bool> {
    println!("{setup:?}");
    let mut runner = Runner::new(Tables::new(setup, ground));
    runner.run(acts);
    runner.transcript
}

#[test]
fn every_configuration_in_memory_agrees_with_the_oracle() {
    for (number, setup) in (0..).zip(Setup::all()) {
        let len = if setup.durability == Durability::Always { 8 } else { 35 };
        run(setup, Ground::memory(), &acts_of(number, len));
    }
}

#[test]
fn configurations_that_evict_nothing_give_the_same_answers() {
    let acts = acts_of(77, 40);
    let transcripts: Vec<_> = Setup::all()
        .filter(|setup| setup.widths.1 > 0 && setup.roomy)
        .map(|setup| run(setup, Ground::memory(), &acts))
        .collect();
    assert!(transcripts.len() > 20, "{}", transcripts.len());
    assert!(transcripts.iter().all(|transcript| *transcript == transcripts[0]));
}

#[test]
fn tables_in_files_agree_with_the_oracle_on_every_engine() {
    let engines = [EngineChoice::Uring, EngineChoice::Threads, EngineChoice::Buffered];
    for number in 0..27 {
        let setup = Setup::any(number);
        let Some(ground) = Ground::file(engines[number % 3]) else { continue };
        let len = if setup.durability == Durability::Always { 6 } else { 30 };
        run(setup, ground, &acts_of(100 + number as u64, len));
    }
}

#[test]
fn tables_on_every_simulated_drive_agree_with_the_oracle() {
    let mut drives = 0;
    for (number, name) in Preset::names().enumerate() {
        for number in [number, number + 31] {
            let Some(ground) = Ground::preset(name) else { continue };
            drives += 1;
            let setup = Setup::any(number);
            let len = if setup.durability == Durability::Always { 6 } else { 30 };
            println!("on {name}");
            run(setup, ground, &acts_of(200 + number as u64, len));
        }
    }
    assert!(drives >= 28, "{drives} drives");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 16, max_shrink_iters: 100, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn any_acts_on_any_configuration_agree_with_the_oracle(
        number in 0..720_usize, acts in acts(30),
    ) {
        let setup = Setup::any(number);
        Runner::new(Tables::new(setup, Ground::memory())).run(&acts);
    }
}
