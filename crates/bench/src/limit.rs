//! The device's own limits, measured in the same run and through the same engine as the index.
//!
//! An index can be no faster than the device below it, and devices differ from hour to hour. So a
//! scratch file beside the index is really written once, and between the runs its random 4 KiB reads
//! per second (same lanes, same depth) and its sequential write bandwidth are taken.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nandex_device::{
    Completion, Create, Device, EngineReport, FileDevice, FileOptions, MemoryDevice, Op, OpKind,
    PAGE_BYTES, PageBuf, PageId, Queue,
};

use crate::workload::Rng;

/// Pages per sequential write: 1 MiB.
const STROKE_PAGES: usize = 256;
/// Sequential writes in flight.
const STROKE_DEPTH: usize = 4;
/// Reads between two looks at the clock.
const READS_PER_LOOK: u64 = 64;

/// A file of known size to measure the device on; removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    device: Arc<dyn Device>,
    path: Option<PathBuf>,
    page_count: u64,
    next_stroke: AtomicU64,
    /// Buffers that lie idle between measurements. They are kept, because big buffers that come and go
    /// make the C library hold on to memory, which would then be charged to the index.
    spare: Mutex<Vec<PageBuf>>,
}

impl Scratch {
    /// A scratch on a device of plain memory, for engines that have no file.
    ///
    /// # Errors
    /// [`nandex_device::Error::NoSpace`].
    pub fn in_memory(bytes: u64) -> Result<Self> {
        Self::fill(Arc::new(MemoryDevice::new()), None, bytes)
    }

    /// A scratch file in `dir`, through the engine an index there would use.
    ///
    /// # Errors
    /// The file system's: no room, no permission.
    pub fn in_dir(dir: &Path, bytes: u64) -> Result<Self> {
        let path = scratch_path(dir);
        if path.exists() {
            fs::remove_file(&path)?;
        }
        let options = FileOptions { create: Create::New, ..FileOptions::default() };
        let device: Arc<dyn Device> = Arc::new(FileDevice::open(&path, &options)?);
        Self::fill(device, Some(path), bytes)
    }

    fn fill(device: Arc<dyn Device>, path: Option<PathBuf>, bytes: u64) -> Result<Self> {
        let stroke_bytes = (STROKE_PAGES * PAGE_BYTES) as u64;
        ensure!(
            bytes >= stroke_bytes,
            "a scratch of {bytes} bytes is below {stroke_bytes}; ask for more"
        );
        let strokes = bytes.div_ceil(stroke_bytes);
        let page_count = strokes * STROKE_PAGES as u64;
        device.grow(page_count)?;
        let spare = Mutex::new((0..STROKE_DEPTH as u64).map(noise).collect());
        let scratch = Self { device, path, page_count, next_stroke: 0.into(), spare };
        scratch.write(strokes)?;
        Ok(scratch)
    }

    /// Which engine carries the operations.
    #[must_use]
    pub fn engine(&self) -> EngineReport {
        self.device.engine()
    }

