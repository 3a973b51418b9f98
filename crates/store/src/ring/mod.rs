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
//!
//! That is a ring that reuses its oldest segment first ([`Reuse::Oldest`]). Where segments die in any order, because
//! their live entries are written again elsewhere, the next segment goes to any dead place ([`Reuse::Dead`]): numbers
//! whose place is in use are skipped. The rule is the same.

mod circle;
mod places;

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use nandex_device::PageId;

use crate::Result;
use crate::bytes::Reader;
use crate::generation;
use crate::mutants::{Barrier, is_on};
use crate::page::{PageKind, PageLabel, StructureId};
use crate::space::Extent;
use circle::Circle;
use places::Places;

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

    /// Returns whether it was written after the segment of this generation. True for segments of later epochs.
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

/// The properties of a segment that a structure notes and the checkpoint stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SegmentTag {
    /// Its owner: a super table, a partition. At most 2^20 - 1.
    pub owner: u32,
    /// Its number of entries; 0 in a dead or an unfinished segment. At most 2^28 - 1.
    pub entries: u32,
    /// The change that this segment makes to its owner's number of keys, if the owner counts keys. Stored in rings that
    /// reuse any dead segment, as is the next field; in others every entry counts as a key after an opening.
    pub keys: i32,
    /// Whether it was written by cleaning, so that its owner has no older version of a key.
    pub is_clean: bool,
}

/// Sizes of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingShape {
    /// Pages in a segment.
    pub segment_pages: u32,
    /// Segments in the ring.
    pub segments: u64,
    /// The order in which segments are reused.
    pub reuse: Reuse,
}

/// The order in which segments are reused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reuse {
    /// The oldest one, once it was evicted.
    Oldest,
    /// Any segment without entries.
    Dead,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    id: SegmentId,
    /// `None` while the segment is being written.
    tag: Option<SegmentTag>,
}

#[derive(Debug)]
enum State {
    Circle(Circle),
    Places(Places),
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

impl Segment {
    /// Returns the tag for a checkpoint. A segment that is being written counts as dead: its entries are still in the
    /// log.
    fn captured(&self) -> SegmentTag {
        let hidden = u32::from(!is_on(Barrier::RingHidesUnfinished));
        self.tag.unwrap_or(SegmentTag { entries: hidden, ..SegmentTag::default() })
    }

    /// Encodes owner, entries and epoch in 8 bytes.
    fn word(&self) -> [u8; 8] {
        let SegmentTag { owner, entries, .. } = self.captured();
        let word = u64::from(owner) << 44 | u64::from(entries) << 16;
        (word | u64::from(self.id.epoch())).to_le_bytes()
    }

    fn of_word(sequence: u64, word: u64) -> Self {
        let entries = (word >> 16 & 0x0fff_ffff) as u32;
        let (owner, keys) = ((word >> 44) as u32, entries.cast_signed());
        let tag = SegmentTag { owner, entries, keys, is_clean: false };
        Self { id: SegmentId::new(sequence, word as u16), tag: Some(tag) }
    }
}

/// Calls a method of either kind of ring.
macro_rules! either {
    ($state:expr, $method:ident($($argument:expr),*)) => {
        match $state {
            State::Circle(circle) => circle.$method($($argument),*),
            State::Places(places) => places.$method($($argument),*),
        }
    };
}

impl Ring {
    /// Creates an empty ring on an extent of `segment_pages * segments` pages.
    #[must_use]
    pub fn create(structure: StructureId, extent: Extent, shape: RingShape, epoch: u64) -> Self {
        let state = match shape.reuse {
            Reuse::Oldest => State::Circle(Circle::create(shape.segments)),
            Reuse::Dead => State::Places(Places::create(shape.segments)),
        };
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
        let epoch = if is_on(Barrier::RingTellsEpochs) { self.epoch } else { 0 };
        either!(&mut *self.state(), reserve(epoch))
    }

    /// Waits at most `timeout` for a checkpoint to free segments, until this number can be reserved.
    pub fn wait_for_space(&self, segments: u64, timeout: Duration) {
        let state = self.state();
        if either!(&*state, writable_segments()) < segments {
            // Whether time or a free segment woke it, the caller tries again.
            drop(self.space_freed.wait_timeout(state, timeout));
        }
    }

    /// Notes that a reserved segment is written, or that a segment is dead (no entries). With [`Reuse::Dead`], a dead
    /// segment leaves the ring.
    pub fn complete(&self, id: SegmentId, tag: SegmentTag) {
        either!(&mut *self.state(), complete(id, tag));
    }

