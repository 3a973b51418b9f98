//! The device's own limits, as filters need them: random reads at the run's lanes and depth, at depth 1
//! and at depth 32, and sequential bytes both ways.

use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::limit::Scratch;

/// The limits at one moment.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct FilterLimits {
    /// Random 4 KiB reads per second at the lanes and the depth of the run.
    pub reads_per_s: f64,
    /// The same by one lane, one after the other.
    pub reads_depth_1_per_s: f64,
    /// The same by one lane, 32 in flight.
    pub reads_depth_32_per_s: f64,
    /// Bytes per second of sequential 1 MiB reads.
    pub read_bytes_per_s: f64,
    /// Bytes per second of sequential 1 MiB writes.
    pub write_bytes_per_s: f64,
}

impl FilterLimits {
    /// Measures each for about `time`.
    ///
    /// # Errors
    /// A failed read or write of the scratch.
    pub fn measure(scratch: &Scratch, lanes: usize, depth: usize, time: Duration) -> Result<Self> {
        let one = scratch.reads_per_s(1, 1, time)?;
        let many = scratch.reads_per_s(1, 32, time)?;
        let own = match (lanes, depth) {
            (1, 1) => one,
            (1, 32) => many,
            _ => scratch.reads_per_s(lanes, depth, time)?,
        };
        Ok(Self {
            reads_per_s: own,
            reads_depth_1_per_s: one,
            reads_depth_32_per_s: many,
            read_bytes_per_s: scratch.read_bytes_per_s(time)?,
            write_bytes_per_s: scratch.write_bytes_per_s(time)?,
        })
    }

    /// The mean of the limits before and after a run.
    #[must_use]
    pub fn between(before: Self, after: Self) -> Self {
        let mean = |part: fn(&Self) -> f64| f64::midpoint(part(&before), part(&after));
        Self {
            reads_per_s: mean(|limits| limits.reads_per_s),
            reads_depth_1_per_s: mean(|limits| limits.reads_depth_1_per_s),
            reads_depth_32_per_s: mean(|limits| limits.reads_depth_32_per_s),
            read_bytes_per_s: mean(|limits| limits.read_bytes_per_s),
            write_bytes_per_s: mean(|limits| limits.write_bytes_per_s),
        }
    }
}
