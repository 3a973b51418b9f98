//! A volume stores the channels of its device that a probe found, and uses them unless the device reports its own.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use nandex_device::{Described, Device, Geometry, Mapping, MemoryDevice};
use nandex_store::{Volume, VolumeOpenOptions, VolumeOptions};

const FOUND: Geometry = Geometry {
    channels: Some(32),
    chunk_bytes: Some(8192),
    mapping: Some(Mapping::WriteOrder),
    ..Geometry::opaque()
};

const OTHER: Geometry = Geometry { channels: Some(4), ..FOUND };

fn options() -> VolumeOptions {
    VolumeOptions { geometry: Some(FOUND), ..VolumeOptions::tiny() }
}

fn open(device: impl Device + 'static) -> Volume {
    Volume::open(Arc::new(device), VolumeOpenOptions::default()).unwrap()
}

#[test]
fn what_was_found_is_kept_through_checkpoints_and_openings_and_used() {
    let device = MemoryDevice::new();
    let volume = Volume::create(Arc::new(device.clone()), options()).unwrap();
    assert_eq!(volume.device().geometry().channels, Some(32));
    volume.checkpoint().unwrap();
    drop(volume);
    for _ in 0..2 {
        let volume = open(device.clone());
        assert_eq!(volume.kept_geometry(), Some(FOUND));
        assert_eq!(volume.device().geometry().channels, Some(32));
    }
    // This is a drive that the volume was copied to.
    let volume = open(Described::new(device, OTHER));
    assert_eq!(
        (volume.kept_geometry(), volume.device().geometry().channels),
        (Some(FOUND), Some(4))
    );
}

#[test]
fn a_device_that_contradicts_what_was_found_takes_no_volume_with_it() {
    let device = MemoryDevice::new();
    let telling = Arc::new(Described::new(device.clone(), OTHER));
    let told = Volume::create(telling, options()).unwrap_err().to_string();
    assert!(told.contains("32 channels") && told.contains("says 4 channels"), "{told}");
    assert_eq!(device.page_count(), 0, "nothing was written");
    let plain = Volume::create(Arc::new(device), VolumeOptions::tiny()).unwrap();
    assert_eq!(plain.kept_geometry(), None);
}
