//! Every fault strikes as planned, is recorded, and repeats from its seed.

use nandex_device::{Device, Error, OpKind, PageBuf, PageId};
use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, Faults, SimDevice, Strike};

use crate::support::{Scattered, bytes, device_of, page_of, pages_of, read, wait, write};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

const SLOW: FaultKind = FaultKind::Slow { extra_ns: 5_000_000 };

fn once(on: FaultOn, at: u64, kind: FaultKind) -> Fault {
    Fault { on, at, kind, span: FaultSpan::Once }
}

/// Creates eight pages, all written once with their number from 10 on; the next write is the second.
fn filled(fault: Fault, seed: u64) -> SimDevice {
    let device = device_of(8).with_faults(Faults::seeded(seed).with(fault));
    let mut buf = PageBuf::zeroed(8);
    (0..8).for_each(|page| buf.page_mut(page).fill(10 + page as u8));
    device.write(PageId(0), buf).unwrap();
    device
}

fn errno(error: &Error) -> Option<i32> {
    match error {
        Error::Io { source, .. } => source.raw_os_error(),
        _ => None,
    }
}

/// Returns the only strike.
fn only(device: &SimDevice) -> Strike {
    let strikes = device.faults();
    assert_eq!(strikes.len(), 1, "{strikes:?}");
    strikes[0]
}

#[test]
fn the_second_write_fails_once_and_leaves_its_page() {
    let device = filled(once(FaultOn::Write, 2, FaultKind::NoSpace), 0);
    let error = device.write(PageId(3), page_of(1)).unwrap_err();
    assert!(matches!(error, Error::Io { operation: "write", page: PageId(3), pages: 1, .. }));
    assert_eq!((errno(&error), bytes(&device, 8)[3]), (Some(ENOSPC), 13));
    device.write(PageId(3), page_of(1)).unwrap();
    assert_eq!((device.seen(FaultOn::Write), bytes(&device, 8)[3]), (3, 1));
    let strike = only(&device);
    assert_eq!((strike.on, strike.at, strike.kind), (FaultOn::Write, 2, FaultKind::NoSpace));
    assert_eq!((strike.page, strike.pages, strike.instead, strike.bit), (PageId(3), 1, None, None));
}

