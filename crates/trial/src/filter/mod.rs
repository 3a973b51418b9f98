//! Cascade filters under trial: their calls, and what they must answer.

mod oracle;
mod setup;

use std::sync::Arc;

use nandex::cascade::{Cascade, Entry};
use nandex::device::Device;
use nandex::{Counter, Durability, Filter, Volume};
use nandex_sim::workload::SplitMix64;

pub use oracle::{Found, Past};
pub use setup::Setup;

use crate::subject::{Stop, Subject, Trust, fold, pick};

/// A call that has been made and is not settled.
#[derive(Clone, Debug)]
enum Pending {
    /// Nothing that the past would note.
    Nothing,
    Made,
    Updated(Vec<u64>),
    /// All that was acknowledged before it is durable.
    Synced,
}

/// A filter, its oracle, and what it was asked.
pub struct Subjected {
    setup: Setup,
    past: Past,
    open: Option<(Volume, Cascade)>,
    pending: Pending,
    is_made: bool,
    trust: Trust,
    answers: u64,
    refusals: u64,
}

/// The bytes of a key: of many lengths, none of them twice.
fn key_of(number: u64) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(8 + (number % 23) as usize, 0x5a);
    bytes
}

impl Subjected {
    /// Nothing yet, on no device.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        Self {
            setup,
            past: Past::new(setup.keys(), setup.is_exact()),
            open: None,
            pending: Pending::Nothing,
            is_made: false,
            trust: Trust::Right,
            answers: 0,
            refusals: 0,
        }
    }

    fn filter(&self) -> &Cascade {
        let (_, filter) = self.open.as_ref().expect("only what is open is asked");
        filter
    }

    fn volume(&self) -> &Volume {
        let (volume, _) = self.open.as_ref().expect("only what is open is asked");
        volume
    }

    /// So many neighbouring keys from a random one on, none of them twice.
    fn run(&self, dice: &mut SplitMix64, count_max: u64) -> Vec<u64> {
        let count_max = count_max.min(self.past.keys());
        let (count, start) = (1 + dice.below(count_max), dice.below(self.past.keys()));
        (start..start + count).map(|key| key % self.past.keys()).collect()
    }

    fn updated(&mut self, keys: &[u64], result: nandex::Result<()>) -> Result<(), Stop> {
        result?;
        self.pending = Pending::Updated(keys.to_vec());
        Ok(())
    }

    fn insert_many(&mut self, keys: &[u64]) -> Result<(), Stop> {
        keys.iter().for_each(|key| self.past.attempt(*key, 1));
        let bytes: Vec<_> = keys.iter().map(|key| key_of(*key)).collect();
        let borrowed: Vec<_> = bytes.iter().map(|key| &key[..]).collect();
        let result = match borrowed[..] {
            [one] => self.filter().insert(one),
            _ => self.filter().insert_many(&borrowed),
        };
        self.updated(keys, result)
    }

    /// Takes one insert back of each key that is there for sure.
    fn delete_many(&mut self, keys: &[u64]) -> Result<(), Stop> {
        let keys: Vec<_> = keys.iter().copied().filter(|key| self.past.held(*key) > 0).collect();
        keys.iter().for_each(|key| self.past.attempt(*key, -1));
        let bytes: Vec<_> = keys.iter().map(|key| key_of(*key)).collect();
        let borrowed: Vec<_> = bytes.iter().map(|key| &key[..]).collect();
        let result = match borrowed[..] {
            [one] => self.filter().delete(one),
            _ => self.filter().delete_many(&borrowed),
        };
        self.updated(&keys, result)
    }

    /// Adds amounts, and takes away from every third key what it has.
    fn add_many(&mut self, keys: &[u64], dice: &mut SplitMix64) -> Result<(), Stop> {
        let mut amounts = Vec::with_capacity(keys.len());
        for &key in keys {
            let held = self.past.held(key);
            let takes = held > 0 && dice.below(3) == 0;
            let amount = if takes { -held } else { pick(dice, &[1, 2, 300, 1 << 33]) };
            self.past.attempt(key, amount);
            amounts.push((key_of(key), amount));
        }
        let borrowed: Vec<_> = amounts.iter().map(|(key, amount)| (&key[..], *amount)).collect();
        let result = self.filter().add_many(&borrowed);
        self.updated(keys, result)
    }

    fn synced(&mut self, result: nandex::Result<()>) -> Result<(), Stop> {
        result?;
        self.pending = Pending::Synced;
        Ok(())
    }

    fn judge(&mut self, key: u64, found: Found) -> Result<(), Stop> {
        let number = match found {
            Found::Presence(found) => u64::from(found),
            Found::Count(count) => count.wrapping_add(2),
        };
        self.answers = fold(self.answers, number);
        self.past.judge(key, found, self.trust).map_err(Stop::Wrong)
    }

    /// Takes a lookup's error for an answer where the device lies.
    fn allowed<T>(&mut self, result: nandex::Result<T>) -> Result<Option<T>, Stop> {
        match result {
            Ok(answer) => Ok(Some(answer)),
            Err(_) if self.trust > Trust::Right => {
                self.refusals += 1;
                self.answers = fold(self.answers, u64::MAX);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn contains(&mut self, key: u64) -> Result<(), Stop> {
        let result = self.filter().contains(&key_of(key));
        match self.allowed(result)? {
            Some(found) => self.judge(key, Found::Presence(found)),
            None => Ok(()),
        }
    }

    fn contains_many(&mut self, keys: &[u64]) -> Result<(), Stop> {
        let bytes: Vec<_> = keys.iter().map(|key| key_of(*key)).collect();
        let borrowed: Vec<_> = bytes.iter().map(|key| &key[..]).collect();
        let result = self.filter().contains_many(&borrowed);
        let Some(found) = self.allowed(result)? else { return Ok(()) };
        keys.iter().zip(found).try_for_each(|(key, it)| self.judge(*key, Found::Presence(it)))
    }

    fn count(&mut self, key: u64) -> Result<Option<u64>, Stop> {
        let result = self.filter().count(&key_of(key));
        let Some(count) = self.allowed(result)? else { return Ok(None) };
        self.judge(key, Found::Count(count))?;
        Ok(Some(count))
    }

    fn count_many(&mut self, keys: &[u64]) -> Result<Option<Vec<u64>>, Stop> {
        let bytes: Vec<_> = keys.iter().map(|key| key_of(*key)).collect();
        let borrowed: Vec<_> = bytes.iter().map(|key| &key[..]).collect();
        let result = self.filter().count_many(&borrowed);
        let Some(counts) = self.allowed(result)? else { return Ok(None) };
        for (key, count) in keys.iter().zip(&counts) {
            self.judge(*key, Found::Count(*count))?;
        }
        Ok(Some(counts))
    }

    /// Iteration saves what is buffered first.
    fn iterate(&mut self) -> Result<(), Stop> {
        let entries = self.filter().iter()?;
        self.pending = Pending::Synced;
        let entries: nandex::Result<Vec<Entry>> = entries.collect();
        let Some(entries) = self.allowed(entries)? else { return Ok(()) };
        if !entries.is_sorted_by(|one, next| one.fingerprint < next.fingerprint) {
            return Err(Stop::Wrong("iteration gives fingerprints out of order, or twice".into()));
        }
        let sum = entries.iter().map(|entry| i128::from(entry.count)).sum();
        self.answers = fold(self.answers, entries.len() as u64);
        self.past.judge_sum(sum, self.trust).map_err(Stop::Wrong)
    }

    fn look_up(&mut self, dice: &mut SplitMix64, key: u64) -> Result<(), Stop> {
        let keys = self.run(dice, 40);
        match dice.below(4) {
            0 => self.contains(key),
            1 => self.count(key).map(drop),
            2 => self.contains_many(&keys),
            _ => self.count_many(&keys).map(drop),
        }
    }
}

impl Subject for Subjected {
    fn describe(&self) -> String {
        format!("{:?}", self.setup)
    }

    fn make(&mut self, device: Arc<dyn Device>) -> Result<(), Stop> {
        self.pending = Pending::Nothing;
        self.open = Some(self.setup.create(device)?);
        self.pending = Pending::Made;
        Ok(())
    }

    fn open(&mut self, device: Arc<dyn Device>) -> Result<(), Stop> {
        self.past.reopened();
        self.pending = Pending::Nothing;
        self.open = Some(self.setup.open(device)?);
        // A cut may have come between making it and hearing so.
        self.is_made = true;
        Ok(())
    }

    fn is_made(&self) -> bool {
        self.is_made
    }

    fn act(&mut self, dice: &mut SplitMix64) -> Result<(), Stop> {
        self.pending = Pending::Nothing;
        let key = dice.below(self.past.keys());
        match dice.below(24) {
            0..=2 => self.insert_many(&[key]),
            3..=8 => {
                let keys = self.run(dice, 60);
                self.insert_many(&keys)
            }
            9 => self.delete_many(&[key]),
            10..=12 => {
                let keys = self.run(dice, 60);
                self.delete_many(&keys)
            }
            13 | 14 => {
                let keys = self.run(dice, 12);
                self.add_many(&keys, dice)
            }
            15..=18 => self.look_up(dice, key),
            19 => self.iterate(),
            20 => {
                let result = Filter::sync(self.filter());
                self.synced(result)
            }
            21 => {
                let result = Filter::flush(self.filter());
                self.synced(result)
            }
            22 => {
                let result = self.filter().compact();
                self.synced(result)
            }
            _ => {
                self.volume().checkpoint()?;
                // Without a log, what is buffered is durable only when it is flushed.
                if self.setup.durability != Durability::Never {
                    self.pending = Pending::Synced;
                }
                Ok(())
            }
        }
    }

    fn settle(&mut self) {
        match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Nothing => {}
            Pending::Made => self.is_made = true,
            Pending::Updated(keys) => {
                let is_durable = self.setup.durability == Durability::Always;
                keys.iter().for_each(|key| self.past.acknowledge(*key, is_durable));
            }
            Pending::Synced => self.past.synced(),
        }
    }

    fn check(&mut self) -> Result<(), Stop> {
        let keys: Vec<_> = (0..self.past.keys()).collect();
        let counts = if self.trust == Trust::Right { self.count_many(&keys)? } else { None };
        if let Some(counts) = counts {
            for (key, count) in keys.iter().zip(counts) {
                self.past.settle(*key, count, self.trust);
            }
            return self.contains_many(&keys);
        }
        // One by one, so that one error hides no other key's answer.
        for key in keys {
            if let Some(count) = self.count(key)? {
                self.past.settle(key, count, self.trust);
            }
        }
        Ok(())
    }

    fn must_refuse(&mut self) -> Result<(), Stop> {
        self.past.attempt(0, 1);
        let result = self.filter().insert(&key_of(0));
        let synced = Filter::sync(self.filter());
        match (result, synced) {
            (Err(_), Err(_)) => Ok(()),
            (insert, sync) => Err(Stop::Wrong(format!(
                "after a failed write or sync an insert gave {insert:?} and a sync {sync:?}"
            ))),
        }
    }

    fn close(&mut self) -> Result<(), Stop> {
        self.pending = Pending::Nothing;
        if let Some((volume, filter)) = self.open.take() {
            filter.close()?;
            drop(volume);
        }
        self.pending = Pending::Synced;
        Ok(())
    }

    fn kill(&mut self) {
        if let Some((volume, filter)) = self.open.take() {
            volume.poison().set(&"killed");
            drop((filter, volume));
        }
    }

    fn trust(&mut self, trust: Trust) {
        self.trust = self.trust.max(trust);
    }

    fn fork(&self) -> Box<dyn Subject> {
        let Self { setup, trust, is_made, .. } = *self;
        let past = self.past.clone();
        Box::new(Self { past, trust, is_made, ..Self::new(setup) })
    }

    fn answers(&self) -> u64 {
        self.answers
    }

    fn refusals(&self) -> u64 {
        self.refusals
    }
}
