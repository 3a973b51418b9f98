//! Read-modify-write updates, parts and lengths of values: for keys alone in their record, and for keys that
//! share one.

use std::borrow::Cow;
use std::sync::Arc;

use nandex::Durability;
use nandex::device::MemoryDevice;
use nandex::raw::large::{Change, Look, PairUpdate};
use nandex::raw::store::hash::HashKind;
use nandex::{AnyTable, LargeTable, WhenFull};
use nandex_trial::Contract;

use super::support::{Setup, value};

/// Returns a key. Under the identity, all keys with the same first 16 bytes share a record; under XXH3 none
/// do.
fn key(number: u8) -> Vec<u8> {
    [&[7; 16][..], &[number]].concat()
}

fn tables() -> impl Iterator<Item = LargeTable<AnyTable>> {
    [HashKind::Identity, HashKind::Xxh3].into_iter().map(|hash| {
        let setup = Setup { hash, ..Setup::new(Durability::Never, WhenFull::Refuse).roomy() };
        setup.create_on(Arc::new(MemoryDevice::new())).unwrap()
    })
}

fn update(key: &[u8], look: Look) -> PairUpdate<'_> {
    PairUpdate { key, look, put_bytes: 0 }
}

#[test]
fn a_decision_sees_what_is_there_and_leaves_other_keys_alone() {
    for table in tables() {
        for number in 0..4 {
            let (key, value) = (key(number), value(number.into(), 900));
            table
                .change(update(&key, Look::Length), &mut |present| {
                    assert!(present.is_none());
                    Change::Put(Cow::Borrowed(&value[..]))
                })
                .unwrap();
        }
        table.flush().unwrap();
        let appended = [&value(2, 900)[..], b"more"].concat();
        table
            .change(update(&key(2), Look::Value), &mut |present| {
                let old = present.unwrap().value.unwrap();
                Change::Put([old, b"more"].concat().into())
            })
            .unwrap();
        table
            .change(update(&key(1), Look::Length), &mut |present| {
                assert_eq!(present.unwrap().value_bytes, 900);
                Change::Remove
            })
            .unwrap();
        table.change(update(&key(3), Look::Length), &mut |_| Change::Keep).unwrap();
        table.change(update(&key(9), Look::Value), &mut |_| Change::Remove).unwrap();
        let found = [0, 1, 2, 3, 9].map(|number| table.get(&key(number)).unwrap());
        let expected = [Some(value(0, 900)), None, Some(appended), Some(value(3, 900)), None];
        assert_eq!(found, expected);
    }
}

#[test]
fn a_batch_sees_its_own_earlier_changes() {
    for table in tables() {
        table.put(&key(0), b"0").unwrap();
        let keys = [key(0), key(1), key(0), key(1), key(2)];
        let updates = keys.each_ref().map(|key| update(key, Look::Length));
        let mut seen = Vec::new();
        let results = table.change_many(&updates, &mut |index, present| {
            seen.push(present.map(|it| it.value_bytes));
            Change::Put(vec![1; index + 10].into())
        });
        assert!(results.unwrap().iter().all(Result::is_ok));
        assert_eq!(seen, [Some(1), None, Some(10), Some(11), None]);
        let long = [vec![0; 70_000], key(3)];
        let updates = long.each_ref().map(|key| update(key, Look::Length));
        let results = table.change_many(&updates, &mut |_, _| Change::Put(Cow::Borrowed(b"x")));
        let are_ok: Vec<_> = results.unwrap().iter().map(Result::is_ok).collect();
        assert_eq!(are_ok, [false, true], "a key that is too long stops no other");
    }
}

#[test]
fn parts_and_lengths_are_those_of_the_whole_value() {
    for table in tables() {
        for number in 0..3 {
            table.put(&key(number), &value(number.into(), 9000)).unwrap();
        }
        for _ in 0..2 {
            for (start, end) in [(0, 0), (0, 10), (4090, 4100), (8000, 9999), (9000, 9001)] {
                let part = table.get_part(&key(1), start..end).unwrap().unwrap();
                let whole = value(1, 9000);
                let end = whole.len().min(end as usize);
                assert_eq!(part.bytes, whole[start as usize..end], "{start}..{end}");
                assert_eq!(part.value_bytes, 9000);
            }
            assert_eq!(table.get_part(&key(7), 0..9).unwrap(), None);
            let keys = [0, 7, 2].map(key);
            let keys = keys.each_ref().map(|key| &key[..]);
            assert_eq!(table.value_lengths(&keys).unwrap(), [Some(9000), None, Some(9000)]);
            table.flush().unwrap();
        }
    }
}
