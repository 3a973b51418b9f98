//! Random reads of the pages of one file: the device's limit for lookups, through nandex's engine and by fio.
//!
//! A drive reads a large file more slowly than a small one, so the limit of a lookup is that of the pages
//! which it may read: those of the table itself, as the newest checkpoint names them, and only the written
//! ones, because the kernel answers reads of the others without the drive. Nothing is ever written here.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nandex::raw::store::space::Extent;
use nandex_device::{Device, Op, OpKind, PAGE_BYTES, PageBuf, PageId, Queue};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use serde::Serialize;

use crate::fio::{self, FioReads, Region};
use crate::keys::Rng;

/// The minimum number of reads between two readings of the clock.
const READS_PER_LOOK: u64 = 64;

const PAGE: u64 = PAGE_BYTES as u64;

/// The load of the reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadLoad {
    /// Threads that read.
    pub threads: usize,
    /// Reads that each keeps in flight.
    pub depth: usize,
    /// The approximate time.
    pub time: Duration,
}

/// Pages to read at random.
#[derive(Clone, Debug)]
pub struct RandomReads {
    device: Arc<dyn Device>,
    path: Option<PathBuf>,
    /// Runs of pages, ascending.
    runs: Vec<Extent>,
    /// The cumulative number of pages at the end of each run.
    ends: Vec<u64>,
    /// The longest run of written pages between the first and the last, these and others: fio reads one
    /// range.
    range: Extent,
}

/// The pages read for a limit, as the report shows them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ReadSource {
    /// The file; `memory` if there is none.
    pub file: String,
    /// Bytes of the pages that nandex's engine reads.
    pub bytes: u64,
    /// Bytes of the range of the file that fio reads, its longest written run between the first of these pages and the
    /// last; `null` if that is shorter than half of them, or without a file.
    pub fio_bytes: Option<u64>,
}

impl RandomReads {
    /// Returns all pages of a device.
    #[must_use]
    pub fn whole(device: Arc<dyn Device>, path: Option<PathBuf>) -> Self {
        let all = Extent { start: PageId(0), pages: device.page_count() };
        Self::of_runs(device, path, vec![all], all)
    }

    /// Returns the written pages of `extents` of the device whose file is at `path`; `None` if none is
    /// written.
    ///
    /// # Errors
    /// Returns the file system's error.
    pub fn written(
        device: Arc<dyn Device>,
        path: &Path,
        extents: &[Extent],
    ) -> Result<Option<Self>> {
        let shown = path.display();
        let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
        let data = data_runs(&file, device.page_count())
            .with_context(|| format!("cannot see which parts of {shown} are written"))?;
        let runs = common(&data, extents);
        let Some((first, last)) = runs.first().zip(runs.last()) else { return Ok(None) };
        let between = Extent { start: first.start, pages: last.end().0 - first.start.0 };
        let range = common(&data, &[between]).into_iter().max_by_key(|run| run.pages);
        let range = range.unwrap_or(*first);
        Ok(Some(Self::of_runs(device, Some(path.into()), runs, range)))
    }

    fn of_runs(
        device: Arc<dyn Device>,
        path: Option<PathBuf>,
        runs: Vec<Extent>,
        range: Extent,
    ) -> Self {
        let mut pages = 0;
        let ends = runs.iter().map(|run| {
            pages += run.pages;
            pages
        });
        let ends = ends.collect();
        Self { device, path, runs, ends, range }
    }

    /// Returns the number of pages.
    fn pages(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the page of this number among them.
    fn page(&self, number: u64) -> PageId {
        let run = self.ends.partition_point(|end| *end <= number);
        let before = if run == 0 { 0 } else { self.ends[run - 1] };
        self.runs[run].start.plus(number - before)
    }

    /// Returns the range that fio reads, if it is long enough to represent all.
    fn region(&self) -> Option<Region<'_>> {
        let Extent { start, pages } = self.range;
        let path = self.path.as_deref().filter(|_| pages >= self.pages().div_ceil(2))?;
        Some(Region { path, start_bytes: start.0 * PAGE, bytes: pages * PAGE })
    }

