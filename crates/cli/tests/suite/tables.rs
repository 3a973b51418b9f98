//! Full tables, and counts and sizes that are ambiguous.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Folder, json};
use nandex::device::{FileDevice, FileOptions, MemoryDevice};
use nandex::{
    AnyTable, Error, Policy, Requirements, Table, Volume, VolumeOpenOptions, VolumeOptions,
    slicehash,
};

#[test]
fn a_full_table_says_as_many_entries_as_its_figures() {
    for kind in ["bufferhash", "slicehash"] {
        let volume = Volume::create(
            Arc::new(MemoryDevice::new()),
            VolumeOptions { hash_key: Some(42), ..VolumeOptions::default() },
        );
        let required = Requirements { policy: Policy::Reject, ..Requirements::new(5000, 8, 8) };
        let plan = required.advise_one(kind).expect("it can be made");
        let table = AnyTable::create(&volume.expect("memory takes it"), "t", &plan.config);
        let table = table.expect("memory takes it");
        let full = (0..1_000_000).find_map(|key| table.insert_u64(key, key).err());
        let Some(Error::Full { entries, .. }) = full else { panic!("{kind}: {full:?}") };
        assert_eq!(entries, table.stats().entries, "{kind}");
    }
}

#[test]
fn info_says_how_full_a_table_is_of_what_it_was_made_for() {
    for words in [
        "--key-bytes 8 --structure bufferhash",
        "--key-bytes 8 --structure slicehash",
        "--policy reject",
    ] {
        let folder = Folder::new();
        let made = folder.run(&format!("create t.nandex --entries 1e5 {words} --json"));
        let records: String = (0..50_000).map(|key| format!("{key},{key}\n")).collect();
        std::fs::write(folder.path("in.csv"), records).expect("the folder is writable");
        let load = folder.run("load t.nandex in.csv --format csv --key-format u64");
        assert_eq!(load.code, 0, "{load:?}");
        let [made, info] = [made, folder.run("info t.nandex --json")].map(|it| json(&it));
        let table = &info["tables"][0];
        let [planned, found] =
            [&made, table].map(|it| it["entries_capacity"].as_f64().expect("it"));
        assert!((found - planned).abs() < planned * 0.02, "{words}: {planned} {found}");
        let fullness = table["fullness"].as_f64().expect("a number");
        // A BufferHash that refuses estimates its number of keys.
        let apart = if words.ends_with("slicehash") { 1e-6 } else { 0.005 };
        assert!((fullness - 5e4 / found).abs() < apart, "{words}: {fullness}");
        let text = folder.run("info t.nandex").stdout;
        assert!(text.contains("  space for  ") && text.contains(" % full\n"), "{text}");
    }
}

/// `create --structure rhik` reported space for 281,474,976,710,656 entries: the most that it counts to.
#[test]
fn create_says_how_far_ram_and_device_let_a_table_grow() {
    for structure in ["rhik", "growing", "growing-slicehash"] {
        let folder = Folder::new();
        let create = format!("--entries 1e4 --key-bytes 8 --structure {structure}");
        let outcome = folder.run(&format!("create device.nandex {create}"));
        let space = "it grows with the device, whose ";
        assert!(outcome.stdout.contains(space), "{structure}: {outcome:?}");
        let (_, rest) = outcome.stdout.split_once(" free take about ").expect("it says how many");
        let more: u64 = rest.split(' ').next().expect("a number").replace(',', "").parse().unwrap();
        assert!((1_000..1 << 40).contains(&more), "{structure}: {more}");
        let outcome = folder.run(&format!("create ram.nandex {create} --ram 64MiB"));
        assert!(
            outcome.stdout.contains(" entries, as far as its --ram lets it grow"),
            "{outcome:?}"
        );
    }
    let folder = Folder::new();
    let outcome = folder.run("create t.nandex --entries 1e4 --key-bytes 8 --structure slicehash");
    assert!(!outcome.stdout.contains("grow"), "{outcome:?}");
}

