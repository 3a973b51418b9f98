//! The runner: performs the same acts on a filter and on the exact multiset, and compares their answers.

use std::collections::HashMap;

use nandex::raw::oracle::Multiset;
use nandex::{Counter, Filter, FilterStats, Result};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config as ProptestConfig, RngAlgorithm, TestRng, TestRunner};

use super::odds::Odds;

mod bulk;

/// Opens the filter under test, repeatedly.
pub trait Maker {
    type Made;

    /// Opens it, or creates it the first time.
    fn open(&mut self) -> Self::Made;

    /// Closes it, and returns the error if that fails.
    fn close(&mut self, filter: Self::Made) -> Result<()>;

    /// Returns the filter.
    fn filter<'f>(&self, made: &'f Self::Made) -> &'f dyn Filter;

    /// Returns the filter as a counter, if it counts.
    fn counter<'f>(&self, filter: &'f Self::Made) -> Option<&'f dyn Counter>;

    /// Merges all content into one part, if it can.
    fn compact(&self, _filter: &Self::Made) -> Result<()> {
        Ok(())
    }

    /// Adds the content of another filter of its kind that has these amounts, and has lost as much again of
    /// the first `lost` of them; returns whether it can.
    fn absorb(&self, _filter: &Self::Made, _amounts: &[(&[u8], i64)], _lost: usize) -> bool {
        false
    }

    /// Adds these amounts in the order of the hash, if it can.
    fn absorb_sorted(&self, _filter: &Self::Made, _amounts: &[(&[u8], i64)]) -> bool {
        false
    }

    /// Sets the counts of these keys to 0, if it can.
    fn remove_many(&self, _filter: &Self::Made, _keys: &[&[u8]]) -> bool {
        false
    }

    /// Returns all its fingerprints and their counts, as its iterator returns them; nothing if it has no
    /// iterator.
    fn entries(&self, filter: &Self::Made) -> Option<Vec<(u64, i64)>>;

    /// Returns its law.
    fn law(&self) -> Law;
}

/// The possible answers of a filter, apart from never denying a present key.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Law {
    /// The number of fingerprints.
    pub universe: f64,
    /// Whether it has all figures.
    pub shows_figures: bool,
    /// The width of its keys, at least 8 bytes; `None` if it takes keys of any width.
    pub key_bytes: Option<usize>,
    /// Whether it deletes keys.
    pub deletes: bool,
    /// The number of the most recent inserts that it must still have; `None` for all.
    pub window: Option<u64>,
}

impl Law {
    /// Returns whether a collision is out of the question, so that every answer must be the oracle's.
    fn is_exact(self) -> bool {
        // One run in a million has one, among 3,000 keys and as many strangers as it meets.
        self.universe >= 1e14
    }
}

/// An act on a filter. Keys and lengths are numbers; a run is of neighbouring keys.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    InsertRun(u64, u64),
    InsertMany(u64, u64),
    /// Undoes one insert of each present key of the run.
    DeleteRun(u64, u64),
    DeleteMany(u64, u64),
    /// Undoes all inserts of each.
    Empty(u64, u64),
    Contains(u64, u64),
    ContainsMany(u64, u64),
    /// Looks up `count` keys that were never inserted.
    Strangers(u64),
    Add(u64, i64),
    AddMany(u64, u64, i64),
    Absorb(u64, u64, i64),
    AbsorbSorted(u64, u64, i64),
    /// Removes all inserts of each key, including keys that were never inserted.
    RemoveMany(u64, u64),
    Count(u64, u64),
    Sync,
    Flush,
    Reopen,
    Compact,
    Iterate,
}

/// The bound of keys, low enough that most acts meet keys that were present before.
pub const KEYS: u64 = 3000;

/// The first of the keys that were never put.
const STRANGERS: u64 = 1 << 40;