    /// Its size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.page_count * PAGE_BYTES as u64
    }

    /// Random page reads per second for about `time`, by `lanes` threads that each keep `depth` reads
    /// in flight.
    ///
    /// # Errors
    /// A failed read.
    pub fn reads_per_s(&self, lanes: usize, depth: usize, time: Duration) -> Result<f64> {
        let start = Instant::now();
        let counts = std::thread::scope(|scope| {
            let read = |lane| move || self.read_lane(lane, depth, start, time);
            let threads: Vec<_> = (0..lanes as u64).map(|lane| scope.spawn(read(lane))).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, Result<u64>>| {
                thread.join().expect("a lane returns its errors and does not panic")
            };
            threads.into_iter().map(join).collect::<Result<Vec<u64>>>()
        })?;
        Ok(counts.iter().sum::<u64>() as f64 / start.elapsed().as_secs_f64())
    }

    fn read_lane(&self, lane: u64, depth: usize, start: Instant, time: Duration) -> Result<u64> {
        let mut queue = self.device.queue(depth)?;
        let mut rng = Rng::new(start.elapsed().subsec_nanos().into(), 0, lane);
        let mut done = Vec::with_capacity(depth);
        for _ in 0..depth {
            self.push_read(&mut *queue, &mut rng, PageBuf::zeroed(1))?;
        }
        let mut reads = 0;
        while queue.in_flight() > 0 {
            queue.wait(1, &mut done)?;
            let more = reads % READS_PER_LOOK != 0 || start.elapsed() < time;
            for completion in done.drain(..) {
                completion.result.context("the scratch file cannot be read")?;
                reads += 1;
                if more {
                    self.push_read(&mut *queue, &mut rng, completion.buf)?;
                }
            }
        }
        Ok(reads)
    }

    fn push_read(&self, queue: &mut dyn Queue, rng: &mut Rng, buf: PageBuf) -> Result<()> {
        let page = PageId(rng.below(self.page_count));
        Ok(queue.push(Op { token: 0, kind: OpKind::Read, page, buf })?)
    }

    /// Bytes per second of sequential 1 MiB writes for about `time`, the final sync included.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn write_bytes_per_s(&self, time: Duration) -> Result<f64> {
        let start = Instant::now();
        let mut strokes = 0;
        while start.elapsed() < time || strokes == 0 {
            self.strokes(4 * STROKE_DEPTH as u64)?;
            strokes += 4 * STROKE_DEPTH as u64;
        }
        self.device.sync()?;
        let bytes = strokes * (STROKE_PAGES * PAGE_BYTES) as u64;
        Ok(bytes as f64 / start.elapsed().as_secs_f64())
    }

    /// Bytes per second of sequential 1 MiB reads for about `time`, round and round the file.
    ///
    /// # Errors
    /// A failed read.
    pub fn read_bytes_per_s(&self, time: Duration) -> Result<f64> {
        let mut queue = self.device.queue(STROKE_DEPTH)?;
        let mut spare = self.spare.lock().expect("no holder of this lock panics");
        let mut done = Vec::with_capacity(STROKE_DEPTH);
        let start = Instant::now();
        let mut strokes = 0u64;
        while start.elapsed() < time || strokes == 0 {
            if spare.is_empty() {
                reclaim(&mut *queue, &mut done, &mut spare)?;
            }
            let buf = spare.pop().context("a queue with reads in flight gave none back")?;
            let page = self.next_stroke_page();
            queue.push(Op { token: 0, kind: OpKind::Read, page, buf })?;
            strokes += 1;
        }
        while queue.in_flight() > 0 {
            reclaim(&mut *queue, &mut done, &mut spare)?;
        }
        let bytes = strokes * (STROKE_PAGES * PAGE_BYTES) as u64;
        Ok(bytes as f64 / start.elapsed().as_secs_f64())
    }

    fn write(&self, strokes: u64) -> Result<()> {
        self.strokes(strokes)?;
        Ok(self.device.sync()?)
    }

    /// Writes that many strokes after the last one, round and round the file.
    fn strokes(&self, count: u64) -> Result<()> {
        let mut queue = self.device.queue(STROKE_DEPTH)?;
        let mut spare = self.spare.lock().expect("no holder of this lock panics");
        let mut done = Vec::with_capacity(STROKE_DEPTH);
        for _ in 0..count {
            if spare.is_empty() {
                reclaim(&mut *queue, &mut done, &mut spare)?;
            }
            let buf = spare.pop().context("a queue with writes in flight gave none back")?;
            let page = self.next_stroke_page();
            queue.push(Op { token: 0, kind: OpKind::Write, page, buf })?;
        }
        while queue.in_flight() > 0 {
            reclaim(&mut *queue, &mut done, &mut spare)?;
        }
        Ok(())
    }

    fn next_stroke_page(&self) -> PageId {
        let stroke = self.next_stroke.fetch_add(1, Ordering::Relaxed);
        PageId(stroke * STROKE_PAGES as u64 % self.page_count)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A scratch that cannot be removed is only rubbish; the next run overwrites it.
        let _ = self.path.as_deref().map(fs::remove_file);
    }
}

/// Waits for an operation at least; the buffers of those that finished go to `spare`.
fn reclaim(
    queue: &mut dyn Queue,
    done: &mut Vec<Completion>,
    spare: &mut Vec<PageBuf>,
) -> Result<()> {
    queue.wait(1, done)?;
    for completion in done.drain(..) {
        completion.result.context("the scratch file refuses a stroke")?;
        spare.push(completion.buf);
    }
    Ok(())
}

/// A stroke of random bytes, so that no layer below can compress or deduplicate it away.
fn noise(seed: u64) -> PageBuf {
    let mut rng = Rng::new(seed, 0, 0);
    let mut buf = PageBuf::zeroed(STROKE_PAGES);
    buf.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&rng.next().to_le_bytes()));
    buf
}

/// The limits at one moment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Limits {
    /// Random 4 KiB reads per second.
    pub reads_per_s: f64,
    /// Bytes per second of sequential writes.
    pub write_bytes_per_s: f64,
}

impl Limits {
    /// The mean of the limits before and after a run.
    #[must_use]
    pub fn between(before: Self, after: Self) -> Self {
        Self {
            reads_per_s: f64::midpoint(before.reads_per_s, after.reads_per_s),
            write_bytes_per_s: f64::midpoint(before.write_bytes_per_s, after.write_bytes_per_s),
        }
    }
}

/// Where the scratch of an index in `dir` lies.
#[must_use]
pub fn scratch_path(dir: &Path) -> PathBuf {
    dir.join("nandex-bench.scratch")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_is_written_whole_and_then_read_and_written_at_some_rate() {
        let scratch = Scratch::in_memory(2 << 20).unwrap();
        assert_eq!(scratch.bytes(), 2 << 20);
        let page = scratch.device.read(PageId(511), PageBuf::zeroed(1)).unwrap();
        assert!(page.iter().any(|&byte| byte != 0));
        assert!(scratch.reads_per_s(2, 4, Duration::from_millis(5)).unwrap() > 0.0);
        assert!(scratch.write_bytes_per_s(Duration::from_millis(5)).unwrap() > 0.0);
        assert!(scratch.read_bytes_per_s(Duration::from_millis(5)).unwrap() > 0.0);
    }

    #[test]
    fn a_scratch_below_one_stroke_is_refused() {
        let error = Scratch::in_memory(4096).unwrap_err();
        assert!(error.to_string().contains("ask for more"), "{error}");
    }

    #[test]
    fn the_limit_of_a_run_is_the_mean_of_before_and_after() {
        let before = Limits { reads_per_s: 10.0, write_bytes_per_s: 100.0 };
        let after = Limits { reads_per_s: 20.0, write_bytes_per_s: 300.0 };
        let between = Limits::between(before, after);
        assert_eq!(between, Limits { reads_per_s: 15.0, write_bytes_per_s: 200.0 });
    }
}
