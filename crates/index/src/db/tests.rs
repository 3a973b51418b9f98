//! The short way to embed: files that are new, existing, or something else, and RAM that is shared.

mod counted;
mod lived;
mod opening;
mod reopened;
mod small;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nandex_device::{Create, Device, MemoryDevice};
use nandex_store::{Completion, VolumeDevices, VolumeOptions};
use tempfile::TempDir;

use super::*;
use crate::counting::Keys;
use crate::{
    AnyConfig, AnyFilter, AnyTable, Counter, Filter, LargeTable, OpenOptions, Policy, Table,
};

/// Options with which every run hashes keys alike: under a random key, two of the keys of a test share a fingerprint of
/// a filter once in several hundred runs.
fn options() -> DatabaseOptions {
    super::options().hash_key(7)
}

fn open(path: impl AsRef<Path>) -> Result<Database> {
    options().open(path)
}

fn file() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.nandex");
    (folder, path)
}

fn text<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_fresh_file_and_an_empty_one_are_made_and_reopened() {
    let (_folder, path) = file();
    for key in [7, 8] {
        let db = super::open(&path).unwrap();
        let table = db.table("seen").create_or_open().unwrap();
        table.insert_u64(key, 42).unwrap();
        assert_eq!(table.get_u64(7).unwrap(), Some(42));
    }
    let (_folder, path) = file();
    fs::write(&path, b"").unwrap();
    open(&path).unwrap().map("m").entries(1000).create_or_open().unwrap().put(b"k", b"v").unwrap();
    let map = open(&path).unwrap().map("m").create_or_open().unwrap();
    assert_eq!(map.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn a_file_of_something_else_is_refused_and_kept() {
    let (_folder, path) = file();
    fs::write(&path, b"mine").unwrap();
    let found = text(open(&path));
    assert!(found.contains("not a nandex volume"), "{found}");
    assert_eq!(fs::read(&path).unwrap(), b"mine");
    let (_folder, path) = file();
    assert!(text(options().log(1).open(&path)).contains("log_bytes"));
    assert!(!path.exists(), "nothing is made that cannot work");
}

#[test]
fn structures_of_another_kind_or_width_are_refused_with_what_to_do() {
    let (_folder, path) = file();
    let db = open(&path).unwrap();
    drop(db.table("t").entries(1000).widths(16, 0).create_or_open().unwrap());
    drop(db.map("m").entries(1000).create_or_open().unwrap());
    drop(db.filter("f").keys(1000).create_or_open().unwrap());
    let found = text(db.table("t").create_or_open());
    assert!(found.contains("ask with .widths(16, 0)"), "{found}");
    let found = text(db.map("t").create_or_open());
    assert!(found.contains("is not a map") && found.contains("db.table(\"t\")"), "{found}");
    assert!(text(db.table("m").create_or_open()).contains("db.map(\"m\")"));
    assert!(text(db.table("f").create_or_open()).contains("db.filter(\"f\")"));
    assert!(text(db.filter("m").create_or_open()).contains("db.map(\"m\")"));
    let again = db.table("t").widths(16, 0).create_or_open().unwrap();
    assert!(text(db.table("t").widths(16, 0).create_or_open()).contains("open already"));
    drop(again);
}

#[test]
fn ram_is_shared_and_who_has_it_is_told() {
    let (_folder, path) = file();
    let db = options().ram("16MiB").open(&path).unwrap();
    let table = db.table("first").entries(100_000).ram("8MiB").create_or_open().unwrap();
    let filter = db.filter("second").keys(1e6).create_or_open().unwrap();
    let taken = db.ram_taken();
    assert_eq!(taken.iter().map(|(name, _)| &name[..]).collect::<Vec<_>>(), ["first", "second"]);
    assert!(taken.iter().map(|(_, bytes)| bytes).sum::<u64>() <= 16 << 20, "{taken:?}");
    assert!(taken.iter().all(|(_, bytes)| *bytes > 1 << 20), "{taken:?}");
    let found = text(db.table("third").ram("15MiB").create_or_open());
    assert!(found.starts_with("ram: \"third\" takes 15.0 MiB, and "), "{found}");
    assert!(found.contains("\"first\" has ") && found.contains("options().ram("), "{found}");
    drop((table, filter));
    assert_eq!(db.ram_taken(), []);
    db.table("third").entries(1000).ram("15MiB").create_or_open().unwrap();
}

#[test]
fn what_a_table_leaves_of_its_ram_is_a_cache() {
    let (_folder, path) = file();
    let db = options().ram("32MiB").open(&path).unwrap();
    let open = |cache: Option<&'static str>, ram: Option<&'static str>| {
        let mut table = db.table("t").entries(100_000);
        table = ram.into_iter().fold(table, TableBuilder::ram);
        table = cache.into_iter().fold(table, TableBuilder::cache);
        let table = table.create_or_open()?;
        let (stats, taken) = (table.stats(), db.ram_taken()[0].1);
        assert!(taken >= stats.cache_bytes && taken <= 16 << 20, "{taken}, {stats:?}");
        Ok::<_, Error>(stats.cache_bytes)
    };
    let mib = |bytes: u64| bytes >> 20;
    // A quarter of half of the RAM, all that is left of a stated limit, what was stated, and nothing.
    assert_eq!(mib(open(None, None).unwrap()), 4);
    assert!((8..15).contains(&mib(open(None, Some("16MiB")).unwrap())));
    assert_eq!(mib(open(Some("2MiB"), Some("16MiB")).unwrap()), 2);
    assert_eq!(open(Some("0"), None).unwrap(), 0);
    let found = text(open(Some("17MiB"), Some("16MiB")));
    assert!(found.contains("17.0 MiB for its cache alone is too much"), "{found}");
    let grows = db.table("g").policy(Policy::Grow).ram("8MiB");
    assert_eq!(grows.clone().create_or_open().unwrap().stats().cache_bytes, 0);
    assert_eq!(mib(grows.cache("1MiB").create_or_open().unwrap().stats().cache_bytes), 1);
    let lru = db.table("l").policy(Policy::Lru).create_or_open().unwrap();
    assert_eq!(lru.stats().cache_bytes, 0);
}

#[test]
fn what_the_table_of_a_map_leaves_is_a_cache_until_the_table_needs_it() {
    // Enough RAM for a growing BufferHash, and for a growing SliceHash rather than that.
    for (ram, kind) in [(12_u64 << 20, "growing"), (15 << 18, "growing-slicehash")] {
        let (_folder, path) = file();
        let db = options().log("4MiB").create(Create::New).open(&path).unwrap();
        let map = db.map("m").ram(ram).create_or_open().unwrap();
        assert_eq!(map.table().kind(), kind);
        let first = map.stats();
        assert!(first.cache_bytes_max > ram / 2, "{first:?}");
        let key = |number: u64| number.to_le_bytes();
        for from in (0..240_000).step_by(1000) {
            let pairs: Vec<_> = (from..from + 1000).map(|it| (key(it), [it as u8; 30])).collect();
            let pairs: Vec<_> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
            map.put_many(&pairs).unwrap();
            let now = map.stats();
            assert!(now.ram_bytes - now.values.ram_bytes <= ram, "{now:?}");
        }
        let full = map.stats();
        assert!(full.cache_bytes > full.cache_bytes_max * 3 / 4, "{full:?}");
        assert!(full.cache_bytes_max < first.cache_bytes_max, "{first:?}, {full:?}");
        for number in (0..240_000).step_by(997) {
            assert_eq!(map.get(&key(number)).unwrap(), Some(vec![number as u8; 30]));
        }
    }
}

#[test]
fn what_a_table_that_grows_leaves_is_a_cache_until_it_needs_it() {
    let bufferhash = (32_u64 << 20, "64MiB", 50_000_u64, "growing");
    for (ram, log, entries, kind) in [bufferhash, (8 << 20, "2MiB", 200_000, "growing-slicehash")] {
        let (_folder, path) = file();
        let db = options().log(log).create(Create::New).open(&path).unwrap();
        let table = db.table("t").policy(Policy::Grow).entries(entries).ram(ram);
        let table = table.create_or_open().unwrap();
        assert_eq!(table.kind(), kind);
        assert_eq!(table.stats().cache_bytes, 0, "it takes RAM as it fills");
        let key = |number: u64| number.to_le_bytes();
        let mut most = 0;
        for from in (0..600_000).step_by(1000) {
            let keys: Vec<_> = (from..from + 1000).map(key).collect();
            let pairs: Vec<_> = keys.iter().map(|key| (&key[..], &key[..])).collect();
            table.insert_many(&pairs).unwrap();
            for _ in 0..3 {
                assert!(table.get(&key(from * 7 / 11)).unwrap().is_some());
            }
            let now = table.stats();
            assert!(now.ram_bytes <= ram, "{now:?}");
            most = now.cache_entries_max.max(most);
        }
        let full = table.stats();
        assert!(full.cache_entries_max < most && full.cache_bytes > 1 << 20, "{most}, {full:?}");
        let hot = || (0..1000).for_each(|it| assert!(table.get(&key(it)).unwrap().is_some()));
        (0..3).for_each(|_| hot());
        let before = table.stats();
        (0..9).for_each(|_| hot());
        let after = table.stats();
        assert!(after.cache_hits - before.cache_hits > 8000, "{before:?}, {after:?}");
        for number in (0..600_000).step_by(997) {
            assert_eq!(table.get(&key(number)).unwrap().as_deref(), Some(&key(number)[..]));
        }
    }
}

#[test]
fn a_map_has_the_cache_that_was_stated_or_none() {
    let (_folder, path) = file();
    let db = options().ram("32MiB").create(Create::New).open(&path).unwrap();
    let cache_of = |map: MapBuilder<'_>| {
        let map = map.create_or_open()?;
        let (stats, taken) = (map.stats(), db.ram_taken());
        let most = taken.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
        assert!(most >= stats.cache_bytes_max, "{taken:?}, {stats:?}");
        assert_eq!(stats.table.cache_bytes, 0, "the map's cache and no other");
        Ok::<_, Error>(stats.cache_bytes_max)
    };
    let grows = || db.map("grows").ram("8MiB");
    assert!(cache_of(grows()).unwrap() > 3 << 20);
    assert_eq!(cache_of(grows().cache("1MiB")).unwrap(), 1 << 20);
    assert_eq!(cache_of(grows().parameter("cache_bytes", "2MiB")).unwrap(), 2 << 20);
    assert_eq!(cache_of(grows().cache("0")).unwrap(), 0);
    let found = text(cache_of(grows().cache("9MiB")));
    assert!(found.contains("for its cache alone is too much"), "{found}");
    let fixed = || db.map("fixed").entries(10_000);
    assert!(cache_of(fixed()).unwrap() > 12 << 20, "half of what nobody has taken");
    assert!(cache_of(fixed().ram("10MiB")).unwrap() > 4 << 20);
    let evicts = || db.map("evicts").bytes("1MiB").evict_oldest();
    assert_eq!(cache_of(evicts()).unwrap(), 0);
    let found = text(cache_of(evicts().cache("1MiB")));
    assert!(found.contains("a map that evicts has no cache of records"), "{found}");
}

#[test]
fn a_map_that_is_opened_as_it_is_has_the_stated_cache_and_one_that_evicts_has_it_for_its_table() {
    let (_folder, path) = file();
    let db = options().ram("32MiB").create(Create::New).open(&path).unwrap();
    db.map("grows").create_or_open().unwrap().put(b"key", b"value").unwrap();
    db.map("evicts")
        .bytes("1MiB")
        .evict_oldest()
        .create_or_open()
        .unwrap()
        .put(b"key", b"")
        .unwrap();
    for (name, of_records) in [("grows", 1 << 20), ("evicts", 0)] {
        let asked = OpenOptions { cache_bytes: 1 << 20, ..OpenOptions::default() };
        let opened = TableOrMap::open(db.volume(), name, &asked).unwrap();
        assert!(opened.get_many(&[b"key"]).unwrap()[0].is_some());
        assert!((1 << 19..=1 << 20).contains(&opened.stats().cache_bytes_max), "{name}");
        let TableOrMap::Map(map) = opened else { panic!("{name} is a map") };
        assert_eq!(map.stats().cache_bytes_max, of_records, "{name}");
    }
}

#[test]
fn a_table_that_grows_may_take_all_of_its_ram_with_a_log_for_less() {
    let (_folder, path) = file();
    let db = options().ram("256MiB").log("16MiB").open(&path).unwrap();
    let table = db.table("t").policy(Policy::Grow).ram("200MiB").cache("150MiB");
    let shape = table.create_or_open().unwrap().config().describe().shape;
    assert!(shape.contains("all within 200 MiB"), "{shape}");
}

#[test]
fn too_little_ram_is_refused_with_what_would_do() {
    let (_folder, path) = file();
    let db = options().ram("1MiB").open(&path).unwrap();
    for found in [text(db.table("t").create_or_open()), text(db.filter("f").create_or_open())] {
        assert!(found.contains("may take 512 KiB of 1.00 MiB"), "{found}");
        assert!(found.contains("needs") && found.contains("options().ram("), "{found}");
    }
    assert!(text(db.table("t").ram("much").create_or_open()).contains("is not a unit"));
    assert!(text(db.filter("f").ram("1MiB").rate(7.0).create_or_open()).contains("rate"));
}

#[test]
fn buffers_are_made_to_fit_the_log_and_a_log_that_is_too_short_is_told() {
    let (_folder, path) = file();
    let db = options().ram("64MiB").log("16MiB").open(&path).unwrap();
    let filter = db.filter("f").keys(1e8).counts().create_or_open().unwrap();
    filter.add(b"the", 3).unwrap();
    assert_eq!(filter.count(b"the").unwrap(), 3);
    let (_folder, path) = file();
    let db = options().log("1MiB").open(&path).unwrap();
    let found = text(db.table("t").entries(10_000_000).create_or_open());
    assert!(found.starts_with("log: ") && found.contains("options().log("), "{found}");
}

#[test]
fn what_was_synced_is_there_after_a_crash() {
    let (folder, path) = file();
    let db = open(&path).unwrap();
    let table = db.table("t").entries(10_000).create_or_open().unwrap();
    let map = db.map("m").entries(10_000).evict_oldest().create_or_open().unwrap();
    let words = db.filter("w").keys(10_000).counts().create_or_open().unwrap();
    for key in 0..100 {
        table.insert_u64(key, key + 1).unwrap();
        map.put(&key.to_le_bytes(), b"value").unwrap();
        words.add(&key.to_le_bytes(), 2).unwrap();
    }
    table.sync().unwrap();
    map.sync().unwrap();
    words.sync().unwrap();
    // The file as a power cut leaves it: nothing was closed.
    let left = folder.path().join("left.nandex");
    fs::copy(&path, &left).unwrap();
    let db = open(&left).unwrap();
    let table = db.table("t").create_or_open().unwrap();
    let map = db.map("m").create_or_open().unwrap();
    let words = db.filter("w").counts().create_or_open().unwrap();
    for key in 0..100_u64 {
        assert_eq!(table.get_u64(key).unwrap(), Some(key + 1));
        assert_eq!(map.get(&key.to_le_bytes()).unwrap().as_deref(), Some(&b"value"[..]));
        assert_eq!(words.count(&key.to_le_bytes()).unwrap(), 2);
    }
}

#[test]
fn a_table_that_grows_takes_no_more_than_its_ram_and_more_at_a_later_opening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grows.nandex");
    let grown = |ram: &'static str, from: u64| {
        let db = options().ram(ram).open(&path).unwrap();
        let table = db.table("t").entries(1000).policy(Policy::Grow).ram(ram);
        let table = table.create_or_open().unwrap();
        let mut until = from;
        let refusal = loop {
            let keys: Vec<_> = (until..until + 1000).map(u64::to_le_bytes).collect();
            let pairs: Vec<(&[u8], &[u8])> = keys.iter().map(|it| (&it[..], &it[..])).collect();
            match table.insert_many(&pairs) {
                Ok(()) if until < 3_000_000 => until += 1000,
                result => break result.err(),
            }
        };
        assert!((0..until).step_by(991).all(|key| table.get_u64(key).unwrap() == Some(key)));
        assert!(db.ram_taken()[0].1 >= table.stats().ram_bytes / 2);
        table.close().unwrap();
        (until, refusal)
    };
    let (small, refusal) = grown("4MiB", 0);
    assert!(matches!(refusal, Some(Error::GrowthStopped { .. })), "{refusal:?}");
    let (large, _) = grown("8MiB", small);
    assert!(small > 20_000 && large > 500_000, "{small} {large}");
}

