//! Openings: two at a time, after a crash, after an interrupted deletion; threads; figures.

use std::sync::Arc;

use nandex::device::{Create, FileDevice, FileOptions, MemoryDevice};
use nandex::{Durability, Volume, VolumeOpenOptions, VolumeOptions};
use nandex_kvssd::{
    Config, Drive, IndexChoice, KeyOrder, ResultCode, RetrieveOptions, StoreKind, StoreOptions,
};
use nandex_sim::SimDevice;

use crate::common::{
    CHOICE, INDEXES, NAME, add_space, create_on, key, open_on, value, volume_options,
};

#[test]
fn a_drive_has_one_opener_at_a_time() {
    let options = VolumeOptions { log_bytes: 8 << 20, ..volume_options(Durability::Never) };
    let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
    let index = CHOICE;
    let drive = Drive::create(&volume, NAME, Config::tiny(), index).unwrap();
    let error = Drive::open(&volume, NAME).unwrap_err();
    assert_eq!(error.code(), ResultCode::SysIo, "{error}");
    let error = Drive::create(&volume, NAME, Config::tiny(), index).unwrap_err();
    assert_eq!(error.code(), ResultCode::SysIo, "{error}");
    add_space(&drive, "main").store(b"key", b"1", StoreOptions::default()).unwrap();
    drop(drive);
    let drive = Drive::open(&volume, NAME).unwrap();
    let space = drive.open_key_space("main").unwrap();
    assert_eq!(space.retrieve(b"key", RetrieveOptions::default()).unwrap().bytes, b"1");
}

#[test]
fn a_file_keeps_a_drive_and_another_process_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.nandex");
    let open = || FileDevice::open(&path, &FileOptions::default());
    let new = FileOptions { create: Create::New, ..FileOptions::default() };
    let device = FileDevice::open(&path, &new).unwrap();
    let options =
        VolumeOptions { log_bytes: 8 << 20, hash_key: Some(42), ..VolumeOptions::default() };
    let volume = Volume::create(Arc::new(device), options).unwrap();
    let index = CHOICE;
    let drive = Drive::create(&volume, NAME, Config::tiny(), index).unwrap();
    add_space(&drive, "main").store(b"key", b"1", StoreOptions::default()).unwrap();
    assert!(open().is_err(), "the file is locked");
    drive.close().unwrap();
    drop((drive, volume));
    let volume = Volume::open(Arc::new(open().unwrap()), VolumeOpenOptions::default()).unwrap();
    let drive = Drive::open(&volume, NAME).unwrap();
    assert_eq!(drive.space_info("main").unwrap().pairs, 1);
}

#[test]
fn limits_that_cannot_work_are_refused() {
    let volume =
        Volume::create(Arc::new(MemoryDevice::new()), volume_options(Durability::Never)).unwrap();
    let index = CHOICE;
    let fine = Config::tiny();
    let wrong = [
        ("capacity_bytes", Config { capacity_bytes: 0, ..fine.clone() }),
        ("pairs_max", Config { pairs_max: 0, ..fine.clone() }),
        ("key_bytes_min", Config { key_bytes_min: 0, ..fine.clone() }),
        ("key_bytes_max", Config { key_bytes_max: 256, ..fine.clone() }),
        ("key_bytes_max", Config { key_bytes_min: 9, key_bytes_max: 8, ..fine.clone() }),
        ("value_bytes_max", Config { value_bytes_max: (2 << 20) + 1, ..fine.clone() }),
        ("offset_unit", Config { offset_unit: 0, ..fine.clone() }),
        ("spaces_max", Config { spaces_max: 0, ..fine.clone() }),
        ("iterators_max", Config { iterators_max: 17, ..fine.clone() }),
    ];
    for (field, config) in wrong {
        let error = Drive::create(&volume, NAME, config, index).unwrap_err();
        assert!(error.to_string().starts_with(field), "{error}");
    }
    let cascade = IndexChoice { kind: "cascade", ..index };
    let error = Drive::create(&volume, NAME, fine, cascade).unwrap_err();
    assert!(error.to_string().contains("is not a table; choose one of"), "{error}");
}

