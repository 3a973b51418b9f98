//! Measures the time that the proxy adds to a round trip: both halves on loopback in this process, between a program
//! and a target that sends back its input.
//!
//! The link is as fast as loopback. So this is the time of the halves alone, without their savings on a slow link.

use std::sync::Arc;

use nandex_wan::Cache;
use nandex_wan::live::LiveOptions;
use serde::Serialize;

use super::halves::Halves;
use super::serving::Serving;
use super::trips::{REQUEST_BYTES_MAX, ROUND_TRIPS_MAX, RoundTrips, Trips, send_back};
use super::{LOOPBACK, check_count};
use crate::{Error, Limits, Result};

/// The plan of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LatencyPlan {
    /// The number of round trips that count. Default 1,000.
    pub round_trips: usize,
    /// The bytes of a request, and of its answer. Default 100, which are sent unencoded; from 512 on they are looked up
    /// in the cache. Each request is new, and its answer is known.
    pub bytes: usize,
    /// The options of streams.
    pub live: LiveOptions,
    /// The limits of the halves.
    pub limits: Limits,
}

impl Default for LatencyPlan {
    fn default() -> Self {
        let (live, limits) = (LiveOptions::default(), Limits::default());
        Self { round_trips: 1000, bytes: 100, live, limits }
    }
}

/// The result of a measurement.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct LatencyReport {
    /// The number of round trips of each kind that count.
    pub round_trips: usize,
    /// The bytes of a request.
    pub bytes: usize,
    /// From the program to the target without the proxy.
    pub direct: RoundTrips,
    /// Through both halves.
    pub through: RoundTrips,
    /// The difference of these percentiles.
    pub added: RoundTrips,
    /// The bytes of requests and answers sent unencoded over the link; the rest was looked up in the cache.
    pub plain_bytes: u64,
}

/// Measures round trips with and without both halves. `caches` has the client half's cache, then the server half's.
///
/// Costs twice the round trips, one after the other; a thread for the target and for each of its connections.
///
/// # Errors
/// Counts out of range, invalid options, no free port, a connection that fails.
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
