//! Labelled arrays of simulated drives: the laws, and a power cut at every operation of every step.
//!
//! Labels stop at the first error, so a cut at an operation of one member is a cut of the whole array: no
//! other member gets any request afterwards. The content of each member is then drawn by seed.

use std::sync::Arc;

use nandex_device::{Access, ArrayOptions, Device, Error, LabelFault, LabelledArray, Member};
use nandex_device::{PageBuf, PageId, Striping, laws};
use nandex_sim::SimDevice;

use crate::support::page_of;

const MEMBERS: usize = 3;
/// Pages of the array.
const PAGES: u64 = 7;
/// The number of choices of survivors, two of which are "nothing" and "everything".
const SEEDS: u64 = 4;

const OPTIONS: ArrayOptions =
    ArrayOptions { striping: Striping::Extent { pages: 1 }, align_pages: 4, array_id: Some(9) };

type Drives = Vec<SimDevice>;

fn drives() -> Drives {
    (0..MEMBERS).map(|_| SimDevice::instant()).collect()
}

fn members(drives: &Drives) -> Vec<Member> {
    let named = |(index, drive): (usize, &SimDevice)| {
        Member::new(format!("drive {index}"), Arc::new(drive.clone()))
    };
    drives.iter().enumerate().map(named).collect()
}

fn after_cut(drives: &Drives, seed: u64) -> Drives {
    let survivor = |(index, drive): (usize, &SimDevice)| {
        // Seeds 0 and 1 mean the same for all; the others differ from member to member.
        let seed = if seed < 2 { seed } else { seed * 31 + index as u64 };
        SimDevice::instant().with_image(drive.survivors(seed))
    };
    drives.iter().enumerate().map(survivor).collect()
}

/// The progress of a run before the power failed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Came {
    Nowhere,
    Created,
    Filled,
    Reopened,
}

fn fill(array: &LabelledArray, byte: u8) -> nandex_device::Result<()> {
    (0..PAGES).try_for_each(|page| array.write(PageId(page), page_of(byte)).map(drop))?;
    array.sync()
}

/// Makes an array, grows and fills it, reopens it, and fills it again.
fn live(drives: &Drives) -> Came {
    let Ok(array) = LabelledArray::create(members(drives), &OPTIONS) else { return Came::Nowhere };
    if array.grow(PAGES).and_then(|()| fill(&array, 1)).is_err() {
        return Came::Created;
    }
    drop(array);
    let opened = LabelledArray::open(members(drives), Access::ReadWrite);
    match opened.and_then(|array| fill(&array, 2)) {
        Err(_) => Came::Filled,
        Ok(()) => Came::Reopened,
    }
}

/// Returns the first byte of each page, on which all members must agree.
fn contents(array: &LabelledArray) -> Vec<u8> {
    let read = |page| array.read(PageId(page), PageBuf::zeroed(1)).unwrap()[0];
    (0..PAGES.min(array.page_count())).map(read).collect()
}

fn check_survivors(came: Came, drives: &Drives, story: &str) {
    match LabelledArray::open(members(drives), Access::ReadWrite) {
        Err(Error::Label { name, fault }) if matches!(*fault, LabelFault::Unlabelled { .. }) => {
            assert_eq!(came, Came::Nowhere, "{story}: {name} has lost its label");
        }
        Err(error) => panic!("{story}, after {came:?}: {error}"),
        Ok(array) => {
            let bytes = contents(&array);
            match came {
                Came::Nowhere | Came::Created => {}
                Came::Filled => assert!(bytes.iter().all(|&it| it == 1 || it == 2), "{story}"),
                Came::Reopened => assert_eq!(bytes, [2; PAGES as usize], "{story}"),
            }
            assert!(came < Came::Filled || bytes.len() as u64 == PAGES, "{story}");
        }
    }
}

