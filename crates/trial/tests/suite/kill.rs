//! Killed processes: a child inserts with `Always` into a real file and names each key it was told is durable; it
//! is killed again and again, also during flushes and merges, and every key it named is there, in a filter no key
//! more often than it was inserted.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use nandex::bufferhash::Policy;
use nandex::cascade::Cascade;
use nandex::device::Device;
use nandex::{AnyTable, Counter, Durability, Filter, Table};
use nandex_sim::workload::SplitMix64;
use nandex_trial::amount;

use crate::filters::{self, key};
use crate::processes::{again, device};
use crate::tables::{SLICES, Setup};

/// Tells a child which structure it is to open, which round comes first, and the volume's file.
const CHILD: &str = "NANDEX_KILL_CHILD";

/// Keys of a round: one alone, then some together.
const ROUND: u64 = 32;

/// Keys of tables come again after so many: all of them have room where something may be evicted.
const KEYS: u64 = 8192;

/// The structures that are killed, by the number that a child is told.
enum Victim {
    Table(AnyTable),
    Filter(Cascade),
}

impl Victim {
    fn table(number: usize) -> Setup {
        let setup = Setup::new(Policy::Fifo, Durability::Always);
        if number == 0 { setup } else { Setup { super_tables: 8, ..setup }.sliced(SLICES[0]) }
    }

    fn filter() -> filters::Setup {
        filters::Setup::exact(Durability::Always).threaded()
    }

    fn create(number: usize, device: Arc<dyn Device>) -> nandex::Result<()> {
        match number {
            2 => Self::filter().create(device)?.close(),
            _ => Self::table(number).create(device)?.close(),
        }
    }

    fn open(number: usize, device: Arc<dyn Device>) -> Self {
        match number {
            2 => Self::Filter(Self::filter().open(device).unwrap()),
            _ => Self::Table(Self::table(number).open(device).unwrap()),
        }
    }

    fn insert_many(&self, numbers: std::ops::Range<u64>) {
        match self {
            Self::Table(table) => {
                let keys: Vec<_> = numbers.map(|number| (number % KEYS).to_le_bytes()).collect();
                let pairs: Vec<_> = keys.iter().map(|key| (&key[..], &key[..])).collect();
                table.insert_many(&pairs).unwrap();
            }
            Self::Filter(filter) => {
                let keys: Vec<_> = numbers.map(key).collect();
                filter.insert_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
            }
        }
    }

    fn insert(&self, number: u64) {
        match self {
            Self::Table(table) => table.insert_u64(number % KEYS, number % KEYS).unwrap(),
            Self::Filter(filter) => filter.insert(&key(number)).unwrap(),
        }
    }

    /// How often a key is there.
    fn count(&self, number: u64) -> u64 {
        match self {
            Self::Table(table) => {
                let found = table.get_u64(number % KEYS).unwrap();
                assert!(found.is_none_or(|value| value == number % KEYS), "{found:?} of {number}");
                found.iter().len() as u64
            }
            Self::Filter(filter) => filter.count(&key(number)).unwrap(),
        }
    }
}

/// The child's part: inserts keys one after another and says which are durable, until it is killed.
#[test]
fn child_of_the_kill_test() {
    let Ok(role) = std::env::var(CHILD) else { return };
    let mut words = role.splitn(3, ' ');
    let mut number = || words.next().unwrap().parse::<u64>().unwrap();
    let (victim, first) = (number(), number());
    let victim = Victim::open(victim as usize, device(Path::new(words.next().unwrap())));
    println!();
    for round in first.. {
        let start = round * ROUND;
        victim.insert(start);
        println!("acknowledged {start}");
        victim.insert_many(start + 1..start + ROUND);
        println!("acknowledged {}", start + ROUND - 1);
        std::io::stdout().flush().unwrap();
    }
}

/// Starts a child that goes on at `round`, kills it after a while, and gives the last key it named.
fn kill_one(victim: usize, path: &Path, round: u64, rng: &mut SplitMix64) -> Option<u64> {
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

fn kill_again_and_again(victim: usize) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    Victim::create(victim, device(&path)).unwrap();
    // 200 take up to two minutes on a slow disk.
    let kills = amount::count(24, 200);
    let (mut rng, mut told, mut round) = (SplitMix64::new(9), Vec::new(), 0);
    for kill in 0..kills {
        // Keys of a round that was begun are not inserted again, so that none may be there twice.
        let last = kill_one(victim, &path, round, &mut rng);
        told.extend(last.map(|last| round * ROUND..last + 1));
        round = last.map_or(round, |last| last / ROUND) + 2;
        if kill % 4 == 3 || kill == kills - 1 {
            let open = Victim::open(victim, device(&path));
            for number in 0..round * ROUND {
                let count = open.count(number);
                let is_told = told.iter().any(|keys| keys.contains(&number));
                assert!(
                    count == 1 || count == 0 && !is_told,
                    "key {number}: {count}, {kill} kills"
                );
            }
        }
    }
    let keys: u64 = told.iter().map(|keys| keys.end - keys.start).sum();
    println!("{kills} kills, {keys} keys");
    assert!(keys > 400, "the children were killed before they did anything");
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
