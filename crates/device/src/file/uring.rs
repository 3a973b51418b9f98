//! The engine of io_uring: one thread keeps a whole queue of operations in the kernel.
//!
//! `push` fills a submission entry, and every few of them are submitted: a device begins with the first while the
//! caller still works on the next. `wait` submits the rest and sleeps until its completions in one system call, then
//! takes every completion. The operations in flight are in a slab, so there is no allocation per operation.
//!
//! A queue may move between threads. So the rings are created without SINGLE_ISSUER and DEFER_TASKRUN, which bind a
//! ring to one thread. The kernel cancels some operations of a thread that ends; these are pushed again.

use std::fmt;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use io_uring::{IoUring, Probe, cqueue, opcode, squeue, types};
use rustix::io::Errno;

use super::handle::{Handle, offset};
use super::progress::{Progress, TransferStep};
use crate::{Completion, Error, Op, OpKind, PageId, Queue, Result};

/// The most bytes in one entry; the kernel moves at most 2 GiB minus a page at once.
const ENTRY_BYTES_MAX: usize = 1 << 30;

/// The deepest ring that the kernel creates.
const DEPTH_MAX: usize = 32_768;

/// The most operations that are submitted together, and their share of the depth. Drives complete in groups. If a whole
/// group waited for its submission, the drive would be idle meanwhile: with 32 reads in flight that cost an eighth of
/// them. One system call for each operation, on the other hand, takes a fifth more processor time.
const SUBMITTED_MAX: usize = 4;
const DEPTH_PER_SUBMISSION: usize = 4;

/// The depth below which `wait` submits everything: the same system call sleeps.
const EAGER_DEPTH_MIN: usize = 8;

/// The number of consecutive times that the kernel may report that it has no memory, and the pause after each: ten
/// seconds in total.
const BUSY_MAX: u32 = 10_000;
const BUSY_REST: Duration = Duration::from_millis(1);

/// The flags with which this kernel creates rings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RingMode {
    /// Completions do not interrupt the thread (Linux 5.19).
    Cooperative,
    /// No flags.
    Plain,
}

impl fmt::Display for RingMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cooperative => "with cooperative completions",
            Self::Plain => "without flags",
        })
    }
}

impl RingMode {
    fn build(self, entries: u32) -> io::Result<IoUring> {
        let mut builder = IoUring::builder();
        if self == Self::Cooperative {
            builder.setup_coop_taskrun().setup_taskrun_flag();
        }
        builder.build(entries)
    }
}

/// Creates a small ring, with fewer flags if the kernel does not know them all.
pub(super) fn probe() -> io::Result<RingMode> {
    let is_unknown = |error: &io::Error| error.raw_os_error() == Some(Errno::INVAL.raw_os_error());
    let (mode, ring) = match RingMode::Cooperative.build(2) {
        Err(error) if is_unknown(&error) => (RingMode::Plain, RingMode::Plain.build(2)?),
        ring => (RingMode::Cooperative, ring?),
    };
    let mut known = Probe::new();
    ring.submitter().register_probe(&mut known)?;
    if known.is_supported(opcode::Read::CODE) && known.is_supported(opcode::Write::CODE) {
        return Ok(mode);
    }
    Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel's rings cannot read and write"))
}

/// The only file of a ring's table.
const FILE: types::Fixed = types::Fixed(0);

/// An operation owned by the kernel.
struct Flight {
    op: Op,
    progress: Progress,
}

impl Flight {
    /// Returns the entry for the rest of the transfer.
    fn entry(&mut self, slot: usize) -> squeue::Entry {
        let at = offset(self.op.page, self.progress.bytes);
        let rest = &mut self.op.buf[self.progress.bytes..];
        let bytes = u32::try_from(rest.len().min(ENTRY_BYTES_MAX)).expect("at most 1 GiB");
        let entry = match self.op.kind {
            OpKind::Read => opcode::Read::new(FILE, rest.as_mut_ptr(), bytes).offset(at).build(),
            OpKind::Write => opcode::Write::new(FILE, rest.as_ptr(), bytes).offset(at).build(),
        };
        entry.user_data(slot as u64)
    }
}

/// A queue with a ring of its own.
pub(super) struct UringQueue {
    // Fields drop in this order: the ring goes before the buffers.
    ring: IoUring,
    flights: Vec<Option<Flight>>,
    free: Vec<usize>,
    handle: Arc<Handle>,
    /// The number of pushes after which a submission follows.
    submitted_together: usize,
}

impl UringQueue {
    /// Creates a ring of at least `depth` entries, so that everything in flight always fits.
    pub(super) fn new(handle: &Arc<Handle>, mode: RingMode, depth: usize) -> io::Result<Self> {
        if depth > DEPTH_MAX {
            let words = format!("a ring has at most {DEPTH_MAX} entries");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        }
        let entries = u32::try_from(depth.max(1).next_power_of_two()).expect("at most 32768");
        let ring = mode.build(entries)?;
        // The kernel then need not look up the descriptor for each operation.
        ring.submitter().register_files(&[handle.file.as_raw_fd()])?;
        let flights = std::iter::repeat_with(|| None).take(depth).collect();
        let free = (0..depth).rev().collect();
        let submitted_together = match depth {
            ..EAGER_DEPTH_MIN => usize::MAX,
            _ => (depth / DEPTH_PER_SUBMISSION).min(SUBMITTED_MAX),
        };
        Ok(Self { ring, flights, free, handle: Arc::clone(handle), submitted_together })
    }

