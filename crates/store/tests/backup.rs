//! Copies of a volume: of an open one, and of one without a writer.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use nandex_device::{Device, MemoryDevice, PAGE_BYTES, PageBuf};
use nandex_store::{
    Durability, Error, Volume, VolumeDevices, VolumeOpenOptions, VolumeOptions, copy_closed,
};

fn options() -> VolumeOptions {
    VolumeOptions { durability: Durability::Never, ..VolumeOptions::tiny() }
}

fn on(volume: &MemoryDevice) -> VolumeDevices {
    VolumeDevices { volume: Arc::new(volume.clone()), log: None }
}

fn names(device: &MemoryDevice) -> Vec<String> {
    let volume = Volume::open(Arc::new(device.clone()), VolumeOpenOptions::default()).unwrap();
    volume.structures().into_iter().map(|it| it.name).collect()
}

/// Creates a volume with a structure of 40 pages, the first of which is written, behind one of 100 pages that was
/// removed.
fn with_free_space(device: &MemoryDevice) -> Volume {
    let volume = Volume::create(Arc::new(device.clone()), options()).unwrap();
    volume.create_structure("gone", "kind", Vec::new(), 100).unwrap();
    let kept = volume.create_structure("kept", "kind", Vec::new(), 40).unwrap();
    volume.create_structure("end", "kind", Vec::new(), 100).unwrap();
    let mut page = PageBuf::zeroed(1);
    page.fill(0xa7);
    volume.device().write(kept.extent().unwrap().start, page).unwrap();
    volume.drop_structure("gone").unwrap();
    volume.drop_structure("end").unwrap();
    volume
}

#[test]
fn a_backup_of_an_open_volume_is_a_volume_and_what_comes_later_is_not_in_it() {
    let device = MemoryDevice::new();
    let volume = with_free_space(&device);
    let copy = MemoryDevice::new();
    volume.backup(&on(&copy)).unwrap();
    volume.create_structure("later", "kind", Vec::new(), 1).unwrap();
    assert_eq!(names(&copy), ["kept"]);
    let found = Volume::open(Arc::new(copy.clone()), VolumeOpenOptions::default()).unwrap();
    let start = found.open_structure("kept", "kind").unwrap().extent().unwrap().start;
    assert!(copy.read(start, PageBuf::zeroed(1)).unwrap().iter().all(|&byte| byte == 0xa7));
    // A second copy to the same target fails.
    assert!(matches!(volume.backup(&on(&copy)), Err(Error::Config { field: "path", .. })));
    volume.backup(&on(&MemoryDevice::new())).unwrap();
}

#[test]
fn a_copy_of_a_closed_volume_is_as_short_as_what_is_in_use() {
    let device = MemoryDevice::new();
    drop(with_free_space(&device));
    let copy = MemoryDevice::new();
    copy_closed(&on(&device), &on(&copy)).unwrap();
    assert!(copy.page_count() + 90 < device.page_count());
    assert_eq!(names(&copy), ["kept"]);
    let written = |device: &MemoryDevice| {
        device.image().chunks(PAGE_BYTES).filter(|page| page.iter().any(|&byte| byte != 0)).count()
    };
    // Superblocks, a checkpoint and a page, including those of its opening.
    assert!(written(&copy) < 8, "{}", written(&copy));
}

#[test]
fn a_log_of_its_own_is_copied_to_a_device_of_its_own() {
    let (device, log) = (MemoryDevice::new(), MemoryDevice::new());
    let log_device: Arc<dyn Device> = Arc::new(log);
    let apart = VolumeOptions { log_device: Some(Arc::clone(&log_device)), ..options() };
    let volume = Volume::create(Arc::new(device.clone()), apart).unwrap();
    volume.create_structure("kept", "kind", Vec::new(), 4).unwrap();
    let error = volume.backup(&on(&MemoryDevice::new())).unwrap_err();
    assert!(matches!(error, Error::LogDevice { .. }), "{error}");
    let open_copy = |to: &VolumeDevices| {
        let options =
            VolumeOpenOptions { log_device: to.log.clone(), ..VolumeOpenOptions::default() };
        let copy = Volume::open(Arc::clone(&to.volume), options).unwrap();
        assert_eq!(copy.structures().len(), 1);
    };
    let to = || VolumeDevices {
        volume: Arc::new(MemoryDevice::new()),
        log: Some(Arc::new(MemoryDevice::new())),
    };
    let first = to();
    volume.backup(&first).unwrap();
    open_copy(&first);
    drop(volume);
    let second = to();
    let from = VolumeDevices { volume: Arc::new(device), log: Some(log_device) };
    copy_closed(&from, &second).unwrap();
    open_copy(&second);
    assert!(copy_closed(&from, &on(&MemoryDevice::new())).is_err());
}
