//! Tables that nobody has open are no burden to those that are.

use std::sync::Arc;

use nandex::bufferhash::Config;
use nandex::device::MemoryDevice;
use nandex::{BufferHash, OpenOptions, Table, Volume, VolumeOptions};

fn fill(table: &BufferHash, keys: std::ops::Range<u64>) {
    keys.for_each(|key| table.insert_u64(key, key * 3).unwrap());
}

fn assert_holds(table: &BufferHash, keys: std::ops::Range<u64>) {
    for key in keys {
        assert_eq!(table.get_u64(key).unwrap(), Some(key * 3), "key {key}");
    }
}

#[test]
fn a_table_that_was_closed_does_not_hold_the_log() {
    // Its place in the log once stayed where it was at the close, until the log was full of others'
    // updates and the volume refused writes.
    let device = MemoryDevice::new();
    let options = VolumeOptions { log_bytes: 1 << 18, ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
    let closed = BufferHash::create(&volume, "closed", Config::tiny()).unwrap();
    fill(&closed, 0..700);
    closed.close().unwrap();
    let busy = BufferHash::create(&volume, "busy", Config::tiny()).unwrap();
    fill(&busy, 0..60_000);
    busy.close().unwrap();
    drop(volume);
    let volume = Volume::open(Arc::new(device.clone()), OpenOptions::default()).unwrap();
    let busy = BufferHash::open(&volume, "busy").unwrap();
    fill(&busy, 60_000..120_000);
    let again = BufferHash::open(&volume, "closed").unwrap();
    assert_holds(&again, 0..700);
    fill(&again, 700..800);
    busy.sync().unwrap();
    let crashed = MemoryDevice::from_image(device.image());
    let volume = Volume::open(Arc::new(crashed), OpenOptions::default()).unwrap();
    assert_holds(&BufferHash::open(&volume, "closed").unwrap(), 0..800);
    assert_holds(&BufferHash::open(&volume, "busy").unwrap(), 119_000..120_000);
}

#[test]
fn a_table_that_a_crash_left_in_the_log_is_kept_there_until_it_is_opened() {
    let device = MemoryDevice::new();
    let options = VolumeOptions { log_bytes: 1 << 18, ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
    let left = BufferHash::create(&volume, "left", Config::tiny()).unwrap();
    let busy = BufferHash::create(&volume, "busy", Config::tiny()).unwrap();
    fill(&left, 0..300);
    left.sync().unwrap();
    let crashed = MemoryDevice::from_image(device.image());
    drop((left, busy, volume));
    let volume = Volume::open(Arc::new(crashed.clone()), OpenOptions::default()).unwrap();
    let busy = BufferHash::open(&volume, "busy").unwrap();
    fill(&busy, 0..3000);
    busy.flush().unwrap();
    let crashed = MemoryDevice::from_image(crashed.image());
    let volume = Volume::open(Arc::new(crashed), OpenOptions::default()).unwrap();
    assert_holds(&BufferHash::open(&volume, "left").unwrap(), 0..300);
}
