//! The ring: a circular sequence of segments, written one after another, overwriting the oldest.
//!
//! NSDI'10 section 5.2 uses the whole SSD as a single circular list for the incarnations of all super tables,
//! in the order they are flushed. Segments are numbered by a sequence that only grows; segment q is at q mod
//! segments. One rule makes it crash-safe: a segment is written only once the eviction of its old content is
//! in a durable checkpoint. So the checkpoint never points at bytes that may have been overwritten, and a
//! crash loses nothing that the log does not hold.
//!
//! ```text
//!      oldest                     head            writable until: oldest in the checkpoint + segments
//!        |  live: [oldest, head)   |  may be written |
//!  ------+-------------------------+-----------------+------> sequence
//! ```

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use nandex_device::PageId;

use crate::bytes::Reader;
use crate::generation;
use crate::mutants::{Barrier, is_on};
use crate::page::{PageKind, PageLabel, StructureId};
use crate::space::Extent;
use crate::{Error, Result};

/// A written segment's name: its sequence number, and the epoch in which it was written. After a crash, a
/// number used again differs from its first use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SegmentId(u64);

impl SegmentId {
    fn new(sequence: u64, epoch: u16) -> Self {
        Self(generation::generation(sequence, epoch))
    }

    /// Its place in the order of all segments ever written.
    #[must_use]
    pub const fn sequence(self) -> u64 {
        generation::sequence(self.0)
    }

    /// The generation on its pages.
    #[must_use]
    pub const fn generation(self) -> u64 {
        self.0
    }

    /// Was it written after the segment of that generation? True for segments of later epochs.
    #[must_use]
    pub fn is_after(self, generation: u64) -> bool {
        let other = Self(generation);
        let epochs = self.epoch().wrapping_sub(other.epoch()).cast_signed();
        epochs > 0 || epochs == 0 && self.sequence() > other.sequence()
    }

    fn epoch(self) -> u16 {
        generation::epoch(self.0)
    }
}

/// What a structure notes about a segment; the checkpoint keeps it, in 8 bytes a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SegmentTag {
    /// Its owner: a super table, a partition. At most 2^20 - 1.
    pub owner: u32,
    /// Its number of entries; 0 in a dead or an unfinished segment. At most 2^28 - 1.
    pub entries: u32,
}

/// Sizes of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingShape {
    /// Pages in a segment.
    pub segment_pages: u32,
    /// Segments in the ring.
    pub segments: u64,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    id: SegmentId,
    tag: Option<SegmentTag>,
}

#[derive(Debug)]
struct State {
    oldest: u64,
    writable_until: u64,
    live: VecDeque<Segment>,
}

/// A circular run of segments.
#[derive(Debug)]
pub struct Ring {
    structure: StructureId,
    start: PageId,
    shape: RingShape,
    epoch: u16,
    state: Mutex<State>,
    space_freed: Condvar,
}

impl Ring {
    /// An empty ring on an extent of `segment_pages * segments` pages.
    #[must_use]
    pub fn create(structure: StructureId, extent: Extent, shape: RingShape, epoch: u64) -> Self {
        // Sequence 0 is never used, so the zeros of fresh flash are no segment's generation.
        let state = State { oldest: 1, writable_until: 1 + shape.segments, live: VecDeque::new() };
        Self::with_state(structure, extent, shape, epoch, state)
    }

    fn with_state(
        structure: StructureId,
        extent: Extent,
        shape: RingShape,
        epoch: u64,
        state: State,
    ) -> Self {
        assert!(
            extent.pages >= shape.segments * u64::from(shape.segment_pages),
            "a ring fits its extent"
        );
        let epoch = generation::low(epoch);
        let (start, state, space_freed) = (extent.start, Mutex::new(state), Condvar::new());
        Self { structure, start, shape, epoch, state, space_freed }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the ring's lock panics")
    }

    /// Its sizes.
    #[must_use]
    pub fn shape(&self) -> RingShape {
        self.shape
    }

    /// Takes the next segment for writing; `None` when the next one may not be overwritten yet.
    #[must_use]
    pub fn reserve(&self) -> Option<SegmentId> {
        let mut state = self.state();
        let head = state.oldest + state.live.len() as u64;
        let writable_until = if is_on(Barrier::RingSparesCheckpoint) {
            state.writable_until
        } else {
            state.oldest + self.shape.segments
        };
        if head >= writable_until {
            return None;
        }
        let epoch = if is_on(Barrier::RingTellsEpochs) { self.epoch } else { 0 };
        let id = SegmentId::new(head, epoch);
        state.live.push_back(Segment { id, tag: None });
        Some(id)
    }

