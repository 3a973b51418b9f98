//! Calls for many entries at once: the entries of another table, and keys that may be absent.

use std::ops::ControlFlow;
use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::{
    AbsorbOptions, AnyTable, Durability, Error, Prefer, Result, Table, Volume, VolumeOptions,
};
use nandex_baseline::registry::{self, Family};

use super::{Found, TableContract};
use crate::contract::Stop;
use crate::session::Session;

/// The number of keys of another table for each one that was removed there.
const REMOVED: u64 = 5;

impl<C: TableContract> Session<C> {
    /// Returns whether its kind absorbs other tables.
    pub(super) fn absorbs(&self) -> bool {
        let kind = self.handle().kind();
        match registry::find(kind).map(|row| &row.family) {
            Some(Family::Table(row)) => row.merges_into == Some(kind),
            _ => false,
        }
    }

    /// Absorbs a table of the same configuration that has had these keys, and has lost some of them again. A
    /// table that cannot absorb inserts the absent keys.
    ///
    /// # Errors
    /// Fails as [`Contract::call`](crate::Contract::call) does.
    pub fn absorb(&mut self, keys: &[u64], prefer: Prefer) -> std::result::Result<(), Stop> {
        if !self.absorbs() {
            return self.get_or_insert_many(keys);
        }
        // Equal entries are not put again, and keep their age.
        let is_equal = keys.iter().all(|key| self.setup().value(*key, 0).is_empty());
        let own = match prefer {
            Prefer::Last if !is_equal => vec![Found::Nothing; keys.len()],
            _ => match self.get_many(keys)? {
                Some(own) => own,
                None => return Ok(()),
            },
        };
        let puts = self.past.attempt_together(keys);
        let other = self.other(keys, &puts)?;
        let bytes: Vec<_> = keys.iter().map(|key| self.setup().key(*key)).collect();
        let bytes: Vec<_> = bytes.iter().map(|key| &key[..]).collect();
        let mut sure = Vec::with_capacity(keys.len());
        for ((key, own), theirs) in keys.iter().zip(own).zip(other.get_many(&bytes)?) {
            match (own, theirs) {
                (Found::Nothing, Some(_)) => sure.push(*key),
                // Its own entry may be evicted, and the other's is taken then.
                (_, Some(_)) if self.past.evicts() => {}
                _ => self.past.retract(*key),
            }
        }
        let options = AbsorbOptions { prefer, ..AbsorbOptions::default() };
        let result = self.absorb_other(&other, options);
        self.saved(&sure, result)
    }

    /// Inserts each of these keys that is absent, and judges the answers for the others.
    ///
    /// # Errors
    /// Fails as [`Contract::call`](crate::Contract::call) does.
    pub fn get_or_insert_many(&mut self, keys: &[u64]) -> std::result::Result<(), Stop> {
        let puts = self.past.attempt_together(keys);
        let pair =
            |(key, put): (&u64, u64)| (self.setup().key(*key), self.setup().value(*key, put));
        let pairs: Vec<_> = keys.iter().zip(puts).map(pair).collect();
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        let values = match self.handle().get_or_insert_many(&pairs) {
            Ok(values) => values,
            Err(error) => return self.updated(&[], Err(error)),
        };
        let mut sure = Vec::with_capacity(keys.len());
        for (key, value) in keys.iter().zip(values) {
            let found = self.proven(*key, value.as_deref());
            match found {
                Found::Nothing => sure.push(*key),
                _ => self.past.retract(*key),
            }
            self.judge(*key, found)?;
        }
        self.updated(&sure, Ok(()))
    }

    /// Creates another table, in RAM, that was given these puts; some keys were removed afterwards.
    pub(super) fn other(&self, keys: &[u64], puts: &[u64]) -> Result<AnyTable> {
        let setup = TableContract::inline(self.setup());
        let options = VolumeOptions { durability: Durability::Never, ..setup.volume() };
        let volume = Volume::create(Arc::new(MemoryDevice::new()), options)?;
        let (config, options) = setup.made();
        let other = AnyTable::create_with(&volume, "other", &config, &options)?;
        let pair = |(key, put): (&u64, &u64)| (setup.key(*key), setup.value(*key, *put));
        let pairs: Vec<_> = keys.iter().zip(puts).map(pair).collect();
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        // Its content decides; the rest did not fit.
        match other.insert_many(&pairs) {
            Ok(()) | Err(Error::Full { .. }) => {}
            Err(error) => return Err(error),
        }
        let mut removed = puts.iter().zip(&pairs).filter(|(put, _)| put.is_multiple_of(REMOVED));
        removed.try_for_each(|(_, (key, _))| other.remove(key))?;
        Ok(other)
    }

    pub(super) fn absorb_other(&mut self, other: &AnyTable, options: AbsorbOptions) -> Result<()> {
        let watch = |_: f64| ControlFlow::Continue(());
        self.handle_mut().absorb(&[other.versions()?], &options, &watch).map(drop)
    }
}
