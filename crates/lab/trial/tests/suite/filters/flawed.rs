//! Filters that are wrong on purpose: the runner passes the sound one and fails each of the others, which
//! proves that it checks.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};

use nandex::raw::store::fingerprint::Universe;
use nandex::raw::store::hash::{HashKind, KeyHasher};
use nandex::{Counter, Filter, FilterStats, Result};

use super::runner::{Law, Maker, Runner, acts_of};

/// The flaw of a filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flaw {
    None,
    /// One insert in 500 is lost.
    Forgets,
    /// Fingerprints are from a universe a third as large as stated.
    RateTooHigh,
    /// Strangers are denied more often than possible: it stores whole keys too.
    RateTooLow,
    /// A delete removes all keys with the fingerprint.
    DeletesTheOther,
    /// A delete does nothing.
    KeepsDeleted,
    /// A repeated key counts once.
    TakesRepeatsForOne,
    /// Counts beyond 2^31 are cut.
    CutsGreatCounts,
    /// A batch's answers come in another order.
    MixesBatches,
    /// Reopening loses the last key.
    ForgetsAtClose,
    /// Iteration omits the first fingerprint.
    IteratesTooFew,
    /// Iteration shows deleted fingerprints.
    ShowsTombstones,
    /// Lookups are counted twice in the histogram.
    MiscountsReads,
    /// Deletes are counted as inserts.
    MiscountsDeletes,
    /// Reports half its rate.
    UnderstatesRate,
    /// An absorbed key is lost if it was removed since the last flush.
    RemovesWhatIsAbsorbed,
}

#[derive(Debug)]
struct State {
    counts: BTreeMap<u64, i64>,
    stats: FilterStats,
    updates: u64,
    /// Fingerprints that were removed since the last flush.
    removed: BTreeSet<u64>,
}

/// A filter in plain memory: the counts of fingerprints.
#[derive(Clone, Debug)]
struct Flawed {
    flaw: Flaw,
    universe: Universe,
    state: Arc<Mutex<State>>,
}

/// The number of keys that it is made for, with one wrong answer in ten.
const MADE_FOR: u64 = 3000;

impl Flawed {
    fn new(flaw: Flaw, rate: f64) -> Self {
        let universe = Universe::for_rate(MADE_FOR, rate).unwrap();
        let stats = FilterStats::default();
        let state = State { counts: BTreeMap::new(), stats, updates: 0, removed: BTreeSet::new() };
        Self { flaw, universe, state: Arc::new(Mutex::new(state)) }
    }

    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A failed test is not examined further.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn fingerprint(&self, key: &[u8]) -> u64 {
        let hash = KeyHasher::new(HashKind::Xxh3, 7).hash(key).place;
        let size = self.universe.size();
        let narrow = if self.is(Flaw::RateTooHigh) { size / 3 } else { size };
        Universe::new(narrow).unwrap().of(hash)
    }

    fn change(&self, key: &[u8], amount: i64) -> Result<()> {
        let fingerprint = self.fingerprint(key);
        let mut state = self.state();
        state.updates += 1;
        let is_insert = amount > 0 || self.is(Flaw::MiscountsDeletes);
        state.stats.inserts += u64::from(is_insert);
        state.stats.deletes += u64::from(!is_insert);
        let lost = match self.flaw {
            Flaw::Forgets => state.updates.is_multiple_of(500) && amount > 0,
            Flaw::KeepsDeleted => amount < 0,
            _ => false,
        };
        if lost {
            return Ok(());
        }
        let count = state.counts.entry(fingerprint).or_default();
        *count += amount;
        match self.flaw {
            Flaw::DeletesTheOther if amount < 0 => *count = 0,
            Flaw::TakesRepeatsForOne => *count = (*count).min(1),
            Flaw::CutsGreatCounts => *count = (*count).min(1 << 31),
            _ => {}
        }
        if *count <= 0 && !self.is(Flaw::ShowsTombstones) {
            state.counts.remove(&fingerprint);
        }
        Ok(())
    }

    fn look_up(&self, key: &[u8]) -> u64 {
        let fingerprint = self.fingerprint(key);
        let mut state = self.state();
        let mut count = state.counts.get(&fingerprint).copied().unwrap_or_default();
        let stranger = u64::from_le_bytes(key[..8].try_into().unwrap()) >= 1 << 40;
        if self.is(Flaw::RateTooLow) && stranger {
            count = 0;
        }
        state.stats.positives += u64::from(count > 0);
        state.stats.negatives += u64::from(count <= 0);
        state.stats.reads_histogram[0] += if self.is(Flaw::MiscountsReads) { 2 } else { 1 };
        u64::try_from(count).unwrap_or_default()
    }
}

impl Filter for Flawed {
    fn insert(&self, key: &[u8]) -> Result<()> {
        self.change(key, 1)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.change(key, -1)
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.look_up(key) > 0)
    }

    fn insert_many(&self, keys: &[&[u8]]) -> Result<()> {
        keys.iter().try_for_each(|key| self.change(key, 1))
    }

    fn insert_if_absent_many(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        let mut insert = |key: &&[u8]| {
            let is_new = self.look_up(key) == 0;
            if is_new { self.change(key, 1).map(|()| true) } else { Ok(false) }
        };
        keys.iter().map(&mut insert).collect()
    }

    fn delete_many(&self, keys: &[&[u8]]) -> Result<()> {
        keys.iter().try_for_each(|key| self.change(key, -1))
    }

    fn contains_many(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        let mut found: Vec<_> = keys.iter().map(|key| self.look_up(key) > 0).collect();
        if self.is(Flaw::MixesBatches) {
            found.rotate_left(1);
        }
        Ok(found)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.state().removed.clear();
        Ok(())
    }

    fn stats(&self) -> FilterStats {
        let state = self.state();
        let mut stats = state.stats.clone();
        stats.entries = state.counts.len() as u64;
        stats.buffered = stats.entries;
        stats.rate = self.universe.rate(stats.entries);
        stats.keys_made_for = MADE_FOR;
        stats.rate_made_for = self.universe.rate(MADE_FOR);
        if self.is(Flaw::UnderstatesRate) {
            stats.rate /= 2.0;
        }
        stats
    }
}

