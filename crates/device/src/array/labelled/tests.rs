//! Labelled arrays of memory: the laws, the places of data, the costs, and every wrong member by its name.

use super::*;
use crate::{Counted, MemoryDevice, OpKind, PAGE_BYTES, laws};

const OPTIONS: ArrayOptions =
    ArrayOptions { striping: Striping::Extent { pages: 2 }, align_pages: 4, array_id: Some(7) };

/// Returns members a, b, c and so on in memory, which clones share.
fn memories(count: usize) -> Vec<MemoryDevice> {
    (0..count).map(|_| MemoryDevice::new()).collect()
}

fn member(index: usize, device: &MemoryDevice) -> Member {
    let name = char::from(b'a' + u8::try_from(index).unwrap());
    Member::new(name, Arc::new(device.clone()))
}

fn named(devices: &[MemoryDevice]) -> Vec<Member> {
    devices.iter().enumerate().map(|(index, device)| member(index, device)).collect()
}

fn create(devices: &[MemoryDevice]) -> LabelledArray {
    LabelledArray::create(named(devices), &OPTIONS).unwrap()
}

fn open(devices: &[MemoryDevice]) -> Result<LabelledArray> {
    LabelledArray::open(named(devices), Access::ReadWrite)
}

fn copy(device: &MemoryDevice) -> MemoryDevice {
    MemoryDevice::from_image(device.image())
}

/// Returns the members of an array of three with 30 pages in all, each filled with its number, and closed.
fn filled() -> Vec<MemoryDevice> {
    let devices = memories(3);
    let array = create(&devices);
    array.grow(30).unwrap();
    for page in 0..30 {
        let mut buf = PageBuf::zeroed(1);
        buf.fill(page);
        array.write(PageId(page.into()), buf).unwrap();
    }
    devices
}

#[track_caller]
fn assert_filled(array: &LabelledArray) {
    for page in 0..30 {
        let buf = array.read(PageId(page.into()), PageBuf::zeroed(1)).unwrap();
        assert!(buf.iter().all(|&byte| byte == page), "page {page}");
    }
}

/// Returns the name and the fault of a failed opening.
#[track_caller]
fn refusal(members: Vec<Member>) -> (String, LabelFault) {
    match LabelledArray::open(members, Access::ReadWrite).unwrap_err() {
        Error::Label { name, fault } => (name, *fault),
        other => panic!("refused in another way: {other}"),
    }
}

#[test]
fn labelled_arrays_of_every_shape_keep_the_laws() {
    let striping = [
        (1, Striping::Extent { pages: 1 }),
        (3, Striping::Extent { pages: 2 }),
        (2, Striping::Extent { pages: 1000 }),
        (2, Striping::Partition { pages: 32 }),
        (64, Striping::Partition { pages: 1 }),
    ];
    for (count, striping) in striping {
        for align_pages in [1, 16] {
            let options = ArrayOptions { striping, align_pages, array_id: None };
            let devices = memories(count);
            let name = |device: &MemoryDevice| Member::new("m", Arc::new(device.clone()));
            let members = || devices.iter().map(name).collect();
            laws::check(&LabelledArray::create(members(), &options).unwrap());
            laws::check(&LabelledArray::open(members(), Access::ReadWrite).unwrap());
        }
    }
}

#[test]
fn data_begin_where_they_were_asked_to_and_the_geometry_tells_the_stripe() {
    for (align_pages, first) in [(1, 2), (2, 2), (3, 3), (256, 256)] {
        let devices = memories(2);
        let options = ArrayOptions { align_pages, ..OPTIONS };
        let array = LabelledArray::create(named(&devices), &options).unwrap();
        array.grow(5).unwrap();
        for page in 0..5_u8 {
            let mut buf = PageBuf::zeroed(1);
            buf.fill(page + 1);
            array.write(PageId(page.into()), buf).unwrap();
        }
        let bytes = |device: &MemoryDevice| -> Vec<u8> {
            device.image().chunks(PAGE_BYTES).skip(first).map(|page| page[9]).collect()
        };
        assert_eq!(bytes(&devices[0]), [1, 2, 5], "aligned to {align_pages}");
        assert_eq!(bytes(&devices[1]), [3, 4], "aligned to {align_pages}");
        assert_eq!((array.geometry().members, array.geometry().stripe_pages), (2, 2));
    }
    assert_eq!(MemoryDevice::new().geometry().members, 1);
}

