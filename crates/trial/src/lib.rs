//! Trials of structures by seed: simulated devices, power cuts and faults, and an oracle that knows the law.
//!
//! A seed is a [`Plan`]: which structure in which configuration, on which device, and what goes wrong.
//! [`run`] carries it out on one thread, so that a seed gives the same operations, bytes and answers every
//! time; what fails once fails again.
//! A structure joins by implementing [`Subject`].
#![forbid(unsafe_code)]

pub mod filter;
mod ground;
mod life;
mod oracle;
mod plan;
mod report;
mod subject;
mod sweep;
pub mod table;
mod traced;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use ground::{Ground, small};
pub use oracle::{Found, Past};
pub use plan::{Adversity, BLOCK, Plan, STRUCTURES, Setup, Structure};
pub use report::{Failure, Tally};
pub use subject::{Stop, Subject, Trust};
pub use traced::{Trace, Traced};

/// Runs the trial of a seed. Costs about a thousand recoveries of volumes of 100 KiB.
///
/// # Errors
/// A law that was broken, or a panic.
pub fn run(seed: u64) -> Result<Tally, Box<Failure>> {
    let plan = Plan::of(seed);
    let trial = || {
        let mut tally = Tally { seeds: 1, ..Tally::default() };
        match plan.adversity {
            Adversity::EveryCut => sweep::run(&plan, &mut tally)?,
            _ => life::run(&plan, &mut tally)?,
        }
        Ok(tally)
    };
    let result = catch_unwind(AssertUnwindSafe(trial));
    let result = result.unwrap_or_else(|panic| Err(format!("panicked: {}", message(&*panic))));
    result.map_err(|what| Box::new(Failure { seed, plan: format!("{plan:?}"), what }))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("with no message").into()
}
