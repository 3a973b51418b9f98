//! What the proxy adds to a round trip: both halves on loopback in this process, between a program and a target that
//! sends back what comes.
//!
//! The link is as fast as loopback. So this is the time of the halves alone, without what they save on a slow link.

use std::sync::Arc;

use nandex_wan::Cache;
use nandex_wan::live::LiveOptions;
use serde::Serialize;

use super::halves::Halves;
use super::serving::Serving;
use super::trips::{REQUEST_BYTES_MAX, ROUND_TRIPS_MAX, RoundTrips, Trips, send_back};
use super::{LOOPBACK, check_count};
use crate::{Error, Limits, Result};

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LatencyPlan {
    /// Round trips that count. Default 1,000.
    pub round_trips: usize,
    /// Bytes of a request, which its answer has too. Default 100, which go as they are; from 512 on they are looked up
    /// in the cache. Each request is new, and its answer is known.
    pub bytes: usize,
    /// How streams are sent.
    pub live: LiveOptions,
    /// What the halves may take.
    pub limits: Limits,
}

impl Default for LatencyPlan {
    fn default() -> Self {
        let (live, limits) = (LiveOptions::default(), Limits::default());
        Self { round_trips: 1000, bytes: 100, live, limits }
    }
}

/// What was measured.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct LatencyReport {
    /// Round trips of each kind that count.
    pub round_trips: usize,
    /// Bytes of a request.
    pub bytes: usize,
    /// From the program to the target without the proxy.
    pub direct: RoundTrips,
    /// Through both halves.
    pub through: RoundTrips,
    /// The difference of these percentiles.
    pub added: RoundTrips,
    /// Bytes of requests and answers that went over the link as they are; the rest was looked up in the cache.
    pub plain_bytes: u64,
}

/// Measures round trips with and without both halves, whose caches these are: the client half's, then the server
/// half's.
///
/// Costs the round trips, one after the other, twice; a thread for the target and for each of its connections.
///
/// # Errors
/// Counts out of range, options that cannot work, no free port, a connection that fails.
pub fn measure_latency(
    caches: (Arc<Cache>, Arc<Cache>),
    plan: &LatencyPlan,
) -> Result<LatencyReport> {
    check_count("round_trips", plan.round_trips, ROUND_TRIPS_MAX)?;
    check_count("bytes", plan.bytes, REQUEST_BYTES_MAX)?;
    let target = Serving::start(LOOPBACK, |stream| send_back(&stream))?;
    let trips = Trips { count: plan.round_trips, bytes: plan.bytes, hello: b"", salt: [0, 0] };
    let direct = trips.run(target.address()).map_err(Error::Local)?;
    let halves = Halves::start(caches, (plan.live, plan.limits), target.address(), Ok)?;
    let through = trips.run(halves.entrance()).map_err(Error::Local)?;
    let plain_bytes = halves.stop()?.map(|half| half.traffic.plain_bytes);
    Ok(LatencyReport {
        round_trips: plan.round_trips,
        bytes: plan.bytes,
        direct,
        through,
        added: through.less(direct),
        plain_bytes: plain_bytes.iter().sum(),
    })
}
