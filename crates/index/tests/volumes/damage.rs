//! The omissions of an iteration past damage: the entries of damaged pages, and nothing else.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Deref;
use std::sync::Arc;

use nandex::bufferhash;
use nandex::device::{Device, MemoryDevice};
use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig};
use nandex::raw::device::{PAGE_BYTES, PageBuf, PageId};
use nandex::testing::{TableRequest, TestTable};
use nandex::{
    AnyTable, Damage, LargeTable, Table, Threads, Volume, VolumeOpenOptions, VolumeOptions,
};
use nandex_baseline::registry;

/// Keys and values of any width.
pub type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The keys of each table: more than a growing one begins with.
const KEYS: u64 = 3000;

fn options() -> VolumeOptions {
    VolumeOptions { threads: Threads::Inline, ..VolumeOptions::tiny() }
}

/// Returns a key whose bytes occur nowhere else.
pub fn key(number: u64) -> [u8; 16] {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mixed.to_le_bytes());
    key[8..].copy_from_slice(&mixed.rotate_left(29).to_le_bytes());
    key
}

/// Changes four bytes of each page; doing it twice restores the page.
pub fn flip(device: &MemoryDevice, pages: &[u64]) {
    for page in pages {
        let mut buf = device.read(PageId(*page), PageBuf::zeroed(1)).unwrap();
        buf[2000..2004].iter_mut().for_each(|byte| *byte ^= 0x5a);
        device.write(PageId(*page), buf).unwrap();
    }
}

/// Returns the keys whose bytes are in a page.
pub fn keys_in(image: &[u8], page: u64) -> BTreeSet<Vec<u8>> {
    let start = page as usize * PAGE_BYTES;
    let windows: HashSet<&[u8]> = image[start..start + PAGE_BYTES].windows(16).collect();
    let all = (0..KEYS).map(|number| key(number).to_vec());
    all.filter(|key| windows.contains(&key[..])).collect()
}

/// Returns the remaining entries, each key once, and the reported pages, each once.
pub fn left<K: Into<Vec<u8>>, V: Deref<Target = [u8]>>(
    items: impl Iterator<Item = Result<(K, V), Damage>>,
) -> (Map, BTreeMap<u64, u64>) {
    let (mut pairs, mut damaged) = (Map::new(), BTreeMap::new());
    for item in items {
        let is_new = match item {
            Ok((key, value)) => pairs.insert(key.into(), value.to_vec()).is_none(),
            Err(damage) => {
                assert!(damage.to_string().contains("expected "), "{damage}");
                damaged.insert(damage.page.0, damage.entries_max).is_none()
            }
        };
        assert!(is_new);
    }
    (pairs, damaged)
}

fn lost(whole: &Map, pairs: &Map) -> BTreeSet<Vec<u8>> {
    whole.keys().filter(|key| !pairs.contains_key(*key)).cloned().collect()
}

