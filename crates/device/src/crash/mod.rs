//! A device of memory that knows what a power cut would leave behind.
//!
//! The model, in the words of the laws of [`Device`]:
//! * A write takes effect when its completion is handed back (by `wait`, `write`, or the drop of its
//!   queue); a read sees what had taken effect when it was pushed. A caller that reads what it has
//!   not waited for is thus found out.
//! * `sync` makes durable what has taken effect, and nothing that is still in flight.
//! * `discard` takes effect at once: its pages then hold garbage, durable after the next `sync`.
//! * `grow` is durable when it returns, as a file's is; it makes nothing else durable.
//! * The power goes in the midst of a counted operation (write, sync, grow, discard): see
//!   [`cut_after`](CrashDevice::cut_after). It and everything after it fails, reads included.
//! * What survives: all that was durable; then each change that had taken effect since the last sync,
//!   in that order; then each change that was in flight, in the order of the pushes, the one the cut
//!   struck being the last. The seed decides for each change whether it is lost, whole, or mixed; and
//!   in a mixed one for each page whether it is old, new, or torn, sector by sector of 512 bytes.
//!
//! The same operations in the same order with the same seed leave the same bytes.

mod change;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use self::change::{Change, Dice, Fate};
use crate::{Completion, Device, EngineReport, Error, Geometry, MemoryDevice, Op, OpKind};
use crate::{PAGE_BYTES, PageId, Queue, Result};

/// Nanoseconds that pass, in the model, at every question and operation.
const TICK_NS: u64 = 1_000;

/// Memory that can lose its power. Clones share it. The [module](self) tells the model.
///
/// It holds its bytes twice, and every write since the last sync a third time.
#[derive(Clone, Debug)]
pub struct CrashDevice {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// What reads see.
    current: Vec<u8>,
    /// What the last sync has made safe.
    durable: Vec<u8>,
    /// Took effect since the last sync, in that order.
    unsynced: Vec<Change>,
    /// Pushed and not handed back, by number of the push.
    in_flight: BTreeMap<u64, Change>,
    /// The length of the growth that the cut has struck.
    growing_to: Option<usize>,
    operations: u64,
    cut_after: Option<u64>,
    is_cut: bool,
    pushes: u64,
    clock_ns: u64,
}

/// Whether an operation has power.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Power {
    On,
    /// It goes in the midst of this operation.
    Fails,
    Off,
}

impl CrashDevice {
    /// An empty device, its power on.
    #[must_use]
    pub fn new() -> Self {
        Self::from_image(Vec::new())
    }