fn policy_of(map: &LargeTable<AnyTable>) -> String {
    map.table().config().describe().when_full
}

#[test]
fn a_map_of_which_no_size_is_stated_grows() {
    let (_folder, path) = file();
    let value = vec![7; 10_000];
    let db = open(&path).unwrap();
    let map = db.map("m").create_or_open().unwrap();
    assert_eq!(policy_of(&map), "grow");
    assert!(map.stats().values.flash_bytes < 6 << 20, "it takes flash when it needs it");
    (0..2000_u64).for_each(|key| map.put(&key.to_le_bytes(), &value).unwrap());
    let large = vec![5; 16 << 20];
    map.put(b"large", &large).unwrap();
    assert!(map.stats().values.growths > 3, "{:?}", map.stats().values);
    map.close().unwrap();
    let map = db.map("m").entries(10).create_or_open().unwrap();
    assert_eq!(policy_of(&map), "grow", "what is there stays as it is");
    assert!((0..2000_u64).all(|key| map.get(&key.to_le_bytes()).unwrap().as_ref() == Some(&value)));
    assert!(map.get(b"large").unwrap() == Some(large));
}

#[test]
fn a_map_whose_size_is_stated_keeps_it_unless_its_policy_is_stated_too() {
    let (_folder, path) = file();
    let db = open(&path).unwrap();
    let small = db.map("small").entries(1000).bytes("1MiB").create_or_open().unwrap();
    assert_eq!(policy_of(&small), "reject");
    let mut puts = (0..1000_u64).map(|key| small.put(&key.to_le_bytes(), &[7; 10_000]));
    assert!(matches!(puts.find_map(Result::err), Some(Error::ValuesFull { .. })));
    let begins = db.map("begins").entries(1000).policy(Policy::Grow).create_or_open().unwrap();
    assert_eq!(policy_of(&begins), "grow");
    let cache = db.map("cache").bytes("1MiB").evict_oldest().create_or_open().unwrap();
    assert_eq!(policy_of(&cache), "fifo");
    let refused = text(db.map("lru").policy(Policy::Lru).create_or_open());
    assert!(refused.contains("take grow, reject or fifo"), "{refused}");
}

