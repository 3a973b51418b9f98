//! The result of a run: numbers, the formula of each, and drawings.
//!
//! ```text
//!   Done, one by one --> Collector --+
//!   Ssd before ------> Before -------+--> Report --> text()         a table for a terminal
//!   Ssd after -----------------------+           --> serde          JSON
//!                                                --> html()         a page for a browser
//!                                                --> write_trace()  Perfetto, chrome://tracing
//!   one Done + Spec ---------------------------- --> explain()      its latency, part by part
//! ```
//!
//! 1. Times are integer nanoseconds and sums are 128 bits wide. Each quotient is computed last, once, and
//!    rounded to a thousandth: no second is cut off, and nothing is a quotient of rounded numbers.
//! 2. A percentile is a latency that occurred: the largest of its bin, and bins are 1/1024 wide.
//! 3. The parts of an explained request add up to its latency to the nanosecond.
//! 4. A division by zero (a rate in no time) is absent, not infinite.

mod collect;
mod explain;
mod figures;
mod histogram;
mod html;
mod number;
mod perfetto;
mod sheet;
mod ssd;
mod summary;
mod text;

pub use collect::{Collector, Keep};
pub use explain::{Explanation, PartExplained, Term, explain};
pub use figures::{Figure, Section, figures};
pub use histogram::{Bin, Histogram};
pub use html::html;
pub use number::{Thousandths, exact_time};
pub(crate) use number::{counted, grouped};
pub use perfetto::write_trace;
pub use ssd::{Life, Merges, SsdBaseline, SsdReport, Usage, Wear};
pub use summary::{KindReport, Latency, Little, PartTimes, Report};
pub use text::text;
