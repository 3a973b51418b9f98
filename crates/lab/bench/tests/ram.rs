//! The maximum RAM of a growing table, counted by the allocator. It counts the whole process, so this is the
//! only test in it.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::alloc::System;
use std::sync::Arc;

use nandex::device::{Create, FileDevice, FileOptions};
use nandex::rhik::KIND;
use nandex::{AnyTable, Policy, Requirements, Table, Volume, VolumeOptions};
use nandex_bench::keys::KeySpace;

#[global_allocator]
static ALLOCATOR: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

/// The RAM limit of the table: some hundred KiB for its directory, and buffers of the rest.
const RAM_BYTES: u64 = 4 << 20;

/// The entries in a call, and the RAM of the call itself for them.
const BATCH: u64 = 512;
const BATCH_RAM_BYTES: u64 = 128 << 10;

/// Inserts until the tables have been split and rewritten some hundred times: groups of tables, sorted
/// buffers, directories and checkpoints are created and removed.
#[test]
fn a_rhik_that_grows_never_takes_more_ram_than_it_counts_nor_than_it_was_given() {
    let dir = tempfile::tempdir().unwrap();
    let options = FileOptions { create: Create::New, ..FileOptions::default() };
    let device = Arc::new(FileDevice::open(dir.path().join("volume"), &options).unwrap());
    let asked = Requirements { policy: Policy::Grow, ..Requirements::new(1000, 8, 8) };
    let config = asked.ram(RAM_BYTES).advise_one(KIND).unwrap().config;
    let space = KeySpace::new(1);
    let mut bytes = Vec::with_capacity(BATCH as usize);
    let before = ALLOCATOR.allocated() as u64;
    let options = VolumeOptions {
        log_bytes: config.log_bytes_best(),
        hash_key: Some(42),
        ..VolumeOptions::default()
    };
    let volume = Volume::create(device, options).unwrap();
    let mut table = AnyTable::create(&volume, "t", &config).unwrap();
    let mut counted = 0;
    for (round, first) in (0..300_000).step_by(BATCH as usize).enumerate() {
        bytes.clear();
        let keys = (first..first + BATCH).map(|number| space.key(number));
        bytes.extend(keys.map(|key| (key.to_le_bytes(), space.value(key, 0).to_le_bytes())));
        let pairs: Vec<(&[u8], &[u8])> =
            bytes.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        table.insert_many(&pairs).unwrap();
        counted = table.stats().ram_bytes.max(counted);
        if round == 400 {
            table.close().unwrap();
            table = AnyTable::open(&volume, "t").unwrap();
        }
    }
    let peak = ALLOCATOR.max_allocated() as u64 - before;
    assert!(peak > RAM_BYTES / 2, "{peak} bytes");
    assert!(peak <= counted + BATCH_RAM_BYTES, "{peak} bytes at most, of which {counted} counted");
    assert!(counted.max(peak) <= RAM_BYTES, "{peak} bytes at most, {counted} counted");
}