/// A table that rejects inserts takes the stated number of entries, whatever its RAM and log made of it.
#[test]
fn a_table_takes_as_many_entries_as_were_stated() {
    for (ram, entries) in [("16MiB", 100_000_u64), ("32MiB", 1_000_000)] {
        let (_folder, path) = file();
        let db = options().ram(ram).open(&path).unwrap();
        let keys: Vec<_> = (0..entries).map(u64::to_le_bytes).collect();
        for half in keys.chunks(keys.len() / 2) {
            let table = db.table("t").entries(entries).create_or_open().unwrap();
            for keys in half.chunks(1000) {
                let pairs: Vec<_> = keys.iter().map(|key| (&key[..], &key[..])).collect();
                table.insert_many(&pairs).unwrap();
            }
            table.close().unwrap();
        }
    }
}

#[test]
fn what_more_ram_does_not_mend_is_not_said_to_lack_ram() {
    let (_folder, path) = file();
    let db = open(&path).unwrap();
    let found = text(db.filter("f").rate(2.0).create_or_open());
    assert!(found.starts_with("rate: \"f\": ") && !found.contains("MiB"), "{found}");
    let found = text(db.table("t").widths(200, 8).create_or_open());
    assert!(found.starts_with("key_bytes: \"t\": 200 is not"), "{found}");
    let found = text(db.counting("c").ram("1KiB").create_or_open());
    assert!(found.starts_with("ram: \"c\" may take 1.00 KiB"), "{found}");
}

