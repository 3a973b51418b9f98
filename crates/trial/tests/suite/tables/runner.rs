//! The runner: does the same to a table and to the oracle, and compares what they answer.

use std::collections::{HashMap, HashSet};

use nandex::oracle::MapTable;
use nandex::{Error, Result, Table, Value};
use proptest::prelude::*;

/// What opens the table under test, again and again on the same ground.
pub trait Maker {
    type Made: Table;

    /// Opens it, or makes it the first time.
    fn open(&mut self) -> Self::Made;

    /// Closes it, saying what went wrong.
    fn close(&mut self, table: Self::Made) -> Result<()>;

    /// All entries of it.
    fn pairs(&self, table: &Self::Made) -> Vec<(Vec<u8>, Value)>;

    fn key(&self, number: u64) -> Vec<u8>;
    fn value(&self, number: u64) -> Vec<u8>;
    fn law(&self) -> Law;
}

/// What a get may answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Law {
    /// As the oracle, always.
    Exact,
    /// As the oracle for keys put within so many of the last puts; others may be gone. Never a stale
    /// value, never a removed key.
    Recent(u64),
    /// As `Recent`, where lookups count too: they make entries young, and so others old.
    RecentlyUsed(u64),
    /// As the oracle; but a put or remove may be refused as full, and has then not happened.
    Refusing,
}

/// Something done to a table. Keys and lengths are numbers; a run is of neighbouring keys.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    Insert(u64),
    InsertRun(u64, u64),
    InsertMany(u64, u64),
    Remove(u64),
    RemoveRun(u64, u64),
    Get(u64),
    GetRun(u64, u64),
    GetMany(u64, u64),
    Contains(u64),
    Sync,
    Flush,
    Reopen,
    Iterate,
}

/// Keys are below this, so that most acts meet keys that were there before.
pub const KEYS: u64 = 3000;

pub fn acts(len: usize) -> impl Strategy<Value = Vec<Act>> {
    let (key, short, long) = (0..KEYS, 1..50u64, 100..700u64);
    let act = prop_oneof![
        4 => key.clone().prop_map(Act::Insert),
        6 => (key.clone(), long.clone()).prop_map(|(k, n)| Act::InsertRun(k, n)),
        4 => (key.clone(), long.clone()).prop_map(|(k, n)| Act::InsertMany(k, n)),
        3 => key.clone().prop_map(Act::Remove),
        4 => (key.clone(), short.clone()).prop_map(|(k, n)| Act::RemoveRun(k, n)),
        3 => key.clone().prop_map(Act::Get),
        3 => (key.clone(), short).prop_map(|(k, n)| Act::GetRun(k, n)),
        4 => (key.clone(), long).prop_map(|(k, n)| Act::GetMany(k, n)),
        1 => key.prop_map(Act::Contains),
        1 => Just(Act::Sync),
        2 => Just(Act::Flush),
        2 => Just(Act::Reopen),
        1 => Just(Act::Iterate),
    ];
    prop::collection::vec(act, len)
}

/// Looks up as a batch does, but key after key.
fn streamed(table: &impl Table, keys: &[&[u8]]) -> Vec<Option<Value>> {
    let mut found = vec![None; keys.len()];
    let mut told = 0;
    let mut stream = table.stream().unwrap();
    let mut tell = |(token, value): (u64, Option<Value>)| {
        let answer: &mut Option<Option<Value>> = &mut found[usize::try_from(token).unwrap()];
        assert_eq!(answer.replace(value), None, "a lookup is answered twice");
        told += 1;
    };
    for (token, key) in (0..).zip(keys) {
        stream.push(key, token).unwrap();
        stream.poll().unwrap().into_iter().for_each(&mut tell);
    }
    while let Some(answer) = stream.pull().unwrap() {
        tell(answer);
    }
    assert_eq!((told, stream.pending()), (keys.len(), 0));
    found.into_iter().flatten().collect()
}

/// A table and its oracle.
pub struct Runner<M: Maker> {
    maker: M,
    table: Option<M::Made>,
    oracle: MapTable,
    /// When each key was put last, in puts.
    put_at: HashMap<u64, u64>,
    puts: u64,
    /// When each key was put last, in puts and lookups.
    acted_at: HashMap<u64, u64>,
    lookups: u64,
    /// Keys that were put or removed at all.
    known: HashSet<u64>,
    /// What every question was answered, to be compared with other configurations' answers.
    pub transcript: Vec<bool>,
}

impl<M: Maker> Runner<M> {
    pub fn new(mut maker: M) -> Self {
        let table = maker.open();
        let oracle = MapTable::new(table.key_bytes(), table.value_bytes());
        Self {
            maker,
            table: Some(table),
            oracle,
            put_at: HashMap::new(),
            puts: 0,
            acted_at: HashMap::new(),
            lookups: 0,
            known: HashSet::new(),
            transcript: Vec::new(),
        }
    }

    fn table(&self) -> &M::Made {
        self.table.as_ref().unwrap()
    }

    /// Does all acts, then asks for every key, before and after one more reopening.
    pub fn run(&mut self, acts: &[Act]) {
        for act in acts {
            self.act(*act);
        }
        self.check_all();
        self.act(Act::Reopen);
        self.check_all();
        self.act(Act::Iterate);
    }

