//! Every result code of the specification, by its cause.

use std::collections::BTreeSet;
use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::{Durability, Volume};
use nandex_kvssd::{
    Afterwards, Association, CommandQueue, Config, DeleteMissing, Drive, GroupFilter, IteratorKind,
    IteratorNumber, KeyOrder, Result, ResultCode, RetrieveOptions, StoreKind, StoreOptions, Timing,
};
use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, SimDevice};

use crate::common::{INDEXES, NAME, add_space, create_on, drive, open_on, volume_options};

/// Returns the code of a call that must fail.
#[track_caller]
fn code<T: std::fmt::Debug>(result: Result<T>) -> ResultCode {
    let error = result.unwrap_err();
    assert!(error.to_string().len() > 15, "an error says what to do: {error}");
    error.code()
}

/// Returns the options of a retrieval with this offset and length.
fn part(offset: u64, length: Option<u64>) -> RetrieveOptions {
    RetrieveOptions { offset, length, ..RetrieveOptions::default() }
}

#[test]
fn keys_and_values_of_wrong_lengths_are_refused_by_every_call() {
    let (drive, space) = drive(Config { key_bytes_min: 4, ..Config::tiny() });
    for key in [&b""[..], b"abc", &[7; 256]] {
        let codes = [
            code(space.store(key, b"v", StoreOptions::default())),
            code(space.retrieve(key, RetrieveOptions::default())),
            code(space.delete(key, DeleteMissing::Ignore)),
            code(space.exist(&[b"good", key])),
            code(space.value_bytes(key)),
        ];
        assert_eq!(codes, [ResultCode::KeyLengthInvalid; 5], "{} bytes", key.len());
    }
    space.store(&[7; 255], &[1; 8192], StoreOptions::default()).unwrap();
    space.store(b"four", b"", StoreOptions::default()).unwrap();
    let long = space.store(b"long", &[1; 8193], StoreOptions::default());
    assert_eq!(code(long), ResultCode::ValueLengthInvalid);
    let appended = space.store(&[7; 255], b"1", StoreKind::Append.into());
    assert_eq!(code(appended), ResultCode::ValueLengthInvalid);
    assert_eq!(drive.stats().unwrap().pairs, 2);
}

#[test]
fn stores_heed_what_is_there() {
    let (_drive, space) = drive(Config::tiny());
    let absent = space.store(b"key", b"1", StoreKind::UpdateOnly.into());
    assert_eq!(code(absent), ResultCode::KeyNotExist);
    space.store(b"key", b"1", StoreKind::NoOverwrite.into()).unwrap();
    let there = space.store(b"key", b"2", StoreKind::NoOverwrite.into());
    assert_eq!(code(there), ResultCode::ValueUpdateNotAllowed);
    space.store(b"key", b"2", StoreKind::UpdateOnly.into()).unwrap();
    space.store(b"key", b"34", StoreKind::Append.into()).unwrap();
    space.store(b"new", b"5", StoreKind::Append.into()).unwrap();
    let all = |key: &[u8]| space.retrieve(key, RetrieveOptions::default()).unwrap().bytes;
    assert_eq!((all(b"key"), all(b"new")), (b"234".to_vec(), b"5".to_vec()));
}

#[test]
fn options_that_the_drive_has_not_are_refused() {
    let (drive, space) = drive(Config::tiny());
    let stream = StoreOptions { association: Association::Stream(3), ..StoreOptions::default() };
    assert_eq!(code(space.store(b"key", b"1", stream)), ResultCode::OptionInvalid);
    assert_eq!(code(StoreKind::from_number(4)), ResultCode::OptionInvalid);
    assert_eq!(StoreKind::from_number(3).unwrap(), StoreKind::Append);
    for order in [KeyOrder::Ascend, KeyOrder::Descend] {
        assert_eq!(code(drive.create_key_space("o", 0, order)), ResultCode::OptionInvalid);
    }
    assert_eq!(code(space.exist(&[])), ResultCode::ParamInvalid);
    assert_eq!(code(CommandQueue::<()>::new(&space, 0)), ResultCode::ParamInvalid);
    assert_eq!(drive.list_key_spaces(0).unwrap(), ["main"]);
}

