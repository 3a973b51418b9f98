//! Power cuts: after a spread of device operations (after every one with `NANDEX_SWEEP=full`), with
//! several choices each of what survives, and again while the volume recovers from the first cut.
//!
//! The law, for each key: the versions it had are numbered; `durable` is the newest that the durability
//! mode vouches for. What is found is that version or a later one, the one in flight included; or, where
//! the ring may have evicted it, nothing. Background threads make the order of operations vary from run
//! to run, so the sweep checks laws and no exact states.

use std::collections::HashMap;
use std::sync::Arc;

use nandex::bufferhash::Policy;
use nandex::device::Device;
use nandex::{BufferHash, Durability, Result, Table};
use nandex_sim::{Image, SimDevice};

use crate::support::{DURABILITIES, Dice, POLICIES, Setup, full_sweep};

const KEYS: u64 = 1500;
/// Keys that are put once, at the beginning.
const PINNED: u64 = 100;

/// Everything a key has been, the oldest first; `None` where it was removed.
#[derive(Clone, Debug)]
pub struct History {
    versions: Vec<Option<u64>>,
    durable: usize,
    /// Versions after this one were not acknowledged.
    acknowledged: usize,
    /// The number of the put that was acknowledged last.
    put_at: u64,
}

impl Default for History {
    fn default() -> Self {
        Self { versions: vec![None], durable: 0, acknowledged: 0, put_at: 0 }
    }
}

/// What was done to a table, and what of it is vouched for.
#[derive(Clone, Debug, Default)]
pub struct Past {
    keys: HashMap<u64, History>,
    puts: u64,
}

impl Past {
    /// How many puts and removes were acknowledged.
    pub fn puts(&self) -> u64 {
        self.puts
    }

    fn attempt(&mut self, key: u64, version: Option<u64>) {
        self.keys.entry(key).or_default().versions.push(version);
    }

    fn acknowledge(&mut self, key: u64, durability: Durability) {
        self.puts += 1;
        let history = self.keys.get_mut(&key).unwrap();
        history.acknowledged = history.versions.len() - 1;
        history.put_at = self.puts;
        if durability == Durability::Always {
            history.durable = history.acknowledged;
        }
    }

    pub fn synced(&mut self) {
        self.keys.values_mut().for_each(|history| history.durable = history.acknowledged);
    }
}

/// One run: a table, what is done to it, and the dice that choose.
pub struct Run<'a> {
    pub setup: Setup,
    pub past: &'a mut Past,
    pub dice: Dice,
}

impl Run<'_> {
    /// Puts `count` times, mixed with removes, lookups, syncs and flushes, until something fails.
    pub fn work(&mut self, table: &BufferHash, batches: usize) -> Result<()> {
        for batch in 0..batches {
            match self.dice.below(10) {
                0 => self.remove(table)?,
                1 => {
                    table.sync()?;
                    self.past.synced();
                }
                2 if batch % 4 == 0 => {
                    table.flush()?;
                    self.past.synced();
                }
                3 => {
                    let key = self.dice.below(KEYS);
                    table.get(&self.setup.key(key))?;
                    self.put_one(table, key)?;
                }
                _ => self.put_many(table)?,
            }
        }
        Ok(())
    }

    fn version(&mut self) -> u64 {
        self.past.puts << 20 | self.dice.below(1 << 20)
    }

    fn put_one(&mut self, table: &BufferHash, key: u64) -> Result<()> {
        let version = self.version();
        self.past.attempt(key, Some(version));
        refused(table.insert(&self.setup.key(key), &self.setup.value(version)))?;
        self.past.acknowledge(key, self.setup.durability);
        Ok(())
    }

    fn put_many(&mut self, table: &BufferHash) -> Result<()> {
        let start = self.dice.below(KEYS - 120);
        let keys: Vec<u64> = (start..start + 120).collect();
        self.put_keys(table, &keys)
    }

    fn put_keys(&mut self, table: &BufferHash, keys: &[u64]) -> Result<()> {
        let mut pairs = Vec::new();
        for &key in keys {
            let version = self.version();
            self.past.attempt(key, Some(version));
            pairs.push((self.setup.key(key), self.setup.value(version)));
        }
        let borrowed: Vec<_> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        refused(table.insert_many(&borrowed))?;
        keys.iter().for_each(|key| self.past.acknowledge(*key, self.setup.durability));
        Ok(())
    }

    fn remove(&mut self, table: &BufferHash) -> Result<()> {
        let start = self.dice.below(KEYS - 10);
        for key in start..start + 10 {
            self.past.attempt(key, None);
            refused(table.remove(&self.setup.key(key)))?;
            self.past.acknowledge(key, self.setup.durability);
        }
        Ok(())
    }
}

/// These runs never fill a table that refuses, so every error counts.
fn refused(result: Result<()>) -> Result<()> {
    assert!(!matches!(result, Err(nandex::Error::Full { .. })), "the table is roomy");
    result
}

/// Creates, works, closes, opens again and works on, until the power goes.
fn live(device: &SimDevice, setup: Setup, seed: u64, past: &mut Past) -> Result<()> {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let mut run = Run { setup, past, dice: Dice(seed) };
    let table = setup.create(Arc::clone(&device))?;
    let pinned: Vec<u64> = (KEYS..KEYS + PINNED).collect();
    run.put_keys(&table, &pinned)?;
    run.work(&table, 60)?;
    table.close()?;
    run.past.synced();
    let table = setup.open(device)?;
    run.work(&table, 40)?;
    table.close()?;
    run.past.synced();
    Ok(())
}