pub fn acts(len: usize) -> impl Strategy<Value = Vec<Act>> {
    let (key, short, long) = (0..KEYS, 1..50u64, 100..700u64);
    let amount = prop_oneof![4 => 1..5i64, 1 => 5..100_000i64, 1 => Just(1i64 << 40)];
    let act = prop_oneof![
        3 => key.clone().prop_map(|k| Act::InsertRun(k, 1)),
        5 => (key.clone(), long.clone()).prop_map(|(k, n)| Act::InsertRun(k, n)),
        5 => (key.clone(), long.clone()).prop_map(|(k, n)| Act::InsertMany(k, n)),
        4 => (key.clone(), long.clone()).prop_map(|(k, n)| Act::DeleteRun(k, n)),
        4 => (key.clone(), long.clone()).prop_map(|(k, n)| Act::DeleteMany(k, n)),
        1 => (key.clone(), short.clone()).prop_map(|(k, n)| Act::Empty(k, n)),
        2 => (key.clone(), short.clone()).prop_map(|(k, n)| Act::Contains(k, n)),
        3 => (key.clone(), long.clone()).prop_map(|(k, n)| Act::ContainsMany(k, n)),
        2 => long.clone().prop_map(Act::Strangers),
        2 => (key.clone(), amount.clone()).prop_map(|(k, n)| Act::Add(k, n)),
        2 => (key.clone(), short.clone(), amount.clone())
            .prop_map(|(k, n, by)| Act::AddMany(k, n, by)),
        3 => (key.clone(), long.clone(), amount.clone())
            .prop_map(|(k, n, by)| Act::Absorb(k, n, by)),
        2 => (key.clone(), long.clone(), amount)
            .prop_map(|(k, n, by)| Act::AbsorbSorted(k, n, by)),
        2 => (key.clone(), long.clone()).prop_map(|(k, n)| Act::RemoveMany(k, n)),
        2 => (key, short).prop_map(|(k, n)| Act::Count(k, n)),
        1 => Just(Act::Sync),
        2 => Just(Act::Flush),
        2 => Just(Act::Reopen),
        1 => Just(Act::Compact),
        1 => Just(Act::Iterate),
    ];
    prop::collection::vec(act, len)
}

/// Returns proptest's choice of acts for a seed, without its shrinking.
pub fn acts_of(seed: u64, len: usize) -> Vec<Act> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    acts(len).new_tree(&mut runner).unwrap().current()
}

/// Returns the bytes of a key: of many lengths, all different.
pub fn key(number: u64) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend((0..number % 40).map(|at| (number ^ at) as u8));
    bytes
}

/// The numbers of calls of a filter since it was opened.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    inserts: u64,
    deletes: u64,
    lookups: u64,
}

/// A filter and its oracle.
pub struct Runner<M: Maker> {
    maker: M,
    made: Option<M::Made>,
    oracle: Multiset,
    asked: Asked,
    /// The number of inserts in all openings, and the number of each key's last one.
    inserted: u64,
    last_inserts: HashMap<u64, u64>,
    strangers: u64,
    /// The false positives among strangers, against those expected from the oracle's keys.
    odds: Odds,
    /// The counts that were too high, against the expected ones.
    excess: Odds,
}

impl<M: Maker> Runner<M> {
    pub fn new(mut maker: M) -> Self {
        let made = Some(maker.open());
        Self {
            maker,
            made,
            oracle: Multiset::new(),
            asked: Asked::default(),
            inserted: 0,
            last_inserts: HashMap::new(),
            strangers: STRANGERS,
            odds: Odds::clumped(1.0),
            // Pairs that are looked up before and after a reopening.
            excess: Odds::clumped(4.0),
        }
    }

    fn made(&self) -> &M::Made {
        self.made.as_ref().unwrap()
    }

    fn filter(&self) -> &dyn Filter {
        self.maker.filter(self.made())
    }

    fn counter(&self) -> Option<&dyn Counter> {
        self.maker.counter(self.made())
    }

    /// Returns the bytes of a key, of the width that the filter takes.
    fn key(&self, number: u64) -> Vec<u8> {
        let mut bytes = key(number);
        bytes.resize(self.maker.law().key_bytes.unwrap_or(bytes.len()), 0);
        bytes
    }

    fn held(&self, number: u64) -> u64 {
        self.oracle.count(&self.key(number)).unwrap()
    }

