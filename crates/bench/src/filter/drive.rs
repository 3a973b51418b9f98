//! Runs operations on a filter from a number of threads, times them and checks every answer.
//!
//! A key that is there and not found ends the run with an error, as does a count below the true one.
//! False positives are counted, which is what `lookup-miss` is for.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::subject::{FilterLane, FilterSubject};
use crate::drive::{Pass, Tally, share, together};
use crate::percentiles::Laps;
use crate::workload::{ABSENT_START, KeySpace, Mix, Operation, Picker, Rng};

/// Indices a thread claims at once while it inserts. Between two claims it looks at the clock, so a filter
/// that takes some 20 keys a second has to be able to stop.
const CLAIM: u64 = 64;

/// A point of a curve over time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Point {
    /// Operations done so far.
    pub operations: u64,
    /// Seconds since the start.
    pub seconds: f64,
}

/// Notes when so many operations were done; points are as many operations apart.
#[derive(Debug)]
pub struct Curve {
    every: u64,
    done: AtomicU64,
    start: Instant,
    points: Mutex<Vec<Point>>,
}

impl Curve {
    /// A curve of about `points` points over `operations`, which starts now.
    #[must_use]
    pub fn start(operations: u64, points: u32) -> Self {
        let every = operations.div_ceil(u64::from(points)).max(1);
        Self { every, done: 0.into(), start: Instant::now(), points: Mutex::default() }
    }

    /// Counts operations, and makes a point where they fill another stretch.
    fn note(&self, count: u64) {
        let before = self.done.fetch_add(count, Ordering::Relaxed);
        let operations = before + count;
        if before / self.every != operations / self.every {
            let seconds = self.start.elapsed().as_secs_f64();
            let mut points = self.points.lock().expect("no holder of this lock panics");
            points.push(Point { operations, seconds });
        }
    }

    /// The points, in order of time.
    #[must_use]
    pub fn points(self) -> Vec<Point> {
        let mut points = self.points.into_inner().expect("no holder of this lock panics");
        points.sort_by_key(|point| point.operations);
        points
    }
}

/// Inserts keys from index 0 up to `keys`, and makes them durable; both are timed. Ends early after
/// `time_max`; the keys that are in are always the first ones, and the tally counts them.
///
/// # Errors
/// The filter's.
pub fn insert(
    subject: &dyn FilterSubject,
    pass: Pass,
    keys: u64,
    time_max: Option<Duration>,
    curve: &Curve,
) -> Result<Tally> {
    let (next, claim) = (AtomicU64::new(0), CLAIM.max(pass.batch as u64));
    let late = || time_max.is_some_and(|limit| curve.start.elapsed() >= limit);
    let mut tally = on_lanes(subject, pass, |_, worker| {
        while !late() {
            let first = next.fetch_add(claim, Ordering::Relaxed);
            if first >= keys {
                break;
            }
            let mut index = first;
            let count = claim.min(keys - first);
            worker.changes(Change::Insert, count, || {
                index += 1;
                pass.keys.key(index - 1)
            })?;
            curve.note(count);
        }
        Ok(())
    })?;
    let start = Instant::now();
    subject.sync().context("the sync at the end of the inserts failed")?;
    tally.seconds += start.elapsed().as_secs_f64();
    Ok(tally)
}

/// Looks up `operations` keys that are there.
///
/// # Errors
/// The filter's, or a false negative.
pub fn lookup_hits(
    subject: &dyn FilterSubject,
    pass: Pass,
    operations: u64,
    picker: &Picker,
) -> Result<Tally> {
    on_lanes(subject, pass, |thread, worker| {
        let mut rng = Rng::new(pass.seed, pass.number, thread);
        let count = share(operations, pass.threads, thread);
        worker.lookups(Expect::Here, count, || pass.keys.key(picker.pick(&mut rng)))
    })
}

/// Looks up `operations` keys that are not there; the hits of the tally are false positives.
///
/// # Errors
/// The filter's.
pub fn lookup_misses(subject: &dyn FilterSubject, pass: Pass, operations: u64) -> Result<Tally> {
    on_lanes(subject, pass, |thread, worker| {
        let mut rng = Rng::new(pass.seed, pass.number, thread);
        let count = share(operations, pass.threads, thread);
        worker.lookups(Expect::Absent, count, || pass.keys.absent(rng.below(ABSENT_START)))
    })
}

/// Deletes the keys of `count` indices from `first` on.
///
/// # Errors
/// The filter's.
pub fn delete(subject: &dyn FilterSubject, pass: Pass, first: u64, count: u64) -> Result<Tally> {
    on_lanes(subject, pass, |thread, worker| {
        let before: u64 = (0..thread).map(|earlier| share(count, pass.threads, earlier)).sum();
        let mut index = first + before;
        worker.changes(Change::Delete, share(count, pass.threads, thread), || {
            index += 1;
            pass.keys.key(index - 1)
        })
    })
}

