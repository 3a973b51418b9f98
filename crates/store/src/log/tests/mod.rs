//! The log's promises: order, wrap, torn tails, damage, group commit, back-pressure.

mod damage;
mod format;
mod probe;
mod replay;
mod space;
mod sync;

use std::sync::Arc;

use nandex_device::{Device, PAGE_BYTES, PageId};

use super::{Durability, Log, LogAnchor, LogEnd, LogOptions, LogRegion, Lsn, replay as replay_log};
use crate::space::Extent;
use crate::{Poison, Result, StructureId, Threads};
use probe::Probe;

/// The volume of all these tests.
const VOLUME: u128 = 0x0123_4567_89ab_cdef_0011_2233_4455_6677;

/// Pages before the log's region, which it must never touch.
const FIRST_PAGE: u64 = 3;

/// An entry as a test sees it.
type Entry = (StructureId, Vec<u8>);

/// Returns a log region on a device of its own.
fn region(device: &Probe, pages: u64, block_pages: usize) -> LogRegion {
    device.grow(FIRST_PAGE + pages + 1).unwrap();
    LogRegion {
        device: Arc::new(device.clone()),
        parts: Extent { start: PageId(FIRST_PAGE), pages }.into(),
        block_bytes: block_pages * PAGE_BYTES,
    }
}

fn start_at(region: &LogRegion, durability: Durability, end: LogEnd, tail: Lsn) -> Result<Log> {
    let options = LogOptions {
        region: region.clone(),
        volume_id: VOLUME,
        epoch: end.epoch + 1,
        durability,
        threads: Threads::Background,
    };
    Log::start(options, end, tail, Arc::new(Poison::default()))
}

/// Starts a new log.
fn start(region: &LogRegion, durability: Durability) -> Log {
    start_at(region, durability, LogEnd::default(), Lsn(0)).unwrap()
}

/// Starts a new log on a device of its own.
fn fresh(pages: u64, block_pages: usize, durability: Durability) -> (Probe, LogRegion, Log) {
    let device = Probe::default();
    let region = region(&device, pages, block_pages);
    let log = start(&region, durability);
    (device, region, log)
}

/// Returns the numbers of the entries that a power cut leaves of a log from its beginning on.
fn durable(device: &Probe, region: &LogRegion) -> Vec<u64> {
    let image = on_image(region, device.durable_image());
    numbers(&entries_from(&image, LogAnchor::default()).unwrap().1)
}

/// Opens the log again as a volume does: reads it, then continues behind its end.
fn reopen(region: &LogRegion, anchor: LogAnchor) -> (Log, Vec<Entry>) {
    let (end, entries) = entries_from(region, anchor).unwrap();
    (start_at(region, Durability::Never, end, anchor.tail).unwrap(), entries)
}

/// Returns every entry of the log from an anchor on.
fn entries_from(region: &LogRegion, anchor: LogAnchor) -> Result<(LogEnd, Vec<Entry>)> {
    let mut all = Vec::new();
    let end = replay_log(region, VOLUME, anchor, &mut |_, structure, entry_bytes, entries| {
        all.extend(entries.chunks_exact(entry_bytes).map(|entry| (structure, entry.to_vec())));
        Ok(())
    })?;
    Ok((end, all))
}

/// Returns the same region on a copy of the device's bytes.
fn on_image(region: &LogRegion, image: Vec<u8>) -> LogRegion {
    LogRegion { device: Arc::new(Probe::from_image(image)), ..region.clone() }
}

/// Returns an entry of `bytes` bytes that contains its number.
fn numbered(number: u64, bytes: usize) -> Vec<u8> {
    number.to_le_bytes().into_iter().cycle().take(bytes).collect()
}

/// The numbers of entries made by `numbered` with 8 bytes or more.
fn numbers(entries: &[Entry]) -> Vec<u64> {
    entries.iter().map(|(_, entry)| crate::bytes::get_u64(entry, 0)).collect()
}

/// Appends numbered entries of 100 bytes and makes them durable, block by block.
fn append_synced(log: &Log, range: std::ops::Range<u64>) -> Vec<Lsn> {
    let mut places = Vec::new();
    for number in range {
        places.push(log.append(StructureId(1), &[&numbered(number, 100)]).unwrap());
        log.sync().unwrap();
    }
    places
}