    /// Performs all acts, then looks up every key, before and after one more reopening.
    pub fn run(&mut self, acts: &[Act]) {
        for act in acts {
            self.act(*act);
        }
        self.check_all();
        self.act(Act::Reopen);
        self.check_all();
        self.act(Act::Iterate);
        self.odds.assert_bounds("false positives");
        self.excess.assert_bounds("counts that are too high");
    }

    fn act(&mut self, act: Act) {
        let run = |key: u64, count: u64| (key..key + count).map(|key| key % KEYS);
        match act {
            Act::InsertRun(key, count) => run(key, count).for_each(|key| self.insert(key)),
            Act::InsertMany(key, count) => self.insert_many(run(key, count)),
            Act::DeleteRun(key, count) => run(key, count).for_each(|key| self.delete(key)),
            Act::DeleteMany(key, count) => self.delete_many(run(key, count)),
            Act::Empty(key, count) => run(key, count).for_each(|key| self.empty(key)),
            Act::Contains(key, count) => run(key, count).for_each(|key| self.contains(key)),
            Act::ContainsMany(key, count) => self.contains_many(run(key, count)),
            Act::Strangers(count) => self.meet_strangers(count),
            Act::Add(key, amount) => self.add(key, amount),
            Act::AddMany(key, count, amount) => self.add_many(run(key, count), amount),
            Act::Absorb(key, count, amount) => self.absorb(run(key, count), amount),
            Act::AbsorbSorted(key, count, amount) => self.absorb_sorted(run(key, count), amount),
            Act::RemoveMany(key, count) => self.remove_many(run(key, count)),
            Act::Count(key, count) => self.count(&run(key, count).collect::<Vec<_>>()),
            Act::Sync => self.filter().sync().unwrap(),
            Act::Flush => self.filter().flush().unwrap(),
            Act::Reopen => self.reopen(),
            Act::Compact => self.maker.compact(self.made()).unwrap(),
            Act::Iterate => self.iterate(),
        }
        self.check_figures();
    }

    fn insert(&mut self, number: u64) {
        self.filter().insert(&self.key(number)).unwrap();
        self.oracle.insert(&self.key(number)).unwrap();
        self.asked.inserts += 1;
        self.note_insert(number);
    }

    fn note_insert(&mut self, number: u64) {
        self.inserted += 1;
        self.last_inserts.insert(number, self.inserted);
    }

    /// Returns whether a window of inserts came after the key's last one, so that it may be gone.
    fn is_old(&self, number: u64) -> bool {
        let later = |last: &u64| self.inserted - last;
        let window = self.maker.law().window;
        let later = self.last_inserts.get(&number).map(later);
        later.zip(window).is_some_and(|(later, window)| later >= window)
    }

    fn insert_many(&mut self, numbers: impl Iterator<Item = u64>) {
        let mut numbers: Vec<_> = numbers.collect();
        // One of them twice.
        numbers.push(numbers[0]);
        let keys: Vec<_> = numbers.iter().map(|number| self.key(*number)).collect();
        let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
        self.filter().insert_many(&keys).unwrap();
        self.oracle.insert_many(&keys).unwrap();
        self.asked.inserts += keys.len() as u64;
        numbers.into_iter().for_each(|number| self.note_insert(number));
    }

    fn delete(&mut self, number: u64) {
        if self.held(number) > 0 && self.maker.law().deletes {
            self.filter().delete(&self.key(number)).unwrap();
            self.oracle.delete(&self.key(number)).unwrap();
            self.asked.deletes += 1;
        }
    }

    fn delete_many(&mut self, numbers: impl Iterator<Item = u64>) {
        let deletes = self.maker.law().deletes;
        let keys: Vec<_> = numbers
            .filter(|number| deletes && self.held(*number) > 0)
            .map(|number| self.key(number))
            .collect();
        let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
        self.filter().delete_many(&keys).unwrap();
        self.oracle.delete_many(&keys).unwrap();
        self.asked.deletes += keys.len() as u64;
    }

    /// Removes a key: by one negative amount if there are counts, else by repeated deletes.
    fn empty(&mut self, number: u64) {
        let held = self.held(number);
        if self.counter().is_some() && held > 0 {
            self.change(number, -i64::try_from(held).unwrap());
        } else {
            (0..held).for_each(|_| self.delete(number));
        }
    }

