//! The format stays as described in docs/reference/format.md: volumes that earlier versions wrote open with all their
//! contents, pinned bytes stay the same, and a reader built from the page alone reads them.

mod golden;
mod large;
mod neighbors;
mod reader;

use std::fs::File;
use std::io::{Read, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use nandex::bufferhash::{Config, Policy};
use nandex::device::MemoryDevice;
use nandex::raw::bufferhash;
use nandex::raw::bufferhash::filter::FilterShape;
use nandex::raw::slicehash;
use nandex::raw::store::hash::HashKind;
use nandex::{
    AnyConfig, AnyTable, Cascade, Counter, Counting, Durability, Filter, OpenOptions, Rhik,
    SliceHash, Table, Threads, Volume, VolumeOpenOptions, VolumeOptions, cascade, counting, rhik,
};
use nandex_baseline::{Multilevel, multilevel};

/// Returns an unpacked fixture. If `NANDEX_FIXTURES` is `write` it is written again first; only a new version of the
/// format is a reason for that.
fn fixture(name: &str) -> Vec<u8> {
    let is_of_then = large::OF_THEN.contains(&name);
    if !is_of_then && std::env::var("NANDEX_FIXTURES").is_ok_and(|what| what == "write") {
        let is_closed = name.ends_with("closed");
        let device = match name {
            "v1-evicted" => write_evicting(),
            _ if name.starts_with("v2-cleaned") => write_cleaned(is_closed),
            _ if name.starts_with("v1-updated") => write_updated(is_closed),
            _ if name.starts_with("v3-taken-over") => write_lived(taken_over_config(), is_closed),
            _ if name.starts_with("v4-sizes") => write_lived(sizes_config(), is_closed),
            _ if name.starts_with("v1-large-grown") => large::write_grown(is_closed),
            _ if name.starts_with("v1-growing") => write_growing(is_closed),
            _ if name.starts_with("v1-slicehash") => write_slicehashes(is_closed),
            _ if name.starts_with("v1-cascade") => write_filters(is_closed),
            _ if name.starts_with("v1-counting") => write_counts(is_closed),
            _ if name.starts_with("v1-rhik") => write_rhiks(is_closed),
            _ if name.starts_with("v1-multilevel") => write_multilevels(is_closed),
            _ if name.starts_with("v1-slicelsh-filter") => neighbors::write(is_closed, 1 << 20),
            _ if name.starts_with("v1-slicelsh") => neighbors::write(is_closed, 0),
            _ => write_bufferhashes(name),
        };
        let file = File::create(path(name)).unwrap();
        let mut packed = GzEncoder::new(file, flate2::Compression::best());
        packed.write_all(&device.image()).unwrap();
        packed.finish().unwrap();
    }
    let mut image = Vec::new();
    GzDecoder::new(File::open(path(name)).unwrap()).read_to_end(&mut image).unwrap();
    image
}

fn path(name: &str) -> PathBuf {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fixtures.join(format!("{name}.img.gz"))
}

fn open(name: &str) -> Volume {
    nandex_baseline::register();
    let image = fixture(name);
    let report =
        nandex::check(Arc::new(MemoryDevice::from_image(image.clone())), None, &mut |_| {});
    let report = report.unwrap();
    assert!(report.ok(), "{name}: {:#?}", report.findings);
    Volume::open(Arc::new(MemoryDevice::from_image(image)), VolumeOpenOptions::default()).unwrap()
}

/// Fills the contents of all fixtures: each of these numbers with three times itself, except for every seventh.
fn fill(table: &AnyTable, keys: Range<u64>) {
    for key in keys {
        table.insert_u64(key, key * 3).unwrap();
        if key % 7 == 6 {
            table.remove(&key.to_le_bytes()).unwrap();
        }
    }
}

fn expected(key: u64) -> Option<u64> {
    (key % 7 != 6).then_some(key * 3)
}

fn assert_filled(volume: &Volume, name: &str, config: impl Into<AnyConfig>, keys: u64) {
    let table = AnyTable::open(volume, name).unwrap();
    assert_eq!(table.config(), config.into(), "{name}");
    for key in 0..keys {
        assert_eq!(table.get_u64(key).unwrap(), expected(key), "{name}, key {key}");
    }
    let live = (0..keys).filter_map(expected).count();
    let pairs: nandex::Result<Vec<_>> = table.iter().collect();
    assert_eq!(pairs.unwrap().len(), live, "{name}");
}

/// Returns one table for each policy, the last with Bloom filters.
fn policies() -> Vec<(&'static str, Config)> {
    let with = |policy| Config { policy, ..Config::tiny() };
    let bloom = FilterShape::bloom(470, 12.0, 1).unwrap();
    vec![
        ("lru", with(Policy::Lru)),
        ("update", with(Policy::Update)),
        ("threshold", with(Policy::Threshold(7))),
        ("top", with(Policy::Top(500))),
        ("reject", with(Policy::Reject)),
        ("bloom", Config { filter: bloom, ..Config::tiny() }),
    ]
}

#[test]
fn volumes_that_version_1_closed_or_left_in_a_crash_open_and_hold_everything() {
    assert_filled(&open("v1-closed"), "seen", Config::tiny(), 3000);
    let crashed = open("v1-crash");
    assert_eq!(crashed.hasher().kind(), HashKind::Sip13);
    assert_filled(&crashed, "seen", Config::tiny(), 2500);
}

/// Returns a table whose super tables were rewritten several times.
fn cleaned_config() -> Config {
    Config {
        policy: Policy::Reject,
        segments: 26,
        reserve_segments: 10,
        incarnations_max: 20,
        entries_max: 3000,
        ..Config::tiny()
    }
}

#[test]
fn tables_that_were_cleaned_when_they_were_closed_or_left_in_a_crash_hold_everything() {
    for name in ["v2-cleaned-closed", "v2-cleaned-crash"] {
        let volume = open(name);
        assert_filled(&volume, "lived", cleaned_config(), 3000);
        let found = AnyTable::open(&volume, "lived").unwrap().stats().entries;
        let keys = (0..3000).filter_map(expected).count() as u64;
        assert!(found.abs_diff(keys) <= keys / 20, "{name}: {found} of {keys} keys");
    }
}

/// Returns tables that estimate their keys from the results of merges.
fn updated_configs() -> [(&'static str, AnyConfig); 3] {
    let slices = slicehash::Config { partitions: 2, buffer_pages: 1, ..slicehash_tiny() };
    let grown = slicehash::growing::Config::tiny();
    [("slices", slices.into()), ("splits", grown.into()), ("records", rhik_configs()[0].1.into())]
}

/// The shares of new keys are in the checkpoint of closed tables, and in the moves of a SliceHash after a crash.
#[test]
fn tables_that_were_updated_when_they_were_closed_or_left_in_a_crash_count_their_keys() {
    for fixture in ["v1-updated-closed", "v1-updated-crash"] {
        let volume = open(fixture);
        for (name, config) in updated_configs() {
            assert_filled(&volume, name, config, 3000);
            let found = AnyTable::open(&volume, name).unwrap().stats().entries;
            let keys = (0..3000).filter_map(expected).count() as u64;
            let story = format!("{fixture}, {name}: {found} of {keys} keys");
            assert!(found.abs_diff(keys) <= keys / 25, "{story}");
        }
    }
}

#[test]
fn tables_of_every_policy_that_version_1_wrote_open_with_it() {
    let volume = open("v1-policies");
    policies().into_iter().for_each(|(name, config)| assert_filled(&volume, name, config, 700));
}

/// Returns a SliceHash of each sort: evicting, rejecting, in parts, with a front.
fn slice_configs() -> Vec<(&'static str, slicehash::Config)> {
    let tiny = slicehash::Config { partitions: 2, buffer_pages: 1, slices: 5, ..slicehash_tiny() };
    let parts = slicehash::Config { slices: 3, slice_parts: 2, group_slices: 2, ..tiny };
    let reject = nandex::WhenFull::Refuse;
    vec![
        ("fifo", tiny),
        ("reject", slicehash::Config { policy: reject, bucket_slots: 3, ..tiny }),
        ("parts", slicehash::Config { align_pages: 4, stagger: true, bucket_slots: 2, ..parts }),
        ("front", slicehash::Config { front_runs: 4, ..tiny }),
    ]
}

fn slicehash_tiny() -> slicehash::Config {
    slicehash::Config { entries_max: 1000, ..slicehash::Config::tiny() }
}

/// Fixtures that were closed, and that were left by a crash with slicetables that only moves in the log name.
#[test]
fn slicehashes_that_version_1_wrote_open_and_hold_everything() {
    for name in ["v1-slicehash-closed", "v1-slicehash-crash"] {
        let volume = open(name);
        for (name, config) in slice_configs() {
            assert_filled(&volume, name, config, 1200);
        }
    }
}

/// Returns the growing tables; one has so few slices that they overflow when partitions split.
fn growing_configs() -> [(&'static str, AnyConfig); 3] {
    let grown = slicehash::growing::Config::tiny();
    let few = slicehash::Config { buffer_pages: 1, slices: 1, entries_max: 253, ..grown.first };
    let tight = slicehash::growing::Config { first: few, ..grown };
    // The configuration from before generations counted keys.
    let generations = bufferhash::growing::Config::tiny();
    let first = Config { keeps_versions: false, ..generations.first };
    [
        ("generations", bufferhash::growing::Config { first, ..generations }.into()),
        ("splits", grown.into()),
        ("overflows", tight.into()),
    ]
}

/// Fixtures that were closed, and that were left by a crash while partitions split.
#[test]
fn tables_that_grew_open_and_hold_everything() {
    for fixture in ["v1-growing-closed", "v1-growing-crash"] {
        let volume = open(fixture);
        for (name, config) in growing_configs() {
            let parts = volume.structures().iter().filter(|it| it.name.starts_with(name)).count();
            assert!(parts > 2, "{fixture}: {parts} entries of the catalog for {name}");
            assert_filled(&volume, name, config, 4000);
        }
    }
}

/// Returns a growing table in which a generation has taken over the entries of those before it.
fn taken_over_config() -> bufferhash::growing::Config {
    bufferhash::growing::Config { incarnations_max: 12, ..bufferhash::growing::Config::tiny() }
}

/// Returns one whose later generations have larger buffers.
fn sizes_config() -> bufferhash::growing::Config {
    bufferhash::growing::Config { buffer_pages_max: 8, ..taken_over_config() }
}

#[test]
fn tables_of_a_generation_that_took_over_from_others_hold_everything() {
    let (alike, sizes) = (taken_over_config(), sizes_config());
    let alike = ["v3-taken-over-closed", "v3-taken-over-crash"].map(|name| (name, alike.clone()));
    let sizes = ["v4-sizes-closed", "v4-sizes-crash"].map(|name| (name, sizes.clone()));
    for (name, config) in alike.into_iter().chain(sizes) {
        let volume = open(name);
        let parts = volume.structures().into_iter().filter(|it| it.name.starts_with("lived/"));
        let parts: Vec<_> = parts.map(|it| it.name).collect();
        assert!(!parts.contains(&"lived/g1".to_owned()), "{name}: {parts:?}");
        assert_filled(&volume, "lived", config, 3000);
        let found = AnyTable::open(&volume, "lived").unwrap().stats().entries;
        let keys = (0..3000).filter_map(expected).count() as u64;
        assert!(found.abs_diff(keys) <= keys / 20, "{name}: {found} of {keys} keys");
    }
}

/// Returns a RHIK of several partitions, and one whose tables split early.
fn rhik_configs() -> [(&'static str, rhik::Config); 2] {
    let small = rhik::Config { partitions: 2, buffer_pages: 1, ..rhik::Config::tiny() };
    let early = rhik::Config { partitions: 1, neighbourhood: 6, split_permille: 600, ..small };
    [("usual", small), ("early", early)]
}

/// Fixtures that were closed, and that were left by a crash with updates that only the log holds, and tables that no
/// checkpoint names.
#[test]
fn rhiks_that_version_1_wrote_open_and_hold_everything() {
    for fixture in ["v1-rhik-closed", "v1-rhik-crash"] {
        let volume = open(fixture);
        for (name, config) in rhik_configs() {
            assert_filled(&volume, name, config, 2500);
            let stats = Rhik::open(&volume, name).unwrap().rhik_stats();
            assert!(stats.tables > 4 && stats.directory_entries > 4, "{fixture}: {stats:?}");
        }
    }
}

/// Returns a multi-level index of several partitions, and one of groups of a page and a first level of two.
fn multilevel_configs() -> [(&'static str, multilevel::Config); 2] {
    let tiny = multilevel::Config::tiny();
    let small = multilevel::Config { partitions: 2, buffer_pages: 1, ..tiny };
    let single = multilevel::Config {
        partitions: 1,
        first_pages: 2,
        group_pages: 1,
        page_cache_bytes: 0,
        ..small
    };
    [("usual", small), ("single", single)]
}

/// Fixtures that were closed, and that were left by a crash with updates that only the log holds, and groups that no
/// checkpoint names.
#[test]
fn multilevel_indexes_that_version_1_wrote_open_and_hold_everything() {
    for fixture in ["v1-multilevel-closed", "v1-multilevel-crash"] {
        let volume = open(fixture);
        for (name, config) in multilevel_configs() {
            assert_filled(&volume, name, config, 2500);
            let stats = Multilevel::open(&volume, name).unwrap().group_stats();
            assert!(stats.levels >= 3 && stats.pages > 8, "{fixture}: {stats:?}");
        }
    }
}

/// Returns a table of each structure with a policy that evicts.
fn evicting_configs() -> [(&'static str, AnyConfig); 2] {
    let ring = Config { super_tables: 2, segments: 10, incarnations_max: 6, ..Config::tiny() };
    [("ring", ring.into()), ("slices", slice_configs()[0].1.into())]
}

#[test]
fn what_a_table_has_evicted_over_its_life_is_read() {
    let volume = open("v1-evicted");
    for (name, config) in evicting_configs() {
        let table = AnyTable::open(&volume, name).unwrap();
        assert_eq!(table.config(), config, "{name}");
        let stats = table.stats();
        assert!(stats.evicted_life > 0 && stats.evicted == 0, "{name}: {stats:?}");
        assert_eq!(stats.entries + stats.evicted_life, EVICTING_KEYS, "{name}");
    }
}

/// The states of earlier fixtures end before the counts.
#[test]
fn a_table_of_an_earlier_version_has_evicted_nothing_that_is_known() {
    for fixture in ["v1-closed", "v1-policies", "v1-slicehash-closed"] {
        let volume = open(fixture);
        for table in volume.structures() {
            let stats = AnyTable::open(&volume, &table.name).unwrap().stats();
            let life = (stats.evicted_life, stats.forced_evictions_life);
            assert_eq!(life, (0, 0), "{fixture}, {}", table.name);
        }
    }
}

/// The number of different keys of the fixture whose tables evict.
const EVICTING_KEYS: u64 = 8000;

/// Returns a cascade filter of each sort: the deck's levels, parts with one level, counts.
fn filter_configs() -> Vec<(&'static str, cascade::Config)> {
    let exact = cascade::Config { rate: 1e-9, ..cascade::Config::tiny() };
    let wide = cascade::Config { parts: 3, fan_out: None, ..exact };
    vec![
        ("deck", exact),
        ("wide", cascade::Config { when_full: nandex::WhenFull::Refuse, ..wide }),
        ("counts", cascade::Config { counts: true, parts: 2, ..exact }),
    ]
}

/// Inserts every key once, deletes every seventh, and adds every tenth 300 times more.
fn note(filter: &Cascade, keys: std::ops::Range<u64>) {
    for key in keys {
        filter.insert(&key.to_le_bytes()).unwrap();
        if key % 7 == 6 {
            filter.delete(&key.to_le_bytes()).unwrap();
        }
        if key % 10 == 0 {
            filter.add(&key.to_le_bytes(), 300).unwrap();
        }
    }
}

/// Fixtures that were closed, and that were left by a crash with updates that only the log holds, on both sides of
/// cuts.
#[test]
fn filters_that_version_1_wrote_open_and_hold_everything() {
    for name in ["v1-cascade-closed", "v1-cascade-crash"] {
        let volume = open(name);
        for (name, config) in filter_configs() {
            let filter = Cascade::open(&volume, name).unwrap();
            assert_eq!(*filter.config(), config, "{name}");
            for key in 0..1200_u64 {
                let expected = u64::from(key % 7 != 6) + if key % 10 == 0 { 300 } else { 0 };
                let count = filter.count(&key.to_le_bytes()).unwrap();
                assert_eq!(count, expected, "{name}, key {key}");
            }
            assert!(!filter.contains(&1200_u64.to_le_bytes()).unwrap());
        }
    }
}

/// Returns a counting table of each discipline, with whole keys and with fingerprints.
fn counting_configs() -> [(&'static str, counting::Config); 3] {
    let small = counting::Config { change_permille: 600, ..counting::Config::tiny() };
    [
        ("mb", counting::Config { discipline: counting::Discipline::Mb, ..small }),
        ("mdb", counting::Config { discipline: counting::Discipline::Mdb, k: 2, ..small }),
        ("mdb-l", counting::Config { keys: counting::Keys::Fingerprints(7), ..small }),
    ]
}

/// Adds a number's square to it, subtracts one from every third, and removes every seventh.
fn count_all(table: &Counting, keys: Range<u64>) {
    for key in keys {
        table.add(&key.to_le_bytes(), (key * key + 1).cast_signed()).unwrap();
        if key % 3 == 0 {
            table.add(&key.to_le_bytes(), -1).unwrap();
        }
        if key % 7 == 6 {
            table.remove(&key.to_le_bytes()).unwrap();
        }
    }
}

#[test]
fn counting_tables_that_version_1_wrote_open_and_hold_everything() {
    for name in ["v1-counting-closed", "v1-counting-crash"] {
        let volume = open(name);
        for (name, config) in counting_configs() {
            let table = Counting::open(&volume, name).unwrap();
            assert_eq!(*table.config(), config, "{name}");
            for key in 0..1200_u64 {
                let sum = key * key + 1 - u64::from(key % 3 == 0);
                let expected = if key % 7 == 6 { 0 } else { sum };
                assert_eq!(table.count(&key.to_le_bytes()).unwrap(), expected, "{name}, key {key}");
            }
            assert_eq!(table.sum(&1200_u64.to_le_bytes()).unwrap(), 0);
        }
    }
}

/// Returns a new volume on the calling thread, in which nothing is durable before it is synced.
fn inline(hash: HashKind) -> (MemoryDevice, Volume) {
    let device = MemoryDevice::new();
    let options = VolumeOptions {
        hash,
        log_bytes: 1 << 17,
        durability: Durability::Every(Duration::from_secs(3600)),
        threads: Threads::Inline,
        ..VolumeOptions::tiny()
    };
    let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
    (device, volume)
}

fn write_bufferhashes(name: &str) -> MemoryDevice {
    let hash = match name {
        "v1-closed" => HashKind::Xxh3,
        "v1-crash" => HashKind::Sip13,
        _ => HashKind::Identity,
    };
    let device = MemoryDevice::new();
    let options = VolumeOptions { hash, log_bytes: 1 << 17, ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
    let create = |name: &str, config: Config| -> AnyTable {
        AnyTable::create(&volume, name, &config.into()).unwrap()
    };
    match name {
        "v1-closed" => {
            let table = create("seen", Config::tiny());
            fill(&table, 0..3000);
            table.close().unwrap();
        }
        "v1-crash" => {
            let table = create("seen", Config::tiny());
            fill(&table, 0..2400);
            table.flush().unwrap();
            for start in (2400..2500).step_by(20) {
                fill(&table, start..start + 1);
                table.sync().unwrap();
                fill(&table, start + 1..start + 20);
            }
            table.sync().unwrap();
            return MemoryDevice::from_image(device.image());
        }
        _ => {
            for (name, config) in policies() {
                let table = create(name, config);
                fill(&table, 0..700);
                // More than the buffers hold, so that there are incarnations, and then less again.
                (700..2600).for_each(|key| table.insert_u64(key, 0).unwrap());
                (700..2600).for_each(|key: u64| table.remove(&key.to_le_bytes()).unwrap());
                table.close().unwrap();
            }
        }
    }
    drop(volume);
    device
}

fn write_evicting() -> MemoryDevice {
    let (device, volume) = inline(HashKind::Identity);
    for (name, config) in evicting_configs() {
        let table = AnyTable::create(&volume, name, &config).unwrap();
        (0..EVICTING_KEYS).for_each(|key| table.insert_u64(key, key).unwrap());
        table.close().unwrap();
    }
    drop(volume);
    device
}

/// Returns the image of structures that are closed, or of a crash that leaves them and their synced log.
fn left_by<S>(
    (device, volume): (MemoryDevice, Volume),
    structures: impl IntoIterator<Item = S>,
    close: Option<fn(S) -> nandex::Result<()>>,
) -> MemoryDevice {
    let structures: Vec<S> = structures.into_iter().collect();
    let Some(close) = close else {
        volume.log().sync().unwrap();
        return MemoryDevice::from_image(device.image());
    };
    structures.into_iter().for_each(|structure| close(structure).unwrap());
    drop(volume);
    device
}

fn write_slicehashes(is_closed: bool) -> MemoryDevice {
    let (device, volume) = inline(if is_closed { HashKind::Xxh3 } else { HashKind::Sip13 });
    let runtime = || OpenOptions::default().inline();
    let create = |(name, config)| SliceHash::create_with(&volume, name, config, runtime()).unwrap();
    let tables: Vec<AnyTable> = slice_configs().into_iter().map(|it| create(it).into()).collect();
    tables.iter().for_each(|table| fill(table, 0..500));
    tables.iter().for_each(|table| table.flush().unwrap());
    tables.iter().for_each(|table| fill(table, 500..1200));
    left_by((device, volume), tables, is_closed.then_some(AnyTable::close))
}

fn write_cleaned(is_closed: bool) -> MemoryDevice {
    let (device, volume) = inline(HashKind::default());
    let options = OpenOptions::default().inline();
    let config = cleaned_config().into();
    let table = AnyTable::create_with(&volume, "lived", &config, &options).unwrap();
    (0..8).for_each(|_| fill(&table, 0..3000));
    let segment_bytes = u64::from(cleaned_config().segment_pages()) * 4096;
    let segments = table.stats().data_bytes_written / segment_bytes;
    assert!(segments > 2 * cleaned_config().segments, "{segments} segments");
    left_by((device, volume), [table], is_closed.then_some(AnyTable::close))
}

fn write_updated(is_closed: bool) -> MemoryDevice {
    let (device, volume) = inline(HashKind::default());
    let options = OpenOptions::default().inline();
    let create = |(name, config)| AnyTable::create_with(&volume, name, &config, &options).unwrap();
    let tables = updated_configs().map(create);
    (0..4).for_each(|_| tables.iter().for_each(|table| fill(table, 0..3000)));
    left_by((device, volume), tables, is_closed.then_some(AnyTable::close))
}

fn write_lived(config: bufferhash::growing::Config, is_closed: bool) -> MemoryDevice {
    let (device, volume) = inline(HashKind::default());
    let options = OpenOptions::default().inline();
    let table = AnyTable::create_with(&volume, "lived", &config.into(), &options).unwrap();
    (0..8).for_each(|_| fill(&table, 0..3000));
    left_by((device, volume), [table], is_closed.then_some(AnyTable::close))
}

fn write_growing(is_closed: bool) -> MemoryDevice {
    let (device, volume) = inline(HashKind::default());
    let options = OpenOptions::default().inline();
    let create = |(name, config)| AnyTable::create_with(&volume, name, &config, &options).unwrap();
    let tables = growing_configs().map(create);
    for keys in [0..1500, 1500..3000, 3000..4000] {
        tables.iter().for_each(|table| fill(table, keys.clone()));
        if keys.start == 0 {
            tables.iter().for_each(|table| table.flush().unwrap());
        }
    }
    left_by((device, volume), tables, is_closed.then_some(AnyTable::close))
}

fn write_filters(is_closed: bool) -> MemoryDevice {
    let (device, volume) = inline(HashKind::default());
    let runtime = OpenOptions::default().inline();
    let create =
        |(name, config)| Cascade::create_with(&volume, name, config, runtime.clone()).unwrap();
    let filters: Vec<_> = filter_configs().into_iter().map(create).collect();
    filters.iter().for_each(|filter| note(filter, 0..500));
    filters.iter().for_each(|filter| filter.flush().unwrap());
    filters.iter().for_each(|filter| note(filter, 500..1200));
    left_by((device, volume), filters, is_closed.then_some(Cascade::close))
}

fn write_counts(is_closed: bool) -> MemoryDevice {
    let (device, volume) = inline(HashKind::default());
    let runtime = OpenOptions::default().inline();
    let create =
        |(name, config)| Counting::create_with(&volume, name, config, runtime.clone()).unwrap();
    let tables: Vec<_> = counting_configs().into_iter().map(create).collect();
    tables.iter().for_each(|table| count_all(table, 0..500));
    tables.iter().for_each(|table| table.flush().unwrap());
    tables.iter().for_each(|table| count_all(table, 500..1200));
    left_by((device, volume), tables, is_closed.then_some(Counting::close))
}

fn write_multilevels(is_closed: bool) -> MemoryDevice {
    let (device, volume) = inline(HashKind::default());
    let runtime = OpenOptions::default().inline();
    let create =
        |(name, config)| Multilevel::create_with(&volume, name, config, runtime.clone()).unwrap();
    let tables: Vec<AnyTable> =
        multilevel_configs().into_iter().map(|it| create(it).into()).collect();
    tables.iter().for_each(|table| fill(table, 0..1500));
    tables.iter().for_each(|table| table.flush().unwrap());
    tables.iter().for_each(|table| fill(table, 1500..2500));
    left_by((device, volume), tables, is_closed.then_some(AnyTable::close))
}

fn write_rhiks(is_closed: bool) -> MemoryDevice {
    let (device, volume) = inline(HashKind::default());
    let runtime = OpenOptions::default().inline();
    let create =
        |(name, config)| Rhik::create_with(&volume, name, config, runtime.clone()).unwrap();
    let tables: Vec<AnyTable> = rhik_configs().into_iter().map(|it| create(it).into()).collect();
    tables.iter().for_each(|table| fill(table, 0..1500));
    tables.iter().for_each(|table| table.flush().unwrap());
    tables.iter().for_each(|table| fill(table, 1500..2500));
    left_by((device, volume), tables, is_closed.then_some(AnyTable::close))
}
