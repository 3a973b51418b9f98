//! The life of a table that something may end at any moment, and the law of what is found afterwards.
//!
//! For each key, the versions it had are numbered; `durable` is the newest that the durability mode
//! vouches for. What is found is that version or a later one, the one in flight included; or, where the
//! ring may have evicted it, nothing.

use std::collections::HashMap;
use std::sync::Arc;

use nandex::bufferhash::Policy;
use nandex::device::Device;
use nandex::{AnyTable, Durability, Error, Result, Table, Volume};
use nandex_sim::{Image, SimDevice};

use super::support::{Dice, Setup};

/// Keys that are put again and again.
const KEYS: u64 = 500;

/// Keys that are put once, at the beginning.
const PINNED: u64 = 50;

/// Everything a key has been, the oldest first; `None` where it was removed.
#[derive(Clone, Debug)]
pub struct History {
    versions: Vec<Option<u64>>,
    /// When each was put, in puts.
    put_at: Vec<u64>,
    durable: usize,
    /// Versions after this one were not acknowledged.
    acknowledged: usize,
}

impl Default for History {
    fn default() -> Self {
        Self { versions: vec![None], put_at: vec![0], durable: 0, acknowledged: 0 }
    }
}

/// What was done to a table, and what of it is vouched for.
#[derive(Clone, Debug, Default)]
pub struct Past {
    keys: HashMap<u64, History>,
    puts: u64,
    /// Has a policy that keeps part of a segment had to let a whole one go? The statistics tell.
    pub forced: bool,
}

impl Past {
    /// How many puts and removes were acknowledged.
    pub fn puts(&self) -> u64 {
        self.puts
    }

    pub fn note_forced(&mut self, table: &AnyTable) {
        self.forced |= table.stats().forced_evictions > 0;
    }

    fn attempt(&mut self, key: u64, version: Option<u64>) {
        let history = self.keys.entry(key).or_default();
        history.versions.push(version);
        history.put_at.push(self.puts + 1);
    }

