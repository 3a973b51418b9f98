//! Lookups of one client: singly, or as many at once as the device's queue is deep.

use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use nandex_bench::subject::yes;
use nandex_device::{Device as _, Op, OpKind, PageBuf, PageId, Queue};

use super::Shared;
use super::layout::{Place, REGION_PAGES};
use crate::bloom::hash;

/// A client's queue and pages.
pub struct Lookups<'a> {
    shared: &'a Shared,
    queue: Box<dyn Queue>,
    spare: Vec<PageBuf>,
    /// The key of each slot: its number in the batch, its hash, its probe.
    slots: Vec<(usize, u64, u32)>,
    free: Vec<usize>,
}

impl<'a> Lookups<'a> {
    /// Creates the lookups of a client, `depth` of them at once.
    pub fn new(shared: &'a Shared, depth: usize) -> Result<Self> {
        Ok(Self {
            shared,
            queue: shared.device.queue(depth)?,
            spare: (0..depth).map(|_| PageBuf::zeroed(1)).collect(),
            slots: vec![(0, 0, 0); depth],
            free: (0..depth).collect(),
        })
    }

    /// Returns whether this key is present. Its reads go one after the other, without the queue.
    pub fn one(&mut self, key: u64) -> Result<bool> {
        let hash = hash(key);
        let mut probe = 0;
        while let Some(place) = self.next_read(hash, &mut probe) {
            let buf = self.spare.pop().context("a client has a page at least")?;
            self.shared.lookup_reads.fetch_add(1, Ordering::Relaxed);
            let buf = self.shared.device.read(self.page(place), buf)?;
            let is_set = self.shared.layout.is_set(place.entry, &buf);
            self.spare.push(buf);
            if !is_set {
                return Ok(false);
            }
            probe += 1;
        }
        Ok(true)
    }

    /// Appends whether each of these keys is present.
    pub fn many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()> {
        let first = found.len();
        found.resize(first + keys.len(), yes(true));
        let found = &mut found[first..];
        let (mut next, mut done) = (0, Vec::new());
        let mut reads = 0;
        while next < keys.len() || self.queue.in_flight() > 0 {
            while next < keys.len()
                && let Some(slot) = self.free.pop()
            {
                reads += u64::from(self.probe(slot, (next, hash(keys[next]), 0))?);
                next += 1;
            }
            if self.queue.in_flight() > 0 {
                self.queue.wait(1, &mut done)?;
            }
            for completion in done.drain(..) {
                completion.result?;
                let slot = usize::try_from(completion.token)?;
                let (number, hash, probe) = self.slots[slot];
                let place = self.shared.layout.place(hash, probe);
                let is_set = self.shared.layout.is_set(place.entry, &completion.buf);
                self.spare.push(completion.buf);
                if is_set {
                    reads += u64::from(self.probe(slot, (number, hash, probe + 1))?);
                } else {
                    found[number] = yes(false);
                    self.free.push(slot);
                }
            }
        }
        self.shared.lookup_reads.fetch_add(reads, Ordering::Relaxed);
        Ok(())
    }

    /// Starts the next read of a key; returns whether there was one.
    fn probe(&mut self, slot: usize, (number, hash, mut probe): (usize, u64, u32)) -> Result<bool> {
        let Some(place) = self.next_read(hash, &mut probe) else {
            self.free.push(slot);
            return Ok(false);
        };
        self.slots[slot] = (number, hash, probe);
        let buf = self.spare.pop().context("there is a page per slot")?;
        let page = self.page(place);
        self.queue.push(Op { token: slot as u64, kind: OpKind::Read, page, buf })?;
        Ok(true)
    }

    /// Returns the first place from `probe` on that is not in the buffer and must be read from flash.
    fn next_read(&self, hash: u64, probe: &mut u32) -> Option<Place> {
        let layout = self.shared.layout;
        let waiting = self.shared.lock();
        while *probe < layout.places() {
            let place = layout.place(hash, *probe);
            if !waiting.holds(place) {
                return Some(place);
            }
            *probe += 1;
        }
        None
    }

    fn page(&self, place: Place) -> PageId {
        let first = u64::from(place.region) * REGION_PAGES;
        PageId(first + self.shared.layout.page_of(place.entry) as u64)
    }
}
