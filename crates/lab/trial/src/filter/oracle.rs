//! The right answers of a filter: the counts of each key, the acknowledged updates, and the durable ones.
//!
//! The law, for each key: the count is that of the acknowledged updates, or of later ones that were
//! attempted; after a reopening, of the durable updates or later ones. It may be more if keys share
//! fingerprints, never less. Several counts may be possible, and which one is right cannot always be decided;
//! so a range is kept.
//!
//! A filter of a window forgets: a key may be gone once as many inserts as the window came after it. The
//! range of such a key is the number of its last insert.

use crate::contract::Trust;
use crate::versions::{Numbers, Oracle, Versions};

/// The possible counts of a key.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    least: i64,
    most: i64,
}

/// The updates of a filter, and those of them that must hold.
#[derive(Clone, Debug)]
pub struct Past {
    keys: Vec<Versions<Range>>,
    /// The greatest count that each key may ever have had.
    ever: Vec<u64>,
    /// Whether two keys cannot share a fingerprint.
    is_exact: bool,
    /// The number of the most recent inserts that are certainly present; `None` for all.
    window: Option<u64>,
    /// The number of inserts so far, including refused and lost ones.
    inserted: u64,
}

impl Numbers for Range {
    fn numbers(&self) -> [u64; 2] {
        [self.least, self.most].map(i64::cast_unsigned)
    }

    fn of_numbers(numbers: [u64; 2]) -> Self {
        let [least, most] = numbers.map(u64::cast_signed);
        Self { least, most }
    }
}

impl Oracle for Past {
    type Version = Range;

    fn others(&mut self) -> Vec<&mut u64> {
        self.ever.iter_mut().chain([&mut self.inserted]).collect()
    }

    fn keys(&mut self) -> &mut [Versions<Range>] {
        &mut self.keys
    }
}

fn least(versions: &Versions<Range>) -> i64 {
    versions.allowed().iter().map(|range| range.least).min().unwrap_or(0).max(0)
}

fn most(versions: &Versions<Range>) -> i64 {
    versions.allowed().iter().map(|range| range.most).max().unwrap_or(0)
}

/// The answer of a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// Whether the key is present.
    Presence(bool),
    /// The count.
    Count(u64),
}

impl Past {
    /// Creates an oracle of `keys` keys without updates.
    #[must_use]
    pub fn new(keys: u64, is_exact: bool) -> Self {
        let never = || Versions::only(Range { least: 0, most: 0 });
        let ever = vec![0; keys as usize];
        let keys = (0..keys).map(|_| never()).collect();
        Self { keys, ever, is_exact, window: None, inserted: 0 }
    }

    /// Returns the oracle for a filter that certainly has only the most recent `window` inserts, if there is
    /// a window. It cannot delete.
    #[must_use]
    pub fn of_window(self, window: Option<u64>) -> Self {
        Self { window, ..self }
    }

    /// Returns whether a key may be gone that was last inserted at this number, the first being 1.
    fn is_old(&self, insert: i64) -> bool {
        let later = self.inserted.saturating_sub(insert.unsigned_abs());
        self.window.is_some_and(|window| later >= window)
    }

