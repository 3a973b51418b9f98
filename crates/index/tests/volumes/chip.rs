//! BufferHash on a raw flash chip: each super table in its own part, blocks erased before they are written again, and
//! everything that is overwritten in place on the volume's device.
//!
//! The simulated chip rejects what flash cannot do, so that a write to a page that is not erased, or an erase of part
//! of a block, fails these tests.

use std::collections::HashMap;
use std::sync::Arc;

use nandex::bufferhash::{Config, Policy};
use nandex::device::{Device, MemoryDevice};
use nandex::raw::bufferhash::Placement;
use nandex::raw::device::{PageBuf, PageId};
use nandex::{
    BufferHash, Durability, OpenOptions, Result, Table, Threads, Volume, VolumeOpenOptions,
    VolumeOptions,
};
use nandex_sim::{Fill, Image, SimDevice};

use super::{BUS_NS, COMMAND_NS, ERASE_NS, PROGRAM_NS};

/// Two pages of a buffer and one of its filter: a segment is one block.
const BLOCK_PAGES: u32 = 3;

/// Returns a chip in an unknown state: no page of it is erased.
fn chip() -> SimDevice {
    super::raw_chip(24, BLOCK_PAGES, Fill::Sequential)
}

fn config(policy: Policy) -> Config {
    Config { policy, placement: Placement::Chip { block_pages: BLOCK_PAGES }, ..Config::tiny() }
}

fn options(chip: &SimDevice) -> OpenOptions {
    let chip = Some(Arc::new(chip.clone()) as Arc<dyn Device>);
    OpenOptions { flush_threads: Some(0), chip, ..OpenOptions::default() }
}

fn create(device: Arc<dyn Device>, chip: &SimDevice, config: Config) -> Result<BufferHash> {
    let volume = VolumeOptions {
        durability: Durability::Always,
        threads: Threads::Inline,
        volume_id: Some(7),
        hash_key: Some(9),
        ..VolumeOptions::tiny()
    };
    BufferHash::create_with(&Volume::create(device, volume)?, "t", config, options(chip))
}

fn open(device: Arc<dyn Device>, chip: &SimDevice) -> Result<BufferHash> {
    let volume = VolumeOpenOptions {
        durability: Durability::Always,
        threads: Threads::Inline,
        ..VolumeOpenOptions::default()
    };
    BufferHash::open_with(&Volume::open(device, volume)?, "t", options(chip))
}

fn put(table: &BufferHash, pairs: &[(u64, u64)]) -> Result<()> {
    let bytes: Vec<_> =
        pairs.iter().map(|(key, value)| (key.to_le_bytes(), value.to_le_bytes())).collect();
    let pairs: Vec<_> = bytes.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    table.insert_many(&pairs)
}

/// More than three laps of the chip: its blocks hold about 450 entries each.
const BATCHES: u64 = 400;
const BATCH: u64 = 100;

/// Returns the batch with this number: new keys, and each time some of an older batch with new values.
fn batch(number: u64) -> Vec<(u64, u64)> {
    let old = (number / 2 * BATCH..).take(5).map(|key| (key, number));
    (number * BATCH..(number + 1) * BATCH).map(|key| (key, number)).chain(old).collect()
}

#[test]
fn every_policy_agrees_with_the_oracle_over_several_laps_and_openings() -> Result<()> {
    let policies =
        [Policy::Fifo, Policy::Lru, Policy::Update, Policy::Threshold(0), Policy::Top(500)];
    for policy in policies {
        let (device, chip) = (Arc::new(MemoryDevice::new()), chip());
        let mut table = create(device.clone(), &chip, config(policy))?;
        let mut oracle = HashMap::new();
        for number in 0..BATCHES {
            put(&table, &batch(number))?;
            oracle.extend(batch(number));
            if number % 130 == 129 {
                table.close()?;
                table = open(device.clone(), &chip)?;
            }
        }
        // The entries that a partial discard puts back take up to four in five incarnations of a part.
        let young = if policy.is_partial() { 8 } else { 20 };
        let mut found = 0;
        for (&key, &value) in &oracle {
            let got = table.get_u64(key)?;
            assert!(got.is_none_or(|got| got == value), "{policy:?}: key {key}");
            found += u64::from(got.is_some());
            assert!(
                got.is_some() || key < (BATCHES - young) * BATCH,
                "{policy:?}: key {key} is young"
            );
        }
        let kept = table.iter().collect::<Result<Vec<_>>>()?;
        assert_eq!(kept.len() as u64, found, "{policy:?}");
        assert!((15 * 400..oracle.len() as u64).contains(&found), "{policy:?}: {found}");
    }
    Ok(())
}

