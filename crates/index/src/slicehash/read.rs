//! What a lookup finds below the buffers: runs of the front table where there are any, then one slice.

use nandex_device::{PageBuf, PageId};
use nandex_store::entries::SlotState;
use nandex_store::hash::KeyHash;
use nandex_store::page::{PageKind, RawPage};
use nandex_store::ring::SegmentId;
use nandex_store::schedule::SequentialWrite;
use nandex_store::shadow::Block;

use super::{Inner, State};
use crate::Result;
use crate::api::Value;
use crate::intake::{Asked, Next, Place, Seen};

/// A lookup's place below the buffers.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    at: At,
    /// Runs that are still to be read, the newest last.
    older: Vec<SegmentId>,
    /// The slicetable, if it is still to be read.
    block: Option<Block>,
}

/// What a probe reads.
#[derive(Clone, Copy, Debug)]
enum At {
    /// A page of a run of the front table.
    Run(SegmentId),
    /// All parts of a slice.
    Slice(Block),
}

impl Probe {
    /// The newest of these; nothing where there is none.
    fn first(mut older: Vec<SegmentId>, block: Option<Block>) -> Option<Self> {
        match (older.pop(), block) {
            (Some(run), block) => Some(Self { at: At::Run(run), older, block }),
            (None, Some(block)) => Some(Self { at: At::Slice(block), older, block: None }),
            (None, None) => None,
        }
    }

    /// Pages that are read at once.
    pub(super) fn parts(&self, slice_parts: u32) -> u32 {
        match self.at {
            At::Run(_) => 1,
            At::Slice(_) => slice_parts,
        }
    }
}

impl Inner {
    /// What RAM tells of a key.
    #[inline]
    pub(super) fn ask(&self, hash: KeyHash, key: &[u8]) -> Asked<Probe> {
        let index = self.partition_of(hash);
        let state = self.partitions[index].lock();
        if let Some(answer) = state.answer(hash, key) {
            return Asked::Answer(answer);
        }
        let runs = state.level.runs_of(hash);
        let mut block = self.room.shadow.block(index as u32);
        let filter = state.level.filter.as_ref();
        if filter.is_some_and(|filter| !filter.may_hold(self.room.slicing.slice_of_key(hash), hash))
        {
            block = None;
            drop(state);
            self.missed(index);
        }
        match Probe::first(runs, block) {
            Some(probe) => Asked::Read(probe),
            None => Asked::Answer(None),
        }
    }

    /// May a version of this key lie below the active buffer?
    pub(super) fn may_be_older(
        &self,
        index: usize,
        state: &State,
        hash: KeyHash,
        key: &[u8],
    ) -> bool {
        if state.in_frozen(hash, key) || !state.level.runs.is_empty() {
            return true;
        }
        let slice = self.room.slicing.slice_of_key(hash);
        let filter = state.level.filter.as_ref();
        self.room.shadow.block(index as u32).is_some()
            && filter.is_none_or(|filter| filter.may_hold(slice, hash))
    }

    /// Where a part of a probe lies.
    #[inline]
    pub(super) fn place(&self, hash: KeyHash, probe: &Probe, part: u32) -> Place {
        let (page, first) = match probe.at {
            At::Run(id) => (self.room.front.page(id, hash), self.room.front.page_at(id, 0)),
            At::Slice(block) => {
                let index = self.room.slicing.page(self.room.slicing.slice_of_key(hash), part);
                (self.room.shadow.page(block, index), self.room.shadow.page(block, 0))
            }
        };
        Place { page, channel: self.room.channels.channel(page, SequentialWrite::at(first)) }
    }

    /// Proves a page and looks for the key in it.
    pub(super) fn look(
        &self,
        page: &PageBuf,
        hash: KeyHash,
        key: &[u8],
        probe: &Probe,
        part: u32,
    ) -> Result<Seen> {
        match probe.at {
            At::Run(id) => self.look_in_run(page, hash, key, id),
            At::Slice(block) => {
                let slice = self.room.slicing.slice_of_key(hash);
                let index = self.room.slicing.page(slice, part);
                let label = self.room.shadow.label(block, index, PageKind::Slice);
                let body = match RawPage::new(page).check(label) {
                    Ok(page) => page.body(),
                    Err(_) if !self.is_current(hash, block) => return Ok(Seen::Gone),
                    Err(error) => return Err(error.into()),
                };
                self.look_in_slice(body, key, label.page)
            }
        }
    }

    fn is_current(&self, hash: KeyHash, block: Block) -> bool {
        self.room.shadow.is_current(self.partition_of(hash) as u32, block)
    }

    fn look_in_slice(&self, body: &[u8], key: &[u8], place: PageId) -> Result<Seen> {
        let layout = self.room.slices;
        let Some(count) = layout.count(body) else {
            let most = format!("at most {} entries", layout.capacity());
            return Err(nandex_store::Error::corrupt("slice", place, most, "more").into());
        };
        Ok(match layout.find(body, count, key) {
            Some(at) => Seen::Live(Value::new(layout.value(body, at))),
            None => Seen::Absent,
        })
    }

    fn look_in_run(
        &self,
        page: &PageBuf,
        hash: KeyHash,
        key: &[u8],
        id: SegmentId,
    ) -> Result<Seen> {
        let label = self.room.front.label(id, hash);
        let bytes = match RawPage::new(page).check(label) {
            Ok(page) => page.bytes(),
            Err(_) if !self.has_run(self.partition_of(hash), id) => return Ok(Seen::Gone),
            Err(error) => return Err(error.into()),
        };

        let slot = self.layout.find(bytes, key, self.layout.buckets_of(hash));
        Ok(slot.and_then(|slot| self.layout.entry(bytes, slot)).map_or(Seen::Absent, |entry| {
            match entry.state {
                SlotState::Live => Seen::Live(Value::new(entry.value)),
                SlotState::Tombstone => Seen::Tombstone,
            }
        }))
    }

    /// Where a lookup goes on that found nothing there: to what is older.
    pub(super) fn next(&self, hash: KeyHash, probe: &Probe) -> Next<Probe> {
        if let At::Slice(_) = probe.at {
            self.missed(self.partition_of(hash));
        }
        Probe::first(probe.older.clone(), probe.block).map_or(Next::Absent, Next::Read)
    }
}
