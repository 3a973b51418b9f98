//! One queue over the queues of all members.
//!
//! Each operation of the caller has a slot, whose number is the token of everything pushed for it to the
//! members. A crossing operation keeps its buffer in the slot until all its parts are back. Parts wait in a
//! member's backlog while its queue is full.

use std::collections::VecDeque;
use std::sync::Arc;

use super::striping::Layout;
use super::{Members, parts};
use crate::{Completion, Device, Error, Op, OpKind, PAGE_BYTES, PageBuf, PageId, Queue, Result};

/// A queue over the queues of all members.
pub(super) struct ArrayQueue {
    queues: Vec<MemberQueue>,
    layout: Layout,
    slots: Vec<Slot>,
    free: Vec<usize>,
    finished: Vec<Completion>,
    /// Reused for the completions of one member.
    arrived: Vec<Completion>,
    members: Arc<Members>,
}

/// A member's queue, and its backlog.
struct MemberQueue {
    queue: Box<dyn Queue>,
    backlog: VecDeque<Op>,
}

enum Slot {
    Free,
    /// The operation was passed to one member unchanged, with its buffer.
    Whole {
        token: u64,
        page: PageId,
    },
    Split(Split),
}

struct Split {
    op: Op,
    parts_left: usize,
    result: Result<()>,
}

impl ArrayQueue {
    pub(super) fn new(members: &Arc<Members>, layout: Layout, depth: usize) -> Result<Self> {
        let open = |(index, member): (usize, &Arc<dyn Device>)| {
            let queue = member.queue(depth).map_err(|error| members.failed(index, error))?;
            Ok(MemberQueue { queue, backlog: VecDeque::new() })
        };
        let queues = members.devices.iter().enumerate().map(open).collect::<Result<_>>()?;
        Ok(Self {
            queues,
            layout,
            slots: std::iter::repeat_with(|| Slot::Free).take(depth).collect(),
            free: (0..depth).rev().collect(),
            finished: Vec::new(),
            arrived: Vec::new(),
            members: Arc::clone(members),
        })
    }

    fn push_whole(&mut self, slot: usize, member: usize, page: PageId, op: Op) -> Result<()> {
        let whole = Slot::Whole { token: op.token, page: op.page };
        let on_member = Op { token: slot as u64, page, ..op };
        let pushed = self.queues[member].push(on_member);
        pushed.map_err(|error| self.members.failed(member, error))?;
        self.slots[slot] = whole;
        Ok(())
    }

    /// Pushes the parts. A rejected part fails the whole operation, in its completion.
    fn push_parts(&mut self, slot: usize, op: Op) {
        let mut split = Split { parts_left: 0, result: Ok(()), op };
        for part in parts(self.layout, split.op.page, split.op.buf.pages() as u64) {
            let mut buf = PageBuf::zeroed(part.pages());
            if split.op.kind == OpKind::Write {
                buf.copy_from_slice(&split.op.buf[part.bytes]);
            }
            let (kind, member) = (split.op.kind, part.place.member);
            let on_member = Op { token: slot as u64, kind, page: part.place.page, buf };
            match self.queues[member].push(on_member) {
                Ok(()) => split.parts_left += 1,
                Err(error) => split.result = Err(self.members.failed(member, error)),
            }
        }
        if split.parts_left == 0 {
            self.free.push(slot);
            self.finished.push(split.op.finished(split.result));
        } else {
            self.slots[slot] = Slot::Split(split);
        }
    }

    /// Takes the completions of one member, after waiting for `count_min` of them, and refills its queue.
    fn pump(&mut self, member: usize, count_min: usize) -> Result<()> {
        let member_queue = &mut self.queues[member];
        let mut arrived = std::mem::take(&mut self.arrived);
        let waited = member_queue.queue.wait(count_min, &mut arrived);
        member_queue.refill(&mut arrived);
        for completion in arrived.drain(..) {
            self.arrive(member, completion);
        }
        self.arrived = arrived;
        waited.map_err(|error| self.members.failed(member, error))
    }

    /// Passes a member's completion to its operation.
    fn arrive(&mut self, member: usize, completion: Completion) {
        let slot = usize::try_from(completion.token).expect("our own token");
        let result = completion.result.map_err(|error| self.members.failed(member, error));
        match &mut self.slots[slot] {
            Slot::Free => unreachable!("a member gives back only what was pushed"),
            Slot::Whole { token, page } => {
                let (token, page) = (*token, *page);
                let Completion { kind, buf, .. } = completion;
                self.finished.push(Completion { token, kind, page, buf, result });
            }
            Slot::Split(split) => {
                let page = self.layout.array_page(member, completion.page);
                split.take(page, &completion.buf, result);
                if split.parts_left > 0 {
                    return;
                }
                if let Slot::Split(split) = std::mem::replace(&mut self.slots[slot], Slot::Free) {
                    self.finished.push(split.op.finished(split.result));
                }
            }
        }
        self.slots[slot] = Slot::Free;
        self.free.push(slot);
    }

