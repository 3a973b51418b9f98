//! Indexes of neighbours as subjects: a key of the workloads stands for a [document](crate::documents), whose index is
//! its id.
//!
//! Every candidate is checked: its document must share a bucket key with the queried one. An inserted
//! document must be among its own candidates, unless the index has dropped or evicted ids.

use std::ops::Deref;

use anyhow::{Result, ensure};
use nandex::{Neighbors, NeighborsStats};

use crate::documents::Documents;
use crate::keys::ABSENT_START;
use crate::subject::{BytesWritten, Client, Status, Subject};

/// A subject of any [`Neighbors`], and the documents that its ids stand for.
pub struct NeighborsSubject<N> {
    pub(crate) index: N,
    pub(crate) documents: Documents,
}

impl<N: Deref<Target: Neighbors> + Send + Sync> Subject for NeighborsSubject<N> {
    fn client(&self) -> Result<Box<dyn Client + '_>> {
        Ok(Box::new(NeighborsClient {
            index: &*self.index,
            documents: self.documents,
            ids: Vec::new(),
            rows: Vec::new(),
            row: Vec::new(),
        }))
    }

    fn sync(&self) -> Result<()> {
        Ok(self.index.sync()?)
    }

    fn settle(&self) -> Result<()> {
        Ok(self.index.flush()?)
    }

    fn status(&self) -> Status {
        let stats = self.index.stats();
        let written = BytesWritten { data: stats.data_bytes_written, log: stats.log_bytes_written };
        Status {
            entries: Some(stats.entries / u64::from(stats.tables)),
            ram_bytes: Some(stats.ram_bytes),
            flash_bytes: stats.flash_bytes,
            lookup_reads: Some(stats.lookup_reads),
            lookup_reads_max: Some(stats.tables),
            written: Some(written),
            neighbors: Some(stats),
            ..Status::default()
        }
    }
}

struct NeighborsClient<'a, N: ?Sized> {
    index: &'a N,
    documents: Documents,
    ids: Vec<u64>,
    /// Bucket keys of these documents, one row after another.
    rows: Vec<u64>,
    /// The keys of a candidate.
    row: Vec<u64>,
}

impl<N: Neighbors + ?Sized> NeighborsClient<'_, N> {
    /// Replaces the documents by those of these keys.
    fn take(&mut self, keys: impl Iterator<Item = u64>) {
        self.ids.clear();
        self.rows.clear();
        for key in keys {
            let index = self.documents.index_of(key);
            self.ids.push(index);
            self.documents.append_row(index, &mut self.rows);
        }
    }

    /// Checks the candidates of each of the documents.
    fn check(&mut self, all: &[Vec<u64>]) -> Result<()> {
        ensure!(all.len() == self.ids.len(), "{} answers to {} rows", all.len(), self.ids.len());
        let tables = self.rows.len() / self.ids.len().max(1);
        for (asked, (own, candidates)) in self.rows.chunks(tables.max(1)).zip(all).enumerate() {
            for &candidate in candidates {
                self.row.clear();
                self.documents.append_row(candidate, &mut self.row);
                let shares = own.iter().zip(&self.row).any(|(own, its)| own == its);
                let asked = self.ids[asked];
                ensure!(
                    shares,
                    "document {candidate} shares no bucket with {asked}, and is its candidate"
                );
            }
        }
        Ok(())
    }

    /// Returns the answers of lookups: the number of candidates, if there are any. An inserted document must
    /// be its own candidate.
    fn answers(&mut self, all: &[Vec<u64>], found: &mut Vec<Option<u64>>) -> Result<()> {
        self.check(all)?;
        for (&id, candidates) in self.ids.iter().zip(all) {
            let is_there = if id < ABSENT_START {
                let is_there = candidates.contains(&id);
                ensure!(
                    is_there || may_lack(&self.index.stats()),
                    "document {id} is not its own candidate"
                );
                is_there
            } else {
                !candidates.is_empty()
            };
            found.push(is_there.then_some(candidates.len() as u64));
        }
        Ok(())
    }

    /// Returns the answer of a lookup in a stream, whose other documents have been replaced meanwhile.
    fn answer_for(&mut self, key: u64, candidates: Vec<u64>) -> Result<Option<u64>> {
        self.take([key].into_iter());
        let mut found = Vec::with_capacity(1);
        self.answers(&[candidates], &mut found)?;
        Ok(found[0])
    }
}

/// Returns whether the index may have dropped ids by its stated policies.
fn may_lack(stats: &NeighborsStats) -> bool {
    stats.dropped_life + stats.evicted_life > 0
}

