//! The workload that sweeps of power cuts and of faults repeat.

use std::sync::Arc;

use nandex::device::Device;
use nandex_sim::workload::SplitMix64;

use crate::contract::{Contract, Stop};
use crate::session::Session;

/// Observes a structure's life.
pub trait Watcher<C: Contract> {
    /// Called when a part of the life begins.
    fn begins(&mut self, _part: &'static str) {}

    /// Called when a call has returned, before it counts as acknowledged.
    ///
    /// # Errors
    /// Returns the reason to end the life here.
    fn after(&mut self, session: &mut Session<C>, result: Result<(), Stop>) -> Result<(), String>;
}

/// A structure, its device, and the seed of its calls.
struct Course<'a, C: Contract, W> {
    session: &'a mut Session<C>,
    device: Arc<dyn Device>,
    rng: SplitMix64,
    watcher: &'a mut W,
}

/// Runs a life: creates the structure, makes `calls` calls, makes and drops another structure, closes, opens
/// and makes calls again, is killed, opens once more, makes calls and closes. The volume is open a little
/// longer each time, and takes a checkpoint without the structure.
///
/// # Errors
/// Returns the watcher's errors, which end the life.
pub fn live<C: Contract, W: Watcher<C>>(
    session: &mut Session<C>,
    device: Arc<dyn Device>,
    (seed, calls): (u64, u64),
    watcher: &mut W,
) -> Result<(), String> {
    let rng = SplitMix64::stream(seed, 3);
    let mut course = Course { session, device, rng, watcher };
    course.step("create", |session, device, _| session.create(device))?;
    course.work(calls)?;
    course.step("neighbour", |session, _, rng| session.meet_neighbour(rng))?;
    course.step("close", |session, _, _| session.close_first())?;
    course.open("open", calls)?;
    course.session.kill();
    course.open("replay", calls)?;
    course.step("close", |session, _, _| session.close_first())
}

impl<C: Contract, W: Watcher<C>> Course<'_, C, W> {
    fn step(
        &mut self,
        part: &'static str,
        act: impl FnOnce(&mut Session<C>, Arc<dyn Device>, &mut SplitMix64) -> Result<(), Stop>,
    ) -> Result<(), String> {
        self.watcher.begins(part);
        let result = act(self.session, Arc::clone(&self.device), &mut self.rng);
        self.watcher.after(self.session, result)?;
        self.session.settle();
        Ok(())
    }

    fn work(&mut self, calls: u64) -> Result<(), String> {
        (0..calls).try_for_each(|_| self.step("work", |session, _, rng| session.call(rng)))
    }

    fn open(&mut self, part: &'static str, calls: u64) -> Result<(), String> {
        self.step(part, |session, device, _| session.open(device))?;
        self.step("look", |session, _, _| session.look())?;
        self.work(calls)
    }
}