    /// Returns the number of keys.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.keys.len() as u64
    }

    /// Returns the least possible count of a key, whatever happened to uncertain updates: as many inserts may
    /// be deleted.
    #[must_use]
    pub fn held(&self, key: u64) -> i64 {
        least(&self.keys[key as usize])
    }

    /// Records an addition of 1, before it is called, that is not made if the key is present.
    pub fn attempt_absent(&mut self, key: u64) {
        let Range { least, .. } = *self.keys[key as usize].newest();
        self.attempt(key, 1);
        let Range { most, .. } = *self.keys[key as usize].newest();
        self.keys[key as usize].retract();
        self.keys[key as usize].attempt(Range { least, most });
    }

    /// Records, before it is called, that the count of a key is set to 0.
    pub fn attempt_removal(&mut self, key: u64) {
        self.keys[key as usize].attempt(Range { least: 0, most: 0 });
    }

    /// Takes back the last attempt for a key: it has changed nothing.
    pub fn retract(&mut self, key: u64) {
        self.keys[key as usize].retract();
    }

    /// Records an update before it is called.
    pub fn attempt(&mut self, key: u64, amount: i64) {
        let Range { least, most } = *self.keys[key as usize].newest();
        self.inserted += 1;
        let range = match self.window {
            None => {
                Range { least: least.saturating_add(amount), most: most.saturating_add(amount) }
            }
            Some(_) => {
                let insert = self.inserted.cast_signed();
                Range { least: insert, most: insert }
            }
        };
        self.keys[key as usize].attempt(range);
        let ever = &mut self.ever[key as usize];
        *ever = (*ever).max(u64::try_from(range.most).unwrap_or(0));
    }

    /// Judges the answer for a key.
    ///
    /// # Errors
    /// Returns the reason why the answer is wrong.
    pub fn judge(&self, key: u64, found: Found, trust: Trust) -> Result<(), String> {
        let (versions, ever) = (&self.keys[key as usize], self.ever[key as usize]);
        let fits = match (trust, found) {
            (Trust::EverOrError, Found::Presence(found)) => !found || ever > 0 || !self.is_exact,
            (Trust::EverOrError, Found::Count(count)) => {
                i128::from(count) <= i128::from(ever) || !self.is_exact
            }
            (_, Found::Presence(true)) => most(versions) > 0 || !self.is_exact,
            (_, Found::Presence(false)) => least(versions) == 0 || self.is_old(least(versions)),
            (_, Found::Count(count)) => {
                let count = i64::try_from(count).unwrap_or(i64::MAX);
                let is_right = |range: &Range| {
                    range.least.max(0) <= count && (count <= range.most.max(0) || !self.is_exact)
                };
                versions.allowed().iter().any(is_right)
            }
        };
        if fits {
            return Ok(());
        }
        Err(format!(
            "key {key}: {found:?} was found, and one of {:?} is possible (ever {ever}, durable {:?})",
            versions.allowed(),
            versions.durable()
        ))
    }

    /// Judges the sum of all counts, which is exact whatever keys share fingerprints.
    ///
    /// # Errors
    /// Returns the reason why the sum is wrong.
    pub fn judge_sum(&self, sum: i128, trust: Trust) -> Result<(), String> {
        let all = |of: fn(&Versions<Range>) -> i64| {
            self.keys.iter().map(|versions| i128::from(of(versions))).sum()
        };
        let (least, most): (i128, i128) = match trust {
            Trust::EverOrError => (0, self.ever.iter().copied().map(i128::from).sum()),
            _ => (all(least), all(most)),
        };
        if (least..=most).contains(&sum) {
            return Ok(());
        }
        Err(format!("iteration gives {sum} in all, and {least} to {most} are possible"))
    }

    /// Takes a count after an opening as the key's whole history.
    pub fn settle(&mut self, key: u64, count: u64, trust: Trust) {
        let (versions, ever) = (&mut self.keys[key as usize], self.ever[key as usize]);
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let (least, most) = match trust {
            _ if self.is_exact => (count, count),
            // After a device's loss the count can be anything up to the one found.
            Trust::EverOrError => (0, count.min(i64::try_from(ever).unwrap_or(i64::MAX))),
            _ => (least(versions).min(count), most(versions).min(count)),
        };
        *versions = Versions::only(Range { least, most });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(past: &Past, found: Found) -> bool {
        past.judge(0, found, Trust::Right).is_ok()
    }

    fn counts(past: &Past) -> Vec<u64> {
        (0..6).filter(|count| fits(past, Found::Count(*count))).collect()
    }

    #[test]
    fn what_is_acknowledged_is_counted_and_what_is_durable_survives() {
        let mut past = Past::new(1, true);
        past.attempt(0, 1);
        past.acknowledge(0, true);
        past.attempt(0, 2);
        past.acknowledge(0, false);
        past.attempt(0, -3);
        assert_eq!(counts(&past), [0, 3]);
        assert!(fits(&past, Found::Presence(false)) && fits(&past, Found::Presence(true)));
        past.reopened();
        assert_eq!((counts(&past), past.held(0)), (vec![0, 1, 3], 0));
        past.settle(0, 1, Trust::Right);
        assert_eq!((counts(&past), past.held(0)), (vec![1], 1));
        assert!(!fits(&past, Found::Presence(false)));
    }

    #[test]
    fn where_keys_share_fingerprints_more_may_be_counted_and_never_less() {
        let mut past = Past::new(1, false);
        assert!(fits(&past, Found::Presence(true)));
        past.attempt(0, 2);
        past.acknowledge(0, true);
        assert_eq!(counts(&past), [2, 3, 4, 5]);
        past.attempt(0, 1);
        past.reopened();
        past.settle(0, 5, Trust::Right);
        // It was 2 or 3, and at most two may be deleted.
        assert_eq!(past.held(0), 2);
        assert!(past.judge_sum(2, Trust::Right).is_ok() && past.judge_sum(3, Trust::Right).is_ok());
        assert!(
            past.judge_sum(1, Trust::Right).is_err() && past.judge_sum(4, Trust::Right).is_err()
        );
    }

    #[test]
    fn a_key_may_be_gone_once_a_window_of_inserts_came_after_its_last_sure_one() {
        let mut past = Past::new(9, true).of_window(Some(3));
        let insert = |past: &mut Past, key, is_durable| {
            past.attempt(key, 1);
            past.acknowledge(key, is_durable);
        };
        insert(&mut past, 0, true);
        insert(&mut past, 1, true);
        insert(&mut past, 2, true);
        assert!(!fits(&past, Found::Presence(false)));
        past.attempt(3, 1);
        assert!(fits(&past, Found::Presence(false)) && fits(&past, Found::Presence(true)));
        // It is inserted again, is certainly present, and may be lost by the crash.
        insert(&mut past, 0, false);
        assert!(!fits(&past, Found::Presence(false)));
        past.reopened();
        assert!(fits(&past, Found::Presence(false)));
    }

    #[test]
    fn a_device_that_lost_what_it_had_still_never_counts_more_than_ever_was() {
        let mut past = Past::new(2, true);
        past.attempt(0, 2);
        past.acknowledge(0, true);
        past.attempt(0, -1);
        past.acknowledge(0, true);
        let ever = |key, found| past.judge(key, found, Trust::EverOrError).is_ok();
        assert!(ever(0, Found::Count(0)) && ever(0, Found::Count(2)) && !ever(0, Found::Count(3)));
        assert!(!ever(1, Found::Presence(true)) && ever(0, Found::Presence(false)));
    }
}
