//! One life of a structure: openings that end well, in a kill or in a power cut, on a device that fails.

use std::sync::Arc;

use nandex_sim::workload::SplitMix64;
use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, Faults, Image, SimDevice};

use crate::contract::{Contract, Stop, Trust, fold, pick};
use crate::plan::{Adversity, Plan};
use crate::report::Counters;
use crate::session::Session;
use crate::traced::{Trace, Traced};

/// The maximum number of calls in one opening.
const CALLS_MAX: u64 = 60;

/// The number of operations of an opening in which a power cut or a fault is planned; many of them come too
/// late.
const OPERATIONS: u64 = 200;

/// Faults that return errors.
const ERRORS: [(FaultOn, FaultKind); 12] = [
    (FaultOn::Read, FaultKind::Io),
    (FaultOn::Read, FaultKind::Short),
    (FaultOn::Write, FaultKind::Io),
    (FaultOn::Write, FaultKind::Io),
    (FaultOn::Write, FaultKind::NoSpace),
    (FaultOn::Write, FaultKind::Short),
    (FaultOn::Sync, FaultKind::Io),
    (FaultOn::Sync, FaultKind::NoSpace),
    (FaultOn::Sync, FaultKind::Dropped),
    (FaultOn::Sync, FaultKind::Dropped),
    (FaultOn::Grow, FaultKind::Io),
    (FaultOn::Grow, FaultKind::NoSpace),
];

/// The way in which an opening ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Close,
    Kill,
    Cut,
}

struct Life<'a, C: Contract> {
    plan: &'a Plan,
    setup: C,
    counters: &'a mut Counters,
    rng: SplitMix64,
    device: SimDevice,
    trace: Arc<Trace>,
    session: Session<C>,
    /// The fault of this opening.
    fault: Option<Fault>,
    /// The silent faults once it is open. Not before: a log whose last block cannot be read correctly ends
    /// before that block, which looks like a torn tail.
    wrong_later: Option<Faults>,
    story: Vec<String>,
}

/// Runs the life of a plan.
///
/// # Errors
/// Returns a wrong answer.
pub fn run<C: Contract>(plan: &Plan, setup: C, counters: &mut Counters) -> Result<(), String> {
    let mut life = Life {
        plan,
        counters,
        rng: SplitMix64::stream(plan.seed, 2),
        device: plan.device.with_image(Image::new()),
        trace: Arc::default(),
        session: Session::new(setup.clone()),
        setup,
        fault: None,
        wrong_later: None,
        story: Vec::new(),
    };
    let result = life.live();
    let Life { device, trace, session, story, counters, .. } = life;
    counters.operations += device.operations();
    counters.count_faults(&device.faults());
    counters.refusals += session.refusals();
    counters.trace = fold(fold(counters.trace, trace.hash()), session.answers());
    result.map_err(|what| format!("{}: {what}", story.join("; ")))
}