#[test]
fn a_file_is_made_or_opened_only_as_was_stated() {
    let (_folder, path) = file();
    let must_exist = || options().create(Create::Open).open(&path);
    assert!(text(must_exist()).contains("cannot open"));
    assert!(!path.exists());
    drop(options().create(Create::New).open(&path).unwrap());
    let exists = options().create(Create::New).open(&path).unwrap_err();
    let Error::Device(nandex_device::Error::Open { source, .. }) = &exists else {
        panic!("{exists}")
    };
    assert_eq!(source.kind(), std::io::ErrorKind::AlreadyExists);
    assert!(text(Err::<(), _>(exists)).ends_with("open it, remove it or choose another name"));
    must_exist().unwrap().table("t").create_or_open().unwrap().insert_u64(7, 42).unwrap();
    let readers = [(); 2].map(|()| options().read_only().open(&path).unwrap());
    for reader in &readers {
        let table = reader.table("t").create_or_open().unwrap();
        assert_eq!(table.get_u64(7).unwrap(), Some(42));
        assert!(text(table.insert_u64(8, 1)).contains("read-only"));
        assert!(text(reader.table("new").create_or_open()).contains("read-only"));
    }
    assert!(text(must_exist()).contains("is in use"));
}

#[test]
fn a_map_that_is_open_to_be_read_only_refuses_updates_at_once() {
    // The inserts succeeded; only publishing them failed, when the table was closed.
    let (_folder, path) = file();
    let db = options().open(&path).unwrap();
    db.map("m").create_or_open().unwrap().put(b"a", b"1").unwrap();
    drop(db);
    let map = options().read_only().open(&path).unwrap().map("m").create_or_open().unwrap();
    assert!(text(map.put(b"b", b"2")).contains("read-only"));
    assert!(text(map.put_many(&[(b"b", b"2")])).contains("read-only"));
    assert!(text(map.put_if_absent(b"b", b"2")).contains("read-only"));
    assert!(text(map.remove(b"a")).contains("read-only"));
    assert_eq!(map.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
}

#[test]
fn counting_tables_are_made_for_keys_and_reopened() {
    let (_folder, path) = file();
    let db = open(&path).unwrap();
    let words = db.counting("words").keys(1e5).stored(Keys::Whole(4)).create_or_open().unwrap();
    words.add_many(&[(&b"that"[..], 2), (b"this", 1)]).unwrap();
    words.close().unwrap();
    let found = text(db.counting("words").stored(Keys::Whole(5)).create_or_open());
    assert!(found.contains("stored as Whole(4)"), "{found}");
    let words = db.counting("words").create_or_open().unwrap();
    assert_eq!(words.count(b"that").unwrap(), 2);
    drop(db.filter("seen").keys(1000).create_or_open().unwrap());
    let found = text(db.counting("seen").create_or_open());
    assert!(found.contains("open it with db.filter"), "{found}");
    let (_other_folder, other_path) = file();
    let other = open(&other_path).unwrap();
    let others = other.counting("w").stored(Keys::Whole(4)).create_or_open().unwrap();
    others.insert(b"this").unwrap();
    words.absorb(&others).unwrap();
    assert_eq!(words.count(b"this").unwrap(), 2);
}

/// A filter for one key was rejected because of its buffers, although the program had stated none of them.
#[test]
fn structures_are_made_for_a_few_keys_and_hold_them() {
    let (_folder, path) = file();
    let db = open(&path).unwrap();
    let names = std::cell::Cell::new(0);
    let name = || names.replace(names.get() + 1).to_string();
    for count in [1_u64, 2, 3, 7, 8, 9, 40] {
        let keys: Vec<_> = (0..count).map(u64::to_le_bytes).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|it| &it[..]).collect();
        let pairs: Vec<_> = keys.iter().map(|key| (*key, *key)).collect();
        let expected: Vec<_> = keys.iter().map(|key| Some(key.to_vec())).collect();
        for policy in [Policy::Reject, Policy::Grow, Policy::Fifo, Policy::Lru] {
            let table = db.table(name()).entries(count).policy(policy).create_or_open().unwrap();
            table.insert_many(&pairs).unwrap();
            let found = table.get_many(&keys).unwrap();
            assert!(found.iter().map(|it| it.as_ref().map(|it| it.to_vec())).eq(expected.clone()));
        }
        for policy in [Policy::Reject, Policy::Grow, Policy::Fifo] {
            let map = || db.map(name()).policy(policy);
            for map in [map().entries(count), map().bytes(count)] {
                let map = map.create_or_open().unwrap();
                map.put_many(&pairs).unwrap();
                assert_eq!(map.get_many(&keys).unwrap(), expected);
            }
        }
        for rate in [1e-9, 0.01, 0.1, 0.5, 0.999] {
            let filter = || db.filter(name()).keys(count).rate(rate).refuse_when_full();
            let (filter, counter) = (filter().create_or_open(), filter().counts().create_or_open());
            let (filter, counter) = (filter.unwrap(), counter.unwrap());
            filter.insert_many(&keys).unwrap();
            keys.iter().for_each(|key| counter.add(key, 2).unwrap());
            assert!(filter.contains_many(&keys).unwrap().iter().all(|it| *it));
            assert!(counter.count_many(&keys).unwrap().iter().all(|it| *it >= 2));
            assert!(filter.stats().rate_made_for <= rate, "{:?}", filter.stats());
            assert_eq!(filter.stats().keys_made_for, count);
        }
        for stored in [Keys::Whole(8), Keys::Fingerprints(8)] {
            let words = db.counting(name()).keys(count).stored(stored).create_or_open().unwrap();
            keys.iter().for_each(|key| words.add(key, 2).unwrap());
            assert_eq!(words.count_many(&keys).unwrap(), vec![2; keys.len()]);
        }
    }
}