#[test]
fn a_deletion_that_a_crash_interrupted_is_finished_by_the_next_opening() {
    let device = SimDevice::instant();
    let create =
        create_on(Arc::new(device.clone()), Config::tiny(), INDEXES[0], Durability::Always);
    let drive = create.unwrap();
    let (one, two) = (add_space(&drive, "one"), add_space(&drive, "two"));
    for number in 0..60 {
        one.store(&key(number), &value(number, 200), StoreOptions::default()).unwrap();
        two.store(&key(number), &value(number, 100), StoreOptions::default()).unwrap();
    }
    device.record_cuts();
    drive.delete_key_space("one").unwrap();
    let cuts = device.take_cuts();
    assert!(cuts.len() > 5, "{}", cuts.len());
    let (mut with, mut without) = (0, 0);
    for cut in &cuts {
        let image = cut.survivors(3);
        let survivor = Arc::new(SimDevice::instant().with_image(image));
        let drive = open_on(survivor, Durability::Always).unwrap();
        assert_eq!(drive.space_info("two").unwrap().pairs, 60);
        let pairs = drive.stats().unwrap().pairs;
        match drive.space_info("one") {
            Ok(info) => {
                with += 1;
                assert_eq!((info.pairs, pairs), (60, 120));
            }
            Err(_) => {
                without += 1;
                assert_eq!(pairs, 60);
                let one = add_space(&drive, "one");
                let keys: Vec<_> = (0..60).map(key).collect();
                let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
                assert!(one.exist(&keys).unwrap().iter().all(|there| !there));
            }
        }
    }
    assert!(with > 0 && without > 0, "{with} {without}");
}

#[test]
fn threads_share_a_key_space_and_no_append_is_lost() {
    let options =
        VolumeOptions { log_bytes: 8 << 20, hash_key: Some(42), ..VolumeOptions::default() };
    let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
    let index = CHOICE;
    let drive = Drive::create(&volume, NAME, Config::tiny(), index).unwrap();
    let space = add_space(&drive, "main");
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let space = &space;
            scope.spawn(move || {
                for number in 0..200u64 {
                    let kind = StoreKind::Append.into();
                    space.store(&key(number % 10), &[thread], kind).unwrap();
                    let new = space.store(&key(100 + number), b"x", StoreKind::NoOverwrite.into());
                    assert!(new.is_ok() || new.unwrap_err().code().number() == 0x17);
                }
            });
        }
    });
    for number in 0..10 {
        let found = space.retrieve(&key(number), RetrieveOptions::default()).unwrap().bytes;
        let of = |thread: u8| found.iter().filter(|byte| **byte == thread).count();
        assert_eq!((0..4).map(of).collect::<Vec<_>>(), [20; 4]);
    }
    let info = space.info().unwrap();
    assert_eq!((info.pairs, info.value_bytes), (210, 800 + 200));
}

#[test]
fn figures_are_of_what_was_done() {
    let device = Arc::new(MemoryDevice::new());
    let drive = create_on(device, Config::tiny(), INDEXES[0], Durability::Never).unwrap();
    let space = add_space(&drive, "main");
    assert_eq!(drive.stats().unwrap().write_amplification, 0.0);
    for number in 0..100 {
        space.store(&key(number), &value(number, 1000), StoreOptions::default()).unwrap();
    }
    space.store(&key(0), &value(0, 500), StoreOptions::default()).unwrap();
    drive.flush().unwrap();
    let stats = drive.stats().unwrap();
    assert_eq!((stats.pairs, stats.inserts, stats.updates), (100, 100, 1));
    assert_eq!(stats.value_bytes_mean, 995.0);
    assert_eq!(stats.stored_bytes, stats.logical_bytes + 38 * 100);
    assert_eq!(stats.host_bytes_written, stats.logical_bytes + 1000 + key(0).len() as u64);
    assert!(stats.device_bytes_written > stats.stored_bytes);
    assert!(stats.write_amplification > 1.0);
    let expected = (stats.stored_bytes * 10_000).div_ceil(256 << 10);
    assert_eq!(u64::from(stats.utilisation), expected);
    let accesses: u64 = stats.index_reads.iter().sum();
    space.exist(&[b"none"]).unwrap();
    assert_eq!(drive.stats().unwrap().index_reads.iter().sum::<u64>(), accesses + 1);
    let order = drive.create_key_space("ordered", 0, KeyOrder::Ascend).unwrap_err();
    assert_eq!(order.code(), ResultCode::OptionInvalid);
}
