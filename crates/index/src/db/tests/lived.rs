//! Maps with many updates, as a database creates them: their value logs have grown through segments of several lengths.

use super::*;

/// About 6 MiB of values, and segments of 64 KiB to 256 KiB.
const KEYS: u64 = 12_000;
const VALUE_BYTES: usize = 500;

/// Updates all keys, in an order that looks random.
fn update(map: &crate::LargeTable<crate::AnyTable>, round: u64) {
    let value = [round as u8; VALUE_BYTES];
    let keys: Vec<_> =
        (0..KEYS).map(|it| (it * 7919 + round) % KEYS).map(u64::to_le_bytes).collect();
    let pairs: Vec<_> = keys.iter().map(|key| (&key[..], &value[..])).collect();
    pairs.chunks(500).for_each(|pairs| map.put_many(pairs).unwrap());
}

#[test]
fn a_map_that_has_grown_is_updated_without_growing_on() {
    let (_folder, path) = file();
    let map = options().ram("32MiB").open(&path).unwrap().map("m").create_or_open().unwrap();
    let flash_bytes: Vec<u64> = (0..10)
        .map(|round| {
            update(&map, round);
            map.flush().unwrap();
            map.stats().values.flash_bytes
        })
        .collect();
    let fresh = flash_bytes[0] as f64;
    let most = flash_bytes.iter().max().copied().unwrap_or(0) as f64;
    assert!(most <= 1.7 * fresh, "{flash_bytes:?}");
    assert!(map.stats().values.cleaned_segments > 0);
    for number in 0..KEYS {
        let found = map.get(&number.to_le_bytes()).unwrap();
        assert_eq!(found.as_deref(), Some(&[9; VALUE_BYTES][..]), "{number}");
    }
}
