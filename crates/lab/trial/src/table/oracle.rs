//! The right answers of a table: the versions of each key, the acknowledged ones, and the durable ones.
//!
//! The law, for each key: a lookup finds the newest acknowledged version or a later one that was attempted;
//! after a reopening, the newest durable version or a later one. It finds nothing if that version was a
//! removal, or so old that the ring may have evicted it.

use nandex::testing::Retention;

use crate::contract::Trust;
use crate::versions::{Numbers, Oracle, Versions};

/// A version of a key: the result of an attempted update.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// The number of the update; `None` for a removal, and before the first update.
    put: Option<u64>,
    /// The number of earlier updates, and of lookups that count.
    at: u64,
}

const NEVER: Version = Version { put: None, at: 0 };

/// The updates of a table, and those of them that must hold.
#[derive(Clone, Debug)]
pub struct Past {
    keys: Vec<Versions<Version>>,
    /// The number of updates so far, which is the number of the last one.
    puts: u64,
    /// The number of updates, and of lookups if these make entries young.
    acts: u64,
    retention: Retention,
    /// The number of updates before which a table that refuses has no reason to.
    full_from: u64,
}

impl Numbers for Version {
    fn numbers(&self) -> [u64; 2] {
        [self.put.map_or(0, |put| put + 1), self.at]
    }

    fn of_numbers([put, at]: [u64; 2]) -> Self {
        Self { put: put.checked_sub(1), at }
    }
}

impl Oracle for Past {
    type Version = Version;

    fn others(&mut self) -> Vec<&mut u64> {
        vec![&mut self.puts, &mut self.acts]
    }

    fn keys(&mut self) -> &mut [Versions<Version>] {
        &mut self.keys
    }

    fn may_refuse(&self) -> bool {
        self.retention == Retention::Refuses && self.puts >= self.full_from
    }
}

/// The answer of a lookup: the number of a put that its bytes prove, or bytes that prove none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// No such key.
    Nothing,
    /// The value of a put to this key.
    Put(u64),
    /// A value without bytes, which any put may have left.
    Some,
    /// Bytes that no put to that key has had.
    Foreign,
}

impl Found {
    /// Returns the put that a value proves whose bytes begin with the number of their put, above 16 bits of
    /// the key's; `value` returns the whole value of a put.
    #[must_use]
    pub fn proven(found: Option<&[u8]>, value: impl FnOnce(u64) -> Vec<u8>) -> Self {
        let Some(found) = found else { return Self::Nothing };
        let Some(head) = found.first_chunk::<8>() else {
            return if found.is_empty() { Self::Some } else { Self::Foreign };
        };
        let put = u64::from_le_bytes(*head) >> 16;
        if found == value(put) { Self::Put(put) } else { Self::Foreign }
    }

    /// Returns the answer as a number, for hashes of answers.
    #[must_use]
    pub const fn number(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Put(put) => 2 + put,
            Self::Some | Self::Foreign => 1,
        }
    }
}

impl Past {
    /// Creates an oracle of `keys` keys without updates.
    #[must_use]
    pub fn new(keys: u64, retention: Retention) -> Self {
        let keys = (0..keys).map(|_| Versions::only(NEVER)).collect();
        Self { keys, puts: 0, acts: 0, retention, full_from: 0 }
    }

    /// Returns the oracle for a table that may refuse only after `updates` updates.
    #[must_use]
    pub fn full_from(self, updates: u64) -> Self {
        Self { full_from: updates, ..self }
    }

    /// Returns the least number of acts that an entry survives; `None` without eviction.
    const fn window(&self) -> Option<u64> {
        match self.retention {
            Retention::All | Retention::Refuses => None,
            Retention::Newest(count)
            | Retention::NewestUsed(count)
            | Retention::AllUnlessForced(count) => Some(count),
        }
    }

