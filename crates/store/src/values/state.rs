//! The encoding of a value log's state in a checkpoint, as drawn in docs/reference/format.md.

use std::fmt::Display;

use crate::Result;
use crate::bytes::Reader;

use super::config::{SEGMENTS_MAX, ValuesConfig};
use super::extents::SegmentGroup;
use super::format::{LiveSegment, Overwritten, SEQUENCE_BITS, ValuesState};

/// The version of the state's bytes.
const STATE_VERSION: u8 = 1;

/// The version of the counts and growth, at the end of the state.
const COUNTS_VERSION: u8 = 1;

/// The expected and the found value of a contradiction.
type Contradiction = std::result::Result<(), (String, String)>;

impl ValuesState {
    /// Returns the state of a value log that was just created.
    #[must_use]
    pub fn fresh(config: &ValuesConfig) -> Self {
        Self {
            last_sequence: 0,
            live: Vec::new(),
            free: (0..config.segments).collect(),
            overwritten: Overwritten::default(),
            added: Vec::new(),
        }
    }

    /// Appends the encoded state.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let count = |count: usize| u32::try_from(count).expect("there are at most 2^20 segments");
        out.push(STATE_VERSION);
        out.extend_from_slice(&self.last_sequence.to_le_bytes());
        out.extend_from_slice(&count(self.live.len()).to_le_bytes());
        for segment in &self.live {
            out.extend_from_slice(&segment.slot.to_le_bytes());
            out.extend_from_slice(&segment.sequence.to_le_bytes());
            out.extend_from_slice(&segment.pages.to_le_bytes());
            out.extend_from_slice(&segment.live_bytes.to_le_bytes());
        }
        out.extend_from_slice(&count(self.free.len()).to_le_bytes());
        self.free.iter().for_each(|slot| out.extend_from_slice(&slot.to_le_bytes()));
        out.push(COUNTS_VERSION);
        out.extend_from_slice(&self.overwritten.segments.to_le_bytes());
        out.extend_from_slice(&self.overwritten.records.to_le_bytes());
        let records = self.live.iter().map(|segment| segment.live_records);
        records.for_each(|records| out.extend_from_slice(&records.to_le_bytes()));
        out.extend_from_slice(&count(self.added.len()).to_le_bytes());
        for SegmentGroup { segment_pages, segments } in &self.added {
            out.extend_from_slice(&segment_pages.to_le_bytes());
            out.extend_from_slice(&segments.to_le_bytes());
        }
    }

    /// Decodes a state from bytes that may be anything.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) when they do not describe a value log of this configuration.
    pub fn decode(reader: &mut Reader<'_>, config: &ValuesConfig) -> Result<Self> {
        let version = reader.u8()?;
        if version != STATE_VERSION {
            let expected = format!("state of version {STATE_VERSION}");
            return Err(reader.refuse(expected, format!("version {version}")));
        }
        let last_sequence = reader.u64()?;
        let count = reader.count(24)?;
        let mut live = Vec::with_capacity(count);
        for _ in 0..count {
            let (slot, sequence) = (reader.u32()?, reader.u64()?);
            let (pages, live_bytes) = (reader.u32()?, reader.u64()?);
            live.push(LiveSegment { slot, sequence, pages, live_bytes, live_records: 0 });
        }
        let count = reader.count(4)?;
        let free = (0..count).map(|_| reader.u32()).collect::<Result<_>>()?;
        let mut state = Self { last_sequence, live, free, ..Self::fresh(config) };
        state.decode_counts(reader)?;
        state.check(config).map_err(|(expected, found)| reader.refuse(expected, found))?;
        Ok(state)
    }

    /// Decodes the end of the state. A state of an earlier version has none: nothing was counted, and nothing added.
    fn decode_counts(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        if reader.left() == 0 {
            return Ok(());
        }
        let version = reader.u8()?;
        if version != COUNTS_VERSION {
            return Err(reader.refuse(format!("counts of version {COUNTS_VERSION}"), version));
        }
        self.overwritten = Overwritten { segments: reader.u64()?, records: reader.u64()? };
        for segment in &mut self.live {
            segment.live_records = reader.u32()?;
        }
        for _ in 0..reader.count(8)? {
            let (segment_pages, segments) = (reader.u32()?, reader.u32()?);
            self.added.push(SegmentGroup { segment_pages, segments });
        }
        Ok(())
    }

    /// Finds the first contradiction.
    fn check(&self, config: &ValuesConfig) -> Contradiction {
        let ascending = self.live.windows(2).all(|pair| pair[0].sequence < pair[1].sequence);
        let newest = self.live.last().map_or(self.last_sequence, |segment| segment.sequence);
        if !ascending || newest != self.last_sequence || newest >> (SEQUENCE_BITS - 1) != 0 {
            return refuse("numbers of segments that ascend to the newest".into(), &newest);
        }
        let pages_of = self.segment_pages(config)?;
        for LiveSegment { slot, pages, .. } in &self.live {
            let most = pages_of.get(*slot as usize).copied().unwrap_or(0);
            if *pages > most {
                return refuse(format!("at most {most} pages in slot {slot}"), pages);
            }
        }
        let mut slots: Vec<_> = self.live.iter().map(|segment| segment.slot).collect();
        slots.extend_from_slice(&self.free);
        slots.sort_unstable();
        if !slots.iter().map(|slot| *slot as usize).eq(0..pages_of.len()) {
            return refuse(format!("each of {} segments once", pages_of.len()), &slots.len());
        }
        Ok(())
    }

    /// Returns the number of pages of the segment in each slot.
    fn segment_pages(
        &self,
        config: &ValuesConfig,
    ) -> std::result::Result<Vec<u32>, (String, String)> {
        let groups = std::iter::once(SegmentGroup::from(config)).chain(self.added.iter().copied());
        let mut pages_of = Vec::new();
        for group in groups {
            let left = SEGMENTS_MAX as usize - pages_of.len();
            let is_fine = (1..=1 << 20).contains(&group.segment_pages)
                && (1..=left).contains(&(group.segments as usize));
            if !is_fine {
                refuse(format!("1 to {left} segments of 1 to 2^20 pages"), &format!("{group:?}"))?;
            }
            pages_of.resize(pages_of.len() + group.segments as usize, group.segment_pages);
        }
        Ok(pages_of)
    }
}

fn refuse(expected: String, found: &dyn Display) -> Contradiction {
    Err((expected, found.to_string()))
}