/// May a key whose newest version is this old be gone?
fn may_be_evicted(setup: Setup, past: &Past, history: &History) -> bool {
    // Live entries are a fifth of what the ring holds, so that partial discards keep all of them.
    let keeps = setup.roomy || matches!(setup.policy, Policy::Update | Policy::Threshold(_));
    let window = u64::from(setup.config().filter.entries_max());
    !keeps && past.puts - history.put_at > window
}

/// Compares what a table holds with the law, and takes it as what it was from now on.
pub fn check(table: &BufferHash, setup: Setup, past: &mut Past, story: &str) -> Result<()> {
    let numbers: Vec<u64> = (0..KEYS + PINNED).collect();
    let keys: Vec<_> = numbers.iter().map(|key| setup.key(*key)).collect();
    let borrowed: Vec<_> = keys.iter().map(|key| &key[..]).collect();
    let found = table.get_many(&borrowed)?;
    for (key, found) in numbers.into_iter().zip(found) {
        let gone = past.keys.get(&key).is_none_or(|h| may_be_evicted(setup, past, h));
        let Some(history) = past.keys.get_mut(&key) else {
            assert_eq!(found, None, "{story}: key {key} was never put");
            continue;
        };
        let matches = |version: &Option<u64>| match (version, &found) {
            (None, None) => true,
            (Some(version), Some(found)) => **found == *setup.value(*version),
            _ => false,
        };
        let possible = history.versions[history.durable..].iter().any(matches);
        assert!(
            possible || (gone && found.is_none()),
            "{story}: key {key}: found {found:?}, which is version {:?} of {history:?}",
            history.versions.iter().position(matches),
        );
        let seen = history.versions.iter().rposition(matches);
        history.versions = vec![seen.and_then(|seen| history.versions[seen])];
        (history.durable, history.acknowledged) = (0, 0);
    }
    Ok(())
}

/// Recovers from what survived, checks, works on, and opens once more.
fn recover(image: Image, setup: Setup, past: &Past, story: &str) {
    let device: Arc<dyn Device> = Arc::new(SimDevice::instant().with_image(image));
    let mut past = past.clone();
    let open = || match setup.open(Arc::clone(&device)) {
        // The cut may have come before the table was there.
        Err(error) if past.puts() == 0 => {
            println!("{story}: {error}");
            None
        }
        table => Some(table.unwrap_or_else(|error| panic!("{story}: {error}"))),
    };
    let Some(table) = open() else { return };
    check(&table, setup, &mut past, story).unwrap_or_else(|error| panic!("{story}: {error}"));
    let mut run = Run { setup, past: &mut past, dice: Dice(5) };
    run.work(&table, 10).unwrap_or_else(|error| panic!("{story}, working on: {error}"));
    table.close().unwrap_or_else(|error| panic!("{story}, closing: {error}"));
    past.synced();
    let table = setup.open(Arc::clone(&device));
    let table = table.unwrap_or_else(|error| panic!("{story}, once more: {error}"));
    let story = format!("{story}, once more");
    check(&table, setup, &mut past, &story).unwrap_or_else(|error| panic!("{story}: {error}"));
}

/// Recovers, loses power again in the midst of it, and recovers from that.
fn recover_twice(image: Image, setup: Setup, past: &Past, dice: &mut Dice, story: &str) {
    let device = SimDevice::instant().with_image(image);
    let count = dice.below(24);
    device.cut_after(count);
    let mut past = past.clone();
    if let Ok(table) = setup.open(Arc::new(device.clone())) {
        // What was not vouched for and is lost stays lost: the past goes on from what is found.
        if check(&table, setup, &mut past, story).is_ok() {
            let mut run = Run { setup, past: &mut past, dice: Dice(dice.next()) };
            let _ = run.work(&table, 20);
        }
    }
    let seed = dice.below(6);
    let story = format!("{story}, cut again after {count}, survivors {seed}");
    recover(device.survivors(seed), setup, &past, &story);
}

/// Cuts a run of this setup at many places.
fn sweep(setup: Setup, cuts: u64) {
    let whole = SimDevice::instant();
    live(&whole, setup, 1, &mut Past::default()).unwrap();
    let operations = whole.operations();
    let stride = if full_sweep() { 1 } else { (operations / cuts).max(1) };
    let mut dice = Dice(operations);
    let mut cut = dice.below(stride);
    while cut < operations {
        let device = SimDevice::instant();
        device.cut_after(cut);
        let mut past = Past::default();
        let result = live(&device, setup, 1, &mut past);
        for seed in [0, 1, 2 + dice.below(1000), 2 + dice.below(1000)] {
            let story = format!("{setup:?}, cut after {cut} ({result:?}), survivors {seed}");
            recover(device.survivors(seed), setup, &past, &story);
            recover_twice(device.survivors(seed), setup, &past, &mut dice, &story);
        }
        cut += stride;
    }
}

fn sweep_durability(durability: Durability) {
    for policy in POLICIES {
        for roomy in [true, false] {
            // A table that refuses has no other way than to be roomy.
            if roomy || policy != Policy::Reject {
                sweep(Setup { roomy, flush_threads: 2, ..Setup::new(policy, durability) }, 4);
            }
        }
    }
}

#[test]
fn after_a_power_cut_everything_acknowledged_is_there_when_always_durable() {
    sweep_durability(DURABILITIES[0]);
}

#[test]
fn after_a_power_cut_everything_synced_is_there_when_durable_by_and_by() {
    sweep_durability(DURABILITIES[1]);
}

#[test]
fn after_a_power_cut_everything_flushed_is_there_without_durability() {
    sweep_durability(DURABILITIES[2]);
}
