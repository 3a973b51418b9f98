//! Random commands against maps, one for each key space, over every index; with closes in between.

use std::collections::BTreeMap;
use std::sync::Arc;

use nandex::Durability;
use nandex_kvssd::{
    Afterwards, Config, DeleteMissing, Drive, GroupFilter, IteratorKind, KeySpace, RetrieveOptions,
    StoreKind, StoreOptions,
};
use nandex_sim::SimDevice;
use nandex_sim::workload::SplitMix64;

use crate::common::{INDEXES, add_space, create_on, key, open_on, value};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Key spaces that are created and deleted.
const NAMES: [&str; 2] = ["one", "two"];
const KEYS: u64 = 60;

struct Lives {
    device: SimDevice,
    drive: Drive,
    spaces: Vec<KeySpace>,
    maps: Vec<Map>,
    rng: SplitMix64,
}

impl Lives {
    fn new(index: &str, seed: u64) -> Self {
        let device = SimDevice::instant();
        let shared = Arc::new(device.clone());
        let drive = create_on(shared, Config::tiny(), index, Durability::Never).unwrap();
        let spaces = NAMES.map(|name| add_space(&drive, name)).into();
        let (maps, rng) = (vec![Map::new(); 2], SplitMix64::new(seed));
        Self { device, drive, spaces, maps, rng }
    }

    fn store(&mut self, at: usize) {
        let number = self.rng.below(KEYS);
        let key = key(number);
        let bytes = [0, 30, 700, 4000][self.rng.below(4) as usize] + self.rng.below(90) as usize;
        let value = value(self.rng.next_u64(), bytes);
        let kinds =
            [StoreKind::Post, StoreKind::UpdateOnly, StoreKind::NoOverwrite, StoreKind::Append];
        let kind = kinds[self.rng.below(4) as usize];
        let old = self.maps[at].get(&key).cloned();
        let result = self.spaces[at].store(&key, &value, kind.into());
        let expected = match (kind, old) {
            (StoreKind::UpdateOnly, None) | (StoreKind::NoOverwrite, Some(_)) => None,
            (StoreKind::Append, Some(old)) => {
                Some([old, value].concat()).filter(|it| it.len() <= 8192)
            }
            _ => Some(value),
        };
        assert_eq!(result.is_ok(), expected.is_some(), "{kind:?}: {result:?}");
        if let Some(value) = expected {
            self.maps[at].insert(key, value);
        }
    }

    fn retrieve(&mut self, at: usize) {
        let key = key(self.rng.below(KEYS));
        let offset = 4 * self.rng.below(30);
        let length = (self.rng.below(2) == 0).then(|| self.rng.below(300));
        let afterwards = if self.rng.below(4) == 0 { Afterwards::Delete } else { Afterwards::Keep };
        let options = RetrieveOptions { offset, length, afterwards };
        let found = self.spaces[at].retrieve(&key, options);
        let old = self.maps[at].get(&key);
        let Some(old) = old.filter(|old| offset == 0 || offset < old.len() as u64) else {
            return assert!(found.is_err());
        };
        let found = found.unwrap();
        let end = length.map_or(old.len(), |length| old.len().min((offset + length) as usize));
        assert_eq!(found.bytes, old[offset as usize..end.max(offset as usize)]);
        assert_eq!(found.value_bytes, old.len() as u64);
        if afterwards == Afterwards::Delete {
            self.maps[at].remove(&key);
        }
    }

    fn delete(&mut self, at: usize) {
        let key = key(self.rng.below(KEYS));
        let was_there = self.maps[at].remove(&key).is_some();
        let deleted = self.spaces[at].delete(&key, DeleteMissing::Refuse);
        assert_eq!(deleted.is_ok(), was_there);
    }

    fn delete_group(&mut self, at: usize) {
        let prefix = format!("g{:02}", self.rng.below(16));
        let filter = GroupFilter::prefix(prefix.as_bytes());
        let before = self.maps[at].len();
        self.maps[at].retain(|key, _| !key.starts_with(prefix.as_bytes()));
        let removed = self.spaces[at].delete_group(filter).unwrap();
        assert_eq!(removed, (before - self.maps[at].len()) as u64);
    }

