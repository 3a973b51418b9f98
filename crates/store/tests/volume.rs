//! What a volume promises its structures across crashes, closings and removals.

use std::sync::Arc;

use nandex_device::{CrashDevice, Device, MemoryDevice, PageBuf};
use nandex_store::{Durability, OpenOptions, Volume, VolumeOptions};

fn options() -> VolumeOptions {
    VolumeOptions { durability: Durability::Never, ..VolumeOptions::tiny() }
}

fn open(device: Arc<dyn Device>) -> Volume {
    let options = OpenOptions { durability: Durability::Never, ..OpenOptions::default() };
    Volume::open(device, options).unwrap()
}

#[test]
fn a_structure_that_a_crash_brings_back_has_kept_its_pages() {
    // A removed structure's pages once went to the very checkpoint that was to forget it: cut before
    // that was durable, the power left a structure whose pages held a checkpoint.
    let device = MemoryDevice::new();
    let volume = Volume::create(Arc::new(device.clone()), options()).unwrap();
    let structure = volume.create_structure("old", "kind", Vec::new(), 4).unwrap();
    // A checkpoint of three pages fits nowhere but at the volume's end, or where the old structure is.
    volume.create_structure("big", "kind", vec![1; 9000], 1).unwrap();
    let mut pages = PageBuf::zeroed(4);
    pages.fill(0xa7);
    device.write(structure.extent.start, pages).unwrap();
    drop(volume);
    let mut brought_back = 0;
    for cut in 0..12 {
        let crash = CrashDevice::from_image(device.image());
        let volume = open(Arc::new(crash.clone()));
        crash.cut_after(crash.operations() + cut);
        let removed = volume.drop_structure("old").is_ok();
        drop(volume);
        for seed in 0..8 {
            let survivors = crash.survivors(seed);
            let volume = open(Arc::new(survivors.clone()));
            let Ok(found) = volume.open_structure("old", "kind") else { continue };
            assert!(!removed, "it was removed durably");
            let pages = survivors.read(found.extent.start, PageBuf::zeroed(4)).unwrap();
            assert!(pages.iter().all(|&byte| byte == 0xa7), "cut {cut}, seed {seed}");
            brought_back += 1;
        }
    }
    assert!(brought_back > 8, "{brought_back}");
}
