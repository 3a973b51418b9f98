//! A stream of lookups: keys go in and answers come out, and the device's queue stays full between.

use nandex_store::reads::{Answered, LookupStep, ReadPipeline};

use super::TableLookup;
use super::counts::LookupCounts;
use crate::Result;
use crate::api::{LookupStream, Value};
use crate::intake::{Intake, Room};

/// The stream of one table.
struct Stream<'t, R: Room>
where
    Intake<R>: TableLookup,
{
    table: &'t Intake<R>,
    reads: ReadPipeline<'t, Intake<R>>,
    counts: LookupCounts,
}

impl<R: Room> Intake<R>
where
    Self: TableLookup,
{
    pub(crate) fn stream(&self) -> Result<Box<dyn LookupStream + '_>> {
        let (reads, counts) = (self.reads.pipeline(self), LookupCounts::default());
        Ok(Box::new(Stream { table: self, reads, counts }))
    }
}

impl<R: Room> Stream<'_, R>
where
    Intake<R>: TableLookup,
{
    fn pop(&mut self) -> Option<(u64, Option<Value>)> {
        let Answered { token, answer, reads } = self.reads.pop()?;
        self.counts.count(answer.is_some(), reads);
        Some((token, answer))
    }

    /// Adds what was counted to the table's counters.
    fn settle(&mut self) {
        self.table.counters.lookups.add(&std::mem::take(&mut self.counts));
        self.table.after_lookups();
    }
}

impl<R: Room> LookupStream for Stream<'_, R>
where
    Intake<R>: TableLookup,
{
    fn push(&mut self, key: &[u8], token: u64) -> Result<()> {
        self.table.check_key(key)?;
        let (hash, positions) = self.table.prepare(key);
        match self.table.ask(hash, &positions, key)? {
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

impl<R: Room> Drop for Stream<'_, R>
where
    Intake<R>: TableLookup,
{
    fn drop(&mut self) {
        while self.pop().is_some() {}
        self.settle();
    }
}
