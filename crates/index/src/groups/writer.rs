//! Writes tables to new groups: a group is filled in memory, gets an extent of exactly its size, and is written at once
//! while the next one is filled.

use nandex_device::{Completion, Device, Op, OpKind, PageBuf, Queue};
use nandex_store::generation;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::page::{PAGE_HEADER_BYTES, seal};
use nandex_store::{StructureId, Volume};

use super::Group;
use crate::Result;

/// The groups that are being written while another one is filled.
pub(super) const IN_FLIGHT_MAX: usize = 2;

/// The queue and the memory that writing groups reuses.
pub(crate) struct WriteQueue {
    queue: Box<dyn Queue>,
    idle: Vec<PageBuf>,
}

impl WriteQueue {
    /// # Errors
    /// The device has no free queue.
    pub(crate) fn new(device: &dyn Device) -> Result<Self> {
        Ok(Self { queue: device.queue(IN_FLIGHT_MAX)?, idle: Vec::new() })
    }

    /// Returns a buffer for a group of at most `group_pages` pages.
    fn buffer(&mut self, pages: usize) -> PageBuf {
        self.idle.pop().unwrap_or_else(|| PageBuf::zeroed(pages))
    }

    /// Takes a buffer back, with all its pages.
    fn give(&mut self, mut buf: PageBuf) {
        buf.set_pages(buf.capacity_pages());
        self.idle.push(buf);
    }
}

/// Writes groups, and frees their pages if not all of them succeed.
pub struct GroupWriter<'v> {
    volume: &'v Volume,
    structure: StructureId,
    next_number: &'v dyn Fn() -> u64,
    io: &'v mut WriteQueue,
    group_pages: usize,
    /// The group that is being filled.
    pages: Option<PageBuf>,
    notes: Vec<u8>,
    entries: u64,
    /// The groups that were written, or are being written.
    groups: Vec<Group>,
}

impl<'v> GroupWriter<'v> {
    /// Creates a writer without writing anything yet.
    pub(crate) fn new(
        (volume, structure): (&'v Volume, StructureId),
        group_pages: usize,
        next_number: &'v dyn Fn() -> u64,
        io: &'v mut WriteQueue,
    ) -> Self {
        Self {
            volume,
            structure,
            next_number,
            io,
            group_pages,
            pages: None,
            notes: Vec::new(),
            entries: 0,
            groups: Vec::new(),
        }
    }

    /// Adds a table to the group that is being filled: its note, its entries, and its body. A group with its maximum
    /// number of tables is written.
    ///
    /// # Errors
    /// No space, or a failed write, which poisons the volume.
    pub fn push(&mut self, note: u8, entries: usize, body: &[u8]) -> Result<()> {
        self.volume.poison().check()?;
        let mut pages = match self.pages.take() {
            Some(pages) => pages,
            None => self.io.buffer(self.group_pages),
        };
        pages.page_mut(self.notes.len())[PAGE_HEADER_BYTES..].copy_from_slice(body);
        self.pages = Some(pages);
        self.notes.push(note);
        self.entries += entries as u64;
        if self.notes.len() == self.group_pages { self.end_group() } else { Ok(()) }
    }

    /// Writes the group that is being filled, if it has tables.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn end_group(&mut self) -> Result<()> {
        let Some(mut buf) = self.pages.take() else { return Ok(()) };
        let notes = std::mem::take(&mut self.notes);
        buf.set_pages(notes.len());
        let extent = self.volume.allocate(notes.len() as u64)?;
        let generation =
            generation::generation((self.next_number)(), generation::low(self.volume.epoch()));
        let entries = std::mem::take(&mut self.entries);
        let group = Group::new(self.structure, (extent.start, generation), notes, entries);
        for page in 0..buf.pages() {
            seal(buf.page_mut(page), group.place.label(page as u64));
        }
        self.groups.push(group);
        self.take_back(IN_FLIGHT_MAX - 1)?;
        let op = Op { token: 0, kind: OpKind::Write, page: extent.start, buf };
        Ok(self.volume.poison().guard(self.io.queue.push(op))?)
    }

    /// Waits until at most `most` writes are in flight.
    fn take_back(&mut self, most: usize) -> Result<()> {
        let mut done = Vec::new();
        let wanted = self.io.queue.in_flight().saturating_sub(most);
        self.volume.poison().guard(self.io.queue.wait(wanted, &mut done))?;
        let mut result = Ok(());
        for Completion { buf, result: ended, .. } in done {
            self.io.give(buf);
            result = result.and(self.volume.poison().guard(ended));
        }
        Ok(result?)
    }

    /// Writes the last group and waits for all writes.
    ///
    /// # Errors
    /// No space, or a failed write, which poisons the volume.
    pub fn finish(mut self) -> Result<Vec<Group>> {
        self.end_group()?;
        if is_on(Barrier::RecordsHearTheirWrites) {
            self.take_back(0)?;
        }
        Ok(std::mem::take(&mut self.groups))
    }
}

impl Drop for GroupWriter<'_> {
    fn drop(&mut self) {
        // Otherwise a write in flight could reach pages that have another owner by then.
        let mut done = Vec::new();
        let queue = &mut self.io.queue;
        while queue.in_flight() > 0 && queue.wait(usize::MAX, &mut done).is_ok() {}
        let buffers = done.into_iter().map(|completion| completion.buf).chain(self.pages.take());
        buffers.for_each(|buf| self.io.give(buf));
        self.groups.iter().for_each(|group| self.volume.give_back(group.place.extent));
    }
}
