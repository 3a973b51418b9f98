//! Compaction: all entries are present, in less space, and a crash leaves either the old or the new structure.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use nandex::device::Device;
use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig};
use nandex::raw::bufferhash::growing;
use nandex::raw::registry::{self, Family};
use nandex::raw::store::VolumeDevices;
use nandex::{
    AnyTable, Database, Durability, Error, LargeTable, OpenOptions, Table, TableOrMap, Threads,
    VolumeOptions, WhenFull, bufferhash,
};
use nandex_sim::{Image, SimDevice};

const KEYS: u64 = 4000;
const KINDS: [&str; 3] = ["growing", "growing-slicehash", "rhik"];

type Contents = BTreeMap<u64, Vec<u8>>;

fn on(device: Arc<dyn Device>) -> Database {
    let own = VolumeOptions {
        durability: Durability::Never,
        threads: Threads::Inline,
        hash_key: Some(42),
        ..VolumeOptions::default()
    };
    let options = nandex::options().volume(own.with_growing_log(8 << 20));
    options.open_on(VolumeDevices { volume: device, log: None }).unwrap()
}

fn table(db: &Database, kind: &str) -> TableOrMap {
    let Some(Family::Table(row)) = registry::find(kind).map(|row| &row.family) else {
        panic!("{kind} is a table");
    };
    let config = (row.tiny)();
    let options = OpenOptions::default().inline();
    TableOrMap::Table(AnyTable::create_with(db.volume(), "t", &config, &options).unwrap())
}

fn map(db: &Database) -> TableOrMap {
    let tiny = growing::Config::tiny();
    let (key_bytes, value_bytes) = (TABLE_KEY_BYTES, TABLE_VALUE_BYTES);
    let first = bufferhash::Config { key_bytes, value_bytes, ..tiny.first.clone() };
    let config = growing::Config { first, ..tiny };
    let options = OpenOptions::default().inline();
    let index = AnyTable::create_with(db.volume(), "t-keys", &config.into(), &options).unwrap();
    let tiny = ValuesConfig::tiny();
    let values = ValuesConfig { segment_pages: 16, when_full: WhenFull::Grow, ..tiny };
    TableOrMap::Map(LargeTable::create(db.volume(), "t", index, values).unwrap())
}

/// Performs rounds of updates, after which only every eighth key is left.
fn lived_in(structure: &TableOrMap, keys: u64) -> Contents {
    for round in 0..4u64 {
        let pairs: Vec<_> =
            (0..keys).map(|key| (key.to_le_bytes(), (key ^ round).to_le_bytes())).collect();
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        pairs.chunks(100).for_each(|some| structure.put_many(some).unwrap());
    }
    for key in (0..keys).filter(|key| key % 8 != 0) {
        structure.remove(&key.to_le_bytes()).unwrap();
    }
    let left = (0..keys).step_by(8);
    left.map(|key| (key, (key ^ 3).to_le_bytes().to_vec())).collect()
}

fn contents(structure: &TableOrMap) -> Contents {
    let mut all = Contents::new();
    let found: nandex::Result<()> = structure.for_each(|key, value| {
        let key = u64::from_le_bytes(*key.first_chunk().unwrap());
        assert!(all.insert(key, value.to_vec()).is_none(), "{key} came twice");
        Ok(())
    });
    found.unwrap();
    all
}

/// Checks everything, changes something, and checks again.
fn agrees(db: &Database, expected: &Contents, keys: u64, story: &str) {
    let found = db.table_or_map("t").unwrap();
    assert_eq!(contents(&found), *expected, "{story}");
    for key in 0..keys {
        let value = found.get_many(&[&key.to_le_bytes()]).unwrap().remove(0);
        assert_eq!(value.as_ref(), expected.get(&key), "{story}: key {key}");
    }
    let added: Vec<_> = (keys..2 * keys).map(u64::to_le_bytes).collect();
    added.iter().for_each(|key| found.put_many(&[(key, &[5; 8])]).unwrap());
    assert_eq!(contents(&found).len(), expected.len() + added.len(), "{story}");
    found.close().unwrap();
}

