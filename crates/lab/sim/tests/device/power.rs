//! The law of power cuts, sentence by sentence, and cuts of whole runs against the possible survivors.

use std::collections::BTreeSet;

use nandex_device::{Device, Error, PAGE_BYTES, PageBuf, PageId};
use nandex_sim::{History, Image, SimDevice};
use proptest::prelude::*;

use crate::support::{Scattered, device_of, page_of, wait, write};

/// The bytes that a device writes whole or not at all.
const SECTOR_BYTES: usize = 512;

fn is_power_cut(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.to_string() == "power cut")
}

/// Returns the distinct bytes on the page, over many seeds, as sets per seed.
fn outcomes(device: &SimDevice, page: usize) -> BTreeSet<BTreeSet<u8>> {
    let page_bytes = page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
    (0..200)
        .map(|seed| device.survivors(seed).to_bytes()[page_bytes.clone()].iter().copied().collect())
        .collect()
}

fn sets(of: &[&[u8]]) -> BTreeSet<BTreeSet<u8>> {
    of.iter().map(|bytes| bytes.iter().copied().collect()).collect()
}

#[test]
fn a_synced_write_survives_every_seed() {
    let device = device_of(2);
    device.write(PageId(1), page_of(7)).unwrap();
    device.sync().unwrap();
    assert_eq!(outcomes(&device, 1), sets(&[&[7]]));
}

#[test]
fn an_unsynced_write_is_old_new_or_torn() {
    let device = device_of(2);
    device.write(PageId(1), page_of(7)).unwrap();
    assert_eq!(outcomes(&device, 1), sets(&[&[0], &[7], &[0, 7]]));
    assert_eq!(outcomes(&device, 0), sets(&[&[0]]));
}

#[test]
fn seed_zero_loses_and_seed_one_keeps_all_that_is_unsynced() {
    let device = device_of(3);
    for page in 0..3 {
        device.write(PageId(page), page_of(9)).unwrap();
    }
    assert!(device.survivors(0).to_bytes().iter().all(|&byte| byte == 0));
    assert!(device.survivors(1).to_bytes().iter().all(|&byte| byte == 9));
}

#[test]
fn tears_run_along_sectors() {
    let device = device_of(1);
    device.write(PageId(0), page_of(7)).unwrap();
    for seed in 0..200 {
        let image = device.survivors(seed).to_bytes();
        for sector in image.chunks(SECTOR_BYTES) {
            assert!(sector.iter().all(|byte| byte == &sector[0]));
        }
    }
}

#[test]
fn a_sync_does_not_cover_a_write_in_flight() {
    let device = device_of(1);
    let mut queue = device.queue(1).unwrap();
    queue.push(write(0, 0, 5)).unwrap();
    device.sync().unwrap();
    assert_eq!(outcomes(&device, 0), sets(&[&[0], &[5], &[0, 5]]));
    queue.wait(1, &mut Vec::new()).unwrap();
    assert_eq!(outcomes(&device, 0), sets(&[&[0], &[5], &[0, 5]]));
    device.sync().unwrap();
    assert_eq!(outcomes(&device, 0), sets(&[&[5]]));
}

#[test]
fn a_read_does_not_see_a_write_in_flight() {
    let device = device_of(1);
    let mut queue = device.queue(1).unwrap();
    queue.push(write(0, 0, 5)).unwrap();
    assert_eq!(device.read(PageId(0), PageBuf::zeroed(1)).unwrap()[0], 0);
    drop(queue);
    assert_eq!(device.read(PageId(0), PageBuf::zeroed(1)).unwrap()[0], 5);
}

#[test]
fn the_write_that_the_cut_strikes_may_tear_and_later_ones_never_happen() {
    let device = device_of(3);
    device.cut_after(2);
    device.write(PageId(0), page_of(1)).unwrap();
    assert_eq!(device.read(PageId(0), PageBuf::zeroed(1)).unwrap()[0], 1);
    assert!(is_power_cut(&device.write(PageId(1), page_of(2)).unwrap_err()));
    assert!(is_power_cut(&device.write(PageId(2), page_of(3)).unwrap_err()));
    assert!(is_power_cut(&device.read(PageId(0), PageBuf::zeroed(1)).unwrap_err()));
    assert!(is_power_cut(&device.sync().unwrap_err()));
    assert_eq!(outcomes(&device, 1), sets(&[&[0], &[2], &[0, 2]]));
    assert_eq!(outcomes(&device, 2), sets(&[&[0]]));
    assert_eq!((device.operations(), device.is_cut()), (2, true));
}

#[test]
fn a_sync_that_the_cut_strikes_promises_nothing() {
    let device = device_of(1);
    device.write(PageId(0), page_of(4)).unwrap();
    device.cut_after(device.operations());
    assert!(is_power_cut(&device.sync().unwrap_err()));
    assert_eq!(outcomes(&device, 0), sets(&[&[0], &[4], &[0, 4]]));
}

