//! Power cuts at every single operation of slicetable rewrites: what is found is the old slicetable or the
//! new one, whole, and nothing that was synced is lost; also when the power goes again while that recovers.

use std::collections::HashMap;
use std::sync::Arc;

use nandex::bufferhash::Policy;
use nandex::device::Device;
use nandex::{AnyTable, Result, Table, Volume};
use nandex_sim::{Image, SimDevice};

use super::support::{DURABILITIES, SLICES, Setup, full_sweep};

/// Puts before the cuts begin, so that each partition has a slicetable already.
const BEFORE: u64 = 600;

/// Puts in all.
const ALL: u64 = 1250;

/// Puts that are synced together.
const BATCH: u64 = 50;

/// Keys in turn, so that merges update as well as add.
const KEYS: u64 = 600;

/// What was attempted, and how many of the puts are durable.
#[derive(Clone, Default)]
struct Past {
    attempted: u64,
    durable: u64,
}

fn put(table: &AnyTable, setup: &Setup, numbers: std::ops::Range<u64>) -> Result<()> {
    for number in numbers {
        let key = setup.key(number % KEYS);
        // Every eleventh takes its key out.
        if number % 11 == 10 {
            table.remove(&key)?;
        } else {
            table.insert(&key, &setup.value(number))?;
        }
    }
    table.sync()
}

/// Puts all, in batches, until something fails.
fn work(table: &AnyTable, setup: &Setup, past: &mut Past) -> Result<()> {
    while past.attempted < ALL {
        let first = past.attempted;
        past.attempted += BATCH;
        put(table, setup, first..first + BATCH)?;
        past.durable = past.attempted;
    }
    Ok(())
}

/// Fails unless each key has the version that was durable, or one that was attempted later.
fn judge(table: &AnyTable, setup: &Setup, past: &Past, story: &str) {
    let mut possible: HashMap<u64, Vec<Option<u64>>> = HashMap::new();
    for number in 0..past.attempted {
        let versions = possible.entry(number % KEYS).or_insert_with(|| vec![None]);
        if number < past.durable {
            versions.clear();
        }
        versions.push((number % 11 != 10).then_some(number));
    }
    for (key, versions) in possible {
        let found = table.get(&setup.key(key)).unwrap_or_else(|error| panic!("{story}: {error}"));
        let is = |version: &Option<u64>| match (version, &found) {
            (None, None) => true,
            (Some(version), Some(found)) => **found == *setup.value(*version),
            _ => false,
        };
        assert!(versions.iter().any(is), "{story}: key {key}: {found:?} is none of {versions:?}");
    }
}

fn shared(image: &Image) -> Arc<dyn Device> {
    Arc::new(SimDevice::instant().with_image(image.clone()))
}

/// Proves what survived page by page, then opens it and asks for every key.
fn recover(image: &Image, setup: &Setup, past: &Past, story: &str) {
    let report = nandex::check(shared(image), None, &mut |_| {}).unwrap();
    assert!(report.ok(), "{story}: {:#?}", report.findings);
    let table = setup.open(shared(image)).unwrap_or_else(|error| panic!("{story}: {error}"));
    judge(&table, setup, past, story);
    put(&table, setup, 0..BATCH).unwrap_or_else(|error| panic!("{story}, working on: {error}"));
    table.close().unwrap_or_else(|error| panic!("{story}, closing: {error}"));
}

/// Lets the power go again in the midst of a recovery and what it does then, and recovers from that.
fn recover_twice(image: &Image, setup: &Setup, past: &Past, (cut, seed): (u64, u64)) {
    let device = SimDevice::instant().with_image(image.clone());
    device.cut_after(cut);
    let mut past = past.clone();
    if let Ok(table) = setup.open(Arc::new(device.clone())) {
        // From here on everything is durable, old puts among them, as far as the syncs get.
        let lost = past.durable..past.attempted;
        past.attempted = past.durable;
        if put(&table, setup, lost).is_ok() {
            let _ = work(&table, setup, &mut past);
        }
        past.attempted = past.attempted.max(past.durable + BATCH);
    }
    recover(&device.survivors(seed), setup, &past, &format!("again after {cut}, survivors {seed}"));
}

fn sweep(setup: Setup, stride: usize) {
    let whole = SimDevice::instant();
    let volume = Volume::create(Arc::new(whole.clone()), setup.volume_options()).unwrap();
    let table = setup.create_table(&volume, "t").unwrap();
    put(&table, &setup, 0..BEFORE).unwrap();
    let (first, flushes) = (whole.operations(), table.stats().flushes);
    let mut past = Past { attempted: BEFORE, durable: BEFORE };
    work(&table, &setup, &mut past).unwrap();
    let last = whole.operations();
    let merges = table.stats().flushes - flushes;
    assert!(merges >= 3, "{merges} merges");
    drop((table, volume));
    for cut in (first..last).step_by(stride) {
        let device = SimDevice::instant();
        device.cut_after(cut);
        let volume = Volume::create(Arc::new(device.clone()), setup.volume_options()).unwrap();
        let table = setup.create_table(&volume, "t").unwrap();
        put(&table, &setup, 0..BEFORE).unwrap();
        let mut past = Past { attempted: BEFORE, durable: BEFORE };
        let result = work(&table, &setup, &mut past);
        for seed in [0, 1, 2 + cut, 1000 + cut] {
            let image = device.survivors(seed);
            let story = format!("{setup:?}, cut after {cut} ({result:?}), survivors {seed}");
            recover(&image, &setup, &past, &story);
            recover_twice(&image, &setup, &past, ((cut * 7 + seed) % 40, seed % 5));
        }
    }
    println!("{} cuts in {merges} merges", last - first);
}

#[test]
fn a_cut_at_any_operation_of_a_rewrite_leaves_the_old_slicetable_or_the_new_one() {
    let of = |durability| Setup::busy(Policy::Fifo, durability).inline();
    for slices in [SLICES[0], SLICES[1]] {
        sweep(of(DURABILITIES[1]).sliced(slices), 1);
    }
    // Where every put is durable, most operations are puts.
    sweep(of(DURABILITIES[0]).sliced(SLICES[0]), if full_sweep() { 1 } else { 13 });
}
