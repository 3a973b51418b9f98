//! Maps of keys and values of any size with damaged pages, over each kind of table.

use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig};
use nandex::raw::large::{Change, Look, PairUpdate, Present};
use nandex::testing::{TableRequest, TestTable};
use nandex::{AnyTable, LargeTable, Result, Volume, WhenFull};
use nandex_baseline::registry;

use super::answers::Answers;
use super::subject::{NAME, Subject};

/// The number of keys at the beginning.
const KEYS: u64 = 500;

/// The key that the last logged update puts.
const LAST: u64 = 5000;

/// The name of the table of references.
const TABLE: &str = "t-keys";

const VALUES: ValuesConfig =
    ValuesConfig { segment_pages: 6, segments: 24, io_chunk_pages: 2, when_full: WhenFull::Refuse };

/// A map over one kind of table.
pub struct DamagedMap {
    made: TestTable,
}

/// Returns a map over the first variant of each table that can store references.
pub fn all() -> impl Iterator<Item = DamagedMap> {
    registry::tables().map(|(_, row)| {
        let request = TableRequest {
            key_bytes: TABLE_KEY_BYTES,
            value_bytes: TABLE_VALUE_BYTES,
            partitions: 2,
            buffer_pages: 1,
            keys: Some(KEYS + 1000),
            threads: 0,
            ..TableRequest::default()
        };
        DamagedMap { made: (row.testing.config)(&request) }
    })
}

/// Returns a key; keys have many lengths.
fn key(number: u64) -> Vec<u8> {
    let mut key = number.to_le_bytes().to_vec();
    key.resize(8 + (number * 37 % 90) as usize, 0x5a);
    key
}

/// Returns the value of a key: later rounds have greater ones. Some cross from one page to the next.
fn value(key: u64, round: u64) -> Vec<u8> {
    let mut value = (key << 8 | round).to_le_bytes().to_vec();
    value.resize(if key.is_multiple_of(60) { 5000 } else { 8 + (key * 17 % 300) as usize }, 0xa5);
    value
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}

fn shown(value: Option<Vec<u8>>) -> Option<(u64, usize)> {
    value.map(|value| (number(&value), value.len()))
}

impl Subject for DamagedMap {
    type Open = LargeTable<AnyTable>;

    fn label(&self) -> String {
        format!("map over {}", self.made.label)
    }

    fn create(&self, volume: &Volume) -> Result<Self::Open> {
        let TestTable { config, options, .. } = &self.made;
        let table = AnyTable::create_with(volume, TABLE, config, options)?;
        LargeTable::create(volume, NAME, table, VALUES)
    }

    fn open(&self, volume: &Volume) -> Result<Self::Open> {
        let table = AnyTable::open_with(volume, TABLE, &self.made.options)?;
        LargeTable::open(volume, NAME, table)
    }

    fn fill(&self, map: &Self::Open) {
        (0..KEYS).for_each(|it| map.put(&key(it), &value(it, 0)).unwrap());
        (0..KEYS).step_by(7).for_each(|it| map.put(&key(it), &value(it, 1)).unwrap());
        map.flush().unwrap();
    }

    fn log(&self, map: &Self::Open) {
        (0..KEYS).step_by(11).for_each(|it| map.put(&key(it), &value(it, 2)).unwrap());
        (1..KEYS).step_by(31).for_each(|it| map.remove(&key(it)).unwrap());
        map.sync().unwrap();
    }

    fn log_last(&self, map: &Self::Open) {
        map.put(&key(LAST), &value(LAST, 0)).unwrap();
        map.sync().unwrap();
    }

    fn ask(&self, map: &Self::Open, answers: &mut Answers) {
        let stats = map.stats().table;
        answers.entries(stats.entries, &stats.lost_pages);
        let numbers: Vec<u64> = (0..KEYS).step_by(9).chain([LAST, LAST + 1]).collect();
        let keys: Vec<_> = numbers.iter().map(|it| key(*it)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        for (number, key) in numbers.iter().zip(&keys) {
            answers.ask_of("get", *number, map.get(key).map(shown));
        }
        let all = |found: Vec<Option<Vec<u8>>>| found.into_iter().map(shown).collect::<Vec<_>>();
        answers.ask("get_many", map.get_many(&keys).map(all));
        answers.ask("value_lengths", map.value_lengths(&keys));
        answers.ask_of("get_part", 5, map.get_part(&key(5), 2..7));
        let pairs = map.iter().and_then(|pairs| {
            let pair = |(key, value): (Vec<u8>, Vec<u8>)| (number(&key), number(&value));
            let mut all = pairs.map(|it| it.map(pair)).collect::<Result<Vec<_>>>()?;
            all.sort_unstable();
            Ok(all)
        });
        answers.ask("iter", pairs);
        let listed = map.keys().and_then(|keys| {
            let mut all = keys.map(|it| it.map(|it| it.key)).collect::<Result<Vec<_>>>()?;
            all.sort_unstable();
            Ok(all)
        });
        answers.ask("keys", listed);
        match map.scan(None, 50, &|_| true) {
            Ok(prints) => {
                answers.ask("scan", Ok(&prints));
                answers.ask("keys_of", map.keys_of(&prints).map(|found| found.len()));
                answers.ask("pairs_of", map.pairs_of(&prints).map(|found| found.len()));
            }
            Err(error) => answers.ask("scan", Err::<(), _>(error)),
        }
        match map.iter_past_damage() {
            Ok(items) => answers.left(items.map(|item| match item {
                Ok((key, value)) => Ok((number(&key), number(&value))),
                Err(damage) => Err(damage.page.0),
            })),
            Err(error) => answers.ask("iter_past_damage", Err::<(), _>(error)),
        }
    }

    fn lend(&self, _map: &Self::Open, _answers: &mut Answers) {}

    fn update(&self, map: &mut Self::Open, answers: &mut Answers) {
        for it in [KEYS, 20, 21] {
            answers.update("put", &[it], map.put(&key(it), &value(it, 3)));
        }
        for it in [KEYS + 1, 25] {
            let put = map.put_if_absent(&key(it), &value(it, 3));
            answers.update("put_if_absent", &[it], put);
        }
        for it in [KEYS + 2, 30] {
            answers.update("remove", &[it], map.remove(&key(it)));
        }
        let several: Vec<u64> = (KEYS + 10..KEYS + 40).chain(40..60).collect();
        let pairs: Vec<_> = several.iter().map(|it| (key(*it), value(*it, 3))).collect();
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        answers.update("put_many", &several, map.put_many(&pairs));
        let (changed, new) = (key(65), value(65, 3));
        let update = PairUpdate { key: &changed, look: Look::Value, put_bytes: 300 };
        let mut decide = |_: Option<Present<'_>>| Change::Put(new.clone().into());
        answers.update("change", &[65], map.change(update, &mut decide));
        answers.ask("sync", map.sync());
        answers.ask("flush", map.flush());
    }

    fn close(&self, map: Self::Open) -> Result<()> {
        map.flush()?;
        map.close()
    }
}
