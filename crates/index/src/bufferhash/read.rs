//! The lookup path: RAM first, then one page of each incarnation that may hold the key, newest first.

use nandex_device::{Completion, Op, OpKind, PageBuf};
use nandex_store::buffer::page_of;
use nandex_store::entries::SlotState;
use nandex_store::hash::KeyHash;
use nandex_store::page::{PageKind, RawPage};
use nandex_store::ring::SegmentId;

use super::filter::Positions;
use super::pool::{Job, Lane};
use super::stats::Lookups;
use super::table::{Candidates, Known, Next};
use super::{Inner, Policy};
use crate::api::Value;
use crate::{Error, Result};

/// Keys of a batch whose places in RAM are fetched together.
const GROUP: usize = 16;

/// What a page of an incarnation tells of a key.
enum Seen {
    Live(Value),
    Tombstone,
    Absent,
    /// The incarnation was evicted since RAM was asked, and its place is another's now.
    Gone,
}

/// A lookup whose page is on its way.
struct Pending {
    /// Which of the batch's keys.
    key: usize,
    hash: KeyHash,
    candidates: Candidates,
    reads: usize,
}

impl Inner {
    #[inline]
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        Error::check_width("key", key, self.config.key_bytes)?;
        let hash = self.hasher.hash(key);
        let positions = self.filter.positions(hash.filter);
        let mut reads = 0;
        let value = loop {
            match self.ask(hash, &positions, key)? {
                Known::Answer(value) => break value,
                Known::Candidates(candidates) => {
                    if let Some(answer) = self.read_candidates(hash, key, candidates, &mut reads)? {
                        break answer;
                    }
                }
                Known::Unloaded => unreachable!("ask loads filters"),
            }
        };
        self.counters.lookup(value.is_some(), reads);
        self.after_lookup();
        Ok(value)
    }

    /// Under LRU, puts back what a lookup has found, where no thread in the background does.
    #[inline]
    fn after_lookup(&self) {
        if self.config.policy == Policy::Lru {
            // The lookup has its answer. A failure has poisoned the volume; the next update reports it.
            let _ = self.catch_up_now();
        }
    }

    /// What RAM tells of a key; loads the filters when they have not been yet.
    #[inline]
    fn ask(&self, hash: KeyHash, positions: &Positions, key: &[u8]) -> Result<Known> {
        let index = self.table_of(hash);
        loop {
            match self.tables[index].ask(&self.filter, positions, hash, key) {
                Known::Unloaded => self.load_filters(index)?,
                known => return Ok(known),
            }
        }
    }

    /// Reads candidates one after another. Gives nothing when one is gone and RAM must be asked anew.
    fn read_candidates(
        &self,
        hash: KeyHash,
        key: &[u8],
        mut candidates: Candidates,
        reads: &mut usize,
    ) -> Result<Option<Option<Value>>> {
        loop {
            let ring = self.rings.of(self.table_of(hash));
            let place = ring.page(candidates.next, self.page_index(hash));
            let page = self.rings.device().read(place, self.lanes.take_page())?;
            *reads += 1;
            let seen = self.look(&page, hash, key, candidates.next);
            self.lanes.give_page(page);
            match seen? {
                Seen::Live(value) => {
                    self.used(hash, key, &value, &candidates);
                    return Ok(Some(Some(value)));
                }
                Seen::Tombstone => return Ok(Some(None)),
                Seen::Gone => return Ok(None),
                Seen::Absent => {
                    match self.tables[self.table_of(hash)].next_candidate(&candidates) {
                        Next::Candidate(next) => candidates = next,
                        Next::Absent => return Ok(Some(None)),
                        Next::AskAgain => return Ok(None),
                    }
                }
            }
        }
    }

    fn page_index(&self, hash: KeyHash) -> u64 {
        page_of(hash, self.config.buffer_pages as usize) as u64
    }

    /// Proves a page and looks for the key in it.
    fn look(&self, page: &PageBuf, hash: KeyHash, key: &[u8], id: SegmentId) -> Result<Seen> {
        let ring = self.rings.of(self.table_of(hash));
        let label = ring.label(id, self.page_index(hash), PageKind::Data);
        let page = match RawPage::new(page).check(label) {
            Ok(page) => page.bytes(),
            Err(_) if !self.tables[self.table_of(hash)].lock().holds(id) => return Ok(Seen::Gone),
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
    fn used(&self, hash: KeyHash, key: &[u8], value: &Value, found: &Candidates) {
        if self.config.policy == Policy::Lru {
            let table = self.table_of(hash);
            let (source, newest_sequence) = (found.next, found.newest_when_asked);
            let (key, value) = (key.to_vec(), value.to_vec());
            self.work.push(Job::Reinsert { table, key, value, source, newest_sequence });
        }
    }

    /// Looks up a batch with up to `read_depth` pages on their way at any time.
    pub(super) fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        for key in keys {
            Error::check_width("key", key, self.config.key_bytes)?;
        }
        let mut batch = Batch {
            inner: self,
            keys,
            values: vec![None; keys.len()],
            pending: Vec::new(),
            free: Vec::new(),
            lookups: Lookups::default(),
        };
        let mut lane = None;
        // After a failure the lane is dropped, which waits for what is still on its way.
        batch.run(&mut lane)?;
        lane.into_iter().for_each(|lane| self.lanes.give_lane(lane));
        self.counters.add(&batch.lookups);
        self.after_lookup();
        Ok(batch.values)
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
                let ring = self.rings.of(self.table_of(hash));
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

    /// An idle lane, or a new one where none is.
    fn lane(&self) -> Result<Lane> {
        if let Some(idle) = self.lanes.take_lane() {
            return Ok(idle);
        }
        let queue = self.rings.device().queue(self.options.read_depth)?;
        let pages = (0..self.options.read_depth).map(|_| PageBuf::zeroed(1)).collect();
        Ok(Lane { queue, pages, done: Vec::with_capacity(self.options.read_depth) })
    }
}

/// A batch of lookups on its way.
struct Batch<'a> {
    inner: &'a Inner,
    keys: &'a [&'a [u8]],
    values: Vec<Option<Value>>,
    pending: Vec<Option<Pending>>,
    free: Vec<usize>,
    lookups: Lookups,
}

