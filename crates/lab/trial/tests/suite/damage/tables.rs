//! Tables with damaged pages.

use std::ops::ControlFlow;
use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::testing::{TableRequest, TestTable};
use nandex::{
    AbsorbOptions, AnyConfig, AnyTable, Result, Table, Threads, Value, Volume, VolumeOptions,
    bufferhash, count_shared,
};
use nandex_baseline::registry::{self, TableRow};
use nandex_trial::table::streamed;

use super::answers::Answers;
use super::subject::{NAME, Subject};

/// The number of keys at the beginning, which are put in two rounds; further ones are put meanwhile.
const KEYS: u64 = 1400;

/// The key that the last logged update puts.
const LAST: u64 = 5000;

/// The first key of another table that this one absorbs.
const ABSORBED: u64 = 6000;

/// A table.
pub struct DamagedTable {
    row: &'static TableRow,
    made: TestTable,
}

/// Returns one in `one_in` variants of each row.
pub fn all(one_in: u64) -> impl Iterator<Item = DamagedTable> {
    registry::tables().flat_map(move |(_, row)| {
        let variants = (0..row.testing.variants).step_by(one_in as usize);
        variants.map(move |variant| {
            let request = TableRequest {
                variant,
                key_bytes: 16,
                partitions: 2,
                keys: Some(KEYS + 1000),
                threads: 0,
                ..TableRequest::default()
            };
            DamagedTable { row, made: (row.testing.config)(&request) }
        })
    })
}

fn key(number: u64) -> [u8; 16] {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mixed.to_le_bytes());
    key[8..].copy_from_slice(&number.to_le_bytes());
    key
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[bytes.len() - 8..].try_into().unwrap())
}

/// Returns a value of a key: later rounds have greater ones.
fn value(key: u64, round: u64) -> [u8; 8] {
    (key << 8 | round).to_le_bytes()
}

fn shown(value: Option<Value>) -> Option<u64> {
    value.map(|value| number(&value))
}

/// Returns the content of another table that has absorbed this one.
fn absorbed(table: &AnyTable) -> Result<Vec<(u64, u64)>> {
    let options = VolumeOptions { threads: Threads::Inline, ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::new(MemoryDevice::new()), options)?;
    let config = bufferhash::Config { key_bytes: 16, segments: 64, ..bufferhash::Config::tiny() };
    let mut into = AnyTable::create(&volume, "into", &config.into())?;
    let watch = |_: f64| ControlFlow::Continue(());
    into.absorb(&[table.versions()?], &AbsorbOptions::default(), &watch)?;
    sorted(into.iter())
}

fn sorted(pairs: impl Iterator<Item = Result<(Vec<u8>, Value)>>) -> Result<Vec<(u64, u64)>> {
    let pairs = pairs.map(|pair| pair.map(|(key, value)| (number(&key), number(&value))));
    let mut all = pairs.collect::<Result<Vec<_>>>()?;
    all.sort_unstable();
    Ok(all)
}

impl Subject for DamagedTable {
    type Open = AnyTable;

    fn label(&self) -> String {
        self.made.label.clone()
    }

    fn create(&self, volume: &Volume) -> Result<AnyTable> {
        AnyTable::create_with(volume, NAME, &self.made.config, &self.made.options)
    }

    fn open(&self, volume: &Volume) -> Result<AnyTable> {
        AnyTable::open_with(volume, NAME, &self.made.options)
    }

    fn fill(&self, table: &AnyTable) {
        (0..KEYS).for_each(|it| table.insert(&key(it), &value(it, 0)).unwrap());
        (0..KEYS).step_by(7).for_each(|it| table.insert(&key(it), &value(it, 1)).unwrap());
        table.flush().unwrap();
    }

    fn log(&self, table: &AnyTable) {
        (0..KEYS).step_by(11).for_each(|it| table.insert(&key(it), &value(it, 2)).unwrap());
        (0..KEYS).skip(1).step_by(31).for_each(|it| table.remove(&key(it)).unwrap());
    }

    fn log_last(&self, table: &AnyTable) {
        table.insert(&key(LAST), &value(LAST, 0)).unwrap();
    }

