//! Stores and retrievals on a tape: an index's requests, and those for the pairs themselves.
//!
//! Pairs are in a log, one after another as they were stored, behind the index. A store adds its pair to a
//! chunk in RAM and the one that fills a chunk writes it; a retrieval reads the pages of its pair. It is the
//! same with every index.
//!
//! Two measures keep a small index as parallel as a large one. The requests of an update are spread over the
//! operations that follow, a share with each: a rewrite is not part of one command. And the pages that
//! accesses read are drawn at random from the index's part of the drive: at the paper's size a level that is
//! not in DRAM has thousands of pages, on all dies, and divided it would have a few, at which commands queue.

use std::collections::VecDeque;

use nandex_sim::RequestKind;

use super::lab::{Access, KvIndex, PAGE_BYTES, key, pages};
use crate::Result;
use crate::tape::{Act, Step, Tape};

/// The bytes of a pair without its value: a key of 16 bytes, and the drive's metadata.
pub const PAIR_BYTES: u64 = 16 + 38;

/// Pages that are written at once.
const CHUNK_PAGES: u64 = 64;

/// The first page of the log: the 8 GiB before it are the index's.
const FIRST_PAGE: u64 = 1 << 21;

/// The approximate number of operations over which an update's requests are spread.
const SPREAD: usize = 64;

/// A drive's pairs, numbered from 0, and an index for them.
pub struct Pairs<'i> {
    index: &'i mut dyn KvIndex,
    value_bytes: u64,
    stored: u64,
    /// The pages that the index read on flash, over all operations.
    pub index_reads: u64,
    /// The pages that the index wrote.
    pub index_writes: u64,
    /// The requests of updates that are not on the tape yet.
    backlog: VecDeque<Step>,
    /// The number of reads of the index that were given a page.
    placed: u64,
    tape: Tape,
}

impl<'i> Pairs<'i> {
    /// Creates no pairs, in front of an index that has those below `first` already.
    pub fn new(index: &'i mut dyn KvIndex, value_bytes: u64, first: u64) -> Self {
        Self {
            index,
            value_bytes,
            stored: first,
            index_reads: 0,
            index_writes: 0,
            backlog: VecDeque::new(),
            placed: 0,
            tape: Tape::default(),
        }
    }

    /// Returns the tape so far and begins a new one. Its last operation has the rest of the updates.
    pub fn take_tape(&mut self) -> Tape {
        let mut tape = std::mem::take(&mut self.tape);
        tape.push(Act::Insert, &self.backlog.drain(..).collect::<Vec<_>>());
        tape
    }

    /// Stores the next pair.
    pub fn store(&mut self) -> Result<()> {
        let mut operation = self.access(self.stored, Access::Insert)?;
        let chunk_bytes = CHUNK_PAGES * PAGE_BYTES;
        let chunk = |number: u64| number * (self.value_bytes + PAIR_BYTES) / chunk_bytes;
        let (first, end) = (chunk(self.stored), chunk(self.stored + 1));
        operation.then_each((first..end).map(|chunk| Step {
            kind: RequestKind::Write,
            page: FIRST_PAGE + chunk * CHUNK_PAGES,
            pages: CHUNK_PAGES as u32,
            wave: 0,
        }));
        self.stored += 1;
        self.tape.push(Act::Insert, &operation.0);
        Ok(())
    }

    /// Retrieves a pair.
    pub fn retrieve(&mut self, number: u64) -> Result<()> {
        let mut operation = self.access(number, Access::Lookup)?;
        let bytes = self.value_bytes + PAIR_BYTES;
        let (first, last) = (number * bytes / PAGE_BYTES, ((number + 1) * bytes - 1) / PAGE_BYTES);
        let pages = u32::try_from(last - first + 1).unwrap_or(u32::MAX);
        let page = FIRST_PAGE + first;
        operation.then_each([Step { kind: RequestKind::Read, page, pages, wave: 0 }]);
        self.tape.push(Act::Lookup, &operation.0);
        Ok(())
    }

    fn access(&mut self, number: u64, access: Access) -> Result<Operation> {
        let requests = self.index.access(key(number), access)?;
        self.index_reads += requests.reads.len() as u64;
        self.index_writes += pages(&requests.update, RequestKind::Write);
        let mut operation = Operation::default();
        operation.then_each(requests.reads.into_iter().map(|step| {
            self.placed += 1;
            Step { page: key(self.placed) % FIRST_PAGE, ..step }
        }));
        self.backlog.extend(requests.update);
        let share = self.backlog.len().div_ceil(SPREAD);
        operation.then_each(self.backlog.drain(..share).map(|step| Step { wave: 0, ..step }));
        Ok(operation)
    }
}

/// The requests of an operation, in waves.
#[derive(Default)]
struct Operation(Vec<Step>);

impl Operation {
    /// Adds requests that wait for those before, with waves of their own.
    fn then_each(&mut self, steps: impl IntoIterator<Item = Step>) {
        let wave = self.0.last().map_or(0, |last| last.wave + 1);
        self.0.extend(steps.into_iter().map(|step| Step { wave: step.wave + wave, ..step }));
    }
}