#[test]
fn threads_that_share_a_table_on_a_chip_find_what_they_put() -> Result<()> {
    let chip = chip();
    let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
    let options = OpenOptions { flush_threads: Some(2), ..options(&chip) };
    let table = BufferHash::create_with(&volume, "t", config(Policy::Fifo), options)?;
    std::thread::scope(|scope| {
        let work = |thread: u64| -> Result<()> {
            for key in 0..8_000 {
                let key = key * 3 + thread;
                table.insert_u64(key, key)?;
                assert_eq!(table.get_u64(key)?, Some(key));
                let older = key.saturating_sub(3_000) / 3 * 3 + thread;
                assert!(table.get_u64(older)?.is_none_or(|value| value == older));
            }
            Ok(())
        };
        let threads: Vec<_> = (0..3).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("its message says why"))
    })?;
    assert!(table.stats().flushes > 40);
    Ok(())
}

#[test]
fn a_flush_of_one_block_costs_an_erase_and_its_programs_and_nothing_else() -> Result<()> {
    let chip = chip();
    let table = create(Arc::new(MemoryDevice::new()), &chip, config(Policy::Fifo))?;
    for number in 0..BATCHES {
        put(&table, &batch(number))?;
    }
    let flushes = table.stats().flushes;
    assert!(flushes > 4 * 20, "{flushes} flushes");
    // Discard, write and sync are a command each: C1 + C2 of section 6.1, and the sync.
    let each_ns = 3 * COMMAND_NS + ERASE_NS + u64::from(BLOCK_PAGES) * (PROGRAM_NS + BUS_NS);
    assert_eq!(chip.now(), flushes * each_ns);
    Ok(())
}

#[test]
fn each_super_table_goes_round_in_its_own_part_of_the_chip() -> Result<()> {
    let chip = chip();
    let table = create(Arc::new(MemoryDevice::new()), &chip, config(Policy::Fifo))?;
    let generation = |block: u64| -> Result<u64> {
        let page = chip.read(PageId(block * u64::from(BLOCK_PAGES)), PageBuf::zeroed(1))?;
        // A sealed page's generation is a segment's number below 16 bits of epoch: docs/reference/format.md.
        Ok((0..6).map(|byte| u64::from(page[16 + byte]) << (8 * byte)).sum())
    };
    for number in 0..BATCHES {
        put(&table, &batch(number))?;
    }
    let flushes = table.stats().flushes;
    let mut total = 0;
    for part in 0..4 {
        let numbers = (part * 6..(part + 1) * 6).map(generation).collect::<Result<Vec<_>>>()?;
        let newest = numbers.iter().copied().max().unwrap_or(0);
        // Segment q is in block q mod 6 of the part, and the six newest numbers are there.
        for (slot, number) in (0..6).zip(numbers) {
            assert_eq!(number % 6, slot, "part {part}");
            assert!(number + 6 > newest, "part {part}: {number}, newest {newest}");
        }
        total += newest;
    }
    assert_eq!(total, flushes, "the parts' numbers count the flushes of their super tables");
    Ok(())
}

/// The contents of both devices after a power cut.
struct Remains {
    device: SimDevice,
    chip: SimDevice,
}

/// Works until the power cut, and returns what is left and the number of acknowledged batches.
fn cut(of_chip: bool, after: u64, seed: u64) -> (Remains, Option<u64>) {
    let (device, chip) = (SimDevice::instant(), chip());
    if of_chip {
        chip.cut_after(after)
    } else {
        device.cut_after(after)
    }
    let table = create(Arc::new(device.clone()), &chip, config(Policy::Fifo));
    let acknowledged = table.ok().map(|table| {
        let failed = (0..BATCHES).find(|number| put(&table, &batch(*number)).is_err());
        failed.unwrap_or(BATCHES)
    });
    let device = SimDevice::instant().with_image(device.survivors(seed));
    let chip = self::chip().with_image(chip.survivors(seed));
    (Remains { device, chip }, acknowledged)
}

/// Checks that every young acknowledged batch is present, and nothing older than the newest version of a key.
fn check(table: &BufferHash, acknowledged: u64, story: &str) -> Result<()> {
    let oracle: HashMap<_, _> = (0..acknowledged).flat_map(batch).collect();
    // The batch that was being written may be present as well.
    let under_way: HashMap<_, _> = batch(acknowledged).into_iter().collect();
    for (key, value) in &oracle {
        let got = table.get_u64(*key)?;
        let newer = under_way.get(key);
        assert!(got.is_none() || got == Some(*value) || got == newer.copied(), "{story}: {key}");
        let is_young = *key >= acknowledged.saturating_sub(20) * BATCH;
        assert!(got.is_some() || !is_young, "{story}: key {key} of {acknowledged} batches is lost");
    }
    Ok(())
}