    /// Returns the description of the pages.
    #[must_use]
    pub fn source(&self) -> ReadSource {
        let file = self.path.as_deref().map(|path| path.display().to_string());
        ReadSource {
            file: file.unwrap_or_else(|| "memory".to_owned()),
            bytes: self.pages() * PAGE,
            fio_bytes: self.region().map(|region| region.bytes),
        }
    }

    /// Measures the reads per second through nandex's engine.
    ///
    /// # Errors
    /// Fails on a failed read.
    pub fn per_s(&self, load: ReadLoad) -> Result<f64> {
        ensure!(self.pages() > 0, "there is no page to read");
        let start = Instant::now();
        let counts = std::thread::scope(|scope| {
            let read = |thread| move || self.read_randomly(thread, load, start);
            let threads = 0..load.threads as u64;
            let all: Vec<_> = threads.map(|thread| scope.spawn(read(thread))).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, Result<u64>>| {
                thread.join().expect("a reading thread returns its errors and does not panic")
            };
            all.into_iter().map(join).collect::<Result<Vec<u64>>>()
        })?;
        Ok(counts.iter().sum::<u64>() as f64 / start.elapsed().as_secs_f64())
    }

    /// Measures the reads by fio, if it is installed and there is a range for it.
    pub(crate) fn by_fio(&self, load: ReadLoad) -> Option<FioReads> {
        fio::reads(self.region()?, load)
    }

    fn read_randomly(&self, thread: u64, load: ReadLoad, start: Instant) -> Result<u64> {
        let mut queue = self.device.queue(load.depth)?;
        let mut rng = Rng::new(start.elapsed().subsec_nanos().into(), 0, thread);
        let mut done = Vec::with_capacity(load.depth);
        for _ in 0..load.depth {
            self.push_read(&mut *queue, &mut rng, PageBuf::zeroed(1))?;
        }
        let (mut reads, mut clock) = (0, Clock::new(start, load.time));
        while queue.in_flight() > 0 {
            queue.wait(1, &mut done)?;
            let more = !clock.is_over(reads);
            for completion in done.drain(..) {
                completion.result.context("a page cannot be read for the device's limit")?;
                reads += 1;
                if more {
                    self.push_read(&mut *queue, &mut rng, completion.buf)?;
                }
            }
        }
        Ok(reads)
    }

    fn push_read(&self, queue: &mut dyn Queue, rng: &mut Rng, buf: PageBuf) -> Result<()> {
        let page = self.page(rng.below(self.pages()));
        Ok(queue.push(Op { token: 0, kind: OpKind::Read, page, buf })?)
    }
}

/// A time limit for reads, checked once in [`READS_PER_LOOK`] of them.
struct Clock {
    start: Instant,
    time: Duration,
    /// The number of reads at which to check next: they come in groups of any size, and may skip any one
    /// number.
    look_at: u64,
}

impl Clock {
    const fn new(start: Instant, time: Duration) -> Self {
        Self { start, time, look_at: 0 }
    }

    /// Returns whether the time is over, as far as is known after `reads` reads.
    fn is_over(&mut self, reads: u64) -> bool {
        if reads < self.look_at {
            return false;
        }
        let is_over = self.start.elapsed() >= self.time;
        if !is_over {
            self.look_at = reads + READS_PER_LOOK;
        }
        is_over
    }
}

/// Returns the runs of whole pages that are in the file and no hole: space that was reserved and never
/// written is a hole.
fn data_runs(file: &File, pages: u64) -> Result<Vec<Extent>> {
    let (mut runs, mut at) = (Vec::new(), 0);
    loop {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return Ok(runs),
            Err(error) => return Err(error.into()),
        };
        at = seek(file, SeekFrom::Hole(start))?;
        let (first, end) = (start.div_ceil(PAGE), (at / PAGE).min(pages));
        if first < end {
            runs.push(Extent { start: PageId(first), pages: end - first });
        }
    }
}

