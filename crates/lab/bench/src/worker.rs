//! Threads at work on an engine: calls in batches or one by one, timed, and every answer checked.
//!
//! A wrong answer ends the run with an error: a benchmark that does not check its answers measures nothing.

use std::sync::Barrier;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::keys::KeySpace;
use crate::percentiles::{Laps, Latency, Recorder};
use crate::subject::{Client, Subject};
use crate::workload::Kind;

/// The settings of all threads of a pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// The engine's kind, which decides its possible answers.
    pub kind: Kind,
    /// The keys.
    pub keys: KeySpace,
    /// Seed of the streams.
    pub seed: u64,
    /// The number of this pass, so that no two draw the same stream.
    pub number: u64,
    /// Threads at work.
    pub threads: usize,
    /// Keys per call; 1 uses the single calls.
    pub batch: usize,
    /// Whether calls are timed.
    pub latency: Latency,
    /// The kind of answer that lookups request.
    pub asks: Asks,
    /// The newest version of a value: updates write it, and lookups expect it or an older one.
    pub version: u64,
}

/// The kind of answer that lookups request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asks {
    /// A value, or whether a key is present.
    Values,
    /// The number of times that a key was added; it may be too high.
    Counts,
    /// The exact number of times that a key was added: once by a load.
    ExactCounts,
}

impl Pass {
    /// Returns the part of `operations` that falls to `thread`.
    pub(crate) fn share(self, operations: u64, thread: u64) -> u64 {
        let threads = self.threads as u64;
        operations / threads + u64::from(thread < operations % threads)
    }

    /// Returns the pair of entry `index` as a load writes it.
    pub(crate) fn pair(self, index: u64) -> (u64, u64) {
        let key = self.keys.key(index);
        (key, self.keys.value(key, 0))
    }

    /// Returns whether a load or an update has written this value under `key`.
    fn has_written(self, key: u64, value: u64) -> bool {
        (0..=self.version).rev().any(|version| self.keys.value(key, version) == value)
    }
}

/// The work of a pass.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Inserts, overwrites, deletes and increments.
    pub changes: u64,
    /// Lookups.
    pub lookups: u64,
    /// Lookups that found their key; for absent keys, false positives.
    pub hits: u64,
    /// Operations that are a lookup and an insert at once, and are counted as both.
    pub lookups_with_inserts: u64,
    /// The time from the start of all threads to the end of the last.
    pub seconds: f64,
    /// Latencies of calls that change something.
    pub change_ns: Recorder,
    /// Latencies of lookup calls.
    pub lookup_ns: Recorder,
    /// The operations done over time, for a load.
    pub curve: Vec<Point>,
}

/// A point of a curve over time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Point {
    /// Operations done so far.
    pub operations: u64,
    /// Seconds since the start.
    pub seconds: f64,
}

impl Counters {
    /// Returns changes and lookups; an operation that is both counts once.
    #[must_use]
    pub const fn operations(&self) -> u64 {
        self.changes + self.lookups - self.lookups_with_inserts
    }

    /// Adds the work of another thread or pass; seconds and the curve stay unchanged.
    pub fn merge(&mut self, other: &Self) {
        self.changes += other.changes;
        self.lookups += other.lookups;
        self.hits += other.hits;
        self.lookups_with_inserts += other.lookups_with_inserts;
        self.change_ns.merge(&other.change_ns);
        self.lookup_ns.merge(&other.lookup_ns);
    }
}

/// Runs `work` on `pass.threads` threads, which begin together, and adds up their counters.
pub(crate) fn on_threads(
    subject: &dyn Subject,
    pass: Pass,
    work: impl Fn(u64, &mut Worker<'_>) -> Result<()> + Sync,
) -> Result<Counters> {
    together(pass.threads, |thread, ready| {
        let client = subject.client();
        ready.wait();
        let mut worker = Worker::new(client?, pass);
        work(thread, &mut worker)?;
        worker.client.finish()?;
        Ok(worker.counters)
    })
}

/// Runs `run` on `threads` threads and adds up their counters. Each thread waits once for all others to be
/// ready, even after an error; the time is from then to the end of the last.
fn together(
    threads: usize,
    run: impl Fn(u64, &Barrier) -> Result<Counters> + Sync,
) -> Result<Counters> {
    let barrier = Barrier::new(threads + 1);
    let (results, seconds) = std::thread::scope(|scope| {
        let (run, ready) = (&run, &barrier);
        let handles: Vec<_> =
            (0..threads as u64).map(|thread| scope.spawn(move || run(thread, ready))).collect();
        barrier.wait();
        let start = std::time::Instant::now();
        let results: Vec<_> = handles.into_iter().map(|handle| handle.join()).collect();
        (results, start.elapsed().as_secs_f64())
    });
    let mut all = Counters { seconds, ..Counters::default() };
    for result in results {
        match result {
            Ok(counters) => all.merge(&counters?),
            Err(_) => bail!("a worker thread panicked; its message is above"),
        }
    }
    Ok(all)
}

/// A change of a key without a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeyChange {
    /// Undo one insert.
    Delete,
    /// Add 1 to its count.
    Add,
}

