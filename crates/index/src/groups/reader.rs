//! Reads groups in order: while one is used, the next one is read.

use std::sync::Arc;

use nandex_device::{Completion, Device, Op, OpKind, PageBuf, Queue};

use super::Group;
use crate::Result;

/// The groups that are read at the same time: the one being waited for, and the next one. When the first is given to
/// the caller, only the other buffer is in flight.
pub(super) const IN_FLIGHT_MAX: usize = 2;

/// The queue and the memory that reading groups reuses. It does not verify the bytes that it returns.
pub struct GroupReader {
    queue: Box<dyn Queue>,
    /// The maximum number of pages of a group.
    group_pages: usize,
    /// Groups that were read but not taken, by number.
    ready: Vec<(u64, PageBuf)>,
    idle: Vec<PageBuf>,
}

impl GroupReader {
    /// Creates a reader for groups of at most `group_pages` pages.
    ///
    /// # Errors
    /// The device has no free queue.
    pub(crate) fn new(device: &dyn Device, group_pages: usize) -> Result<Self> {
        let queue = device.queue(IN_FLIGHT_MAX)?;
        Ok(Self { queue, group_pages, ready: Vec::new(), idle: Vec::new() })
    }

    /// Begins with the first of these groups, once the remaining reads of an earlier failure have ended.
    ///
    /// # Errors
    /// A broken queue.
    pub fn begin(&mut self, groups: &[Arc<Group>]) -> Result<()> {
        let mut done = Vec::new();
        while self.queue.in_flight() > 0 {
            self.queue.wait(usize::MAX, &mut done)?;
        }
        self.idle.extend(done.into_iter().map(|completion| completion.buf));
        self.idle.extend(self.ready.drain(..).map(|(_, buf)| buf));
        self.start(groups, 0)
    }

    /// Returns the bytes of the next group in order.
    ///
    /// # Errors
    /// A failed read.
    pub fn next(&mut self, groups: &[Arc<Group>], number: usize) -> Result<PageBuf> {
        self.start(groups, number + 1)?;
        loop {
            let at = self.ready.iter().position(|(token, _)| *token == number as u64);
            if let Some(at) = at {
                return Ok(self.ready.swap_remove(at).1);
            }
            let mut done = Vec::new();
            self.queue.wait(1, &mut done)?;
            for Completion { token, buf, result, .. } in done {
                result?;
                self.ready.push((token, buf));
            }
        }
    }

    /// Takes a buffer back.
    pub fn give(&mut self, buf: PageBuf) {
        self.idle.push(buf);
    }

    /// Returns a buffer of `pages` pages.
    pub fn buffer(&mut self, pages: usize) -> PageBuf {
        let idle = self.idle.pop().filter(|buf| buf.capacity_pages() >= pages);
        let mut buf = idle.unwrap_or_else(|| PageBuf::zeroed(pages.max(self.group_pages)));
        buf.set_pages(pages);
        buf
    }

    /// Starts the read of a group, if there is one with this number.
    fn start(&mut self, groups: &[Arc<Group>], number: usize) -> Result<()> {
        let Some(group) = groups.get(number) else { return Ok(()) };
        let buf = self.buffer(group.notes.len());
        let page = group.place.extent.start;
        Ok(self.queue.push(Op { token: number as u64, kind: OpKind::Read, page, buf })?)
    }
}