    fn iterate(&mut self, at: usize) {
        let prefix = format!("g{}", self.rng.below(2));
        let filter = GroupFilter::prefix(prefix.as_bytes());
        let space = &self.spaces[at];
        let number = space.open_iterator(filter, IteratorKind::Pairs).unwrap();
        let mut found = Map::new();
        loop {
            let part = space.iterate(number, 20_000).unwrap();
            for pair in part.pairs {
                assert!(found.insert(pair.key, pair.value.unwrap()).is_none(), "each key once");
            }
            if part.is_end {
                break;
            }
        }
        space.close_iterator(number).unwrap();
        let wanted = self.maps[at].iter().filter(|(key, _)| key.starts_with(prefix.as_bytes()));
        assert!(found.iter().eq(wanted));
    }

    fn remake(&mut self, at: usize) {
        self.drive.delete_key_space(NAMES[at]).unwrap();
        self.maps[at].clear();
        self.spaces[at] = add_space(&self.drive, NAMES[at]);
    }

    fn reopen(&mut self) {
        self.spaces.clear();
        self.drive.close().unwrap();
        self.drive = open_on(Arc::new(self.device.clone()), Durability::Never).unwrap();
        self.spaces = NAMES.iter().map(|name| self.drive.open_key_space(name).unwrap()).collect();
    }

    fn check(&self) {
        for (space, map) in self.spaces.iter().zip(&self.maps) {
            let info = space.info().unwrap();
            let sum =
                |bytes: fn((&Vec<u8>, &Vec<u8>)) -> usize| map.iter().map(bytes).sum::<usize>();
            assert_eq!(info.pairs, map.len() as u64);
            assert_eq!(info.key_bytes, sum(|(key, _)| key.len()) as u64);
            assert_eq!(info.value_bytes, sum(|(_, value)| value.len()) as u64);
            let keys: Vec<_> = (0..KEYS).map(key).collect();
            let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
            let expected: Vec<_> = keys.iter().map(|key| map.contains_key(*key)).collect();
            assert_eq!(space.exist(&keys).unwrap(), expected);
            for key in keys {
                let found = space.retrieve(key, RetrieveOptions::default()).ok();
                assert_eq!(found.as_ref().map(|it| &it.bytes), map.get(key));
            }
        }
    }

    fn step(&mut self) {
        let at = self.rng.below(2) as usize;
        match self.rng.below(100) {
            0..=59 => self.store(at),
            60..=79 => self.retrieve(at),
            80..=91 => self.delete(at),
            92 | 93 => self.delete_group(at),
            94..=96 => self.iterate(at),
            97 => self.reopen(),
            98 => self.drive.flush().unwrap(),
            _ => self.remake(at),
        }
    }
}

#[test]
fn any_commands_agree_with_maps_over_every_index() {
    for index in INDEXES {
        for seed in 0..4 {
            let mut lives = Lives::new(index, seed);
            for _ in 0..8 {
                (0..60).for_each(|_| lives.step());
                lives.check();
            }
            lives.reopen();
            lives.check();
        }
    }
}

#[test]
fn the_same_commands_give_the_same_operations_of_the_device() {
    let run = || {
        let mut lives = Lives::new(INDEXES[0], 7);
        (0..200).for_each(|_| lives.step());
        lives.drive.close().unwrap();
        (lives.device.operations(), lives.device.survivors(1).hash())
    };
    assert_eq!(run(), run());
}

/// Stores every key with `StoreOptions::default`: a plain post.
#[test]
fn keys_of_all_lengths_and_values_of_none_are_kept() {
    let device = Arc::new(SimDevice::instant());
    let drive = create_on(device, Config::tiny(), INDEXES[0], Durability::Never).unwrap();
    let space = add_space(&drive, "main");
    for bytes in 1..=255usize {
        let key = vec![bytes as u8; bytes];
        space.store(&key, &key[..bytes / 2], StoreOptions::default()).unwrap();
    }
    for bytes in 1..=255usize {
        let key = vec![bytes as u8; bytes];
        let found = space.retrieve(&key, RetrieveOptions::default()).unwrap();
        assert_eq!(found.bytes, key[..bytes / 2]);
    }
}
