//! Power cuts in the middle of every operation of a life, and of the recovery from each.

use std::sync::Arc;

use nandex_device::{Device, MemoryDevice};
use nandex_sim::{Image, SimDevice};
use nandex_store::Result;

/// The subject that is cut: the smallest structure that does what is tested.
pub trait Mortal: Sized {
    /// The state that a life expects of it.
    type Past: Clone + Default;

    /// The number of steps of a session, and of one after a recovery.
    const STEPS: (u64, u64);

    /// Creates a volume with an empty subject; perhaps with a log on a device of its own.
    fn born(device: Arc<dyn Device>, log: Option<Arc<dyn Device>>) -> Result<Self>;

    /// Opens the subject of an existing volume.
    fn reopened(device: Arc<dyn Device>, log: Option<Arc<dyn Device>>) -> Result<Self>;

    /// Performs a step, and notes what a cut may leave of it.
    fn step(&self, past: &mut Self::Past, rng: &mut Rng) -> Result<()>;

    /// Checks everything after an opening, and continues from what was found.
    fn found(&self, past: &Self::Past, story: &str) -> Self::Past;

    /// Continues with what was found after the last recovery.
    fn outlives(&self, _past: &Self::Past, _story: &str) {}

    /// Ends as a killed process does: nothing is written any more.
    fn kill(self);
}

/// A generator of pseudo-random numbers.
pub struct Rng(u64);

impl Rng {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }
}

/// A life so far: whether its structure was created, and its expected state.
struct Life<M: Mortal> {
    is_born: bool,
    past: M::Past,
}

/// The devices of a life.
#[derive(Clone)]
struct Devices {
    device: SimDevice,
    log: Option<MemoryDevice>,
}

impl Devices {
    fn shared(&self) -> (Arc<dyn Device>, Option<Arc<dyn Device>>) {
        let log = self.log.clone().map(|log| Arc::new(log) as Arc<dyn Device>);
        (Arc::new(self.device.clone()), log)
    }

    fn open<M: Mortal>(&self) -> Result<M> {
        let (device, log) = self.shared();
        M::reopened(device, log)
    }

    /// Returns the devices after a power cut. A log on a device of its own forgets nothing.
    fn survivors(&self, seed: u64) -> Self {
        self.with_image(self.device.survivors(seed))
    }

    fn with_image(&self, image: Image) -> Self {
        let log = self.log.as_ref().map(|log| MemoryDevice::from_image(log.image()));
        Self { device: SimDevice::instant().with_image(image), log }
    }
}

/// Performs some steps; then the process is killed.
fn session<M: Mortal>(subject: M, steps: u64, past: &mut M::Past, rng: &mut Rng) -> Result<()> {
    (0..steps).try_for_each(|_| subject.step(past, rng))?;
    subject.kill();
    Ok(())
}

/// Creates a volume, and runs three sessions on it.
fn live<M: Mortal>(devices: &Devices, life: &mut Life<M>) -> Result<()> {
    let mut rng = Rng(7);
    let (device, log) = devices.shared();
    let subject = M::born(device, log)?;
    life.is_born = true;
    session(subject, M::STEPS.0, &mut life.past, &mut rng)?;
    for _ in 0..2 {
        let subject: M = devices.open()?;
        life.past = subject.found(&life.past, "killed");
        session(subject, M::STEPS.0, &mut life.past, &mut rng)?;
    }
    Ok(())
}

/// Opens what a cut has left, checks it, and is cut again soon after; then opens and checks once more.
fn recover<M: Mortal>(devices: &Devices, life: &Life<M>, again: u64, story: &str) {
    let mut past = match devices.open::<M>() {
        Ok(subject) => {
            let past = subject.found(&life.past, story);
            subject.kill();
            past
        }
        Err(error) => return assert!(!life.is_born, "{story}: {error}"),
    };
    let story = format!("{story}, and again after {again}");
    devices.device.cut_after(devices.device.operations() + again);
    if let Ok(subject) = devices.open::<M>() {
        past = subject.found(&past, &story);
        session(subject, M::STEPS.1, &mut past, &mut Rng(again)).ok();
    }
    let subject: M = devices.survivors(again).open().unwrap();
    past = subject.found(&past, &story);
    subject.outlives(&past, &story);
}

fn whole<M: Mortal>(log: Option<MemoryDevice>) -> SimDevice {
    let devices = Devices { device: SimDevice::instant(), log };
    live::<M>(&devices, &mut Life { is_born: false, past: M::Past::default() }).unwrap();
    devices.device
}

/// Cuts a life of at least `operations_min` operations in the middle of each.
pub fn sweep<M: Mortal>(operations_min: u64, new_log: fn() -> Option<MemoryDevice>) {
    let operations = whole::<M>(new_log()).operations();
    assert!(operations > operations_min, "{operations} are too few to be a life");
    let mut rng = Rng(operations);
    for cut in 0..operations {
        let devices = Devices { device: SimDevice::instant(), log: new_log() };
        let mut life: Life<M> = Life { is_born: false, past: M::Past::default() };
        devices.device.cut_after(cut);
        live(&devices, &mut life).unwrap_err();
        for seed in [0, 1, 2 + rng.below(1000), 2 + rng.below(1000)] {
            let story = format!("cut after {cut}, survivors {seed}");
            recover(&devices.survivors(seed), &life, rng.below(40), &story);
        }
    }
}

/// Runs a life twice, and expects the same result.
pub fn live_twice<M: Mortal>() {
    let [first, second] = [(); 2].map(|()| {
        let device = whole::<M>(None);
        (device.operations(), device.survivors(1).to_bytes())
    });
    assert!(first == second && first.0 > 100);
}
