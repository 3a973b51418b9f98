//! Filters of every kind under trial: their calls and their right answers.

mod bulk;
mod oracle;
mod setup;

use std::collections::BTreeSet;

use nandex::cascade::Cascade;
use nandex::raw::cascade::Entry;
use nandex::{AnyFilter, Counting, Volume, VolumeOptions};
use nandex_sim::workload::SplitMix64;

pub use oracle::{Found, Past};
pub use setup::{FilterSetup, further};

use crate::contract::{Contract, Stop, Trust, pick};
use crate::session::Session;

/// The amounts that are added.
const AMOUNTS: [i64; 4] = [1, 2, 300, 1 << 33];

impl Contract for FilterSetup {
    type Handle = AnyFilter;
    type Past = Past;

    fn past(&self) -> Past {
        Past::new(self.keys(), self.is_exact()).of_window(self.window())
    }

    fn volume_options(&self) -> VolumeOptions {
        self.volume()
    }

    fn create(&self, volume: &Volume, name: &str) -> nandex::Result<AnyFilter> {
        let (config, options) = self.made();
        AnyFilter::create_with(volume, name, &config, &options)
    }

    fn open(&self, volume: &Volume, name: &str) -> nandex::Result<AnyFilter> {
        AnyFilter::open(volume, name, &self.made().1)
    }

    fn without_threads(&self) -> Self {
        self.inline()
    }

    fn close(filter: AnyFilter) -> nandex::Result<()> {
        filter.close()
    }

    fn call(session: &mut Session<Self>, rng: &mut SplitMix64) -> Result<(), Stop> {
        let key = rng.below(session.past.count());
        match rng.below(30) {
            0..=2 => session.insert_many(&[key]),
            3..=8 => {
                let keys = session.run(rng, (session.past.count() / 4).max(60));
                session.insert_many(&keys)
            }
            9 => session.delete_many(&[key]),
            10..=12 => {
                let keys = session.run(rng, 60);
                session.delete_many(&keys)
            }
            13 | 14 => {
                let keys = session.run(rng, 12);
                session.add_many(&keys, rng)
            }
            15..=18 => session.look_up(rng, key),
            19 => session.iterate(),
            20 => {
                let result = session.handle().sync();
                session.synced(result)
            }
            21 => {
                let result = session.handle().flush();
                session.synced(result)
            }
            22 => session.compact(),
            23 => session.checkpoint(),
            24 => {
                let keys = session.run(rng, 60);
                session.insert_absent(&keys)
            }
            25 => {
                let keys = session.run(rng, 30);
                session.remove_many(&keys)
            }
            26 | 27 => {
                let keys = session.run(rng, (session.past.count() / 2).max(60));
                session.absorb(&keys, rng)
            }
            _ => {
                let keys = session.run(rng, 60);
                session.absorb_sorted(&keys, rng)
            }
        }
    }

    fn look(session: &mut Session<Self>) -> Result<(), Stop> {
        // Keys that share fingerprints may each be counted too high; the sum of all may not.
        session.iterate()?;
        let keys: Vec<_> = (0..session.past.count()).collect();
        let trust = session.trust();
        if session.handle().counter().is_none() {
            return match trust {
                Trust::Right => session.contains_many(&keys),
                _ => keys.into_iter().try_for_each(|key| session.contains(key)),
            };
        }
        let counts = if trust == Trust::Right { session.count_many(&keys)? } else { None };
        if let Some(counts) = counts {
            for (key, count) in keys.iter().zip(counts) {
                session.past.settle(*key, count, trust);
            }
            return session.contains_many(&keys);
        }
        // One by one, so that an error does not hide another key's answer.
        for key in keys {
            if let Some(count) = session.count(key)? {
                session.past.settle(key, count, trust);
            }
        }
        Ok(())
    }

    fn updates(session: &mut Session<Self>) -> Vec<(&'static str, nandex::Result<()>)> {
        let deletes = session.setup().deletes();
        session.past.attempt(0, 1);
        session.past.attempt(0, 1);
        if deletes {
            session.past.attempt(0, -1);
        }
        let (key, filter) = (session.setup().key(0), session.handle());
        let inserts =
            [("insert", filter.insert(&key)), ("insert_many", filter.insert_many(&[&key]))];
        let deleted = deletes.then(|| ("delete", filter.delete(&key)));
        let others = [("sync", filter.sync()), ("flush", filter.flush())];
        let tried = inserts.into_iter().chain(deleted).chain(others);
        tried.chain(session.bulk_updates()).collect()
    }
}

impl Session<FilterSetup> {
    /// Returns the cascade filter, for calls that only it has.
    fn cascade(&self) -> Option<&Cascade> {
        self.handle().of()
    }

    /// Returns the counting table, for calls that only it has.
    fn counting(&self) -> Option<&Counting> {
        self.handle().of()
    }

    /// Inserts each of these keys once, in one batch.
    ///
    /// # Errors
    /// Fails as [`Contract::call`] does.
    pub fn insert_many(&mut self, keys: &[u64]) -> Result<(), Stop> {
        keys.iter().for_each(|key| self.past.attempt(*key, 1));
        let bytes: Vec<_> = keys.iter().map(|key| self.setup().key(*key)).collect();
        let borrowed: Vec<_> = bytes.iter().map(|key| &key[..]).collect();
        let result = match borrowed[..] {
            [one] => self.handle().insert(one),
            _ => self.handle().insert_many(&borrowed),
        };
        self.updated(keys, result)
    }

