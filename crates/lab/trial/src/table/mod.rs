//! Tables of every kind under trial: their calls and their right answers.

mod bufferhash;
mod bulk;
mod oracle;
mod registered;
mod setup;
mod slicehash;

use std::fmt::Debug;

use nandex::testing::Retention;
use nandex::{
    AbsorbOptions, AnyConfig, AnyTable, OpenOptions, Prefer, Result, Table, Value, Volume,
    VolumeOptions,
};
use nandex_sim::workload::SplitMix64;

pub use bufferhash::Rings;
pub use oracle::{Found, Past};
pub use registered::{Registered, further};
pub use setup::{DURABILITIES, Kind, TableSetup, Widths, stretch};
pub use slicehash::Slices;

use crate::contract::{Contract, Stop, Trust, pick};
use crate::session::Session;

/// Returns the RAM for a cache: every second table has one, for some of its keys.
#[must_use]
pub fn cache_bytes(number: u64) -> u64 {
    if number.is_multiple_of(2) { 0 } else { 4 << 10 }
}

/// One configuration of a table. Its calls and its oracle are the same for all of them.
pub trait TableContract: Clone + Debug + Send + 'static {
    /// Returns the table's configuration, and the options to create and open it with.
    fn made(&self) -> (AnyConfig, OpenOptions);

    /// Returns the options for creating the volume.
    fn volume(&self) -> VolumeOptions;

    /// Returns the number of keys, at most 65,536.
    fn keys(&self) -> u64;

    /// Returns the entries that it must still have.
    fn retention(&self) -> Retention;

    /// Returns the minimum number of updates that it takes before it refuses one.
    fn full_from(&self) -> u64 {
        0
    }

    /// Returns the bytes of a key, which begin with its number.
    fn key(&self, number: u64) -> Vec<u8>;

    /// Returns the value that the put of a number gives the key: as long as allowed, it begins with the put's
    /// number above 16 bits of the key's.
    fn value(&self, key: u64, put: u64) -> Vec<u8>;

    /// Returns the configuration without background threads.
    #[must_use]
    fn inline(&self) -> Self;

    /// Returns the maximum number of keys in a batch of updates.
    fn batch_max(&self) -> u64 {
        (self.keys() / 2).min(120)
    }
}

impl<C: TableContract> Contract for C {
    type Handle = AnyTable;
    type Past = Past;

    fn past(&self) -> Past {
        Past::new(self.keys(), self.retention()).full_from(self.full_from())
    }

    fn volume_options(&self) -> VolumeOptions {
        self.volume()
    }

    /// Creates the table. One that grows and has no cache of its own uses the rest of its RAM.
    fn create(&self, volume: &Volume, name: &str) -> Result<AnyTable> {
        let (config, options) = self.made();
        Ok(AnyTable::create_with(volume, name, &config, &options)?.with_spare_ram())
    }

    fn open(&self, volume: &Volume, name: &str) -> Result<AnyTable> {
        Ok(AnyTable::open_with(volume, name, &self.made().1)?.with_spare_ram())
    }

    fn without_threads(&self) -> Self {
        TableContract::inline(self)
    }

    fn close(table: AnyTable) -> Result<()> {
        table.close()
    }

    fn call(session: &mut Session<Self>, rng: &mut SplitMix64) -> std::result::Result<(), Stop> {
        let key = rng.below(session.past.count());
        match rng.below(23) {
            0..=2 => session.insert(key),
            3..=9 => {
                let batch_max = session.setup().batch_max();
                let keys = session.run(rng, batch_max);
                session.insert_many(&keys)
            }
            10 | 11 => session.remove(key),
            12 | 13 => session.get(key).map(drop),
            14 | 15 => {
                let keys = session.run(rng, 40);
                session.get_many(&keys).map(drop)
            }
            16 => session.iterate(),
            17 => {
                let result = session.handle().sync();
                session.synced(result)
            }
            18 => {
                let result = session.handle().flush();
                session.synced(result)
            }
            19 => session.checkpoint(),
            20 => {
                let batch_max = session.setup().batch_max();
                let keys = session.run(rng, batch_max);
                session.get_or_insert_many(&keys)
            }
            _ => {
                let keys_max = 2 * session.setup().batch_max();
                let keys = session.run(rng, keys_max);
                session.absorb(&keys, pick(rng, &[Prefer::First, Prefer::Last]))
            }
        }
    }

    fn look(session: &mut Session<Self>) -> std::result::Result<(), Stop> {
        let keys: Vec<_> = (0..session.past.count()).collect();
        let is_right = session.trust() == Trust::Right;
        let found = if is_right { session.get_many(&keys)? } else { None };
        if let Some(found) = found {
            keys.iter().zip(found).for_each(|(key, found)| session.past.settle(*key, found));
            return Ok(());
        }
        // One by one, so that an error does not hide another key's answer.
        for key in keys {
            if let Some(found) = session.get(key)? {
                session.past.settle(key, found);
            }
        }
        Ok(())
    }

