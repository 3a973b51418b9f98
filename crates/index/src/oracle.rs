//! The simplest correct table, filter and index of neighbours: a `HashMap` behind a lock.
//!
//! The conformance suite compares every structure with it, and applications test their own logic on it without a
//! volume. It stores nothing on flash.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use crate::api::{
    CandidateStream, Counter, Filter, FilterStats, LookupStream, Neighbors, NeighborsStats, Table,
    TableStats, Value,
};
use crate::{Error, Result};

/// A table in plain memory.
#[derive(Debug)]
pub struct MapTable {
    key_bytes: usize,
    value_bytes: usize,
    map: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
}

impl MapTable {
    /// Creates an empty table of these widths.
    #[must_use]
    pub fn new(key_bytes: usize, value_bytes: usize) -> Self {
        Self { key_bytes, value_bytes, map: Mutex::default() }
    }

    /// Returns all entries, in the order of their keys.
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

/// An exact multiset of keys in plain memory, which filters and counters are compared with.
#[derive(Debug, Default)]
pub struct Multiset {
    counts: Mutex<HashMap<Vec<u8>, i64>>,
}

impl Multiset {
    /// Creates an empty multiset.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of different keys.
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

/// Buckets of ids in plain memory, which indexes of neighbours are compared with. A bucket keeps its oldest ids.
#[derive(Debug)]
pub struct BucketMap {
    tables: u32,
    bucket_ids_max: usize,
    buckets: Mutex<HashMap<(usize, u64), Vec<u64>>>,
}

impl BucketMap {
    /// Creates an empty index with `tables` tables, whose buckets keep `bucket_ids_max` ids.
    ///
    /// # Panics
    /// If there are no tables.
    #[must_use]
    pub fn new(tables: u32, bucket_ids_max: usize) -> Self {
        assert!(tables > 0, "an index of neighbours has tables");
        Self { tables, bucket_ids_max, buckets: Mutex::default() }
    }

    fn buckets(&self) -> std::sync::MutexGuard<'_, HashMap<(usize, u64), Vec<u64>>> {
        self.buckets.lock().expect("no holder of this lock panics")
    }

    fn check(&self, documents: usize, keys: &[u64]) -> Result<()> {
        if documents * self.tables as usize == keys.len() {
            return Ok(());
        }
        let reason = format!("{} for {documents} documents of {} tables", keys.len(), self.tables);
        Err(Error::Config { field: "keys", reason })
    }

    fn put(&self, id: u64, keys: &[u64]) {
        let mut buckets = self.buckets();
        for (table, key) in keys.iter().enumerate() {
            let bucket = buckets.entry((table, *key)).or_default();
            if bucket.len() < self.bucket_ids_max && !bucket.contains(&id) {
                bucket.push(id);
            }
        }
    }
}

impl Neighbors for BucketMap {
    fn tables(&self) -> u32 {
        self.tables
    }

    fn insert(&self, id: u64, keys: &[u64]) -> Result<()> {
        self.insert_many(&[id], keys)
    }

    fn insert_many(&self, ids: &[u64], keys: &[u64]) -> Result<()> {
        self.check(ids.len(), keys)?;
        ids.iter()
            .zip(keys.chunks(self.tables as usize))
            .for_each(|(id, keys)| self.put(*id, keys));
        Ok(())
    }

    fn candidates(&self, keys: &[u64]) -> Result<Vec<u64>> {
        self.check(1, keys)?;
        let buckets = self.buckets();
        let of = |(table, key): (usize, &u64)| buckets.get(&(table, *key)).into_iter().flatten();
        let mut ids: Vec<u64> = keys.iter().enumerate().flat_map(of).copied().collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    fn candidates_many(&self, keys: &[u64]) -> Result<Vec<Vec<u64>>> {
        keys.chunks(self.tables as usize).map(|keys| self.candidates(keys)).collect()
    }

    fn stream(&self) -> Result<Box<dyn CandidateStream + '_>> {
        Ok(Box::new(AnsweredAtOnce::of(self)))
    }

    fn candidates_then_insert_many(&self, ids: &[u64], keys: &[u64]) -> Result<Vec<Vec<u64>>> {
        self.check(ids.len(), keys)?;
        let candidates_then_insert = |(id, keys): (&u64, &[u64])| {
            let candidates = self.candidates(keys)?;
            self.put(*id, keys);
            Ok(candidates)
        };
        ids.iter().zip(keys.chunks(self.tables as usize)).map(candidates_then_insert).collect()
    }

    fn remove_many(&self, ids: &[u64], keys: &[u64]) -> Result<()> {
        self.check(ids.len(), keys)?;
        let mut buckets = self.buckets();
        for (id, keys) in ids.iter().zip(keys.chunks(self.tables as usize)) {
            for (table, key) in keys.iter().enumerate() {
                if let Some(bucket) = buckets.get_mut(&(table, *key)) {
                    bucket.retain(|other| other != id);
                }
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn stats(&self) -> NeighborsStats {
        let entries = self.buckets().values().map(|bucket| bucket.len() as u64).sum();
        NeighborsStats { tables: self.tables, entries, ..NeighborsStats::default() }
    }
}

/// A stream of lookups in an index that answers without waiting: each answer is ready when its lookup is pushed.
#[derive(Debug)]
pub struct AnsweredAtOnce<'n, N> {
    index: &'n N,
    ready: VecDeque<(u64, Vec<u64>)>,
}

impl<'n, N: Neighbors> AnsweredAtOnce<'n, N> {
    /// Creates a stream of lookups in `index`.
    #[must_use]
    pub const fn of(index: &'n N) -> Self {
        Self { index, ready: VecDeque::new() }
    }
}

impl<N: Neighbors> CandidateStream for AnsweredAtOnce<'_, N> {
    fn push(&mut self, keys: &[u64], token: u64) -> Result<()> {
        let candidates = self.index.candidates(keys)?;
        self.ready.push_back((token, candidates));
        Ok(())
    }

    fn poll(&mut self) -> Result<Option<(u64, Vec<u64>)>> {
        Ok(self.ready.pop_front())
    }

    fn pull(&mut self) -> Result<Option<(u64, Vec<u64>)>> {
        self.poll()
    }

    fn pending(&self) -> usize {
        self.ready.len()
    }
}
