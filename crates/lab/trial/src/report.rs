//! The results of trials: counts that add up, and the report of a failure.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use nandex_sim::Strike;

/// The counts of one trial or of all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Trials that ended well.
    pub seeds: u64,
    /// Distinct places of a power cut: seed, operation, and choice of survivors.
    pub cut_points: u64,
    /// The places during a recovery from an earlier cut.
    pub cut_recoveries: u64,
    /// The places that left the same bytes as another one during the same call.
    pub cuts_equal: u64,
    /// Openings of an existing structure.
    pub reopenings: u64,
    /// Calls of a structure.
    pub calls: u64,
    /// Counted operations of devices: writes, syncs, grows and discards.
    pub operations: u64,
    /// Faults that struck, by kind and by operation.
    pub faults: BTreeMap<String, u64>,
    /// Lookups that returned an error, on a device with wrong data.
    pub refusals: u64,
    /// Openings that returned an error, on a device that was wrong or failed.
    pub refused_openings: u64,
    /// A hash of every device operation and every answer; for several trials, in any order.
    pub trace: u64,
}

impl Counters {
    /// Counts faults that have struck.
    pub fn count_faults(&mut self, strikes: &[Strike]) {
        for strike in strikes {
            *self.faults.entry(format!("{:?} on {:?}", strike.kind, strike.on)).or_default() += 1;
        }
    }
}

impl AddAssign<&Self> for Counters {
    fn add_assign(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.cut_points += other.cut_points;
        self.cut_recoveries += other.cut_recoveries;
        self.cuts_equal += other.cuts_equal;
        self.reopenings += other.reopenings;
        self.calls += other.calls;
        self.operations += other.operations;
        for (kind, count) in &other.faults {
            *self.faults.entry(kind.clone()).or_default() += count;
        }
        self.refusals += other.refusals;
        self.refused_openings += other.refused_openings;
        // Threads add to it in any order.
        self.trace = self.trace.wrapping_add(other.trace);
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let struck: u64 = self.faults.values().sum();
        writeln!(f, "seeds             {:>12}", self.seeds)?;
        writeln!(f, "cut points        {:>12}", self.cut_points)?;
        writeln!(f, "  in a recovery   {:>12}", self.cut_recoveries)?;
        writeln!(f, "  equal to others {:>12}", self.cuts_equal)?;
        writeln!(f, "reopenings        {:>12}", self.reopenings)?;
        writeln!(f, "  refused         {:>12}", self.refused_openings)?;
        writeln!(f, "calls             {:>12}", self.calls)?;
        writeln!(f, "  refused lookups {:>12}", self.refusals)?;
        writeln!(f, "device operations {:>12}", self.operations)?;
        writeln!(f, "faults struck     {struck:>12}")?;
        for (kind, count) in &self.faults {
            writeln!(f, "  {kind:<24} {count:>10}")?;
        }
        write!(f, "trace         {:016x}", self.trace)
    }
}

/// A trial that failed: its seed, and the failure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The seed that replays it.
    pub seed: u64,
    /// The structure, the device and its faults.
    pub plan: String,
    /// The place in the trial, and the broken law.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, plan, what } = self;
        writeln!(f, "trial {seed} failed\n  {plan}\n  {what}\nmake trial SEED={seed}")
    }
}
