//! Power cuts: after a spread of device operations (after every one with `NANDEX_SWEEP=full`), with
//! several choices each of what survives, and again while the volume recovers from the first cut. Without
//! threads in the background each cut can be had again by its number; with them the order of operations
//! varies from run to run.

use std::sync::Arc;

use nandex::device::Device;
use nandex_sim::preset::Preset;
use nandex_sim::{Fill, Image, SimDevice};

use super::life::{Past, Run, check, live, open_all, recover};
use super::support::{FAN_OUTS, Setup};
use crate::chance::{Dice, full_sweep};
use crate::ground::DURABILITIES;

/// Recovers, loses power again in the midst of it, and recovers from that.
fn recover_twice(image: Image, setup: Setup, past: &Past, dice: &mut Dice, story: &str) {
    let device = SimDevice::instant().with_image(image);
    let count = dice.below(24);
    device.cut_after(count);
    let mut past = past.clone();
    // What was not vouched for and is lost stays lost: the past goes on from what is found.
    if let Ok(filter) = open_all(Arc::new(device.clone()), setup)
        && check(&filter, &mut past, story).is_ok()
    {
        let mut run = Run { setup, past: &mut past, dice: Dice(dice.next()) };
        let _ = run.work(&filter, 20);
    }
    let seed = dice.below(6);
    let story = format!("{story}, cut again after {count}, survivors {seed}");
    recover(device.survivors(seed), setup, &past, &story);
}

fn shared(device: &SimDevice) -> Arc<dyn Device> {
    Arc::new(device.clone())
}

/// Cuts a run of this setup at many places, on new devices of this sort.
fn sweep_on(new: impl Fn() -> SimDevice, setup: Setup, cuts: u64) {
    let whole = new();
    let mut past = Past::default();
    live(&shared(&whole), setup, 1, &mut past, &mut ()).unwrap();
    assert!(past.merges() >= 5, "{setup:?}: {} merges", past.merges());
    let operations = whole.operations();
    let stride = if full_sweep() { 1 } else { (operations / cuts).max(1) };
    let mut dice = Dice(operations);
    let (mut cut, mut count) = (dice.below(stride), 0);
    while cut < operations {
        let device = new();
        device.cut_after(cut);
        let mut past = Past::default();
        let result = live(&shared(&device), setup, 1, &mut past, &mut ());
        for seed in [0, 1, 2 + dice.below(1000), 2 + dice.below(1000)] {
            let story = format!("{setup:?}, cut after {cut} ({result:?}), survivors {seed}");
            recover(device.survivors(seed), setup, &past, &story);
            recover_twice(device.survivors(seed), setup, &past, &mut dice, &story);
            count += 2;
        }
        cut += stride;
    }
    println!("{setup:?}: {operations} operations, {count} cuts");
}

fn sweep(setup: Setup, cuts: u64) {
    sweep_on(SimDevice::instant, setup, cuts);
}

fn sweep_durability(durability: usize) {
    for (number, fan_out) in FAN_OUTS.into_iter().enumerate() {
        let setup = Setup::exact(DURABILITIES[durability]).fanned(fan_out);
        let setup = if number % 2 == durability % 2 { setup.counting() } else { setup };
        sweep(setup, 10);
        sweep(setup.parted(3), 4);
        sweep(setup.parted(1 + number as u32).threaded(), 3);
    }
}

#[test]
fn after_a_power_cut_everything_acknowledged_is_there_when_always_durable() {
    sweep_durability(0);
}

#[test]
fn after_a_power_cut_everything_synced_is_there_when_durable_by_and_by() {
    sweep_durability(1);
}

#[test]
fn after_a_power_cut_everything_flushed_is_there_without_durability() {
    sweep_durability(2);
}

/// Here writes end in an order of their own, and not that in which they were pushed.
#[test]
fn after_a_power_cut_of_a_simulated_drive_everything_acknowledged_is_there() {
    for name in ["crucial-m4-paper", "transcend-ts32"] {
        let preset = Preset::named(name).unwrap();
        let new = || SimDevice::with_model(preset.build(Fill::Empty).unwrap());
        let setup = Setup::exact(DURABILITIES[0]);
        sweep_on(new, setup, 5);
        sweep_on(new, setup.counting().parted(2).threaded(), 2);
    }
}
