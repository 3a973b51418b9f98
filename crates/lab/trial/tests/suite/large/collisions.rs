//! Keys with one fingerprint. Under the identity as hash function, these are all keys with the same first 16
//! bytes.

use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::raw::store::hash::HashKind;
use nandex::{Durability, WhenFull};
use nandex_trial::Contract;

use super::support::{Setup, value};

fn colliding(number: u8) -> Vec<u8> {
    [&[7; 16][..], &[number]].concat()
}

#[test]
fn keys_with_one_fingerprint_are_all_kept_found_updated_and_removed() {
    let mut setup = Setup::new(Durability::Never, WhenFull::Refuse).roomy();
    setup.hash = HashKind::Identity;
    let device = MemoryDevice::new();
    let mut table = setup.create_on(Arc::new(device.clone())).unwrap();
    for number in 0..5 {
        table.put(&colliding(number), &value(number.into(), 3000)).unwrap();
    }
    table.put(&[7; 16], b"the prefix alone").unwrap();
    table.put(&colliding(2), b"new").unwrap();
    table.remove(&colliding(3)).unwrap();
    table.remove(&colliding(99)).unwrap();
    for _ in 0..2 {
        for number in 0..6 {
            let expected = match number {
                2 => Some(b"new".to_vec()),
                3 | 5 => None,
                _ => Some(value(number.into(), 3000)),
            };
            assert_eq!(table.get(&colliding(number)).unwrap(), expected, "{number}");
        }
        assert_eq!(table.get(&[7; 16]).unwrap().as_deref(), Some(&b"the prefix alone"[..]));
        table.close().unwrap();
        table = setup.open_on(Arc::new(device.clone())).unwrap();
    }
    for number in 0..5 {
        table.remove(&colliding(number)).unwrap();
        assert_eq!(table.get(&colliding(number)).unwrap(), None);
    }
    table.remove(&[7; 16]).unwrap();
    assert_eq!(table.get(&[7; 16]).unwrap(), None);
    table.sync().unwrap();
    assert_eq!(table.stats().values.live_bytes, 0, "nothing is left");
}

/// Puts a batch, which looks up its keys before it puts them; here all of them have one record.
#[test]
fn a_batch_of_keys_with_one_fingerprint_keeps_all_of_them() {
    let mut setup = Setup::new(Durability::Never, WhenFull::Refuse).roomy();
    setup.hash = HashKind::Identity;
    let table = setup.create_on(Arc::new(MemoryDevice::new())).unwrap();
    table.put(&colliding(9), b"old").unwrap();
    for round in 0..2 {
        let values: Vec<_> = (0..5).map(|number| value(number + 10 * round, 300)).collect();
        let keys: Vec<_> = (0..5).map(colliding).collect();
        let pairs = keys.iter().zip(&values).map(|(key, value)| (&key[..], &value[..]));
        table.put_many(&pairs.collect::<Vec<_>>()).unwrap();
        for (key, value) in keys.iter().zip(values) {
            assert_eq!(table.get(key).unwrap(), Some(value));
        }
        assert_eq!(table.get(&colliding(9)).unwrap().as_deref(), Some(&b"old"[..]));
    }
}

#[test]
fn too_many_keys_with_one_fingerprint_are_refused_and_those_before_stay() {
    let mut setup = Setup::new(Durability::Always, WhenFull::Refuse);
    setup.hash = HashKind::Identity;
    let table = setup.create_on(Arc::new(MemoryDevice::new())).unwrap();
    let mut kept = 0;
    let error = loop {
        match table.put(&colliding(kept), &value(kept.into(), 4000)) {
            Ok(()) => kept += 1,
            Err(error) => break error.to_string(),
        }
    };
    assert!(kept >= 2 && error.contains("one fingerprint"), "{kept}: {error}");
    for number in 0..kept {
        let expected = value(number.into(), 4000);
        assert_eq!(table.get(&colliding(number)).unwrap(), Some(expected));
    }
}