    /// Deletes one insert of each key that is certainly present.
    ///
    /// # Errors
    /// Fails as [`Contract::call`] does.
    pub fn delete_many(&mut self, keys: &[u64]) -> Result<(), Stop> {
        if !self.setup().deletes() {
            return Ok(());
        }
        let keys: Vec<_> = keys.iter().copied().filter(|key| self.past.held(*key) > 0).collect();
        keys.iter().for_each(|key| self.past.attempt(*key, -1));
        let bytes: Vec<_> = keys.iter().map(|key| self.setup().key(*key)).collect();
        let borrowed: Vec<_> = bytes.iter().map(|key| &key[..]).collect();
        let result = match borrowed[..] {
            [one] => self.handle().delete(one),
            _ => self.handle().delete_many(&borrowed),
        };
        self.updated(&keys, result)
    }

    /// Adds amounts, and removes the whole count of every third key.
    fn add_many(&mut self, keys: &[u64], rng: &mut SplitMix64) -> Result<(), Stop> {
        let amounts = self.draw_amounts(keys, rng);
        let borrowed: Vec<_> = amounts.iter().map(|(key, amount)| (&key[..], *amount)).collect();
        let Some(counter) = self.handle().counter() else { return Ok(()) };
        let result = counter.add_many(&borrowed);
        self.updated(keys, result)
    }

    /// Draws an amount for each key, and records it as attempted; every third one subtracts the certain
    /// count.
    fn draw_amounts(&mut self, keys: &[u64], rng: &mut SplitMix64) -> Vec<(Vec<u8>, i64)> {
        let amount = |key: &u64| {
            let held = self.past.held(*key);
            let takes = held > 0 && rng.below(3) == 0;
            let amount = if takes { -held } else { pick(rng, &AMOUNTS) };
            self.past.attempt(*key, amount);
            (self.setup().key(*key), amount)
        };
        keys.iter().map(amount).collect()
    }

    fn judge(&mut self, key: u64, found: Found) -> Result<(), Stop> {
        let number = match found {
            Found::Presence(found) => u64::from(found),
            Found::Count(count) => count.wrapping_add(2),
        };
        self.note_answer(number);
        self.past.judge(key, found, self.trust()).map_err(Stop::Wrong)
    }

    fn contains(&mut self, key: u64) -> Result<(), Stop> {
        let result = self.handle().contains(&self.setup().key(key));
        match self.allowed(result)? {
            Some(found) => self.judge(key, Found::Presence(found)),
            None => Ok(()),
        }
    }

    fn contains_many(&mut self, keys: &[u64]) -> Result<(), Stop> {
        let bytes: Vec<_> = keys.iter().map(|key| self.setup().key(*key)).collect();
        let borrowed: Vec<_> = bytes.iter().map(|key| &key[..]).collect();
        let result = self.handle().contains_many(&borrowed);
        let Some(found) = self.allowed(result)? else { return Ok(()) };
        keys.iter().zip(found).try_for_each(|(key, it)| self.judge(*key, Found::Presence(it)))
    }

    fn count(&mut self, key: u64) -> Result<Option<u64>, Stop> {
        let Some(counter) = self.handle().counter() else { return Ok(None) };
        let result = counter.count(&self.setup().key(key));
        let Some(count) = self.allowed(result)? else { return Ok(None) };
        self.judge(key, Found::Count(count))?;
        Ok(Some(count))
    }

    fn count_many(&mut self, keys: &[u64]) -> Result<Option<Vec<u64>>, Stop> {
        let bytes: Vec<_> = keys.iter().map(|key| self.setup().key(*key)).collect();
        let borrowed: Vec<_> = bytes.iter().map(|key| &key[..]).collect();
        let Some(counter) = self.handle().counter() else { return Ok(None) };
        let result = counter.count_many(&borrowed);
        let Some(counts) = self.allowed(result)? else { return Ok(None) };
        for (key, count) in keys.iter().zip(&counts) {
            self.judge(*key, Found::Count(*count))?;
        }
        Ok(Some(counts))
    }

    fn iterate(&mut self) -> Result<(), Stop> {
        let entries: nandex::Result<Vec<(Vec<u8>, i64)>> = match (self.cascade(), self.counting()) {
            (Some(cascade), _) => {
                let of = |entry: Entry| (entry.fingerprint.to_be_bytes().to_vec(), entry.count);
                cascade.iter().map(|entry| entry.map(of)).collect()
            }
            (_, Some(counting)) => counting.iter().collect(),
            _ => return Ok(()),
        };
        let Some(entries) = self.allowed(entries)? else { return Ok(()) };
        let is_sorted = entries.is_sorted_by(|(one, _), (next, _)| one < next);
        let keys: BTreeSet<_> = entries.iter().map(|(key, _)| key).collect();
        if keys.len() < entries.len() || self.cascade().is_some() && !is_sorted {
            return Err(Stop::Wrong("iteration gives keys out of order, or twice".into()));
        }
        let sum = entries.iter().map(|(_, count)| i128::from(*count)).sum();
        self.note_answer(entries.len() as u64);
        self.past.judge_sum(sum, self.trust()).map_err(Stop::Wrong)
    }

    fn look_up(&mut self, rng: &mut SplitMix64, key: u64) -> Result<(), Stop> {
        let keys = self.run(rng, 40);
        match rng.below(4) {
            0 => self.contains(key),
            1 => self.count(key).map(drop),
            2 => self.contains_many(&keys),
            _ => self.count_many(&keys).map(drop),
        }
    }
}