    /// Returns the member with the most work, which is likely to finish something first.
    fn busiest(&self) -> Option<usize> {
        let busy = self
            .queues
            .iter()
            .enumerate()
            .filter(|(_, member_queue)| member_queue.queue.in_flight() > 0);
        busy.max_by_key(|(_, member_queue)| member_queue.queue.in_flight()).map(|(index, _)| index)
    }

    fn pump_all(&mut self) -> Result<()> {
        for member in 0..self.queues.len() {
            if self.queues[member].queue.in_flight() > 0 {
                self.pump(member, 0)?;
            }
        }
        Ok(())
    }
}

impl MemberQueue {
    /// Pushes an operation now, or queues it after those that wait already.
    fn push(&mut self, op: Op) -> Result<()> {
        if self.queue.in_flight() < self.queue.depth() && self.backlog.is_empty() {
            return self.queue.push(op);
        }
        self.backlog.push_back(op);
        Ok(())
    }

    /// Pushes waiting parts while there is space. A rejected part is returned as failed.
    fn refill(&mut self, arrived: &mut Vec<Completion>) {
        while self.queue.in_flight() < self.queue.depth() {
            let Some(op) = self.backlog.pop_front() else { return };
            let refused = Refused::of(&op);
            if let Err(error) = self.queue.push(op) {
                arrived.push(refused.failed(error));
            }
        }
    }
}

/// The rest of an operation that a queue has rejected, and whose buffer is lost.
struct Refused {
    token: u64,
    kind: OpKind,
    page: PageId,
    pages: usize,
}

impl Refused {
    fn of(op: &Op) -> Self {
        Self { token: op.token, kind: op.kind, page: op.page, pages: op.buf.pages() }
    }

    fn failed(self, error: Error) -> Completion {
        let Self { token, kind, page, pages } = self;
        Completion { token, kind, page, buf: PageBuf::zeroed(pages), result: Err(error) }
    }
}

impl Split {
    /// Adds one part, which is at `page` of the array.
    fn take(&mut self, page: PageId, bytes: &PageBuf, result: Result<()>) {
        self.parts_left -= 1;
        match result {
            Ok(()) if self.op.kind == OpKind::Read => {
                let start = usize::try_from(page.0 - self.op.page.0).expect("within the buffer");
                let start = start * PAGE_BYTES;
                self.op.buf[start..start + bytes.len()].copy_from_slice(bytes);
            }
            Ok(()) => {}
            Err(error) => self.result = Err(error),
        }
    }
}

impl Queue for ArrayQueue {
    fn push(&mut self, op: Op) -> Result<()> {
        op.check(self.layout.page_count(self.members.page_counts()))?;
        self.members.check_allowed(op.kind)?;
        if self.in_flight() >= self.depth() {
            return Err(Error::QueueFull { depth: self.depth() });
        }
        let slot = self.free.pop().expect("fewer operations in flight than slots");
        let place = self.layout.place(op.page);
        if place.run < op.buf.pages() as u64 {
            self.push_parts(slot, op);
            return Ok(());
        }
        self.push_whole(slot, place.member, place.page, op).inspect_err(|_| self.free.push(slot))
    }

    fn wait(&mut self, count_min: usize, done: &mut Vec<Completion>) -> Result<()> {
        let wanted = count_min.min(self.in_flight());
        let mut outcome = self.pump_all();
        while outcome.is_ok() && self.finished.len() < wanted {
            let Some(member) = self.busiest() else { break };
            outcome = self.pump(member, 1).and_then(|()| self.pump_all());
        }
        done.append(&mut self.finished);
        outcome
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len() + self.finished.len()
    }

    fn depth(&self) -> usize {
        self.slots.len()
    }
}

impl Drop for ArrayQueue {
    fn drop(&mut self) {
        // The members' queues wait only for their own operations; the backlog must reach them first.
        while self.queues.iter().any(|member_queue| !member_queue.backlog.is_empty()) {
            let Some(member) = self.busiest() else { return };
            if self.pump(member, 1).is_err() {
                return;
            }
        }
    }
}