pub fn without(whole: &Map, lost: &BTreeSet<Vec<u8>>) -> Map {
    let kept = whole.iter().filter(|(key, _)| !lost.contains(*key));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Calls `check` with every table's configurations for tests, with keys of 16 and values of 8 bytes.
pub fn each_config(mut check: impl FnMut(&TestTable)) {
    for (_, row) in registry::tables() {
        for variant in 0..row.testing.variants {
            let request = TableRequest {
                variant,
                key_bytes: 16,
                value_bytes: 8,
                partitions: 2,
                keys: Some(KEYS),
                threads: 0,
                ..TableRequest::default()
            };
            check(&(row.testing.config)(&request));
        }
    }
}

fn each_table(check: impl Fn(&TestTable, &dyn Fn() -> (MemoryDevice, AnyTable, Volume))) {
    each_config(|made| {
        check(made, &|| {
            let device = MemoryDevice::new();
            let volume = Volume::create(Arc::new(device.clone()), options()).unwrap();
            let TestTable { config, options, .. } = made;
            let table = AnyTable::create_with(&volume, "t", config, options).unwrap();
            (device, table, volume)
        });
    });
}

fn fill(table: &AnyTable, numbers: impl Iterator<Item = u64>, round: u64) {
    for number in numbers {
        table.insert(&key(number), &(number << 8 | round).to_le_bytes()).unwrap();
    }
}

/// Returns the pages that are reported when every page is damaged: those with entries that are not in RAM.
fn pages_with_entries(device: &MemoryDevice, table: &AnyTable) -> Vec<u64> {
    let all: Vec<u64> = (0..device.page_count()).collect();
    flip(device, &all);
    let (_, damaged) = left(table.iter_past_damage());
    flip(device, &all);
    damaged.into_keys().collect()
}

#[test]
fn exactly_the_entries_of_damaged_pages_are_left_out() {
    each_table(|made, create| {
        let (device, table, _volume) = create();
        fill(&table, 0..KEYS, 0);
        table.flush().unwrap();
        let (whole, damaged) = left(table.iter_past_damage());
        assert!(damaged.is_empty(), "{}", made.label);
        let listed: Map = table.iter().map(Result::unwrap).map(|(k, v)| (k, v.to_vec())).collect();
        assert!(whole == listed && whole.len() > 1000, "{}", made.label);
        let image = device.image();
        let pages = pages_with_entries(&device, &table);
        let is_in_ram = table.stats().flash_bytes == 0;
        assert!(pages.len() > 8 || is_in_ram, "{}: {pages:?}", made.label);
        let mut all_lost = BTreeSet::new();
        for page in &pages {
            flip(&device, &[*page]);
            let (pairs, damaged) = left(table.iter_past_damage());
            let held = keys_in(&image, *page);
            let lost = lost(&whole, &pairs);
            assert!(pairs == without(&whole, &lost), "{} page {page}", made.label);
            // A page of a growing SliceHash's older table has keys that the newer one has already copied.
            let is_exact = if made.config.kind() == "growing-slicehash" {
                lost.is_subset(&held)
            } else {
                lost == held
            };
            assert!(is_exact, "{} page {page}", made.label);
            assert_eq!(damaged.keys().collect::<Vec<_>>(), [page], "{}", made.label);
            assert!(lost.len() as u64 <= damaged[page], "{} page {page}", made.label);
            assert!(table.iter().any(|entry| entry.is_err()), "{} page {page}", made.label);
            if page % 3 > 0 {
                all_lost.extend(lost);
            }
            flip(&device, &[*page]);
        }
        let several: Vec<u64> = pages.into_iter().filter(|page| page % 3 > 0).collect();
        flip(&device, &several);
        let (pairs, damaged) = left(table.iter_past_damage());
        assert!(pairs == without(&whole, &all_lost), "{}", made.label);
        assert_eq!(damaged.into_keys().collect::<Vec<_>>(), several, "{}", made.label);
        flip(&device, &several);
    });
}

/// For a key with versions on several pages, an older one may be returned, but never one that was not put.
#[test]
fn an_older_version_may_stand_for_one_on_a_damaged_page() {
    each_table(|made, create| {
        let (device, table, _volume) = create();
        fill(&table, 0..KEYS, 0);
        fill(&table, (0..KEYS).filter(|number| number % 4 == 0), 1);
        (0..KEYS).filter(|it| it % 16 == 1).for_each(|it| table.remove(&key(it)).unwrap());
        table.flush().unwrap();
        let (whole, _) = left(table.iter_past_damage());
        let image = device.image();
        for page in pages_with_entries(&device, &table) {
            flip(&device, &[page]);
            let (pairs, _) = left(table.iter_past_damage());
            let held = keys_in(&image, page);
            assert!(without(&pairs, &held) == without(&whole, &held), "{}", made.label);
            for (key, value) in pairs.iter().filter(|(key, _)| held.contains(*key)) {
                let newest = whole.get(key);
                assert!(newest.is_none_or(|it| it == value || value[0] < it[0]), "{}", made.label);
            }
            flip(&device, &[page]);
        }
    });
}

/// Changes every fifth page of entries and every page of filters, current or former.
fn flip_some(device: &MemoryDevice) {
    let image = device.image();
    let pages = image.chunks_exact(PAGE_BYTES).zip(0..);
    let sealed = pages.filter(|(page, _)| page[4..8] == *b"ndx1");
    let is_hit = |kind: u8, number: u64| match kind {
        3 | 6 | 10 => number.is_multiple_of(5),
        kind => kind == 4,
    };
    let hit = sealed.filter(|(page, number)| is_hit(page[8], *number));
    flip(device, &hit.map(|(_, number)| number).collect::<Vec<_>>());
}

/// Nothing is merged or evicted while it is opened, since its log has nothing to replay.
#[test]
fn a_closed_volume_with_damaged_pages_opens_and_gives_the_rest() {
    each_table(|made, create| {
        let (device, table, volume) = create();
        fill(&table, 0..KEYS, 0);
        let (whole, _) = left(table.iter_past_damage());
        table.close().unwrap();
        volume.checkpoint().unwrap();
        drop(volume);
        let image = device.image();
        flip_some(&device);
        let volume = Volume::open(Arc::new(device), VolumeOpenOptions::default()).unwrap();
        let table = AnyTable::open_with(&volume, "t", &made.options).unwrap();
        let (pairs, damaged) = left(table.iter_past_damage());
        let held = damaged.keys().flat_map(|page| keys_in(&image, *page)).collect();
        let lost = lost(&whole, &pairs);
        assert!(lost.is_subset(&held) && pairs == without(&whole, &lost), "{}", made.label);
        let is_in_ram = table.stats().flash_bytes == 0;
        assert!(!damaged.is_empty() || is_in_ram, "{}: {damaged:?}", made.label);
    });
}

fn large(device: &MemoryDevice) -> LargeTable<AnyTable> {
    let volume = Volume::create(Arc::new(device.clone()), options()).unwrap();
    let config = bufferhash::Config {
        key_bytes: TABLE_KEY_BYTES,
        value_bytes: TABLE_VALUE_BYTES,
        ..bufferhash::Config::tiny()
    };
    let index = AnyTable::create(&volume, "t-keys", &config.into()).unwrap();
    LargeTable::create(&volume, "t", index, ValuesConfig::tiny()).unwrap()
}

/// Records of a table of any size are on their own pages; one may begin on a page and end on the next.
#[test]
fn exactly_the_records_of_damaged_pages_are_left_out() {
    let device = MemoryDevice::new();
    let table = large(&device);
    for number in 0..400 {
        table.put(&key(number), &key(number).repeat(1 + number as usize % 5)).unwrap();
    }
    table.flush().unwrap();
    let (whole, damaged) = left(table.iter_past_damage().unwrap());
    assert_eq!((whole.len(), damaged.len()), (400, 0));
    let image = device.image();
    let mut of_records = 0;
    for page in 0..device.page_count() {
        flip(&device, &[page]);
        let (pairs, damaged) = left(table.iter_past_damage().unwrap());
        let lost = lost(&whole, &pairs);
        assert!(pairs == without(&whole, &lost), "page {page}");
        let most: u64 = damaged.values().sum();
        assert!(lost.len() as u64 <= most && damaged.keys().all(|at| *at == page), "page {page}");
        let held = if damaged.is_empty() { BTreeSet::new() } else { keys_in(&image, page) };
        if !held.is_empty() {
            assert!(held.is_subset(&lost) && lost.len() as u64 == most, "page {page}");
            assert!(lost.len() <= held.len() + 2, "page {page}");
            of_records += 1;
        }
        flip(&device, &[page]);
    }
    assert!(of_records > 5, "{of_records}");
}
