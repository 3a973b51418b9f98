//! A power cut during every operation of a life, or during some. The structure is recovered from each for
//! several choices of survivors, and the power is cut during those recoveries too.

use std::any::Any;
use std::collections::HashSet;
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use nandex::device::Device;
use nandex_sim::workload::SplitMix64;
use nandex_sim::{Cut, Image, SimDevice};

use crate::contract::{Contract, Stop, fold};
use crate::course::{Watcher, live};
use crate::device_kind::DeviceKind;
use crate::message;
use crate::recording::{CutHistory, REPLAY, Recording};
use crate::report::Counters;
use crate::session::Session;
use crate::traced::{Trace, Traced};
use crate::versions::Oracle;

/// Of this many recoveries one is used again and reopened once more, and one is cut itself.
const DEEPER: u64 = 8;

/// Returns the seeds of survivors of a cut: nothing, everything, and two mixtures.
fn seeds(rng: &mut SplitMix64) -> [u64; 4] {
    [0, 1, 2 + rng.below(1 << 32), 2 + rng.below(1 << 32)]
}

/// The options of a sweep.
#[derive(Clone, Copy, Debug)]
pub struct Sweep {
    /// The seed of the calls and of the survivors.
    pub seed: u64,
    /// The device whose power is cut. Recoveries run on one without a model of time.
    pub device: DeviceKind,
    /// Calls in each opening of the life.
    pub calls: u64,
    /// The number of operations for each power cut.
    pub one_in: u64,
    /// The folder in which a failing cut is saved, for lives with threads, which no seed repeats.
    pub failures: Option<&'static str>,
}

/// A step with the bytes that a cut left.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    /// Opens them, and looks everything up.
    Open,
    /// Cuts the power again during the opening.
    CutAgain,
    /// Uses the structure again.
    WorkOn,
}

/// Recovers from the cuts of each step of a life.
pub struct Cuts<'a> {
    counters: &'a mut Counters,
    rng: SplitMix64,
    device: SimDevice,
    one_in: u64,
    part: &'static str,
    /// The steps made since the last call, with the hash of the bytes. The oracle is the same meanwhile, so
    /// the same step with the same bytes would only repeat.
    done: HashSet<(u64, Step)>,
    failures: Option<&'static str>,
    /// The present cut during a recovery, and the seed of the present calls after one.
    second: Option<CutHistory>,
    work: Option<u64>,
}

/// Lives once, and recovers from the cuts.
///
/// # Errors
/// Returns a wrong answer.
pub fn sweep<C: Contract>(setup: C, sweep: Sweep, counters: &mut Counters) -> Result<(), String> {
    let Sweep { seed, calls, .. } = sweep;
    sweep_life(setup, sweep, counters, |session, device, cuts| {
        live(session, device, (seed, calls), cuts)
    })
}

/// Sweeps as [`sweep`] does, over another life.
///
/// # Errors
/// Returns a wrong answer.
pub fn sweep_life<C: Contract>(
    setup: C,
    sweep: Sweep,
    counters: &mut Counters,
    life: impl FnOnce(&mut Session<C>, Arc<dyn Device>, &mut Cuts<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let device = sweep.device.with_image(Image::new());
    device.record_cuts();
    let trace = Arc::<Trace>::default();
    let mut session = Session::new(setup);
    let rng = SplitMix64::stream(sweep.seed, 2);
    if sweep.failures.is_some() {
        device.record_history();
    }
    let mut cuts = Cuts {
        counters,
        rng,
        device,
        one_in: sweep.one_in,
        part: "",
        done: HashSet::new(),
        failures: sweep.failures,
        second: None,
        work: None,
    };
    let traced = Arc::new(Traced::with(cuts.device.clone(), Arc::clone(&trace)));
    let result = life(&mut session, traced, &mut cuts);
    // A test that compares traces must see the answers too.
    cuts.counters.trace = fold(fold(cuts.counters.trace, trace.hash()), session.answers());
    cuts.counters.operations += cuts.device.operations();
    result
}

impl<C: Contract> Watcher<C> for Cuts<'_> {
    fn begins(&mut self, part: &'static str) {
        self.part = part;
    }

    /// Recovers from the cuts during the last call, which is not acknowledged yet.
    fn after(&mut self, session: &mut Session<C>, result: Result<(), Stop>) -> Result<(), String> {
        self.counters.calls += 1;
        let part = self.part;
        result.map_err(|stop| format!("{part}: {}", tell(stop)))?;
        self.done.clear();
        for cut in self.device.take_cuts() {
            if self.rng.below(self.one_in) > 0 {
                continue;
            }
            for survivors in seeds(&mut self.rng) {
                tell_panic(|| self.recover(&cut, survivors, session)).map_err(|what| {
                    let operation = cut.operation;
                    let what =
                        format!("{part}, cut after {operation}, survivors {survivors}: {what}");
                    let first = CutHistory { history: self.device.history(&cut), survivors };
                    self.save(what, first, session)
                })?;
            }
        }
        Ok(())
    }
}