#[test]
fn get_says_what_its_cache_was_worth() {
    let folder = Folder::new();
    let create =
        "create t.nandex --entries 1e5 --key-bytes 8 --value-bytes 8 --structure slicehash";
    assert_eq!(folder.run(create).code, 0);
    let records: String = (0..90_000).map(|key| format!("{key},{key}\n")).collect();
    std::fs::write(folder.path("in.csv"), records).expect("the folder is writable");
    let load = folder.run("load t.nandex in.csv --format csv --key-format u64");
    assert_eq!(load.code, 0, "{load:?}");
    // The keys of more than a batch, four times: the first time the cache is empty.
    let keys: String = (0..4).flat_map(|_| 0..2048).map(|key| format!(" {key}")).collect();
    let get = |cache: &str| folder.run(&format!("get t.nandex --key-format u64 {cache}{keys}"));
    let (plain, cached) = (get(""), get("--cache 1MiB"));
    assert_eq!((plain.code, cached.code, &plain.stdout), (0, 0, &cached.stdout));
    assert!(!plain.stderr.contains("cache"), "{}", plain.stderr);
    assert!(
        cached.stderr.contains("the cache answered ") && cached.stderr.contains(", 7"),
        "{}",
        cached.stderr
    );
    let too_little = get("--cache 100").stderr;
    assert!(too_little.contains("this table has none"), "{too_little}");
}

/// It reported "69 G entries, 0.0 % full" for a table on a small disk.
#[test]
fn info_says_how_far_the_device_lets_a_table_grow_whose_ram_has_no_limit() {
    let folder = Folder::new();
    for (name, ram) in [("free", ""), ("limited", "--ram 16MiB")] {
        let words = format!("create {name} --entries 1e5 --key-bytes 8 {ram}");
        assert_eq!(folder.run(&words).code, 0);
    }
    let shown = |name: &str| folder.run(&format!("info {name}")).stdout;
    let free = shown("free");
    assert!(free.contains("it grows with the device, whose "), "{free}");
    assert!(free.contains(" free take about ") && !free.contains("% full"), "{free}");
    assert!(shown("limited").contains("% full"));
}

/// Only the load that evicted reported it; `info` showed nothing of it.
#[test]
fn info_says_what_a_table_has_evicted_over_its_life_also_after_a_kill() {
    for words in ["--structure bufferhash", "--structure slicehash"] {
        let folder = Folder::new();
        let made = "create t --key-bytes 8 --entries 2e4 --policy fifo";
        assert_eq!(folder.run(&format!("{made} {words}")).code, 0);
        let [evicted, forced] = ["evicted_life", "forced_evictions_life"].map(|name| {
            let folder = &folder;
            move || json(&folder.run("info t --json"))["tables"][0][name].as_u64().expect("it")
        });
        assert_eq!((evicted(), forced()), (0, 0));
        assert!(folder.run("info t").stdout.contains("\n  evicted "), "{words}");
        assert!(folder.run("info t").stdout.contains("  none\n"), "{words}");
        let load = "load t in.csv --format csv --key-format u64 --json";
        let mut life = 0;
        for first in [0, 200_000] {
            let records: String =
                (first..first + 200_000).map(|key| format!("{key},{key}\n")).collect();
            std::fs::write(folder.path("in.csv"), records).expect("the folder is writable");
            let told = json(&folder.run(load))["evicted"].as_u64().expect("a count");
            assert!(told > 100_000 && evicted() >= life + told, "{words}: {told} after {life}");
            life = evicted();
        }
        let text = folder.run("info t").stdout;
        assert!(text.contains(" entries in its life\n"), "{text}");
        let mut killed = folder.start(load);
        std::thread::sleep(Duration::from_millis(200));
        killed.kill().expect("it is ours");
        killed.wait().expect("it is ours");
        assert!(evicted() >= life, "{words}: {} after {life}", evicted());
    }
}

#[test]
fn a_load_may_give_a_growing_table_more_ram() {
    let folder = Folder::new();
    let made = folder.run("create t --entries 1e5 --key-bytes 8 --ram 3MiB");
    assert_eq!(made.code, 0, "{made:?}");
    let records: String = (0..1_500_000).map(|key| format!("{key},{key}\n")).collect();
    std::fs::write(folder.path("in.csv"), records).expect("the folder is writable");
    let load = "load t in.csv --format csv --key-format u64";
    let stopped = folder.run(load);
    assert!(stopped.stderr.contains("the table cannot grow"), "{stopped:?}");
    let loaded = json(&folder.run(&format!("{load} --ram 64MiB --json")));
    assert_eq!(loaded["records"], 1_500_000);
    folder.run("create fixed --entries 1e5 --key-bytes 8 --policy reject");
    folder.assert_refused(REFUSED_RAM);
}

