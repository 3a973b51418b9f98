//! Virtual time: the calls that advance it, and the order in which operations come back.

use nandex_device::{Device, PageBuf, PageId};
use nandex_sim::SimDevice;

use crate::support::{Scattered, device_of, read, wait, write};

#[test]
fn without_a_model_time_moves_by_a_tick_for_each_operation_and_each_question() {
    let device = device_of(4);
    let start = device.now();
    device.read(PageId(0), PageBuf::zeroed(1)).unwrap();
    device.write(PageId(0), PageBuf::zeroed(2)).unwrap();
    device.sync().unwrap();
    device.discard(PageId(0)..PageId(1)).unwrap();
    assert_eq!(device.now() - start, 5_000);
    assert_eq!(device.now() - start, 6_000);
}

#[test]
fn a_models_time_moves_only_when_somebody_waits_and_not_by_asking() {
    let device = SimDevice::with_model(Scattered::boxed());
    device.grow(8).unwrap();
    let mut queue = device.queue(8).unwrap();
    (0..8).for_each(|page| queue.push(read(page, page)).unwrap());
    assert_eq!([device.now(), device.now()], [0, 0]);
    let first = wait(&mut *queue, 1);
    let now = device.now();
    assert!(now > 0 && first.len() < 8);
    wait(&mut *queue, 8);
    assert!(device.now() > now);
}

#[test]
fn operations_come_back_in_the_order_in_which_they_ended() {
    let device = SimDevice::with_model(Scattered::boxed());
    device.grow(32).unwrap();
    let mut queue = device.queue(32).unwrap();
    (0..32).for_each(|page| queue.push(read(page, page)).unwrap());
    let tokens: Vec<u64> = wait(&mut *queue, 32).iter().map(|done| done.token).collect();
    assert_eq!(tokens.len(), 32);
    assert!(!tokens.is_sorted());
}

#[test]
fn what_ends_while_another_queue_waits_is_kept_for_its_owner() {
    let device = SimDevice::with_model(Scattered::boxed());
    device.grow(64).unwrap();
    let (mut one, mut other) = (device.queue(32).unwrap(), device.queue(32).unwrap());
    (0..32).for_each(|page| one.push(write(page, page, 1)).unwrap());
    (0..32).for_each(|page| other.push(write(page, 32 + page, 2)).unwrap());
    assert_eq!(wait(&mut *one, 32).len(), 32);
    device.sync().unwrap();
    let now = device.now();
    assert_eq!(wait(&mut *other, 32).len(), 32);
    assert!(device.now() <= now + 64_000, "nothing was done twice");
    assert!(device.survivors(0).to_bytes()[32 * 4096..].iter().all(|&byte| byte == 0));
    assert!(device.survivors(1).to_bytes()[32 * 4096..].iter().all(|&byte| byte == 2));
}

#[test]
fn the_same_calls_take_the_same_time_and_leave_the_same_bytes() {
    let run = || {
        let device = SimDevice::with_model(Scattered::boxed());
        device.grow(64).unwrap();
        let mut queue = device.queue(16).unwrap();
        let mut tokens = Vec::new();
        for round in 0..500_u64 {
            if queue.in_flight() == 16 {
                tokens.extend(wait(&mut *queue, 5).iter().map(|done| done.token));
            }
            queue.push(write(round, round * 29 % 64, round as u8)).unwrap();
            if round % 50 == 49 {
                device.sync().unwrap();
            }
        }
        (tokens, device.now(), device.survivors(77).to_bytes())
    };
    assert!(run() == run());
}
