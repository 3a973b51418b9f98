//! Everything on the calling thread: the same calls give the same operations and the same bytes, and the
//! same answers as with threads in the background.

use std::sync::Arc;
use std::time::Duration;

use nandex::bufferhash::Policy;
use nandex::{AnyTable, Durability, Table, Volume};

use super::agreement::{Tables, acts_of};
use super::recorder::{Asked, Recorder};
use super::runner::Runner;
use super::support::{DURABILITIES, Dice, Ground, Setup};

/// What a run leaves behind: all bytes, all operations, and all answers.
type Trace = (Vec<u8>, Vec<Asked>, Vec<Option<u64>>);

/// Works on a table by the seed, in three openings, with another table beside it for a while.
fn run(setup: Setup, seed: u64) -> Trace {
    let device = Recorder::default();
    let mut dice = Dice(seed);
    let mut answers = Vec::new();
    for opening in 0..3 {
        let volume = if opening == 0 {
            Volume::create(Arc::new(device.clone()), setup.volume_options()).unwrap()
        } else {
            Volume::open(Arc::new(device.clone()), setup.open_options()).unwrap()
        };
        let table = if opening == 0 {
            setup.create_table(&volume, "t").unwrap()
        } else {
            setup.open_table(&volume, "t").unwrap()
        };
        let other = setup.create_table(&volume, "u").unwrap();
        other.insert(&setup.key(1), &setup.value(1)).unwrap();
        work(&table, setup, &mut dice, &mut answers);
        let stats = table.stats();
        // Else the run would prove little.
        assert!(stats.flushes > 20, "{setup:?}: {} flushes", stats.flushes);
        let evicted_min = if setup.slices.is_some() { 20 } else { 500 };
        assert!(setup.roomy || stats.evicted > evicted_min, "{setup:?}: {} evicted", stats.evicted);
        other.close().unwrap();
        volume.drop_structure("u").unwrap();
        if opening == 1 {
            // As a killed process leaves it: the next opening replays the log.
            volume.poison().set(&"killed");
            drop(table);
        } else {
            table.close().unwrap();
        }
    }
    (device.image(), device.asked(), answers)
}

fn work(table: &AnyTable, setup: Setup, dice: &mut Dice, answers: &mut Vec<Option<u64>>) {
    let number = |value: nandex::Value| super::support::number_of(&value);
    for _ in 0..60 {
        let start = dice.below(2000);
        let keys: Vec<_> = (start..start + 300).map(|key| setup.key(key)).collect();
        match dice.below(8) {
            0 => keys[..10].iter().for_each(|key| table.remove(key).unwrap()),
            1 => table.sync().unwrap(),
            2 => table.flush().unwrap(),
            3 => answers.extend(keys.iter().map(|key| table.get(key).unwrap().map(number))),
            4 => {
                let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
                answers.extend(table.get_many(&keys).unwrap().into_iter().map(|v| v.map(number)));
            }
            5 => {
                for key in &keys[..20] {
                    table.insert(key, &setup.value(dice.next())).unwrap();
                }
            }
            _ => {
                let values: Vec<_> = keys.iter().map(|_| setup.value(dice.next())).collect();
                let pairs = keys.iter().zip(&values).map(|(key, value)| (&key[..], &value[..]));
                table.insert_many(&pairs.collect::<Vec<_>>()).unwrap();
            }
        }
    }
}

fn setups() -> impl Iterator<Item = Setup> {
    let often = Durability::Every(Duration::from_millis(1));
    let durabilities = DURABILITIES.into_iter().chain([often]);
    durabilities.flat_map(|durability| {
        Setup::every(|policy| Setup {
            // Few entries to a page, so that buffers fill and entries are evicted.
            widths: (16, 64),
            roomy: policy == Policy::Reject,
            ..Setup::new(policy, durability).inline()
        })
    })
}

#[test]
fn the_same_calls_give_the_same_operations_bytes_and_answers() {
    for setup in setups() {
        let (image, asked, answers) = run(setup, 3);
        let (image_again, asked_again, answers_again) = run(setup, 3);
        let differs = asked.iter().zip(&asked_again).position(|(one, other)| one != other);
        assert_eq!(differs, None, "{setup:?}: the first operation that differs");
        assert_eq!(asked.len(), asked_again.len(), "{setup:?}");
        assert!(image == image_again, "{setup:?}: the bytes differ");
        assert_eq!(answers, answers_again, "{setup:?}");
        // Else the run would prove nothing.
        let count = |sort| asked.iter().filter(|asked| asked.sort == sort).count();
        assert!(count("write") > 200 && count("read") > 200 && count("sync") > 100, "{setup:?}");
        assert!(run(setup, 4).1 != asked, "{setup:?}: the seed has no effect");
    }
}

#[test]
fn a_period_that_is_over_is_noticed_by_the_next_acknowledgement() {
    let syncs = |durability| {
        let widths = (16, 64);
        let asked = run(Setup { widths, ..Setup::new(Policy::Fifo, durability).inline() }, 3).1;
        asked.iter().filter(|asked| asked.sort == "sync").count()
    };
    let [always, often, hour] = [
        DURABILITIES[0],
        // By the device's clock, 50 looks at it or operations.
        Durability::Every(Duration::from_millis(1)),
        Durability::Every(Duration::from_secs(3600)),
    ]
    .map(syncs);
    assert!(hour < often && often < always, "{hour} {often} {always}");
}

#[test]
fn without_threads_every_configuration_agrees_with_the_oracle() {
    let slices = (0..36).map(Setup::numbered_slices);
    for (number, setup) in (0..).zip((0..72).map(Setup::numbered).chain(slices)) {
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
