//! Reads long runs of pages in order, several ahead of the one in use.
//!
//! For callers that go through much of a structure from front to back: a merge, not a lookup. Each run is one read, so
//! the device sees long sequential reads, and always has the next ones queued.

use std::collections::VecDeque;

use nandex_device::{Completion, Device, Op, OpKind, PageBuf, PageId, Queue};

/// Consecutive pages that are read at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageRun {
    /// The first of them.
    pub first: PageId,
    /// The number of pages.
    pub pages: u64,
}

/// The limits of reading ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadAhead {
    /// The most pages that are read at once; longer runs are split.
    pub run_pages: u64,
    /// The most reads in flight.
    pub depth: usize,
    /// The most pages in flight, and so in RAM.
    pub pages: u64,
}

impl Default for ReadAhead {
    /// 4 MiB in reads of up to 1 MiB, or in 32 smaller ones.
    fn default() -> Self {
        Self { run_pages: 256, depth: 32, pages: 1024 }
    }
}

impl ReadAhead {
    /// Reads these runs and passes them to `visit` in order, each with its place. A run that has more pages than may be
    /// in flight is read alone.
    ///
    /// # Errors
    /// A failed read; an error of `visit`, which ends the reading.
    pub fn read<E: From<nandex_device::Error>>(
        self,
        device: &dyn Device,
        runs: impl IntoIterator<Item = PageRun>,
        mut visit: impl FnMut(PageRun, &PageBuf) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut runs = runs.into_iter().flat_map(|run| self.split(run)).peekable();
        let mut reads = Reads::new(device.queue(self.depth)?);
        loop {
            while reads.waiting.len() < self.depth
                && let Some(run) = runs.next_if(|run| reads.takes(run.pages, self.pages))
            {
                reads.start(run)?;
            }
            let Some((run, buf)) = reads.take()? else { return Ok(()) };
            visit(run, &buf)?;
            reads.spare.push(buf);
        }
    }

    fn split(self, run: PageRun) -> impl Iterator<Item = PageRun> {
        let pieces = 0..run.pages.div_ceil(self.run_pages);
        pieces.map(move |piece| {
            let skipped = piece * self.run_pages;
            let pages = self.run_pages.min(run.pages - skipped);
            PageRun { first: run.first.plus(skipped), pages }
        })
    }
}

/// Reads that were started and not taken, in their order.
struct Reads {
    queue: Box<dyn Queue>,
    waiting: VecDeque<(PageRun, Option<PageBuf>)>,
    /// The number of runs taken, which is the number of the first that waits.
    taken: u64,
    done: Vec<Completion>,
    /// Buffers for reuse.
    spare: Vec<PageBuf>,
}

impl Reads {
    fn new(queue: Box<dyn Queue>) -> Self {
        Self { queue, waiting: VecDeque::new(), taken: 0, done: Vec::new(), spare: Vec::new() }
    }

    /// Returns whether `pages` more pages may be read when at most `pages_max` may be in flight.
    fn takes(&self, pages: u64, pages_max: u64) -> bool {
        let waiting: u64 = self.waiting.iter().map(|(run, _)| run.pages).sum();
        waiting == 0 || waiting + pages <= pages_max
    }

    fn start(&mut self, run: PageRun) -> nandex_device::Result<()> {
        let pages = usize::try_from(run.pages).expect("a run fits in memory");
        let spare = self.spare.pop().filter(|buf| buf.capacity_pages() >= pages);
        let mut buf = spare.unwrap_or_else(|| PageBuf::zeroed(pages));
        buf.set_pages(pages);
        let token = self.taken + self.waiting.len() as u64;
        self.queue.push(Op { token, kind: OpKind::Read, page: run.first, buf })?;
        self.waiting.push_back((run, None));
        Ok(())
    }

    /// Waits for the first pending run; returns `None` if there is none.
    fn take(&mut self) -> nandex_device::Result<Option<(PageRun, PageBuf)>> {
        while let Some((_, None)) = self.waiting.front() {
            self.queue.wait(1, &mut self.done)?;
            for completion in self.done.drain(..) {
                completion.result?;
                let at = usize::try_from(completion.token - self.taken).expect("it waits");
                self.waiting[at].1 = Some(completion.buf);
            }
        }
        let Some((run, buf)) = self.waiting.pop_front() else { return Ok(None) };
        self.taken += 1;
        Ok(buf.map(|buf| (run, buf)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nandex_device::{MemoryDevice, PAGE_BYTES};

    use super::*;

    /// A device whose pages begin with their own numbers.
    fn numbered(pages: u64) -> Arc<dyn Device> {
        let device = MemoryDevice::new();
        device.grow(pages).unwrap();
        for page in 0..pages {
            let mut buf = PageBuf::zeroed(1);
            buf[..8].copy_from_slice(&page.to_le_bytes());
            device.write(PageId(page), buf).unwrap();
        }
        Arc::new(device)
    }

    #[test]
    fn runs_come_in_their_order_and_long_ones_in_pieces() {
        let device = numbered(64);
        for (depth, pages) in [(1, 64), (2, 1), (3, 8), (4, 64)] {
            let ahead = ReadAhead { run_pages: 7, depth, pages };
            let runs = [(40, 16), (3, 1), (9, 7)];
            let runs = runs.map(|(first, pages)| PageRun { first: PageId(first), pages });
            let (mut seen, mut longest) = (Vec::new(), 0);
            let read: crate::Result<()> = ahead.read(&*device, runs, |run, buf| {
                assert_eq!(buf.len() as u64, run.pages * PAGE_BYTES as u64);
                longest = longest.max(run.pages);
                for (page, at) in (run.first.0..).zip(0..buf.pages()) {
                    let found = u64::from_le_bytes(buf.page(at)[..8].try_into().unwrap());
                    assert_eq!(found, page);
                    seen.push(page);
                }
                Ok(())
            });
            read.unwrap();
            assert_eq!(seen, (40..56).chain(3..4).chain(9..16).collect::<Vec<_>>());
            assert_eq!(longest, 7);
        }
    }

    #[test]
    fn a_failed_read_and_a_refusal_end_it() {
        let device = numbered(4);
        let beyond = [PageRun { first: PageId(2), pages: 9 }];
        let read: crate::Result<()> = ReadAhead::default().read(&*device, beyond, |_, _| Ok(()));
        assert!(read.is_err());
        let all = [PageRun { first: PageId(0), pages: 4 }];
        let ahead = ReadAhead { run_pages: 1, depth: 2, pages: 2 };
        let mut visits = 0;
        let read: crate::Result<()> = ahead.read(&*device, all, |run, _| {
            visits += 1;
            Err(crate::Error::config("run", format!("{run:?}")))
        });
        assert!(read.is_err());
        assert_eq!(visits, 1);
    }
}
