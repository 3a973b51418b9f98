//! Tables without an open handle do not burden open ones, and lose nothing.

use std::ops::Range;
use std::sync::Arc;

use nandex::bufferhash::Policy;
use nandex::device::MemoryDevice;
use nandex::{AnyTable, Table, Volume, VolumeOpenOptions, VolumeOptions};
use nandex_trial::Contract;

use super::support::{DURABILITIES, SLICES, Setup};

fn insert(table: &AnyTable, keys: Range<u64>) {
    keys.for_each(|key| table.insert_u64(key, key + 1).unwrap());
}

fn assert_holds(table: &AnyTable, keys: Range<u64>) {
    keys.for_each(|key| assert_eq!(table.get_u64(key).unwrap(), Some(key + 1), "key {key}"));
}

/// Returns the state of a device after a power cut, as a volume.
fn crashed(device: &MemoryDevice) -> (MemoryDevice, Volume) {
    let device = MemoryDevice::from_image(device.image());
    let volume = Volume::open(Arc::new(device.clone()), VolumeOpenOptions::default()).unwrap();
    (device, volume)
}

/// Returns one setup that evicts, and one whose slices have space for all keys.
fn setups() -> [Setup; 2] {
    let setup = Setup { roomy: false, ..Setup::new(Policy::Fifo, DURABILITIES[1]) };
    [setup, Setup { roomy: true, ..setup }.sliced(SLICES[0])]
}

/// Keeps a table closed: it kept the log's tail, until the log was full and the volume poisoned.
#[test]
fn a_closed_table_does_not_keep_the_log_of_another() {
    for setup in setups() {
        let device = MemoryDevice::new();
        let volume = Volume::create(Arc::new(device.clone()), VolumeOptions::tiny()).unwrap();
        let [first, second] = ["first", "second"].map(|name| setup.create(&volume, name));
        let (first, second) = (first.unwrap(), second.unwrap());
        insert(&first, 0..1000);
        first.close().unwrap();
        insert(&second, 0..40_000);
        drop((second, volume));
        let volume = Volume::open(Arc::new(device.clone()), VolumeOpenOptions::default()).unwrap();
        let second = setup.open(&volume, "second").unwrap();
        insert(&second, 40_000..80_000);
        // Reopened in the same session, it is written and then loses power.
        let first = setup.open(&volume, "first").unwrap();
        insert(&first, 1000..1500);
        first.sync().unwrap();
        second.sync().unwrap();
        let (_, volume) = crashed(&device);
        assert_holds(&setup.open(&volume, "first").unwrap(), 0..1500);
        assert_holds(&setup.open(&volume, "second").unwrap(), 79_900..80_000);
    }
}

#[test]
fn a_table_that_a_crash_left_in_the_log_is_kept_there_until_it_is_opened() {
    for setup in setups() {
        let device = MemoryDevice::new();
        let volume = Volume::create(Arc::new(device.clone()), VolumeOptions::tiny()).unwrap();
        let left = setup.create(&volume, "left").unwrap();
        setup.create(&volume, "busy").unwrap().close().unwrap();
        insert(&left, 0..300);
        left.sync().unwrap();
        let (device, volume) = crashed(&device);
        let busy = setup.open(&volume, "busy").unwrap();
        insert(&busy, 0..3000);
        busy.flush().unwrap();
        let (_, volume) = crashed(&device);
        assert_holds(&setup.open(&volume, "left").unwrap(), 0..300);
    }
}
