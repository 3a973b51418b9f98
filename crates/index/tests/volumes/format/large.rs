//! Tables of keys and values of any size: those of version 1 whose value logs have a fixed size, and those that grew.

use nandex::bufferhash::{Config, Policy};
use nandex::device::MemoryDevice;
use nandex::large::ValuesConfig;
use nandex::raw::bufferhash::growing;
use nandex::raw::store::hash::HashKind;
use nandex::{AnyConfig, AnyTable, LargeTable, OpenOptions, Volume, WhenFull};

use super::{inline, left_by, open};

/// Fixtures whose value logs count nothing, as only the command of that time wrote them: `create --entries`, with
/// `--policy fifo` for the last, and `load`; the second is a file as it was while the command had it open.
pub const OF_THEN: [&str; 3] = ["v1-large-closed", "v1-large-crash", "v1-large-overwrite"];

fn index(name: &str) -> String {
    format!("{name}-keys")
}

fn fixed_index(policy: Policy) -> AnyConfig {
    Config { key_bytes: 16, value_bytes: 16, policy, ..Config::tiny() }.into()
}

fn options() -> OpenOptions {
    OpenOptions::default().inline()
}

fn create(
    volume: &Volume,
    name: &str,
    index_config: &AnyConfig,
    values: ValuesConfig,
) -> LargeTable<AnyTable> {
    let table = AnyTable::create_with(volume, &index(name), index_config, &options()).unwrap();
    LargeTable::create(volume, name, table, values).unwrap()
}

fn key(number: u64) -> Vec<u8> {
    vec![(number % 251) as u8; 1 + (number % 90) as usize]
        .into_iter()
        .chain(number.to_le_bytes())
        .collect()
}

fn value(number: u64) -> Vec<u8> {
    let bytes = if number % 50 == 9 { 9000 } else { number * 37 % 700 };
    vec![(number % 127) as u8; bytes as usize]
}

/// Puts each number, puts every third again with another value, and removes every seventh.
fn fill(table: &LargeTable<AnyTable>, keys: std::ops::Range<u64>) {
    for number in keys {
        table.put(&key(number), &value(number)).unwrap();
        if number % 3 == 0 {
            table.put(&key(number), &value(number + 1)).unwrap();
        }
        if number % 7 == 6 {
            table.remove(&key(number)).unwrap();
        }
    }
}

fn expected(number: u64) -> Option<Vec<u8>> {
    let of = if number.is_multiple_of(3) { number + 1 } else { number };
    (number % 7 != 6).then(|| value(of))
}

fn opened(volume: &Volume, name: &str) -> LargeTable<AnyTable> {
    let table = AnyTable::open(volume, &index(name)).unwrap();
    LargeTable::open(volume, name, table).unwrap()
}

/// Returns the keys of the old fixtures, and their values.
fn of_then(number: u64) -> (String, Vec<u8>) {
    let value = number.to_string().repeat((number % 60 + 1) as usize);
    (format!("key_{number}"), value.into_bytes())
}

fn get_of_then(table: &LargeTable<AnyTable>, number: u64) -> Option<Vec<u8>> {
    table.get(of_then(number).0.as_bytes()).unwrap()
}

/// Every third of 3,000 keys was put again with the next one's value, and then every seventh removed.
#[test]
fn a_table_of_any_size_that_version_1_closed_opens_and_holds_everything() {
    let volume = open("v1-large-closed");
    let table = opened(&volume, "main");
    for number in 0..3000 {
        let of = if number % 3 == 0 { number + 1 } else { number };
        let expected = (number % 7 != 6).then(|| of_then(of).1);
        assert_eq!(get_of_then(&table, number), expected, "{number}");
    }
    assert_eq!(table.iter().unwrap().count(), 2572);
    table.put(b"more", b"goes in").unwrap();
    table.close().unwrap();
    let table = opened(&volume, "main");
    assert_eq!(table.get(b"more").unwrap().as_deref(), Some(&b"goes in"[..]));
}

