//! The device's own limits, measured in the same run and through the same engine as the index.
//!
//! An index can be no faster than its device, and devices vary from hour to hour. So a scratch file next to
//! the index is fully written once. Between the runs its sequential bandwidths are measured, and random 4 KiB
//! reads per second with the same threads and depth: for lookups on the [pages of the table](crate::reads),
//! else on the scratch. Random reads are measured through nandex's engine and by fio; the larger figure is
//! the limit.

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

use crate::fio::FioReads;
use crate::keys::Rng;
use crate::plan::Plan;
use crate::reads::{RandomReads, ReadLoad};
use crate::workload::Kind;

/// Pages of an I/O chunk, a sequential transfer: 1 MiB.
const CHUNK_PAGES: usize = 256;
/// I/O chunks in flight.
const CHUNK_DEPTH: usize = 4;
/// A file of known size to measure the device on; removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    device: Arc<dyn Device>,
    path: Option<PathBuf>,
    page_count: u64,
    next_chunk: AtomicU64,
    /// Idle buffers between measurements. They are kept, because the C library retains memory of big buffers
    /// that are freed and allocated again, which would then be charged to the index.
    spare: Mutex<Vec<PageBuf>>,
}

impl Scratch {
    /// Creates a scratch on a device of plain memory, for engines that have no file.
    ///
    /// # Errors
    /// Fails with [`nandex_device::Error::NoSpace`].
    pub fn in_memory(bytes: u64) -> Result<Self> {
        Self::fill(Arc::new(MemoryDevice::new()), None, bytes)
    }

    /// Creates a scratch file in `dir`, through the engine that an index there would use.
    ///
    /// # Errors
    /// Returns the file system's error: no space, no permission.
    pub fn in_dir(dir: &Path, bytes: u64) -> Result<Self> {
        let path = dir.join("nandex-bench.scratch");
        if path.exists() {
            fs::remove_file(&path)?;
        }
        let options = FileOptions { create: Create::New, ..FileOptions::default() };
        let device: Arc<dyn Device> = Arc::new(FileDevice::open(&path, &options)?);
        Self::fill(device, Some(path), bytes)
    }

    fn fill(device: Arc<dyn Device>, path: Option<PathBuf>, bytes: u64) -> Result<Self> {
        let chunk_bytes = (CHUNK_PAGES * PAGE_BYTES) as u64;
        ensure!(
            bytes >= chunk_bytes,
            "a scratch of {bytes} bytes is below {chunk_bytes}; ask for more"
        );
        let chunks = bytes.div_ceil(chunk_bytes);
        let page_count = chunks * CHUNK_PAGES as u64;
        device.grow(page_count)?;
        let spare = Mutex::new((0..CHUNK_DEPTH as u64).map(noise).collect());
        let scratch = Self { device, path, page_count, next_chunk: 0.into(), spare };
        scratch.transfer(OpKind::Write, |done| done < chunks)?;
        scratch.device.sync()?;
        Ok(scratch)
    }

    /// Returns the engine of the operations.
    #[must_use]
    pub fn engine(&self) -> EngineReport {
        self.device.engine()
    }

    /// Returns its size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.page_count * PAGE_BYTES as u64
    }

    /// Returns random reads of all of it.
    #[must_use]
    pub fn reads(&self) -> RandomReads {
        RandomReads::whole(Arc::clone(&self.device), self.path.clone())
    }

    /// Measures the bytes per second of sequential writes for about `time`, the final sync included.
    ///
    /// # Errors
    /// Fails on a failed write or sync.
    pub fn write_bytes_per_s(&self, time: Duration) -> Result<f64> {
        self.bytes_per_s(OpKind::Write, time)
    }

    /// Measures the bytes per second of sequential reads for about `time`.
    ///
    /// # Errors
    /// Fails on a failed read.
    pub fn read_bytes_per_s(&self, time: Duration) -> Result<f64> {
        self.bytes_per_s(OpKind::Read, time)
    }

    fn bytes_per_s(&self, kind: OpKind, time: Duration) -> Result<f64> {
        let start = Instant::now();
        let chunks = self.transfer(kind, |done| start.elapsed() < time || done == 0)?;
        if kind == OpKind::Write {
            self.device.sync()?;
        }
        let bytes = chunks * (CHUNK_PAGES * PAGE_BYTES) as u64;
        Ok(bytes as f64 / start.elapsed().as_secs_f64())
    }

    /// Transfers I/O chunks in order, continuing cyclically through the file after the last one, as long as
    /// `wanted` returns true. Returns the number of transfers.
    fn transfer(&self, kind: OpKind, mut wanted: impl FnMut(u64) -> bool) -> Result<u64> {
        let mut queue = self.device.queue(CHUNK_DEPTH)?;
        let mut spare = self.spare.lock().expect("no holder of this lock panics");
        let mut done = Vec::with_capacity(CHUNK_DEPTH);
        let mut chunks = 0;
        while wanted(chunks) {
            if spare.is_empty() {
                reclaim(&mut *queue, &mut done, &mut spare)?;
            }
            let buf = spare.pop().context("a queue with chunks in flight gave none back")?;
            let chunk = self.next_chunk.fetch_add(1, Ordering::Relaxed);
            let page = PageId(chunk * CHUNK_PAGES as u64 % self.page_count);
            queue.push(Op { token: 0, kind, page, buf })?;
            chunks += 1;
        }
        while queue.in_flight() > 0 {
            reclaim(&mut *queue, &mut done, &mut spare)?;
        }
        Ok(chunks)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A scratch that cannot be removed is harmless; the next run overwrites it.
        let _ = self.path.as_deref().map(fs::remove_file);
    }
}

