//! The store's own check: superblocks, checkpoint, catalog and log, on one device or two.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/part.rs"]
mod part;

use std::sync::Arc;

use nandex_device::{Device, MemoryDevice, PAGE_BYTES, PageBuf, PageId};
use nandex_store::check::{FINDINGS_MAX, check};
use nandex_store::superblock::Superblock;
use nandex_store::{Captured, Error, Volume, VolumeOpenOptions, VolumeOptions};
use part::Part;

/// Creates a volume with one structure of an unknown kind, and entries of it in the log.
fn volume(device: &MemoryDevice, options: VolumeOptions) -> Volume {
    let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
    let structure = volume.create_structure("some", "kind", vec![1, 2, 3], 9).unwrap();
    let tail = volume.log().next_lsn();
    let needs_all = move || Captured { state: vec![1], tail, extents: None };
    // The structure stays open for as long as the volume.
    std::mem::forget(Part::new(needs_all).register(&volume, &structure));
    for number in 0..1000u64 {
        volume.log().append(structure.id, &[&number.to_le_bytes()]).unwrap();
    }
    volume.log().sync().unwrap();
    volume
}

fn superblock(device: &MemoryDevice) -> Superblock {
    let pages = device.read(PageId(0), PageBuf::zeroed(2)).unwrap();
    Superblock::choose([pages.page(0), pages.page(1)]).unwrap()
}

fn flip(device: &MemoryDevice, page: PageId) {
    let mut buf = device.read(page, PageBuf::zeroed(1)).unwrap();
    buf[77] ^= 4;
    device.write(page, buf).unwrap();
}

#[test]
fn what_was_just_written_is_whole_and_its_log_is_counted() {
    let device = MemoryDevice::new();
    let volume = volume(&device, VolumeOptions::tiny());
    let report = check(Arc::new(device.clone()), None).unwrap();
    assert!(report.ok(), "{report:#?}");
    assert_eq!(report.log_entries, 1000);
    assert_eq!(report.structures[0].name, "some");
    // The log's region, two superblocks and one page of checkpoint.
    assert!(report.pages_read >= 64 + 3 && report.pages_read <= 2 * 64 + 3, "{report:?}");
    drop(volume);
}

#[test]
fn a_log_on_its_own_device_is_read_there_and_its_damage_named_there() {
    let (device, log_device) = (MemoryDevice::new(), MemoryDevice::new());
    let log: Arc<dyn Device> = Arc::new(log_device.clone());
    let options = VolumeOptions { log_device: Some(Arc::clone(&log)), ..VolumeOptions::tiny() };
    let volume = volume(&device, options);
    let missing = check(Arc::new(device.clone()), None).unwrap_err();
    assert!(matches!(missing, Error::LogDevice { .. }), "{missing}");
    let report = check(Arc::new(device.clone()), Some(Arc::clone(&log))).unwrap();
    assert!(report.ok(), "{report:#?}");
    assert_eq!(report.log_entries, 1000);
    // Taking a checkpoint notes in the superblock that these blocks are durable.
    volume.checkpoint().unwrap();
    flip(&log_device, PageId(0));
    let report = check(Arc::new(device.clone()), Some(Arc::clone(&log))).unwrap();
    let [finding] = &report.findings[..] else { panic!("{report:#?}") };
    assert_eq!((&finding.what[..], finding.page), ("log", PageId(0)));
    let short = MemoryDevice::from_image(log_device.image()[..8 * PAGE_BYTES].to_vec());
    let report = check(Arc::new(device), Some(Arc::new(short))).unwrap();
    assert!(report.findings[0].message.contains("8 pages"), "{report:#?}");
}

#[test]
fn one_damaged_superblock_is_a_finding_and_the_next_opening_mends_it() {
    for checkpoints in [0, 1] {
        let device = MemoryDevice::new();
        let volume = volume(&device, VolumeOptions::tiny());
        (0..checkpoints).for_each(|_| volume.checkpoint().unwrap());
        drop(volume);
        // The copy that is not the newest: the other one could not be distinguished from it.
        let older = PageId(1 - superblock(&device).place().0);
        flip(&device, older);
        let report = check(Arc::new(device.clone()), None).unwrap();
        let [finding] = &report.findings[..] else { panic!("{report:#?}") };
        assert_eq!((&finding.what[..], finding.page), ("superblock", older));
        drop(Volume::open(Arc::new(device.clone()), VolumeOpenOptions::default()).unwrap());
        assert!(check(Arc::new(device), None).unwrap().ok());
    }
}

#[test]
fn a_superblock_whose_writing_was_lost_is_a_finding() {
    let device = MemoryDevice::new();
    let volume = volume(&device, VolumeOptions::tiny());
    let place = superblock(&device).place();
    let stale = device.read(PageId(1 - place.0), PageBuf::zeroed(1)).unwrap();
    // Two checkpoints later, the disk still has the old page where the older copy should be.
    volume.checkpoint().unwrap();
    volume.checkpoint().unwrap();
    device.write(PageId(1 - place.0), stale).unwrap();
    let report = check(Arc::new(device), None).unwrap();
    assert_eq!(report.findings.len(), 1, "{report:#?}");
    assert!(report.findings[0].message.contains("expected generation"), "{report:#?}");
}

#[test]
fn damage_of_any_page_is_never_an_error_and_never_more_findings_than_are_kept() {
    let device = MemoryDevice::new();
    let volume = volume(&device, VolumeOptions::tiny());
    volume.checkpoint().unwrap();
    drop(volume);
    let image = device.image();
    for page in 0..image.len() / PAGE_BYTES {
        for byte in [0, 9, 40, 200, 4095] {
            let mut image = image.clone();
            image[page * PAGE_BYTES + byte] ^= 1;
            let report = check(Arc::new(MemoryDevice::from_image(image)), None).unwrap();
            assert!(report.findings.len() <= FINDINGS_MAX && report.findings.len() <= 1);
        }
    }
}
