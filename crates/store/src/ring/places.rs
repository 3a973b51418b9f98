//! A ring that reuses any dead segment.

use std::collections::VecDeque;

use super::{Segment, SegmentId, SegmentTag};
use crate::Result;
use crate::bytes::Reader;
use crate::generation::SEQUENCE_MAX;
use crate::mutants::{Barrier, is_on};

/// Bytes of a segment in a capture.
const SEGMENT_BYTES: usize = 24;

#[derive(Clone, Copy, Debug)]
enum Place {
    Free,
    /// Dead, but the last durable checkpoint still has it.
    Dying,
    Held(Segment),
}

#[derive(Debug)]
pub(super) struct Places {
    places: Vec<Place>,
    /// The least number that the next segment may have.
    next: u64,
    free: u64,
    /// The number of captures so far.
    captures: u64,
    /// Places that are dying, each with the number of captures before it began to.
    dying: VecDeque<(u64, usize)>,
}

impl Places {
    pub(super) fn create(segments: u64) -> Self {
        let places = vec![Place::Free; usize::try_from(segments).expect("RAM has each segment")];
        Self { places, next: 1, free: segments, captures: 0, dying: VecDeque::new() }
    }

    fn place_of(&self, sequence: u64) -> usize {
        (sequence % self.places.len() as u64) as usize
    }

    pub(super) fn reserve(&mut self, epoch: u16) -> Option<SegmentId> {
        if self.writable_segments() == 0 {
            return None;
        }
        let is_writable = |sequence: &u64| match self.places[self.place_of(*sequence)] {
            Place::Free => true,
            Place::Dying => !is_on(Barrier::RingSparesCheckpoint),
            Place::Held(_) => false,
        };
        let sequence = (self.next..self.next + self.places.len() as u64).find(is_writable)?;
        let (id, place) = (SegmentId::new(sequence, epoch), self.place_of(sequence));
        match self.places[place] {
            Place::Free => self.free -= 1,
            _ => self.dying.retain(|(_, dying)| *dying != place),
        }
        self.places[place] = Place::Held(Segment { id, tag: None });
        self.next = sequence + 1;
        Some(id)
    }

    pub(super) fn find(&self, id: SegmentId) -> Option<&Segment> {
        match &self.places[self.place_of(id.sequence())] {
            Place::Held(segment) if segment.id == id => Some(segment),
            _ => None,
        }
    }

    pub(super) fn complete(&mut self, id: SegmentId, tag: SegmentTag) {
        if self.find(id).is_none() {
            return;
        }
        let place = self.place_of(id.sequence());
        if tag.entries > 0 {
            self.places[place] = Place::Held(Segment { id, tag: Some(tag) });
        } else {
            self.places[place] = Place::Dying;
            self.dying.push_back((self.captures, place));
        }
    }

    pub(super) fn free_segments(&self) -> u64 {
        self.free + self.dying.len() as u64
    }

    pub(super) fn writable_segments(&self) -> u64 {
        if is_on(Barrier::RingSparesCheckpoint) { self.free } else { self.free_segments() }
    }

    /// The segments of the ring, oldest first.
    pub(super) fn held(&self) -> impl Iterator<Item = &Segment> {
        let mut held: Vec<_> = self
            .places
            .iter()
            .filter_map(|place| match place {
                Place::Held(segment) => Some(segment),
                _ => None,
            })
            .collect();
        held.sort_unstable_by_key(|segment| segment.id.sequence());
        held.into_iter()
    }

    pub(super) fn ram_bytes(&self) -> usize {
        let dying = self.dying.capacity() * size_of::<(u64, usize)>();
        self.places.capacity() * size_of::<Place>() + dying
    }

    /// Appends the next number, and for each segment its number, its word, its keys and whether it is clean. The mark
    /// counts captures.
    pub(super) fn capture(&mut self, bytes: &mut Vec<u8>) -> u64 {
        let held: Vec<_> = self.held().filter(|segment| segment.captured().entries > 0).collect();
        bytes.reserve(12 + held.len() * SEGMENT_BYTES);
        bytes.extend_from_slice(&self.next.to_le_bytes());
        let count = u32::try_from(held.len()).expect("a ring has fewer than 2^32 segments");
        bytes.extend_from_slice(&count.to_le_bytes());
        for segment in held {
            bytes.extend_from_slice(&segment.id.sequence().to_le_bytes());
            bytes.extend_from_slice(&segment.word());
            let SegmentTag { keys, is_clean, .. } = segment.captured();
            bytes.extend_from_slice(&keys.to_le_bytes());
            bytes.extend_from_slice(&u32::from(is_clean).to_le_bytes());
        }
        self.captures += 1;
        self.captures
    }

    pub(super) fn committed(&mut self, mark: u64) {
        while let Some(&(_, place)) = self.dying.front().filter(|(captures, _)| *captures < mark) {
            self.places[place] = Place::Free;
            self.free += 1;
            self.dying.pop_front();
        }
    }

    pub(super) fn restore(segments: u64, reader: &mut Reader<'_>) -> Result<Self> {
        let next = reader.u64()?;
        let count = reader.count(SEGMENT_BYTES)?;
        if next == 0 || next > SEQUENCE_MAX {
            return Err(reader.refuse("the number of the next segment", next));
        }
        let mut restored = Self { next, ..Self::create(segments) };
        for _ in 0..count {
            let (sequence, word) = (reader.u64()?, reader.u64()?);
            let (keys, is_clean) = (reader.u32()?.cast_signed(), reader.u32()?);
            let Segment { id, tag } = Segment::of_word(sequence, word);
            let place = restored.place_of(sequence);
            let is_free = matches!(restored.places[place], Place::Free);
            let tag = tag.filter(|tag| tag.entries > 0 && is_free && is_clean < 2);
            let Some(tag) = tag.filter(|_| (1..next).contains(&sequence)) else {
                let expected =
                    format!("segments with entries below {next}, each in one of {segments} places");
                return Err(reader.refuse(expected, sequence));
            };
            let tag = Some(SegmentTag { keys, is_clean: is_clean == 1, ..tag });
            restored.places[place] = Place::Held(Segment { id, tag });
            restored.free -= 1;
        }
        Ok(restored)
    }
}
