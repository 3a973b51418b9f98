//! The pipeline: one thread walks, workers read, cut and hash, and the caller's thread indexes.
//!
//! ```text
//!             jobs                      pieces of each job
//!   walk ---------------> workers -----------------------------> index
//!      \______ the jobs' result channels, in order of the walk _____/
//! ```
//!
//! 1. A job is a few neighbouring small files, or one large one. It has a channel of its own for its results; the
//!    indexer empties the channels in the order of the walk, whichever worker is ahead.
//! 2. All channels and queues are bounded: a worker that is ahead waits. Workers take jobs in order, so some
//!    worker has the job whose channel is being emptied, and there is no deadlock.
//! 3. RAM: a read buffer per worker (see [`nandex_chunk::ChunkBuffer`]) and at most four jobs per worker at a
//!    time, each with up to three pieces of 48 KiB.
//! 4. When the indexer stops, the channels close; a worker that sends into a closed one ends, and then the walk.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nandex::{Table, TableStats};

use crate::forgotten::Forgotten;
use crate::indexer::{Indexer, Totals, reads_per_lookup};
use crate::options::Options;
use crate::read::{Job, Piece, Reader, Stop};
use crate::units::{float, ratio};
use crate::{Error, Found, KindCount, Progress, Result, SkipKind, Summary, TREES_MAX, Walk};

/// The most finds in a job.
const JOB_FINDS_MAX: usize = 64;

/// The number of bytes of its files from which on a job gets no further file.
const JOB_BYTES_MAX: u64 = 1 << 20;

/// The number of jobs at a time for each worker: enough that none waits while a large file's channel is being emptied.
const JOBS_PER_WORKER: usize = 4;

/// The number of finished pieces that may wait in a job's channel.
const PIECES_PER_CHANNEL: usize = 2;

/// The most workers that are started, even if more are requested.
const WORKERS_MAX: usize = 256;

/// Reads everything under the options' paths, and finds and stores its chunks in `table`.
///
/// The table maps [`crate::Hash::key_bytes`] bytes to [`crate::VALUE_BYTES`]. It stores fingerprints, not trees: on a
/// table from an earlier run, that run's chunks count as duplicate, so a second run over the same tree finds nothing
/// unique. This measures what a new backup adds to the old ones.
///
/// Once `cancel` is true the run stops before its next batch, syncs the table and returns the results so far,
/// marked as interrupted; a later run on the same table continues.
///
/// # Errors
/// A table of the wrong widths, a given or excluded path that cannot be examined, a failing table, an entry in it that
/// is not of a chunk. Files that cannot be read are in the summary instead.
pub fn dedup(
    table: &dyn Table,
    options: &Options,
    progress: &dyn Progress,
    cancel: &AtomicBool,
) -> Result<Summary> {
    let start = Instant::now();
    check_trees(options)?;
    check_widths(table, options)?;
    let walk = Walk::new(&options.paths)?.leaving_out(&options.leave_out)?;
    let mut forgotten = Forgotten::read(table)?;
    let before = table.stats();
    let (totals, interrupted) =
        run_pipeline(&mut forgotten, table, options, (walk, progress, cancel))?;
    forgotten.note_all()?;
    table.sync()?;
    let after = table.stats();
    let forgotten = (forgotten.in_run(), forgotten.in_life());
    let figures = Figures { before, after, forgotten, elapsed: start.elapsed(), interrupted };
    Ok(summarise(options, totals, &figures))
}

fn check_trees(options: &Options) -> Result<()> {
    let found = options.paths.len();
    match options.compare && !(2..=TREES_MAX).contains(&found) {
        true => Err(Error::Trees { found }),
        false => Ok(()),
    }
}

fn check_widths(table: &dyn Table, options: &Options) -> Result<()> {
    let (key_bytes, value_bytes) = (options.hash.key_bytes(), options.value_bytes());
    let widths =
        [("key", key_bytes, table.key_bytes()), ("value", value_bytes, table.value_bytes())];
    for (what, expected, found) in widths {
        if expected != found {
            return Err(Error::Width { what, expected, found, key_bytes, value_bytes });
        }
    }
    Ok(())
}

/// The results of one job, piece by piece.
type Results = Receiver<Piece>;

/// Runs all threads to their end; returns the totals, and whether anything was left undone.
fn run_pipeline(
    forgotten: &mut Forgotten<'_>,
    table: &dyn Table,
    options: &Options,
    (walk, progress, cancel): (Walk, &dyn Progress, &AtomicBool),
) -> Result<(Totals, bool)> {
    let workers = options.workers.clamp(1, WORKERS_MAX);
    let jobs_max = workers * JOBS_PER_WORKER;
    let (jobs, jobs_taken) = sync_channel(jobs_max);
    let (results, results_taken) = sync_channel(jobs_max);
    let jobs_taken = Arc::new(Mutex::new(jobs_taken));
    let ended = AtomicBool::new(false);
    let stop = Stop::new(cancel, &ended);
    thread::scope(|scope| {
        let walking = scope.spawn(move || hand_out(walk, stop, &jobs, &results));
        for _ in 0..workers {
            let jobs_taken = Arc::clone(&jobs_taken);
            scope.spawn(move || work(&jobs_taken, Reader::new(options, stop)));
        }
        drop(jobs_taken);
        let mut indexer = Indexer::new(table, progress, forgotten).comparing(options);
        let indexed = index(&mut indexer, results_taken, cancel);
        ended.store(true, Ordering::Relaxed);
        let walked = walking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let interrupted = indexed?.is_break() || walked.is_break();
        Ok((indexer.into_totals(), interrupted))
    })
}