#[test]
fn numbers_that_no_structure_is_made_for_are_refused_as_they_were_stated() {
    let (_folder, path) = file();
    let db = open(&path).unwrap();
    for count in [0, u64::MAX] {
        let table = db.table("x").entries(count);
        let mut refused = vec![
            ("entries", text(table.clone().create_or_open())),
            ("entries", text(table.policy(Policy::Grow).create_or_open())),
            ("entries", text(db.map("x").entries(count).create_or_open())),
            ("keys", text(db.filter("x").keys(count).create_or_open())),
            ("keys", text(db.filter("x").keys(count).counts().create_or_open())),
            ("keys", text(db.counting("x").keys(count).create_or_open())),
        ];
        if count > 0 {
            refused.push(("bytes", text(db.map("x").bytes(count).create_or_open())));
        }
        for (stated, found) in refused {
            assert!(found.contains(stated), "{stated}: {found}");
            let is_named = found.contains(&count.to_string()) || found.contains("16.0 EiB");
            assert!(is_named, "{stated}: {found}");
            assert!(!["buffer", "segments", "q: "].iter().any(|it| found.starts_with(it)));
        }
    }
}

#[test]
fn a_parameter_that_is_stated_is_the_tables_and_must_stay_so() {
    let (_folder, path) = file();
    let db = open(&path).unwrap();
    let table = |value: &str| {
        db.table("t").entries(10_000).parameter("spare_buffers", value).create_or_open()
    };
    let made = table("7").unwrap();
    assert!(made.config().values().contains(&("spare_buffers".into(), "7".into())));
    made.close().unwrap();
    table("7").unwrap().close().unwrap();
    let error = table("8").unwrap_err().to_string();
    assert!(error.contains("exists with spare_buffers = 7, and was required with 8"), "{error}");
    let error = db.table("u").parameter("colour", "red").create_or_open().unwrap_err().to_string();
    assert!(error.contains("is not a parameter; the parameters are"), "{error}");
    assert_eq!(db.volume().structures().len(), 1);
}

