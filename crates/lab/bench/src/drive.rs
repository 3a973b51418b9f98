//! The passes of workloads: each runs its operations on a number of threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::keys::{ABSENT_START, Picker, Rng};
use crate::subject::Subject;
use crate::worker::{
    Asks, Counters, Expect, KeyChange, Pass, Point, Step, Worker, check, on_threads, there,
};
use crate::workload::{Flow, Mix, Operation};

/// Indices that a thread claims at once while it inserts, if a batch is not longer. Between two claims it
/// reads the clock, so that an engine with some 20 keys a second can stop.
const CLAIM: u64 = 64;
/// The inserting thread sleeps this long when it is ahead of its rate.
const NAP: Duration = Duration::from_micros(500);
/// The number of lookup calls between two checks whether the inserts have ended.
const CALLS_PER_LOOK: u64 = 16;

/// The size of a load.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    /// Entries, from index 0 on.
    pub entries: u64,
    /// The maximum time, after which it ends, full or not.
    pub time_max: Option<Duration>,
    /// The approximate number of points of its curve over time.
    pub points: u32,
}

/// A curve of the time after every batch of operations.
struct Curve {
    stretch: u64,
    done: AtomicU64,
    start: Instant,
    points: Mutex<Vec<Point>>,
}

impl Curve {
    fn start(fill: Fill) -> Self {
        let stretch = fill.entries.div_ceil(u64::from(fill.points)).max(1);
        Self { stretch, done: 0.into(), start: Instant::now(), points: Mutex::default() }
    }

    fn add(&self, count: u64) {
        let before = self.done.fetch_add(count, Ordering::Relaxed);
        let operations = before + count;
        if before / self.stretch != operations / self.stretch {
            let seconds = self.start.elapsed().as_secs_f64();
            let mut points = self.points.lock().unwrap_or_else(PoisonError::into_inner);
            points.push(Point { operations, seconds });
        }
    }

    fn finish(self) -> Vec<Point> {
        let mut points = self.points.into_inner().unwrap_or_else(PoisonError::into_inner);
        points.sort_by_key(|point| point.operations);
        points
    }
}

/// Inserts entries from index 0 on, and makes them durable; both are timed. The inserted entries are always
/// the first ones, and the counters count them.
///
/// # Errors
/// Returns the engine's error.
pub fn load(subject: &dyn Subject, pass: Pass, fill: Fill) -> Result<Counters> {
    let (next, claim) = (AtomicU64::new(0), CLAIM.max(pass.batch as u64));
    let curve = Curve::start(fill);
    let late = || fill.time_max.is_some_and(|limit| curve.start.elapsed() >= limit);
    let mut counters = on_threads(subject, pass, |_, worker| {
        while !late() {
            let first = next.fetch_add(claim, Ordering::Relaxed);
            if first >= fill.entries {
                break;
            }
            let count = claim.min(fill.entries - first);
            worker.inserts(count, pairs_from(pass, first))?;
            curve.add(count);
        }
        Ok(())
    })?;
    let sync_start = Instant::now();
    subject.sync().context("the sync at the end of the load failed")?;
    counters.seconds += sync_start.elapsed().as_secs_f64();
    counters.curve = curve.finish();
    Ok(counters)
}

/// Returns the pairs of the entries from `index` on, one per call.
fn pairs_from(pass: Pass, mut index: u64) -> impl FnMut() -> (u64, u64) {
    move || {
        index += 1;
        pass.pair(index - 1)
    }
}

/// Returns the pairs of new entries, whose indices come from `next`.
fn new_pairs(pass: Pass, next: &AtomicU64) -> impl FnMut() -> (u64, u64) {
    move || pass.pair(next.fetch_add(1, Ordering::Relaxed))
}

/// The keys that lookups request.
#[derive(Clone, Copy, Debug)]
pub enum Sought<'a> {
    /// Inserted keys, as the picker chooses them.
    Here(&'a Picker),
    /// Absent keys, uniformly. The hits of a filter are false positives.
    Absent,
}

impl Sought<'_> {
    fn key(self, pass: Pass, rng: &mut Rng) -> u64 {
        match self {
            Self::Here(picker) => pass.keys.key(picker.pick(rng)),
            Self::Absent => pass.keys.absent(rng.below(ABSENT_START)),
        }
    }

    const fn expect(self) -> Expect {
        match self {
            Self::Here(_) => Expect::Here,
            Self::Absent => Expect::Absent,
        }
    }
}

