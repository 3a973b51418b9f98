//! Calls for many keys at once, past the buffers.

use nandex::Counter;

use super::{Maker, Runner};

impl<M: Maker> Runner<M> {
    /// Absorbs another filter, which has lost a third of these keys again.
    pub(super) fn absorb(&mut self, numbers: impl Iterator<Item = u64>, amount: i64) {
        let keys: Vec<_> = numbers.map(|number| self.key(number)).collect();
        let amounts: Vec<_> = keys.iter().map(|key| (&key[..], amount)).collect();
        let lost = amounts.len() / 3;
        if self.maker.absorb(self.made(), &amounts, lost) {
            self.oracle.add_many(&amounts[lost..]).unwrap();
        }
    }

    /// Adds to each key, or subtracts the whole count of every third one. Keys that share a fingerprint are
    /// one key to a stream.
    pub(super) fn absorb_sorted(&mut self, numbers: impl Iterator<Item = u64>, amount: i64) {
        if !self.maker.law().is_exact() {
            return;
        }
        let of = |number: u64| {
            let held = i64::try_from(self.held(number)).unwrap();
            (self.key(number), if number.is_multiple_of(3) { -held } else { amount })
        };
        let amounts: Vec<_> = numbers.map(of).collect();
        let amounts: Vec<_> = amounts.iter().map(|(key, amount)| (&key[..], *amount)).collect();
        if self.maker.absorb_sorted(self.made(), &amounts) {
            self.oracle.add_many(&amounts).unwrap();
        }
    }

    /// Removes keys, whatever their counts. It removes all keys of a fingerprint.
    pub(super) fn remove_many(&mut self, numbers: impl Iterator<Item = u64>) {
        if !self.maker.law().is_exact() {
            return;
        }
        let numbers: Vec<_> = numbers.collect();
        let keys: Vec<_> = numbers.iter().map(|number| self.key(*number)).collect();
        let bytes: Vec<_> = keys.iter().map(|key| &key[..]).collect();
        if !self.maker.remove_many(self.made(), &bytes) {
            return;
        }
        for (number, key) in numbers.into_iter().zip(bytes) {
            let held = i64::try_from(self.held(number)).unwrap();
            self.oracle.add(key, -held).unwrap();
        }
    }
}
