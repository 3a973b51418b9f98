//! Lookups that read pages: one pipeline for tables, filters, evictions and value logs.
//!
//! A lookup is a chain of reads. Its user implements [`PageReads`]: which page to read, what the page contains, and
//! whether that is the answer or another page must be read. The pipeline carries many lookups at once. It keeps the
//! device's queue full, and starts the reads in the order in which the [schedule](crate::schedule) spreads them over
//! the device's channels (ANCS'14, section 5.2).
//!
//! ```text
//!   user: ask RAM --probe--> place --> [ schedule ] --> [ device's queue ] --> look --> next --answer-->
//!                              ^                                                         |
//!                              +------------------------- probe -------------------------+
//! ```
//!
//! It has three forms. [`ReadPool::look_up`] does one lookup on the caller's thread, [`ReadPipeline::batch`] looks up
//! all keys of a slice, and a [`ReadPipeline`] is a stream: probes go in at one end, and answers come out at the other
//! in the order in which their pages arrive. A large batch may sort its reads; lookups of the same pages and of pages
//! next to each other share one.
//!
//! A pipeline that is dropped waits for the reads in flight. So its queue and page buffers return to the pool
//! after a failure too.

mod pipeline;
mod pool;
mod runs;
#[cfg(test)]
mod tests;

use nandex_device::{PageBuf, PageId};

pub use pipeline::{Answered, ReadPipeline};
pub(crate) use pool::IdleReads;
pub use pool::ReadPool;

use crate::schedule::SequentialWrite;

/// The next step of a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookupStep<P, A> {
    /// The lookup has ended.
    Answer(A),
    /// Pages must be read.
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

    /// The same step with another answer.
    #[inline]
    pub fn map_answer<B>(self, answer: impl FnOnce(A) -> B) -> LookupStep<P, B> {
        match self {
            Self::Answer(known) => LookupStep::Answer(answer(known)),
            Self::Read(read) => LookupStep::Read(read),
        }
    }

    /// The same step, whose probe replaces another one.
    #[inline]
    pub fn replace(self, probe: &mut P) -> LookupStep<(), A> {
        self.map_read(|next| *probe = next)
    }
}

/// Pages that are read together, and the basis for the estimate of their channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadPlace {
    /// The first page.
    pub page: PageId,
    /// The number of pages.
    pub pages: u32,
    /// The write that put them there.
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

/// The differences between kinds of lookups: which pages they read, and what those pages mean.
pub trait PageReads: Sized {
    /// A lookup in progress: its key, what it reads next, and what it has found.
    type Probe;
    /// The result of a lookup.
    type Answer;
    /// The reason that a lookup fails.
    type Error: From<nandex_device::Error>;

    /// Whether a large batch reads in the order of pages, so that lookups share reads. This pays where pages have many
    /// of its keys. It is not worth it where hashes spread few lookups over many pages, or reads are counted for each
    /// lookup.
    const SORTS_BATCHES: bool = false;

    /// The number of reads that a probe makes at the same time, at least one. The lookup continues after the last of
    /// them.
    fn parts(&self, _probe: &Self::Probe) -> u32 {
        1
    }

    /// The place of part number `part` of a probe. It must not change until the last part was processed.
    fn place(&self, probe: &Self::Probe, part: u32) -> ReadPlace;

    /// Verifies the pages of a part, and notes their contents in the probe.
    ///
    /// # Errors
    /// An error for pages that fail verification. The lookup has then failed.
    fn look(&self, probe: &mut Self::Probe, part: u32, pages: &PageBuf) -> Result<(), Self::Error>;

    /// Returns the next step after all parts of a probe were processed: the answer, or a read of the probe, which this
    /// function changes.
    ///
    /// # Errors
    /// Any error of the user. The lookup has failed then.
    fn next(&self, probe: &mut Self::Probe) -> NextStep<Self>;
}

impl<U: PageReads> PageReads for &U {
    type Probe = U::Probe;
    type Answer = U::Answer;
    type Error = U::Error;

    const SORTS_BATCHES: bool = U::SORTS_BATCHES;

    #[inline]
    fn parts(&self, probe: &Self::Probe) -> u32 {
        U::parts(self, probe)
    }

    #[inline]
    fn place(&self, probe: &Self::Probe, part: u32) -> ReadPlace {
        U::place(self, probe, part)
    }

    #[inline]
    fn look(&self, probe: &mut Self::Probe, part: u32, pages: &PageBuf) -> Result<(), Self::Error> {
        U::look(self, probe, part, pages)
    }

    #[inline]
    fn next(&self, probe: &mut Self::Probe) -> NextStep<Self> {
        U::next(self, probe)
    }
}

/// The result of a lookup after RAM was searched.
pub type UserStep<U> =
    Result<LookupStep<<U as PageReads>::Probe, <U as PageReads>::Answer>, <U as PageReads>::Error>;

/// The result of a lookup after pages were processed.
pub type NextStep<U> = Result<LookupStep<(), <U as PageReads>::Answer>, <U as PageReads>::Error>;
