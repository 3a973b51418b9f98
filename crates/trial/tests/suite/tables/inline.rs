//! Everything on the calling thread: the same answers as with threads in the background. That the same calls give
//! the same operations and bytes is shown by trials that run twice.

use std::sync::Arc;
use std::time::Duration;

use nandex::bufferhash::Policy;
use nandex::{Durability, Table};
use nandex_sim::{FaultOn, SimDevice};

use super::agreement::{Tables, acts_of};
use super::runner::Runner;
use super::support::{DURABILITIES, Ground, Setup};

#[test]
fn a_period_that_is_over_is_noticed_by_the_next_acknowledgement() {
    let syncs = |durability| {
        let device = SimDevice::instant();
        let setup = Setup { widths: (16, 64), ..Setup::new(Policy::Fifo, durability).inline() };
        let table = setup.create(Arc::new(device.clone())).unwrap();
        for number in 0..2000 {
            table.insert(&setup.key(number), &setup.value(number)).unwrap();
        }
        device.seen(FaultOn::Sync)
    };
    let [always, often, hour] = [
        DURABILITIES[0],
        // By the device's clock, a hundred looks at it or operations.
        Durability::Every(Duration::from_micros(100)),
        Durability::Every(Duration::from_secs(3600)),
    ]
    .map(syncs);
    assert!(hour < often && often < always, "{hour} {often} {always}");
}

#[test]
fn without_threads_every_configuration_agrees_with_the_oracle() {
    for (number, setup) in (0..).zip(Setup::all()) {
        let setup = setup.inline();
        let len = if setup.durability == Durability::Always { 8 } else { 25 };
        let acts = acts_of(number, len);
        Runner::new(Tables::new(setup, Ground::memory())).run(&acts);
    }
}

#[test]
fn answers_are_the_same_with_and_without_threads() {
    for setup in (0..108).map(Setup::any).filter(|setup| setup.roomy).step_by(3) {
        let len = if setup.durability == Durability::Always { 8 } else { 25 };
        let acts = acts_of(500, len);
        let [with, without] = [setup, setup.inline()].map(|setup| {
            let mut runner = Runner::new(Tables::new(setup, Ground::memory()));
            runner.run(&acts);
            runner.transcript
        });
        assert!(with == without, "{setup:?}");
    }
}

#[test]
fn either_half_may_have_threads_while_the_other_has_none() {
    for durability in DURABILITIES {
        let of = |policy| {
            let roomy = policy == Policy::Reject;
            Setup { roomy, widths: (16, 64), ..Setup::new(policy, durability) }
        };
        for setup in Setup::every(of) {
            let halves =
                [Setup { flush_threads: 0, ..setup }, Setup { flush_threads: 2, ..setup.inline() }];
            for half in halves {
                let acts = acts_of(9, if durability == Durability::Always { 6 } else { 20 });
                Runner::new(Tables::new(half, Ground::memory())).run(&acts);
            }
        }
    }
}
