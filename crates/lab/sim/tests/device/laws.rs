//! The laws of devices, on a simulated one with and without a model of time, and inside wrappers.

use std::sync::{Arc, Mutex};
use std::thread;

use nandex_device::{Counted, Device, Error, Geometry, PageBuf, PageId, laws};
use nandex_sim::{FaultKind, FaultOn, Faults, Fill, Image, SimDevice, Ssd};

use crate::support::{MODEL_PAGES, Scattered, page_of, small_ssd, wait, write};

#[test]
fn a_device_whose_operations_end_at_once_keeps_the_laws() {
    laws::check(&SimDevice::instant());
}

#[test]
fn a_device_with_a_model_keeps_the_laws() {
    laws::check(&SimDevice::with_model(Scattered::boxed()));
}

#[test]
fn an_ssd_keeps_the_laws_and_can_be_looked_at_meanwhile() {
    let ssd = Arc::new(Mutex::new(Ssd::new(small_ssd(), Fill::Empty).unwrap()));
    let device = SimDevice::with_model(Box::new(Arc::clone(&ssd)));
    for _ in 0..4 {
        laws::check(&device);
    }
    let counters = ssd.lock().unwrap().counters();
    assert!(counters.requests > 1_000 && counters.flash_reads > 100, "{counters:?}");
    assert_eq!(device.now(), nandex_sim::Model::now_ns(&ssd));
}

#[test]
fn a_device_that_holds_something_already_keeps_the_laws() {
    laws::check(&SimDevice::instant().with_image(Image::from_bytes(&[7; 300_000])));
    laws::check(&Counted::new(SimDevice::instant()));
}

#[test]
fn a_device_that_is_only_slow_keeps_the_laws() {
    let slow = FaultKind::Slow { extra_ns: 70_000 };
    let faults = || {
        Faults::seeded(3)
            .with_chance(FaultOn::Read, slow, 300_000)
            .with_chance(FaultOn::Write, slow, 300_000)
            .with_chance(FaultOn::Sync, slow, 300_000)
    };
    laws::check(&SimDevice::instant().with_faults(faults()));
    laws::check(&SimDevice::with_model(Scattered::boxed()).with_faults(faults()));
}

#[test]
fn it_grows_to_what_its_model_has_and_no_further() {
    let device = SimDevice::with_model(Scattered::boxed());
    assert_eq!(device.page_count(), 0);
    device.grow(MODEL_PAGES).unwrap();
    let error = device.grow(MODEL_PAGES + 1).unwrap_err();
    assert!(matches!(error, Error::NoSpace { wanted_bytes: 413_696, .. }), "{error}");
    assert_eq!(device.page_count(), MODEL_PAGES);
}

#[test]
fn growth_past_what_can_be_counted_is_refused_and_counts_for_nothing() {
    let device = SimDevice::instant();
    assert!(matches!(device.grow(u64::MAX), Err(Error::NoSpace { .. })));
    assert_eq!((device.operations(), device.page_count()), (0, 0));
}

#[test]
fn a_terabyte_opens_and_reads_as_zeros() {
    let device = SimDevice::instant();
    device.grow(1 << 28).unwrap();
    for page in (0..1 << 28).step_by((1 << 28) / 1000) {
        let buf = device.read(PageId(page), PageBuf::zeroed(2)).unwrap();
        assert!(buf.iter().all(|&byte| byte == 0));
    }
    device.write(PageId((1 << 28) - 1), page_of(3)).unwrap();
    assert_eq!(device.survivors(1).pages_held(), 1);
}

#[test]
fn it_tells_the_geometry_it_was_given() {
    let geometry = Geometry { channels: Some(8), depth: 64, ..Geometry::opaque() };
    assert_eq!(SimDevice::instant().with_geometry(geometry).geometry(), geometry);
    assert_eq!(SimDevice::instant().geometry(), Geometry::opaque());
}

#[test]
#[should_panic(expected = "an image of 101 pages on a device of 100")]
fn an_image_that_is_longer_than_the_model_is_refused() {
    let image = Image::from_bytes(&vec![0; 101 * 4096]);
    let _ = SimDevice::with_model(Scattered::boxed()).with_image(image);
}

#[test]
fn discards_past_the_end_are_refused_and_empty_ones_do_nothing() {
    let device = SimDevice::instant();
    device.grow(4).unwrap();
    let error = device.discard(PageId(3)..PageId(5)).unwrap_err();
    assert!(matches!(error, Error::OutOfRange { page_count: 4, .. }), "{error}");
    let backwards = PageId(3)..PageId(1);
    device.discard(backwards).unwrap();
    assert_eq!(device.operations(), 1);
}

#[test]
fn threads_that_share_a_model_each_get_back_all_that_is_theirs() {
    let device = SimDevice::with_model(Scattered::boxed());
    device.grow(MODEL_PAGES).unwrap();
    thread::scope(|scope| {
        for first in 0..8 {
            let device = &device;
            scope.spawn(move || {
                let mut queue = device.queue(8).unwrap();
                for round in 0..200_u64 {
                    (0..8)
                        .for_each(|at| queue.push(write(at, first * 8 + at, round as u8)).unwrap());
                    let mut tokens = Vec::new();
                    while queue.in_flight() > 0 {
                        tokens.extend(wait(&mut *queue, 3).iter().map(|done| done.token));
                    }
                    tokens.sort_unstable();
                    assert_eq!(tokens, [0, 1, 2, 3, 4, 5, 6, 7]);
                    device.sync().unwrap();
                }
            });
        }
    });
    let image = device.survivors(0).to_bytes();
    assert!(image[..64 * 4096].iter().all(|&byte| byte == 199));
}