/// The expected result of a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expect {
    /// It was inserted.
    Here,
    /// It never was.
    Absent,
}

/// One operation of a mixed batch.
pub(crate) enum Step {
    /// Put this pair.
    Insert(u64, u64),
    /// Look up this key.
    Lookup(u64, Expect),
}

/// One thread at work, with its buffers.
pub(crate) struct Worker<'a> {
    pub(crate) client: Box<dyn Client + 'a>,
    pub(crate) counters: Counters,
    pass: Pass,
    pairs: Vec<(u64, u64)>,
    keys: Vec<u64>,
    expected: Vec<Expect>,
    found: Vec<Option<u64>>,
    counts: Vec<u64>,
}

impl<'a> Worker<'a> {
    fn new(client: Box<dyn Client + 'a>, pass: Pass) -> Self {
        Self {
            client,
            counters: Counters::default(),
            pass,
            pairs: Vec::new(),
            keys: Vec::new(),
            expected: Vec::new(),
            found: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// Inserts `count` pairs, in batches if the pass has them.
    pub(crate) fn inserts(
        &mut self,
        count: u64,
        mut pair: impl FnMut() -> (u64, u64),
    ) -> Result<()> {
        if self.pass.batch == 1 {
            return self.single_inserts(count, pair);
        }
        let mut laps = Laps::start(self.pass.latency);
        self.each_batch(count, |worker, size| {
            worker.pairs.clear();
            worker.pairs.extend((0..size).map(|_| pair()));
            worker.insert_batch(&mut laps)
        })
    }

    /// Deletes or adds to `count` keys, in batches if the pass has them.
    pub(crate) fn key_changes(
        &mut self,
        change: KeyChange,
        count: u64,
        mut key: impl FnMut() -> u64,
    ) -> Result<()> {
        let mut laps = Laps::start(self.pass.latency);
        self.each_batch(count, |worker, size| {
            worker.keys.clear();
            worker.keys.extend((0..size).map(|_| key()));
            laps.restart();
            match change {
                KeyChange::Delete => worker.client.delete_many(&worker.keys)?,
                KeyChange::Add => worker.client.add_many(&worker.keys)?,
            }
            laps.lap(&mut worker.counters.change_ns);
            worker.counters.changes += size;
            Ok(())
        })
    }

    /// Removes `count` keys from the one of index `first` on, and inserts as many new ones with indices that
    /// are higher by `distance`. Both are timed together and count as one change.
    pub(crate) fn replacements(&mut self, count: u64, first: u64, distance: u64) -> Result<()> {
        let (pass, mut index) = (self.pass, first);
        let mut laps = Laps::start(pass.latency);
        self.each_batch(count, |worker, size| {
            let removed = index..index + size;
            index += size;
            worker.keys.clear();
            worker.keys.extend(removed.clone().map(|index| pass.keys.key(index)));
            worker.pairs.clear();
            worker.pairs.extend(removed.map(|index| pass.pair(index + distance)));
            laps.restart();
            worker.client.replace_many(&worker.keys, &worker.pairs)?;
            laps.lap(&mut worker.counters.change_ns);
            worker.counters.changes += size;
            Ok(())
        })
    }

    /// Queries and inserts `count` documents, each batch in one call. Its latency counts as a lookup's.
    pub(crate) fn lookups_with_inserts(
        &mut self,
        count: u64,
        mut pair: impl FnMut() -> (u64, u64),
    ) -> Result<()> {
        let mut laps = Laps::start(self.pass.latency);
        self.each_batch(count, |worker, size| {
            worker.pairs.clear();
            worker.pairs.extend((0..size).map(|_| pair()));
            worker.found.clear();
            laps.restart();
            worker.client.get_then_insert_many(&worker.pairs, &mut worker.found)?;
            laps.lap(&mut worker.counters.lookup_ns);
            if worker.found.len() != worker.pairs.len() {
                bail!("{} answers to {} lookups", worker.found.len(), worker.pairs.len());
            }
            let counters = &mut worker.counters;
            counters.hits += worker.found.iter().flatten().count() as u64;
            counters.changes += size;
            counters.lookups += size;
            counters.lookups_with_inserts += size;
            Ok(())
        })
    }

    /// Calls `work` for batches of the pass's size until `count` is reached; the last one may be shorter.
    fn each_batch(
        &mut self,
        count: u64,
        mut work: impl FnMut(&mut Self, u64) -> Result<()>,
    ) -> Result<()> {
        let mut left = count;
        while left > 0 {
            let size = left.min(self.pass.batch as u64);
            work(self, size)?;
            left -= size;
        }
        Ok(())
    }

    /// Inserts `count` pairs, each by a call of its own.
    pub(crate) fn single_inserts(
        &mut self,
        count: u64,
        mut pair: impl FnMut() -> (u64, u64),
    ) -> Result<()> {
        let mut laps = Laps::start(self.pass.latency);
        (0..count).try_for_each(|_| self.insert(pair(), &mut laps))
    }

    /// Looks up `count` keys, in batches if the pass has them, and checks the answers.
    pub(crate) fn lookups(
        &mut self,
        count: u64,
        expect: Expect,
        mut key: impl FnMut() -> u64,
    ) -> Result<()> {
        let mut laps = Laps::start(self.pass.latency);
        if self.pass.batch == 1 {
            return (0..count).try_for_each(|_| self.lookup(key(), expect, &mut laps));
        }
        self.each_batch(count, |worker, size| {
            worker.keys.clear();
            worker.keys.extend((0..size).map(|_| key()));
            worker.expected.clear();
            worker.expected.resize(worker.keys.len(), expect);
            worker.lookup_batch(&mut laps)
        })
    }

    /// Performs up to a batch of steps: the inserts in one call, the lookups in another.
    pub(crate) fn mixed_batch(&mut self, count: u64, mut step: impl FnMut() -> Step) -> Result<()> {
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
        let mut laps = Laps::start(self.pass.latency);
        match (self.pairs.as_slice(), self.keys.as_slice()) {
            (&[pair], []) => self.insert(pair, &mut laps),
            ([], &[key]) => self.lookup(key, self.expected[0], &mut laps),
            ([], _) => self.lookup_batch(&mut laps),
            (_, []) => self.insert_batch(&mut laps),
            _ => {
                self.insert_batch(&mut laps)?;
                self.lookup_batch(&mut laps)
            }
        }
    }

    fn insert(&mut self, (key, value): (u64, u64), laps: &mut Laps) -> Result<()> {
        self.client.insert(key, value)?;
        laps.lap(&mut self.counters.change_ns);
        self.counters.changes += 1;
        Ok(())
    }

    fn lookup(&mut self, key: u64, expect: Expect, laps: &mut Laps) -> Result<()> {
        let found = match self.pass.asks {
            Asks::Values => self.client.get(key)?,
            Asks::Counts | Asks::ExactCounts => {
                self.counts.clear();
                self.client.count_many(&[key], &mut self.counts)?;
                self.counts.first().copied().and_then(there)
            }
        };
        laps.lap(&mut self.counters.lookup_ns);
        self.counters.lookups += 1;
        self.counters.hits += check(self.pass, key, expect, found)?;
        Ok(())
    }

    fn insert_batch(&mut self, laps: &mut Laps) -> Result<()> {
        laps.restart();
        self.client.insert_many(&self.pairs)?;
        laps.lap(&mut self.counters.change_ns);
        self.counters.changes += self.pairs.len() as u64;
        Ok(())
    }

    fn lookup_batch(&mut self, laps: &mut Laps) -> Result<()> {
        self.found.clear();
        laps.restart();
        match self.pass.asks {
            Asks::Values => self.client.get_many(&self.keys, &mut self.found)?,
            Asks::Counts | Asks::ExactCounts => {
                self.counts.clear();
                self.client.count_many(&self.keys, &mut self.counts)?;
                self.found.extend(self.counts.iter().copied().map(there));
            }
        }
        laps.lap(&mut self.counters.lookup_ns);
        if self.found.len() != self.keys.len() {
            bail!("{} answers to {} lookups", self.found.len(), self.keys.len());
        }
        let answers = self.keys.iter().zip(&self.expected).zip(&self.found);
        for ((&key, &expect), &found) in answers {
            self.counters.hits += check(self.pass, key, expect, found)?;
        }
        self.counters.lookups += self.keys.len() as u64;
        Ok(())
    }
}

/// Returns a count as an answer: a key with a count of 0 is absent.
pub(crate) fn there(count: u64) -> Option<u64> {
    (count > 0).then_some(count)
}

/// Returns 1 for a hit, 0 for a miss, and an error for an impossible answer: any value but the right one from
/// a table, "absent" from a filter for an inserted key, another count than 1 of an inserted key from an exact
/// counter. A table may have evicted the key. Candidates are checked by the client of the index, which knows
/// them all.
pub(crate) fn check(pass: Pass, key: u64, expect: Expect, found: Option<u64>) -> Result<u64> {
    let Pass { kind, keys, asks, .. } = pass;
    let is_exact = asks == Asks::ExactCounts;
    match (kind, expect, found) {
        (Kind::Table, Expect::Here, Some(value)) if !pass.has_written(key, value) => bail!(
            "wrong value under key {key:#018x}: expected {:#018x}, found {value:#018x}",
            keys.value(key, pass.version)
        ),
        (Kind::Table, Expect::Absent, Some(value)) => {
            bail!("key {key:#018x} was never inserted, but the value {value:#018x} was found")
        }
        (Kind::Filter, Expect::Here, None) => bail!(
            "false negative: the filter denies key {key:#018x}, the insert of index {}",
            keys.index_of(key)
        ),
        (Kind::Filter, Expect::Here, Some(count)) if is_exact && count != 1 => {
            bail!("key {key:#018x} was added once, but its count is {count}")
        }
        (Kind::Filter, Expect::Absent, Some(count)) if is_exact => {
            bail!("key {key:#018x} was never added, but its count is {count}")
        }
        (_, _, found) => Ok(found.is_some().into()),
    }
}
