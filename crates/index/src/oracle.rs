//! The simplest table and filter that cannot be wrong: a `HashMap` behind a lock.
//!
//! The conformance suite compares every structure with it, and applications test their own logic
//! on it without a volume. It keeps nothing on flash.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use crate::api::{Counter, Filter, FilterStats, LookupStream, Table, TableStats, Value};
use crate::{Error, Result};

/// A table in plain memory.
#[derive(Debug)]
pub struct MapTable {
    key_bytes: usize,
    value_bytes: usize,
    map: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
}

impl MapTable {
    /// An empty table of these widths.
    #[must_use]
    pub fn new(key_bytes: usize, value_bytes: usize) -> Self {
        Self { key_bytes, value_bytes, map: Mutex::default() }
    }

    /// All entries, in the order of their keys.
    #[must_use]
    pub fn entries(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let map = self.map();
        let mut entries: Vec<_> =
            map.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        entries.sort_unstable();
        entries
    }

    fn map(&self) -> std::sync::MutexGuard<'_, HashMap<Vec<u8>, Vec<u8>>> {
        self.map.lock().expect("no holder of this lock panics")
    }
}

impl Table for MapTable {
    fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    fn value_bytes(&self) -> usize {
        self.value_bytes
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        Error::check_width("key", key, self.key_bytes)?;
        Error::check_width("value", value, self.value_bytes)?;
        self.map().insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Result<()> {
        Error::check_width("key", key, self.key_bytes)?;
        self.map().remove(key);
        Ok(())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        Error::check_width("key", key, self.key_bytes)?;
        Ok(self.map().get(key).map(|value| Value::new(value)))
    }

    fn insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        pairs.iter().try_for_each(|(key, value)| self.insert(key, value))
    }

    fn get_or_insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Option<Value>>> {
        let mut map = self.map();
        let mut put = |(key, value): &(&[u8], &[u8])| {
            Error::check_width("key", key, self.key_bytes)?;
            Error::check_width("value", value, self.value_bytes)?;
            let found = map.get(*key).map(|found| Value::new(found));
            if found.is_none() {
                map.insert(key.to_vec(), value.to_vec());
            }
            Ok(found)
        };
        pairs.iter().map(&mut put).collect()
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        keys.iter().map(|key| self.get(key)).collect()
    }

    fn stream(&self) -> Result<Box<dyn LookupStream + '_>> {
        Ok(Box::new(MapStream { table: self, ready: VecDeque::new() }))
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn stats(&self) -> TableStats {
        TableStats { entries: self.map().len() as u64, ..TableStats::default() }
    }
}

/// Lookups of a [`MapTable`], answered when they are pushed.
#[derive(Debug)]
struct MapStream<'t> {
    table: &'t MapTable,
    ready: VecDeque<(u64, Option<Value>)>,
}

impl LookupStream for MapStream<'_> {
    fn push(&mut self, key: &[u8], token: u64) -> Result<()> {
        let value = self.table.get(key)?;
        self.ready.push_back((token, value));
        Ok(())
    }

    fn poll(&mut self) -> Result<Option<(u64, Option<Value>)>> {
        Ok(self.ready.pop_front())
    }

    fn pull(&mut self) -> Result<Option<(u64, Option<Value>)>> {
        self.poll()
    }

    fn pending(&self) -> usize {
        self.ready.len()
    }
}

/// An exact multiset of keys in plain memory: what filters and counters are compared with.
#[derive(Debug, Default)]
pub struct Multiset {
    counts: Mutex<HashMap<Vec<u8>, i64>>,
}

impl Multiset {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many different keys are there.
    #[must_use]
    pub fn distinct(&self) -> usize {
        self.counts().len()
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, HashMap<Vec<u8>, i64>> {
        self.counts.lock().expect("no holder of this lock panics")
    }

    fn put(&self, key: &[u8], amount: i64) {
        let mut counts = self.counts();
        let count = counts.entry(key.to_vec()).or_default();
        *count += amount;
        if *count == 0 {
            counts.remove(key);
        }
    }

    fn held(&self, key: &[u8]) -> u64 {
        let count = self.counts().get(key).copied().unwrap_or_default();
        u64::try_from(count).unwrap_or_default()
    }
}

impl Filter for Multiset {
    fn insert(&self, key: &[u8]) -> Result<()> {
        self.put(key, 1);
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.put(key, -1);
        Ok(())
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.held(key) > 0)
    }

    fn insert_many(&self, keys: &[&[u8]]) -> Result<()> {
        keys.iter().for_each(|key| self.put(key, 1));
        Ok(())
    }

    fn insert_if_absent_many(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        let mut counts = self.counts();
        let mut put = |key: &&[u8]| {
            let count = counts.entry(key.to_vec()).or_default();
            let is_new = *count <= 0;
            *count += i64::from(is_new);
            is_new
        };
        Ok(keys.iter().map(&mut put).collect())
    }

    fn delete_many(&self, keys: &[&[u8]]) -> Result<()> {
        keys.iter().for_each(|key| self.put(key, -1));
        Ok(())
    }

    fn contains_many(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        Ok(keys.iter().map(|key| self.held(key) > 0).collect())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn stats(&self) -> FilterStats {
        FilterStats { entries: self.distinct() as u64, ..FilterStats::default() }
    }
}

impl Counter for Multiset {
    fn add(&self, key: &[u8], amount: i64) -> Result<()> {
        self.put(key, amount);
        Ok(())
    }

    fn count(&self, key: &[u8]) -> Result<u64> {
        Ok(self.held(key))
    }

    fn add_many(&self, amounts: &[(&[u8], i64)]) -> Result<()> {
        amounts.iter().for_each(|(key, amount)| self.put(key, *amount));
        Ok(())
    }

    fn count_many(&self, keys: &[&[u8]]) -> Result<Vec<u64>> {
        Ok(keys.iter().map(|key| self.held(key)).collect())
    }
}
