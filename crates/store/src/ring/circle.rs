//! A ring that reuses its oldest segment first.

use std::collections::VecDeque;

use super::{Segment, SegmentId, SegmentTag};
use crate::bytes::Reader;
use crate::generation::SEQUENCE_MAX;
use crate::mutants::{Barrier, is_on};
use crate::{Error, Result};

#[derive(Debug)]
pub(super) struct Circle {
    segments: u64,
    oldest: u64,
    writable_until: u64,
    live: VecDeque<Segment>,
}

impl Circle {
    pub(super) fn create(segments: u64) -> Self {
        // Sequence 0 is never used, so the zeros of fresh flash are no segment's generation.
        Self { segments, oldest: 1, writable_until: 1 + segments, live: VecDeque::new() }
    }

    fn head(&self) -> u64 {
        self.oldest + self.live.len() as u64
    }

    pub(super) fn reserve(&mut self, epoch: u16) -> Option<SegmentId> {
        let head = self.head();
        let writable_until = if is_on(Barrier::RingSparesCheckpoint) {
            self.writable_until
        } else {
            self.oldest + self.segments
        };
        if head >= writable_until {
            return None;
        }
        let id = SegmentId::new(head, epoch);
        self.live.push_back(Segment { id, tag: None });
        Some(id)
    }

    pub(super) fn find(&self, id: SegmentId) -> Option<&Segment> {
        let index = usize::try_from(id.sequence().checked_sub(self.oldest)?).ok()?;
        self.live.get(index).filter(|segment| segment.id == id)
    }

    pub(super) fn complete(&mut self, id: SegmentId, tag: SegmentTag) {
        let Some(index) = id.sequence().checked_sub(self.oldest) else { return };
        let segment = usize::try_from(index).ok().and_then(|index| self.live.get_mut(index));
        if let Some(segment) = segment.filter(|segment| segment.id == id) {
            segment.tag = Some(tag);
        }
    }

    pub(super) fn free_segments(&self) -> u64 {
        self.segments - (self.live.len() as u64).min(self.segments)
    }

    pub(super) fn writable_segments(&self) -> u64 {
        self.writable_until.saturating_sub(self.head())
    }

    pub(super) fn oldest(&self) -> Option<&Segment> {
        self.live.front()
    }

    pub(super) fn evict(&mut self, id: SegmentId) {
        if self.live.front().is_some_and(|segment| segment.id == id) {
            self.live.pop_front();
            self.oldest += 1;
        }
    }

    /// Oldest first.
    pub(super) fn held(&self) -> impl Iterator<Item = &Segment> {
        self.live.iter()
    }

    pub(super) fn ram_bytes(&self) -> usize {
        self.live.capacity() * size_of::<Segment>()
    }

    /// Appends the first number, and a word for each segment from there on. The mark is that number.
    pub(super) fn capture(&self, bytes: &mut Vec<u8>) -> u64 {
        bytes.reserve(12 + self.live.len() * 8);
        bytes.extend_from_slice(&self.oldest.to_le_bytes());
        let count = u32::try_from(self.live.len()).expect("a ring has fewer than 2^32 segments");
        bytes.extend_from_slice(&count.to_le_bytes());
        self.live.iter().for_each(|segment| bytes.extend_from_slice(&segment.word()));
        self.oldest
    }

    pub(super) fn committed(&mut self, mark: u64) {
        self.writable_until = self.writable_until.max(mark + self.segments);
    }

    pub(super) fn restore(segments: u64, reader: &mut Reader<'_>) -> Result<Self> {
        let oldest = reader.u64()?;
        let count = reader.count(8)?;
        let bad = |reader: &Reader<'_>, found: u64| -> Error {
            reader.refuse(format!("a ring of at most {segments} segments"), found)
        };
        if count as u64 > segments {
            return Err(bad(reader, count as u64));
        }
        if oldest == 0 || oldest > SEQUENCE_MAX {
            return Err(bad(reader, oldest));
        }
        let mut live = VecDeque::with_capacity(count);
        for index in 0..count as u64 {
            live.push_back(Segment::of_word(oldest + index, reader.u64()?));
        }
        // The newest ones without entries were being written at a crash, and their entries are in the log. Their
        // numbers are used again: if nothing is evicted they would be lost for good, and the log's entries might not
        // fit.
        while live.back().is_some_and(|segment| segment.tag == Some(SegmentTag::default())) {
            live.pop_back();
        }
        Ok(Self { segments, oldest, writable_until: oldest + segments, live })
    }
}