const REFUSED_RAM: &str = "
2 | load t in.csv --format csv --key-format u64 --ram 64KiB | table main takes
2 | load t in.csv --format csv --key-format u64 --ram 64KiB | and --ram 64.0 KiB is too little; state more
2 | load fixed in.csv --format csv --key-format u64 --ram 1GiB | which keeps the RAM that it was made with; omit it
2 | create small --key-bytes 8 --entries 1e5 --structure growing --ram 100KiB | --ram: 102400 bytes
2 | create small --key-bytes 8 --entries 1e5 --structure growing-slicehash --ram 100KiB | --ram: 102400 bytes
";

/// Exit codes, commands, and their messages.
const AMBIGUOUS: &str = r#"
2 | create t.nandex --key-bytes 8 --entries 1B | `B` is a unit of bytes, and this is a count; use K, M, G, T
2 | create t.nandex --key-bytes 8 --entries 64KiB | `KiB` is a unit of bytes
2 | create t.nandex --key-bytes 8 --entries 1e5 --policy priority:1KB | `KB` is a unit of bytes
2 | filter build t.nandex in --keys 1B | `B` is a unit of bytes
2 | advise --entries 1B | `B` is a unit of bytes
2 | create t.nandex --key-bytes 8 --entries 1e5 --ram 64Mo | `Mo` is not a unit; use K, M, G, T
"#;

#[test]
fn a_count_with_a_unit_of_bytes_is_refused() {
    Folder::new().assert_refused(AMBIGUOUS);
}

/// Returns the output of a probe, with these channels.
fn probed(channels: &str, mapping: &str) -> String {
    format!(
        r#"{{"chunk_bytes": {{"value": 8192}}, "channels": {{"value": {channels}}}, "groups": [2],
            "mapping": {{"value": {mapping}}}, "phase_bytes": 0}}"#
    )
}

#[test]
fn a_volume_keeps_the_channels_that_it_was_made_with_and_places_slicetables_by_them() {
    let folder = Folder::new();
    for (name, text) in [
        ("drive.json", probed("16", "\"write-order\"")),
        ("blind.json", probed("null", "null")),
        ("odd.json", probed("16", "\"by chance\"")),
        ("text.json", "channels: 16".into()),
    ] {
        std::fs::write(folder.path(name), text).expect("the folder is writable");
    }
    let table = "--entries 1e5 --key-bytes 8 --structure slicehash --policy fifo --json";
    let made = folder.run(&format!("create t.nandex {table} --geometry drive.json"));
    assert_eq!(made.code, 0, "{made:?}");
    let [made, info] = [made, folder.run("info t.nandex --json")].map(|it| json(&it));
    for shown in [&made, &info] {
        let geometry = &shown["geometry"];
        assert_eq!((&geometry["channels"], &geometry["buses"]), (&16.into(), &2.into()), "{shown}");
        assert_eq!(geometry["mapping"], "write-order");
        assert_eq!(geometry["overruled"], false);
    }
    let text = folder.run("info t.nandex").stdout;
    assert!(text.contains("16, chunks of 8.00 KiB, by order of writing\n"), "{text}");
    // Slicetables are rounds of 16 chunks of two pages.
    let file = FileDevice::open(folder.path("t.nandex"), &FileOptions::default());
    let volume = Volume::open(Arc::new(file.expect("it was made")), VolumeOpenOptions::default());
    let volume = volume.expect("it was closed");
    assert_eq!(volume.device().geometry().channels, Some(16));
    let table = AnyTable::open(&volume, "main").expect("it is a table");
    let config = table.config();
    let config: &slicehash::Config = config.of().expect("it is a SliceHash");
    assert_eq!((config.align_pages, config.block_pages() % 32), (32, 0), "{config:?}");
    drop((table, volume));
    let plain = json(&folder.run("create plain.nandex --entries 1e5 --json"));
    assert!(plain.get("geometry").is_none(), "{plain}");
    folder.assert_refused(
        "
2 | create no.nandex --entries 1e5 --geometry blind.json | saw no channels
1 | create no.nandex --entries 1e5 --geometry odd.json | neither lba nor write-order
1 | create no.nandex --entries 1e5 --geometry text.json | is not an output of `nandex probe --json`
1 | create no.nandex --entries 1e5 --geometry gone.json | cannot read
",
    );
    assert!(!folder.path("no.nandex").exists());
}