#[test]
fn parts_of_values_begin_at_multiples_of_the_unit_and_before_the_end() {
    let (_drive, space) = drive(Config::tiny());
    space.store(b"key", b"0123456789", StoreOptions::default()).unwrap();
    space.store(b"none", b"", StoreOptions::default()).unwrap();
    let found = space.retrieve(b"key", part(4, Some(3))).unwrap();
    assert_eq!((&found.bytes[..], found.value_bytes), (&b"456"[..], 10));
    assert_eq!(space.retrieve(b"key", part(8, None)).unwrap().bytes, b"89");
    assert_eq!(code(space.retrieve(b"key", part(2, None))), ResultCode::ValueOffsetMisaligned);
    assert_eq!(code(space.retrieve(b"key", part(12, None))), ResultCode::ValueOffsetInvalid);
    assert_eq!(space.retrieve(b"none", part(0, None)).unwrap().value_bytes, 0);
    let delete = RetrieveOptions { afterwards: Afterwards::Delete, ..part(12, None) };
    assert_eq!(code(space.retrieve(b"key", delete)), ResultCode::ValueOffsetInvalid);
    let delete = RetrieveOptions { afterwards: Afterwards::Delete, ..part(0, Some(2)) };
    let mut buffer = [0; 1];
    let into = space.retrieve_into(b"key", &mut buffer, delete);
    assert_eq!(code(into), ResultCode::BufferSmall);
    assert_eq!(space.retrieve(b"key", delete).unwrap().bytes, b"01", "a refusal deletes nothing");
    assert_eq!(code(space.retrieve(b"key", part(0, None))), ResultCode::KeyNotExist);
    assert_eq!(code(space.value_bytes(b"key")), ResultCode::KeyNotExist);
}

#[test]
fn buffers_are_filled_or_refused() {
    let (_drive, space) = drive(Config::tiny());
    for number in 0..9 {
        space.store(&[b'k', number], &[number; 10], StoreOptions::default()).unwrap();
    }
    let mut buffer = [0; 12];
    let filled = space.retrieve_into(&[b'k', 3], &mut buffer, RetrieveOptions::default());
    assert_eq!((filled.unwrap(), &buffer[..10]), (10, &[3; 10][..]));
    let short = space.retrieve_into(&[b'k', 3], &mut buffer[..9], RetrieveOptions::default());
    assert_eq!(code(short), ResultCode::BufferSmall);
    let keys: Vec<_> = (0..10).map(|number| [b'k', number]).collect();
    let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
    assert_eq!(code(space.exist_into(&keys, &mut [0; 1])), ResultCode::BufferSmall);
    let mut bits = [0; 2];
    assert_eq!(space.exist_into(&keys, &mut bits).unwrap(), 2);
    assert_eq!(bits, [0xff, 0x01], "nine keys are there, the tenth is not");
}

#[test]
fn deleting_what_is_not_there_is_refused_if_the_caller_wants_that() {
    let (_drive, space) = drive(Config::tiny());
    space.delete(b"key", DeleteMissing::Ignore).unwrap();
    assert_eq!(code(space.delete(b"key", DeleteMissing::Refuse)), ResultCode::KeyNotExist);
    space.store(b"key", b"1", StoreOptions::default()).unwrap();
    space.delete(b"key", DeleteMissing::Refuse).unwrap();
}

#[test]
fn key_spaces_have_names_limits_and_one_opener() {
    let (drive, main) = drive(Config::tiny());
    let create = |name: &str, limit| drive.create_key_space(name, limit, KeyOrder::None);
    assert_eq!(code(create("main", 0)), ResultCode::SpaceExist);
    assert_eq!(code(create("", 0)), ResultCode::SpaceName);
    assert_eq!(code(create(&"n".repeat(256), 0)), ResultCode::SpaceName);
    assert_eq!(code(create("big", (256 << 10) + 1)), ResultCode::DeviceCapacity);
    create("small", 100).unwrap();
    assert_eq!(drive.info().unwrap().unallocated_bytes, (256 << 10) - 100);
    assert_eq!(code(drive.open_key_space("main")), ResultCode::SpaceOpen);
    assert_eq!(code(drive.open_key_space("none")), ResultCode::SpaceNotExist);
    assert_eq!(code(drive.delete_key_space("none")), ResultCode::SpaceNotExist);
    assert_eq!(drive.list_key_spaces(1).unwrap(), ["small"]);
    assert_eq!(code(drive.list_key_spaces(2)), ResultCode::SpaceIndex);
    let small = drive.open_key_space("small").unwrap();
    small.store(b"key", &[1; 97], StoreOptions::default()).unwrap();
    let over = small.store(b"k", b"", StoreOptions::default());
    assert_eq!(code(over), ResultCode::SpaceCapacity);
    small.store(b"key", &[1; 96], StoreOptions::default()).unwrap();
    small.store(b"k", b"", StoreOptions::default()).unwrap();
    assert_eq!(small.info().unwrap().free_bytes, 0);
    create("third", 0).unwrap();
    create("fourth", 0).unwrap();
    assert_eq!(code(create("fifth", 0)), ResultCode::DeviceCapacity, "four is the limit");
    main.close().unwrap();
    assert_eq!(code(main.close()), ResultCode::SpaceNotOpen);
    assert_eq!(code(main.exist(&[b"key"])), ResultCode::SpaceNotOpen);
    let again = drive.open_key_space("main").unwrap();
    drive.delete_key_space("main").unwrap();
    assert_eq!(code(again.exist(&[b"key"])), ResultCode::SpaceNotExist);
    assert_eq!(code(again.close()), ResultCode::SpaceNotExist);
    let new = add_space(&drive, "main");
    assert_eq!(code(again.exist(&[b"key"])), ResultCode::SpaceNotExist, "it is another one");
    assert_eq!(new.info().unwrap().pairs, 0);
}