    /// Takes every completion; short transfers are pushed again.
    fn reap(&mut self, done: &mut Vec<Completion>) -> Result<()> {
        let (_, mut submissions, completions) = self.ring.split();
        for completion in completions {
            let slot = usize::try_from(completion.user_data()).unwrap_or(usize::MAX);
            let Some(place @ Some(_)) = self.flights.get_mut(slot) else {
                return Err(broken(io::Error::other("a completion without a waiter")));
            };
            let flight = place.as_mut().expect("matched just now");
            match flight.advance(&completion) {
                TransferStep::Again => {
                    let entry = flight.entry(slot);
                    // SAFETY: as in `push`; the operation stays in its slot.
                    unsafe { submissions.push(&entry) }.expect("a ring has space for every slot");
                }
                TransferStep::Finished => done.extend(finish(place, Ok(()))),
                TransferStep::Failed(source) => {
                    let result = Err(flight.op.failure(source));
                    done.extend(finish(place, result));
                }
            }
            if place.is_none() {
                self.free.push(slot);
            }
        }
        Ok(())
    }

    /// Submits what was pushed and waits for `count` completions, in one system call.
    fn enter(&mut self, count: usize, busy: &mut u32) -> Result<()> {
        let Err(error) = self.ring.submitter().submit_and_wait(count) else { return Ok(()) };
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::INTR) => Ok(()),
            // Temporarily out of memory, or completions must be taken first.
            Some(Errno::AGAIN | Errno::BUSY) if *busy < BUSY_MAX => {
                *busy += 1;
                thread::sleep(BUSY_REST);
                Ok(())
            }
            _ => Err(broken(error)),
        }
    }

    fn collect(&mut self, count_min: usize, done: &mut Vec<Completion>) -> Result<()> {
        let before = done.len();
        let wanted = count_min.min(self.in_flight());
        let mut busy = 0;
        self.reap(done)?;
        // Even a caller that needs no completion lets the kernel run once when nothing was ready.
        let mut must_ask = done.len() == before && self.in_flight() > 0;
        loop {
            let missing = wanted.saturating_sub(done.len() - before);
            if !must_ask && missing == 0 && self.ring.submission().is_empty() {
                return Ok(());
            }
            self.enter(missing, &mut busy)?;
            self.reap(done)?;
            must_ask = false;
        }
    }
}

impl Flight {
    fn advance(&mut self, completion: &cqueue::Entry) -> TransferStep {
        let answer = usize::try_from(completion.result())
            .map_err(|_| io::Error::from_raw_os_error(-completion.result()));
        self.progress.advance(self.op.kind, self.op.buf.len(), answer)
    }
}

fn finish(place: &mut Option<Flight>, result: Result<()>) -> Option<Completion> {
    place.take().map(|flight| flight.op.finished(result))
}

fn broken(source: io::Error) -> Error {
    Error::Io { operation: "wait", page: PageId(0), pages: 0, source }
}

impl Queue for UringQueue {
    fn push(&mut self, op: Op) -> Result<()> {
        self.handle.check(&op)?;
        let Some(slot) = self.free.pop() else {
            return Err(Error::QueueFull { depth: self.depth() });
        };
        let flight = self.flights[slot].insert(Flight { op, progress: Progress::default() });
        let entry = flight.entry(slot);
        // SAFETY: the entry names memory of the operation's buffer, which stays where it is while
        // the operation sits in its slot, until its completion was taken; and the file that the
        // ring itself holds. Dropping the queue waits, or leaks the slots.
        unsafe { self.ring.submission().push(&entry) }.expect("a ring has space for every slot");
        if self.ring.submission().len() >= self.submitted_together {
            // What is not submitted now, `wait` submits; an error that stays is an error there.
            let _ = self.ring.submit();
        }
        Ok(())
    }

    fn wait(&mut self, count_min: usize, done: &mut Vec<Completion>) -> Result<()> {
        self.handle.check_process()?;
        self.collect(count_min, done)
    }

    fn in_flight(&self) -> usize {
        self.flights.len() - self.free.len()
    }

    fn depth(&self) -> usize {
        self.flights.len()
    }
}

impl Drop for UringQueue {
    fn drop(&mut self) {
        // A child's buffers are copies that the kernel does not know, and the ring its parent's.
        if self.handle.is_inherited() {
            return;
        }
        if self.collect(self.in_flight(), &mut Vec::new()).is_err() {
            // The kernel may still fill these buffers, so they can never be freed.
            std::mem::forget(std::mem::take(&mut self.flights));
        }
    }
}
