//! What a lookup finds below the buffers: pages of the incarnations that the filters name, newest first.

use nandex_device::{Op, OpKind, PageBuf};
use nandex_store::buffer::page_of;
use nandex_store::entries::SlotState;
use nandex_store::hash::KeyHash;
use nandex_store::page::{PageKind, RawPage};
use nandex_store::ring::SegmentId;
use nandex_store::schedule::SequentialWrite;

use super::filter::Positions;
use super::table::{Candidates, Job, Known};
use super::{Inner, Policy};
use crate::Result;
use crate::api::Value;
use crate::intake::{Asked, Place, Seen};

impl Inner {
    /// Under LRU, puts back what a lookup has found, where no thread in the background does.
    #[inline]
    pub(super) fn after_lookup(&self) {
        if self.room.config.policy == Policy::Lru {
            // The lookup has its answer. A failure has poisoned the volume; the next update reports it.
            let _ = self.catch_up_now();
        }
    }

    /// What RAM tells of a key; loads the filters when they have not been yet.
    #[inline]
    pub(super) fn ask(
        &self,
        hash: KeyHash,
        positions: &Positions,
        key: &[u8],
    ) -> Result<Asked<Candidates>> {
        let index = self.partition_of(hash);
        loop {
            match self.partitions[index].ask(&self.room.filter, positions, hash, key) {
                Known::Unloaded => self.load_filters(index)?,
                Known::Answer(value) => return Ok(Asked::Answer(value)),
                Known::Candidates(candidates) => return Ok(Asked::Read(candidates)),
            }
        }
    }

    /// May a version of this key lie below the active buffer?
    pub(super) fn may_be_older(
        &self,
        index: usize,
        state: &super::table::State,
        hash: KeyHash,
        key: &[u8],
    ) -> bool {
        if !state.level.filters_loaded || state.in_frozen(hash, key) {
            return true;
        }
        let live = state.level.window.live_mask();
        let slices = &self.partitions[index].beside;
        self.room.filter.candidates(slices, hash.filter, &live) != [0; 4]
    }

    /// Where the newest candidate's page of a key lies.
    #[inline]
    pub(super) fn place(&self, hash: KeyHash, candidates: &Candidates) -> Place {
        let ring = self.room.rings.of(self.partition_of(hash));
        let page = ring.page(candidates.next, self.page_index(hash));
        // An incarnation is written front to back, as a slicetable is.
        let stroke = SequentialWrite::at(ring.page(candidates.next, 0));
        Place { page, channel: self.room.channels.channel(page, stroke) }
    }

    fn page_index(&self, hash: KeyHash) -> u64 {
        page_of(hash, self.room.config.buffer_pages as usize) as u64
    }

    /// Proves a page and looks for the key in it.
    pub(super) fn look(
        &self,
        page: &PageBuf,
        hash: KeyHash,
        key: &[u8],
        id: SegmentId,
    ) -> Result<Seen> {
        let ring = self.room.rings.of(self.partition_of(hash));
        let label = ring.label(id, self.page_index(hash), PageKind::Data);
        let page = match RawPage::new(page).check(label) {
            Ok(page) => page.bytes(),
            Err(_) if !self.partitions[self.partition_of(hash)].lock().level.holds(id) => {
                return Ok(Seen::Gone);
            }
            Err(error) => return Err(error.into()),
        };
        let slot = self.layout.find(page, key, self.layout.buckets_of(hash));
        Ok(match slot.and_then(|slot| self.layout.entry(page, slot)) {
            None => Seen::Absent,
            Some(entry) if entry.state == SlotState::Tombstone => Seen::Tombstone,
            Some(entry) => Seen::Live(Value::new(entry.value)),
        })
    }

    /// Under LRU, asks the background to put an entry that was found on flash back into the buffer.
    pub(super) fn used(&self, hash: KeyHash, key: &[u8], value: &Value, found: &Candidates) {
        if self.room.config.policy == Policy::Lru {
            let table = self.partition_of(hash);
            let (source, newest_sequence) = (found.next, found.newest_when_asked);
            let (key, value) = (key.to_vec(), value.to_vec());
            self.work.push_optional(Job::Reinsert { table, key, value, source, newest_sequence });
        }
    }

    /// Reads, for each key and incarnation that its filter named, the page that tells whether the key is
    /// there, as many at a time as the device takes.
    pub(super) fn verify(
        &self,
        keys: &[(KeyHash, &[u8])],
        maybes: &[(usize, SegmentId)],
        answers: &mut [bool],
    ) -> Result<()> {
        if maybes.is_empty() {
            return Ok(());
        }
        let mut lane = self.lane()?;
        let mut waiting = (0u64..).zip(maybes);
        loop {
            while let Some(buf) = lane.pages.pop() {
                let Some((token, &(key, id))) = waiting.next() else {
                    lane.pages.push(buf);
                    break;
                };
                let hash = keys[key].0;
                let ring = self.room.rings.of(self.partition_of(hash));
                let page = ring.page(id, self.page_index(hash));
                lane.queue.push(Op { token, kind: OpKind::Read, page, buf })?;
            }
            if lane.queue.in_flight() == 0 {
                self.lanes.give_lane(lane);
                return Ok(());
            }
            lane.queue.wait(1, &mut lane.done)?;
            for completion in lane.done.drain(..) {
                let (key, id) = maybes[usize::try_from(completion.token).expect("an index")];
                completion.result?;
                let (hash, bytes) = keys[key];
                let seen = self.look(&completion.buf, hash, bytes, id)?;
                answers[key] |= matches!(seen, Seen::Live(_) | Seen::Tombstone);
                lane.pages.push(completion.buf);
            }
        }
    }
}