impl<N: Neighbors + ?Sized> Client for NeighborsClient<'_, N> {
    fn insert(&mut self, key: u64, _value: u64) -> Result<()> {
        self.take([key].into_iter());
        Ok(self.index.insert(self.ids[0], &self.rows)?)
    }

    fn insert_many(&mut self, pairs: &[(u64, u64)]) -> Result<()> {
        self.take(pairs.iter().map(|pair| pair.0));
        Ok(self.index.insert_many(&self.ids, &self.rows)?)
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        self.take([key].into_iter());
        let candidates = self.index.candidates(&self.rows)?;
        let mut found = Vec::with_capacity(1);
        self.answers(&[candidates], &mut found)?;
        Ok(found[0])
    }

    fn get_many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()> {
        self.take(keys.iter().copied());
        let all = self.index.candidates_many(&self.rows)?;
        self.answers(&all, found)
    }

    /// Ignores the batch: the index keeps its own number of reads in flight.
    fn stream(
        &mut self,
        keys: &mut dyn Iterator<Item = u64>,
        _batch: usize,
        answer: &mut dyn FnMut(u64, Option<u64>) -> Result<()>,
    ) -> Result<()> {
        let mut stream = self.index.stream()?;
        for key in keys {
            self.take([key].into_iter());
            stream.push(&self.rows, key)?;
            while let Some((key, candidates)) = stream.poll()? {
                answer(key, self.answer_for(key, candidates)?)?;
            }
        }
        while let Some((key, candidates)) = stream.pull()? {
            answer(key, self.answer_for(key, candidates)?)?;
        }
        Ok(())
    }

    fn delete_many(&mut self, keys: &[u64]) -> Result<()> {
        self.take(keys.iter().copied());
        let tables = self.index.tables() as usize;
        let documents = self.ids.iter().zip(self.rows.chunks_exact(tables));
        documents.into_iter().try_for_each(|(&id, row)| Ok(self.index.remove(id, row)?))
    }

    fn get_then_insert_many(
        &mut self,
        pairs: &[(u64, u64)],
        found: &mut Vec<Option<u64>>,
    ) -> Result<()> {
        self.take(pairs.iter().map(|pair| pair.0));
        let all = self.index.candidates_then_insert_many(&self.ids, &self.rows)?;
        self.check(&all)?;
        for (id, candidates) in self.ids.iter().zip(&all) {
            ensure!(
                !candidates.contains(id),
                "document {id} was a candidate before it was inserted"
            );
            found.push((!candidates.is_empty()).then_some(candidates.len() as u64));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use nandex::raw::oracle::BucketMap;

    use super::*;
    use crate::documents::DocumentSettings;
    use crate::keys::KeySpace;

    const KEYS: KeySpace = KeySpace::new(5);

    fn subject(settings: DocumentSettings) -> NeighborsSubject<Box<BucketMap>> {
        let index = Box::new(BucketMap::new(settings.tables, 1000));
        NeighborsSubject { index, documents: Documents::new(KEYS, settings) }
    }

    #[test]
    fn documents_are_their_own_candidates_and_near_ones_find_one_another() {
        let settings = DocumentSettings { near_share: 0.5, ..DocumentSettings::default() };
        let subject = subject(settings);
        let mut client = subject.client().unwrap();
        let pairs: Vec<(u64, u64)> = (0..1000).map(|index| (KEYS.key(index), 0)).collect();
        client.insert(pairs[0].0, 0).unwrap();
        client.insert_many(&pairs[1..500]).unwrap();
        let mut found = Vec::new();
        client.get_then_insert_many(&pairs[500..], &mut found).unwrap();
        // Half of them are near others, and of these 97 % share a band. Six standard deviations are 67.
        let near = found.iter().flatten().count();
        assert!((173..307).contains(&near), "{near}");
        found.clear();
        client.get_many(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>(), &mut found).unwrap();
        assert!(found.iter().all(Option::is_some));
        assert!(found.iter().any(|count| *count > Some(1)));
        assert_eq!(client.get(KEYS.absent(7)).unwrap(), None);
    }

    #[test]
    fn a_wrong_candidate_and_one_that_is_missing_are_errors() {
        let settings = DocumentSettings { near_share: 0.0, ..DocumentSettings::default() };
        let subject = subject(settings);
        let mut client = subject.client().unwrap();
        let error = client.get(KEYS.key(3)).unwrap_err().to_string();
        assert!(error.contains("document 3 is not its own candidate"), "{error}");
        let mut row = Vec::new();
        subject.documents.append_row(3, &mut row);
        subject.index.insert_many(&[3, 8], &[&row[..], &row[..]].concat()).unwrap();
        let error = client.get(KEYS.key(3)).unwrap_err().to_string();
        assert!(error.contains("document 8 shares no bucket with 3"), "{error}");
    }
}