    fn add(&mut self, number: u64, amount: i64) {
        if self.counter().is_none() {
            return;
        }
        // Every second time an insert is undone instead, at most as many as there are.
        let held = i64::try_from(self.held(number)).unwrap();
        let taken = (held > 0 && amount % 2 == 0).then(|| -amount.min(held));
        self.change(number, taken.unwrap_or(amount));
    }

    fn change(&mut self, number: u64, amount: i64) {
        self.counter().unwrap().add(&self.key(number), amount).unwrap();
        self.oracle.add(&self.key(number), amount).unwrap();
        self.asked.note(amount);
    }

    fn add_many(&mut self, numbers: impl Iterator<Item = u64>, amount: i64) {
        if self.counter().is_none() {
            return;
        }
        let mut amounts = Vec::new();
        for number in numbers {
            let held = i64::try_from(self.held(number)).unwrap();
            let amount = if number % 3 == 0 && held > 0 { -amount.min(held) } else { amount };
            amounts.push((self.key(number), amount));
        }
        let amounts: Vec<_> = amounts.iter().map(|(key, amount)| (&key[..], *amount)).collect();
        self.counter().unwrap().add_many(&amounts).unwrap();
        self.oracle.add_many(&amounts).unwrap();
        amounts.iter().for_each(|(_, amount)| self.asked.note(*amount));
    }

    fn contains(&mut self, number: u64) {
        let found = self.filter().contains(&self.key(number)).unwrap();
        self.judge(number, found);
    }

