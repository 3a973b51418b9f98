//! Trials of structures by seed: simulated devices, power cuts and faults, and an oracle that knows the law.
//!
//! A seed is a [`Plan`]: a structure in a configuration, a device, and the faults. [`run`] runs it on one
//! thread, so that a seed gives the same operations, bytes and answers every time; a failure repeats. A
//! structure joins by implementing [`Contract`]. The sweeps of this crate's tests use the same parts: the
//! [`Session`] of a structure with its oracle, the [workload](live), and [`sweep`] of power cuts.
#![forbid(unsafe_code)]

pub mod amount;
mod contract;
mod course;
mod device_kind;
pub mod filter;
mod life;
pub mod neighbors;
pub mod parallel;
mod plan;
mod recording;
mod report;
mod session;
mod sweep;
pub mod table;
mod traced;
mod versions;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use contract::{Contract, Stop, Trust};
pub use course::{Watcher, live};
pub use device_kind::{DeviceKind, small};
use nandex_sim::workload::SplitMix64;
pub use plan::{Adversity, BLOCK, Plan, STRUCTURES, Structure, StructureSetup};
pub use recording::{REPLAY, Recording};
pub use report::{Counters, Failure};
pub use session::Session;
pub use sweep::{Cuts, Sweep, recover, sweep, sweep_life};
pub use traced::{Trace, Traced};
pub use versions::{Oracle, Versions};

/// The maximum number of calls in one opening, if the power is cut during every operation.
const CALLS_MAX: u64 = 40;

/// Runs the trial of a seed. Takes about a thousand recoveries of volumes of 100 KiB if every operation is
/// cut, fewer if only one in `one_in` is.
///
/// # Errors
/// Returns a wrong answer, or a panic.
pub fn run(seed: u64, one_in: u64) -> Result<Counters, Box<Failure>> {
    run_plan(&Plan::of(seed), one_in)
}

/// Runs a plan that no seed has any more, since the registry has other structures now.
///
/// # Errors
/// Fails as [`run`] does.
pub fn run_plan(plan: &Plan, one_in: u64) -> Result<Counters, Box<Failure>> {
    let seed = plan.seed;
    let trial = || match plan.setup {
        StructureSetup::Table(setup) => carry_out(plan, setup, one_in),
        StructureSetup::Filter(setup) => carry_out(plan, setup, one_in),
        StructureSetup::Neighbors(setup) => carry_out(plan, setup, one_in),
    };
    let result = catch_unwind(AssertUnwindSafe(trial));
    let result = result.unwrap_or_else(|panic| Err(format!("panicked: {}", message(&*panic))));
    result.map_err(|what| Box::new(Failure { seed, plan: format!("{plan:?}"), what }))
}

fn carry_out<C: Contract>(plan: &Plan, setup: C, one_in: u64) -> Result<Counters, String> {
    let mut counters = Counters { seeds: 1, ..Counters::default() };
    let Plan { seed, device, .. } = *plan;
    match plan.adversity {
        Adversity::EveryCut => {
            let calls = 1 + SplitMix64::stream(seed, 4).below(CALLS_MAX);
            let failures = None;
            sweep(setup, Sweep { seed, device, calls, one_in, failures }, &mut counters)?;
        }
        _ => life::run(plan, setup, &mut counters)?,
    }
    Ok(counters)
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("with no message").into()
}