/// Adds 1 to the counts of `operations` picked keys.
///
/// # Errors
/// The filter's.
pub fn count(
    subject: &dyn FilterSubject,
    pass: Pass,
    operations: u64,
    picker: &Picker,
) -> Result<Tally> {
    on_lanes(subject, pass, |thread, worker| {
        let mut rng = Rng::new(pass.seed, pass.number, thread);
        let count = share(operations, pass.threads, thread);
        worker.changes(Change::Add, count, || pass.keys.key(picker.pick(&mut rng)))
    })
}

/// Draws the keys of a [`count`] once more and asks for the counts of about `sample` of them. Gives how
/// many of these counts were above the true ones, and how many were asked.
///
/// # Errors
/// The filter's, or a count below the true one.
pub fn check_counts(
    subject: &dyn FilterSubject,
    pass: Pass,
    operations: u64,
    picker: &Picker,
    sample: usize,
) -> Result<(u64, u64)> {
    let mut truth: HashMap<u64, u64> = HashMap::new();
    for thread in 0..pass.threads as u64 {
        let mut rng = Rng::new(pass.seed, pass.number, thread);
        for _ in 0..share(operations, pass.threads, thread) {
            let index = picker.pick(&mut rng);
            if truth.len() < sample || truth.contains_key(&index) {
                *truth.entry(index).or_default() += 1;
            }
        }
    }
    let keys: Vec<u64> = truth.keys().map(|&index| pass.keys.key(index)).collect();
    let mut counts = Vec::new();
    subject.lane()?.count_many(&keys, &mut counts)?;
    ensure!(counts.len() == keys.len(), "{} counts of {} keys", counts.len(), keys.len());
    let mut above = 0;
    for ((&index, &expected), &found) in truth.iter().zip(&counts) {
        let key = pass.keys.key(index);
        ensure!(
            found >= expected,
            "key {key:#018x} was added {expected} times, and {found} is told"
        );
        above += u64::from(found > expected);
    }
    Ok((above, keys.len() as u64))
}

/// A mixed stream of `operations`. New keys take the indices from `next` on, which is moved.
///
/// # Errors
/// The filter's, or a false negative.
pub fn mixed(
    subject: &dyn FilterSubject,
    pass: Pass,
    operations: u64,
    picker: &Picker,
    mix: Mix,
    next: &AtomicU64,
) -> Result<Tally> {
    on_lanes(subject, pass, |thread, worker| {
        let mut rng = Rng::new(pass.seed, pass.number, thread);
        let mut left = share(operations, pass.threads, thread);
        let (mut new, mut here, mut absent) = (Vec::new(), Vec::new(), Vec::new());
        while left > 0 {
            let count = left.min(pass.batch as u64);
            for _ in 0..count {
                match mix.next(picker, &mut rng) {
                    Operation::Insert => {
                        new.push(pass.keys.key(next.fetch_add(1, Ordering::Relaxed)));
                    }
                    Operation::LookupHit(index) => here.push(pass.keys.key(index)),
                    Operation::LookupMiss(index) => absent.push(pass.keys.absent(index)),
                }
            }
            worker.changes(Change::Insert, new.len() as u64, drain(&mut new))?;
            worker.lookups(Expect::Here, here.len() as u64, drain(&mut here))?;
            worker.lookups(Expect::Absent, absent.len() as u64, drain(&mut absent))?;
            left -= count;
        }
        Ok(())
    })
}

/// Gives what is in `keys` one by one, for as many calls as there are.
fn drain(keys: &mut Vec<u64>) -> impl FnMut() -> u64 + '_ {
    move || keys.pop().expect("it is called once for each key")
}

/// What is done to a key.
#[derive(Clone, Copy)]
enum Change {
    Insert,
    Delete,
    Add,
}

/// What a lookup should say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// Yes.
    Here,
    /// No, or by mistake yes.
    Absent,
}

/// Runs `work` on as many threads as the pass has, each with a lane of its own.
fn on_lanes(
    subject: &dyn FilterSubject,
    pass: Pass,
    work: impl Fn(u64, &mut Worker<'_>) -> Result<()> + Sync,
) -> Result<Tally> {
    together(pass.threads, |thread, ready| {
        let lane = subject.lane();
        ready.wait();
        let tally = Tally::default();
        let mut worker = Worker { lane: lane?, pass, tally, keys: Vec::new(), found: Vec::new() };
        work(thread, &mut worker)?;
        Ok(worker.tally)
    })
}

/// One thread at work, with its buffers.
struct Worker<'a> {
    lane: Box<dyn FilterLane + 'a>,
    pass: Pass,
    tally: Tally,
    keys: Vec<u64>,
    found: Vec<bool>,
}