/// Waits for at least one operation; the buffers of finished ones go to `spare`.
fn reclaim(
    queue: &mut dyn Queue,
    done: &mut Vec<Completion>,
    spare: &mut Vec<PageBuf>,
) -> Result<()> {
    queue.wait(1, done)?;
    for completion in done.drain(..) {
        completion.result.context("the scratch file refuses a chunk")?;
        spare.push(completion.buf);
    }
    Ok(())
}

/// Returns a chunk of random bytes, so that no lower layer can compress or deduplicate it.
fn noise(seed: u64) -> PageBuf {
    let mut rng = Rng::new(seed, 0, 0);
    let mut buf = PageBuf::zeroed(CHUNK_PAGES);
    buf.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&rng.next().to_le_bytes()));
    buf
}

/// The limits at one time, by the names of their figures.
#[derive(Clone, PartialEq, Debug)]
pub struct Limits(pub(crate) Vec<(&'static str, f64)>);

impl Limits {
    /// Measures each limit of this kind of engine for about `--limit-seconds`: random reads of `reads`, the
    /// others on the scratch.
    ///
    /// # Errors
    /// Fails on a failed read, or a failed write of the scratch.
    pub fn measure(
        scratch: &Scratch,
        reads: &RandomReads,
        kind: Kind,
        plan: &Plan,
    ) -> Result<Self> {
        let load = ReadLoad { threads: plan.threads, depth: plan.depth, time: plan.limit_time };
        let own = reads.per_s(load)?;
        let fio = reads.by_fio(load);
        let of_fio = |of: fn(FioReads) -> f64| fio.map_or(f64::NAN, of);
        let mut limits = vec![
            ("device_reads_per_s", own.max(of_fio(|fio| fio.reads_per_s))),
            ("engine_reads_per_s", own),
            ("fio_reads_per_s", of_fio(|fio| fio.reads_per_s)),
            ("fio_cpu_us_per_read", of_fio(|fio| fio.cpu_us_per_read)),
        ];
        if kind == Kind::Filter {
            let of_one = |depth| {
                let one = ReadLoad { threads: 1, depth, ..load };
                if one == load { Ok(own) } else { reads.per_s(one) }
            };
            limits.push(("device_reads_depth_1_per_s", of_one(1)?));
            limits.push(("device_reads_depth_32_per_s", of_one(32)?));
            limits.push(("device_read_bytes_per_s", scratch.read_bytes_per_s(load.time)?));
        }
        limits.push(("device_write_bytes_per_s", scratch.write_bytes_per_s(load.time)?));
        Ok(Self(limits))
    }

    /// Returns each limit by its name: the mean of before and after a run.
    pub(crate) fn between<'a>(
        before: &'a Self,
        after: &'a Self,
    ) -> impl Iterator<Item = (&'static str, f64)> + 'a {
        let pairs = before.0.iter().zip(&after.0);
        pairs.map(|(before, after)| (before.0, f64::midpoint(before.1, after.1)))
    }
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
        let load = ReadLoad { threads: 2, depth: 4, time: Duration::from_millis(5) };
        assert!(scratch.reads().per_s(load).unwrap() > 0.0);
        assert_eq!(scratch.reads().source().bytes, 2 << 20);
        assert!(scratch.write_bytes_per_s(Duration::from_millis(5)).unwrap() > 0.0);
        assert!(scratch.read_bytes_per_s(Duration::from_millis(5)).unwrap() > 0.0);
    }

    #[test]
    fn a_scratch_below_one_chunk_is_refused() {
        let error = Scratch::in_memory(4096).unwrap_err();
        assert!(error.to_string().contains("ask for more"), "{error}");
    }

    #[test]
    fn the_limit_of_a_run_is_the_mean_of_before_and_after() {
        let limits = |reads, writes| Limits(vec![("reads", reads), ("writes", writes)]);
        let (before, after) = (limits(10.0, 100.0), limits(20.0, 300.0));
        let between: Vec<_> = Limits::between(&before, &after).collect();
        assert_eq!(between, [("reads", 15.0), ("writes", 200.0)]);
    }
}
