//! Runs operations on an engine from a number of threads, times them and checks every answer.
//!
//! A wrong value, or any value for a key that was never inserted, ends the run with an error: a
//! benchmark that does not check its answers measures nothing.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::percentiles::{Laps, Latency, Recorder};
use crate::subject::{Lane, Subject};
use crate::workload::{ABSENT_START, KeySpace, Mix, Operation, Picker, Rng};

/// Indices a thread claims at once while it inserts.
const CLAIM: u64 = 1024;

/// What all passes have in common.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// The keys.
    pub keys: KeySpace,
    /// Seed of the streams.
    pub seed: u64,
    /// Which pass this is, so that no two draw the same stream.
    pub number: u64,
    /// Threads at work.
    pub threads: usize,
    /// Keys per call; 1 uses the single calls.
    pub batch: usize,
    /// Whether calls are timed.
    pub latency: Latency,
}

/// What a pass did.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Inserts and overwrites.
    pub inserts: u64,
    /// Lookups.
    pub lookups: u64,
    /// Lookups that found their key.
    pub hits: u64,
    /// From the start of all threads to the end of the last.
    pub seconds: f64,
    /// Latencies of insert calls.
    pub insert_ns: Recorder,
    /// Latencies of lookup calls.
    pub lookup_ns: Recorder,
}

impl Tally {
    /// Inserts and lookups.
    #[must_use]
    pub const fn operations(&self) -> u64 {
        self.inserts + self.lookups
    }

    /// Adds the work of another thread or pass; seconds are left alone.
    pub fn merge(&mut self, other: &Self) {
        self.inserts += other.inserts;
        self.lookups += other.lookups;
        self.hits += other.hits;
        self.insert_ns.merge(&other.insert_ns);
        self.lookup_ns.merge(&other.lookup_ns);
    }
}

/// Inserts entries from index 0 up to `entries`, and makes them durable; both are timed. Ends early
/// after `time_max`; the entries that are in are always the first ones, and the tally counts them.
///
/// # Errors
/// The engine's.
pub fn load(
    subject: &dyn Subject,
    pass: Pass,
    entries: u64,
    time_max: Option<Duration>,
) -> Result<Tally> {
    let next = AtomicU64::new(0);
    let start = Instant::now();
    let late = || time_max.is_some_and(|limit| start.elapsed() >= limit);
    let mut tally = on_threads(subject, pass.threads, |_, worker| {
        while !late() {
            let first = next.fetch_add(CLAIM, Ordering::Relaxed);
            if first >= entries {
                break;
            }
            worker.insert_range(pass, first, entries.min(first + CLAIM))?;
        }
        Ok(())
    })?;
    let sync_start = Instant::now();
    subject.sync().context("the sync at the end of the load failed")?;
    tally.seconds += sync_start.elapsed().as_secs_f64();
    Ok(tally)
}

/// Looks up `operations` keys that are there.
///
/// # Errors
/// The engine's, or a wrong value.
pub fn lookup_hits(
    subject: &dyn Subject,
    pass: Pass,
    operations: u64,
    picker: &Picker,
) -> Result<Tally> {
    on_threads(subject, pass.threads, |thread, worker| {
        let mut rng = Rng::new(pass.seed, pass.number, thread);
        let key = |rng: &mut Rng| pass.keys.key(picker.pick(rng));
        worker
            .lookups(pass, share(operations, pass.threads, thread), Expect::Here, || key(&mut rng))
    })
}

/// Looks up `operations` keys that are there, each thread's share in one stream. Single lookups of a
/// stream have no time of their own, so there are no latencies.
///
/// # Errors
/// The engine's, a wrong value, or another number of answers than of lookups.
pub fn lookup_stream(
    subject: &dyn Subject,
    pass: Pass,
    operations: u64,
    picker: &Picker,
) -> Result<Tally> {
    on_threads(subject, pass.threads, |thread, worker| {
        let mut rng = Rng::new(pass.seed, pass.number, thread);
        let count = share(operations, pass.threads, thread);
        let mut keys = (0..count).map(|_| pass.keys.key(picker.pick(&mut rng)));
        let tally = &mut worker.tally;
        worker.lane.stream(&mut keys, pass.batch, &mut |key, found| {
            tally.lookups += 1;
            tally.hits += check(pass.keys, key, Expect::Here, found)?;
            Ok(())
        })?;
        ensure!(tally.lookups == count, "{} answers to {count} lookups", tally.lookups);
        Ok(())
    })
}

