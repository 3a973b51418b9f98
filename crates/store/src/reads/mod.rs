//! Lookups that read pages: one pipeline for tables, filters, evictions and value logs.
//!
//! A lookup is a chain of reads. Its user says by [`PageReads`] which page to read, what the page says, and
//! whether that is the answer or another page has to be read. The pipeline carries many lookups at once: it
//! keeps the device's queue full, and starts the reads in the order in which the
//! [schedule](crate::schedule) spreads them over the device's channels (ANCS'14, section 5.2).
//!
//! ```text
//!   user: ask RAM --probe--> place --> [ schedule ] --> [ device's queue ] --> look --> next --answer-->
//!                              ^                                                         |
//!                              +------------------------- probe -------------------------+
//! ```
//!
//! There are three faces of it. [`ReadPool::look_up`] carries one lookup on the caller's thread,
//! [`ReadPipeline::batch`] all keys of a slice, and a [`ReadPipeline`] by itself is a stream: probes go in at
//! one end, and answers come out at the other in the order in which their pages arrive.
//!
//! A pipeline that is dropped waits for the reads in flight. So its queue and page buffers go back to the pool
//! after a failure too.

mod pipeline;
mod pool;
#[cfg(test)]
mod tests;

use nandex_device::{PageBuf, PageId};

pub use pipeline::{Answered, ReadPipeline};
pub use pool::ReadPool;

use crate::schedule::SequentialWrite;

/// What follows from what a lookup knows so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookupStep<P, A> {
    /// The lookup has ended.
    Answer(A),
    /// Pages have to be read.
    Read(P),
}

impl<P, A> LookupStep<P, A> {
    /// The same step with another probe.
    #[inline]
    pub fn map_read<Q>(self, probe: impl FnOnce(P) -> Q) -> LookupStep<Q, A> {
        match self {
            Self::Answer(answer) => LookupStep::Answer(answer),
            Self::Read(read) => LookupStep::Read(probe(read)),
        }
    }

    /// The same step, whose probe takes the place of another one.
    #[inline]
    pub fn replace(self, probe: &mut P) -> LookupStep<(), A> {
        self.map_read(|next| *probe = next)
    }
}

/// Pages that are read together, and what their channel is estimated from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadPlace {
    /// The first page.
    pub page: PageId,
    /// How many pages.
    pub pages: u32,
    /// The write that brought it there.
    pub write: SequentialWrite,
}

impl ReadPlace {
    /// One page, of a write that began with the page `start`.
    #[inline]
    #[must_use]
    pub const fn page(page: PageId, start: PageId) -> Self {
        Self { page, pages: 1, write: SequentialWrite::at(start) }
    }
}

/// What is particular to a kind of lookup: which pages it reads, and what they say.
pub trait PageReads: Sized {
    /// A lookup on its way: its key, what it reads next, and what it has found.
    type Probe;
    /// What a lookup ends with.
    type Answer;
    /// Why a lookup fails.
    type Error: From<nandex_device::Error>;

    /// Reads that a probe makes at the same time, at least one. The lookup goes on after the last of them.
    fn parts(&self, _probe: &Self::Probe) -> u32 {
        1
    }

    /// Where part number `part` of a probe is. Gives the same until the last part was looked at.
    fn place(&self, probe: &Self::Probe, part: u32) -> ReadPlace;

    /// Proves the pages of a part, and notes in the probe what they say.
    ///
    /// # Errors
    /// Pages that do not prove themselves. The lookup has failed then.
    fn look(&self, probe: &mut Self::Probe, part: u32, pages: &PageBuf) -> Result<(), Self::Error>;

    /// What follows after all parts of a probe were looked at: the answer, or the read of what the probe, which
    /// this changes, says next.
    ///
    /// # Errors
    /// Whatever the user finds wrong. The lookup has failed then.
    fn next(&self, probe: &mut Self::Probe) -> NextStep<Self>;
}

/// What a lookup comes to after RAM was asked.
pub type UserStep<U> =
    Result<LookupStep<<U as PageReads>::Probe, <U as PageReads>::Answer>, <U as PageReads>::Error>;

/// What a lookup comes to after pages were looked at.
pub type NextStep<U> = Result<LookupStep<(), <U as PageReads>::Answer>, <U as PageReads>::Error>;