    fn act(&mut self, act: Act) {
        let run = |key: u64, count: u64| (key..key + count).map(|key| key % KEYS);
        match act {
            Act::Insert(key) => self.insert(key),
            Act::InsertRun(key, count) => run(key, count).for_each(|key| self.insert(key)),
            Act::InsertMany(key, count) => self.insert_many(&run(key, count).collect::<Vec<_>>()),
            Act::Remove(key) => self.remove(key),
            Act::RemoveRun(key, count) => run(key, count).for_each(|key| self.remove(key)),
            Act::Get(key) => self.check(key),
            Act::GetRun(key, count) => run(key, count).for_each(|key| self.check(key)),
            Act::GetMany(key, count) => self.check_many(&run(key, count).collect::<Vec<_>>()),
            Act::Contains(key) => {
                let found = self.table().contains(&self.maker.key(key)).unwrap();
                assert_eq!(found, self.table().get(&self.maker.key(key)).unwrap().is_some());
            }
            Act::Sync => self.table().sync().unwrap(),
            Act::Flush => self.table().flush().unwrap(),
            Act::Reopen => self.reopen(),
            Act::Iterate => self.iterate(),
        }
    }

    /// Whether a put or remove has happened; only a refusal that the law knows is no failure.
    fn happened(&self, result: Result<()>) -> bool {
        match result {
            Ok(()) => true,
            Err(Error::Full { .. }) if self.maker.law() == Law::Refusing => false,
            Err(error) => panic!("{error}"),
        }
    }

    fn note(&mut self, key: u64, value: Option<&[u8]>) {
        let bytes = self.maker.key(key);
        self.puts += 1;
        self.put_at.insert(key, self.puts);
        self.acted_at.insert(key, self.puts + self.lookups);
        self.known.insert(key);
        match value {
            Some(value) => self.oracle.insert(&bytes, value).unwrap(),
            None => self.oracle.remove(&bytes).unwrap(),
        }
    }

    fn insert(&mut self, key: u64) {
        let value = self.maker.value(self.puts << 20 | key);
        let result = self.table().insert(&self.maker.key(key), &value);
        if self.happened(result) {
            self.note(key, Some(&value));
        }
    }

    fn insert_many(&mut self, keys: &[u64]) {
        let pairs: Vec<_> = (self.puts..)
            .zip(keys)
            .map(|(put, &key)| (self.maker.key(key), self.maker.value(put << 20 | key)))
            .collect();
        let borrowed: Vec<_> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        let result = self.table().insert_many(&borrowed);
        if self.happened(result) {
            for (key, (_, value)) in keys.iter().zip(&pairs) {
                self.note(*key, Some(value));
            }
            return;
        }
        // Each pair of a refused batch is in or not; the table is asked which.
        for (key, (bytes, value)) in keys.iter().zip(&pairs) {
            let found = self.table().get(bytes).unwrap();
            let before = self.oracle.get(bytes).unwrap();
            if found.is_some_and(|found| *found == **value) {
                self.note(*key, Some(value));
            } else {
                assert_eq!(found, before, "key {key} after a refused batch");
            }
        }
    }

    fn remove(&mut self, key: u64) {
        let result = self.table().remove(&self.maker.key(key));
        if self.happened(result) {
            self.note(key, None);
        }
    }

    fn check(&mut self, key: u64) {
        let found = self.table().get(&self.maker.key(key)).unwrap();
        self.judge(key, found);
    }

    fn check_many(&mut self, keys: &[u64]) {
        let bytes: Vec<_> = keys.iter().map(|&key| self.maker.key(key)).collect();
        let borrowed: Vec<_> = bytes.iter().map(|key| &key[..]).collect();
        // Batches and streams have to give the same.
        let found = if keys.len().is_multiple_of(2) {
            self.table().get_many(&borrowed).unwrap()
        } else {
            streamed(self.table(), &borrowed)
        };
        assert_eq!(found.len(), keys.len());
        for (key, found) in keys.iter().zip(found) {
            self.judge(*key, found);
        }
    }

    fn check_all(&mut self) {
        // Keys past the range were never put.
        let all: Vec<_> = (0..KEYS + 200).collect();
        self.check_many(&all);
        (0..KEYS).step_by(7).for_each(|key| self.check(key));
    }

    fn judge(&mut self, key: u64, found: Option<Value>) {
        let expected = self.oracle.get(&self.maker.key(key)).unwrap();
        self.transcript.push(found.is_some());
        self.lookups += 1;
        if found != expected {
            self.judge_difference(key, found, expected);
        }
    }

    fn judge_difference(&self, key: u64, found: Option<Value>, expected: Option<Value>) {
        let put_at = self.put_at.get(&key);
        let since = put_at.map(|at| self.puts - at);
        let place = format!("key {key}, put {since:?} puts ago, found {found:?}");
        assert!(found.is_none(), "{place} where {expected:?} is");
        match self.maker.law() {
            Law::Recent(window) => assert!(since.unwrap() > window, "{place}: gone too soon"),
            Law::RecentlyUsed(window) => {
                let acts = self.puts + self.lookups - self.acted_at[&key];
                assert!(acts > window, "{place}, {acts} acts ago: gone too soon");
            }
            Law::Exact | Law::Refusing => panic!("{place}: {expected:?} is missing"),
        }
    }

    fn reopen(&mut self) {
        let table = self.table.take().unwrap();
        self.maker.close(table).unwrap();
        self.table = Some(self.maker.open());
    }

    fn iterate(&mut self) {
        let mut seen = HashSet::new();
        for (bytes, value) in self.maker.pairs(self.table()) {
            let key = super::support::number_of(&bytes);
            assert_eq!(bytes, self.maker.key(key));
            assert!(seen.insert(key), "key {key} comes twice");
            self.judge(key, Some(value));
        }
        let unseen: Vec<_> = self.known.iter().filter(|key| !seen.contains(key)).copied().collect();
        for key in unseen {
            self.judge(key, None);
        }
    }
}
