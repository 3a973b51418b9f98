//! What a filter must answer: how often each key was there, which of its updates were acknowledged, and which
//! durably.
//!
//! The law, for each key: what is counted is what the acknowledged updates come to, or later ones that were
//! attempted; after a reopening, the durable ones or later ones. It may be more where keys share fingerprints,
//! never less. Which of several possible counts it is cannot always be told; so a range is kept.

use crate::subject::Trust;

#[derive(Clone, Debug)]
struct History {
    /// The least and the greatest count it may have had at the last opening.
    base: (i64, i64),
    /// What updates have added since, one after another, the oldest first.
    added: Vec<i64>,
    durable: usize,
    /// Sums after this one were not acknowledged.
    acknowledged: usize,
    /// The greatest count it may ever have had.
    ever: i64,
}

impl Default for History {
    fn default() -> Self {
        Self { base: (0, 0), added: vec![0], durable: 0, acknowledged: 0, ever: 0 }
    }
}

impl History {
    /// The counts that may be found now, as ranges.
    fn allowed(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        let (least, most) = self.base;
        self.added[self.acknowledged..].iter().map(move |added| (least + added, most + added))
    }

    fn least(&self) -> i64 {
        self.allowed().map(|(least, _)| least).min().unwrap_or(0).max(0)
    }

    fn most(&self) -> i64 {
        self.allowed().map(|(_, most)| most).max().unwrap_or(0)
    }
}

/// What was done to a filter, and what of it is vouched for.
#[derive(Clone, Debug)]
pub struct Past {
    keys: Vec<History>,
    /// Is a fingerprint of two keys out of the question?
    is_exact: bool,
}

/// What a lookup brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// Whether the key is there.
    Presence(bool),
    /// How often.
    Count(u64),
}

impl Past {
    /// Nothing has happened to so many keys.
    #[must_use]
    pub fn new(keys: u64, is_exact: bool) -> Self {
        Self { keys: (0..keys).map(|_| History::default()).collect(), is_exact }
    }

    /// How many keys there are.
    #[must_use]
    pub const fn keys(&self) -> u64 {
        self.keys.len() as u64
    }

    /// How often a key is there at least, whatever has become of updates in doubt. So many may be taken away.
    #[must_use]
    pub fn held(&self, key: u64) -> i64 {
        self.keys[key as usize].least()
    }

    /// Notes an update that is about to be called.
    pub fn attempt(&mut self, key: u64, amount: i64) {
        let history = self.history(key);
        let last = history.added.last().copied().unwrap_or(0);
        history.added.push(last.saturating_add(amount));
        history.ever = history.ever.max(history.base.1.saturating_add(last + amount));
    }

    /// Notes that all updates of that key were acknowledged, and perhaps are durable by that.
    pub fn acknowledge(&mut self, key: u64, is_durable: bool) {
        let history = self.history(key);
        history.acknowledged = history.added.len() - 1;
        if is_durable {
            history.durable = history.acknowledged;
        }
    }

    /// Notes that all that was acknowledged is durable.
    pub fn synced(&mut self) {
        self.keys.iter_mut().for_each(|history| history.durable = history.acknowledged);
    }

    /// Notes that the filter was opened: only what is durable is vouched for.
    pub fn reopened(&mut self) {
        self.keys.iter_mut().for_each(|history| history.acknowledged = history.durable);
    }

    /// Judges what was found of a key.
    ///
    /// # Errors
    /// Why it cannot be.
    pub fn judge(&self, key: u64, found: Found, trust: Trust) -> Result<(), String> {
        let history = &self.keys[key as usize];
        let fits = match (trust, found) {
            (Trust::EverOrError, Found::Presence(found)) => {
                !found || history.ever > 0 || !self.is_exact
            }
            (Trust::EverOrError, Found::Count(count)) => {
                i128::from(count) <= i128::from(history.ever) || !self.is_exact
            }
            (_, Found::Presence(true)) => history.most() > 0 || !self.is_exact,
            (_, Found::Presence(false)) => history.least() == 0,
            (_, Found::Count(count)) => {
                let count = i64::try_from(count).unwrap_or(i64::MAX);
                let is_right = |(least, most): (i64, i64)| {
                    least.max(0) <= count && (count <= most.max(0) || !self.is_exact)
                };
                history.allowed().any(is_right)
            }
        };
        if fits {
            return Ok(());
        }
        let allowed: Vec<_> = history.allowed().collect();
        Err(format!(
            "key {key}: {found:?} was found, and one of {allowed:?} is possible (ever {}, durable {} of {})",
            history.ever, history.durable, history.acknowledged
        ))
    }

    /// Judges the sum of all counts, which is exact whatever keys share fingerprints.
    ///
    /// # Errors
    /// Why it cannot be.
    pub fn judge_sum(&self, sum: i128, trust: Trust) -> Result<(), String> {
        let all = |of: fn(&History) -> i64| self.keys.iter().map(|it| i128::from(of(it))).sum();
        let (least, most): (i128, i128) = match trust {
            Trust::EverOrError => (0, all(|history| history.ever)),
            _ => (all(History::least), all(History::most)),
        };
        if (least..=most).contains(&sum) {
            return Ok(());
        }
        Err(format!("iteration gives {sum} in all, and {least} to {most} are possible"))
    }

    /// Takes what was counted after an opening as all that the key has been.
    pub fn settle(&mut self, key: u64, count: u64, trust: Trust) {
        let is_exact = self.is_exact;
        let history = self.history(key);
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let base = match trust {
            _ if is_exact => (count, count),
            // What a device has lost can be anything up to what is found.
            Trust::EverOrError => (0, count.min(history.ever)),
            _ => (history.least().min(count), history.most().min(count)),
        };
        *history =
            History { base, added: vec![0], durable: 0, acknowledged: 0, ever: history.ever };
    }

    fn history(&mut self, key: u64) -> &mut History {
        &mut self.keys[key as usize]
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
        // It was 2 or 3, and two is all that may be taken away.
        assert_eq!(past.held(0), 2);
        assert!(past.judge_sum(2, Trust::Right).is_ok() && past.judge_sum(3, Trust::Right).is_ok());
        assert!(
            past.judge_sum(1, Trust::Right).is_err() && past.judge_sum(4, Trust::Right).is_err()
        );
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
