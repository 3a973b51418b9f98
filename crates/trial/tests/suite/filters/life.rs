//! The life of a filter that something may end at any moment, and the law of what is found afterwards.
//!
//! For each key, the counts it had are numbered; `durable` is the newest that the durability mode vouches
//! for. What is found is that count or a later one, the one in flight included. Fingerprints are of so many
//! that no two keys have the same, so counts must be exact.

use std::collections::HashMap;
use std::sync::Arc;

use nandex::cascade::Cascade;
use nandex::device::Device;
use nandex::{Counter, Durability, Error, Filter, Result, Volume};
use nandex_sim::{Image, SimDevice};

use super::runner::key;
use super::support::Setup;
use crate::chance::Dice;

/// Keys that come and go.
const KEYS: u64 = 600;

/// Every count that a key has had, the oldest first.
#[derive(Clone, Debug)]
struct History {
    counts: Vec<i64>,
    durable: usize,
    /// Counts after this one were not acknowledged.
    acknowledged: usize,
}

impl Default for History {
    fn default() -> Self {
        Self { counts: vec![0], durable: 0, acknowledged: 0 }
    }
}

/// What was done to a filter, and what of it is vouched for.
#[derive(Clone, Debug, Default)]
pub struct Past {
    keys: HashMap<u64, History>,
    updates: u64,
    merges: u64,
}

impl Past {
    /// How many updates were acknowledged.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Merges that the filter has told of.
    pub fn merges(&self) -> u64 {
        self.merges
    }

    fn held(&self, number: u64) -> i64 {
        self.keys.get(&number).and_then(|history| history.counts.last()).copied().unwrap_or(0)
    }

    fn attempt(&mut self, number: u64, amount: i64) {
        let count = self.held(number) + amount;
        self.keys.entry(number).or_default().counts.push(count);
    }

    fn acknowledge(&mut self, numbers: &[u64], durability: Durability) {
        self.updates += numbers.len() as u64;
        for number in numbers {
            let history = self.keys.get_mut(number).unwrap();
            history.acknowledged = history.counts.len() - 1;
            if durability == Durability::Always {
                history.durable = history.acknowledged;
            }
        }
    }

    /// All counts, as the last update left them.
    fn sum(&self) -> i128 {
        let last = |history: &History| history.counts.last().copied().map(i128::from);
        self.keys.values().filter_map(last).sum()
    }

    pub fn synced(&mut self) {
        self.keys.values_mut().for_each(|history| history.durable = history.acknowledged);
    }
}

/// One run: a filter, what is done to it, and the dice that choose.
pub struct Run<'a> {
    pub setup: Setup,
    pub past: &'a mut Past,
    pub dice: Dice,
}

impl Run<'_> {
    /// Inserts many times, mixed with deletes, counts, lookups, syncs and flushes, until something fails.
    pub fn work(&mut self, filter: &Cascade, batches: usize) -> Result<()> {
        for _ in 0..batches {
            match self.dice.below(20) {
                0 => self.saved(Filter::sync(filter))?,
                1 => self.saved(Filter::flush(filter))?,
                2 => filter.compact()?,
                3..6 => self.insert_one(filter)?,
                6..10 => self.delete_many(filter)?,
                10 | 11 => self.add(filter)?,
                12 => self.look_up(filter)?,
                _ => self.insert_many(filter)?,
            }
        }
        Ok(())
    }

    fn saved(&mut self, result: Result<()>) -> Result<()> {
        result?;
        self.past.synced();
        Ok(())
    }

    fn numbers(&mut self, count: u64) -> Vec<u64> {
        let start = self.dice.below(KEYS);
        (start..start + count).map(|number| number % KEYS).collect()
    }

    fn updated(&mut self, numbers: &[u64], result: Result<()>) -> Result<()> {
        result?;
        self.past.acknowledge(numbers, self.setup.durability);
        Ok(())
    }

    fn insert_one(&mut self, filter: &Cascade) -> Result<()> {
        let number = self.dice.below(KEYS);
        self.past.attempt(number, 1);
        let result = filter.insert(&key(number));
        self.updated(&[number], result)
    }

    fn insert_many(&mut self, filter: &Cascade) -> Result<()> {
        let count = 20 + self.dice.below(100);
        let numbers = self.numbers(count);
        numbers.iter().for_each(|number| self.past.attempt(*number, 1));
        let keys: Vec<_> = numbers.iter().map(|number| key(*number)).collect();
        let result = filter.insert_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>());
        self.updated(&numbers, result)
    }

    fn delete_many(&mut self, filter: &Cascade) -> Result<()> {
        let mut numbers = self.numbers(80);
        numbers.retain(|number| self.past.held(*number) > 0);
        numbers.iter().for_each(|number| self.past.attempt(*number, -1));
        let keys: Vec<_> = numbers.iter().map(|number| key(*number)).collect();
        let result = filter.delete_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>());
        self.updated(&numbers, result)
    }

    fn add(&mut self, filter: &Cascade) -> Result<()> {
        for number in self.numbers(10) {
            let held = self.past.held(number);
            let amount = if held > 2 { -held } else { 1 << self.dice.below(40) };
            self.past.attempt(number, amount);
            let result = filter.add(&key(number), amount);
            self.updated(&[number], result)?;
        }
        Ok(())
    }

    fn look_up(&mut self, filter: &Cascade) -> Result<()> {
        for number in self.numbers(10) {
            let found = filter.contains(&key(number))?;
            assert_eq!(found, self.past.held(number) > 0, "key {number}, alive");
        }
        Ok(())
    }
}