/// Looks up `operations` such keys, each thread's share in batches if the pass has them.
///
/// # Errors
/// Returns the engine's error, or reports a wrong answer: of a table, any value at all for an absent key.
pub fn lookups(
    subject: &dyn Subject,
    pass: Pass,
    operations: u64,
    sought: Sought<'_>,
) -> Result<Counters> {
    on_threads(subject, pass, |thread, worker| {
        let mut rng = Rng::new(pass.seed, pass.number, thread);
        let key = || sought.key(pass, &mut rng);
        worker.lookups(pass.share(operations, thread), sought.expect(), key)
    })
}

/// Looks up `operations` such keys, each thread's share in one stream. Single lookups of a stream have no
/// time of their own, so there are no latencies.
///
/// # Errors
/// Returns the engine's error, or reports a wrong answer, or another number of answers than of lookups.
pub fn lookup_stream(
    subject: &dyn Subject,
    pass: Pass,
    operations: u64,
    sought: Sought<'_>,
) -> Result<Counters> {
    on_threads(subject, pass, |thread, worker| {
        let mut rng = Rng::new(pass.seed, pass.number, thread);
        let count = pass.share(operations, thread);
        let mut keys = (0..count).map(|_| sought.key(pass, &mut rng));
        let Worker { counters, client, .. } = worker;
        let mut answer = |key, found| {
            counters.lookups += 1;
            counters.hits += check(pass, key, sought.expect(), found)?;
            Ok(())
        };
        match pass.asks {
            Asks::Values => client.stream(&mut keys, pass.batch, &mut answer)?,
            Asks::Counts | Asks::ExactCounts => {
                let mut answer = |key, count| answer(key, there(count));
                client.count_stream(&mut keys, pass.batch, &mut answer)?;
            }
        }
        ensure!(counters.lookups == count, "{} answers to {count} lookups", counters.lookups);
        Ok(())
    })
}

/// Queries and inserts `operations` new documents. They take the indices from `next` on, which is advanced.
///
/// # Errors
/// Returns the engine's error, or reports a wrong answer.
pub fn insert_and_query(
    subject: &dyn Subject,
    pass: Pass,
    operations: u64,
    next: &AtomicU64,
) -> Result<Counters> {
    on_threads(subject, pass, |thread, worker| {
        worker.lookups_with_inserts(pass.share(operations, thread), new_pairs(pass, next))
    })
}

/// Overwrites `operations` picked keys with values of `pass.version`.
///
/// # Errors
/// Returns the engine's error.
pub fn overwrite_picked(
    subject: &dyn Subject,
    pass: Pass,
    operations: u64,
    picker: &Picker,
) -> Result<Counters> {
    on_threads(subject, pass, |thread, worker| {
        let mut picked = picks(pass, picker, thread);
        worker.inserts(pass.share(operations, thread), || {
            let key = pass.keys.key(picked());
            (key, pass.keys.value(key, pass.version))
        })
    })
}

/// Returns the indices that a thread of a pass of updates picks, one per call.
pub(crate) fn picks(pass: Pass, picker: &Picker, thread: u64) -> impl FnMut() -> u64 {
    let mut rng = Rng::new(pass.seed, pass.number, thread);
    move || picker.pick(&mut rng)
}

/// The keys that are present while new ones replace the oldest: those of `entries` indices from `first` on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// The index of the oldest key.
    pub first: u64,
    /// The number of keys, at least 1.
    pub entries: u64,
}

/// Removes the oldest key and inserts a new one, `operations` times, and advances the window.
///
/// Threads share a part of at most `window.entries` operations and begin the next part together, so that none
/// removes a key that another has yet to insert.
///
/// # Errors
/// Returns the engine's error.
pub fn churn(
    subject: &dyn Subject,
    pass: Pass,
    operations: u64,
    window: &mut Window,
) -> Result<Counters> {
    let (mut all, claim) = (Counters::default(), CLAIM.max(pass.batch as u64));
    let mut left = operations;
    while left > 0 {
        let (part, Window { first, entries }) = (left.min(window.entries), *window);
        let next = AtomicU64::new(0);
        let counters = on_threads(subject, pass, |_, worker| {
            loop {
                let done = next.fetch_add(claim, Ordering::Relaxed);
                if done >= part {
                    return Ok(());
                }
                worker.replacements(claim.min(part - done), first + done, entries)?;
            }
        })?;
        all.seconds += counters.seconds;
        all.merge(&counters);
        window.first += part;
        left -= part;
    }
    Ok(all)
}