/// Runs a life with a cut at each operation of each member, and checks the survivors.
fn each_cut(mut check: impl FnMut(Came, &Drives, &str)) -> usize {
    let whole = drives();
    assert_eq!(live(&whole), Came::Reopened);
    let mut cuts = 0;
    for member in 0..MEMBERS {
        for operation in 0..whole[member].operations() {
            let drives = drives();
            drives[member].cut_after(operation);
            let came = live(&drives);
            for seed in 0..SEEDS {
                let story = format!("cut of member {member} at {operation}, seed {seed}");
                check(came, &after_cut(&drives, seed), &story);
                cuts += 1;
            }
        }
    }
    cuts
}

#[test]
fn a_labelled_array_of_simulated_drives_keeps_the_laws() {
    let drives = drives();
    laws::check(&LabelledArray::create(members(&drives), &OPTIONS).unwrap());
    laws::check(&LabelledArray::open(members(&drives), Access::ReadWrite).unwrap());
}

#[test]
fn after_every_cut_an_array_opens_with_what_was_synced_or_was_never_made() {
    let mut refused = 0;
    let cuts = each_cut(|came, drives, story| {
        refused += usize::from(LabelledArray::open(members(drives), Access::ReadOnly).is_err());
        check_survivors(came, drives, story);
    });
    assert!(cuts > 200 && (1..cuts / 4).contains(&refused), "{cuts} cuts, {refused} refused");
}

#[test]
fn a_cut_while_opening_after_a_cut_is_survived_as_well() {
    each_cut(|came, left, story| {
        if came < Came::Filled {
            return;
        }
        let operations = || left.iter().map(SimDevice::operations).max().unwrap_or(0);
        let images: Vec<_> = left.iter().map(|drive| drive.survivors(1)).collect();
        let again = || -> Drives {
            images.iter().map(|it| SimDevice::instant().with_image(it.clone())).collect()
        };
        LabelledArray::open(members(left), Access::ReadWrite).unwrap();
        for member in 0..MEMBERS {
            for operation in 0..operations() {
                let drives = again();
                drives[member].cut_after(operation);
                let opened = LabelledArray::open(members(&drives), Access::ReadWrite);
                let story = format!("{story}, and of {member} at {operation}");
                let is_cut = drives[member].is_cut();
                assert_eq!(opened.is_err(), is_cut, "{story}");
                check_survivors(came, &after_cut(&drives, 2), &story);
            }
        }
    });
}

#[test]
fn a_copy_from_before_a_completed_opening_is_refused_whatever_was_cut_before_it() {
    let mut copies = 0;
    each_cut(|came, drives, story| {
        if came < Came::Filled {
            return;
        }
        let copy = |drive: &SimDevice| SimDevice::instant().with_image(drive.survivors(1));
        let old: Drives = drives.iter().map(copy).collect();
        LabelledArray::open(members(drives), Access::ReadWrite).unwrap();
        for member in 0..MEMBERS {
            let mut mixed: Drives = drives.clone();
            mixed[member] = copy(&old[member]);
            let error = LabelledArray::open(members(&mixed), Access::ReadOnly).unwrap_err();
            let is_named = match &error {
                Error::Label { name, fault } => {
                    *name == format!("drive {member}")
                        && matches!(**fault, LabelFault::Stale { .. })
                }
                _ => false,
            };
            assert!(is_named, "{story}: {error}");
            copies += 1;
        }
    });
    assert!(copies > 100, "{copies} copies");
}

#[test]
fn a_failed_write_of_a_label_fails_the_opening_and_the_next_one_goes_on() {
    use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan};
    for (on, number) in [(FaultOn::Write, 2), (FaultOn::Sync, 3)] {
        for ahead in 1..=number {
            let drives = drives();
            assert_eq!(live(&drives), Came::Reopened);
            let at = drives[1].seen(on) + ahead;
            drives[1].arm(Fault { on, at, kind: FaultKind::Io, span: FaultSpan::Once });
            let error = LabelledArray::open(members(&drives), Access::ReadWrite).unwrap_err();
            let is_named = matches!(
                &error, Error::Member { member: 1, name, .. } if name == "drive 1");
            assert!(is_named, "{on:?} {ahead}: {error}");
            check_survivors(Came::Reopened, &drives, "after a failure");
        }
    }
}