/// Returns the pages that are in both, ascending.
fn common(data: &[Extent], extents: &[Extent]) -> Vec<Extent> {
    let mut extents: Vec<_> = extents.to_vec();
    extents.sort_by_key(|extent| extent.start);
    let mut both = Vec::new();
    for extent in extents {
        let first = data.partition_point(|run| run.end() <= extent.start);
        let runs = data[first..].iter().take_while(|run| run.start < extent.end());
        both.extend(runs.map(|run| {
            let (start, end) = (run.start.max(extent.start), run.end().min(extent.end()));
            Extent { start, pages: end.0 - start.0 }
        }));
    }
    both
}

#[cfg(test)]
mod tests {
    use nandex::device::{Create, FileDevice, FileOptions};
    use nandex_device::MemoryDevice;

    use super::*;

    fn extent(start: u64, pages: u64) -> Extent {
        Extent { start: PageId(start), pages }
    }

    fn device_in(dir: &Path) -> (Arc<dyn Device>, PathBuf) {
        let path = dir.join("volume");
        let options = FileOptions { create: Create::New, ..FileOptions::default() };
        let device = FileDevice::open(&path, &options).unwrap();
        device.grow(1000).unwrap();
        (Arc::new(device), path)
    }

    fn write(device: &dyn Device, start: u64, pages: usize) {
        let mut buf = PageBuf::zeroed(pages);
        buf.fill(7);
        device.write(PageId(start), buf).unwrap();
    }

    #[test]
    fn numbers_lead_to_the_pages_of_the_runs_and_to_no_other() {
        let device = Arc::new(MemoryDevice::new());
        let reads =
            RandomReads::of_runs(device, None, vec![extent(5, 2), extent(10, 3)], extent(10, 3));
        let pages: Vec<_> = (0..reads.pages()).map(|number| reads.page(number).0).collect();
        assert_eq!(pages, [5, 6, 10, 11, 12]);
    }

    #[test]
    fn time_is_over_also_for_reads_that_come_in_groups() {
        for first in 1..READS_PER_LOOK {
            let mut clock = Clock::new(Instant::now(), Duration::from_secs(3600));
            assert!(!clock.is_over(0) && !clock.is_over(first));
            clock.time = Duration::ZERO;
            let groups = (first..).step_by(4).take(READS_PER_LOOK as usize / 2);
            assert!(groups.into_iter().any(|reads| clock.is_over(reads)), "from {first} on");
        }
    }

    #[test]
    fn only_written_pages_of_the_extents_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let (device, path) = device_in(dir.path());
        write(&*device, 100, 50);
        write(&*device, 200, 100);
        let extents = [extent(260, 500), extent(120, 90)];
        let reads = RandomReads::written(Arc::clone(&device), &path, &extents).unwrap().unwrap();
        assert_eq!(reads.runs, [extent(120, 30), extent(200, 10), extent(260, 40)]);
        let source = reads.source();
        assert_eq!((source.bytes, source.fio_bytes), (80 * PAGE, Some(100 * PAGE)));
        assert!(source.file.ends_with("volume"));
        let load = ReadLoad { threads: 2, depth: 4, time: Duration::from_millis(5) };
        assert!(reads.per_s(load).unwrap() > 0.0);
        assert!(RandomReads::written(device, &path, &[extent(400, 5)]).unwrap().is_none());
    }

    #[test]
    fn fio_gets_the_longest_written_range_if_that_can_stand_for_all() {
        let dir = tempfile::tempdir().unwrap();
        let (device, path) = device_in(dir.path());
        write(&*device, 100, 200);
        let extents = [extent(110, 20), extent(250, 30)];
        let reads = RandomReads::written(Arc::clone(&device), &path, &extents).unwrap().unwrap();
        let region = reads.region().unwrap();
        assert_eq!((region.start_bytes, region.bytes), (110 * PAGE, 170 * PAGE));
        assert_eq!(reads.source().bytes, 50 * PAGE);
        for start in [400, 500, 600] {
            write(&*device, start, 90);
        }
        let scattered = RandomReads::written(device, &path, &[extent(310, 600)]).unwrap().unwrap();
        assert_eq!(scattered.source().bytes, 270 * PAGE);
        assert_eq!(scattered.source().fio_bytes, None, "a third does not stand for all");
    }
}