    fn ask(&self, table: &AnyTable, answers: &mut Answers) {
        let stats = table.stats();
        answers.entries(stats.entries, &stats.lost_pages);
        let some = (0..KEYS).step_by(9).chain([LAST, LAST + 1]);
        let numbers: Vec<u64> = some.collect();
        let keys: Vec<_> = numbers.iter().map(|it| key(*it)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let all = |found: Vec<Option<Value>>| found.into_iter().map(shown).collect::<Vec<_>>();
        for (number, key) in numbers.iter().zip(&keys) {
            answers.ask_of("get", *number, table.get(key).map(shown));
        }
        answers.ask_of("contains", 3, table.contains(&key(3)));
        answers.ask("get_many", table.get_many(&keys).map(all));
        answers.ask("stream", streamed(table, &keys).map(all));
        answers.ask("iter", sorted(table.iter()));
        answers.left(table.iter_past_damage().map(|item| match item {
            Ok((key, value)) => Ok((number(&key), number(&value))),
            Err(damage) => Err(damage.page.0),
        }));
        answers.ask("warm_up", table.warm_up());
    }

    fn lend(&self, table: &AnyTable, answers: &mut Answers) {
        if self.row.merges_into.is_none() {
            return;
        }
        answers.ask("absorb as source", absorbed(table));
        let watch = |_: f64| ControlFlow::Continue(());
        let counted = table
            .versions()
            .and_then(|versions| count_shared(&[versions], &AbsorbOptions::default(), &watch));
        answers.ask("count_shared", counted.map(|found| found.keys));
    }

    fn update(&self, table: &mut AnyTable, answers: &mut Answers) {
        let put = |table: &AnyTable, it: u64, round| table.insert(&key(it), &value(it, round));
        for it in [KEYS, 20, 21] {
            answers.update("insert", &[it], put(table, it, 3));
        }
        for it in [KEYS + 1, 22, 23] {
            answers.update("remove", &[it], table.remove(&key(it)));
        }
        for it in [KEYS + 2, 24, 25, 32] {
            let found = table.get_or_insert(&key(it), &value(it, 3));
            answers.update("get_or_insert", &[it], found.map(shown));
        }
        for it in [KEYS + 3, 26] {
            let found = table.insert_if_absent(&key(it), &value(it, 3));
            answers.update("insert_if_absent", &[it], found);
        }
        let several: Vec<u64> = (KEYS + 10..KEYS + 40).chain(40..60).collect();
        let pairs: Vec<_> = several.iter().map(|it| (key(*it), value(*it, 3))).collect();
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        answers.update("insert_many", &several, table.insert_many(&pairs));
        let several: Vec<u64> = (KEYS + 50..KEYS + 80).chain(70..90).collect();
        let pairs: Vec<_> = several.iter().map(|it| (key(*it), value(*it, 3))).collect();
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        let found = table.get_or_insert_many(&pairs);
        let found = found.map(|found| found.into_iter().map(shown).collect::<Vec<_>>());
        answers.update("get_or_insert_many", &several, found);
        self.absorb(table, answers);
        answers.ask("sync", table.sync());
        answers.ask("flush", table.flush());
    }

    fn close(&self, table: AnyTable) -> Result<()> {
        table.close()
    }
}

impl DamagedTable {
    /// Absorbs another table, which is whole.
    fn absorb(&self, table: &mut AnyTable, answers: &mut Answers) {
        if self.row.merges_into != Some(table.kind()) {
            return;
        }
        let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny()).unwrap();
        let config: AnyConfig =
            bufferhash::Config { key_bytes: 16, ..bufferhash::Config::tiny() }.into();
        let other = AnyTable::create(&volume, "other", &config).unwrap();
        let numbers: Vec<u64> = (ABSORBED..ABSORBED + 100).chain(100..200).collect();
        for it in &numbers {
            other.insert(&key(*it), &value(*it, 3)).unwrap();
        }
        let watch = |_: f64| ControlFlow::Continue(());
        let versions = other.versions().unwrap();
        let absorbed = table.absorb(&[versions], &AbsorbOptions::default(), &watch);
        answers.update("absorb as target", &numbers, absorbed.map(|it| it.put));
    }
}