/// Runs the walk's thread: groups finds into jobs and distributes them.
fn hand_out(
    walk: Walk,
    stop: Stop<'_>,
    jobs: &SyncSender<Job>,
    results: &SyncSender<Results>,
) -> ControlFlow<()> {
    let mut finds = Vec::new();
    let mut bytes = 0_u64;
    for find in walk {
        if stop.is_set() {
            return ControlFlow::Break(());
        }
        if let Found::File(file) = &find {
            bytes = bytes.saturating_add(file.bytes);
        }
        finds.push(find);
        if finds.len() >= JOB_FINDS_MAX || bytes >= JOB_BYTES_MAX {
            send_job(std::mem::take(&mut finds), jobs, results)?;
            bytes = 0;
        }
    }
    if finds.is_empty() { ControlFlow::Continue(()) } else { send_job(finds, jobs, results) }
}

fn send_job(
    finds: Vec<Found>,
    jobs: &SyncSender<Job>,
    results: &SyncSender<Results>,
) -> ControlFlow<()> {
    let (sender, receiver) = sync_channel(PIECES_PER_CHANNEL);
    let sent = results.send(receiver).is_ok() && jobs.send(Job { finds, results: sender }).is_ok();
    if sent { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

/// Runs a worker's thread: one job after another until there are none, or the run stops.
fn work(jobs: &Mutex<Receiver<Job>>, mut reader: Reader<'_>) {
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        if reader.work(job).is_break() {
            return;
        }
    }
}

/// Runs in the caller's thread: empties the jobs' channels in order. Breaks if cancelled or if a job stayed unfinished.
fn index(
    indexer: &mut Indexer<'_, '_>,
    results: Receiver<Results>,
    cancel: &AtomicBool,
) -> Result<ControlFlow<()>> {
    for of_job in results {
        loop {
            let Ok(piece) = of_job.recv() else { return Ok(ControlFlow::Break(())) };
            let is_last = piece.is_last;
            if indexer.is_full_for(&piece) {
                if cancel.load(Ordering::Relaxed) {
                    return Ok(ControlFlow::Break(()));
                }
                indexer.do_batch()?;
            }
            indexer.take(piece);
            if is_last {
                break;
            }
        }
    }
    if cancel.load(Ordering::Relaxed) {
        return Ok(ControlFlow::Break(()));
    }
    indexer.do_batch()?;
    Ok(ControlFlow::Continue(()))
}

/// The summary's figures in addition to the totals.
struct Figures {
    before: TableStats,
    after: TableStats,
    /// The numbers of entries forgotten in the run, and in the table's life.
    forgotten: (u64, u64),
    elapsed: Duration,
    interrupted: bool,
}

fn summarise(options: &Options, totals: Totals, figures: &Figures) -> Summary {
    let Totals { done, total_chunks, unique_chunks, tops, skipped, comparison } = totals;
    let (largest_duplicate_files, largest_duplicate_directories) = tops.finish();
    let (skipped, skipped_by_kind) = skipped.finish();
    let unique_bytes = done.bytes - done.duplicate_bytes;
    let elapsed_s = figures.elapsed.as_secs_f64();
    Summary {
        total_bytes: done.bytes,
        duplicate_bytes: done.duplicate_bytes,
        duplicate_fraction: ratio(done.duplicate_bytes, done.bytes).unwrap_or(0.0),
        dedup_ratio: if done.bytes == 0 { Some(1.0) } else { ratio(done.bytes, unique_bytes) },
        total_chunks,
        unique_chunks,
        files: done.files,
        unreadable_count: unreadable_count(&skipped_by_kind),
        index_entries: figures.after.entries,
        forgotten_entries: figures.forgotten.0,
        forgotten_entries_life: figures.forgotten.1,
        index_bytes: figures.after.flash_bytes,
        ram_bytes: figures.after.ram_bytes,
        ram_bytes_per_entry: figures.after.ram_bytes_per_entry(),
        reads_per_lookup: reads_per_lookup(&figures.before, &figures.after),
        bytes_per_s: if elapsed_s > 0.0 { float(done.bytes) / elapsed_s } else { 0.0 },
        elapsed_s,
        interrupted: figures.interrupted,
        chunker: options.chunking.chunker(),
        average_bytes: u64::try_from(options.chunking.average_bytes()).expect("at most 1 MiB"),
        hash: options.hash,
        largest_duplicate_files,
        largest_duplicate_directories,
        skipped_count: skipped_by_kind.iter().map(|kind| kind.count).sum(),
        skipped,
        skipped_by_kind,
        comparison,
        provenance: None,
    }
}

fn unreadable_count(by_kind: &[KindCount]) -> u64 {
    by_kind.iter().find(|it| it.kind == SkipKind::Unreadable).map_or(0, |it| it.count)
}
