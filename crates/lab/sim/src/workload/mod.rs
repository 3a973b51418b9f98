//! Workloads: requests for a model, made from a seed, and the loops that feed them to it.
//!
//! ```text
//!   Workload ---> Requests ----------------> closed_loop --+
//!   (what to ask,     |                      (how many at  |
//!    and a seed)      v                       a time)      +--> Model --> Done, one by one
//!   Gaps -------> Arrivals ----------------> open_loop ----+
//!   (when)            ^                      (when they
//!   Synthetic, traces-+                       arrive)
//! ```
//!
//! A seed gives the same requests at the same nanoseconds on every machine: draws are integers, and
//! logarithms are computed with IEEE additions and multiplications alone.
//!
//! | law | state | cost of a request |
//! |---|---|---|
//! | sequential, uniform | constant | O(1) |
//! | hot and cold, Zipf | constant | O(1) expected, by rejection |

mod arrivals;
mod drive;
mod error;
mod math;
mod pattern;
mod prng;
mod requests;
mod zipf;

pub use arrivals::{Arrival, Arrivals, Gaps};
pub use drive::{closed_loop, open_loop, try_open_loop};
pub use error::WorkloadError;
pub use math::ln;
pub use pattern::{Pattern, Spread};
pub use prng::SplitMix64;
pub use requests::{Requests, Workload};
