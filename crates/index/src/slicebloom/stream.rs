//! A stream of lookups: keys go in and answers come out while the device's queue stays full.

use super::Inner;
use super::read::ContainsLookup;
use crate::Result;
use crate::lookup::KeyStream;

/// A stream of lookups over one queue of the device; see [`SliceBloom::stream`](super::SliceBloom::stream).
pub struct ContainsStream<'t>(KeyStream<'t, ContainsLookup<'t>>);

impl<'t> ContainsStream<'t> {
    pub(super) fn new(core: &'t Inner) -> Self {
        Self(KeyStream::new(&core.lookups, ContainsLookup(core)))
    }

    /// Starts a lookup; `token` is returned with the answer. Waits for one read when the filter's limit of reads in
    /// flight is reached, never for all of them.
    ///
    /// # Errors
    /// A failed read or a damaged page of any lookup in progress. That lookup then has no answer, and the others
    /// continue.
    pub fn push(&mut self, key: &[u8], token: u64) -> Result<()> {
        self.0.push(key, token)
    }

    /// Returns an answer if one is ready.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn poll(&mut self) -> Result<Option<(u64, bool)>> {
        self.0.poll()
    }

    /// Returns the next answer, waiting while any lookup is in progress; `None` if there is none.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn pull(&mut self) -> Result<Option<(u64, bool)>> {
        self.0.pull()
    }

    /// The number of lookups whose answers have not been taken yet.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.0.pending()
    }
}

impl std::fmt::Debug for ContainsStream<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContainsStream").field("pending", &self.pending()).finish()
    }
}
