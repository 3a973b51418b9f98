//! Iterators over data that changes, and in pieces.

use std::collections::BTreeSet;

use nandex_kvssd::{Config, DeleteMissing, GroupFilter, IteratorKind, KeySpace, StoreOptions};

use crate::common::{add_space, drive, key, value};

fn all(space: &KeySpace, filter: GroupFilter) -> BTreeSet<Vec<u8>> {
    let number = space.open_iterator(filter, IteratorKind::Keys).unwrap();
    let found = space.iterate(number, u64::MAX).unwrap();
    assert!(found.is_end);
    space.close_iterator(number).unwrap();
    found.pairs.into_iter().map(|pair| pair.key).collect()
}

#[test]
fn keys_that_stay_come_exactly_once_while_others_change_and_records_move() {
    let (_drive, space) = drive(Config::tiny());
    let stays: BTreeSet<_> = (0..100).map(|number| key(2 * number)).collect();
    for number in 0..200 {
        space.store(&key(number), &value(number, 300), StoreOptions::default()).unwrap();
    }
    let number = space.open_iterator(GroupFilter::default(), IteratorKind::Keys).unwrap();
    let (mut found, mut round) = (Vec::new(), 0);
    loop {
        let part = space.iterate(number, 200).unwrap();
        found.extend(part.pairs.into_iter().map(|pair| pair.key));
        if part.is_end {
            break;
        }
        for odd in (1..200).step_by(2) {
            // Values of new lengths move records, and segments are cleaned.
            let value = value(odd + round, 300 + (round as usize * 7) % 90);
            if (odd + round) % 3 == 0 {
                space.delete(&key(odd), DeleteMissing::Ignore).unwrap();
            } else {
                space.store(&key(odd), &value, StoreOptions::default()).unwrap();
            }
        }
        round += 1;
    }
    assert!(round > 10, "{round}");
    let once: BTreeSet<_> = found.iter().cloned().collect();
    assert_eq!(once.len(), found.len(), "no key came twice");
    assert!(stays.is_subset(&once));
}

#[test]
fn masks_choose_bits_of_the_first_four_bytes() {
    let (_drive, space) = drive(Config::tiny());
    let keys: Vec<Vec<u8>> = (0..=255u8)
        .map(|byte| vec![byte, b'x', byte / 2, 1, 9])
        .chain([vec![7], vec![7, b'x'], vec![0]])
        .collect();
    for key in &keys {
        space.store(key, b"", StoreOptions::default()).unwrap();
    }
    let filters = [
        GroupFilter::default(),
        GroupFilter::prefix(b"\x07"),
        GroupFilter::prefix(b"\x07x\x03\x01 and more"),
        GroupFilter { mask: [0x81, 0, 0, 0], pattern: [0x80, 0, 0, 0] },
        GroupFilter { mask: [0, 0xff, 0x40, 0], pattern: [0, b'x', 0x40, 0] },
        GroupFilter { mask: [0, 0xff, 0, 0], pattern: [0, 0, 0, 0] },
    ];
    for filter in filters {
        let passes = |key: &&Vec<u8>| {
            (0..4)
                .all(|at| key.get(at).copied().unwrap_or(0) & filter.mask[at] == filter.pattern[at])
        };
        let expected: BTreeSet<_> = keys.iter().filter(passes).cloned().collect();
        assert!(!expected.is_empty());
        assert_eq!(all(&space, filter), expected, "{filter:?}");
    }
}

#[test]
fn an_iterator_sees_its_key_space_only_and_ends_with_it() {
    let (drive, one) = drive(Config::tiny());
    let two = add_space(&drive, "two");
    one.store(b"first", b"1", StoreOptions::default()).unwrap();
    two.store(b"second", b"2", StoreOptions::default()).unwrap();
    assert_eq!(all(&one, GroupFilter::default()), [b"first".to_vec()].into());
    let number = two.open_iterator(GroupFilter::default(), IteratorKind::Pairs).unwrap();
    assert!(one.iterate(number, 100).is_err(), "another key space has it");
    let part = two.iterate(number, 100).unwrap();
    assert_eq!(part.pairs[0].value.as_deref(), Some(&b"2"[..]));
    assert!(part.is_end && two.iterate(number, 100).unwrap().pairs.is_empty());
    two.close().unwrap();
    let two = drive.open_key_space("two").unwrap();
    assert!(two.iterate(number, 100).is_err(), "closing the key space has closed it");
}
