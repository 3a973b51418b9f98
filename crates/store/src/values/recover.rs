//! Recovery from flash: the checkpoint's segments, then those begun since.
//!
//! The write-ahead log has no entries for the value log; pages written after the checkpoint are recognised by their
//! headers. They are in the head after its known pages, and in the segments that come next in the order of the free
//! ones of each length, and carry their segment's number. A number is used once in a structure, but an earlier volume
//! on the same device may have had the same structure and number at the same place; so generations are marked with bits
//! of the volume's hash key. A page that matches by chance would cost its space, and nothing else, since no reference
//! leads there.

use std::sync::{Arc, Mutex};

use nandex_device::PageBuf;

use crate::bytes::Reader;
use crate::hash::{KeyHasher, mix};
use crate::mutants::{Barrier, is_on};
use crate::page::{PAGE_HEADER_BYTES, RawPage, seal};
use crate::schedule::Channels;
use crate::space::Extent;
use crate::{Result, Structure, Volume};

use super::extents::{Extents, SegmentGroup};
use super::format::{LiveSegment, RecordStart, SEQUENCE_BITS, ValuesState};
use super::read::READ_DEPTH;
use super::segments::{LiveCounts, Segments};
use super::visit::Records;
use super::{Counters, Inner, ValueLog, ValuesConfig, weak};

/// Opens a value log: a list of steps.
pub(super) fn open(volume: &Volume, structure: Structure) -> Result<ValueLog> {
    let place = structure.extent()?.start;
    let mut reader = Reader::new(&structure.config, "configuration of a value log", place);
    let config = ValuesConfig::decode(&mut reader)?;
    let (state, extents) = restore(&structure, &config)?;
    let segments = Segments::new(extents, &state);
    let inner = Arc::new(assemble(volume, &structure, config, segments));
    if is_on(Barrier::ValuesRolledForward) {
        inner.find_written()?;
    }
    volume.register(structure.id, weak(&inner));
    Ok(ValueLog { inner })
}

/// Returns the state in the checkpoint, or that of an empty log if there is none, and the places of the segments.
pub(super) fn restore(
    structure: &Structure,
    config: &ValuesConfig,
) -> Result<(ValuesState, Extents)> {
    let place = structure.extent()?.start;
    let mut reader = Reader::new(&structure.state, "state of a value log", place);
    let state = match structure.state.is_empty() {
        true => ValuesState::fresh(config),
        false => ValuesState::decode(&mut reader, config)?,
    };
    let groups = std::iter::once(SegmentGroup::from(config)).chain(state.added.iter().copied());
    let groups: Vec<_> = groups.collect();
    let fits = |(group, extent): (&SegmentGroup, &Extent)| extent.pages >= group.pages();
    if groups.len() != structure.extents.len() || !groups.iter().zip(&structure.extents).all(fits) {
        let expected = format!("extents for {groups:?}");
        return Err(reader.refuse(expected, format!("{:?}", structure.extents)));
    }
    let extents = Extents::new(groups.into_iter().zip(structure.extents.iter().copied()));
    Ok((state, extents))
}

fn assemble(
    volume: &Volume,
    structure: &Structure,
    config: ValuesConfig,
    segments: Segments,
) -> Inner {
    let device = volume.device();
    let channels = Channels::of(&device.geometry());
    let reads = volume.read_pool(device, channels, READ_DEPTH);
    Inner {
        volume: volume.clone(),
        id: structure.id,
        config,
        mark: mark_of(&volume.hasher()),
        state: super::State::new(segments).into(),
        writer: None.into(),
        growing: Mutex::default(),
        reads,
        counters: Counters::default(),
    }
}

/// Returns the mark of a volume in the generations of its value logs' pages.
pub(super) fn mark_of(hasher: &KeyHasher) -> u64 {
    let key = hasher.key();
    mix((key & u128::from(u64::MAX)) as u64 ^ mix((key >> 64) as u64)) >> SEQUENCE_BITS
}

impl Inner {
    /// Finds the pages written since the checkpoint. Everything committed is before the first gap of a chunk's length
    /// in a segment, and segments were begun in the order of the free ones.
    fn find_written(&self) -> Result<()> {
        let head = self.state().segments.head();
        if let Some(head) = head {
            self.find_pages(head)?;
        }
        while let Some(next) = self.find_next()? {
            self.state().segments.begin_slot(next.slot);
            self.find_pages(next)?;
        }
        Ok(())
    }

    /// Returns the segment that was begun next, if one was and some of it was written.
    fn find_next(&self) -> Result<Option<LiveSegment>> {
        let candidates = self.state().segments.next();
        for segment in candidates {
            if !self.proven_pages(segment)?.pages.is_empty() {
                return Ok(Some(segment));
            }
        }
        Ok(None)
    }

    /// Finds the pages of a segment after the known ones, and closes the gaps between them.
    fn find_pages(&self, segment: LiveSegment) -> Result<()> {
        let Proven { pages: proven, records } = self.proven_pages(segment)?;
        let Some(last) = proven.last() else { return Ok(()) };
        let first = self.page(segment.slot, 0);
        let is_gap = |page: &u32| proven.binary_search(page).is_err();
        for page in (segment.pages..*last).filter(is_gap) {
            let mut buf = PageBuf::zeroed(1);
            let bytes = buf.page_mut(0);
            let page = first.plus(page.into());
            RecordStart::Void.encode(&mut bytes[PAGE_HEADER_BYTES..]);
            seal(bytes, self.label(segment.sequence, page));
            self.write_pages(page, buf)?;
        }
        let mut state = self.state();
        state.segments.note_pages(segment.slot, last + 1);
        let bytes = segment.live_bytes + proven.len() as u64 * super::PAYLOAD_BYTES as u64;
        let records = segment.live_records.saturating_add(records);
        state.segments.note_uncounted(segment.slot, LiveCounts { bytes, records });
        Ok(())
    }

    /// Returns the valid pages of a segment after the known ones, up to a gap as long as a chunk.
    fn proven_pages(&self, segment: LiveSegment) -> Result<Proven> {
        let mut proven = Proven::default();
        let mut records = Records::new(segment);
        let first = self.page(segment.slot, 0);
        let segment_pages = self.segment_pages(segment.slot);
        let (chunk, mut at, mut end) = (self.config.io_chunk_pages, segment.pages, segment.pages);
        while at < segment_pages && at < end + chunk {
            let count = chunk.min(segment_pages - at);
            let buf = PageBuf::zeroed(count as usize);
            let buf = self.volume.device().read(first.plus(at.into()), buf)?;
            for index in 0..count {
                let label = self.label(segment.sequence, first.plus((at + index).into()));
                let bytes = buf.page(index as usize);
                if RawPage::new(bytes).check(label).is_err() {
                    records.skip();
                    continue;
                }
                proven.pages.push(at + index);
                end = at + index + 1;
                let mut count_one = |_, _: &[u8]| {
                    proven.records += 1;
                    Ok(())
                };
                // Other damage in a page is reported when a record of it is read.
                let _ = records.page(at + index, bytes, label, &mut count_one);
            }
            at += count;
        }
        Ok(proven)
    }
}

/// The pages and records found in a segment.
#[derive(Default)]
struct Proven {
    /// Its pages, in order.
    pages: Vec<u32>,
    /// The number of whole records in them.
    records: u32,
}