impl Batch<'_> {
    /// Asks RAM about one key after another, and keeps the lane full with what RAM cannot answer.
    fn run(&mut self, lane: &mut Option<Lane>) -> Result<()> {
        let mut near = Vec::with_capacity(GROUP);
        for group in (0..self.keys.len()).step_by(GROUP) {
            let keys = group..self.keys.len().min(group + GROUP);
            near.clear();
            near.extend(keys.clone().map(|key| self.bring_near(self.keys[key])));
            for (key, (hash, positions)) in keys.zip(&near) {
                self.start(lane, key, *hash, positions)?;
            }
            if let Some(lane) = lane.as_mut().filter(|lane| lane.queue.in_flight() > 0) {
                // Waits for none, but sets those pushed since on their way.
                self.take_completions(lane, 0)?;
            }
        }
        while let Some(lane) = lane.as_mut().filter(|lane| lane.queue.in_flight() > 0) {
            self.take_completions(lane, 1)?;
        }
        Ok(())
    }

    /// Hashes a key and has its places in buffer and filter fetched while others are asked about.
    fn bring_near(&self, key: &[u8]) -> (KeyHash, Positions) {
        let hash = self.inner.hasher.hash(key);
        let positions = self.inner.filter.positions(hash.filter);
        let table = &self.inner.tables[self.inner.table_of(hash)];
        table.prefetch(&self.inner.filter, &positions, hash);
        (hash, positions)
    }

    fn start(
        &mut self,
        lane: &mut Option<Lane>,
        key: usize,
        hash: KeyHash,
        positions: &Positions,
    ) -> Result<()> {
        match self.inner.ask(hash, positions, self.keys[key])? {
            Known::Answer(value) => self.answer(key, value, 0),
            Known::Candidates(candidates) => {
                let lane = match lane {
                    Some(lane) => lane,
                    None => lane.insert(self.inner.lane()?),
                };
                while lane.pages.is_empty() {
                    self.take_completions(lane, 1)?;
                }
                self.push(lane, Pending { key, hash, candidates, reads: 0 })?;
            }
            Known::Unloaded => unreachable!("ask loads filters"),
        }
        Ok(())
    }

    fn answer(&mut self, key: usize, value: Option<Value>, reads: usize) {
        self.lookups.count(value.is_some(), reads);
        self.values[key] = value;
    }

    fn push(&mut self, lane: &mut Lane, pending: Pending) -> Result<()> {
        let buf = lane.pages.pop().expect("the caller saw a free page");
        let inner = self.inner;
        let ring = inner.rings.of(inner.table_of(pending.hash));
        let page = ring.page(pending.candidates.next, inner.page_index(pending.hash));
        let token = self.free.pop().unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() - 1
        });
        self.pending[token] = Some(pending);
        Ok(lane.queue.push(Op { token: token as u64, kind: OpKind::Read, page, buf })?)
    }

    /// Waits for some of the reads and deals with all that have finished.
    fn take_completions(&mut self, lane: &mut Lane, count_min: usize) -> Result<()> {
        let mut done = std::mem::take(&mut lane.done);
        let mut result = lane.queue.wait(count_min, &mut done).map_err(Error::from);
        for completion in done.drain(..) {
            let step = self.complete(lane, completion);
            result = result.and(step);
        }
        lane.done = done;
        result
    }

    fn complete(&mut self, lane: &mut Lane, completion: Completion) -> Result<()> {
        let token = usize::try_from(completion.token).expect("tokens are indices");
        let mut pending = self.pending[token].take().expect("a completion has its lookup");
        self.free.push(token);
        let Pending { key, hash, .. } = pending;
        let id = pending.candidates.next;
        let seen = completion
            .result
            .map_err(Error::from)
            .and_then(|()| self.inner.look(&completion.buf, hash, self.keys[key], id));
        lane.pages.push(completion.buf);
        pending.reads += 1;
        match seen? {
            Seen::Live(value) => {
                self.inner.used(hash, self.keys[key], &value, &pending.candidates);
                self.answer(key, Some(value), pending.reads);
            }
            Seen::Tombstone => self.answer(key, None, pending.reads),
            Seen::Gone => return self.ask_again(lane, &pending),
            Seen::Absent => {
                let table = &self.inner.tables[self.inner.table_of(hash)];
                match table.next_candidate(&pending.candidates) {
                    Next::Candidate(next) => {
                        pending.candidates = next;
                        self.push(lane, pending)?;
                    }
                    Next::Absent => self.answer(key, None, pending.reads),
                    Next::AskAgain => return self.ask_again(lane, &pending),
                }
            }
        }
        Ok(())
    }

    /// RAM has changed under a lookup; it starts over.
    fn ask_again(&mut self, lane: &mut Lane, gone: &Pending) -> Result<()> {
        let positions = self.inner.filter.positions(gone.hash.filter);
        match self.inner.ask(gone.hash, &positions, self.keys[gone.key])? {
            Known::Candidates(candidates) => {
                let Pending { key, hash, reads, .. } = *gone;
                self.push(lane, Pending { key, hash, candidates, reads })
            }
            Known::Answer(value) => {
                self.answer(gone.key, value, gone.reads);
                Ok(())
            }
            Known::Unloaded => unreachable!("ask loads filters"),
        }
    }
}