#[test]
fn a_table_of_any_size_that_version_1_left_in_a_crash_opens_and_holds_what_was_durable() {
    let volume = open("v1-large-crash");
    let table = opened(&volume, "main");
    for number in 0..3000 {
        let expected = (number < 2048).then(|| of_then(number).1);
        assert_eq!(get_of_then(&table, number), expected, "{number}");
    }
}

#[test]
fn a_log_that_version_1_overwrote_counts_from_now_on() {
    let volume = open("v1-large-overwrite");
    let table = opened(&volume, "main");
    let found: Vec<_> = (0..6000).filter(|it| get_of_then(&table, *it).is_some()).collect();
    assert_eq!(found, (6000 - found.len() as u64..6000).collect::<Vec<_>>(), "the newest are left");
    assert!((4000..5000).contains(&found.len()), "{}", found.len());
    let life = |table: &LargeTable<AnyTable>| {
        let stats = table.stats().values;
        (stats.overwritten_segments_life, stats.overwritten_records_life)
    };
    assert_eq!(life(&table), (0, 0), "none that it knows");
    // A checkpoint in the background frees segments, so the number of puts that a segment takes is not fixed.
    for number in 6000..60_000 {
        let (key, value) = of_then(number);
        table.put(key.as_bytes(), &value).unwrap();
        if life(&table).0 > 4 {
            break;
        }
    }
    let stats = table.stats().values;
    let counted = (stats.overwritten_segments_life, stats.overwritten_records_life);
    assert_eq!(counted, (stats.overwritten_segments, stats.overwritten_records));
    assert!(counted.0 > 4 && counted.1 > 1000, "{counted:?}");
    table.close().unwrap();
    let reopened = life(&opened(&volume, "main"));
    assert!(reopened >= counted, "{reopened:?} after {counted:?}");
}

const GROWN: ValuesConfig =
    ValuesConfig { segment_pages: 2, segments: 5, io_chunk_pages: 2, when_full: WhenFull::Grow };

/// The number of keys of the table that grew.
const GROWN_KEYS: u64 = 1000;

#[test]
fn tables_of_any_size_that_grew_open_and_hold_everything() {
    for fixture in ["v1-large-grown-closed", "v1-large-grown-crash"] {
        let volume = open(fixture);
        assert_eq!(ValuesConfig::of(&volume, "grown").unwrap(), GROWN);
        let table = opened(&volume, "grown");
        for number in 0..GROWN_KEYS {
            assert_eq!(table.get(&key(number)).unwrap(), expected(number), "{fixture}, {number}");
        }
        let stats = table.stats().values;
        assert!(stats.growths > 5, "{fixture}: {stats:?}");
        table.put(&key(1), &vec![7; 300_000]).unwrap();
        assert_eq!(table.get(&key(1)).unwrap(), Some(vec![7; 300_000]), "it grows on");
        assert!(table.stats().values.growths > stats.growths);
        let overwrite = opened(&volume, "overwrite").stats().values;
        assert!(overwrite.overwritten_segments_life > 10, "{fixture}: {overwrite:?}");
        assert!(overwrite.overwritten_records_life > 100, "{fixture}: {overwrite:?}");
    }
}

pub fn write_grown(is_closed: bool) -> MemoryDevice {
    let (device, volume) = inline(HashKind::default());
    let tiny = growing::Config::tiny();
    let first = Config { key_bytes: 16, value_bytes: 16, ..tiny.first };
    let grown = create(&volume, "grown", &growing::Config { first, ..tiny }.into(), GROWN);
    let values = ValuesConfig { when_full: WhenFull::EvictOldest, ..ValuesConfig::tiny() };
    let overwrite = create(&volume, "overwrite", &fixed_index(Policy::Fifo), values);
    fill(&overwrite, 0..GROWN_KEYS);
    for keys in [0..GROWN_KEYS / 2, GROWN_KEYS / 2..GROWN_KEYS] {
        fill(&grown, keys);
        grown.sync().unwrap();
    }
    left_by((device, volume), [grown, overwrite], is_closed.then_some(LargeTable::close))
}