    /// A device on which these bytes are durable, filled up with zeros to a whole page: so that a
    /// sweep can cut the recovery from an earlier cut as well.
    #[must_use]
    pub fn from_image(mut bytes: Vec<u8>) -> Self {
        bytes.resize(bytes.len().next_multiple_of(PAGE_BYTES), 0);
        let state = State { current: bytes.clone(), durable: bytes, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Plans the power cut: `count` operations since the device was made still succeed, and the
    /// power goes in the midst of the next. Writes, syncs, grows and discards are counted, when
    /// they are pushed or called; reads are not, and succeed until then.
    pub fn cut_after(&self, count: u64) {
        self.lock().cut_after = Some(count);
    }

    /// How many counted operations have been started with the power on. A sweep runs once without
    /// a cut to learn this number, then once for each smaller one.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Whether the power has gone.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.lock().is_cut
    }

    /// What a power cut at this moment (or the one that has been) leaves, as one of the many
    /// possibilities. Seed 0 loses all that may be lost, seed 1 keeps all that may be kept; every
    /// other seed mixes. Costs a copy of the device.
    #[must_use]
    pub fn survivors(&self, seed: u64) -> MemoryDevice {
        let state = self.lock();
        let mut dice = Dice::new(seed);
        let mut image = state.durable.clone();
        if let Some(bytes) = state.growing_to
            && dice.fate() == Fate::New
        {
            image.resize(bytes, 0);
        }
        for change in state.unsynced.iter().chain(state.in_flight.values()) {
            change.survive(&mut image, &mut dice);
        }
        MemoryDevice::from_image(image)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

impl Default for CrashDevice {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    fn page_count(&self) -> u64 {
        (self.current.len() / PAGE_BYTES) as u64
    }

    /// Starts a counted operation and says whether there is power for it.
    fn start(&mut self) -> Power {
        self.clock_ns += TICK_NS;
        if self.is_cut {
            return Power::Off;
        }
        if self.cut_after.is_some_and(|count| self.operations >= count) {
            self.is_cut = true;
            return Power::Fails;
        }
        self.operations += 1;
        Power::On
    }

    /// Starts an operation and gives its number. A read is carried out at once.
    fn push(&mut self, op: &mut Op) -> Result<u64> {
        op.check(self.page_count())?;
        let start = usize::try_from(op.page.0).expect("checked against the length") * PAGE_BYTES;
        self.pushes += 1;
        match op.kind {
            OpKind::Read => {
                let place = start..start + op.buf.len();
                op.buf.copy_from_slice(&self.current[place]);
            }
            OpKind::Write => self.launch(Change { start, bytes: op.buf.to_vec() }),
        }
        Ok(self.pushes)
    }

    /// Counts a change and puts it in flight, unless the power went before it was pushed.
    fn launch(&mut self, change: Change) {
        if self.start() != Power::Off {
            self.in_flight.insert(self.pushes, change);
        }
    }

    /// Lets the operation of that number take effect, or fails it.
    fn land(&mut self, number: u64, op: &Op) -> Result<()> {
        self.clock_ns += TICK_NS;
        if self.is_cut {
            return Err(op.failure(power_cut()));
        }
        if let Some(change) = self.in_flight.remove(&number) {
            change.apply(&mut self.current);
            self.unsynced.push(change);
        }
        Ok(())
    }
}

fn power_cut() -> io::Error {
    io::Error::other("power cut")
}

impl Device for CrashDevice {
    fn geometry(&self) -> Geometry {
        Geometry::opaque()
    }

    fn page_count(&self) -> u64 {
        self.lock().page_count()
    }

    fn grow(&self, page_count: u64) -> Result<()> {
        let mut state = self.lock();
        let old = state.page_count();
        if page_count <= old {
            return Ok(());
        }
        let bytes = reserve(&mut state, page_count)?;
        let power = state.start();
        if power == Power::Fails {
            state.growing_to = Some(bytes);
        }
        if power != Power::On {
            let (page, pages) = (PageId(old), page_count - old);
            return Err(Error::Io { operation: "grow", page, pages, source: power_cut() });
        }
        state.current.resize(bytes, 0);
        state.durable.resize(bytes, 0);
        Ok(())
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>> {
        Ok(Box::new(CrashQueue { device: self.clone(), depth, started: Vec::new() }))
    }

    fn sync(&self) -> Result<()> {
        let mut state = self.lock();
        if state.start() != Power::On {
            let (page, pages) = (PageId(0), state.page_count());
            return Err(Error::Io { operation: "sync", page, pages, source: power_cut() });
        }
        for change in std::mem::take(&mut state.unsynced) {
            change.apply(&mut state.durable);
        }
        Ok(())
    }

    fn discard(&self, pages: Range<PageId>) -> Result<()> {
        let (page, count) = (pages.start, pages.end.0.saturating_sub(pages.start.0));
        let mut state = self.lock();
        if count == 0 {
            return Ok(());
        }
        let page_count = state.page_count();
        if pages.end.0 > page_count {
            return Err(Error::OutOfRange { page, pages: count, page_count });
        }
        let [start, count] = [page.0, count].map(|n| usize::try_from(n).expect("within memory"));
        state.pushes += 1;
        state.launch(Change::garbage(start * PAGE_BYTES, count));
        if state.is_cut {
            let pages = count as u64;
            return Err(Error::Io { operation: "discard", page, pages, source: power_cut() });
        }
        let number = state.pushes;
        let change = state.in_flight.remove(&number).expect("launched just now");
        change.apply(&mut state.current);
        state.unsynced.push(change);
        Ok(())
    }

    fn now(&self) -> u64 {
        let mut state = self.lock();
        state.clock_ns += TICK_NS;
        state.clock_ns
    }

    fn engine(&self) -> EngineReport {
        EngineReport { name: "memory".into(), reason: "the device models power cuts".into() }
    }
}

/// Makes sure that the growth to come cannot run out of memory, and says how many bytes it makes.
fn reserve(state: &mut State, page_count: u64) -> Result<usize> {
    let no_space = || Error::NoSpace {
        wanted_bytes: page_count.saturating_mul(PAGE_BYTES as u64),
        place: "memory".into(),
        reason: "the process cannot have that much".into(),
    };
    let bytes = page_count.checked_mul(PAGE_BYTES as u64).ok_or_else(no_space)?;
    let bytes = usize::try_from(bytes).map_err(|_| no_space())?;
    for image in [&mut state.current, &mut state.durable] {
        let missing = bytes.saturating_sub(image.len());
        image.try_reserve_exact(missing).map_err(|_| no_space())?;
    }
    Ok(bytes)
}

/// Keeps operations until they are waited for; only then does a write take effect.
struct CrashQueue {
    device: CrashDevice,
    depth: usize,
    started: Vec<(u64, Op)>,
}

impl Queue for CrashQueue {
    fn push(&mut self, mut op: Op) -> Result<()> {
        if self.started.len() >= self.depth {
            return Err(Error::QueueFull { depth: self.depth });
        }
        let number = self.device.lock().push(&mut op)?;
        self.started.push((number, op));
        Ok(())
    }

    fn wait(&mut self, _count_min: usize, done: &mut Vec<Completion>) -> Result<()> {
        let mut state = self.device.lock();
        for (number, op) in self.started.drain(..) {
            let result = state.land(number, &op);
            done.push(op.finished(result));
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.started.len()
    }

    fn depth(&self) -> usize {
        self.depth
    }
}

impl Drop for CrashQueue {
    fn drop(&mut self) {
        // A test that failed with the device in its hands must not fail again here.
        let Ok(mut state) = self.device.state.lock() else { return };
        for (number, op) in self.started.drain(..) {
            let _ = state.land(number, &op);
        }
    }
}