    fn updates(session: &mut Session<Self>) -> Vec<(&'static str, Result<()>)> {
        let put = session.past.attempt(0, false);
        session.past.attempt(0, true);
        let (key, value) = (session.setup().key(0), session.setup().value(0, put));
        let table = session.handle();
        let mut tried = vec![
            ("insert", table.insert(&key, &value)),
            ("insert_many", table.insert_many(&[(&key, &value)])),
            ("remove", table.remove(&key)),
            ("sync", table.sync()),
            ("flush", table.flush()),
        ];
        if session.absorbs() {
            let other = session.other(&[0], &[put]);
            let absorbed =
                other.and_then(|other| session.absorb_other(&other, AbsorbOptions::default()));
            tried.push(("absorb", absorbed));
        }
        tried
    }
}

impl<C: TableContract> Session<C> {
    fn insert(&mut self, key: u64) -> std::result::Result<(), Stop> {
        let put = self.past.attempt(key, false);
        let result = self.handle().insert(&self.setup().key(key), &self.setup().value(key, put));
        self.updated(&[key], result)
    }

    /// Puts each of these keys in one batch.
    ///
    /// # Errors
    /// Fails as [`Contract::call`] does.
    pub fn insert_many(&mut self, keys: &[u64]) -> std::result::Result<(), Stop> {
        let mut pairs = Vec::with_capacity(keys.len());
        for &key in keys {
            let put = self.past.attempt(key, false);
            pairs.push((self.setup().key(key), self.setup().value(key, put)));
        }
        let borrowed: Vec<_> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        let result = self.handle().insert_many(&borrowed);
        self.updated(keys, result)
    }

    /// Removes a key.
    ///
    /// # Errors
    /// Fails as [`Contract::call`] does.
    pub fn remove(&mut self, key: u64) -> std::result::Result<(), Stop> {
        self.past.attempt(key, true);
        let result = self.handle().remove(&self.setup().key(key));
        self.updated(&[key], result)
    }

    /// Returns the put that the bytes of a value prove.
    fn proven(&self, key: u64, found: Option<&[u8]>) -> Found {
        Found::proven(found, |put| self.setup().value(key, put))
    }

    fn judge(&mut self, key: u64, found: Found) -> std::result::Result<(), Stop> {
        self.note_answer(found.number());
        self.past.looked_up();
        self.past.judge(key, found, self.trust()).map_err(Stop::Wrong)
    }

    fn get(&mut self, key: u64) -> std::result::Result<Option<Found>, Stop> {
        let result = self.handle().get(&self.setup().key(key));
        let Some(found) = self.allowed(result)? else { return Ok(None) };
        let found = self.proven(key, found.as_deref());
        self.judge(key, found)?;
        Ok(Some(found))
    }

    /// Looks up a batch, every second one as a stream.
    fn get_many(&mut self, keys: &[u64]) -> std::result::Result<Option<Vec<Found>>, Stop> {
        let bytes: Vec<_> = keys.iter().map(|key| self.setup().key(*key)).collect();
        let borrowed: Vec<_> = bytes.iter().map(|key| &key[..]).collect();
        let result = if keys.len().is_multiple_of(2) {
            self.handle().get_many(&borrowed)
        } else {
            streamed(self.handle(), &borrowed)
        };
        let Some(values) = self.allowed(result)? else { return Ok(None) };
        let pairs = keys.iter().zip(&values);
        let found: Vec<_> = pairs.map(|(key, value)| self.proven(*key, value.as_deref())).collect();
        for (key, found) in keys.iter().zip(&found) {
            self.judge(*key, *found)?;
        }
        Ok(Some(found))
    }

    fn iterate(&mut self) -> std::result::Result<(), Stop> {
        let keys = self.past.count();
        let mut seen = vec![None; keys as usize];
        let pairs: Result<Vec<_>> = self.handle().iter().collect();
        let Some(pairs) = self.allowed(pairs)? else { return Ok(()) };
        for (bytes, value) in pairs {
            let number = bytes.first_chunk::<8>().map(|head| u64::from_le_bytes(*head));
            let key = number.filter(|key| *key < keys && self.setup().key(*key) == bytes);
            let Some(key) = key else {
                return Err(Stop::Wrong(format!("iteration gives the foreign key {bytes:?}")));
            };
            let found = self.proven(key, Some(&value));
            if seen[key as usize].replace(found).is_some() && self.trust() < Trust::EverOrError {
                return Err(Stop::Wrong(format!("iteration gives key {key} twice")));
            }
        }
        for (key, found) in (0..).zip(seen) {
            self.judge(key, found.unwrap_or(Found::Nothing))?;
        }
        Ok(())
    }
}

/// Looks up keys as a batch does, but one after another.
///
/// # Errors
/// Fails as [`Table::get`] does.
///
/// # Panics
/// Panics if a lookup is answered twice, or not at all.
pub fn streamed(table: &(impl Table + ?Sized), keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
    let mut found = vec![None; keys.len()];
    let mut told = 0;
    let mut stream = table.stream()?;
    let mut tell = |(token, value): (u64, Option<Value>)| {
        let answer: &mut Option<Option<Value>> = &mut found[token as usize];
        assert_eq!(answer.replace(value), None, "a lookup is answered twice");
        told += 1;
    };
    for (token, key) in (0..).zip(keys) {
        stream.push(key, token)?;
        stream.poll()?.into_iter().for_each(&mut tell);
    }
    while let Some(answer) = stream.pull()? {
        tell(answer);
    }
    assert_eq!((told, stream.pending()), (keys.len(), 0), "answers to a stream");
    drop(stream);
    Ok(found.into_iter().flatten().collect())
}
