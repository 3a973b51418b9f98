//! The pool of idle queues and page buffers, and the single lookup.

use std::fmt::{Debug, Formatter};
use std::sync::{Arc, Mutex, MutexGuard};

use nandex_device::{Completion, Device, PAGE_BYTES, PageBuf, Queue};

use super::pipeline::Request;
use super::{LookupStep, PageReads, ReadPipeline, ReadPlace};
use crate::schedule::{Channels, Schedule};

/// The resources that the lookups of one structure share: the device, the depth of its queue, and idle queues and page
/// buffers, which may be shared by a whole volume.
pub struct ReadPool {
    device: Arc<dyn Device>,
    channels: Channels,
    depth: usize,
    idle: IdleReads,
    /// Whether other structures of the volume share the idle queues.
    is_shared: bool,
}

/// Idle queues and page buffers of a device, for the lookups of all structures on it.
#[derive(Clone, Default)]
pub(crate) struct IdleReads(Arc<Mutex<Idle>>);

#[derive(Default)]
struct Idle {
    queues: Vec<ReadQueue>,
    pages: SparePages,
}

impl IdleReads {
    #[inline]
    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.0.lock().expect("no holder of the pool's lock panics")
    }

    /// The RAM of the idle queues and buffers, in bytes.
    pub(crate) fn ram_bytes(&self) -> usize {
        let idle = self.lock();
        let in_queues: usize = idle.queues.iter().map(|queue| queue.pages.0.len()).sum();
        (in_queues + idle.pages.0.len()) * PAGE_BYTES
    }
}

impl Debug for IdleReads {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdleReads").field("ram_bytes", &self.ram_bytes()).finish_non_exhaustive()
    }
}

/// One-page buffers that are not in flight. Longer ones, which few lookups need, are not kept.
#[derive(Default)]
pub(super) struct SparePages(Vec<PageBuf>);

impl SparePages {
    #[inline]
    pub(super) fn take(&mut self, count: u32) -> PageBuf {
        let spare = if count == 1 { self.0.pop() } else { None };
        spare.unwrap_or_else(|| PageBuf::zeroed(count as usize))
    }

    #[inline]
    pub(super) fn give(&mut self, pages: PageBuf) {
        if pages.len() == PAGE_BYTES {
            self.0.push(pages);
        }
    }
}

/// A queue of the device, for one pipeline at a time.
pub(super) struct ReadQueue {
    pub(super) queue: Box<dyn Queue>,
    /// The channels and the depth that the queue was created for.
    made_for: (Channels, usize),
    pub(super) schedule: Schedule<Request>,
    pub(super) pages: SparePages,
    pub(super) done: Vec<Completion>,
}

impl ReadPool {
    /// Creates an empty pool for lookups with at most `depth` reads in flight, spread over `channels`.
    #[must_use]
    pub fn new(device: Arc<dyn Device>, channels: Channels, depth: usize) -> Self {
        Self { device, channels, depth, idle: IdleReads::default(), is_shared: false }
    }

    /// Creates a pool that shares its idle queues and buffers with others of the device.
    pub(crate) fn sharing(
        idle: IdleReads,
        device: Arc<dyn Device>,
        channels: Channels,
        depth: usize,
    ) -> Self {
        Self { device, channels, depth, idle, is_shared: true }
    }

    /// Carries one lookup to its answer; also returns its number of reads. Uses no queue of its own unless a probe has
    /// several parts.
    ///
    /// # Errors
    /// A failed read, or an error of the user.
    pub fn look_up<U: PageReads>(
        &self,
        user: &U,
        mut probe: U::Probe,
    ) -> Result<(U::Answer, usize), U::Error> {
        let mut reads = 0;
        while user.parts(&probe) == 1 {
            let place = user.place(&probe, 0);
            let spare = self.lock().pages.take(place.pages);
            let pages = self.device.read(place.page, spare)?;
            let looked = user.look(&mut probe, 0, &pages);
            self.lock().pages.give(pages);
            looked?;
            reads += 1;
            if let LookupStep::Answer(answer) = user.next(&mut probe)? {
                return Ok((answer, reads));
            }
        }
        let mut pipeline = self.pipeline(user);
        pipeline.start(0, probe)?;
        pipeline.finish()?;
        let answered = pipeline.pop().expect("a finished pipeline has answered all lookups");
        Ok((answered.answer, reads + answered.reads))
    }

    /// Returns a pipeline for many lookups. It takes a queue with the first of them.
    #[must_use]
    pub fn pipeline<U: PageReads>(&self, user: U) -> ReadPipeline<'_, U> {
        ReadPipeline::new(self, user)
    }

    /// Returns the RAM of idle buffers, in bytes. Buffers shared with other pools are counted in full.
    #[must_use]
    pub fn ram_bytes(&self) -> usize {
        self.idle.ram_bytes()
    }

    /// The part of [`ram_bytes`](Self::ram_bytes) that it shares with no other pool, in bytes.
    pub(crate) fn own_ram_bytes(&self) -> usize {
        if self.is_shared { 0 } else { self.ram_bytes() }
    }

    /// The maximum number of reads in flight.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Returns whether there are several channels, so that the schedule has a choice.
    pub(super) fn has_channels(&self) -> bool {
        self.channels.count() > 1
    }

    /// The channel of a read. Computes its place only if there is more than one.
    #[inline]
    pub(super) fn channel(&self, place: impl FnOnce() -> ReadPlace) -> u32 {
        if self.channels.count() == 1 {
            return 0;
        }
        let place = place();
        self.channels.channel(place.page, place.write)
    }

    pub(super) fn schedule(&self) -> Schedule<Request> {
        self.channels.schedule(self.depth)
    }

    /// Returns an idle queue, or a new one if there is none.
    pub(super) fn take_queue(&self) -> nandex_device::Result<ReadQueue> {
        let made_for = (self.channels, self.depth);
        let idle = {
            let queues = &mut self.lock().queues;
            let place = queues.iter().rposition(|it| it.made_for == made_for);
            place.map(|place| queues.swap_remove(place))
        };
        if let Some(idle) = idle {
            return Ok(idle);
        }
        let queue = self.device.queue(self.depth)?;
        Ok(ReadQueue {
            queue,
            made_for,
            schedule: self.schedule(),
            pages: SparePages::default(),
            done: Vec::new(),
        })
    }

    pub(super) fn give_queue(&self, queue: ReadQueue) {
        self.lock().queues.push(queue);
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock()
    }
}

impl ReadQueue {
    /// Waits for all reads in flight, and keeps their buffers.
    pub(super) fn end_reads(&mut self) -> nandex_device::Result<()> {
        let mut done = std::mem::take(&mut self.done);
        while self.queue.in_flight() > 0 {
            self.queue.wait(self.queue.in_flight(), &mut done)?;
        }
        done.drain(..).for_each(|completion| self.pages.give(completion.buf));
        self.done = done;
        Ok(())
    }
}

impl Debug for ReadPool {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("ReadPool");
        out.field("channels", &self.channels).field("depth", &self.depth).finish_non_exhaustive()
    }
}