impl<C: Contract> Life<'_, C> {
    fn live(&mut self) -> Result<(), String> {
        let openings = 3 + self.rng.below(6);
        for opening in 0..openings {
            self.arm();
            let end = pick(&mut self.rng, &[End::Close, End::Kill, End::Cut]);
            let begin = self.device.operations();
            if end == End::Cut {
                self.device.cut_after(begin + self.rng.below(OPERATIONS));
            }
            self.story.push(format!("opening {opening} to end in {end:?}, {:?}", self.fault));
            if self.open()? {
                self.work()?;
                self.end(end)?;
            }
            self.session.kill();
            self.after_all()?;
        }
        Ok(())
    }

    /// Plans the faults of this opening.
    fn arm(&mut self) {
        let rng = &mut self.rng;
        let seed = rng.next_u64();
        self.fault = None;
        match self.plan.adversity {
            Adversity::EveryCut | Adversity::Cuts => {}
            Adversity::Errors => {
                let (on, kind) = pick(rng, &ERRORS);
                let range = if on == FaultOn::Grow { 2 } else { OPERATIONS / 2 };
                let at = self.device.seen(on) + 1 + rng.below(range);
                let span = pick(rng, &[FaultSpan::Once, FaultSpan::FromThenOn]);
                let fault = Fault { on, at, kind, span };
                self.device.arm(fault);
                self.fault = Some(fault);
            }
            Adversity::WrongReads => {
                let rate = pick(rng, &[10_000, 50_000, 200_000]);
                let kinds = [FaultKind::Flip, FaultKind::Misdirected, FaultKind::Stale];
                let faults = kinds.into_iter().fold(Faults::seeded(seed), |faults, kind| {
                    faults.with_chance(FaultOn::Read, kind, rate)
                });
                if rng.below(4) == 0 {
                    self.inject(faults, Trust::RightOrError);
                } else {
                    self.wrong_later = Some(faults);
                }
            }
            Adversity::WrongWrites => {
                let rate = pick(rng, &[1_000, 5_000, 20_000]);
                let kinds = [FaultKind::Flip, FaultKind::Misdirected, FaultKind::Lost];
                let faults = kinds.into_iter().fold(Faults::seeded(seed), |faults, kind| {
                    faults.with_chance(FaultOn::Write, kind, rate)
                });
                let faults = faults.with_chance(FaultOn::Sync, FaultKind::Lost, rate);
                self.inject(faults, Trust::RightOrError);
            }
        }
    }

    fn inject(&mut self, faults: Faults, trust: Trust) {
        self.device = self.device.clone().with_faults(faults);
        self.session.lower_trust(trust);
    }

    fn may_be_wrong(&self) -> bool {
        matches!(self.plan.adversity, Adversity::WrongReads | Adversity::WrongWrites)
    }

    /// Returns whether an error may be a consequence of the faults of the device.
    fn has_excuse(&self) -> bool {
        let struck = self.fault.is_some_and(|fault| self.device.seen(fault.on) >= fault.at);
        self.device.is_cut() || struck || self.may_be_wrong()
    }

    /// Creates or opens it, and looks everything up. Returns false if a fault prevents it.
    fn open(&mut self) -> Result<bool, String> {
        let device = Arc::new(Traced::with(self.device.clone(), Arc::clone(&self.trace)));
        let is_made = self.session.is_made();
        let struck = self.device.faults().len();
        let opened = if is_made { self.session.open(device) } else { self.session.create(device) };
        if is_made {
            self.counters.reopenings += 1;
        }
        // An opening that fails later may already have taken a wrong end of the log for the right one.
        if self.may_be_wrong() && self.device.faults().len() > struck {
            self.session.lower_trust(Trust::EverOrError);
        }
        if !self.went_well(opened, "opening")? {
            self.counters.refused_openings += 1;
            return Ok(false);
        }
        self.session.settle();
        if let Some(faults) = self.wrong_later.take() {
            self.inject(faults, Trust::RightOrError);
        }
        let checked = self.session.look();
        self.went_well(checked, "after opening")
    }

    fn work(&mut self) -> Result<(), String> {
        for call in 0..1 + self.rng.below(CALLS_MAX) {
            self.counters.calls += 1;
            let result = self.session.call(&mut self.rng);
            if !self.went_well(result, &format!("call {call}"))? {
                return self.after_failure();
            }
            self.session.settle();
        }
        Ok(())
    }

    /// Checks that nothing more is acknowledged after a failed write or sync.
    fn after_failure(&mut self) -> Result<(), String> {
        let poisons = |fault: Fault| matches!(fault.on, FaultOn::Write | FaultOn::Sync);
        if self.fault.is_some_and(poisons) && !self.device.is_cut() {
            let refused = self.session.must_refuse();
            self.went_well(refused, "after a failure")?;
        }
        Ok(())
    }

    fn end(&mut self, end: End) -> Result<(), String> {
        if end == End::Close {
            let closed = self.session.close();
            if self.went_well(closed, "closing")? {
                self.session.settle();
            }
        }
        Ok(())
    }

    fn went_well(&mut self, result: Result<(), Stop>, place: &str) -> Result<bool, String> {
        match result {
            Ok(()) => Ok(true),
            Err(Stop::Wrong(what)) => Err(format!("{place}: {what}")),
            Err(Stop::Failed(error)) if self.has_excuse() => {
                self.story.push(format!("{place}: {error}"));
                Ok(false)
            }
            Err(Stop::Failed(error)) => Err(format!("{place}: {error}, and nothing was wrong")),
        }
    }

    /// Restarts the machine if it lost its power or its cache, and sometimes at random.
    fn after_all(&mut self) -> Result<(), String> {
        let strikes = self.device.faults();
        let dropped = strikes.iter().any(|strike| strike.kind == FaultKind::Dropped);
        let is_cut = self.device.is_cut();
        self.device.disarm();
        self.wrong_later = None;
        // A planned cut is cancelled.
        self.device.cut_after(u64::MAX);
        if is_cut || dropped || self.rng.below(3) == 0 {
            let survivors = self.rng.next_u64() % 16;
            self.story.push(format!("power back, survivors {survivors}"));
            self.counters.cut_points += 1;
            self.counters.operations += self.device.operations();
            self.counters.count_faults(&strikes);
            self.device = self.plan.device.with_image(self.device.survivors(survivors));
        }
        if self.plan.adversity == Adversity::WrongWrites && !strikes.is_empty() {
            self.session.lower_trust(Trust::EverOrError);
        }
        if !self.session.is_made() {
            // A structure whose creation was never acknowledged may exist whole, in part, or not at all.
            self.device = self.plan.device.with_image(Image::new());
            self.session = Session::new(self.setup.clone());
        }
        self.mend()
    }

    /// Checks that, on a device without wrong data, the structure opens as soon as nothing fails any more.
    fn mend(&mut self) -> Result<(), String> {
        self.fault = None;
        if !self.session.is_made() || self.plan.adversity == Adversity::WrongWrites {
            return Ok(());
        }
        self.story.push("mended".into());
        let device = Arc::new(Traced::with(self.device.clone(), Arc::clone(&self.trace)));
        self.counters.reopenings += 1;
        let result = self.session.open(device).and_then(|()| self.session.look());
        self.session.kill();
        match result {
            Ok(()) => Ok(()),
            Err(Stop::Wrong(what)) => Err(what),
            Err(Stop::Failed(error)) => Err(format!("{error}, and nothing is wrong")),
        }
    }
}