#[test]
fn a_parameter_that_a_call_of_the_builder_states_is_refused_where_it_differs() {
    let (_folder, path) = file();
    let db = open(&path).unwrap();
    let stored = db.counting("c").stored(Keys::Whole(4)).parameter("keys", "whole:5");
    let grows = db.table("g").policy(Policy::Grow).parameter("first.key_bytes", "16");
    for (refused, call) in [
        (text(db.table("t").parameter("key_bytes", "16").create_or_open()), "widths"),
        (text(grows.create_or_open()), "widths"),
        (text(db.map("m").entries(10).parameter("policy", "fifo").create_or_open()), "policy"),
        (text(stored.create_or_open()), "stored"),
    ] {
        assert!(refused.contains(&format!("state it with `{call}`")), "{refused}");
    }
    assert!(db.volume().structures().is_empty());
    db.counting("c").parameter("keys", "whole:5").create_or_open().unwrap();
}

/// The names, the values and the errors come from one schema, whichever builder is used.
#[test]
fn parameters_of_filters_counting_tables_and_maps_are_stated_and_must_stay_so() {
    type State<'db> = Box<dyn Fn(&str, &str) -> Result<AnyConfig> + 'db>;
    let (_folder, path) = file();
    let db = open(&path).unwrap();
    let filter: State = Box::new(|name, value| {
        db.filter("f").keys(1e4).parameter(name, value).create_or_open().map(|it| it.config())
    });
    let counter: State = Box::new(|name, value| {
        let counter = db.filter("n").keys(1e4).counts().parameter(name, value).create_or_open()?;
        counter
            .close()
            .map(|()| AnyFilter::open(db.volume(), "n", &OpenOptions::default()))?
            .map(|it| it.config())
    });
    let counts: State = Box::new(|name, value| {
        let counts = db.counting("c").keys(1e4).parameter(name, value).create_or_open()?;
        Ok((*counts.config()).into())
    });
    let map: State = Box::new(|name, value| {
        let map = db.map("m").entries(1e4).parameter(name, value).create_or_open()?;
        Ok(map.table().config())
    });
    for (state, name, value, other) in [
        (filter, "fan_out", "8", "9"),
        (counter, "parts", "4", "8"),
        (counts, "discipline", "MB", "MDB"),
        (map, "spare_buffers", "7", "8"),
    ] {
        let refused = text(state("colour", "red"));
        assert!(refused.contains("\"colour\" is not a parameter; the parameters are"), "{refused}");
        for _ in 0..2 {
            let values = state(name, value).unwrap().values();
            assert!(values.contains(&(name.into(), value.into())), "{values:?}");
        }
        let refused = text(state(name, other));
        let both = format!("exists with {name} = {value}, and was required with {other}");
        assert!(refused.contains(&both), "{refused}");
    }
}