/// What looks on while a filter lives: told which part of its life begins, and of the first failure while
/// the filter is still there to be asked.
pub trait Witness {
    fn begins(&mut self, _part: &'static str) {}
    fn failed(&mut self, _filter: &Cascade, _error: &Error) {}
}

/// Somebody who does not care.
impl Witness for () {}

/// Creates, works, makes and drops a second filter, closes, opens, works on, is killed, opens once more,
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
    let filter = setup.create_filter(&volume, "f")?;
    run.phase(&filter, witness, "work", |run| run.work(&filter, 60))?;
    run.phase(&filter, witness, "second filter", |_| {
        let other = setup.create_filter(&volume, "g")?;
        other.insert(&key(1))?;
        Filter::flush(&other)?;
        other.close()?;
        Ok(volume.drop_structure("g")?)
    })?;
    run.close(filter, witness)?;
    drop(volume);
    for (open, killed) in [("open", true), ("replay", false)] {
        witness.begins(open);
        let volume = Volume::open(Arc::clone(device), setup.open_options())?;
        let filter = setup.open_filter(&volume, "f")?;
        run.phase(&filter, witness, "look", |run| check(&filter, run.past, "alive"))?;
        run.phase(&filter, witness, "work", |run| run.work(&filter, 40))?;
        if killed {
            // From here on nothing is saved, as if the process were gone.
            volume.poison().set(&"killed");
        } else {
            run.close(filter, witness)?;
        }
    }
    Ok(())
}

impl Run<'_> {
    fn phase(
        &mut self,
        filter: &Cascade,
        witness: &mut dyn Witness,
        part: &'static str,
        act: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        witness.begins(part);
        let before = Filter::stats(filter).merges;
        let result = act(self);
        self.past.merges += Filter::stats(filter).merges - before;
        result.inspect_err(|error| witness.failed(filter, error))
    }

    fn close(&mut self, filter: Cascade, witness: &mut dyn Witness) -> Result<()> {
        self.phase(&filter, witness, "close", |_| Filter::flush(&filter))?;
        filter.close()?;
        self.past.synced();
        Ok(())
    }
}

/// Compares what a filter holds with the law, and takes it as what it was from now on.
pub fn check(filter: &Cascade, past: &mut Past, story: &str) -> Result<()> {
    let numbers: Vec<u64> = (0..KEYS + 50).collect();
    let keys: Vec<_> = numbers.iter().map(|number| key(*number)).collect();
    let borrowed: Vec<_> = keys.iter().map(|key| &key[..]).collect();
    let counts = filter.count_many(&borrowed)?;
    let there = filter.contains_many(&borrowed)?;
    let mut sum = 0;
    for ((number, count), there) in numbers.into_iter().zip(counts).zip(there) {
        assert_eq!(there, count > 0, "{story}: key {number} is counted {count} times");
        sum += i128::from(count);
        let history = past.keys.entry(number).or_default();
        let found = i64::try_from(count).unwrap();
        let possible = history.counts[history.durable..].contains(&found);
        assert!(possible, "{story}: key {number} is there {count} times, of {history:?}");
        *history = History { counts: vec![found], durable: 0, acknowledged: 0 };
    }
    assert_eq!(past.sum(), sum, "{story}");
    Ok(())
}

/// Compares the sum of what iteration gives with what [`check`] has found. It saves the buffers.
pub fn check_entries(filter: &Cascade, past: &Past, story: &str) -> Result<()> {
    let (mut sum, mut before) = (0, None);
    for entry in filter.iter()? {
        let entry = entry?;
        assert!(entry.count > 0 && before < Some(entry.fingerprint), "{story}: {entry:?}");
        before = Some(entry.fingerprint);
        sum += i128::from(entry.count);
    }
    assert_eq!(sum, past.sum(), "{story}: what iteration gives");
    Ok(())
}

/// Opens the filter, and the second one where the end came before that was dropped: else its updates would
/// keep their place in the log.
pub fn open_all(device: Arc<dyn Device>, setup: Setup) -> Result<Cascade> {
    let volume = Volume::open(device, setup.open_options())?;
    let filter = setup.open_filter(&volume, "f")?;
    match setup.open_filter(&volume, "g") {
        Ok(other) => other.close()?,
        Err(Error::Store(nandex::store::Error::NoSuchStructure { .. })) => {}
        Err(error) => return Err(error),
    }
    Ok(filter)
}

/// Recovers from what survived, checks, works on, and opens once more.
pub fn recover(image: Image, setup: Setup, past: &Past, story: &str) {
    let device: Arc<dyn Device> = Arc::new(SimDevice::instant().with_image(image));
    let mut past = past.clone();
    let filter = match open_all(Arc::clone(&device), setup) {
        // The cut may have come before the filter was there.
        Err(_) if past.updates() == 0 => return,
        filter => filter.unwrap_or_else(|error| panic!("{story}: {error}")),
    };
    check(&filter, &mut past, story).unwrap_or_else(|error| panic!("{story}: {error}"));
    let mut run = Run { setup, past: &mut past, dice: Dice(5) };
    run.work(&filter, 12).unwrap_or_else(|error| panic!("{story}, working on: {error}"));
    filter.close().unwrap_or_else(|error| panic!("{story}, closing: {error}"));
    past.synced();
    let filter = open_all(Arc::clone(&device), setup);
    let filter = filter.unwrap_or_else(|error| panic!("{story}, once more: {error}"));
    let story = format!("{story}, once more");
    check(&filter, &mut past, &story).unwrap_or_else(|error| panic!("{story}: {error}"));
    check_entries(&filter, &past, &story).unwrap_or_else(|error| panic!("{story}: {error}"));
    drop(filter);
    let report = nandex::check(device, None, &mut |_| {});
    let report = report.unwrap_or_else(|error| panic!("{story}: {error}"));
    assert!(report.ok(), "{story}: {:#?}", report.findings);
}
