//! One page read per lookup, in three ways: a stream from one thread, an engine for many, and one key at a
//! time.
//!
//! `cargo run --release -p nandex --example lookups`
//!
//! Makes a SliceHash of a million entries in a temporary file here, looks up present and absent keys, and
//! prints the reads of each way: a page each, and none for the few keys that are still in a buffer.

use std::sync::Arc;
use std::time::Instant;

use nandex::device::{Create, FileDevice, FileOptions};
use nandex::raw::slicehash::model;
use nandex::slicehash::Config;
use nandex::{LookupEngine, Requirements, SliceHash, Table, Volume, VolumeOptions};

/// The number of present keys: the even numbers below twice this.
const ENTRIES: u64 = 1_000_000;
/// The number of lookups of each way, every second one of an absent key.
const LOOKUPS: u64 = 50_000;
/// The number of threads that ask the engine for one key at a time.
const CALLERS: u64 = 32;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn create(folder: &tempfile::TempDir) -> Outcome<SliceHash> {
    let prediction = model::advise(&Requirements::new(ENTRIES, 8, 8))?;
    println!("{prediction}");
    let config = *prediction.config.of::<Config>()?;
    let new = FileOptions { create: Create::New, ..FileOptions::default() };
    let file = FileDevice::open(folder.path().join("lookups.nandex"), &new)?;
    let options = VolumeOptions { log_bytes: config.log_bytes_best(), ..VolumeOptions::default() };
    let volume = Volume::create(Arc::new(file), options)?;
    Ok(SliceHash::create(&volume, "numbers", config)?)
}

fn fill(table: &SliceHash) -> nandex::Result<()> {
    for first in (0..ENTRIES).step_by(4096) {
        let numbers = first..(first + 4096).min(ENTRIES);
        let pairs: Vec<_> =
            numbers.map(|nth| ((2 * nth).to_le_bytes(), nth.to_le_bytes())).collect();
        let pairs: Vec<(&[u8], &[u8])> = pairs.iter().map(|(k, v)| (&k[..], &v[..])).collect();
        table.insert_many(&pairs)?;
    }
    table.sync()
}

/// Returns a present key for even numbers, and an absent one for odd ones, anywhere in the table.
fn key(nth: u64) -> [u8; 8] {
    let even = nth.wrapping_mul(0x9e37_79b9_7f4a_7c15) % ENTRIES * 2;
    (even + nth % 2).to_le_bytes()
}

/// Submits keys as fast as the device's queue has space; answers come back in whatever order they are read.
fn stream(table: &SliceHash) -> nandex::Result<u64> {
    let mut stream = table.stream()?;
    let mut found = 0;
    for nth in 0..LOOKUPS {
        stream.push(&key(nth), nth)?;
        while let Some((_, value)) = stream.poll()? {
            found += u64::from(value.is_some());
        }
    }
    while let Some((_, value)) = stream.pull()? {
        found += u64::from(value.is_some());
    }
    Ok(found)
}

/// Waits for one key in each caller; the engine's thread keeps the reads of all of them in flight.
fn engine(table: &Arc<SliceHash>) -> nandex::Result<u64> {
    let engine = LookupEngine::start(Arc::clone(table), 1)?;
    let caller = |caller: u64| -> nandex::Result<u64> {
        let mut found = 0;
        for nth in (caller..LOOKUPS).step_by(CALLERS as usize) {
            found += u64::from(engine.get(&key(nth))?.is_some());
        }
        Ok(found)
    };
    std::thread::scope(|scope| {
        let caller = &caller;
        let callers: Vec<_> = (0..CALLERS).map(|nth| scope.spawn(move || caller(nth))).collect();
        callers.into_iter().map(|it| it.join().expect("no caller panics")).sum()
    })
}

fn one_by_one(table: &SliceHash) -> nandex::Result<u64> {
    (0..LOOKUPS).map(|nth| Ok(u64::from(table.get(&key(nth))?.is_some()))).sum()
}

fn show(what: &str, table: &SliceHash, ask: impl FnOnce() -> nandex::Result<u64>) -> Outcome<()> {
    let (before, start) = (table.stats(), Instant::now());
    let found = ask()?;
    let (after, took) = (table.stats(), start.elapsed());
    let reads = after.hit_reads + after.miss_reads - before.hit_reads - before.miss_reads;
    let each = reads as f64 / LOOKUPS as f64;
    let rate = LOOKUPS as f64 / took.as_secs_f64();
    println!("{what:<28} {found} found, {each:.3} reads a lookup, {rate:.0} lookups a second");
    Ok(())
}

fn main() -> Outcome<()> {
    let folder = tempfile::tempdir_in(".")?;
    let table = Arc::new(create(&folder)?);
    fill(&table)?;
    println!("\n{:.2} bytes of RAM per entry", table.stats().ram_bytes_per_entry());
    show("a stream, one thread", &table, || stream(&table))?;
    show("an engine, 32 callers", &table, || engine(&table))?;
    show("one key at a time", &table, || one_by_one(&table))?;
    Ok(())
}