#[test]
fn members_come_in_any_order_and_under_new_names() {
    let devices = filled();
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let members = order.iter().map(|&index| member(index + 5, &devices[index])).collect();
        let array = LabelledArray::open(members, Access::ReadWrite).unwrap();
        assert_filled(&array);
        assert_eq!(array.names(), ["f", "g", "h"]);
        assert_eq!((array.label().page_count, array.label().array_id), (30, 7));
    }
    let missing = refusal(named(&devices[..2]));
    assert_eq!(missing, ("h".into(), LabelFault::Missing { member: 2, members: 3 }));
}

#[test]
fn each_missing_member_is_named() {
    let devices = filled();
    for (index, name) in ["a", "b", "c"].into_iter().enumerate() {
        let mut members = named(&devices);
        members.remove(index);
        let missing = LabelFault::Missing { member: index, members: 3 };
        assert_eq!(refusal(members), (name.into(), missing));
    }
    let none = LabelledArray::open(Vec::new(), Access::ReadWrite).unwrap_err();
    assert!(matches!(none, Error::Array { members: 0, .. }), "{none}");
}

#[test]
fn a_member_of_another_array_is_named_and_so_is_its_place_there() {
    let mut devices = filled();
    let others = memories(2);
    let options = ArrayOptions { array_id: Some(8), ..OPTIONS };
    LabelledArray::create(named(&others), &options).unwrap();
    devices[1] = others[0].clone();
    let foreign = |found, expected, member, members, other: &str| LabelFault::Foreign {
        member,
        members,
        found,
        expected,
        other: other.into(),
    };
    assert_eq!(refusal(named(&devices)), ("b".into(), foreign(8, 7, 0, 2, "a")));
    let first = vec![others[1].clone(), devices[0].clone(), devices[2].clone()];
    assert_eq!(refusal(named(&first)), ("a".into(), foreign(8, 7, 1, 2, "b")));
    let one_each = vec![devices[0].clone(), others[1].clone()];
    assert_eq!(refusal(named(&one_each)), ("b".into(), foreign(8, 7, 1, 2, "a")));
}

#[test]
fn the_same_member_twice_is_refused_and_of_two_copies_the_older_is_named() {
    let mut devices = filled();
    devices.push(devices[1].clone());
    let (name, fault) = refusal(named(&devices));
    assert_eq!(name, "d");
    assert!(matches!(fault, LabelFault::Duplicate { member: 1, ref other, .. } if other == "b"));
    devices.pop();
    let old = copy(&devices[0]);
    open(&devices).unwrap();
    devices.insert(0, old);
    let (name, fault) = refusal(named(&devices));
    assert_eq!(name, "a");
    let expected = LabelFault::Duplicate { member: 0, other: "b".into(), generation: 2, newest: 4 };
    assert_eq!(fault, expected);
}

#[test]
fn an_older_copy_is_refused_however_short_a_time_ago_it_was_made() {
    for openings in 1..4 {
        for index in 0..3 {
            let mut devices = filled();
            let old = copy(&devices[index]);
            for _ in 0..openings {
                open(&devices).unwrap();
            }
            devices[index] = old;
            let (name, fault) = refusal(named(&devices));
            assert_eq!(name, ["a", "b", "c"][index]);
            let (generation, newest) = (2, 2 + 2 * openings);
            // Of equally new ones the last is reported.
            let other = if index == 2 { "b" } else { "c" }.to_owned();
            assert_eq!(fault, LabelFault::Stale { member: index, generation, newest, other });
        }
    }
}

