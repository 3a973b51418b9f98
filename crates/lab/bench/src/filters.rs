//! Filters and counters of nandex as subjects.

use std::ops::Deref;

use anyhow::{Context, Result};
use nandex::{Counter, Counting, Filter, SliceBloom};

use crate::keys::KEY_BYTES;
use crate::subject::{BytesWritten, Client, Status, Subject, yes};

/// The bytes of keys, in a buffer that is reused so that a batch costs one allocation and not two.
#[derive(Default)]
pub(crate) struct Keys(pub(crate) Vec<[u8; KEY_BYTES]>);

impl Keys {
    /// Replaces the content by the bytes of these keys.
    pub(crate) fn take(&mut self, keys: impl Iterator<Item = u64>) -> &[[u8; KEY_BYTES]] {
        self.0.clear();
        self.0.extend(keys.map(u64::to_le_bytes));
        &self.0
    }

    pub(crate) fn of(&mut self, keys: impl Iterator<Item = u64>) -> Vec<&[u8]> {
        self.take(keys).iter().map(<[u8; KEY_BYTES]>::as_slice).collect()
    }
}

/// Any [`Filter`].
pub struct FilterSubject<F> {
    pub(crate) filter: F,
    /// Returns the filter as a counter, if it can count.
    pub(crate) counter: fn(&F) -> Option<&dyn Counter>,
    /// Returns the filter as a structure with more operations than filters have.
    pub(crate) own: fn(&F) -> Own<'_>,
}

/// A filter with operations of its own, by its type.
#[derive(Clone, Copy)]
pub(crate) enum Own<'f> {
    /// A counting table, with streams of counts.
    Counting(&'f Counting),
    /// A SliceBloom, with streams and a stated number of reads.
    SliceBloom(&'f SliceBloom),
    /// A filter without further operations.
    Other,
}

impl<F: Deref<Target: Filter> + Send + Sync> Subject for FilterSubject<F> {
    fn client(&self) -> Result<Box<dyn Client + '_>> {
        Ok(Box::new(FilterClient {
            filter: &*self.filter,
            counter: (self.counter)(&self.filter),
            own: (self.own)(&self.filter),
            keys: Keys::default(),
        }))
    }

    fn sync(&self) -> Result<()> {
        Ok(self.filter.sync()?)
    }

    fn settle(&self) -> Result<()> {
        Ok(self.filter.flush()?)
    }

    fn status(&self) -> Status {
        let stats = self.filter.stats();
        let written = BytesWritten { data: stats.data_bytes_written, log: stats.log_bytes_written };
        Status {
            entries: Some(stats.entries),
            ram_bytes: Some(stats.ram_bytes),
            flash_bytes: stats.flash_bytes,
            rate: stats.rate,
            lookup_reads: Some(stats.lookup_reads),
            lookup_reads_max: match (self.own)(&self.filter) {
                Own::SliceBloom(filter) => Some(filter.config().hashes),
                Own::Counting(_) | Own::Other => None,
            },
            levels: Some(stats.levels.len() as u64),
            written: Some(written),
            ..Status::default()
        }
    }
}

struct FilterClient<'a, F: ?Sized> {
    filter: &'a F,
    counter: Option<&'a dyn Counter>,
    own: Own<'a>,
    keys: Keys,
}

impl<'a, F: ?Sized> FilterClient<'a, F> {
    fn counter(&self) -> Result<&'a dyn Counter> {
        self.counter.context("this filter cannot count")
    }
}

impl<F: Filter + ?Sized> Client for FilterClient<'_, F> {
    fn insert(&mut self, key: u64, _value: u64) -> Result<()> {
        Ok(self.filter.insert(&key.to_le_bytes())?)
    }

    fn insert_many(&mut self, pairs: &[(u64, u64)]) -> Result<()> {
        Ok(self.filter.insert_many(&self.keys.of(pairs.iter().map(|pair| pair.0)))?)
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        Ok(yes(self.filter.contains(&key.to_le_bytes())?))
    }

    fn get_many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()> {
        let answers = self.filter.contains_many(&self.keys.of(keys.iter().copied()))?;
        found.extend(answers.into_iter().map(yes));
        Ok(())
    }

    /// Ignores the batch: a SliceBloom keeps its own number of reads in flight.
    fn stream(
        &mut self,
        keys: &mut dyn Iterator<Item = u64>,
        batch: usize,
        answer: &mut dyn FnMut(u64, Option<u64>) -> Result<()>,
    ) -> Result<()> {
        let Own::SliceBloom(filter) = self.own else {
            let look_up = |some: &[u64], found: &mut Vec<_>| self.get_many(some, found);
            return crate::subject::in_batches(keys, batch, look_up, answer);
        };
        let mut stream = filter.stream();
        for key in keys {
            stream.push(&key.to_le_bytes(), key)?;
            while let Some((key, found)) = stream.poll()? {
                answer(key, yes(found))?;
            }
        }
        while let Some((key, found)) = stream.pull()? {
            answer(key, yes(found))?;
        }
        Ok(())
    }

    fn delete_many(&mut self, keys: &[u64]) -> Result<()> {
        Ok(self.filter.delete_many(&self.keys.of(keys.iter().copied()))?)
    }

    fn add_many(&mut self, keys: &[u64]) -> Result<()> {
        let counter = self.counter()?;
        let keys = self.keys.take(keys.iter().copied());
        let amounts: Vec<_> = keys.iter().map(|key| (key.as_slice(), 1)).collect();
        Ok(counter.add_many(&amounts)?)
    }

    fn count_many(&mut self, keys: &[u64], counts: &mut Vec<u64>) -> Result<()> {
        let counter = self.counter()?;
        counts.extend(counter.count_many(&self.keys.of(keys.iter().copied()))?);
        Ok(())
    }

    /// Ignores the batch: a counting table keeps its own number of reads in flight.
    fn count_stream(
        &mut self,
        keys: &mut dyn Iterator<Item = u64>,
        batch: usize,
        answer: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let Own::Counting(counting) = self.own else {
            let look_up = |some: &[u64], counts: &mut Vec<u64>| self.count_many(some, counts);
            return crate::subject::in_batches(keys, batch, look_up, answer);
        };
        let count = |sum: i64| u64::try_from(sum).unwrap_or(0);
        let mut stream = counting.stream();
        for key in keys {
            stream.push(&key.to_le_bytes(), key)?;
            while let Some((key, sum)) = stream.poll()? {
                answer(key, count(sum))?;
            }
        }
        while let Some((key, sum)) = stream.pull()? {
            answer(key, count(sum))?;
        }
        Ok(())
    }
}
