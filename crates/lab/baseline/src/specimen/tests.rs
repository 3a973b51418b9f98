//! Tests of the specimen alone; the harnesses that walk over the registry test the rest.

use std::sync::Arc;

use nandex_device::MemoryDevice;
use nandex_store::{VolumeOpenOptions, VolumeOptions};

use super::*;

#[test]
fn updates_are_found_after_the_next_opening_and_a_full_one_refuses() {
    let device = Arc::new(MemoryDevice::new());
    let volume = Volume::create(Arc::clone(&device) as _, VolumeOptions::tiny()).unwrap();
    let config = Config { entries_max: 2, ..Config::tiny() };
    let table = Specimen::create(&volume, "s", config).unwrap();
    table.insert(&[1; 8], &[1; 8]).unwrap();
    table.insert(&[2; 8], &[2; 8]).unwrap();
    assert!(matches!(table.insert(&[3; 8], &[3; 8]), Err(Error::Full { entries: 2, .. })));
    table.insert(&[2; 8], &[4; 8]).unwrap();
    table.remove(&[1; 8]).unwrap();
    table.close().unwrap();
    drop(volume);
    let volume = Volume::open(device, VolumeOpenOptions::default()).unwrap();
    let table = Specimen::open(&volume, "s").unwrap();
    assert_eq!(table.get(&[2; 8]).unwrap().as_deref(), Some(&[4; 8][..]));
    assert_eq!(table.stats().entries, 1);
}
