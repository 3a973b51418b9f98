//! From flash back to memory: the checkpoint's segments, then those begun since.
//!
//! The write-ahead log has no entries for the value log; pages written after the checkpoint prove themselves.
//! They are in the head after its known pages, and in the segments that come next in the order of the free
//! ones, and carry their segment's number. A number is used once in a structure, but an earlier volume on the
//! same device may have had the same structure and number at the same place; so generations are marked with
//! bits of the volume's hash key. A page taken for ours by chance would cost its space, and nothing else,
//! since no reference leads there.

use std::sync::Arc;

use nandex_device::PageBuf;

use crate::bytes::Reader;
use crate::hash::{KeyHasher, mix};
use crate::mutants::{Barrier, is_on};
use crate::page::{PAGE_HEADER_BYTES, RawPage, seal};
use crate::reads::ReadPool;
use crate::schedule::Channels;
use crate::{Result, Structure, Volume};

use super::format::{LiveSegment, RecordStart, SEQUENCE_BITS, ValuesState};
use super::read::READ_DEPTH;
use super::segments::Segments;
use super::{Counters, Inner, ValueLog, ValuesConfig, weak};

/// Opens a value log: a list of steps.
pub(super) fn open(volume: &Volume, structure: Structure) -> Result<ValueLog> {
    let place = structure.extent()?.start;
    let mut reader = Reader::new(&structure.config, "configuration of a value log", place);
    let config = ValuesConfig::decode(&mut reader)?;
    let state = restore(&structure, &config)?;
    let inner = Arc::new(assemble(volume, &structure, config, &state)?);
    if is_on(Barrier::ValuesRolledForward) {
        inner.find_written()?;
    }
    volume.register(structure.id, weak(&inner));
    Ok(ValueLog { inner })
}

/// The state in the checkpoint; that of an empty log if there is none.
pub(super) fn restore(structure: &Structure, config: &ValuesConfig) -> Result<ValuesState> {
    let extent = structure.extent()?;
    let mut reader = Reader::new(&structure.state, "state of a value log", extent.start);
    if extent.pages < config.pages() {
        return Err(reader.refuse(format!("{} pages", config.pages()), extent.pages));
    }
    if structure.state.is_empty() {
        return Ok(ValuesState::fresh(config));
    }
    ValuesState::decode(&mut reader, config)
}

fn assemble(
    volume: &Volume,
    structure: &Structure,
    config: ValuesConfig,
    state: &ValuesState,
) -> Result<Inner> {
    let segments = Segments::new(&config, state);
    let device = Arc::clone(volume.device());
    let channels = Channels::of(&device.geometry());
    let reads = ReadPool::new(device, channels, READ_DEPTH);
    Ok(Inner {
        volume: volume.clone(),
        id: structure.id,
        config,
        extent: structure.extent()?,
        mark: mark_of(&volume.hasher()),
        state: super::State { segments, open: None, closing: None, appended: 0, durable: 0 }.into(),
        writer: None.into(),
        reads,
        counters: Counters::default(),
    })
}

/// The mark of a volume in the generations of its value logs' pages.
pub(super) fn mark_of(hasher: &KeyHasher) -> u64 {
    let key = hasher.key();
    mix((key & u128::from(u64::MAX)) as u64 ^ mix((key >> 64) as u64)) >> SEQUENCE_BITS
}

impl Inner {
    /// Finds what was written since the checkpoint. Everything committed is before the first gap of a chunk's
    /// length in a segment, and segments were begun in the order of the free ones.
    fn find_written(&self) -> Result<()> {
        let head = self.state().segments.head();
        if let Some(head) = head {
            self.find_pages(head)?;
        }
        loop {
            let next = self.state().segments.next();
            let Some((slot, sequence)) = next else { return Ok(()) };
            let unknown = LiveSegment { slot, sequence, pages: 0, live_bytes: 0 };
            if self.proven_pages(unknown)?.is_empty() {
                return Ok(());
            }
            self.state().segments.begin(0);
            self.find_pages(unknown)?;
        }
    }

    /// Finds the pages of a segment after the known ones, and closes the gaps between them.
    fn find_pages(&self, segment: LiveSegment) -> Result<()> {
        let proven = self.proven_pages(segment)?;
        let Some(last) = proven.last() else { return Ok(()) };
        let is_gap = |page: &u32| proven.binary_search(page).is_err();
        for page in (segment.pages..*last).filter(is_gap) {
            let mut buf = PageBuf::zeroed(1);
            let bytes = buf.page_mut(0);
            RecordStart::Void.encode(&mut bytes[PAGE_HEADER_BYTES..]);
            seal(bytes, self.label(segment.slot, segment.sequence, page));
            self.write_pages(self.page(segment.slot, page), buf)?;
        }
        let mut state = self.state();
        state.segments.note_pages(segment.slot, last + 1);
        let found = proven.len() as u64 * super::PAYLOAD_BYTES as u64;
        state.segments.note_uncounted(segment.slot, segment.live_bytes + found);
        Ok(())
    }

    /// The pages of a segment after the known ones that prove themselves, up to a gap as long as a chunk.
    fn proven_pages(&self, segment: LiveSegment) -> Result<Vec<u32>> {
        let mut proven = Vec::new();
        let (chunk, mut at, mut end) = (self.config.io_chunk_pages, segment.pages, segment.pages);
        while at < self.config.segment_pages && at < end + chunk {
            let count = chunk.min(self.config.segment_pages - at);
            let buf = PageBuf::zeroed(count as usize);
            let buf = self.volume.device().read(self.page(segment.slot, at), buf)?;
            for index in 0..count {
                let label = self.label(segment.slot, segment.sequence, at + index);
                if RawPage::new(buf.page(index as usize)).check(label).is_ok() {
                    proven.push(at + index);
                    end = at + index + 1;
                }
            }
            at += count;
        }
        Ok(proven)
    }
}
