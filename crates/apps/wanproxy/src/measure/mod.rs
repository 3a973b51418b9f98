//! Measures the savings and costs of both halves: bandwidth and round trips with and without them.
//!
//! | file | |
//! |---|---|
//! | `latency` | round trips on loopback |
//! | `link` | streams and round trips over a slow link |
//! | `far_end` | the target of both, which verifies its input |
//! | `bucket` | a slow link on loopback |
//! | `records` | streams that repeat a stated share of earlier ones |
//! | `trips`, `halves`, `serving`, `spread` | their shared parts |

mod bucket;
mod far_end;
mod halves;
mod latency;
mod link;
mod records;
mod serving;
mod spread;
mod trips;

pub use bucket::LinkRate;
pub use far_end::FarEnd;
pub use latency::{LatencyPlan, LatencyReport, measure_latency};
pub use link::{
    LinkEnds, LinkKind, LinkPlan, LinkReport, StreamReport, TripsReport, measure_link,
    measure_link_on_loopback,
};
pub use spread::{Spread, TripSpread};
pub use trips::RoundTrips;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::{Error, Result};

/// Any free port of this machine only.
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Rejects a count that is out of its range, which begins at 1.
fn check_count(field: &'static str, found: usize, most: usize) -> Result<()> {
    if (1..=most).contains(&found) {
        return Ok(());
    }
    Err(Error::Options { field, reason: format!("{found}; expected 1 to {most}") })
}