    /// Completes all of these at one moment: no checkpoint sees a part of them.
    pub fn complete_all(&self, all: impl Iterator<Item = (SegmentId, SegmentTag)>) {
        let mut state = self.state();
        all.for_each(|(id, tag)| either!(&mut *state, complete(id, tag)));
    }

    /// Returns whether this segment is still in the ring.
    #[must_use]
    pub fn holds(&self, id: SegmentId) -> bool {
        either!(&*self.state(), find(id)).is_some()
    }

    /// The number of segments that can be reserved before something must be evicted.
    #[must_use]
    pub fn free_segments(&self) -> u64 {
        either!(&*self.state(), free_segments())
    }

    /// The number of segments that can be reserved before the next checkpoint.
    #[must_use]
    pub fn writable_segments(&self) -> u64 {
        either!(&*self.state(), writable_segments())
    }

    /// Returns the oldest segment and its tag; `None` when there is none, when it is still being written, or with
    /// [`Reuse::Dead`].
    #[must_use]
    pub fn oldest(&self) -> Option<(SegmentId, SegmentTag)> {
        let State::Circle(circle) = &*self.state() else { return None };
        let segment = circle.oldest()?;
        Some((segment.id, segment.tag?))
    }

    /// Frees the oldest segment, if it has this id. Its place is written again only after the next checkpoint.
    pub fn evict(&self, id: SegmentId) {
        if let State::Circle(circle) = &mut *self.state() {
            circle.evict(id);
        }
    }

    /// All segments with entries, oldest first.
    #[must_use]
    pub fn segments(&self) -> Vec<(SegmentId, SegmentTag)> {
        let tagged = |segment: &Segment| Some((segment.id, segment.tag?));
        let has_entries = |(_, tag): &(SegmentId, SegmentTag)| tag.entries > 0;
        match &*self.state() {
            State::Circle(circle) => circle.held().filter_map(tagged).filter(has_entries).collect(),
            State::Places(places) => places.held().filter_map(tagged).filter(has_entries).collect(),
        }
    }

    /// Page `index` of a segment.
    #[inline]
    #[must_use]
    pub fn page(&self, id: SegmentId, index: u64) -> PageId {
        let segment_pages = u64::from(self.shape.segment_pages);
        self.start.plus(id.sequence() % self.shape.segments * segment_pages + index)
    }

    /// Returns the label that page `index` of a segment must have.
    #[inline]
    #[must_use]
    pub fn label(&self, id: SegmentId, index: u64, kind: PageKind) -> PageLabel {
        let page = self.page(id, index);
        PageLabel { kind, structure: self.structure, generation: id.generation(), page }
    }

    /// The RAM that the ring uses, in bytes.
    #[must_use]
    pub fn ram_bytes(&self) -> usize {
        either!(&*self.state(), ram_bytes())
    }

    /// Captures the ring's map for the checkpoint. Unfinished segments are noted as dead: their entries are still in
    /// the log.
    #[must_use]
    pub fn capture(&self) -> RingCapture {
        let mut bytes = Vec::new();
        let mark = either!(&mut *self.state(), capture(&mut bytes));
        RingCapture { bytes, mark }
    }

    /// Notes that the checkpoint with the capture of this mark is durable: segments that it no longer contains may be
    /// overwritten.
    pub fn committed(&self, mark: u64) {
        either!(&mut *self.state(), committed(mark));
        self.space_freed.notify_all();
    }

    /// Restores a ring from a checkpoint.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) when the bytes describe no ring of this shape.
    pub fn restore(
        structure: StructureId,
        extent: Extent,
        shape: RingShape,
        epoch: u64,
        reader: &mut Reader<'_>,
    ) -> Result<Self> {
        let state = match shape.reuse {
            Reuse::Oldest => State::Circle(Circle::restore(shape.segments, reader)?),
            Reuse::Dead => State::Places(Places::restore(shape.segments, reader)?),
        };
        Ok(Self::with_state(structure, extent, shape, epoch, state))
    }
}

/// The map of a ring at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RingCapture {
    /// Its bytes for the checkpoint.
    pub bytes: Vec<u8>,
    /// The argument of [`Ring::committed`] once the checkpoint is durable.
    pub mark: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: RingShape = RingShape { segment_pages: 3, segments: 4, reuse: Reuse::Oldest };
    const SCATTERED: RingShape = RingShape { reuse: Reuse::Dead, ..SHAPE };
    const EXTENT: Extent = Extent { start: PageId(100), pages: 12 };

    fn ring() -> Ring {
        Ring::create(StructureId(1), EXTENT, SHAPE, 5)
    }