fn sweep(of_chip: bool, operations: u64, cuts: u64) -> Result<()> {
    for number in 0..cuts {
        let (after, seed) = (operations * number / cuts, number % 7);
        let story = format!("cut of the chip: {of_chip}, after {after} operations, seed {seed}");
        let (Remains { device, chip }, acknowledged) = cut(of_chip, after, seed);
        let Some(acknowledged) = acknowledged else { continue };
        let device = Arc::new(device);
        let table = match open(device.clone(), &chip) {
            Ok(table) => table,
            Err(error) => panic!("{story}: {error}"),
        };
        check(&table, acknowledged, &story)?;
        // It continues, over blocks whose erase or write was cut, and opens again.
        (acknowledged..acknowledged + 100).try_for_each(|number| put(&table, &batch(number)))?;
        table.close()?;
        check(&open(device, &chip)?, acknowledged + 100, &story)?;
    }
    Ok(())
}

#[test]
fn a_power_cut_at_any_operation_of_either_device_loses_nothing_acknowledged() -> Result<()> {
    let (device, chip) = (SimDevice::instant(), chip());
    let table = create(Arc::new(device.clone()), &chip, config(Policy::Fifo))?;
    (0..BATCHES).try_for_each(|number| put(&table, &batch(number)))?;
    drop(table);
    let full = std::env::var("NANDEX_SWEEP").is_ok_and(|sweep| sweep == "full");
    let cuts = |operations: u64| if full { operations } else { 40 };
    sweep(true, chip.operations(), cuts(chip.operations()))?;
    sweep(false, device.operations(), cuts(device.operations()))
}

#[test]
fn a_chip_of_another_volume_or_an_empty_one_is_told() -> Result<()> {
    let make = |hash_key| -> Result<(Arc<MemoryDevice>, SimDevice)> {
        let (device, chip) = (Arc::new(MemoryDevice::new()), chip());
        let volume = VolumeOptions { hash_key: Some(hash_key), ..VolumeOptions::tiny() };
        let volume = Volume::create(device.clone(), volume)?;
        let table = BufferHash::create_with(&volume, "t", config(Policy::Fifo), options(&chip))?;
        (0..60).try_for_each(|number| put(&table, &batch(number)))?;
        table.close()?;
        Ok((device, chip))
    };
    let [(one, chip_of_one), (_, chip_of_other)] = [make(1)?, make(2)?];
    let told = |chip: &SimDevice, part: &str| match open(one.clone(), chip) {
        Ok(_) => panic!("expected: {part}"),
        Err(error) => assert!(error.to_string().contains(part), "{error}"),
    };
    told(&chip_of_other, "its keys are where another volume puts them");
    let empty = chip();
    empty.grow(72)?;
    told(&empty, "give the one that the table was created with");
    // All pages of one super table may be damaged, and the others are still sufficient proof.
    let mut bytes = chip_of_one.survivors(0).to_bytes();
    (0..18).for_each(|page| bytes[page * 4096 + 100] ^= 1);
    let damaged = chip().with_image(Image::from_bytes(&bytes));
    assert!(open(one.clone(), &damaged)?.stats().entries > 60 * BATCH);
    Ok(())
}

#[test]
fn a_chip_that_is_missing_short_or_not_wanted_is_told() -> Result<()> {
    let told = |result: Result<BufferHash>, part: &str| match result {
        Ok(_) => panic!("expected: {part}"),
        Err(error) => assert!(error.to_string().contains(part), "{error}"),
    };
    let device = || Arc::new(MemoryDevice::new());
    let volume = || Volume::create(device(), VolumeOptions::tiny());
    told(
        BufferHash::create(&volume()?, "t", config(Policy::Fifo)),
        "give it in the runtime options",
    );
    let shared = BufferHash::create_with(&volume()?, "t", Config::tiny(), options(&chip()));
    told(shared, "open it without a chip");
    let large = Config { segments: 28, ..config(Policy::Fifo) };
    told(create(device(), &chip(), large), "the device has 72 pages");

    let kept = device();
    create(kept.clone(), &chip(), config(Policy::Fifo))?.close()?;
    told(open(kept.clone(), &SimDevice::instant()), "the chip has 0 pages and the table has 72");
    let error = nandex::check(kept, None, &mut |_| {}).err();
    assert!(error.is_some_and(|error| error.to_string().contains("\"t\" are on a chip")));
    Ok(())
}