/// Looks up `operations` keys that are not there.
///
/// # Errors
/// The engine's, or any value at all.
pub fn lookup_misses(subject: &dyn Subject, pass: Pass, operations: u64) -> Result<Tally> {
    on_threads(subject, pass.threads, |thread, worker| {
        let mut rng = Rng::new(pass.seed, pass.number, thread);
        let key = |rng: &mut Rng| pass.keys.absent(rng.below(ABSENT_START));
        worker.lookups(pass, share(operations, pass.threads, thread), Expect::Absent, || {
            key(&mut rng)
        })
    })
}

/// Overwrites `operations` loaded keys with values of `pass.number` as their version.
///
/// # Errors
/// The engine's.
pub fn updates(
    subject: &dyn Subject,
    pass: Pass,
    operations: u64,
    picker: &Picker,
) -> Result<Tally> {
    on_threads(subject, pass.threads, |thread, worker| {
        let mut rng = Rng::new(pass.seed, pass.number, thread);
        let pair = |rng: &mut Rng| {
            let key = pass.keys.key(picker.pick(rng));
            (key, pass.keys.value(key, pass.number))
        };
        worker.inserts(pass, share(operations, pass.threads, thread), || pair(&mut rng))
    })
}

/// A mixed stream of `operations`. New entries take the indices from `next` on, which is moved.
///
/// # Errors
/// The engine's, or a wrong answer.
pub fn mixed(
    subject: &dyn Subject,
    pass: Pass,
    operations: u64,
    picker: &Picker,
    mix: Mix,
    next: &AtomicU64,
) -> Result<Tally> {
    on_threads(subject, pass.threads, |thread, worker| {
        let mut rng = Rng::new(pass.seed, pass.number, thread);
        let mut left = share(operations, pass.threads, thread);
        while left > 0 {
            let count = left.min(pass.batch as u64);
            worker.mixed_batch(pass, count, || match mix.next(picker, &mut rng) {
                Operation::Insert => {
                    let key = pass.keys.key(next.fetch_add(1, Ordering::Relaxed));
                    Step::Insert(key, pass.keys.value(key, 0))
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

/// What a lookup should give. A key that is here may still be missed: the engine may have evicted it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expect {
    /// Its value, or nothing.
    Here,
    /// Nothing.
    Absent,
}

enum Step {
    Insert(u64, u64),
    Lookup(u64, Expect),
}

/// The part of `operations` that falls to `thread`.
pub(crate) fn share(operations: u64, threads: usize, thread: u64) -> u64 {
    let threads = threads as u64;
    operations / threads + u64::from(thread < operations % threads)
}

/// Runs `work` on that many threads, which begin together, and adds up what they did.
pub(crate) fn on_threads(
    subject: &dyn Subject,
    threads: usize,
    work: impl Fn(u64, &mut Worker<'_>) -> Result<()> + Sync,
) -> Result<Tally> {
    together(threads, |thread, ready| {
        let lane = subject.lane();
        ready.wait();
        let mut worker = Worker::new(lane?);
        work(thread, &mut worker)?;
        worker.lane.finish()?;
        Ok(worker.tally)
    })
}

/// Runs `run` on that many threads and adds up their tallies. Each thread waits once for all others to be
/// ready, come what may; the time is from then to the end of the last.
pub(crate) fn together(
    threads: usize,
    run: impl Fn(u64, &Barrier) -> Result<Tally> + Sync,
) -> Result<Tally> {
    let barrier = Barrier::new(threads + 1);
    let (tallies, seconds) = std::thread::scope(|scope| {
        let (run, ready) = (&run, &barrier);
        let handles: Vec<_> =
            (0..threads as u64).map(|thread| scope.spawn(move || run(thread, ready))).collect();
        barrier.wait();
        let start = Instant::now();
        let tallies: Vec<_> = handles.into_iter().map(|handle| handle.join()).collect();
        (tallies, start.elapsed().as_secs_f64())
    });
    let mut all = Tally { seconds, ..Tally::default() };
    for tally in tallies {
        match tally {
            Ok(tally) => all.merge(&tally?),
            Err(_) => bail!("a worker thread panicked; its message is above"),
        }
    }
    Ok(all)
}

/// One thread at work, with its buffers.
pub(crate) struct Worker<'a> {
    lane: Box<dyn Lane + 'a>,
    pub(crate) tally: Tally,
    pairs: Vec<(u64, u64)>,
    keys: Vec<u64>,
    expected: Vec<Expect>,
    found: Vec<Option<u64>>,
}

impl<'a> Worker<'a> {
    fn new(lane: Box<dyn Lane + 'a>) -> Self {
        Self {
            lane,
            tally: Tally::default(),
            pairs: Vec::new(),
            keys: Vec::new(),
            expected: Vec::new(),
            found: Vec::new(),
        }
    }

    fn insert_range(&mut self, pass: Pass, first: u64, end: u64) -> Result<()> {
        let mut index = first;
        self.inserts(pass, end - first, || {
            let key = pass.keys.key(index);
            index += 1;
            (key, pass.keys.value(key, 0))
        })
    }

    /// Inserts `count` pairs, in batches where the pass has them.
    pub(crate) fn inserts(
        &mut self,
        pass: Pass,
        count: u64,
        mut pair: impl FnMut() -> (u64, u64),
    ) -> Result<()> {
        let mut laps = Laps::start(pass.latency);
        if pass.batch == 1 {
            for _ in 0..count {
                let (key, value) = pair();
                self.lane.insert(key, value)?;
                laps.lap(&mut self.tally.insert_ns);
            }
            self.tally.inserts += count;
            return Ok(());
        }
        let mut left = count;
        while left > 0 {
            let size = left.min(pass.batch as u64);
            self.pairs.clear();
            self.pairs.extend((0..size).map(|_| pair()));
            self.flush_inserts(&mut laps)?;
            left -= size;
        }
        Ok(())
    }

    fn flush_inserts(&mut self, laps: &mut Laps) -> Result<()> {
        laps.restart();
        self.lane.insert_many(&self.pairs)?;
        laps.lap(&mut self.tally.insert_ns);
        self.tally.inserts += self.pairs.len() as u64;
        Ok(())
    }

    /// Looks up `count` keys, likewise, and checks the answers.
    pub(crate) fn lookups(
        &mut self,
        pass: Pass,
        count: u64,
        expect: Expect,
        mut key: impl FnMut() -> u64,
    ) -> Result<()> {
        let mut laps = Laps::start(pass.latency);
        if pass.batch == 1 {
            for _ in 0..count {
                let key = key();
                let found = self.lane.get(key)?;
                laps.lap(&mut self.tally.lookup_ns);
                self.tally.hits += check(pass.keys, key, expect, found)?;
            }
            self.tally.lookups += count;
            return Ok(());
        }
        let mut left = count;
        while left > 0 {
            let size = left.min(pass.batch as u64);
            self.keys.clear();
            self.keys.extend((0..size).map(|_| key()));
            self.expected.clear();
            self.expected.resize(self.keys.len(), expect);
            self.flush_lookups(pass, &mut laps)?;
            left -= size;
        }
        Ok(())
    }

    fn flush_lookups(&mut self, pass: Pass, laps: &mut Laps) -> Result<()> {
        self.found.clear();
        laps.restart();
        self.lane.get_many(&self.keys, &mut self.found)?;
        laps.lap(&mut self.tally.lookup_ns);
        if self.found.len() != self.keys.len() {
            bail!("{} answers to {} lookups", self.found.len(), self.keys.len());
        }
        let answers = self.keys.iter().zip(&self.expected).zip(&self.found);
        for ((&key, &expect), &found) in answers {
            self.tally.hits += check(pass.keys, key, expect, found)?;
        }
        self.tally.lookups += self.keys.len() as u64;
        Ok(())
    }

    /// Up to a batch of steps: the inserts in one call, the lookups in another.
    fn mixed_batch(
        &mut self,
        pass: Pass,
        count: u64,
        mut step: impl FnMut() -> Step,
    ) -> Result<()> {
        self.pairs.clear();
        self.keys.clear();
        self.expected.clear();
        for _ in 0..count {
            match step() {
                Step::Insert(key, value) => self.pairs.push((key, value)),
                Step::Lookup(key, expect) => {
                    self.keys.push(key);
                    self.expected.push(expect);
                }
            }
        }
        let mut laps = Laps::start(pass.latency);
        match (self.pairs.as_slice(), self.keys.as_slice()) {
            (&[(key, value)], []) => {
                self.lane.insert(key, value)?;
                laps.lap(&mut self.tally.insert_ns);
                self.tally.inserts += 1;
            }
            ([], &[key]) => {
                let found = self.lane.get(key)?;
                laps.lap(&mut self.tally.lookup_ns);
                self.tally.hits += check(pass.keys, key, self.expected[0], found)?;
                self.tally.lookups += 1;
            }
            (pairs, keys) => {
                let (some_pairs, some_keys) = (!pairs.is_empty(), !keys.is_empty());
                if some_pairs {
                    self.flush_inserts(&mut laps)?;
                }
                if some_keys {
                    self.flush_lookups(pass, &mut laps)?;
                }
            }
        }
        Ok(())
    }
}

/// 1 for a hit, 0 for a miss, an error for a wrong answer.
fn check(keys: KeySpace, key: u64, expect: Expect, found: Option<u64>) -> Result<u64> {
    match (found, expect) {
        (None, _) => Ok(0),
        (Some(value), Expect::Here) if value == keys.value(key, 0) => Ok(1),
        (Some(value), Expect::Here) => {
            let expected = keys.value(key, 0);
            bail!(
                "wrong value under key {key:#018x}: expected {expected:#018x}, found {value:#018x}"
            )
        }
        (Some(value), Expect::Absent) => {
            bail!("key {key:#018x} was never inserted, but the value {value:#018x} was found")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::TableSubject;
    use nandex::oracle::MapTable;

    fn oracle() -> TableSubject<MapTable> {
        TableSubject(MapTable::new(8, 8))
    }

    fn pass(threads: usize, batch: usize) -> Pass {
        let keys = KeySpace::new(3);
        Pass { keys, seed: 3, number: 1, threads, batch, latency: Latency::On }
    }

    #[test]
    fn every_operation_falls_to_exactly_one_thread() {
        for (operations, threads) in [(10, 3), (2, 5), (9, 3)] {
            let sum: u64 =
                (0..threads).map(|thread| share(operations, threads as usize, thread)).sum();
            assert_eq!(sum, operations);
        }
    }

    #[test]
    fn a_load_puts_in_each_entry_once_whatever_threads_and_batch() {
        for (threads, batch) in [(1, 1), (3, 1), (2, 7), (1, 4096)] {
            let subject = oracle();
            let tally = load(&subject, pass(threads, batch), 3000, None).unwrap();
            assert_eq!(tally.inserts, 3000);
            assert_eq!(subject.stats().unwrap().entries, 3000);
            let picker = Picker::new(3000, None);
            let hits = lookup_hits(&subject, pass(threads, batch), 500, &picker).unwrap();
            assert_eq!((hits.lookups, hits.hits), (500, 500));
            let misses = lookup_misses(&subject, pass(threads, batch), 500).unwrap();
            assert_eq!((misses.lookups, misses.hits), (500, 0));
        }
    }

    #[test]
    fn a_load_out_of_time_stops_after_whole_claims() {
        let subject = oracle();
        let tally = load(&subject, pass(1, 1), 1 << 40, Some(Duration::from_millis(5))).unwrap();
        assert_eq!(tally.inserts % CLAIM, 0);
        assert_eq!(subject.stats().unwrap().entries, tally.inserts);
    }

    #[test]
    fn single_calls_are_timed_each_and_batches_each() {
        let subject = oracle();
        let single = load(&subject, pass(1, 1), 100, None).unwrap();
        assert_eq!(single.insert_ns.summary().unwrap().count, 100);
        let batched = load(&subject, pass(1, 10), 100, None).unwrap();
        assert_eq!(batched.insert_ns.summary().unwrap().count, 10);
    }

    #[test]
    fn a_mixed_stream_inserts_new_keys_and_finds_loaded_ones() {
        for batch in [1, 16] {
            let subject = oracle();
            load(&subject, pass(1, 64), 1000, None).unwrap();
            let next = AtomicU64::new(1000);
            let mix = Mix { lookup_fraction: 0.5, success: 1.0 };
            let picker = Picker::new(1000, None);
            let tally = mixed(&subject, pass(2, batch), 2000, &picker, mix, &next).unwrap();
            assert_eq!(tally.operations(), 2000);
            assert_eq!(tally.hits, tally.lookups);
            assert_eq!(next.into_inner(), 1000 + tally.inserts);
            assert_eq!(subject.stats().unwrap().entries, 1000 + tally.inserts);
        }
    }

    #[test]
    fn updates_change_values_and_add_no_keys() {
        let subject = oracle();
        load(&subject, pass(1, 64), 100, None).unwrap();
        let picker = Picker::new(100, None);
        updates(&subject, pass(2, 1), 1000, &picker).unwrap();
        assert_eq!(subject.stats().unwrap().entries, 100);
        let error = lookup_hits(&subject, pass(1, 1), 1000, &picker).unwrap_err().to_string();
        assert!(error.contains("wrong value under key"), "{error}");
    }

    #[test]
    fn a_value_for_an_absent_key_ends_the_run() {
        let keys = KeySpace::new(3);
        assert!(check(keys, keys.absent(1), Expect::Absent, Some(1)).is_err());
        assert_eq!(check(keys, keys.key(1), Expect::Here, None).unwrap(), 0);
    }
}