#[test]
fn two_thirds_of_an_older_array_do_not_outvote_the_newer_third() {
    let mut devices = filled();
    let olds = [copy(&devices[0]), copy(&devices[1])];
    open(&devices).unwrap();
    devices[..2].clone_from_slice(&olds);
    let (name, fault) = refusal(named(&devices));
    assert_eq!(name, "a");
    assert!(matches!(fault, LabelFault::Stale { generation: 2, newest: 4, .. }), "{fault}");
}

#[test]
fn a_member_that_was_cut_short_is_named_with_what_it_must_have() {
    for index in 0..3 {
        let mut devices = filled();
        let mut image = devices[index].image();
        image.truncate(image.len() - PAGE_BYTES);
        devices[index] = MemoryDevice::from_image(image);
        let short = LabelFault::Short { pages: 13, pages_min: 14 };
        assert_eq!(refusal(named(&devices)), (["a", "b", "c"][index].into(), short));
    }
}

#[test]
fn strangers_and_damaged_labels_are_told_apart() {
    let devices = filled();
    let with = |image: Vec<u8>| {
        let mut devices = devices.clone();
        devices[2] = MemoryDevice::from_image(image);
        refusal(named(&devices))
    };
    for image in [Vec::new(), vec![0; PAGE_BYTES], vec![0; 9 * PAGE_BYTES], vec![b'x'; 90_000]] {
        let (name, fault) = with(image);
        assert!(name == "c" && matches!(fault, LabelFault::Unlabelled { .. }), "{fault}");
    }
    let mut image = devices[2].image();
    image[50] ^= 1;
    image[PAGE_BYTES + 50] ^= 1;
    let (name, fault) = with(image);
    assert!(name == "c" && matches!(fault, LabelFault::Damaged { .. }), "{fault}");
}

#[test]
fn one_damaged_copy_of_a_label_is_survived_and_mended() {
    for page in 0..2 {
        let devices = filled();
        let mut image = devices[1].image();
        image[page * PAGE_BYTES + 50] ^= 1;
        let mended = MemoryDevice::from_image(image);
        let devices = [devices[0].clone(), mended, devices[2].clone()];
        assert_filled(&open(&devices).unwrap());
        let image = devices[1].image();
        for page in 0..2 {
            let bytes = &image[page * PAGE_BYTES..(page + 1) * PAGE_BYTES];
            Label::decode(bytes, PageId(page as u64)).unwrap();
        }
    }
}

#[test]
fn what_holds_something_already_is_not_made_a_member() {
    let devices = filled();
    let taken = |devices: &[MemoryDevice]| match LabelledArray::create(named(devices), &OPTIONS)
        .unwrap_err()
    {
        Error::Label { name, fault } => (name, fault.to_string()),
        other => panic!("refused in another way: {other}"),
    };
    let (name, reason) = taken(&[MemoryDevice::new(), devices[1].clone()]);
    assert_eq!((name.as_str(), reason.contains("member 1 of 3")), ("b", true), "{reason}");
    let (name, reason) = taken(&[MemoryDevice::from_image(vec![1; 9000]), MemoryDevice::new()]);
    assert!(name == "a" && reason.starts_with("its first pages are not empty; "), "{reason}");
    let begun = memories(2);
    create(&begun);
    create(&begun).grow(1).unwrap();
    taken(&begun);
}

#[test]
fn shapes_that_cannot_work_are_refused_before_anything_is_written() {
    let devices = memories(2);
    let refused = |members: Vec<Member>, options: ArrayOptions| {
        let error = LabelledArray::create(members, &options).unwrap_err();
        assert!(matches!(error, Error::Array { .. }), "{error}");
    };
    refused(Vec::new(), OPTIONS);
    refused(named(&devices), ArrayOptions { align_pages: 0, ..OPTIONS });
    refused(named(&devices), ArrayOptions::new(Striping::Extent { pages: 0 }));
    refused(named(&devices), ArrayOptions::new(Striping::Partition { pages: u64::MAX / 2 }));
    refused(vec![member(0, &devices[0]); 65], OPTIONS);
    assert!(devices.iter().all(|device| device.page_count() == 0));
}