#[test]
fn iterators_have_numbers_filters_and_a_limit() {
    let (_drive, space) = drive(Config::tiny());
    let wrong = GroupFilter { mask: [0xff, 0, 0, 0], pattern: [b'a', 1, 0, 0] };
    let open = |filter| space.open_iterator(filter, IteratorKind::Keys);
    assert_eq!(code(open(wrong)), ResultCode::IteratorFilterInvalid);
    assert_eq!(code(space.delete_group(wrong)), ResultCode::IteratorFilterInvalid);
    let first = open(GroupFilter::prefix(b"a")).unwrap();
    assert_eq!(code(open(GroupFilter::prefix(b"a"))), ResultCode::IteratorOpen);
    open(GroupFilter::prefix(b"b")).unwrap();
    open(GroupFilter::prefix(b"c")).unwrap();
    assert_eq!(code(open(GroupFilter::prefix(b"d"))), ResultCode::IteratorMax);
    space.close_iterator(first).unwrap();
    assert_eq!(code(space.close_iterator(first)), ResultCode::IteratorNotExist);
    for number in [0, 1, 9].map(IteratorNumber) {
        assert_eq!(code(space.iterate(number, 100)), ResultCode::IteratorNotExist);
    }
    let number = open(GroupFilter::prefix(b"d")).unwrap();
    assert_eq!(number, first, "a number that is free is used again");
    space.store(b"deep", b"value", StoreOptions::default()).unwrap();
    assert_eq!(code(space.iterate(number, 7)), ResultCode::BufferSmall);
    assert_eq!(space.iterate(number, 8).unwrap().pairs.len(), 1, "nothing was lost");
}

#[test]
fn a_drive_that_is_closed_or_is_not_there_says_so() {
    let (drive, space) = drive(Config::tiny());
    drive.close().unwrap();
    let codes = [
        code(space.store(b"key", b"1", StoreOptions::default())),
        code(space.close()),
        code(drive.info()),
        code(drive.list_key_spaces(0)),
        code(drive.close()),
    ];
    assert_eq!(codes, [ResultCode::DeviceNotOpened; 5]);
    let options = volume_options(Durability::Never);
    let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
    assert_eq!(code(Drive::open(&volume, NAME)), ResultCode::DeviceNotExist);
}

#[test]
fn a_device_that_fails_is_an_error_of_the_system() {
    let device = SimDevice::instant();
    let drive = create_on(Arc::new(device.clone()), Config::tiny(), INDEXES[0], Durability::Always)
        .unwrap();
    let space = add_space(&drive, "main");
    space.store(b"key", b"1", StoreOptions::default()).unwrap();
    let write = device.seen(FaultOn::Write) + 1;
    let (kind, span) = (FaultKind::Io, FaultSpan::Once);
    device.arm(Fault { on: FaultOn::Write, at: write, kind, span });
    let failed = space.store(b"key", b"2", StoreOptions::default());
    assert_eq!(code(failed), ResultCode::SysIo);
    let after = space.store(b"key", b"3", StoreOptions::default());
    assert_eq!(code(after), ResultCode::SysIo, "the volume is poisoned until it is opened again");
    drop((space, drive));
    let drive = open_on(Arc::new(device), Durability::Always).unwrap();
    let space = drive.open_key_space("main").unwrap();
    let found = space.retrieve(b"key", RetrieveOptions::default()).unwrap().bytes;
    assert!(found == b"1" || found == b"2", "{found:?}");
}

/// The name of every code occurs in a test of this file, or of `full.rs`, that causes it.
#[test]
fn no_code_is_without_a_test() {
    let texts = [include_str!("codes.rs"), include_str!("full.rs")].concat();
    let untested: BTreeSet<_> = ResultCode::all()
        .filter(|code| *code != ResultCode::Success)
        .filter(|code| !texts.contains(&format!("ResultCode::{code:?}")))
        .collect();
    assert!(untested.is_empty(), "{untested:?}");
}

#[test]
fn values_that_the_model_has_no_answer_for_are_refused() {
    let (drive, space) = drive(Config { value_bytes_max: 32 << 10, ..Config::tiny() });
    drive.set_timing(Timing::Iops(Default::default()));
    space.store(b"key", &[1; 18_607], StoreOptions::default()).unwrap();
    let long = space.store(b"key", &[1; 18_608], StoreOptions::default());
    assert_eq!(code(long), ResultCode::ValueLengthInvalid);
    drive.set_timing(Timing::Device);
    space.store(b"key", &[1; 18_608], StoreOptions::default()).unwrap();
}
