//! Killed processes: a child inserts with `Always` into a real file and prints each key that is durable; it
//! is killed repeatedly, also during flushes and merges, and every printed key must be present, in a filter
//! no key more often than it was inserted.

use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use nandex::bufferhash::Policy;
use nandex::device::Device;
use nandex::{Durability, Volume, VolumeOpenOptions, VolumeOptions};
use nandex_sim::workload::SplitMix64;
use nandex_trial::Contract;
use nandex_trial::amount;
use nandex_trial::table::TableContract;

use crate::filters;
use crate::processes::{again, device};
use crate::structure::{Made, Structure};
use crate::tables::{SLICES, Setup};

/// The variable that tells a child its structure, its first round, and the volume's file.
const CHILD: &str = "NANDEX_KILL_CHILD";

/// The keys of a round: one alone, then some together.
const ROUND: u64 = 32;

/// The number after which keys of tables come again: there is space for all of them if something may be
/// evicted.
const KEYS: u64 = 8192;

/// A structure that is killed.
struct Victim {
    made: Made,
    volume: VolumeOptions,
    /// The number after which its keys come again.
    keys: u64,
}

impl Victim {
    fn numbered(number: u64) -> Self {
        let setup = Setup::new(Policy::Fifo, Durability::Always);
        let sliced = Setup { super_tables: 8, ..setup }.sliced(SLICES[0]);
        let table = |setup: Setup| Self {
            made: setup.made().into(),
            volume: setup.volume_options(),
            keys: KEYS,
        };
        let filter = filters::Setup::exact(Durability::Always).threaded();
        let options = filter.runtime();
        match number {
            0 => table(setup),
            1 => table(sliced),
            _ => Self {
                made: (filter.config.into(), options).into(),
                volume: filter.volume_options(),
                keys: u64::MAX,
            },
        }
    }

    fn create(self, device: Arc<dyn Device>) -> nandex::Result<()> {
        self.made.create(&Volume::create(device, self.volume)?, "t")?.close()
    }

    fn open(&self, device: Arc<dyn Device>) -> Structure {
        let VolumeOptions { durability, threads, .. } = self.volume;
        let options = VolumeOpenOptions { durability, threads, ..VolumeOpenOptions::default() };
        self.made.open(&Volume::open(device, options).unwrap(), "t").unwrap()
    }
}

/// The child's part: inserts keys one after another and prints the durable ones, until it is killed.
#[test]
fn child_of_the_kill_test() {
    let Ok(role) = std::env::var(CHILD) else { return };
    let mut words = role.splitn(3, ' ');
    let mut number = || words.next().unwrap().parse::<u64>().unwrap();
    let (victim, first) = (number(), number());
    let victim = Victim::numbered(victim);
    let open = victim.open(device(Path::new(words.next().unwrap())));
    println!();
    for round in first.. {
        let start = round * ROUND;
        let key = start % victim.keys;
        open.insert(key).unwrap();
        println!("acknowledged {start}");
        open.insert_many(key + 1..key + ROUND).unwrap();
        println!("acknowledged {}", start + ROUND - 1);
        std::io::stdout().flush().unwrap();
    }
}

/// Starts a child that continues at `round`, kills it after a while, and returns the last key it printed.
fn kill_one(victim: u64, path: &Path, round: u64, rng: &mut SplitMix64) -> Option<u64> {
    let role = format!("{victim} {round} {}", path.display());
    let mut command = again("kill::child_of_the_kill_test", CHILD, &role);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let reader = std::thread::spawn(move || {
        lines
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok())
            .last()
    });
    std::thread::sleep(Duration::from_micros(10_000 + rng.below(70_000)));
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

/// The reports of children, and the part of them that was looked up.
#[derive(Default)]
struct Told {
    /// Whether a child was told that a key is durable, for each key.
    keys: Vec<bool>,
    /// The number of keys that children may have inserted, and the number of those before the last look.
    numbers: u64,
    looked: u64,
    lookups: u64,
}

impl Told {
    fn tell(&mut self, numbers: Range<u64>, keys: u64) {
        for number in numbers {
            let key = (number % keys) as usize;
            self.keys.resize(self.keys.len().max(key + 1), false);
            self.keys[key] = true;
        }
    }

    /// Looks up the keys since the last look, or all.
    fn look(&mut self, open: &Structure, keys: u64, is_all: bool) {
        let first = if is_all { 0 } else { self.looked };
        // Keys that came again since are looked up once.
        let first = first.max(self.numbers.saturating_sub(keys));
        let keys: Vec<_> = (first..self.numbers).map(|number| number % keys).collect();
        for keys in keys.chunks(1024) {
            for (&key, count) in keys.iter().zip(open.count_many(keys).unwrap()) {
                let is_told = self.keys.get(key as usize).is_some_and(|is_told| *is_told);
                assert!(count == 1 || count == 0 && !is_told, "key {key}: {count}");
            }
        }
        self.lookups += keys.len() as u64;
        self.looked = self.numbers;
    }
}

fn kill_again_and_again(number: u64) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    Victim::numbered(number).create(device(&path)).unwrap();
    let victim = Victim::numbered(number);
    let kills = amount::count(24, 200);
    let (mut rng, mut told, mut round) = (SplitMix64::new(9), Told::default(), 0);
    for kill in 1..=kills {
        // Keys of a begun round are not inserted again, so that none may be present twice.
        let last = kill_one(number, &path, round, &mut rng);
        if let Some(last) = last {
            told.tell(round * ROUND..last + 1, victim.keys);
        }
        round = last.map_or(round, |last| last / ROUND) + 2;
        told.numbers = round * ROUND;
        // A lost key stays lost, so only a few looks cover everything. Children recover from most kills.
        if kill % 4 == 0 || kill == kills {
            println!("{kill} kills, {} numbers", told.numbers);
            let is_all = kill % 50 == 0 || kill == kills;
            told.look(&victim.open(device(&path)), victim.keys, is_all);
        }
    }
    let durable = told.keys.iter().filter(|is_told| **is_told).count();
    println!("{kills} kills, {durable} keys, {} lookups", told.lookups);
    assert!(durable > 400, "the children were killed before they did anything");
    assert!(told.lookups <= 4 * told.numbers, "lookups grow with the square of the kills");
}

#[test]
fn what_a_killed_process_was_told_is_durable_is_there() {
    kill_again_and_again(0);
}

#[test]
fn what_a_killed_process_was_told_is_durable_is_there_in_slicetables_too() {
    kill_again_and_again(1);
}

#[test]
fn what_a_killed_process_was_told_is_durable_is_there_once_in_a_filter() {
    kill_again_and_again(2);
}