#[test]
fn a_member_without_space_is_named() {
    let small = MemoryDevice::with_limit(6);
    let devices = [MemoryDevice::new(), small];
    let array = create(&devices);
    let is_named =
        |error: Error| matches!(error, Error::Member { member: 1, ref name, .. } if name == "b");
    assert!(is_named(array.grow(100).unwrap_err()));
    assert_eq!(array.label().generation, 1, "what failed is not noted");
    array.grow(4).unwrap();
    let devices = [MemoryDevice::with_limit(3), MemoryDevice::new()];
    let error = LabelledArray::create(named(&devices), &OPTIONS).unwrap_err();
    assert!(matches!(error, Error::Member { member: 0, ref name, .. } if name == "a"), "{error}");
}

#[test]
fn creating_opening_and_growing_cost_what_they_say() {
    let devices: Vec<_> = memories(3).into_iter().map(|it| Arc::new(Counted::new(it))).collect();
    let members = || -> Vec<Member> {
        let named = |it: &Arc<Counted<MemoryDevice>>| Member::new("m", Arc::clone(it) as _);
        devices.iter().map(named).collect()
    };
    let mut before = Vec::new();
    let mut cost = || {
        let now: Vec<_> = devices.iter().map(|it| it.snapshot()).collect();
        let before = std::mem::replace(&mut before, now.clone());
        let spent = |(index, now): (usize, &crate::Counts)| {
            let spent = before.get(index).map_or(*now, |before| *now - *before);
            (spent.reads, spent.writes, spent.syncs, spent.grows)
        };
        let spent: Vec<_> = now.iter().enumerate().map(spent).collect();
        assert!(spent.iter().all(|one| *one == spent[0]), "all members alike: {spent:?}");
        spent[0]
    };
    let array = LabelledArray::create(members(), &OPTIONS).unwrap();
    assert_eq!(cost(), (0, 1, 1, 1), "creating");
    array.grow(12).unwrap();
    assert_eq!(cost(), (0, 1, 2, 1), "growing");
    array.grow(12).unwrap();
    assert_eq!(cost(), (0, 0, 0, 0), "growing to what there is");
    drop(array);
    LabelledArray::open(members(), Access::ReadWrite).unwrap();
    assert_eq!(cost(), (1, 2, 3, 0), "opening");
    LabelledArray::open(members(), Access::ReadOnly).unwrap();
    assert_eq!(cost(), (1, 0, 0, 0), "opening to read");
}

#[test]
fn an_array_that_is_only_read_refuses_all_that_writes() {
    let devices = filled();
    let images: Vec<Vec<u8>> = devices.iter().map(MemoryDevice::image).collect();
    let array = LabelledArray::open(named(&devices), Access::ReadOnly).unwrap();
    assert_filled(&array);
    let is_refused = |error: Error| matches!(error, Error::ReadOnly { .. });
    assert!(is_refused(array.write(PageId(0), PageBuf::zeroed(1)).unwrap_err()));
    assert!(is_refused(array.grow(31).unwrap_err()));
    assert!(is_refused(array.discard(PageId(0)..PageId(1)).unwrap_err()));
    let mut queue = array.queue(1).unwrap();
    let op = |kind| crate::Op { token: 0, kind, page: PageId(1), buf: PageBuf::zeroed(4) };
    assert!(is_refused(queue.push(op(OpKind::Write)).unwrap_err()));
    queue.push(op(OpKind::Read)).unwrap();
    queue.wait(1, &mut Vec::new()).unwrap();
    assert_eq!(devices.iter().map(MemoryDevice::image).collect::<Vec<_>>(), images);
}

#[test]
fn a_member_is_known_by_its_label() {
    let devices = filled();
    assert!(Member::is_labelled(&devices[0]).unwrap());
    assert!(!Member::is_labelled(&MemoryDevice::new()).unwrap());
    assert!(!Member::is_labelled(&MemoryDevice::from_image(vec![3; 9000])).unwrap());
    let mut image = devices[0].image();
    image[100..4200].fill(9);
    assert!(Member::is_labelled(&MemoryDevice::from_image(image)).unwrap());
}
