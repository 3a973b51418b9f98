//! The number of keys of a map.

use std::ops::ControlFlow;

use crate::Error;

fn go_on(_: f64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn the_keys_of_a_map_are_counted_without_reading_records_and_once_between_updates() {
    let folder = tempfile::tempdir().unwrap();
    let db = crate::open(folder.path().join("all.nandex")).unwrap();
    let map = db.map("m").cache(0).create_or_open().unwrap();
    let keys: Vec<_> = (0..20_000_u32).map(u32::to_le_bytes).collect();
    let put = |keys: &[[u8; 4]], value: &[u8]| {
        let pairs: Vec<_> = keys.iter().map(|key| (&key[..], value)).collect();
        map.put_many(&pairs).unwrap();
    };
    put(&keys, &[1; 100]);
    put(&keys[..5000], &[2; 100]);
    keys[..1000].iter().for_each(|key| map.remove(key).unwrap());
    let reads = || map.stats().values.reads;
    let before = reads();
    assert_eq!(map.count_keys(&go_on).unwrap(), 19_000);
    let calls = std::sync::atomic::AtomicU64::new(0);
    let count = |_: f64| {
        calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        ControlFlow::Continue(())
    };
    assert_eq!(map.count_keys(&count).unwrap(), 19_000);
    assert_eq!(calls.load(std::sync::atomic::Ordering::Relaxed), 0, "it was counted again");
    put(&keys[..1], b"3");
    let stop = |_: f64| ControlFlow::Break(());
    assert!(matches!(map.count_keys(&stop), Err(Error::Stopped)));
    assert_eq!(map.count_keys(&count).unwrap(), 19_001);
    assert_eq!(reads(), before, "records were read");
    assert_eq!(map.iter().unwrap().count(), 19_001);
}

#[test]
fn keys_that_a_map_has_evicted_are_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let db = crate::open(folder.path().join("all.nandex")).unwrap();
    let map = db.map("m").entries(1000).evict_oldest().create_or_open().unwrap();
    for number in 0..50_000_u32 {
        map.put(&number.to_le_bytes(), &[7; 300]).unwrap();
    }
    let listed = map.iter().unwrap().count() as u64;
    assert!(listed < 50_000);
    assert_eq!(map.count_keys(&go_on).unwrap(), listed);
}
