//! Trials of every structure under every adversity, and proof that a seed replays.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use nandex_sim::workload::SplitMix64;
use nandex_sim::{Fill, Image, SimDevice, Ssd};
use nandex_trial::table::TableSetup;
use nandex_trial::{
    Adversity, BLOCK, Contract, Counters, Plan, STRUCTURES, Session, Structure, StructureSetup,
    amount, parallel, run, run_plan, small,
};

fn counters_of(seed: u64) -> Counters {
    cut_one_in(4, seed)
}

/// Returns the counts of a seed that cuts during one of this many operations, and during each with
/// `NANDEX_SWEEP=full`.
fn cut_one_in(operations: u64, seed: u64) -> Counters {
    run(seed, amount::one_in(operations)).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Returns the counts of several seeds together.
fn total_of(seeds: Vec<u64>) -> Counters {
    let mut total = Counters::default();
    parallel::each(seeds.into_iter(), counters_of).iter().for_each(|counters| total += counters);
    total
}

/// Returns the first seeds of a structure under an adversity.
fn seeds_of(structure: Structure, adversity: Adversity, count: usize) -> Vec<u64> {
    let fits =
        |seed: &u64| Structure::of(*seed) == structure && Plan::of(*seed).adversity == adversity;
    (0..).filter(fits).take(count).collect()
}

/// Cuts one setup of each policy and durability during every fourth operation, so that this stays short; during all
/// of them with `NANDEX_SWEEP=full`.
fn cut(structure: Structure, count: usize) {
    let mut structures = BTreeSet::new();
    let mut seeds = seeds_of(structure, Adversity::EveryCut, 2 * STRUCTURES as usize);
    seeds.retain(|seed| {
        let setup = Plan::of(*seed).setup;
        structures.insert(format!("{} {:?}", setup.policy(), setup.durability()))
    });
    assert_eq!(structures.len(), count);
    let total = total_of(seeds);
    assert!(total.cut_points >= 200 * count as u64, "{total}");
    assert!(total.cut_recoveries >= 20 * count as u64, "{total}");
}

#[test]
fn thousands_of_cuts_of_every_bufferhash_lose_nothing() {
    cut(Structure::BufferHash, 24);
}

#[test]
fn thousands_of_cuts_of_every_slicehash_lose_nothing() {
    cut(Structure::SliceHash, 8);
}

#[test]
fn thousands_of_cuts_of_every_cascade_lose_nothing() {
    cut(Structure::Cascade, 24);
}

#[test]
fn every_further_structure_of_the_registry_outlives_cuts_and_wrong_data() {
    for structure in Structure::all().skip(3) {
        let total = total_of(seeds_of(structure, Adversity::EveryCut, 4));
        assert!(total.cut_points >= 400, "{structure:?}: {total}");
        live_through(structure, 24);
    }
}

fn live_through(structure: Structure, lives: usize) {
    let adversities =
        [Adversity::Cuts, Adversity::Errors, Adversity::WrongReads, Adversity::WrongWrites];
    let seeds = adversities.map(|adversity| seeds_of(structure, adversity, lives));
    let total = total_of(seeds.concat());
    let lives = lives as u64;
    assert!(total.reopenings > 10 * lives && total.calls > 150 * lives, "{total}");
    for kind in ["Flip on Read", "Misdirected on Write", "Lost on Sync", "Dropped on Sync"] {
        assert!(
            total.faults.get(kind).is_some_and(|count| *count >= lives / 12),
            "{kind}: {total}"
        );
    }
}

#[test]
fn killed_failing_and_wrong_devices_get_no_wrong_answer_out_of_a_bufferhash() {
    live_through(Structure::BufferHash, 48);
}

#[test]
fn killed_failing_and_wrong_devices_get_no_wrong_answer_out_of_a_slicehash() {
    live_through(Structure::SliceHash, 24);
}

#[test]
fn killed_failing_and_wrong_devices_get_no_wrong_answer_out_of_a_cascade() {
    live_through(Structure::Cascade, 24);
}

#[test]
fn a_table_that_refuses_opens_although_its_replay_fills_buffers_at_other_places() {
    // A SliceHash that was full when its process was killed: its replay filled buffers at other places than
    // the inserts had, was told in the middle of it that the table is full, and refused to open forever.
    let total = counters_of(393);
    assert!(total.reopenings > 3, "{total}");
}

#[test]
fn a_table_that_a_long_life_fills_may_refuse() {
    // Two that refuse: the super tables of the first are cleaned, while the device fails some writes.
    for number in [17_405, 17_411] {
        let setup = StructureSetup::Table(TableSetup::bufferhash(number));
        let plan = Plan { setup, ..Plan::of(17_405) };
        let total = run_plan(&plan, 1).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(total.calls > 100, "{total}");
    }
}

/// Runs the first seeds of each structure under an adversity twice, several at a time, with few of the cuts:
/// other tests check the results.
fn run_twice(adversity: Adversity, count: usize) {
    let seeds = Structure::all().flat_map(|structure| seeds_of(structure, adversity, count));
    let traces = parallel::each(seeds, |seed| {
        let (one, other) = (cut_one_in(16, seed), cut_one_in(16, seed));
        assert_eq!(one, other, "seed {seed}");
        (seed, one.trace)
    });
    let mut earlier = BTreeSet::new();
    for (seed, trace) in traces {
        assert!(trace != 0 && earlier.insert(trace), "seed {seed}: as an earlier one");
    }
}

#[test]
fn a_seed_run_twice_gives_the_same_operations_bytes_and_answers() {
    run_twice(Adversity::EveryCut, 3);
    // Lives are short: all policies, fan-outs and durabilities.
    run_twice(Adversity::Cuts, 48);
    for adversity in [Adversity::Errors, Adversity::WrongReads, Adversity::WrongWrites] {
        run_twice(adversity, 3);
    }
}

/// Works on a structure on a modelled SSD, and returns the hash of the model's events.
fn event_hash(seed: u64) -> (u64, u64) {
    match Plan::of(seed).setup {
        StructureSetup::Table(setup) => event_hash_of(setup, seed),
        StructureSetup::Filter(setup) => event_hash_of(setup, seed),
        StructureSetup::Neighbors(setup) => event_hash_of(setup, seed),
    }
}

fn event_hash_of<C: Contract>(setup: C, seed: u64) -> (u64, u64) {
    let model = Arc::new(Mutex::new(Ssd::new(small(), Fill::Empty).unwrap()));
    let device = SimDevice::with_model(Box::new(Arc::clone(&model))).with_image(Image::new());
    let mut session = Session::new(setup);
    let mut rng = SplitMix64::new(seed);
    session.create(Arc::new(device.clone())).unwrap();
    session.settle();
    for opening in 0..2 {
        for _ in 0..60 {
            session.call(&mut rng).unwrap();
            session.settle();
        }
        session.close().unwrap();
        session.settle();
        if opening == 0 {
            session.open(Arc::new(device.clone())).unwrap();
        }
    }
    let events = model.lock().unwrap().event_hash();
    (events, session.answers())
}

#[test]
fn a_structure_on_a_modelled_ssd_gives_the_same_events_every_time() {
    let hashes: Vec<_> = [1, 2, BLOCK, 2 * BLOCK].map(event_hash).to_vec();
    assert_eq!(hashes, [1, 2, BLOCK, 2 * BLOCK].map(event_hash).to_vec());
    assert_eq!(hashes.iter().collect::<BTreeSet<_>>().len(), 4);
}