    /// Waits a while for a checkpoint to free a segment.
    pub fn wait_for_space(&self, timeout: Duration) {
        let state = self.state();
        let head = state.oldest + state.live.len() as u64;
        if head >= state.writable_until {
            // Whether time or a free segment woke it, the caller tries again.
            drop(self.space_freed.wait_timeout(state, timeout));
        }
    }

    /// Notes that a reserved segment is written, or abandoned (no entries).
    pub fn complete(&self, id: SegmentId, tag: SegmentTag) {
        let mut state = self.state();
        if let Some(segment) = state.find(id) {
            segment.tag = Some(tag);
        }
    }

    /// Is this segment still in the ring?
    #[must_use]
    pub fn holds(&self, id: SegmentId) -> bool {
        self.state().find(id).is_some()
    }

    /// Segments that can be reserved before something must be evicted.
    #[must_use]
    pub fn free_segments(&self) -> u64 {
        let state = self.state();
        self.shape.segments - (state.live.len() as u64).min(self.shape.segments)
    }

    /// Segments that can be reserved before the next checkpoint.
    #[must_use]
    pub fn writable_segments(&self) -> u64 {
        let state = self.state();
        state.writable_until - (state.oldest + state.live.len() as u64)
    }

    /// The oldest segment and its tag; `None` when there is none, or it is still being written.
    #[must_use]
    pub fn oldest(&self) -> Option<(SegmentId, SegmentTag)> {
        let state = self.state();
        let segment = state.live.front()?;
        Some((segment.id, segment.tag?))
    }

    /// Frees the oldest segment, if it has this id. Its place is written again only after the next
    /// checkpoint.
    pub fn evict(&self, id: SegmentId) {
        let mut state = self.state();
        if state.live.front().is_some_and(|segment| segment.id == id) {
            state.live.pop_front();
            state.oldest += 1;
        }
    }

    /// All segments with entries, oldest first.
    #[must_use]
    pub fn segments(&self) -> Vec<(SegmentId, SegmentTag)> {
        let state = self.state();
        let tagged = |segment: &Segment| Some((segment.id, segment.tag?));
        state.live.iter().filter_map(tagged).filter(|(_, tag)| tag.entries > 0).collect()
    }

    /// Page `index` of a segment.
    #[inline]
    #[must_use]
    pub fn page(&self, id: SegmentId, index: u64) -> PageId {
        let segment_pages = u64::from(self.shape.segment_pages);
        self.start.plus(id.sequence() % self.shape.segments * segment_pages + index)
    }

    /// What page `index` of a segment must prove to be.
    #[inline]
    #[must_use]
    pub fn label(&self, id: SegmentId, index: u64, kind: PageKind) -> PageLabel {
        let page = self.page(id, index);
        PageLabel { kind, structure: self.structure, generation: id.generation(), page }
    }

    /// RAM it holds, in bytes.
    #[must_use]
    pub fn ram_bytes(&self) -> usize {
        self.state().live.capacity() * size_of::<Segment>()
    }

    /// The ring's map, for the checkpoint. Unfinished segments are noted as dead: their entries are still in
    /// the log.
    #[must_use]
    pub fn capture(&self) -> RingCapture {
        let state = self.state();
        let mut bytes = Vec::with_capacity(16 + state.live.len() * 10);
        bytes.extend_from_slice(&state.oldest.to_le_bytes());
        let count = u32::try_from(state.live.len()).expect("a ring has fewer than 2^32 segments");
        bytes.extend_from_slice(&count.to_le_bytes());
        for segment in &state.live {
            let hidden = u32::from(!is_on(Barrier::RingHidesUnfinished));
            let dead = SegmentTag { owner: 0, entries: hidden };
            let SegmentTag { owner, entries } = segment.tag.unwrap_or(dead);
            let word = u64::from(owner) << 44 | u64::from(entries) << 16;
            bytes.extend_from_slice(&(word | u64::from(segment.id.epoch())).to_le_bytes());
        }
        RingCapture { bytes, oldest: state.oldest }
    }

    /// The checkpoint with this capture is durable: what it no longer holds may be overwritten.
    pub fn committed(&self, oldest: u64) {
        let mut state = self.state();
        state.writable_until = state.writable_until.max(oldest + self.shape.segments);
        drop(state);
        self.space_freed.notify_all();
    }