impl Cuts<'_> {
    /// Saves a failure, and returns it with the command that repeats it.
    fn save<C: Contract>(&mut self, what: String, first: CutHistory, past: &Session<C>) -> String {
        let Some(folder) = self.failures else { return what };
        let recording = Recording {
            setup: format!("{:?}", past.setup()),
            what,
            cuts: iter::once(first).chain(self.second.take()).collect(),
            work: self.work.take(),
            is_made: past.is_made(),
            past: past.past.save(),
        };
        let saved = recording.write(Path::new(folder));
        let what = recording.what;
        match saved {
            Ok(path) => format!("{what}\n{}", command(&path)),
            Err(error) => format!("{what}\nIt cannot be saved in {folder}: {error}"),
        }
    }

    fn recover<C: Contract>(
        &mut self,
        cut: &Cut,
        survivors: u64,
        past: &Session<C>,
    ) -> Result<(), String> {
        self.counters.cut_points += 1;
        let image = cut.survivors(survivors);
        let hash = image.hash();
        let [is_cut_again, works_on] = [Step::CutAgain, Step::WorkOn]
            .map(|step| self.rng.below(DEEPER) == 0 && self.done.insert((hash, step)));
        if !self.done.insert((hash, Step::Open)) && !is_cut_again && !works_on {
            self.counters.cuts_equal += 1;
            return Ok(());
        }
        let device = SimDevice::instant().with_image(image);
        if is_cut_again {
            device.record_cuts();
            if self.failures.is_some() {
                device.record_history();
            }
        }
        let mut session = past.fork();
        if !self.open(&mut session, &device)? {
            return Ok(());
        }
        if is_cut_again {
            self.cut_again(&device, past)?;
        }
        if works_on {
            self.counters.calls += 8;
            let seed = self.rng.next_u64();
            self.work = Some(seed);
            work_on(&mut session, &device, seed)?;
            self.work = None;
        }
        self.end(&mut session, &device);
        Ok(())
    }

    /// Opens the survivors and looks everything up. Returns false if the power was cut before there was
    /// anything.
    fn open<C: Contract>(
        &mut self,
        session: &mut Session<C>,
        device: &SimDevice,
    ) -> Result<bool, String> {
        self.counters.reopenings += 1;
        open(session, device)
    }

    /// Cuts the power during each operation of the recovery from a cut.
    fn cut_again<C: Contract>(
        &mut self,
        device: &SimDevice,
        past: &Session<C>,
    ) -> Result<(), String> {
        for cut in device.take_cuts() {
            for survivors in seeds(&mut self.rng) {
                self.counters.cut_points += 1;
                self.counters.cut_recoveries += 1;
                let image = cut.survivors(survivors);
                if !self.done.insert((image.hash(), Step::Open)) {
                    self.counters.cuts_equal += 1;
                    continue;
                }
                if self.failures.is_some() {
                    self.second = Some(CutHistory { history: device.history(&cut), survivors });
                }
                let again = SimDevice::instant().with_image(image);
                let mut session = past.fork();
                if self.open(&mut session, &again).map_err(|what| {
                    let operation = cut.operation;
                    format!("cut again after {operation}, survivors {survivors}: {what}")
                })? {
                    self.end(&mut session, &again);
                }
            }
        }
        self.second = None;
        Ok(())
    }

    fn end<C: Contract>(&mut self, session: &mut Session<C>, device: &SimDevice) {
        session.kill();
        self.counters.operations += device.operations();
        self.counters.trace = fold(self.counters.trace, session.answers());
    }
}

/// Recovers from the survivors, looks everything up, makes calls, closes, checks every page and opens once
/// more.
///
/// # Errors
/// Returns a wrong answer.
pub fn recover<C: Contract>(past: &Session<C>, image: Image, seed: u64) -> Result<(), String> {
    let device = SimDevice::instant().with_image(image);
    let mut session = past.fork();
    if open(&mut session, &device)? {
        work_on(&mut session, &device, seed)?;
    }
    Ok(())
}

pub(crate) fn open<C: Contract>(
    session: &mut Session<C>,
    device: &SimDevice,
) -> Result<bool, String> {
    match session.open(Arc::new(device.clone())) {
        Ok(()) => {}
        Err(Stop::Failed(_)) if !session.is_made() => return Ok(false),
        Err(stop) => return Err(format!("opening: {}", tell(stop))),
    }
    session.look().map_err(|stop| format!("after opening: {}", tell(stop)))?;
    Ok(true)
}

/// Checks that a recovered structure works like any other.
pub(crate) fn work_on<C: Contract>(
    session: &mut Session<C>,
    device: &SimDevice,
    seed: u64,
) -> Result<(), String> {
    let mut rng = SplitMix64::new(seed);
    let told = |stop| format!("working on: {}", tell(stop));
    for _ in 0..8 {
        session.call(&mut rng).map_err(told)?;
        session.settle();
    }
    session.close().map_err(told)?;
    session.settle();
    let report = nandex::check(Arc::new(device.clone()), None, &mut |_| {});
    let findings = report.map_err(|error| format!("checking it: {error}"))?.findings;
    if let Some(finding) = findings.first() {
        return Err(format!("closed, {} findings, as {finding}", findings.len()));
    }
    open(session, device).map_err(|what| format!("once more: {what}"))?;
    Ok(())
}

/// Runs a check, and turns a panic into an error.
pub(crate) fn tell_panic(check: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let told = |panic: Box<dyn Any + Send>| Err(format!("panicked: {}", message(&*panic)));
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(told)
}

/// Returns the command that repeats a saved failure.
fn command(path: &Path) -> String {
    let thread = std::thread::current();
    let (test, path) = (thread.name().unwrap_or("crash"), path.display());
    format!("{REPLAY}={path} cargo test -p nandex-trial --test suite -- {test}")
}

fn tell(stop: Stop) -> String {
    match stop {
        Stop::Wrong(what) => what,
        Stop::Failed(error) => format!("{error} ({error:?})"),
    }
}
