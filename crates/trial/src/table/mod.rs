//! Tables of every kind under trial: their calls, and what they must answer.

mod bufferhash;
mod setup;
mod slicehash;

use std::sync::Arc;

use nandex::device::Device;
use nandex::{AnyTable, Durability, Error, Table, Volume};
use nandex_sim::workload::SplitMix64;

pub use bufferhash::Rings;
pub use setup::{DURABILITIES, Kind, Setup, Widths};
pub use slicehash::Slices;

use crate::oracle::{Found, Past};
use crate::subject::{Stop, Subject, Trust, fold};

/// A call that has been made and is not settled.
#[derive(Clone, Debug)]
enum Pending {
    /// Nothing that the past would note: a lookup, or an update that was refused for want of room.
    Nothing,
    Made,
    Updated(Vec<u64>),
    /// All that was acknowledged before it is durable.
    Synced,
}

/// A table, its oracle, and what it was asked.
pub struct Subjected {
    setup: Setup,
    past: Past,
    open: Option<(Volume, AnyTable)>,
    pending: Pending,
    is_made: bool,
    trust: Trust,
    answers: u64,
    refusals: u64,
}

impl Subjected {
    /// Nothing yet, on no device.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let past = Past::new(setup.keys(), setup.window());
        Self {
            setup,
            past,
            open: None,
            pending: Pending::Nothing,
            is_made: false,
            trust: Trust::Right,
            answers: 0,
            refusals: 0,
        }
    }

    fn table(&self) -> &AnyTable {
        let (_, table) = self.open.as_ref().expect("only what is open is asked");
        table
    }

    fn volume(&self) -> &Volume {
        let (volume, _) = self.open.as_ref().expect("only what is open is asked");
        volume
    }

    /// So many neighbouring keys from a random one on.
    fn run(&self, dice: &mut SplitMix64, count_max: u64) -> Vec<u64> {
        let (count, start) = (1 + dice.below(count_max), dice.below(self.past.keys()));
        (start..start + count).map(|key| key % self.past.keys()).collect()
    }

    fn updated(&mut self, keys: &[u64], result: nandex::Result<()>) -> Result<(), Stop> {
        match result {
            // Each pair of a refused batch is in or not, so the attempts stay possible.
            Err(Error::Full { .. }) => Ok(()),
            result => {
                result?;
                self.pending = Pending::Updated(keys.to_vec());
                Ok(())
            }
        }
    }

    fn insert(&mut self, key: u64) -> Result<(), Stop> {
        let put = self.past.attempt(key, false);
        let result = self.table().insert(&self.setup.key(key), &self.setup.value(key, put));
        self.updated(&[key], result)
    }

    fn insert_many(&mut self, keys: &[u64]) -> Result<(), Stop> {
        let mut pairs = Vec::with_capacity(keys.len());
        for &key in keys {
            let put = self.past.attempt(key, false);
            pairs.push((self.setup.key(key), self.setup.value(key, put)));
        }
        let borrowed: Vec<_> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        let result = self.table().insert_many(&borrowed);
        self.updated(keys, result)
    }

    fn remove(&mut self, key: u64) -> Result<(), Stop> {
        self.past.attempt(key, true);
        let result = self.table().remove(&self.setup.key(key));
        self.updated(&[key], result)
    }

    fn synced(&mut self, result: nandex::Result<()>) -> Result<(), Stop> {
        result?;
        self.pending = Pending::Synced;
        Ok(())
    }

    /// What a value proves.
    fn read(&self, key: u64, found: Option<&[u8]>) -> Found {
        let Some(found) = found else { return Found::Nothing };
        let Some(head) = found.first_chunk::<8>() else {
            return if found.is_empty() { Found::Some } else { Found::Foreign };
        };
        let put = u64::from_le_bytes(*head) >> 16;
        if found == self.setup.value(key, put) { Found::Put(put) } else { Found::Foreign }
    }

    fn judge(&mut self, key: u64, found: Found) -> Result<(), Stop> {
        let number = match found {
            Found::Nothing => 0,
            Found::Put(put) => 2 + put,
            Found::Some | Found::Foreign => 1,
        };
        self.answers = fold(self.answers, number);
        if self.setup.lookups_age() {
            self.past.aged();
        }
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

    fn get(&mut self, key: u64) -> Result<Option<Found>, Stop> {
        let result = self.table().get(&self.setup.key(key));
        let Some(found) = self.allowed(result)? else { return Ok(None) };
        let found = self.read(key, found.as_deref());
        self.judge(key, found)?;
        Ok(Some(found))
    }

    fn get_many(&mut self, keys: &[u64]) -> Result<Option<Vec<Found>>, Stop> {
        let bytes: Vec<_> = keys.iter().map(|key| self.setup.key(*key)).collect();
        let borrowed: Vec<_> = bytes.iter().map(|key| &key[..]).collect();
        let result = self.table().get_many(&borrowed);
        let Some(values) = self.allowed(result)? else { return Ok(None) };
        let pairs = keys.iter().zip(&values);
        let found: Vec<_> = pairs.map(|(key, value)| self.read(*key, value.as_deref())).collect();
        for (key, found) in keys.iter().zip(&found) {
            self.judge(*key, *found)?;
        }
        Ok(Some(found))
    }

    fn iterate(&mut self) -> Result<(), Stop> {
        let mut seen = vec![None; self.past.keys() as usize];
        let pairs: nandex::Result<Vec<_>> = self.table().iter().collect();
        let Some(pairs) = self.allowed(pairs)? else { return Ok(()) };
        for (bytes, value) in pairs {
            let number = bytes.first_chunk::<8>().map(|head| u64::from_le_bytes(*head));
            let key = number.filter(|key| *key < self.past.keys() && self.setup.key(*key) == bytes);
            let Some(key) = key else {
                return Err(Stop::Wrong(format!("iteration gives the foreign key {bytes:?}")));
            };
            let found = self.read(key, Some(&value));
            if seen[key as usize].replace(found).is_some() && self.trust < Trust::EverOrError {
                return Err(Stop::Wrong(format!("iteration gives key {key} twice")));
            }
        }
        for (key, found) in (0..).zip(seen) {
            self.judge(key, found.unwrap_or(Found::Nothing))?;
        }
        Ok(())
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
        match dice.below(20) {
            0..=2 => self.insert(key),
            3..=9 => {
                let keys = self.run(dice, (self.past.keys() / 2).min(60));
                self.insert_many(&keys)
            }
            10 | 11 => self.remove(key),
            12 | 13 => self.get(key).map(drop),
            14 | 15 => {
                let keys = self.run(dice, 40);
                self.get_many(&keys).map(drop)
            }
            16 => self.iterate(),
            17 => {
                let result = self.table().sync();
                self.synced(result)
            }
            18 => {
                let result = self.table().flush();
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
        let found = if self.trust == Trust::Right { self.get_many(&keys)? } else { None };
        if let Some(found) = found {
            keys.iter().zip(found).for_each(|(key, found)| self.past.settle(*key, found));
            return Ok(());
        }
        // One by one, so that one error hides no other key's answer.
        for key in keys {
            if let Some(found) = self.get(key)? {
                self.past.settle(key, found);
            }
        }
        Ok(())
    }

    fn must_refuse(&mut self) -> Result<(), Stop> {
        let put = self.past.attempt(0, false);
        let result = self.table().insert(&self.setup.key(0), &self.setup.value(0, put));
        let synced = self.table().sync();
        match (result, synced) {
            (Err(_), Err(_)) => Ok(()),
            (insert, sync) => Err(Stop::Wrong(format!(
                "after a failed write or sync an insert gave {insert:?} and a sync {sync:?}"
            ))),
        }
    }

    fn close(&mut self) -> Result<(), Stop> {
        self.pending = Pending::Nothing;
        if let Some((volume, table)) = self.open.take() {
            table.close()?;
            drop(volume);
        }
        self.pending = Pending::Synced;
        Ok(())
    }

    fn kill(&mut self) {
        if let Some((volume, table)) = self.open.take() {
            volume.poison().set(&"killed");
            drop((table, volume));
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