    /// A ring from a checkpoint.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the bytes describe no ring of this shape.
    pub fn restore(
        structure: StructureId,
        extent: Extent,
        shape: RingShape,
        epoch: u64,
        reader: &mut Reader<'_>,
    ) -> Result<Self> {
        let oldest = reader.u64()?;
        let count = reader.count(8)?;
        let bad = |reader: &Reader<'_>, found: u64| -> Error {
            reader.refuse(format!("a ring of at most {} segments", shape.segments), found)
        };
        if count as u64 > shape.segments {
            return Err(bad(reader, count as u64));
        }
        if oldest == 0 || oldest > generation::SEQUENCE_MAX {
            return Err(bad(reader, oldest));
        }
        let mut live = VecDeque::with_capacity(count);
        for index in 0..count as u64 {
            let word = reader.u64()?;
            let entries = (word >> 16 & 0x0fff_ffff) as u32;
            let tag = Some(SegmentTag { owner: (word >> 44) as u32, entries });
            live.push_back(Segment { id: SegmentId::new(oldest + index, word as u16), tag });
        }
        // The newest ones without entries were being written at a crash, and their entries are in the log.
        // Their numbers are used again: if nothing is evicted they would be lost for good, and the log's
        // entries might not fit.
        while live.back().is_some_and(|segment| segment.tag == Some(SegmentTag::default())) {
            live.pop_back();
        }
        let state = State { oldest, writable_until: oldest + shape.segments, live };
        Ok(Self::with_state(structure, extent, shape, epoch, state))
    }
}

impl State {
    fn find(&mut self, id: SegmentId) -> Option<&mut Segment> {
        let index = usize::try_from(id.sequence().checked_sub(self.oldest)?).ok()?;
        self.live.get_mut(index).filter(|segment| segment.id == id)
    }
}

/// A ring's map at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RingCapture {
    /// Its bytes for the checkpoint.
    pub bytes: Vec<u8>,
    /// What to hand to [`Ring::committed`] once the checkpoint is durable.
    pub oldest: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: RingShape = RingShape { segment_pages: 3, segments: 4 };
    const EXTENT: Extent = Extent { start: PageId(100), pages: 12 };

    fn ring() -> Ring {
        Ring::create(StructureId(1), EXTENT, SHAPE, 5)
    }

    fn tag(owner: u32) -> SegmentTag {
        SegmentTag { owner, entries: 10 }
    }

    #[test]
    fn a_segment_is_overwritten_only_after_its_eviction_is_durable() {
        let ring = ring();
        let ids: Vec<_> = (0..4).map(|_| ring.reserve().unwrap()).collect();
        assert_eq!(ring.reserve(), None);
        ids.iter().for_each(|&id| ring.complete(id, tag(1)));
        let (oldest, _) = ring.oldest().unwrap();
        ring.evict(oldest);
        assert_eq!(ring.reserve(), None, "the eviction is not durable yet");
        ring.committed(ring.capture().oldest);
        let again = ring.reserve().unwrap();
        assert_eq!(ring.page(again, 0), ring.page(oldest, 0));
        assert_ne!(again.generation(), oldest.generation());
    }

    #[test]
    fn an_unfinished_segment_is_not_evicted() {
        let ring = ring();
        let id = ring.reserve().unwrap();
        assert_eq!(ring.oldest(), None);
        ring.complete(id, tag(2));
        assert_eq!(ring.oldest(), Some((id, tag(2))));
    }

    #[test]
    fn a_restored_ring_goes_on_where_it_was_and_tells_numbers_used_again_apart() {
        let ring = ring();
        let [dead, first, lost] = [(); 3].map(|()| ring.reserve().unwrap());
        ring.complete(dead, SegmentTag::default());
        ring.complete(first, tag(7));
        let RingCapture { bytes, .. } = ring.capture();
        let mut reader = Reader::new(&bytes, "ring", PageId(0));
        let restored = Ring::restore(StructureId(1), EXTENT, SHAPE, 6, &mut reader).unwrap();
        assert_eq!(restored.segments(), vec![(first, tag(7))]);
        assert!(restored.holds(dead) && restored.holds(first) && !restored.holds(lost));
        let next = restored.reserve().unwrap();
        assert_eq!(next.sequence(), lost.sequence());
        assert_ne!(next.generation(), lost.generation());
    }

    #[test]
    fn damaged_maps_are_refused() {
        for bytes in [vec![0; 12], vec![1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0], vec![1; 5]] {
            let mut reader = Reader::new(&bytes, "ring", PageId(0));
            assert!(Ring::restore(StructureId(1), EXTENT, SHAPE, 6, &mut reader).is_err());
        }
    }
}