/// Adds 1 to the counts of `operations` picked keys, and makes that durable; both are timed.
///
/// # Errors
/// Returns the engine's error.
pub fn add_picked(
    subject: &dyn Subject,
    pass: Pass,
    operations: u64,
    picker: &Picker,
) -> Result<Counters> {
    let mut counters = on_threads(subject, pass, |thread, worker| {
        let mut rng = Rng::new(pass.seed, pass.number, thread);
        let key = || pass.keys.key(picker.pick(&mut rng));
        worker.key_changes(KeyChange::Add, pass.share(operations, thread), key)
    })?;
    let sync_start = Instant::now();
    subject.sync().context("the sync at the end of the additions failed")?;
    counters.seconds += sync_start.elapsed().as_secs_f64();
    Ok(counters)
}

/// Deletes the keys of `count` indices from `first` on.
///
/// # Errors
/// Returns the engine's error.
pub fn delete(subject: &dyn Subject, pass: Pass, first: u64, count: u64) -> Result<Counters> {
    on_threads(subject, pass, |thread, worker| {
        let before: u64 = (0..thread).map(|earlier| pass.share(count, earlier)).sum();
        let mut pair = pairs_from(pass, first + before);
        worker.key_changes(KeyChange::Delete, pass.share(count, thread), || pair().0)
    })
}

/// Runs a mixed stream of `operations`. New entries take the indices from `next` on, which is advanced.
///
/// # Errors
/// Returns the engine's error, or reports a wrong answer.
pub fn mixed(
    subject: &dyn Subject,
    pass: Pass,
    operations: u64,
    picker: &Picker,
    mix: Mix,
    next: &AtomicU64,
) -> Result<Counters> {
    on_threads(subject, pass, |thread, worker| {
        let mut rng = Rng::new(pass.seed, pass.number, thread);
        let mut left = pass.share(operations, thread);
        while left > 0 {
            let count = left.min(pass.batch as u64);
            worker.mixed_batch(count, || match mix.next(picker, &mut rng) {
                Operation::Insert => {
                    let (key, value) = pass.pair(next.fetch_add(1, Ordering::Relaxed));
                    Step::Insert(key, value)
                }
                Operation::LookupHit(index) => Step::Lookup(pass.keys.key(index), Expect::Here),
                Operation::LookupMiss(index) => {
                    Step::Lookup(pass.keys.absent(index), Expect::Absent)
                }
            })?;
            left -= count;
        }
        Ok(())
    })
}

/// A guard that ends the lookups, however the inserts end.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Looks up present keys on the threads of `pass`, while one more thread inserts `flow`. New entries take the
/// indices from `next` on, which is advanced.
///
/// # Errors
/// Returns the engine's error, or reports a wrong answer.
pub fn lookups_during_inserts(
    subject: &dyn Subject,
    pass: Pass,
    picker: &Picker,
    flow: Flow,
    next: &AtomicU64,
) -> Result<Counters> {
    let ended = AtomicBool::new(false);
    let all = Pass { threads: pass.threads + 1, ..pass };
    on_threads(subject, all, |thread, worker| {
        if thread == pass.threads as u64 {
            let _end = EndOnDrop(&ended);
            return insert_steadily(worker, flow, new_pairs(pass, next));
        }
        let mut rng = Rng::new(pass.seed, pass.number, thread);
        while !ended.load(Ordering::Relaxed) {
            let count = CALLS_PER_LOOK * pass.batch as u64;
            worker.lookups(count, Expect::Here, || pass.keys.key(picker.pick(&mut rng)))?;
        }
        Ok(())
    })
}

/// Makes one call per insert, so that an insert that waits is seen.
fn insert_steadily(
    worker: &mut Worker<'_>,
    flow: Flow,
    mut pair: impl FnMut() -> (u64, u64),
) -> Result<()> {
    let (start, mut done) = (Instant::now(), 0);
    while done < flow.inserts {
        let due = flow.due(start.elapsed());
        if due == done {
            thread::sleep(NAP);
            continue;
        }
        worker.single_inserts(due - done, &mut pair)?;
        done = due;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
