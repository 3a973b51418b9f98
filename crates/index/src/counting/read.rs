//! The lookup path: a partition's buffers, then a page of each staged segment that its filter does not rule out, then a
//! page of the data segment. The count is the sum over these, from the newest back to a removal.

use std::sync::Arc;

use nandex_device::PageBuf;
use nandex_store::reads::{LookupStep, NextStep, PageReads, ReadPlace, UserStep};

use super::change::Change;
use super::keys::KEY_BYTES_MAX;
use super::segment::Segment;
use super::segments::PartitionSegments;
use super::{Inner, State};
use crate::lookup::{self, KeyLookup, KeyStream, Lookups};
use crate::{Error, Result};

/// A lookup that has pages to read.
#[derive(Debug)]
pub(crate) struct CountProbe {
    key: [u8; KEY_BYTES_MAX],
    place: u64,
    /// The combined change of newer buffers and segments.
    newer: Change,
    segments: Arc<PartitionSegments>,
    /// The segments still to read, one bit for each, newest first.
    wanted: u64,
    /// The page of the segment that is being read, counted from its first.
    page: u64,
    /// Whether this segment is fully read.
    is_read: bool,
}

impl CountProbe {
    /// Returns the segment that is being read.
    fn segment(&self) -> &Arc<Segment> {
        let number = self.wanted.trailing_zeros() as usize;
        self.segments.newest_first().nth(number).expect("a lookup has a segment to read")
    }

    /// Begins with the first wanted segment, if the answer is not known yet.
    fn begin(&mut self) -> LookupStep<(), i64> {
        if self.wanted == 0 || self.newer.removes {
            return LookupStep::Answer(self.newer.amount);
        }
        let page = self.segment().shape.page_of(self.place);
        (self.page, self.is_read) = (page, false);
        LookupStep::Read(())
    }
}

/// A stored key and its place.
pub(crate) struct KeyPlace {
    pub key: [u8; KEY_BYTES_MAX],
    pub partition: usize,
    pub place: u64,
}

/// Lookups of counts.
struct CountLookup<'i>(&'i Inner);

impl KeyLookup for CountLookup<'_> {
    type KeyPlace = KeyPlace;

    const GROUP: usize = 256;

    fn lookups(&self) -> &Lookups {
        &self.0.lookups
    }

    fn check_key(&self, key: &[u8]) -> Result<()> {
        self.0.placing().check(key)
    }

    fn locate(&self, key: &[u8]) -> KeyPlace {
        self.0.locate(key)
    }

    fn prefetch(&self, place: &KeyPlace) {
        let state = self.0.partitions[place.partition].read();
        state.prefetch(|buffer| buffer.prefetch(place.place));
    }

    fn search_ram(&self, at: &KeyPlace, _key: &[u8]) -> UserStep<Self> {
        let KeyPlace { key, partition, place } = *at;
        let state = self.0.partitions[partition].read();
        let newer = state.buffered(place, &key[..self.0.placing().width()])?;
        if newer.removes {
            return Ok(LookupStep::Answer(newer.amount));
        }
        let segments = Arc::clone(&state.level);
        drop(state);
        let may_have = segments.newest_first().map(|segment| u64::from(segment.may_have(place)));
        let wanted = may_have.enumerate().fold(0, |bits, (number, bit)| bits | bit << number);
        let mut probe = CountProbe { key, place, newer, segments, wanted, page: 0, is_read: false };
        Ok(probe.begin().map_read(|()| probe))
    }

    fn is_found(sum: &i64) -> bool {
        *sum > 0
    }
}

impl PageReads for CountLookup<'_> {
    type Probe = CountProbe;
    type Answer = i64;
    type Error = Error;

    fn place(&self, probe: &CountProbe, _part: u32) -> ReadPlace {
        let segment = probe.segment();
        ReadPlace::page(segment.page(probe.page), segment.page(0))
    }

    fn look(&self, probe: &mut CountProbe, _part: u32, page: &PageBuf) -> Result<()> {
        let key = &probe.key[..self.0.placing().width()];
        match probe.segment().look(probe.page, page.page(0), key)? {
            LookupStep::Read(next) => probe.page = next,
            LookupStep::Answer(found) => {
                probe.newer = found.unwrap_or_default().then_at_most(probe.newer);
                probe.is_read = true;
            }
        }
        Ok(())
    }

    fn next(&self, probe: &mut CountProbe) -> NextStep<Self> {
        if !probe.is_read {
            return Ok(LookupStep::Read(()));
        }
        probe.wanted &= probe.wanted - 1;
        Ok(probe.begin())
    }
}

impl Inner {
    /// Returns the stored bytes of a key, and their place. The key must have the right width.
    #[inline]
    pub(super) fn locate(&self, key: &[u8]) -> KeyPlace {
        let placing = self.placing();
        let key = placing.stored(key);
        let (partition, place) = placing.place(&key[..placing.width()]);
        KeyPlace { key, partition, place }
    }

    pub(super) fn sum(&self, key: &[u8]) -> Result<i64> {
        lookup::single(&CountLookup(self), key)
    }

    pub(super) fn sum_many(&self, keys: &[&[u8]]) -> Result<Vec<i64>> {
        lookup::batch(&CountLookup(self), keys)
    }
}

impl State {
    /// Returns the change of a key in the buffers.
    pub(super) fn buffered(&self, place: u64, key: &[u8]) -> Result<Change> {
        let mut newer = Change::default();
        for buffer in self.buffers()? {
            newer = buffer.change(place, key).unwrap_or_default().then_at_most(newer);
            if newer.removes {
                break;
            }
        }
        Ok(newer)
    }
}

/// A stream of queries over one queue of the device; see [`Counting::stream`](super::Counting::stream).
pub struct CountStream<'t>(KeyStream<'t, CountLookup<'t>>);

impl<'t> CountStream<'t> {
    pub(super) fn new(core: &'t Inner) -> Self {
        Self(KeyStream::new(&core.lookups, CountLookup(core)))
    }

    /// Starts a query; `token` is returned with the sum. Waits for one read when the limit of reads in flight is
    /// reached, never for all of them. Sums wait in RAM until they are taken.
    ///
    /// # Errors
    /// A key of the wrong width; a failed read or a damaged page of any query in progress. That query then has no
    /// answer, and the others continue.
    pub fn push(&mut self, key: &[u8], token: u64) -> Result<()> {
        self.0.push(key, token)
    }

    /// Returns a token with its sum, if one is ready.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn poll(&mut self) -> Result<Option<(u64, i64)>> {
        self.0.poll()
    }

    /// Returns the next token with its sum, waiting while any query is in progress; `None` if there is none.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn pull(&mut self) -> Result<Option<(u64, i64)>> {
        self.0.pull()
    }

    /// The number of queries whose sums have not been taken yet.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.0.pending()
    }
}

impl std::fmt::Debug for CountStream<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CountStream").field("pending", &self.pending()).finish_non_exhaustive()
    }
}

/// Returns a count as a caller sees it: never below 0, even if more was subtracted than was added.
pub(super) fn clamped(sum: i64) -> u64 {
    u64::try_from(sum).unwrap_or_default()
}