#[test]
fn syncs_fail_from_then_on_until_disarmed_and_make_nothing_durable() {
    let fault = once(FaultOn::Sync, 1, FaultKind::Io);
    let device = filled(Fault { span: FaultSpan::FromThenOn, ..fault }, 0);
    for _ in 0..3 {
        let error = device.sync().unwrap_err();
        assert!(matches!(error, Error::Io { operation: "sync", pages: 8, .. }), "{error}");
    }
    assert!(device.survivors(0).to_bytes().iter().all(|&byte| byte == 0));
    device.disarm();
    device.sync().unwrap();
    assert_eq!(device.survivors(0).to_bytes()[0], 10);
    assert_eq!(device.faults().iter().map(|strike| strike.at).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn a_queued_fault_comes_back_as_a_completion_with_its_buffer() {
    for device in [SimDevice::instant(), SimDevice::with_model(Scattered::boxed())] {
        let device = device.with_faults(Faults::none().with(once(FaultOn::Read, 2, FaultKind::Io)));
        device.grow(4).unwrap();
        let mut queue = device.queue(3).unwrap();
        (0..3).for_each(|token| queue.push(read(token, 1)).unwrap());
        let mut done = wait(&mut *queue, 3);
        done.sort_by_key(|completion| completion.token);
        let failed: Vec<_> =
            done.iter().map(|done| done.result.as_ref().err().map(errno)).collect();
        assert_eq!(failed, [None, Some(Some(EIO)), None]);
        assert!(done.iter().all(|done| done.buf.pages() == 1 && done.kind == OpKind::Read));
    }
}

#[test]
fn a_full_device_refuses_growth() {
    let device = device_of(4);
    device.arm(once(FaultOn::Grow, 2, FaultKind::NoSpace));
    device.arm(once(FaultOn::Grow, 3, FaultKind::Io));
    device.arm(once(FaultOn::Grow, 5, FaultKind::Io));
    assert!(matches!(device.grow(9), Err(Error::NoSpace { wanted_bytes: 36_864, .. })));
    assert!(matches!(device.grow(9), Err(Error::Io { operation: "grow", pages: 5, .. })));
    assert_eq!((device.page_count(), device.faults().len()), (4, 2));
    device.grow(9).unwrap();
    assert!(matches!(device.grow(1), Err(Error::Io { operation: "grow", pages: 0, .. })));
    assert_eq!(device.page_count(), 9);
}

#[test]
fn a_failed_discard_leaves_its_pages() {
    let device = filled(once(FaultOn::Discard, 1, FaultKind::Io), 0);
    let error = device.discard(PageId(2)..PageId(6)).unwrap_err();
    assert!(matches!(error, Error::Io { operation: "discard", page: PageId(2), pages: 4, .. }));
    assert_eq!(bytes(&device, 8), [10, 11, 12, 13, 14, 15, 16, 17]);
    assert_eq!((only(&device).page, only(&device).pages), (PageId(2), 4));
}

#[test]
fn a_short_write_reaches_its_first_pages_only() {
    let mut kept = [false; 4];
    for seed in 0..50 {
        let device = filled(once(FaultOn::Write, 2, FaultKind::Short), seed);
        let error = device.write(PageId(2), pages_of(1, 4)).unwrap_err();
        assert_eq!(errno(&error), Some(EIO));
        let Strike { page, pages, .. } = only(&device);
        assert_eq!(page.0 + pages, 6);
        let expected: Vec<u8> =
            (0..8).map(|at| if (2..page.0).contains(&at) { 1 } else { 10 + at as u8 }).collect();
        assert_eq!(bytes(&device, 8), expected);
        kept[page.0 as usize - 2] = true;
    }
    assert_eq!(kept, [true; 4]);
}

#[test]
fn a_short_read_fills_its_first_pages_and_a_short_discard_spoils_them() {
    for seed in 0..20 {
        let device = filled(once(FaultOn::Read, 1, FaultKind::Short), seed);
        let mut queue = device.queue(1).unwrap();
        let mut op = read(0, 2);
        op.buf = pages_of(0xee, 4);
        queue.push(op).unwrap();
        let done = wait(&mut *queue, 1).remove(0);
        assert_eq!(errno(&done.result.unwrap_err()), Some(EIO));
        let kept = only(&device).page.0 - 2;
        let seen: Vec<u8> = (0..4).map(|page| done.buf.page(page)[0]).collect();
        let read = |at| if at < kept { 12 + at as u8 } else { 0xee };
        assert_eq!(seen, (0..4).map(read).collect::<Vec<_>>());

        let device = filled(once(FaultOn::Discard, 1, FaultKind::Short), seed);
        device.discard(PageId(2)..PageId(6)).unwrap_err();
        let end = only(&device).page.0;
        for page in 0..8 {
            let buf = device.read(PageId(page), PageBuf::zeroed(1)).unwrap();
            let whole = buf.iter().all(|&byte| byte == 10 + page as u8);
            assert_eq!(whole, !(2..end).contains(&page), "page {page}, spoilt to {end}");
        }
    }
}

/// Returns the number of bits that differ between two buffers, and the place of the last one as page and bit.
fn difference(one: &[u8], other: &[u8]) -> (u32, usize, u32) {
    let mut found = (0, 0, 0);
    for (index, (one, other)) in one.iter().zip(other).enumerate() {
        let differing = one ^ other;
        if differing != 0 {
            let bit = (index % 4096) as u32 * 8 + differing.trailing_zeros();
            found = (found.0 + differing.count_ones(), index / 4096, bit);
        }
    }
    found
}

#[test]
fn a_flip_in_a_read_is_one_bit_once() {
    for seed in 0..20 {
        let device = filled(once(FaultOn::Read, 1, FaultKind::Flip), seed);
        let struck = device.read(PageId(1), PageBuf::zeroed(5)).unwrap();
        let sound = device.read(PageId(1), PageBuf::zeroed(5)).unwrap();
        let (bits, page, bit) = difference(&struck, &sound);
        let strike = only(&device);
        assert_eq!((bits, page as u64 + 1, Some(bit)), (1, strike.page.0, strike.bit));
        assert_eq!(
            (0..5).map(|page| sound.page(page)[0]).collect::<Vec<_>>(),
            [11, 12, 13, 14, 15]
        );
    }
}

#[test]
fn a_flip_in_a_write_lasts_until_the_page_is_written_again() {
    for seed in 0..20 {
        let device = filled(once(FaultOn::Write, 2, FaultKind::Flip), seed);
        let given = device.write(PageId(1), pages_of(1, 5)).unwrap();
        assert!(given.iter().all(|&byte| byte == 1), "the caller's buffer stays as it was");
        let strike = only(&device);
        for _ in 0..2 {
            let stored = device.read(PageId(1), PageBuf::zeroed(5)).unwrap();
            let (bits, page, bit) = difference(&stored, &given);
            assert_eq!((bits, page as u64 + 1, Some(bit)), (1, strike.page.0, strike.bit));
        }
        device.write(PageId(1), given).unwrap();
        assert_eq!(bytes(&device, 8), [10, 1, 1, 1, 1, 1, 16, 17]);
    }
}

#[test]
fn a_misdirected_write_lands_elsewhere_and_succeeds() {
    let mut landed = [false; 7];
    for seed in 0..100 {
        let device = filled(once(FaultOn::Write, 2, FaultKind::Misdirected), seed);
        device.write(PageId(3), pages_of(1, 2)).unwrap();
        let Strike { page, pages, instead, .. } = only(&device);
        let instead = instead.unwrap().0;
        assert_eq!((page, pages), (PageId(3), 2));
        let expected = (0..8_u8)
            .map(|at| if (instead..instead + 2).contains(&u64::from(at)) { 1 } else { 10 + at });
        assert_eq!(bytes(&device, 8), expected.collect::<Vec<_>>());
        landed[instead as usize] = true;
    }
    assert_eq!(landed, [true, true, true, false, true, true, true]);
}

#[test]
fn a_misdirected_read_brings_other_pages_once() {
    for seed in 0..50 {
        let device = filled(once(FaultOn::Read, 1, FaultKind::Misdirected), seed);
        let buf = device.read(PageId(6), PageBuf::zeroed(1)).unwrap();
        let instead = only(&device).instead.unwrap().0;
        assert_ne!(instead, 6);
        assert!(buf.iter().all(|&byte| u64::from(byte) == 10 + instead));
        assert_eq!(bytes(&device, 8)[6], 16);
    }
}

#[test]
fn what_leaves_no_other_place_cannot_be_misdirected() {
    let device = filled(once(FaultOn::Write, 2, FaultKind::Misdirected), 1);
    device.write(PageId(0), pages_of(9, 8)).unwrap();
    assert_eq!((bytes(&device, 8), device.faults()), (vec![9; 8], vec![]));
}

#[test]
fn a_stale_read_brings_a_page_as_it_was_before_its_last_write_once() {
    for seed in 0..20 {
        let device = filled(once(FaultOn::Read, 1, FaultKind::Stale), seed);
        device.write(PageId(2), pages_of(1, 3)).unwrap();
        let buf = device.read(PageId(1), PageBuf::zeroed(4)).unwrap();
        let strike = only(&device);
        assert_eq!(strike.pages, 1);
        let sound = [11, 1, 1, 1];
        let stale = [0, 12, 13, 14];
        for page in 0..4 {
            let is_struck = strike.page.0 == page as u64 + 1;
            let expected = if is_struck { stale[page] } else { sound[page] };
            assert!(buf.page(page).iter().all(|&byte| byte == expected));
        }
        assert_eq!(bytes(&device, 5), [10, 11, 1, 1, 1]);
    }
}

#[test]
fn a_page_of_which_nothing_older_is_known_cannot_come_stale() {
    let device = device_of(2);
    device.write(PageId(0), page_of(1)).unwrap();
    device.arm(once(FaultOn::Read, 1, FaultKind::Stale));
    assert_eq!(device.read(PageId(0), PageBuf::zeroed(1)).unwrap()[0], 1);
    assert_eq!(device.faults(), []);
}

#[test]
fn a_lost_write_is_acknowledged_and_never_done() {
    let device = filled(once(FaultOn::Write, 2, FaultKind::Lost), 0);
    device.write(PageId(3), pages_of(1, 2)).unwrap();
    device.sync().unwrap();
    assert_eq!(bytes(&device, 8), [10, 11, 12, 13, 14, 15, 16, 17]);
    assert_eq!((only(&device).page, only(&device).pages), (PageId(3), 2));
}

#[test]
fn a_lost_sync_makes_nothing_durable_and_the_next_one_all() {
    let device = filled(once(FaultOn::Sync, 1, FaultKind::Lost), 0);
    device.sync().unwrap();
    assert_eq!(device.survivors(0).to_bytes()[0], 0);
    device.sync().unwrap();
    assert_eq!(device.survivors(0).to_bytes()[0], 10);
}

#[test]
fn a_sync_that_drops_fails_and_the_next_one_hides_it() {
    let device = filled(once(FaultOn::Sync, 1, FaultKind::Dropped), 0);
    assert_eq!(errno(&device.sync().unwrap_err()), Some(EIO));
    device.write(PageId(1), page_of(1)).unwrap();
    device.sync().unwrap();
    assert_eq!(bytes(&device, 3), [10, 1, 12]);
    let kept = SimDevice::instant().with_image(device.survivors(1));
    assert_eq!(bytes(&kept, 3), [0, 1, 0]);
    device.write(PageId(0), page_of(2)).unwrap();
    device.sync().unwrap();
    let kept = SimDevice::instant().with_image(device.survivors(0));
    assert_eq!(bytes(&kept, 3), [2, 1, 0]);
}

#[test]
fn a_lost_discard_leaves_its_pages() {
    let device = filled(once(FaultOn::Discard, 1, FaultKind::Lost), 0);
    device.discard(PageId(0)..PageId(8)).unwrap();
    assert_eq!(bytes(&device, 8), [10, 11, 12, 13, 14, 15, 16, 17]);
}

#[test]
fn slow_operations_take_as_much_longer_and_do_what_they_should() {
    for device in [SimDevice::instant(), SimDevice::with_model(Scattered::boxed())] {
        device.grow(8).unwrap();
        for on in [FaultOn::Read, FaultOn::Write, FaultOn::Sync, FaultOn::Discard] {
            device.arm(once(on, 1, SLOW));
        }
        let timed = |operation: &dyn Fn()| {
            let before = device.now();
            operation();
            (device.now() - before) / 5_000_000
        };
        for slow in [1, 0] {
            assert_eq!(timed(&|| drop(device.write(PageId(1), page_of(4)).unwrap())), slow);
            assert_eq!(timed(&|| drop(device.read(PageId(1), PageBuf::zeroed(1)).unwrap())), slow);
            assert_eq!(timed(&|| device.sync().unwrap()), slow);
            assert_eq!(timed(&|| device.discard(PageId(2)..PageId(3)).unwrap()), slow);
        }
        assert_eq!((bytes(&device, 2), device.faults().len()), (vec![0, 4], 4));
    }
}

#[test]
fn a_slow_operation_of_a_model_does_not_hold_up_the_others() {
    let device = SimDevice::with_model(Scattered::boxed());
    device.grow(8).unwrap();
    device.arm(once(FaultOn::Write, 1, SLOW));
    let mut queue = device.queue(4).unwrap();
    (0..4).for_each(|page| queue.push(write(page, page, 1)).unwrap());
    let tokens: Vec<u64> = wait(&mut *queue, 3).iter().map(|done| done.token).collect();
    assert!(tokens.len() == 3 && !tokens.contains(&0) && device.now() < 5_000_000);
    assert_eq!(wait(&mut *queue, 1)[0].token, 0);
}

/// Returns every kind of fault, each at the same rate.
fn everything(seed: u64, per_million: u32) -> Faults {
    let every = [FaultOn::Read, FaultOn::Write, FaultOn::Sync, FaultOn::Grow, FaultOn::Discard];
    let kinds = [
        FaultKind::Io,
        FaultKind::NoSpace,
        FaultKind::Short,
        FaultKind::Flip,
        FaultKind::Misdirected,
        FaultKind::Stale,
        FaultKind::Lost,
        FaultKind::Dropped,
        SLOW,
    ];
    let pairs = every.iter().flat_map(|on| kinds.iter().map(move |kind| (*on, *kind)));
    pairs
        .filter(|(on, kind)| kind.can_strike(*on))
        .fold(Faults::seeded(seed), |faults, (on, kind)| faults.with_chance(on, kind, per_million))
}

/// Performs `count` operations of each kind.
fn exercise(device: &SimDevice, count: u64) {
    for number in 0..count {
        let page = PageId(number * 29 % 32);
        let _ = device.write(page, page_of(number as u8));
        let _ = device.read(page, PageBuf::zeroed(1));
        let _ = device.sync();
        let _ = device.discard(page..page.plus(1));
        let _ = device.grow(64 + number);
    }
}

#[test]
fn the_same_seed_strikes_the_same_operations_and_another_seed_others() {
    let run = |seed| {
        let device = device_of(32).with_faults(everything(seed, 20_000));
        exercise(&device, 500);
        (device.faults(), device.survivors(5).to_bytes())
    };
    let (one, again, other) = (run(1), run(1), run(2));
    assert!(one == again);
    assert_ne!(one.0, other.0);
}

#[test]
fn chance_among_one_sort_does_not_depend_on_other_sorts() {
    let faults = || Faults::seeded(4).with_chance(FaultOn::Sync, FaultKind::Io, 300_000);
    let run = |writes: u64| {
        let device = device_of(4).with_faults(faults());
        for _ in 0..100 {
            (0..writes).for_each(|_| drop(device.write(PageId(0), page_of(1)).unwrap()));
            let _ = device.sync();
        }
        device.faults()
    };
    assert_eq!(run(0), run(7));
}

#[test]
fn chances_come_at_their_rates() {
    // Each pair strikes 1 % of 20 000 operations: 200, give or take 14. Five times that is chosen so that it
    // holds for all pairs at once; pages are overwritten and read, so that stale ones are known.
    let device = device_of(64).with_faults(everything(11, 10_000));
    exercise(&device, 20_000);
    let strikes = device.faults();
    let mut pairs = 0;
    for on in [FaultOn::Read, FaultOn::Write, FaultOn::Sync, FaultOn::Grow, FaultOn::Discard] {
        for kind in [FaultKind::Io, FaultKind::NoSpace, FaultKind::Short, FaultKind::Flip]
            .into_iter()
            .chain([FaultKind::Misdirected, FaultKind::Stale, FaultKind::Lost])
            .chain([FaultKind::Dropped, SLOW])
        {
            let count = strikes.iter().filter(|it| (it.on, it.kind) == (on, kind)).count();
            let range = if kind.can_strike(on) { 130..=270 } else { 0..=0 };
            assert!(range.contains(&count), "{kind:?} struck {count} of 20000 of {on:?}");
            pairs += usize::from(count > 0);
        }
    }
    assert_eq!(pairs, 27);
}

#[test]
fn a_planned_fault_strikes_before_those_by_chance() {
    let faults = Faults::seeded(1)
        .with_chance(FaultOn::Write, FaultKind::Lost, 1_000_000)
        .with(once(FaultOn::Write, 2, FaultKind::Io));
    let device = device_of(1).with_faults(faults);
    device.write(PageId(0), page_of(1)).unwrap();
    device.write(PageId(0), page_of(1)).unwrap_err();
    let kinds: Vec<FaultKind> = device.faults().iter().map(|strike| strike.kind).collect();
    assert_eq!(kinds, [FaultKind::Lost, FaultKind::Io]);
}

#[test]
fn nothing_strikes_without_power() {
    let device = device_of(1).with_faults(everything(1, 100_000));
    device.cut_after(device.operations());
    exercise(&device, 10);
    assert_eq!(device.faults(), []);
    assert_eq!(device.seen(FaultOn::Write), 0);
}

#[test]
#[should_panic(expected = "Stale cannot strike a Write")]
fn a_fault_that_makes_no_sense_is_refused() {
    device_of(1).arm(once(FaultOn::Write, 1, FaultKind::Stale));
}

#[test]
#[should_panic(expected = "chances of a Read add up to 1000001 in a million")]
fn chances_past_certainty_are_refused() {
    let faults = Faults::seeded(1).with_chance(FaultOn::Read, FaultKind::Flip, 1_000_000);
    let _ = faults.with_chance(FaultOn::Read, FaultKind::Io, 1);
}
