//! Structures of keys: the present keys, their last values, and the rounds over them.

use std::time::Instant;

use anyhow::{Result, ensure};
use nandex_bench::keys::{ENTRY_BYTES, KEY_BYTES, KeySpace, Rng, VALUE_BYTES};

use crate::Workload;
use crate::subject::{Subject, Usage, Work};

/// Keys put in a call.
const BATCH: u64 = 1024;
/// The maximum number of keys that are looked up in the end.
const LOOKUPS: u64 = 20_000;
/// The maximum number of removed keys that are looked up in the end.
const ABSENT: u64 = 1000;

/// Keys and values; a structure without values ignores them.
pub(crate) type Pairs<'a> = [(&'a [u8], &'a [u8])];

/// A structure whose entries have keys.
pub(crate) trait Store: Sized {
    /// Puts keys that were not present.
    fn put(&self, pairs: &Pairs) -> Result<()>;

    /// Puts keys that are present.
    fn put_again(&self, pairs: &Pairs) -> Result<()> {
        self.put(pairs)
    }

    /// Removes keys that are present.
    fn remove(&self, keys: &[&[u8]]) -> Result<()>;

    /// Returns whether a lookup of the key is right, after `puts` puts and with this value last.
    fn is_right(&self, pair: (&[u8], &[u8]), puts: u64) -> Result<bool>;

    /// Returns whether a lookup reports the key as absent.
    fn is_absent(&self, key: &[u8]) -> Result<bool>;

    /// Returns the maximum share of absent keys that may be false positives.
    fn wrong_share_max(&self) -> f64 {
        0.0
    }

    /// Flushes all buffers.
    fn flush(&self) -> Result<()>;

    /// Returns its bytes and entries.
    fn usage(&self) -> Usage;

    /// Closes and reopens it.
    fn reopened(self) -> Result<Self>;

    /// Closes it.
    fn close(self) -> Result<()>;
}

/// A store with its keys.
pub(crate) struct Keyed<S> {
    store: S,
    keys: Keys,
}

/// The keys of a store, and the version of each value.
struct Keys {
    space: KeySpace,
    rng: Rng,
    versions: Vec<u32>,
    /// The oldest key that was not removed, and the number of keys from it on.
    first: u64,
    count: u64,
}

impl Keys {
    fn pair(&self, number: u64) -> ([u8; KEY_BYTES], [u8; VALUE_BYTES]) {
        let key = self.space.key(number);
        let version = self.version(number);
        (key.to_le_bytes(), self.space.value(key, version.into()).to_le_bytes())
    }

    fn version(&self, number: u64) -> u32 {
        self.versions[(number % self.count) as usize]
    }

    /// Notes that a key is put again.
    fn put_again(&mut self, number: u64) {
        let place = (number % self.count) as usize;
        self.versions[place] += 1;
    }

    /// Returns the number of the key to put in place of this one of the first fill, and the key to remove for it.
    fn step(&mut self, number: u64, workload: Option<Workload>) -> (u64, Option<[u8; KEY_BYTES]>) {
        match workload {
            None => (number, None),
            Some(Workload::Update) => {
                let drawn = self.rng.below(self.count);
                self.put_again(drawn);
                (drawn, None)
            }
            Some(Workload::Churn) => {
                let removed = self.pair(self.first).0;
                self.first += 1;
                (self.first + self.count - 1, Some(removed))
            }
        }
    }

    /// Returns some of the present keys.
    fn some(&self) -> impl Iterator<Item = u64> + use<> {
        let step = (self.count / LOOKUPS.min(self.count)) as usize;
        (self.first..self.first + self.count).step_by(step)
    }
}

impl<S: Store + 'static> Keyed<S> {
    /// Creates the subject of an empty store, and the keys that it will have.
    pub fn boxed(store: S, count: u64) -> Result<Box<dyn Subject>> {
        let versions = vec![0; usize::try_from(count)?];
        let (space, rng) = (KeySpace::new(1), Rng::new(1, 0, 0));
        Ok(Box::new(Self { store, keys: Keys { space, rng, versions, first: 0, count } }))
    }

    fn check_present(&self) -> Result<u64> {
        self.keys.some().try_fold(0, |looked_up, number| {
            let (key, value) = self.keys.pair(number);
            let puts = u64::from(self.keys.version(number)) + 1;
            ensure!(
                self.store.is_right((&key, &value), puts)?,
                "key {number} is not as it was put"
            );
            Ok(looked_up + 1)
        })
    }

    fn check_absent(&self) -> Result<u64> {
        let last = self.keys.first;
        let gone = last - last.min(ABSENT)..last;
        let all = gone.end - gone.start;
        let mut wrong = 0;
        for number in gone {
            wrong += u64::from(!self.store.is_absent(&self.keys.pair(number).0)?);
        }
        let max = (all as f64 * self.store.wrong_share_max()) as u64;
        ensure!(wrong <= max, "of {all} keys that were removed {wrong} are there, {max} at most");
        Ok(all)
    }
}

impl<S: Store + 'static> Subject for Keyed<S> {
    fn round(&mut self, workload: Option<Workload>) -> Result<Work> {
        let count = self.keys.count;
        let mut seconds = 0.0;
        for first in (0..count).step_by(BATCH as usize) {
            let (mut pairs, mut removed) = (Vec::new(), Vec::new());
            for number in first..(first + BATCH).min(count) {
                let (number, gone) = self.keys.step(number, workload);
                pairs.push(self.keys.pair(number));
                removed.extend(gone);
            }
            let pairs: Vec<(&[u8], &[u8])> =
                pairs.iter().map(|(key, it)| (&key[..], &it[..])).collect();
            let removed: Vec<&[u8]> = removed.iter().map(|key| &key[..]).collect();
            let are_there = workload == Some(Workload::Update);
            let start = Instant::now();
            self.store.remove(&removed)?;
            if are_there {
                self.store.put_again(&pairs)?;
            } else {
                self.store.put(&pairs)?;
            }
            seconds += start.elapsed().as_secs_f64();
        }
        self.store.flush()?;
        Ok(Work { items: count, bytes: count * ENTRY_BYTES, seconds })
    }

    fn usage(&self) -> Usage {
        self.store.usage()
    }

    fn entries(&self) -> u64 {
        self.keys.count
    }

    fn check(&self) -> Result<Work> {
        let start = Instant::now();
        let items = self.check_present()?;
        let seconds = start.elapsed().as_secs_f64();
        self.check_absent()?;
        Ok(Work { items, bytes: 0, seconds })
    }

    fn put_singly(&mut self) -> Result<Work> {
        let start = Instant::now();
        let mut items = 0;
        for number in self.keys.some() {
            self.keys.put_again(number);
            let (key, value) = self.keys.pair(number);
            self.store.put_again(&[(&key, &value)])?;
            items += 1;
        }
        Ok(Work { items, bytes: items * ENTRY_BYTES, seconds: start.elapsed().as_secs_f64() })
    }

    fn reopened(self: Box<Self>) -> Result<Box<dyn Subject>> {
        let Self { store, keys } = *self;
        Ok(Box::new(Self { store: store.reopened()?, keys }))
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.store.close()
    }
}
