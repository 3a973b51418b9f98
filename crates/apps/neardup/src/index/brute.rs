//! A trivially correct index of neighbours: maps in RAM. Tests compare with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use nandex::raw::oracle::AnsweredAtOnce;
use nandex::raw::{CandidateStream, OpenNeighbors};
use nandex::{AnyConfig, Neighbors, NeighborsStats, slicelsh};

type Buckets = BTreeMap<(usize, u64), BTreeSet<u64>>;

/// Buckets without limits. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Brute {
    pub(super) tables: u32,
    pub(super) family: Vec<u8>,
    pub(super) buckets: Arc<Mutex<Buckets>>,
}

impl Brute {
    fn row<T>(
        &self,
        id_keys: &[u64],
        mut act: impl FnMut(&mut Buckets, (usize, u64)) -> T,
    ) -> Vec<T> {
        assert_eq!(id_keys.len(), self.tables as usize);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        id_keys.iter().enumerate().map(|(table, key)| act(&mut buckets, (table, *key))).collect()
    }

    fn rows<'k>(&self, keys: &'k [u64]) -> std::slice::ChunksExact<'k, u64> {
        keys.chunks_exact(self.tables as usize)
    }
}

impl Neighbors for Brute {
    fn tables(&self) -> u32 {
        self.tables
    }

    fn insert(&self, id: u64, keys: &[u64]) -> nandex::Result<()> {
        self.row(keys, |buckets, place| buckets.entry(place).or_default().insert(id));
        Ok(())
    }

    fn insert_many(&self, ids: &[u64], keys: &[u64]) -> nandex::Result<()> {
        ids.iter().zip(self.rows(keys)).try_for_each(|(id, keys)| self.insert(*id, keys))
    }

    fn candidates(&self, keys: &[u64]) -> nandex::Result<Vec<u64>> {
        let found = self.row(keys, |buckets, place| buckets.get(&place).cloned());
        let all: BTreeSet<u64> = found.into_iter().flatten().flatten().collect();
        Ok(all.into_iter().collect())
    }

    fn candidates_many(&self, keys: &[u64]) -> nandex::Result<Vec<Vec<u64>>> {
        self.rows(keys).map(|keys| self.candidates(keys)).collect()
    }

    fn stream(&self) -> nandex::Result<Box<dyn CandidateStream + '_>> {
        Ok(Box::new(AnsweredAtOnce::of(self)))
    }

    fn candidates_then_insert_many(
        &self,
        ids: &[u64],
        keys: &[u64],
    ) -> nandex::Result<Vec<Vec<u64>>> {
        let each = |(id, keys): (&u64, &[u64])| {
            let found = self.candidates(keys)?;
            self.insert(*id, keys).map(|()| found)
        };
        ids.iter().zip(self.rows(keys)).map(each).collect()
    }

    fn remove_many(&self, ids: &[u64], keys: &[u64]) -> nandex::Result<()> {
        for (id, keys) in ids.iter().zip(self.rows(keys)) {
            self.row(keys, |buckets, place| buckets.get_mut(&place).map(|ids| ids.remove(id)));
        }
        Ok(())
    }

    fn sync(&self) -> nandex::Result<()> {
        Ok(())
    }

    fn flush(&self) -> nandex::Result<()> {
        Ok(())
    }

    fn stats(&self) -> NeighborsStats {
        NeighborsStats::default()
    }
}

impl OpenNeighbors for Brute {
    fn config(&self) -> AnyConfig {
        slicelsh::Config::tiny().into()
    }

    fn family(&self) -> &[u8] {
        &self.family
    }

    fn close(self: Box<Self>) -> nandex::Result<()> {
        Ok(())
    }
}
