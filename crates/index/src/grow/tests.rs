//! What the tests of tables that grow share.

use std::collections::HashMap;
use std::sync::Arc;

use nandex_device::MemoryDevice;
use nandex_store::{Volume, VolumeOptions};

use crate::{Result, Table, Value};

pub(crate) fn volume() -> (Arc<MemoryDevice>, Volume) {
    let device = Arc::new(MemoryDevice::new());
    let volume = Volume::create(Arc::clone(&device) as _, VolumeOptions::tiny()).unwrap();
    (device, volume)
}

pub(crate) fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

/// Checks every key below `keys` against the oracle, singly, in a batch, in a stream and in the iteration `all`.
pub(crate) fn agrees(
    table: &dyn Table,
    all: impl Iterator<Item = Result<(Vec<u8>, Value)>>,
    oracle: &HashMap<u64, u64>,
    keys: u64,
) {
    let expected: Vec<_> =
        (0..keys).map(|it| oracle.get(&it).map(|it| key(*it).to_vec())).collect();
    let bytes: Vec<_> = (0..keys).map(key).collect();
    let refs: Vec<&[u8]> = bytes.iter().map(|it| &it[..]).collect();
    let batch = table.get_many(&refs).unwrap();
    let mut streamed = vec![None; refs.len()];
    let mut stream = table.stream().unwrap();
    for (token, bytes) in (0..).zip(&refs) {
        stream.push(bytes, token).unwrap();
    }
    while let Some((token, value)) = stream.pull().unwrap() {
        streamed[usize::try_from(token).unwrap()] = value;
    }
    for (at, expected) in expected.iter().enumerate() {
        let found = [table.get(refs[at]).unwrap(), batch[at], streamed[at]];
        let found = found.map(|it| it.map(|it| it.to_vec()));
        assert_eq!(found, [expected.clone(), expected.clone(), expected.clone()], "key {at}");
    }
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let all: Vec<_> = all.map(|it| it.unwrap()).collect();
    assert_eq!(all.len(), oracle.len(), "each key once");
    for (key, value) in all {
        assert_eq!(oracle.get(&number(&key)), Some(&number(&value)));
    }
}

/// Four threads insert the same keys into a table, if absent; returns how many were inserted.
pub(crate) fn insert_absent_with_threads(table: &dyn Table, keys: u64) -> u64 {
    let insert = |thread: u64| {
        let mut inserted = 0;
        for first in (0..keys).step_by(50) {
            let batch: Vec<_> = (first..first + 50).map(key).collect();
            let value = key(thread);
            let pairs: Vec<(&[u8], &[u8])> = batch.iter().map(|it| (&it[..], &value[..])).collect();
            let found = table.get_or_insert_many(&pairs).unwrap();
            inserted += found.iter().filter(|it| it.is_none()).count() as u64;
        }
        inserted
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || insert(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}