impl Counter for Flawed {
    fn add(&self, key: &[u8], amount: i64) -> Result<()> {
        self.change(key, amount)
    }

    fn count(&self, key: &[u8]) -> Result<u64> {
        Ok(self.look_up(key))
    }

    fn add_many(&self, amounts: &[(&[u8], i64)]) -> Result<()> {
        amounts.iter().try_for_each(|(key, amount)| self.change(key, *amount))
    }

    fn count_many(&self, keys: &[&[u8]]) -> Result<Vec<u64>> {
        Ok(keys.iter().map(|key| self.look_up(key)).collect())
    }
}

impl Maker for Flawed {
    type Made = Self;

    fn open(&mut self) -> Self {
        self.state().stats = FilterStats::default();
        self.clone()
    }

    fn close(&mut self, filter: Self) -> Result<()> {
        if self.is(Flaw::ForgetsAtClose) {
            filter.state().counts.pop_last();
        }
        Ok(())
    }

    fn filter<'f>(&self, filter: &'f Self) -> &'f dyn Filter {
        filter
    }

    fn counter<'f>(&self, filter: &'f Self) -> Option<&'f dyn Counter> {
        Some(filter)
    }

    fn entries(&self, filter: &Self) -> Option<Vec<(u64, i64)>> {
        let skipped = usize::from(self.is(Flaw::IteratesTooFew));
        let state = filter.state();
        let entries = state.counts.iter().skip(skipped);
        Some(entries.map(|(fingerprint, count)| (*fingerprint, *count)).collect())
    }

    fn absorb(&self, filter: &Self, amounts: &[(&[u8], i64)], lost: usize) -> bool {
        self.absorb_sorted(filter, &amounts[lost..])
    }

    fn absorb_sorted(&self, filter: &Self, amounts: &[(&[u8], i64)]) -> bool {
        let mut state = filter.state();
        for (key, amount) in amounts {
            let fingerprint = filter.fingerprint(key);
            if !filter.is(Flaw::RemovesWhatIsAbsorbed) || !state.removed.contains(&fingerprint) {
                *state.counts.entry(fingerprint).or_default() += amount;
            }
        }
        state.counts.retain(|_, count| *count > 0);
        true
    }

    fn remove_many(&self, filter: &Self, keys: &[&[u8]]) -> bool {
        let mut state = filter.state();
        for key in keys {
            let fingerprint = filter.fingerprint(key);
            state.counts.remove(&fingerprint);
            state.removed.insert(fingerprint);
        }
        true
    }

    fn law(&self) -> Law {
        let universe = self.universe.size() as f64;
        Law { universe, shows_figures: true, key_bytes: None, deletes: true, window: None }
    }
}

/// Returns the messages of failing runs. Which flaw shows first depends on the acts.
fn failures(flaw: Flaw, rate: f64) -> impl Iterator<Item = String> {
    (0..6).filter_map(move |seed| {
        let mut runner = Runner::new(Flawed::new(flaw, rate));
        let run = AssertUnwindSafe(|| runner.run(&acts_of(seed, 40)));
        catch_unwind(run).err().map(|panic| message(&*panic))
    })
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap().into()
}

#[test]
fn a_sound_filter_passes_at_every_rate() {
    for rate in [0.5, 1e-1, 1e-2, 1e-3, 1e-6, 1e-9, 1e-14] {
        assert_eq!(failures(Flaw::None, rate).next(), None, "{rate}");
    }
}

#[test]
fn each_flaw_is_found_and_said_in_words_that_tell_it() {
    let flaws = [
        (Flaw::Forgets, 1e-9, "a false negative"),
        (Flaw::RateTooHigh, 1e-2, "false positives: "),
        (Flaw::RateTooLow, 1e-2, "false positives: 0 of "),
        (Flaw::DeletesTheOther, 1e-1, "a false negative"),
        (Flaw::KeepsDeleted, 1e-14, "is gone and found"),
        (Flaw::KeepsDeleted, 1e-1, "the sum of all counts"),
        (Flaw::TakesRepeatsForOne, 1e-9, "a false negative"),
        (Flaw::CutsGreatCounts, 1e-9, "counted 21474836"),
        (Flaw::MixesBatches, 1e-9, "a false negative"),
        (Flaw::ForgetsAtClose, 1e-1, "a false negative"),
        (Flaw::IteratesTooFew, 1e-1, "the sum of all counts"),
        (Flaw::ShowsTombstones, 1e-1, "fingerprints that are not there"),
        (Flaw::MiscountsReads, 1e-1, "histogram"),
        (Flaw::MiscountsDeletes, 1e-1, "updates"),
        (Flaw::UnderstatesRate, 1e-1, "rate"),
        (Flaw::RemovesWhatIsAbsorbed, 1e-14, "the sum of all counts"),
    ];
    for (flaw, rate, words) in flaws {
        let mut found = Vec::new();
        let is_told = failures(flaw, rate).any(|failure| {
            found.push(failure);
            found.last().is_some_and(|failure| failure.contains(words))
        });
        assert!(is_told, "{flaw:?}: {found:?}");
    }
}