    fn scattered() -> Ring {
        Ring::create(StructureId(1), EXTENT, SCATTERED, 5)
    }

    fn restored(shape: RingShape, bytes: &[u8]) -> Result<Ring> {
        let mut reader = Reader::new(bytes, "ring", PageId(0));
        Ring::restore(StructureId(1), EXTENT, shape, 6, &mut reader)
    }

    fn tag(owner: u32) -> SegmentTag {
        SegmentTag { owner, entries: 10, keys: 10, is_clean: false }
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
        ring.committed(ring.capture().mark);
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
        let restored = restored(SHAPE, &bytes).unwrap();
        assert_eq!(restored.segments(), vec![(first, tag(7))]);
        assert!(restored.holds(dead) && restored.holds(first) && !restored.holds(lost));
        let next = restored.reserve().unwrap();
        assert_eq!(next.sequence(), lost.sequence());
        assert_ne!(next.generation(), lost.generation());
    }

    #[test]
    fn a_dead_segment_anywhere_is_written_again_once_a_checkpoint_lacks_it() {
        let ring = scattered();
        let ids: Vec<_> = (0..4).map(|_| ring.reserve().unwrap()).collect();
        ids.iter().for_each(|&id| ring.complete(id, tag(1)));
        ring.complete(ids[2], SegmentTag::default());
        assert!(!ring.holds(ids[2]) && ring.holds(ids[3]));
        assert_eq!((ring.free_segments(), ring.writable_segments()), (1, 0));
        assert_eq!(ring.reserve(), None, "its death is not durable yet");
        let before = ring.capture().mark;
        ring.complete(ids[0], SegmentTag::default());
        ring.committed(before);
        assert_eq!((ring.free_segments(), ring.writable_segments()), (2, 1));
        let again = ring.reserve().unwrap();
        assert_eq!(ring.page(again, 0), ring.page(ids[2], 0));
        assert!(again.is_after(ids[3].generation()));
        assert_eq!(ring.reserve(), None, "that of the other one is not durable yet");
        ring.committed(ring.capture().mark);
        assert_eq!(ring.page(ring.reserve().unwrap(), 0), ring.page(ids[0], 0));
        let in_order = ring.segments().iter().map(|(id, _)| id.sequence()).collect::<Vec<_>>();
        assert_eq!(in_order, [ids[1], ids[3]].map(SegmentId::sequence));
    }

    #[test]
    fn a_restored_ring_has_what_was_written_and_all_other_places_are_free() {
        let ring = scattered();
        let [dead, first, lost] = [(); 3].map(|()| ring.reserve().unwrap());
        ring.complete(dead, SegmentTag::default());
        let tag = SegmentTag { keys: -3, is_clean: true, ..tag(7) };
        ring.complete(first, tag);
        let restored = restored(SCATTERED, &ring.capture().bytes).unwrap();
        assert_eq!(restored.segments(), vec![(first, tag)]);
        assert!(!restored.holds(dead) && !restored.holds(lost));
        assert_eq!(restored.writable_segments(), 3);
        let next = restored.reserve().unwrap();
        assert!(next.sequence() > lost.sequence() && next.is_after(lost.generation()));
        let pages = [(); 2].map(|()| restored.page(restored.reserve().unwrap(), 0));
        assert!(pages.contains(&ring.page(dead, 0)) && pages.contains(&ring.page(lost, 0)));
    }

    #[test]
    fn damaged_maps_are_refused() {
        for bytes in [vec![0; 12], vec![1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0], vec![1; 5]] {
            assert!(restored(SHAPE, &bytes).is_err());
            assert!(restored(SCATTERED, &bytes).is_err());
        }
        let map = |next: u64, segments: &[(u64, u64)]| {
            let mut bytes = next.to_le_bytes().to_vec();
            bytes.extend((segments.len() as u32).to_le_bytes());
            for (sequence, word) in segments {
                bytes.extend([*sequence, *word].into_iter().flat_map(u64::to_le_bytes));
                bytes.extend([0; 8]);
            }
            bytes
        };
        let entries = 5 << 16;
        assert!(restored(SCATTERED, &map(7, &[(2, entries), (5, entries)])).is_ok());
        for (next, segments) in [
            (0, vec![]),
            (7, vec![(7, entries)]),
            (7, vec![(0, entries)]),
            (7, vec![(2, entries), (6, entries)]),
            (7, vec![(2, 1)]),
            (7, vec![(1, entries), (2, entries), (3, entries), (4, entries), (5, entries)]),
        ] {
            assert!(restored(SCATTERED, &map(next, &segments)).is_err(), "{next} {segments:?}");
        }
    }
}
