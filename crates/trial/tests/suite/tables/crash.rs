//! Power cuts: after a spread of device operations (after every one with `NANDEX_SWEEP=full`), with
//! several choices each of what survives, and again while the volume recovers from the first cut. Without
//! threads in the background each cut can be had again by its number; with them the order of operations
//! varies from run to run.

use std::sync::Arc;

use nandex::bufferhash::Policy;
use nandex::device::Device;
use nandex::{Durability, Table, Volume};
use nandex_sim::preset::Preset;
use nandex_sim::{Fill, Image, SimDevice};

use super::life::{Past, Run, check, live, open_all, recover};
use super::support::{DURABILITIES, Dice, SLICES, Setup, full_sweep};

/// Recovers, loses power again in the midst of it, and recovers from that.
fn recover_twice(image: Image, setup: Setup, past: &Past, dice: &mut Dice, story: &str) {
    let device = SimDevice::instant().with_image(image);
    let count = dice.below(24);
    device.cut_after(count);
    let mut past = past.clone();
    match open_all(Arc::new(device.clone()), setup) {
        // What was not vouched for and is lost stays lost: the past goes on from what is found.
        Ok(table) => {
            if check(&table, setup, &mut past, story).is_ok() {
                let mut run = Run { setup, past: &mut past, dice: Dice(dice.next()) };
                let _ = run.work(&table, 20);
            }
            past.note_forced(&table);
        }
        // Recovery evicts whole segments when it finds no other, and nobody is left to be asked.
        Err(_) => past.forced |= setup.flush_threads > 0,
    }
    let seed = dice.below(6);
    let story = format!("{story}, cut again after {count}, survivors {seed}");
    recover(device.survivors(seed), setup, &past, &story);
}

fn shared(device: &SimDevice) -> Arc<dyn Device> {
    Arc::new(device.clone())
}

/// Cuts a run of this setup at many places, on a device without a model.
fn sweep(setup: Setup, cuts: u64) {
    sweep_on(SimDevice::instant, setup, cuts);
}

/// Cuts a run of this setup at many places, on new devices of this sort.
fn sweep_on(new: impl Fn() -> SimDevice, setup: Setup, cuts: u64) {
    let whole = new();
    live(&shared(&whole), setup, 1, &mut Past::default(), &mut ()).unwrap();
    let operations = whole.operations();
    let stride = if full_sweep() { 1 } else { (operations / cuts).max(1) };
    let mut dice = Dice(operations);
    let mut cut = dice.below(stride);
    while cut < operations {
        let device = new();
        device.cut_after(cut);
        let mut past = Past::default();
        let result = live(&shared(&device), setup, 1, &mut past, &mut ());
        for seed in [0, 1, 2 + dice.below(1000), 2 + dice.below(1000)] {
            let story = format!("{setup:?}, cut after {cut} ({result:?}), survivors {seed}");
            recover(device.survivors(seed), setup, &past, &story);
            recover_twice(device.survivors(seed), setup, &past, &mut dice, &story);
        }
        cut += stride;
    }
}

fn sweep_durability(durability: Durability) {
    // A table that refuses has no other way than to be roomy.
    let of = |policy| Setup { roomy: policy == Policy::Reject, ..Setup::busy(policy, durability) };
    for setup in Setup::every(of) {
        sweep(setup.inline(), 4);
        sweep(Setup { flush_threads: 2, ..setup }, 4);
    }
}

#[test]
fn after_a_power_cut_everything_acknowledged_is_there_when_always_durable() {
    sweep_durability(DURABILITIES[0]);
}

#[test]
fn after_a_power_cut_everything_synced_is_there_when_durable_by_and_by() {
    sweep_durability(DURABILITIES[1]);
}

#[test]
fn after_a_power_cut_everything_flushed_is_there_without_durability() {
    sweep_durability(DURABILITIES[2]);
}

/// Here writes end in an order of their own, and not that in which they were pushed.
#[test]
fn after_a_power_cut_of_a_simulated_drive_everything_acknowledged_is_there() {
    for (name, policy) in [("crucial-m4-paper", Policy::Update), ("transcend-ts32", Policy::Fifo)] {
        let preset = Preset::named(name).unwrap();
        let new = || SimDevice::with_model(preset.build(Fill::Empty).unwrap());
        let setup = Setup::busy(policy, DURABILITIES[0]);
        sweep_on(new, setup.inline(), 4);
        sweep_on(new, Setup { flush_threads: 2, ..setup }, 4);
        let setup = Setup::busy(Policy::Fifo, DURABILITIES[0]);
        let setup = setup.sliced(SLICES[2]);
        sweep_on(new, setup.inline(), 4);
        sweep_on(new, Setup { flush_threads: 2, ..setup }, 4);
    }
}

/// Entries that a full buffer's segment could not take went on in the next buffer, in no log and no longer
/// in any image that a checkpoint kept: what `flush` had made durable was lost with the power.
#[test]
fn what_was_flushed_outlives_its_buffer_where_nothing_is_logged() {
    let device = SimDevice::instant();
    let setup = Setup::busy(Policy::Fifo, Durability::Never).inline();
    let volume = Volume::create(shared(&device), setup.volume_options()).unwrap();
    let table = setup.create_table(&volume, "t").unwrap();
    let insert = |key| table.insert(&setup.key(key), &setup.value(key)).unwrap();
    (0..200).for_each(insert);
    table.flush().unwrap();
    let flushes = table.stats().flushes;
    for key in 1000.. {
        insert(key);
        if table.stats().flushes >= flushes + 2 {
            break;
        }
    }
    // One more checkpoint, as a full log would take.
    volume.checkpoint().unwrap();
    let found = setup.open(Arc::new(SimDevice::instant().with_image(device.survivors(0)))).unwrap();
    for key in 0..200 {
        assert_eq!(found.get(&setup.key(key)).unwrap().as_deref(), Some(&setup.value(key)[..]));
    }
}