    fn contains_many(&mut self, numbers: impl Iterator<Item = u64>) {
        let mut numbers: Vec<_> = numbers.collect();
        // Neighbours are mostly present or absent together, so each gets other neighbours, and one comes
        // twice.
        numbers.push(numbers[0]);
        numbers.sort_unstable_by_key(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for (number, found) in numbers.iter().zip(self.ask_many(&numbers)) {
            self.judge(*number, found);
        }
    }

    fn ask_many(&self, numbers: &[u64]) -> Vec<bool> {
        let keys: Vec<_> = numbers.iter().map(|number| self.key(*number)).collect();
        let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
        let found = self.filter().contains_many(&keys).unwrap();
        assert_eq!(found.len(), keys.len(), "answers to a batch");
        found
    }

    fn judge(&mut self, number: u64, found: bool) {
        self.asked.lookups += 1;
        let held = self.held(number);
        assert!(
            found || held == 0 || self.is_old(number),
            "key {number}, there {held} times: a false negative"
        );
        let wrong = found && held == 0;
        assert!(!wrong || !self.maker.law().is_exact(), "key {number} is gone and found");
    }

    /// Looks up keys that were never inserted, each once, so that their answers are independent of one
    /// another.
    fn meet_strangers(&mut self, count: u64) {
        let numbers: Vec<_> = (self.strangers..self.strangers + count).collect();
        self.strangers += count;
        self.asked.lookups += count;
        let found = if count.is_multiple_of(2) {
            self.ask_many(&numbers)
        } else {
            let single = |number: &u64| self.filter().contains(&self.key(*number)).unwrap();
            numbers.iter().map(single).collect()
        };
        let wrong = found.iter().filter(|found| **found).count() as u64;
        assert!(wrong == 0 || !self.maker.law().is_exact(), "{wrong} strangers are found");
        let universe = self.maker.law().universe;
        self.odds.add(self.oracle.distinct() as f64, universe, count, wrong);
    }

    fn count(&mut self, numbers: &[u64]) {
        let Some(counter) = self.counter() else { return };
        let keys: Vec<_> = numbers.iter().map(|number| self.key(*number)).collect();
        let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
        let counts = if numbers.len().is_multiple_of(2) {
            counter.count_many(&keys).unwrap()
        } else {
            keys.iter().map(|key| counter.count(key).unwrap()).collect()
        };
        assert_eq!(counts.len(), keys.len(), "answers to a batch");
        self.asked.lookups += counts.len() as u64;
        let law = self.maker.law();
        let mut high = 0;
        for (number, count) in numbers.iter().zip(counts) {
            let held = self.held(*number);
            assert!(count >= held, "key {number}, there {held} times: counted {count} times");
            assert!(count == held || !law.is_exact(), "key {number}: {count} for {held}");
            high += u64::from(count > held);
        }
        // The same few keys, looked up repeatedly, would give the same answers.
        let asked = numbers.len() as u64;
        if asked > KEYS {
            self.excess.add(self.oracle.distinct() as f64, law.universe, asked, high);
        }
    }

    fn check_all(&mut self) {
        // Keys past the range were never put.
        self.contains_many(0..KEYS + 200);
        (0..KEYS).step_by(7).for_each(|number| self.contains(number));
        self.count(&(0..KEYS + 200).collect::<Vec<_>>());
        self.meet_strangers(5000);
        self.meet_strangers(501);
        self.check_figures();
    }

    fn reopen(&mut self) {
        let made = self.made.take().unwrap();
        self.maker.close(made).unwrap();
        self.made = Some(self.maker.open());
        self.asked = Asked::default();
    }

    /// Compares the sum of counts: counts of colliding keys add up, so their sum is exact whatever the rate.
    fn iterate(&mut self) {
        let Some(entries) = self.maker.entries(self.made()) else { return };
        assert!(entries.windows(2).all(|pair| pair[0].0 < pair[1].0), "fingerprints out of order");
        assert!(entries.iter().all(|(_, count)| *count > 0), "fingerprints that are not there");
        let held: i128 = entries.iter().map(|(_, count)| i128::from(*count)).sum();
        let keys = (0..KEYS).map(|number| self.held(number));
        assert_eq!(held, keys.map(i128::from).sum(), "the sum of all counts");
        let (found, distinct) = (entries.len(), self.oracle.distinct());
        let right = found == distinct || found < distinct && !self.maker.law().is_exact();
        assert!(right, "{found} fingerprints of {distinct} keys");
    }

    /// Checks that the figures add up, and that they match the calls.
    fn check_figures(&self) {
        if !self.maker.law().shows_figures {
            return;
        }
        let stats = self.filter().stats();
        let Asked { inserts, deletes, lookups } = self.asked;
        assert_eq!((stats.inserts, stats.deletes), (inserts, deletes), "{stats:?}: updates");
        assert_eq!(stats.positives + stats.negatives, lookups, "{stats:?}: lookups");
        assert_eq!(stats.reads_histogram.iter().sum::<u64>(), lookups, "{stats:?}: histogram");
        let (counted, many) = reads_of(&stats);
        let fits = counted == stats.lookup_reads || many && counted < stats.lookup_reads;
        assert!(fits, "{stats:?}: reads");
        let on_flash: u64 = stats.levels.iter().map(|level| level.entries).sum();
        assert_eq!(stats.entries, stats.buffered + on_flash, "{stats:?}: entries");
        let tombstones: u64 = stats.levels.iter().map(|level| level.tombstones).sum();
        assert!(stats.tombstones >= tombstones, "{stats:?}: tombstones");
        assert_eq!(stats.unmatched_deletes, 0, "{stats:?}: only what was there was deleted");
        let universe = self.maker.law().universe;
        let rate = stats.entries as f64 / universe;
        assert!((stats.rate - rate).abs() <= rate * 1e-6, "{stats:?}: rate {rate}");
        let made_for = stats.keys_made_for as f64 / stats.rate_made_for;
        assert!((universe / made_for - 1.0).abs() < 1e-3, "{stats:?}: universe of {universe}");
    }
}

impl Asked {
    fn note(&mut self, amount: i64) {
        if amount < 0 { self.deletes += 1 } else { self.inserts += 1 }
    }
}

/// Returns the least number of pages that lookups have read, by the histogram, and whether some may have read
/// more.
fn reads_of(stats: &FilterStats) -> (u64, bool) {
    let reads = (0..).zip(stats.reads_histogram).map(|(reads, lookups)| reads * lookups).sum();
    (reads, stats.reads_histogram.last().is_some_and(|lookups| *lookups > 0))
}
