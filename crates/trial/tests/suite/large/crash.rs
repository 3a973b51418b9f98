//! Power cuts: after a spread of device operations (after every one with `NANDEX_SWEEP=full`), with several
//! choices each of what survives, and again while the volume recovers from the first cut. What was
//! acknowledged as durable is found whole; every other update whole or not at all.

use std::collections::HashMap;
use std::sync::Arc;

use nandex::device::Device;
use nandex::large::WhenFull;
use nandex::{BufferHash, Durability, LargeTable, Result, Threads};
use nandex_sim::{Image, SimDevice};

use super::support::{DURABILITIES, Dice, Setup, key, value};

const KEYS: u64 = 24;

/// What may be found under a key: the last value that is certain, or one of the uncertain later ones.
#[derive(Clone, Default, Debug)]
struct Known {
    certain: Option<Vec<u8>>,
    maybe: Vec<Option<Vec<u8>>>,
}

/// All that has been promised and tried.
#[derive(Clone, Default, Debug)]
pub struct Past {
    keys: HashMap<u64, Known>,
    written: u64,
}

impl Past {
    /// Was anything tried? Before that the volume may not be there, nor its structures.
    pub fn is_begun(&self) -> bool {
        self.written > 0
    }

    fn all_certain(&mut self) {
        for known in self.keys.values_mut() {
            if let Some(newest) = known.maybe.pop() {
                *known = Known { certain: newest, maybe: Vec::new() };
            }
        }
    }
}

/// One update, noted before it is tried; certain when it is acknowledged, where that promises it.
fn update(
    table: &LargeTable<BufferHash>,
    setup: Setup,
    past: &mut Past,
    dice: &mut Dice,
) -> Result<()> {
    let number = dice.below(KEYS);
    past.written += 1;
    let new = (dice.below(5) > 0).then(|| value(past.written, dice.value_bytes()));
    let known = past.keys.entry(number).or_default();
    known.maybe.push(new.clone());
    match &new {
        Some(value) => table.put(&key(number), value)?,
        None => table.remove(&key(number))?,
    }
    if setup.durability == Durability::Always {
        *known = Known { certain: new, maybe: Vec::new() };
    }
    Ok(())
}

fn work(
    table: &LargeTable<BufferHash>,
    setup: Setup,
    past: &mut Past,
    dice: &mut Dice,
    steps: u64,
) -> Result<()> {
    for _ in 0..steps {
        match dice.below(30) {
            0 => {
                table.flush()?;
                past.all_certain();
            }
            1 | 2 => {
                table.sync()?;
                past.all_certain();
            }
            _ => update(table, setup, past, dice)?,
        }
    }
    Ok(())
}

fn shared(device: &SimDevice) -> Arc<dyn Device> {
    Arc::new(device.clone())
}

/// Two openings, the first of which ends in good order.
pub fn live(device: &SimDevice, setup: Setup, past: &mut Past) -> Result<()> {
    let mut dice = Dice(1);
    let table = setup.create(shared(device))?;
    work(&table, setup, past, &mut dice, 130)?;
    table.close()?;
    past.all_certain();
    let table = setup.open(shared(device))?;
    work(&table, setup, past, &mut dice, 130)
}

/// Compares what is found with what may be, and takes it for certain from here on.
fn check(table: &LargeTable<BufferHash>, setup: Setup, past: &mut Past, story: &str) {
    for number in 0..KEYS {
        let found = table.get(&key(number)).unwrap_or_else(|error| panic!("{story}: {error}"));
        let known = past.keys.entry(number).or_default();
        let overwritten = found.is_none() && setup.values.when_full == WhenFull::Overwrite;
        let fits = found == known.certain || known.maybe.contains(&found) || overwritten;
        assert!(
            fits,
            "{story}: key {number} gives {:?} bytes, certain are {:?}, or one of {}",
            found.as_ref().map(Vec::len),
            known.certain.as_ref().map(Vec::len),
            known.maybe.len(),
        );
        *known = Known { certain: found, maybe: Vec::new() };
    }
}