impl Worker<'_> {
    /// Changes `count` keys, in batches where the pass has them.
    fn changes(&mut self, change: Change, count: u64, mut key: impl FnMut() -> u64) -> Result<()> {
        let mut laps = Laps::start(self.pass.latency);
        let mut left = count;
        if self.pass.batch == 1 && matches!(change, Change::Insert) {
            for _ in 0..count {
                self.lane.insert(key())?;
                laps.lap(&mut self.tally.insert_ns);
            }
            left = 0;
        }
        while left > 0 {
            let size = left.min(self.pass.batch as u64);
            self.keys.clear();
            self.keys.extend((0..size).map(|_| key()));
            laps.restart();
            match change {
                Change::Insert => self.lane.insert_many(&self.keys)?,
                Change::Delete => self.lane.delete_many(&self.keys)?,
                Change::Add => self.lane.add_many(&self.keys)?,
            }
            laps.lap(&mut self.tally.insert_ns);
            left -= size;
        }
        self.tally.inserts += count;
        Ok(())
    }

    /// Looks up `count` keys, likewise, and checks the answers.
    fn lookups(&mut self, expect: Expect, count: u64, mut key: impl FnMut() -> u64) -> Result<()> {
        let mut laps = Laps::start(self.pass.latency);
        let mut left = count;
        if self.pass.batch == 1 {
            for _ in 0..count {
                let key = key();
                let found = self.lane.contains(key)?;
                laps.lap(&mut self.tally.lookup_ns);
                self.tally.hits += check(self.pass.keys, key, expect, found)?;
            }
            left = 0;
        }
        while left > 0 {
            let size = left.min(self.pass.batch as u64);
            self.keys.clear();
            self.keys.extend((0..size).map(|_| key()));
            self.found.clear();
            laps.restart();
            self.lane.contains_many(&self.keys, &mut self.found)?;
            laps.lap(&mut self.tally.lookup_ns);
            if self.found.len() != self.keys.len() {
                bail!("{} answers to {} lookups", self.found.len(), self.keys.len());
            }
            for (&key, &found) in self.keys.iter().zip(&self.found) {
                self.tally.hits += check(self.pass.keys, key, expect, found)?;
            }
            left -= size;
        }
        self.tally.lookups += count;
        Ok(())
    }
}

/// 1 for yes, 0 for no, an error for a false negative.
fn check(keys: KeySpace, key: u64, expect: Expect, found: bool) -> Result<u64> {
    if !found && expect == Expect::Here {
        let index = keys.index_of(key);
        bail!(
            "false negative: key {key:#018x}, the insert of index {index}, is told not to be there"
        );
    }
    Ok(found.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::rooms::multiset;
    use crate::percentiles::Latency;

    fn pass(threads: usize, batch: usize) -> Pass {
        let keys = KeySpace::new(3);
        Pass { keys, seed: 3, number: 1, threads, batch, latency: Latency::On }
    }

    fn loaded(subject: &dyn FilterSubject, keys: u64) -> Vec<Point> {
        let curve = Curve::start(keys, 4);
        let tally = insert(subject, pass(2, 7), keys, None, &curve).unwrap();
        assert_eq!(tally.inserts, keys);
        curve.points()
    }

    #[test]
    fn every_key_goes_in_once_and_is_found_and_others_are_not() {
        for (threads, batch) in [(1, 1), (3, 1), (2, 7)] {
            let subject = multiset();
            let points = loaded(&subject, 8192);
            assert!(points.len() >= 4 && points.last().unwrap().operations == 8192, "{points:?}");
            let picker = Picker::new(8192, None);
            let hits = lookup_hits(&subject, pass(threads, batch), 500, &picker).unwrap();
            assert_eq!((hits.lookups, hits.hits), (500, 500));
            let misses = lookup_misses(&subject, pass(threads, batch), 500).unwrap();
            assert_eq!((misses.lookups, misses.hits), (500, 0));
        }
    }

    #[test]
    fn a_false_negative_ends_the_run() {
        let subject = multiset();
        loaded(&subject, 100);
        let tally = delete(&subject, pass(2, 8), 0, 100).unwrap();
        assert_eq!(tally.inserts, 100);
        let picker = Picker::new(100, None);
        let error = lookup_hits(&subject, pass(1, 8), 10, &picker).unwrap_err().to_string();
        assert!(error.contains("false negative"), "{error}");
    }

    #[test]
    fn counts_are_compared_with_the_stream_drawn_once_more() {
        let subject = multiset();
        let picker = Picker::new(1000, Some(0.99));
        count(&subject, pass(2, 16), 5000, &picker).unwrap();
        let checked = check_counts(&subject, pass(2, 16), 5000, &picker, 50).unwrap();
        assert_eq!(checked, (0, 50));
        let error = check_counts(&subject, pass(2, 16), 9000, &picker, 50).unwrap_err().to_string();
        assert!(error.contains("is told"), "{error}");
    }

    #[test]
    fn a_mixed_stream_inserts_new_keys_and_finds_loaded_ones() {
        for batch in [1, 16] {
            let subject = multiset();
            loaded(&subject, 1000);
            let next = AtomicU64::new(1000);
            let mix = Mix { lookup_fraction: 0.5, success: 1.0 };
            let picker = Picker::new(1000, None);
            let tally = mixed(&subject, pass(2, batch), 2000, &picker, mix, &next).unwrap();
            assert_eq!((tally.operations(), tally.hits), (2000, tally.lookups));
            assert_eq!(subject.filter.distinct() as u64, next.into_inner());
        }
    }
}
