//! A power cut in the midst of every operation of a workload, recovered from each, for several choices of
//! what survives; and cuts in the midst of those recoveries.

use std::sync::Arc;

use nandex_sim::workload::SplitMix64;
use nandex_sim::{Cut, Image, SimDevice};

use crate::plan::Plan;
use crate::report::Tally;
use crate::subject::{Stop, Subject, fold};
use crate::traced::{Trace, Traced};

/// Openings of a workload.
const OPENINGS: u64 = 3;

/// Calls of one opening at most.
const ACTS_MAX: u64 = 40;

/// One in so many recoveries is worked on and opened once more, and one in so many is cut itself.
const DEEPER: u64 = 8;

/// What survives a cut: nothing, everything, and two mixtures.
fn seeds(dice: &mut SplitMix64) -> [u64; 4] {
    [0, 1, 2 + dice.below(1 << 32), 2 + dice.below(1 << 32)]
}

struct Sweep<'a> {
    tally: &'a mut Tally,
    dice: SplitMix64,
    device: SimDevice,
    trace: Trace,
}

/// Runs the workload of a plan and recovers from all its cuts.
///
/// # Errors
/// Where a law was broken.
pub fn run(plan: &Plan, tally: &mut Tally) -> Result<(), String> {
    let device = plan.ground.device(Image::new());
    device.record_cuts();
    let dice = SplitMix64::stream(plan.seed, 2);
    let mut sweep = Sweep { tally, dice, device, trace: Trace::default() };
    let mut subject = plan.subject();
    let result = sweep.live(&mut *subject, plan.seed);
    // A test that compares traces must see the answers too.
    sweep.tally.trace = fold(fold(sweep.tally.trace, sweep.trace.hash()), subject.answers());
    sweep.tally.operations += sweep.device.operations();
    result
}

impl Sweep<'_> {
    fn live(&mut self, subject: &mut dyn Subject, seed: u64) -> Result<(), String> {
        let mut acts = SplitMix64::stream(seed, 3);
        for opening in 0..OPENINGS {
            let device = Arc::new(Traced::new(self.device.clone(), self.trace.clone()));
            let opened = if opening == 0 { subject.make(device) } else { subject.open(device) };
            self.after(subject, opened, "opening it")?;
            for act in 0..1 + acts.below(ACTS_MAX) {
                let result = subject.act(&mut acts);
                self.after(subject, result, &format!("opening {opening}, act {act}"))?;
            }
            let closed = subject.close();
            self.after(subject, closed, &format!("closing {opening}"))?;
        }
        Ok(())
    }

    /// Recovers from the cuts in the midst of the last call, and only then notes that it came back.
    fn after(
        &mut self,
        subject: &mut dyn Subject,
        result: Result<(), Stop>,
        place: &str,
    ) -> Result<(), String> {
        self.tally.acts += 1;
        result.map_err(|stop| format!("{place}: {}", tell(stop)))?;
        for cut in self.device.take_cuts() {
            for survivors in seeds(&mut self.dice) {
                let story =
                    || format!("{place}, cut after {}, survivors {survivors}", cut.operation);
                self.recover(&cut, survivors, subject)
                    .map_err(|what| format!("{}: {what}", story()))?;
            }
        }
        subject.settle();
        Ok(())
    }

    fn recover(&mut self, cut: &Cut, survivors: u64, past: &dyn Subject) -> Result<(), String> {
        self.tally.cut_points += 1;
        let device = SimDevice::instant().with_image(cut.survivors(survivors));
        let is_cut_again = self.dice.below(DEEPER) == 0;
        if is_cut_again {
            device.record_cuts();
        }
        let mut subject = past.fork();
        if !self.open(&mut *subject, &device)? {
            return Ok(());
        }
        if is_cut_again {
            self.cut_again(&device, past)?;
        }
        if self.dice.below(DEEPER) == 0 {
            self.work_on(&mut *subject, &device)?;
        }
        self.end(&mut *subject, &device);
        Ok(())
    }

    /// Opens what survived and asks for everything. False where the cut came before there was anything.
    fn open(&mut self, subject: &mut dyn Subject, device: &SimDevice) -> Result<bool, String> {
        self.tally.reopenings += 1;
        match subject.open(Arc::new(device.clone())) {
            Ok(()) => {}
            Err(Stop::Failed(_)) if !subject.is_made() => return Ok(false),
            Err(stop) => return Err(format!("opening: {}", tell(stop))),
        }
        subject.check().map_err(|stop| format!("after opening: {}", tell(stop)))?;
        Ok(true)
    }

    /// Cuts the recovery from a cut at each of its operations.
    fn cut_again(&mut self, device: &SimDevice, past: &dyn Subject) -> Result<(), String> {
        for cut in device.take_cuts() {
            for survivors in seeds(&mut self.dice) {
                self.tally.cut_points += 1;
                self.tally.cut_recoveries += 1;
                let again = SimDevice::instant().with_image(cut.survivors(survivors));
                let mut subject = past.fork();
                if self.open(&mut *subject, &again).map_err(|what| {
                    let operation = cut.operation;
                    format!("cut again after {operation}, survivors {survivors}: {what}")
                })? {
                    self.end(&mut *subject, &again);
                }
            }
        }
        Ok(())
    }

    /// What was recovered is as good as any other.
    fn work_on(&mut self, subject: &mut dyn Subject, device: &SimDevice) -> Result<(), String> {
        let told = |stop| format!("working on: {}", tell(stop));
        for _ in 0..8 {
            self.tally.acts += 1;
            subject.act(&mut self.dice).map_err(told)?;
            subject.settle();
        }
        subject.close().map_err(told)?;
        subject.settle();
        self.open(subject, device).map_err(|what| format!("once more: {what}"))?;
        Ok(())
    }

    fn end(&mut self, subject: &mut dyn Subject, device: &SimDevice) {
        subject.kill();
        self.tally.operations += device.operations();
        self.tally.trace = fold(self.tally.trace, subject.answers());
    }
}

fn tell(stop: Stop) -> String {
    match stop {
        Stop::Wrong(what) => what,
        Stop::Failed(error) => format!("{error} ({error:?})"),
    }
}
