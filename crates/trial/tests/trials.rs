//! Trials of every structure under every adversity, and proof that a seed replays.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use nandex::device::Device;
use nandex_sim::workload::SplitMix64;
use nandex_sim::{Fill, Image, SimDevice, Ssd};
use nandex_trial::{Adversity, Plan, STRUCTURES, Tally, run, small};

fn tally_of(seed: u64) -> Tally {
    run(seed).unwrap_or_else(|failure| panic!("{failure}"))
}

/// The first seeds of an adversity.
fn seeds_of(adversity: Adversity, count: usize) -> Vec<u64> {
    (0..).filter(|seed| Plan::of(*seed).adversity == adversity).take(count).collect()
}

#[test]
fn ten_thousand_cuts_of_every_structure_lose_nothing() {
    let mut total = Tally::default();
    let mut structures = BTreeSet::new();
    for seed in seeds_of(Adversity::EveryCut, 2 * STRUCTURES as usize) {
        let setup = Plan::of(seed).setup;
        // One of each policy and durability, so that this stays short.
        if structures.insert(format!("{:?} {:?}", setup.policy, setup.durability)) {
            total += &tally_of(seed);
        }
    }
    assert_eq!(structures.len(), 24);
    assert!(total.cut_points >= 10_000, "{total}");
    assert!(total.cut_recoveries >= 1_000, "{total}");
}

#[test]
fn killed_failing_and_lying_devices_get_no_wrong_answer_out_of_any_structure() {
    let mut total = Tally::default();
    let adversities =
        [Adversity::Cuts, Adversity::Errors, Adversity::LyingReads, Adversity::LyingWrites];
    for adversity in adversities {
        seeds_of(adversity, 48).into_iter().for_each(|seed| total += &tally_of(seed));
    }
    assert!(total.reopenings > 500 && total.acts > 5_000, "{total}");
    for kind in ["Flip on Read", "Misdirected on Write", "Lost on Sync", "Dropped on Sync"] {
        assert!(total.faults.get(kind).is_some_and(|count| *count > 3), "{kind}: {total}");
    }
}

#[test]
fn a_seed_run_twice_gives_the_same_operations_bytes_and_answers() {
    for adversity in [
        Adversity::EveryCut,
        Adversity::Cuts,
        Adversity::Errors,
        Adversity::LyingReads,
        Adversity::LyingWrites,
    ] {
        for seed in seeds_of(adversity, 4) {
            let (one, other) = (tally_of(seed), tally_of(seed));
            assert_eq!(one, other, "seed {seed}");
            assert!(one.trace != 0 && one.trace != tally_of(seed + STRUCTURES).trace);
        }
    }
}

/// Works on a structure on a modelled SSD, and gives the hash of the model's events.
fn event_hash(seed: u64) -> (u64, u64) {
    let model = Arc::new(Mutex::new(Ssd::new(small(), Fill::Empty).unwrap()));
    let device = SimDevice::with_model(Box::new(Arc::clone(&model))).with_image(Image::new());
    let mut subject = Plan::of(seed).subject();
    let mut dice = SplitMix64::new(seed);
    subject.make(Arc::new(device.clone()) as Arc<dyn Device>).unwrap();
    subject.settle();
    for opening in 0..2 {
        for _ in 0..60 {
            subject.act(&mut dice).unwrap();
            subject.settle();
        }
        subject.close().unwrap();
        subject.settle();
        if opening == 0 {
            subject.open(Arc::new(device.clone())).unwrap();
        }
    }
    let events = model.lock().unwrap().event_hash();
    (events, subject.answers())
}

#[test]
fn a_structure_on_a_modelled_ssd_gives_the_same_events_every_time() {
    let hashes: Vec<_> = [1, 2, 3].map(event_hash).to_vec();
    assert_eq!(hashes, [1, 2, 3].map(event_hash).to_vec());
    assert_eq!(hashes.iter().collect::<BTreeSet<_>>().len(), 3);
}
