//! A stream of lookups: rows go in and candidates come out while the device's queue stays full.

use nandex_store::reads::{Answered, LookupStep, ReadPipeline};

use super::Inner;
use super::read::BucketLookup;
use crate::Result;
use crate::api::CandidateStream;

/// A stream of lookups of rows.
pub(super) struct RowStream<'i> {
    core: &'i Inner,
    reads: ReadPipeline<'i, BucketLookup<'i>>,
}

impl<'i> RowStream<'i> {
    pub(super) fn new(core: &'i Inner) -> Self {
        Self { core, reads: core.lookups.reads.pipeline(BucketLookup(core)) }
    }

    fn start(&mut self, row: &[u64], token: u64) -> Result<()> {
        match self.reads.user().ask(row)? {
            LookupStep::Answer(flash) => self.reads.answer(token, flash),
            LookupStep::Read(probe) => self.reads.start(token, probe)?,
        }
        Ok(())
    }

    /// Returns the candidates of a row whose reads have completed. A row is looked up again if one of its buffers has
    /// left for flash since.
    fn take_ready(&mut self) -> Result<Option<(u64, Vec<u64>)>> {
        while let Some(Answered { token, answer, reads }) = self.reads.pop() {
            let flash = answer.with_reads(reads);
            if let Some(candidates) = self.core.candidates_now(&flash)? {
                return Ok(Some((token, candidates)));
            }
            self.start(&flash.row(), token)?;
        }
        Ok(None)
    }
}

impl CandidateStream for RowStream<'_> {
    fn push(&mut self, keys: &[u64], token: u64) -> Result<()> {
        self.core.check_keys(1, keys)?;
        self.start(keys, token)
    }

    fn poll(&mut self) -> Result<Option<(u64, Vec<u64>)>> {
        if self.reads.ready() == 0 {
            self.reads.poll()?;
        }
        self.take_ready()
    }

    fn pull(&mut self) -> Result<Option<(u64, Vec<u64>)>> {
        loop {
            if let Some(answered) = self.take_ready()? {
                return Ok(Some(answered));
            }
            if self.reads.pending() == 0 {
                self.reads.finish()?;
                return Ok(None);
            }
            self.reads.wait()?;
        }
    }

    fn pending(&self) -> usize {
        self.reads.ready() + self.reads.pending()
    }
}
