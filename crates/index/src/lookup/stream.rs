//! A stream of lookups: keys go in and answers come out, and the device's queue stays full in between.

use nandex_store::reads::{Answered, LookupStep, ReadPipeline};

use super::counts::LookupCounts;
use super::{Cached, KeyLookup, Lookups, TableLookup, locate_and_prefetch};
use crate::Result;
use crate::api::{LookupStream, Value};

/// A stream of lookups in one structure.
pub(crate) struct KeyStream<'t, U: KeyLookup> {
    reads: ReadPipeline<'t, U>,
    counts: LookupCounts,
}

/// A stream of lookups in a table.
pub(crate) fn stream<T: TableLookup>(table: &T) -> Box<dyn LookupStream + '_> {
    Box::new(KeyStream::new(table.lookups(), Cached::new(table)))
}

impl<'t, U: KeyLookup> KeyStream<'t, U> {
    /// Creates a stream of `user`, whose lookups these are.
    pub(crate) fn new(lookups: &'t Lookups, user: U) -> Self {
        Self { reads: lookups.reads.pipeline(user), counts: LookupCounts::default() }
    }

    /// See [`LookupStream::push`].
    pub(crate) fn push(&mut self, key: &[u8], token: u64) -> Result<()> {
        let user = self.reads.user();
        user.check_key(key)?;
        let place = locate_and_prefetch(user, key);
        match user.search_ram(&place, key)? {
            LookupStep::Answer(answer) => self.reads.answer(token, answer),
            LookupStep::Read(probe) => self.reads.start(token, probe)?,
        }
        Ok(())
    }

    /// See [`LookupStream::poll`].
    pub(crate) fn poll(&mut self) -> Result<Option<(u64, U::Answer)>> {
        if self.reads.ready() == 0 {
            self.reads.poll()?;
        }
        Ok(self.pop())
    }

    /// See [`LookupStream::pull`].
    pub(crate) fn pull(&mut self) -> Result<Option<(u64, U::Answer)>> {
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

    /// See [`LookupStream::pending`].
    pub(crate) fn pending(&self) -> usize {
        self.reads.ready() + self.reads.pending()
    }

    fn pop(&mut self) -> Option<(u64, U::Answer)> {
        let Answered { token, answer, reads } = self.reads.pop()?;
        self.counts.count(U::is_found(&answer), reads);
        Some((token, answer))
    }

    /// Adds the counts to the structure's counters.
    fn settle(&mut self) {
        let counts = std::mem::take(&mut self.counts);
        self.reads.user().lookups().counters.add(&counts);
        self.reads.user().after_lookups();
    }
}

impl<T: TableLookup> LookupStream for KeyStream<'_, Cached<'_, T>> {
    fn push(&mut self, key: &[u8], token: u64) -> Result<()> {
        Self::push(self, key, token)
    }

    fn poll(&mut self) -> Result<Option<(u64, Option<Value>)>> {
        Self::poll(self)
    }

    fn pull(&mut self) -> Result<Option<(u64, Option<Value>)>> {
        Self::pull(self)
    }

    fn pending(&self) -> usize {
        Self::pending(self)
    }
}

impl<U: KeyLookup> Drop for KeyStream<'_, U> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
        self.settle();
    }
}
