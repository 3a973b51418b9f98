//! Killed processes: a child inserts with `Always` into a real file and names each key it was told is
//! durable; it is killed again and again, and every key it named is there.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nandex::bufferhash::Policy;
use nandex::{Durability, Table};

use super::support::{Dice, SLICES, Setup, full_sweep};
use crate::processes::{again, device};

/// Names the volume's file to a child, and the first key that it is to put.
const CHILD: &str = "NANDEX_KILL_CHILD";

/// The tables that are killed, by the number that a child is told.
fn setup(number: usize) -> Setup {
    let setup = Setup { words: 4, ..Setup::new(Policy::Fifo, Durability::Always) };
    if number == 0 { setup } else { Setup { super_tables: 8, ..setup }.sliced(SLICES[0]) }
}

/// Keys come again after so many: all of them have room in a SliceHash that may evict.
const KEYS: u64 = 8192;

/// The child's part: puts keys one after another and says which are durable, until it is killed.
#[test]
fn child_of_the_kill_test() {
    let Ok(role) = std::env::var(CHILD) else { return };
    let (number, role) = role.split_once(' ').unwrap();
    let (first, path) = role.split_once(' ').unwrap();
    let table = setup(number.parse().unwrap()).open(device(Path::new(path))).unwrap();
    let first: u64 = first.parse().unwrap();
    println!();
    for round in first.. {
        // One alone, then some together.
        let keys = (round * 16..round * 16 + 16).map(|key| key % KEYS);
        let keys: Vec<_> = keys.map(u64::to_le_bytes).collect();
        let pairs: Vec<_> = keys[1..].iter().map(|key| (&key[..], &key[..])).collect();
        table.insert(&keys[0], &keys[0]).unwrap();
        println!("acknowledged {}", round * 16);
        table.insert_many(&pairs).unwrap();
        println!("acknowledged {}", round * 16 + 15);
        std::io::stdout().flush().unwrap();
    }
}

/// Starts a child that goes on at `round`, kills it after a while, and gives the last key it named.
fn kill_one(number: usize, path: &Path, round: u64, dice: &mut Dice) -> Option<u64> {
    let role = format!("{number} {round} {}", path.display());
    let mut command = again("tables::kill::child_of_the_kill_test", CHILD, &role);
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
fn what_a_killed_process_was_told_is_durable_is_there() {
    kill_again_and_again(0);
}

#[test]
fn what_a_killed_process_was_told_is_durable_is_there_in_slicetables_too() {
    kill_again_and_again(1);
}

fn kill_again_and_again(number: usize) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    setup(number).create(device(&path)).unwrap().close().unwrap();
    // 200 take up to two minutes on a slow disk.
    let kills = if full_sweep() { 200 } else { 30 };
    let (mut dice, mut acknowledged, mut rounds) = (Dice(9), 0, 0);
    for kill in 0..kills {
        if let Some(last) = kill_one(number, &path, rounds, &mut dice) {
            acknowledged = last;
            // A round of which only the first key was named is begun anew, so that all are there.
            rounds = (last + 1) / 16;
        }
        if kill % 4 == 3 || kill == kills - 1 {
            let table = setup(number).open(device(&path)).unwrap();
            for key in 0..=acknowledged.min(KEYS - 1) {
                assert_eq!(table.get_u64(key).unwrap(), Some(key), "after {kill} kills");
            }
        }
    }
    println!("{kills} kills, {acknowledged} keys");
    assert!(acknowledged > 100, "the children were killed before they did anything");
}