    /// Returns the number of keys.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.keys.len() as u64
    }

    /// Records an update before it is called, and returns its number.
    pub fn attempt(&mut self, key: u64, removes: bool) -> u64 {
        self.puts += 1;
        self.acts += 1;
        let version = Version { put: (!removes).then_some(self.puts), at: self.acts };
        self.keys[key as usize].attempt(version);
        self.puts
    }

    /// Records puts of one call, before it, and returns their numbers. The call may make any of them first,
    /// so all have the age of the first.
    pub fn attempt_together(&mut self, keys: &[u64]) -> Vec<u64> {
        let at = self.acts + 1;
        let attempt = |key: &u64| {
            self.puts += 1;
            self.acts += 1;
            self.keys[*key as usize].attempt(Version { put: Some(self.puts), at });
            self.puts
        };
        keys.iter().map(attempt).collect()
    }

    /// Takes back the last attempt for a key: it changes nothing.
    pub fn retract(&mut self, key: u64) {
        self.keys[key as usize].retract();
    }

    /// Returns whether the last version of a key is a value. After everything was looked up that is certain.
    #[must_use]
    pub fn is_there(&self, key: u64) -> bool {
        self.keys[key as usize].newest().put.is_some()
    }

    /// Returns whether entries may be evicted.
    #[must_use]
    pub const fn evicts(&self) -> bool {
        self.window().is_some()
    }

    /// Records a lookup. If it makes an entry young, it makes others old.
    pub fn looked_up(&mut self) {
        self.acts += u64::from(matches!(self.retention, Retention::NewestUsed(_)));
    }

    /// Judges the answer for a key.
    ///
    /// # Errors
    /// Returns the reason why the answer is wrong.
    pub fn judge(&self, key: u64, found: Found, trust: Trust) -> Result<(), String> {
        let versions = &self.keys[key as usize];
        let allowed = versions.allowed();
        let fits = match (trust, found) {
            (_, Found::Foreign) => false,
            (Trust::EverOrError, Found::Put(put)) => put <= self.puts,
            (Trust::EverOrError, _) => true,
            (_, Found::Nothing) => {
                let oldest = allowed.first().map_or(0, |version| version.at);
                let age = self.acts - oldest;
                // A table that promises no entry may have to evict the newest one too.
                let is_old = self.window().is_some_and(|window| window == 0 || age > window);
                is_old || allowed.iter().any(|version| version.put.is_none())
            }
            (_, Found::Put(put)) => allowed.iter().any(|version| version.put == Some(put)),
            (_, Found::Some) => allowed.iter().any(|version| version.put.is_some()),
        };
        if fits {
            return Ok(());
        }
        let Self { puts, acts, retention, .. } = self;
        Err(format!(
            "key {key}: {found:?} was found, and one of {allowed:?} is possible (puts {puts}, acts {acts}, \
             {retention:?}, durable {:?})",
            versions.durable()
        ))
    }

    /// Takes an answer after an opening as the key's whole history.
    pub fn settle(&mut self, key: u64, found: Found) {
        let versions = &mut self.keys[key as usize];
        let allowed = versions.allowed();
        let version = match found {
            Found::Put(put) => {
                let known = allowed.iter().find(|version| version.put == Some(put));
                known.copied().unwrap_or(Version { put: Some(put), at: 0 })
            }
            // Several versions are possible; the oldest promises the least.
            Found::Some => {
                let known = allowed.iter().find(|version| version.put.is_some());
                known.copied().unwrap_or(NEVER)
            }
            // Evicted, perhaps: a crash before the next checkpoint may bring it back as it was.
            Found::Nothing if allowed.iter().all(|version| version.put.is_some()) => {
                versions.doubt();
                return;
            }
            Found::Nothing | Found::Foreign => NEVER,
        };
        *versions = Versions::only(version);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(past: &Past, found: Found) -> bool {
        past.judge(0, found, Trust::Right).is_ok()
    }

    #[test]
    fn a_table_may_refuse_only_after_as_many_updates_as_it_has_space_for() {
        let mut past = Past::new(4, Retention::Refuses).full_from(2);
        past.attempt(1, false);
        assert!(!past.may_refuse());
        past.attempt(1, false);
        assert!(past.may_refuse() && !Past::new(4, Retention::All).may_refuse());
    }

    #[test]
    fn what_is_acknowledged_is_found_and_what_is_durable_survives() {
        let mut past = Past::new(1, Retention::All);
        past.attempt(0, false);
        past.acknowledge(0, true);
        past.attempt(0, false);
        past.acknowledge(0, false);
        past.attempt(0, true);
        let answers = [Found::Put(1), Found::Put(2), Found::Nothing, Found::Some, Found::Foreign];
        assert_eq!(answers.map(|it| fits(&past, it)), [false, true, true, true, false]);
        past.reopened();
        assert_eq!(answers.map(|it| fits(&past, it)), [true, true, true, true, false]);
        past.settle(0, Found::Put(1));
        assert_eq!(answers.map(|it| fits(&past, it)), [true, false, false, true, false]);
    }

    #[test]
    fn only_old_entries_may_be_evicted_and_never_come_back_older() {
        let mut past = Past::new(2, Retention::NewestUsed(3));
        past.attempt(0, false);
        past.acknowledge(0, true);
        (0..3).for_each(|_| past.looked_up());
        assert!(!fits(&past, Found::Nothing));
        past.attempt(0, false);
        assert!(fits(&past, Found::Nothing));
        past.acknowledge(0, true);
        assert!(!fits(&past, Found::Nothing) && !fits(&past, Found::Put(1)));
    }

    #[test]
    fn a_table_that_promises_no_entry_may_evict_the_newest() {
        let newest_may_go = |retention| {
            let mut past = Past::new(1, retention);
            past.attempt(0, false);
            past.acknowledge(0, true);
            fits(&past, Found::Nothing)
        };
        assert!(newest_may_go(Retention::Newest(0)) && !newest_may_go(Retention::Newest(1)));
        assert!(!newest_may_go(Retention::All));
    }

    #[test]
    fn a_device_that_lost_what_it_had_still_gives_no_foreign_value() {
        let mut past = Past::new(1, Retention::All);
        past.attempt(0, false);
        past.acknowledge(0, true);
        let ever = |found| past.judge(0, found, Trust::EverOrError).is_ok();
        assert!(ever(Found::Nothing) && ever(Found::Put(1)));
        assert!(!ever(Found::Put(2)) && !ever(Found::Foreign));
    }
}
