//! Killed processes: a child inserts with `Always` into a filter in a real file and names each key it was
//! told is durable; it is killed again and again, also in the midst of merges, and every key it named is
//! there, no key more often than it was inserted.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nandex::{Counter, Durability, Filter};

use super::runner::key;
use super::support::Setup;
use crate::chance::{Dice, full_sweep};
use crate::processes::{again, device};

/// Names the volume's file to a child, and the first key that it is to insert.
const CHILD: &str = "NANDEX_KILL_FILTER_CHILD";

/// Keys of a round: one alone, then some together.
const ROUND: u64 = 40;

fn setup() -> Setup {
    Setup::exact(Durability::Always).threaded()
}

/// The child's part: inserts keys one after another and says which are durable, until it is killed.
#[test]
fn child_of_the_kill_test() {
    let Ok(role) = std::env::var(CHILD) else { return };
    let (first, path) = role.split_once(' ').unwrap();
    let filter = setup().open(device(Path::new(path))).unwrap();
    let first: u64 = first.parse().unwrap();
    println!();
    for round in first.. {
        let keys: Vec<_> = (round * ROUND..(round + 1) * ROUND).map(key).collect();
        let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
        filter.insert(keys[0]).unwrap();
        println!("acknowledged {}", round * ROUND);
        filter.insert_many(&keys[1..]).unwrap();
        println!("acknowledged {}", round * ROUND + ROUND - 1);
        std::io::stdout().flush().unwrap();
    }
}

/// Starts a child that goes on at `round`, kills it after a while, and gives the last key it named.
fn kill_one(path: &Path, round: u64, dice: &mut Dice) -> Option<u64> {
    let role = format!("{round} {}", path.display());
    let mut command = again("filters::kill::child_of_the_kill_test", CHILD, &role);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let reader = std::thread::spawn(move || {
        lines
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok())
            .last()
    });
    std::thread::sleep(Duration::from_micros(10_000 + dice.below(70_000)));
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

#[test]
fn what_a_killed_process_was_told_is_durable_is_there_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    setup().create(device(&path)).unwrap().close().unwrap();
    let kills = if full_sweep() { 200 } else { 24 };
    let (mut dice, mut acknowledged, mut round) = (Dice(9), Vec::new(), 0);
    for kill in 0..kills {
        // Keys of a round that was begun are not inserted again, so that none may be there twice.
        let last = kill_one(&path, round, &mut dice);
        acknowledged.extend(last.map(|last| round * ROUND..last + 1));
        round = last.map_or(round, |last| last / ROUND) + 2;
        if kill % 4 == 3 || kill == kills - 1 {
            let filter = setup().open(device(&path)).unwrap();
            for number in 0..round * ROUND {
                let count = filter.count(&key(number)).unwrap();
                let is_told = acknowledged.iter().any(|keys| keys.contains(&number));
                assert!(
                    count == 1 || count == 0 && !is_told,
                    "key {number}: {count}, {kill} kills"
                );
            }
        }
    }
    let filter = setup().open(device(&path)).unwrap();
    let levels = Filter::stats(&filter).levels.len();
    let keys: u64 = acknowledged.iter().map(|keys| keys.end - keys.start).sum();
    println!("{kills} kills, {keys} keys, {levels} levels");
    assert!(keys > 400 && levels > 0, "the children were killed before they did anything");
}