#[test]
fn the_history_of_a_cut_makes_its_image_again() {
    let device = SimDevice::instant().with_image(Image::new());
    device.record_cuts();
    device.record_history();
    device.grow(6).unwrap();
    let mut queue = device.queue(3).unwrap();
    for round in 0..4u8 {
        for page in 0..3 {
            queue.push(write(page, page, round + 1)).unwrap();
        }
        device.write(PageId(3), page_of(9)).unwrap();
        queue.wait(2, &mut Vec::new()).unwrap();
        device.discard(PageId(4)..PageId(6)).unwrap();
        device.sync().unwrap();
        queue.wait(1, &mut Vec::new()).unwrap();
        device.grow(7 + u64::from(round)).unwrap();
    }
    let cuts = device.take_cuts();
    assert_eq!(cuts.len(), 29);
    for cut in &cuts {
        let history = History::decode(&device.history(cut).encode()).unwrap();
        for seed in 0..40 {
            let (again, cut) = (history.replay(Image::new()), cut.survivors(seed));
            assert_eq!(again.survivors(seed).to_bytes(), cut.to_bytes());
            assert_eq!(again.survivors(seed).hash(), cut.hash());
        }
    }
    assert!(History::decode(&[7; 16]).is_none());
}

#[test]
fn growth_is_durable_when_it_returns_and_open_when_the_cut_strikes_it() {
    let device = device_of(2);
    device.cut_after(device.operations());
    assert!(is_power_cut(&device.grow(5).unwrap_err()));
    assert!(is_power_cut(&device.grow(9).unwrap_err()));
    let lengths: BTreeSet<u64> = (0..50).map(|seed| device.survivors(seed).page_count()).collect();
    assert_eq!(lengths, BTreeSet::from([2, 5]));
}

#[test]
fn writes_in_flight_at_the_cut_fail_and_each_may_survive_alone() {
    let device = device_of(3);
    device.cut_after(device.operations() + 2);
    let mut queue = device.queue(3).unwrap();
    for page in 0..3 {
        queue.push(write(page, page, 6)).unwrap();
    }
    let mut done = Vec::new();
    queue.wait(3, &mut done).unwrap();
    assert!(done.iter().all(|completion| is_power_cut(completion.result.as_ref().unwrap_err())));
    let whole = |image: &[u8], page: usize| {
        image[page * PAGE_BYTES..(page + 1) * PAGE_BYTES].iter().all(|&byte| byte == 6)
    };
    let combinations: BTreeSet<Vec<bool>> = (0..500)
        .map(|seed| device.survivors(seed).to_bytes())
        .map(|image| (0..3).map(|page| whole(&image, page)).collect())
        .collect();
    assert_eq!(combinations.len(), 8);
}

#[test]
fn a_discarded_page_loses_its_bytes_even_when_they_were_synced() {
    let device = device_of(1);
    device.write(PageId(0), page_of(8)).unwrap();
    device.sync().unwrap();
    device.discard(PageId(0)..PageId(1)).unwrap();
    let seen = device.read(PageId(0), PageBuf::zeroed(1)).unwrap();
    assert!(seen.iter().any(|&byte| byte != 8));
    assert_eq!(device.survivors(0).to_bytes(), vec![8; PAGE_BYTES]);
    device.sync().unwrap();
    assert_eq!(device.survivors(0).to_bytes(), seen.to_vec());
}

#[test]
fn a_discard_that_the_cut_strikes_may_have_happened() {
    let device = device_of(2);
    device.write(PageId(1), page_of(8)).unwrap();
    device.sync().unwrap();
    device.cut_after(device.operations());
    assert!(is_power_cut(&device.discard(PageId(1)..PageId(2)).unwrap_err()));
    assert_eq!(device.survivors(0).to_bytes()[PAGE_BYTES..], vec![8; PAGE_BYTES]);
    assert!(device.survivors(1).to_bytes()[PAGE_BYTES..].iter().any(|&byte| byte != 8));
    assert!(device.survivors(1).to_bytes()[..PAGE_BYTES].iter().all(|&byte| byte == 0));
}

#[test]
fn an_image_is_durable_from_the_start() {
    let device = SimDevice::instant().with_image(Image::from_bytes(&[5; 100]));
    assert_eq!((device.page_count(), device.operations()), (1, 0));
    let image = device.survivors(0).to_bytes();
    assert!(image[..100].iter().all(|&byte| byte == 5) && image[100..].iter().all(|&b| b == 0));
}

#[test]
fn recovery_can_be_cut_again() {
    let device = device_of(2);
    device.write(PageId(0), page_of(1)).unwrap();
    device.sync().unwrap();
    let device = SimDevice::instant().with_image(device.survivors(0));
    device.cut_after(1);
    device.write(PageId(1), page_of(2)).unwrap();
    assert!(is_power_cut(&device.sync().unwrap_err()));
    assert_eq!(outcomes(&device, 0), sets(&[&[1]]));
    assert_eq!(outcomes(&device, 1), sets(&[&[0], &[2], &[0, 2]]));
}