fn never_stops(_share: f64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn a_table_and_a_map_that_grew_and_shrank_give_back_what_they_do_not_need() {
    for kind in KINDS.into_iter().chain(["map"]) {
        let device = Arc::new(SimDevice::instant());
        let db = on(Arc::clone(&device) as Arc<dyn Device>);
        let made = if kind == "map" { map(&db) } else { table(&db, kind) };
        let config = made.index().config();
        let expected = lived_in(&made, KEYS);
        let predicted = made.stats().flash_bytes - made.compaction_bytes();
        made.close().unwrap();
        let compacted = db.compact("t", &never_stops).unwrap();
        assert_eq!(compacted.entries, expected.len() as u64, "{kind}");
        assert!(compacted.flash_bytes < compacted.flash_bytes_before, "{kind}: {compacted:?}");
        let off = compacted.flash_bytes as f64 / predicted as f64;
        // Based on the table's own count of entries, which may be off if most are removed.
        assert!((0.3..3.0).contains(&off), "{kind}: {compacted:?}, predicted {predicted}");
        assert_eq!(TableOrMap::names(db.volume()), ["t"], "{kind}");
        let again = db.table_or_map("t").unwrap();
        assert_eq!(again.index().config(), config, "{kind}");
        again.close().unwrap();
        agrees(&db, &expected, KEYS, kind);
        drop(db);
        let found = nandex::check(Arc::clone(&device) as Arc<dyn Device>, None, &mut |_| {});
        assert!(found.unwrap().ok(), "{kind}");
    }
}

#[test]
fn what_ends_a_compaction_leaves_what_there_was() {
    let db = on(Arc::new(SimDevice::instant()));
    let made = table(&db, "growing");
    let busy = db.compact("t", &never_stops);
    assert!(matches!(busy, Err(Error::Store(nandex::raw::store::Error::Busy { .. }))), "{busy:?}");
    let expected = lived_in(&made, 1000);
    made.close().unwrap();
    let stopped = db.compact("t", &|_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    assert_eq!(TableOrMap::names(db.volume()), ["t"]);
    let names = db.volume().structures().into_iter().map(|it| it.name);
    assert!(names.clone().all(|name| !name.contains("/new")), "{:?}", names.collect::<Vec<_>>());
    agrees(&db, &expected, 1000, "stopped");
    let missing = db.compact("none", &never_stops).unwrap_err().to_string();
    assert!(missing.contains("none"), "{missing}");
}

#[test]
fn a_structure_that_keeps_its_size_stays_as_it_is() {
    let db = on(Arc::new(SimDevice::instant()));
    let fixed = db.table("t").entries(2000).create_or_open().unwrap();
    (0..2000u64).for_each(|key| fixed.insert(&key.to_le_bytes(), &[1; 8]).unwrap());
    fixed.close().unwrap();
    let compacted = db.compact("t", &never_stops).unwrap();
    assert_eq!(compacted.flash_bytes, compacted.flash_bytes_before);
    let filter = db.filter("f").keys(1000).create_or_open().unwrap();
    (0..1000u64).for_each(|key| filter.insert(&key.to_le_bytes()).unwrap());
    filter.close().unwrap();
    db.compact("f", &never_stops).unwrap();
    let filter = db.filter("f").create_or_open().unwrap();
    assert!((0..1000u64).all(|key| filter.contains(&key.to_le_bytes()).unwrap()));
}

#[test]
fn a_power_cut_leaves_the_old_one_or_the_new_one() {
    const KEYS: u64 = 2000;
    for kind in ["growing", "map"] {
        let device = SimDevice::instant();
        let db = on(Arc::new(device.clone()));
        let made = if kind == "map" { map(&db) } else { table(&db, kind) };
        let expected = lived_in(&made, KEYS);
        made.close().unwrap();
        drop(db);
        let image = device.survivors(1).to_bytes();
        let again = || SimDevice::instant().with_image(Image::from_bytes(&image));
        let whole = again();
        let db = on(Arc::new(whole.clone()));
        let first = whole.operations();
        db.compact("t", &never_stops).unwrap();
        let last = whole.operations();
        drop(db);
        assert!(last - first > 20, "{kind}: {}", last - first);
        for cut in (first..last).step_by(usize::try_from((last - first) / 60).unwrap().max(1)) {
            let crash = again();
            let db = on(Arc::new(crash.clone()));
            crash.cut_after(cut);
            let _ = db.compact("t", &never_stops);
            drop(db);
            for seed in [0, 1, cut] {
                let survivors = SimDevice::instant().with_image(crash.survivors(seed));
                let story = format!("{kind}, cut after {cut}, survivors {seed}");
                let db = on(Arc::new(survivors.clone()));
                agrees(&db, &expected, KEYS, &story);
                let names: Vec<_> =
                    db.volume().structures().into_iter().map(|it| it.name).collect();
                assert!(names.iter().all(|name| !name.contains("/new")), "{story}: {names:?}");
            }
        }
    }
}