pub fn recover(image: Image, setup: Setup, past: &Past, story: &str) {
    let (mut past, mut dice) = (past.clone(), Dice(9));
    let device = SimDevice::instant().with_image(image);
    let table = setup.open(shared(&device)).unwrap_or_else(|error| panic!("{story}: {error}"));
    check(&table, setup, &mut past, story);
    work(&table, setup, &mut past, &mut dice, 40)
        .unwrap_or_else(|error| panic!("{story}, going on: {error}"));
    table.close().unwrap();
    past.all_certain();
    let report = nandex::check(shared(&device), None, &mut |_| {}).unwrap();
    assert!(report.ok(), "{story}: {:?}", report.findings);
    let table = setup.open(shared(&device)).unwrap();
    check(&table, setup, &mut past, &format!("{story}, closed and opened"));
}

/// Recovers, loses power again in the midst of it, and recovers from that.
fn recover_twice(image: Image, setup: Setup, past: &Past, dice: &mut Dice, story: &str) {
    let device = SimDevice::instant().with_image(image);
    let count = dice.below(24);
    device.cut_after(count);
    let mut past = past.clone();
    if let Ok(table) = setup.open(shared(&device)) {
        let mut found = past.clone();
        let look = |number| table.get(&key(number)).is_ok();
        if (0..KEYS).all(look) {
            check(&table, setup, &mut found, story);
            past = found;
            let _ = work(&table, setup, &mut past, dice, 20);
        }
    }
    let seed = dice.below(6);
    let story = format!("{story}, cut again after {count}, survivors {seed}");
    recover(device.survivors(seed), setup, &past, &story);
}

fn sweep(setup: Setup, cuts: u64) {
    let whole = SimDevice::instant();
    live(&whole, setup, &mut Past::default()).unwrap();
    let operations = whole.operations();
    let full = std::env::var("NANDEX_SWEEP").is_ok_and(|sweep| sweep == "full");
    let stride = if full { 1 } else { (operations / cuts).max(1) };
    let mut dice = Dice(operations);
    let mut cut = dice.below(stride);
    while cut < operations {
        let device = SimDevice::instant();
        device.cut_after(cut);
        let mut past = Past::default();
        let result = live(&device, setup, &mut past).map_err(|error| error.to_string());
        if device.operations() > cut || result.is_err() {
            for seed in [0, 1, 2 + dice.below(1000), 2 + dice.below(1000)] {
                let story = format!("{setup:?}, cut after {cut} ({result:?}), survivors {seed}");
                if !past.is_begun() {
                    continue;
                }
                recover(device.survivors(seed), setup, &past, &story);
                recover_twice(device.survivors(seed), setup, &past, &mut dice, &story);
            }
        }
        cut += stride;
    }
}

fn sweep_durability(durability: Durability) {
    let mut keep = Setup::new(durability, WhenFull::Keep);
    keep.values.segments = 9;
    for setup in [keep, Setup::new(durability, WhenFull::Overwrite)] {
        sweep(setup, 16);
        sweep(Setup { threads: Threads::Background, ..setup }, 4);
    }
}

#[test]
fn the_workload_overwrites_and_cleans_segments() {
    for durability in DURABILITIES {
        let mut setup = Setup::new(durability, WhenFull::Keep);
        setup.values.segments = 9;
        let device = SimDevice::instant();
        let (mut past, mut dice) = (Past::default(), Dice(1));
        let table = setup.create(shared(&device)).unwrap();
        work(&table, setup, &mut past, &mut dice, 260).unwrap();
        assert!(table.stats().values.cleaned_segments > 0, "{:?}", table.stats());
        let setup = Setup::new(durability, WhenFull::Overwrite);
        let table = setup.create(Arc::new(SimDevice::instant())).unwrap();
        work(&table, setup, &mut past, &mut dice, 130).unwrap();
        assert!(table.stats().values.overwritten_segments > 0, "{:?}", table.stats());
    }
}

#[test]
fn after_a_power_cut_every_acknowledged_value_is_whole_when_always_durable() {
    sweep_durability(DURABILITIES[0]);
}

#[test]
fn after_a_power_cut_every_synced_value_is_whole_when_durable_by_and_by() {
    sweep_durability(DURABILITIES[1]);
}

#[test]
fn after_a_power_cut_every_flushed_value_is_whole_without_durability() {
    sweep_durability(DURABILITIES[2]);
}