#[test]
fn a_cut_ends_everything_in_flight_on_a_model_too() {
    let device = SimDevice::with_model(Scattered::boxed());
    device.grow(8).unwrap();
    let (mut one, mut other) = (device.queue(4).unwrap(), device.queue(4).unwrap());
    (0..4).for_each(|page| one.push(write(page, page, 1)).unwrap());
    device.cut_after(device.operations());
    other.push(write(4, 4, 2)).unwrap();
    assert!(device.is_cut());
    let now = device.now();
    for completion in wait(&mut *one, 1).into_iter().chain(wait(&mut *other, 1)) {
        assert!(is_power_cut(&completion.result.unwrap_err()));
    }
    assert!(is_power_cut(&device.sync().unwrap_err()));
    assert!(is_power_cut(&device.read(PageId(0), PageBuf::zeroed(1)).unwrap_err()));
    drop((one, other));
    assert_eq!(device.now(), now);
    assert!(device.survivors(0).to_bytes().iter().all(|&byte| byte == 0));
    let bytes = device.survivors(1).to_bytes();
    assert_eq!([0, 3, 4].map(|page| bytes[page * PAGE_BYTES]), [1, 1, 2]);
}

#[derive(Clone, Debug)]
enum Step {
    Write { page: u64, byte: u8 },
    Sync,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4_u64, 1..=255_u8).prop_map(|(page, byte)| Step::Write { page, byte }),
        1 => Just(Step::Sync),
    ]
}

/// Runs the steps until the power fails, and returns for each page its possible bytes.
fn run(device: &SimDevice, steps: &[Step]) -> Vec<BTreeSet<u8>> {
    let mut possible = vec![BTreeSet::from([0]); 4];
    let mut latest = [0_u8; 4];
    for step in steps {
        let alive = match *step {
            Step::Write { page, byte } => {
                let index = usize::try_from(page).unwrap();
                if !device.is_cut() {
                    possible[index].insert(byte);
                }
                let written = device.write(PageId(page), page_of(byte)).is_ok();
                latest[index] = if written { byte } else { latest[index] };
                written
            }
            Step::Sync => device.sync().is_ok(),
        };
        if alive && matches!(step, Step::Sync) {
            possible = latest.iter().map(|&byte| BTreeSet::from([byte])).collect();
        }
    }
    possible
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn only_possible_bytes_survive_any_cut(
        steps in prop::collection::vec(step(), 1..20), seed: u64,
    ) {
        let counting = device_of(4);
        run(&counting, &steps);
        for cut in 1..=counting.operations() {
            let (device, again) = (device_of(4), device_of(4));
            device.cut_after(cut);
            again.cut_after(cut);
            let possible = run(&device, &steps);
            run(&again, &steps);
            let image = device.survivors(seed).to_bytes();
            prop_assert_eq!(&image, &again.survivors(seed).to_bytes());
            for (page, bytes) in image.chunks(PAGE_BYTES).enumerate() {
                for sector in bytes.chunks(SECTOR_BYTES) {
                    prop_assert!(possible[page].contains(&sector[0]));
                }
            }
        }
    }
}

/// Performs two writes in flight while others land, a growth, a discard and syncs, until the power fails.
fn mixed(device: &SimDevice) -> Result<(), Error> {
    device.grow(8)?;
    let mut queue = device.queue(4)?;
    queue.push(write(0, 6, 1))?;
    for page in 0..4 {
        device.write(PageId(page), page_of(2 + page as u8))?;
    }
    queue.push(write(1, 7, 9))?;
    device.sync()?;
    device.discard(PageId(1)..PageId(3))?;
    device.grow(12)?;
    queue.wait(2, &mut Vec::new())?;
    device.write(PageId(10), page_of(77))?;
    device.sync()
}

#[test]
fn cuts_noted_in_one_run_leave_what_cuts_of_many_runs_leave() {
    let watched = SimDevice::instant();
    watched.record_cuts();
    mixed(&watched).unwrap();
    let cuts = watched.take_cuts();
    assert_eq!(cuts.len() as u64, watched.operations());
    for (operation, cut) in (0..).zip(&cuts) {
        assert_eq!(cut.operation, operation);
        for seed in 0..40 {
            let device = SimDevice::instant();
            device.cut_after(operation);
            mixed(&device).unwrap_err();
            let (image, expected) = (cut.survivors(seed), device.survivors(seed));
            assert_eq!(image.page_count(), expected.page_count(), "{operation}, {seed}");
            assert!(image.to_bytes() == expected.to_bytes(), "{operation}, {seed}");
        }
    }
    assert!(watched.take_cuts().is_empty());
}
