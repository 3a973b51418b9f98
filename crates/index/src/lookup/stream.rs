//! A stream of lookups: keys go in and answers come out, and the device's queue stays full in between.

use nandex_store::reads::{Answered, LookupStep, ReadPipeline};

use super::counts::LookupCounts;
use super::{Cached, KeyLookup, TableLookup, locate_and_prefetch};
use crate::Result;
use crate::api::{LookupStream, Value};

/// The stream of one table.
struct Stream<'t, T: TableLookup> {
    reads: ReadPipeline<'t, Cached<'t, T>>,
    counts: LookupCounts,
}

/// A stream of lookups in a table.
pub(crate) fn stream<T: TableLookup>(table: &T) -> Box<dyn LookupStream + '_> {
    let reads = table.lookups().reads.pipeline(Cached::new(table));
    Box::new(Stream { reads, counts: LookupCounts::default() })
}

impl<T: TableLookup> Stream<'_, T> {
    fn pop(&mut self) -> Option<(u64, Option<Value>)> {
        let Answered { token, answer, reads } = self.reads.pop()?;
        self.counts.count(T::is_found(&answer), reads);
        Some((token, answer))
    }

    /// Adds what was counted to the table's counters.
    fn settle(&mut self) {
        let counts = std::mem::take(&mut self.counts);
        self.reads.user().lookups().counters.add(&counts);
        self.reads.user().after_lookups();
    }
}

impl<T: TableLookup> LookupStream for Stream<'_, T> {
    fn push(&mut self, key: &[u8], token: u64) -> Result<()> {
        let table = self.reads.user();
        table.check_key(key)?;
        let place = locate_and_prefetch(table, key);
        match table.search_ram(&place, key)? {
            LookupStep::Answer(value) => self.reads.answer(token, value),
            LookupStep::Read(probe) => self.reads.start(token, probe)?,
        }
        Ok(())
    }

    fn poll(&mut self) -> Result<Option<(u64, Option<Value>)>> {
        if self.reads.ready() == 0 {
            self.reads.poll()?;
        }
        Ok(self.pop())
    }

    fn pull(&mut self) -> Result<Option<(u64, Option<Value>)>> {
        while self.reads.ready() == 0 && self.reads.pending() > 0 {
            self.reads.wait()?;
        }
        let answered = self.pop();
        if answered.is_none() {
            self.settle();
            self.reads.finish()?;
        }
        Ok(answered)
    }

    fn pending(&self) -> usize {
        self.reads.ready() + self.reads.pending()
    }
}

impl<T: TableLookup> Drop for Stream<'_, T> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
        self.settle();
    }
}