    fn acknowledge(&mut self, key: u64, durability: Durability) {
        self.puts += 1;
        let history = self.keys.get_mut(&key).unwrap();
        history.acknowledged = history.versions.len() - 1;
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
    /// Puts many times, mixed with removes, lookups, syncs and flushes, until something fails.
    pub fn work(&mut self, table: &AnyTable, batches: usize) -> Result<()> {
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
                    self.past.puts += 1;
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

    fn put_one(&mut self, table: &AnyTable, key: u64) -> Result<()> {
        let version = self.version();
        self.past.attempt(key, Some(version));
        refused(table.insert(&self.setup.key(key), &self.setup.value(version)))?;
        self.past.acknowledge(key, self.setup.durability);
        Ok(())
    }

    fn put_many(&mut self, table: &AnyTable) -> Result<()> {
        let start = self.dice.below(KEYS - 120);
        let keys: Vec<u64> = (start..start + 120).collect();
        self.put_keys(table, &keys)
    }

    fn put_keys(&mut self, table: &AnyTable, keys: &[u64]) -> Result<()> {
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

    fn remove(&mut self, table: &AnyTable) -> Result<()> {
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

/// What looks on while a table lives: told which part of its life begins, and of the first failure while
/// the table is still there to be asked.
pub trait Witness {
    fn begins(&mut self, _part: &'static str) {}
    fn failed(&mut self, _table: &AnyTable, _error: &Error) {}
}

/// Somebody who does not care.
impl Witness for () {}

/// Creates, works, makes and drops a second table, closes, opens, works on, is killed, opens once more,
/// works and closes; until something fails.
pub fn live(
    device: &Arc<dyn Device>,
    setup: Setup,
    seed: u64,
    past: &mut Past,
    witness: &mut dyn Witness,
) -> Result<()> {
    let mut run = Run { setup, past, dice: Dice(seed) };
    witness.begins("create");
    let volume = Volume::create(Arc::clone(device), setup.volume_options())?;
    let table = setup.create_table(&volume, "t")?;
    run.phase(&table, witness, "work", |run| {
        run.put_keys(&table, &(KEYS..KEYS + PINNED).collect::<Vec<_>>())?;
        run.work(&table, 60)
    })?;
    run.phase(&table, witness, "second table", |_| {
        let other = setup.create_table(&volume, "u")?;
        other.insert(&setup.key(1), &setup.value(1))?;
        other.close()?;
        Ok(volume.drop_structure("u")?)
    })?;
    run.close(table, witness)?;
    drop(volume);
    for (open, killed) in [("open", true), ("replay", false)] {
        witness.begins(open);
        let volume = Volume::open(Arc::clone(device), setup.open_options())?;
        let table = setup.open_table(&volume, "t")?;
        run.phase(&table, witness, "look", |run| check(&table, setup, run.past, "alive"))?;
        run.phase(&table, witness, "work", |run| run.work(&table, 40))?;
        if killed {
            // From here on nothing is saved, as if the process were gone.
            volume.poison().set(&"killed");
        } else {
            run.close(table, witness)?;
        }
    }
    Ok(())
}

impl Run<'_> {
    fn phase(
        &mut self,
        table: &AnyTable,
        witness: &mut dyn Witness,
        part: &'static str,
        act: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        witness.begins(part);
        let result = act(self);
        self.past.note_forced(table);
        result.inspect_err(|error| witness.failed(table, error))
    }

    fn close(&mut self, table: AnyTable, witness: &mut dyn Witness) -> Result<()> {
        self.phase(&table, witness, "close", |_| table.flush())?;
        table.close()?;
        self.past.synced();
        Ok(())
    }
}

/// May a key whose durable version is this old be gone?
fn may_be_evicted(setup: Setup, past: &Past, history: &History) -> bool {
    // Live entries are a fifth of what the ring holds, so that partial discards keep all of them.
    let partial = matches!(setup.policy, Policy::Update | Policy::Threshold(_));
    let keeps = setup.roomy || partial && !past.forced;
    let window = match setup.slices {
        Some(_) => setup.window(),
        None => setup.buffer_entries(),
    };
    !keeps && past.puts.saturating_sub(history.put_at[history.durable]) > window
}

/// Compares what a table holds with the law, and takes it as what it was from now on.
pub fn check(table: &AnyTable, setup: Setup, past: &mut Past, story: &str) -> Result<()> {
    past.note_forced(table);
    let numbers: Vec<u64> = (0..KEYS + PINNED).collect();
    let keys: Vec<_> = numbers.iter().map(|key| setup.key(*key)).collect();
    let borrowed: Vec<_> = keys.iter().map(|key| &key[..]).collect();
    let found = table.get_many(&borrowed)?;
    if setup.policy == Policy::Lru {
        // What is found is put back, and so makes others old.
        past.puts += KEYS + PINNED;
    }
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
        if gone && found.is_none() {
            // Evicted, perhaps, and a crash before the next checkpoint may bring it back as it was. What was
            // not vouched for may be lost instead, and no later sync vouches for that.
            history.acknowledged = history.durable;
            continue;
        }
        let seen = history.versions.iter().rposition(matches);
        history.put_at = vec![seen.map_or(0, |seen| history.put_at[seen])];
        history.versions = vec![seen.and_then(|seen| history.versions[seen])];
        (history.durable, history.acknowledged) = (0, 0);
    }
    Ok(())
}

/// Opens the table, and the second one where the end came before that was dropped: else its updates would
/// keep their place in the log.
pub fn open_all(device: Arc<dyn Device>, setup: Setup) -> Result<AnyTable> {
    let volume = Volume::open(device, setup.open_options())?;
    let table = setup.open_table(&volume, "t")?;
    match setup.open_table(&volume, "u") {
        Ok(other) => other.close()?,
        Err(Error::Store(nandex::store::Error::NoSuchStructure { .. })) => {}
        Err(error) => return Err(error),
    }
    Ok(table)
}

/// Recovers from what survived, checks, works on, and opens once more.
pub fn recover(image: Image, setup: Setup, past: &Past, story: &str) {
    let device: Arc<dyn Device> = Arc::new(SimDevice::instant().with_image(image));
    let mut past = past.clone();
    let open = || match open_all(Arc::clone(&device), setup) {
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
    table.flush().unwrap_or_else(|error| panic!("{story}, flushing: {error}"));
    past.note_forced(&table);
    table.close().unwrap_or_else(|error| panic!("{story}, closing: {error}"));
    past.synced();
    let table = open_all(Arc::clone(&device), setup);
    let table = table.unwrap_or_else(|error| panic!("{story}, once more: {error}"));
    let story = format!("{story}, once more");
    check(&table, setup, &mut past, &story).unwrap_or_else(|error| panic!("{story}: {error}"));
}
