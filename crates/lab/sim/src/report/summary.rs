//! The numbers of a run, for programs.

use serde::Serialize;

use super::collect::KindCount;
use super::histogram::{Bin, Histogram};
use super::number::Thousandths;
use super::ssd::SsdReport;
use crate::spec::HOST_PAGE_BYTES;
use crate::ssd::Span;
use crate::{Done, Spec};

/// The result of a run.
///
/// As JSON, times are integer nanoseconds (`_ns`), and quotients are numbers with up to three decimals. Data
/// that only drawings need are not part of the JSON.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The device's name.
    pub device: String,
    /// The modelled device and the sources of its numbers.
    pub about: String,
    /// The load, in words.
    pub load: String,
    /// Warnings about the numbers.
    pub notices: Vec<String>,
    /// Requests that ended.
    pub requests: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// The time from the beginning of the run to the end of its last request.
    pub elapsed_ns: u64,
    /// The time from the beginning of the run until the device had nothing left to do. Buffered writes reach
    /// the flash after they have ended, so this is the longer one.
    pub settled_ns: u64,
    /// The kinds of requests that occurred.
    pub kinds: Vec<KindReport>,
    /// The mean number of requests at a time.
    pub little: Little,
    /// The inside of an SSD.
    pub ssd: Option<SsdReport>,
    /// The slowest stored requests, the slowest first.
    #[serde(skip)]
    pub slowest: Vec<Done>,
    /// Data for drawings.
    #[serde(skip)]
    pub(crate) charts: Charts,
}

/// Data for drawings.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Charts {
    pub spec: Option<Spec>,
    /// The device as the text of a preset's file.
    pub preset: Option<String>,
    pub spans: Vec<Span>,
    pub spans_missed: u64,
    pub requests: Vec<Done>,
    pub requests_missed: u64,
    pub erases: Vec<u32>,
}

impl Report {
    /// Returns the device's description, if it is an SSD.
    #[must_use]
    pub fn spec(&self) -> Option<&Spec> {
        self.charts.spec.as_ref()
    }

    /// Returns the stored spans of busy time, and the number of spans that did not fit.
    #[must_use]
    pub fn spans(&self) -> (&[Span], u64) {
        (&self.charts.spans, self.charts.spans_missed)
    }

    /// Returns the stored requests, the first to end, and the number of others.
    #[must_use]
    pub fn first(&self) -> (&[Done], u64) {
        (&self.charts.requests, self.charts.requests_missed)
    }

    /// Returns the requests for each second of the run.
    #[must_use]
    pub fn iops(&self) -> Option<Thousandths> {
        Thousandths::per_second(self.requests.into(), self.elapsed_ns)
    }

    /// Returns the bytes read and written for each second of the run.
    #[must_use]
    pub fn bytes_per_s(&self) -> Option<Thousandths> {
        Thousandths::per_second(self.bytes.into(), self.elapsed_ns)
    }

    /// Returns a kind, if it occurred: `read`, `write`, `sync` or `discard`.
    #[must_use]
    pub fn kind(&self, name: &str) -> Option<&KindReport> {
        self.kinds.iter().find(|kind| kind.kind == name)
    }
}

/// One kind of request.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct KindReport {
    /// `read`, `write`, `sync` or `discard`.
    pub kind: &'static str,
    /// The number of ended requests.
    pub count: u64,
    /// Bytes of all.
    pub bytes: u64,
    /// The requests for each second of the run.
    pub iops: Option<Thousandths>,
    /// Bytes for each second of the run.
    pub bytes_per_s: Option<Thousandths>,
    /// The latencies.
    pub latency: Latency,
    /// The time, part by part, on average.
    pub parts_mean_ns: PartTimes<Thousandths>,
    /// The total time, part by part. Adds up to `latency.total_ns`.
    pub parts_total_ns: PartTimes<u64>,
    /// The latencies in bins of an eighth of an octave, without empty ones.
    pub distribution: Vec<Bin>,
}

impl KindReport {
    pub(super) fn of(kind: &'static str, count: &KindCount, elapsed_ns: u64) -> Self {
        let latencies = &count.latencies;
        let bytes = count.pages * HOST_PAGE_BYTES;
        let n = u128::from(latencies.count());
        let mean = |total| Thousandths::ratio(total, n).unwrap_or_default();
        Self {
            kind,
            count: latencies.count(),
            bytes,
            iops: Thousandths::per_second(n, elapsed_ns),
            bytes_per_s: Thousandths::per_second(bytes.into(), elapsed_ns),
            latency: Latency::of(latencies),
            parts_mean_ns: PartTimes::of(count.parts_ns.map(mean)),
            parts_total_ns: PartTimes::of(count.parts_ns.map(saturated)),
            distribution: latencies.eighths(),
        }
    }
}

fn saturated(total: u128) -> u64 {
    u64::try_from(total).unwrap_or(u64::MAX)
}

/// Latencies, each one that occurred. See [`Histogram`] for their precision.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Latency {
    /// The shortest.
    pub min_ns: u64,
    /// The mean.
    pub mean_ns: Thousandths,
    /// The median.
    pub p50_ns: u64,
    /// The 90th percentile: 90 % of requests take no longer.
    pub p90_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The 99.9th percentile.
    pub p999_ns: u64,
    /// The 99.99th percentile.
    pub p9999_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The sum of all.
    pub total_ns: u64,
}

impl Latency {
    /// Returns the percentiles of these latencies.
    #[must_use]
    pub fn of(latencies: &Histogram) -> Self {
        let count = u128::from(latencies.count());
        Self {
            min_ns: latencies.min_ns(),
            mean_ns: Thousandths::ratio(latencies.total_ns(), count).unwrap_or_default(),
            p50_ns: latencies.quantile_ns(5_000),
            p90_ns: latencies.quantile_ns(9_000),
            p99_ns: latencies.quantile_ns(9_900),
            p999_ns: latencies.quantile_ns(9_990),
            p9999_ns: latencies.quantile_ns(9_999),
            max_ns: latencies.max_ns(),
            total_ns: saturated(latencies.total_ns()),
        }
    }
}

/// The parts of a latency. See [`Parts`](crate::Parts).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PartTimes<T> {
    /// The time waiting for space in the device's queue or write buffer.
    pub admission: T,
    /// The time of controller and link, including waiting for either.
    pub host: T,
    /// The time waiting for flash or a bus that served other requests.
    pub queue: T,
    /// The time waiting for flash that was cleaning.
    pub cleaning: T,
    /// The time on the bus between controller and flash.
    pub bus: T,
    /// The time in the flash array.
    pub array: T,
}

impl<T: Copy> PartTimes<T> {
    fn of([admission, host, queue, cleaning, bus, array]: [T; 6]) -> Self {
        Self { admission, host, queue, cleaning, bus, array }
    }

    /// Returns the parts in the order in which a request meets them.
    #[must_use]
    pub const fn in_order(&self) -> [T; 6] {
        [self.admission, self.host, self.queue, self.cleaning, self.bus, self.array]
    }
}

/// Little's law: the number of simultaneous requests is their rate times their latency.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Little {
    /// Requests for each second.
    pub rate_per_s: Option<Thousandths>,
    /// The mean latency.
    pub mean_latency_ns: Option<Thousandths>,
    /// The mean number of simultaneous requests: the sum of all latencies over the time of the run, which is
    /// the product of the two above.
    pub mean_in_system: Option<Thousandths>,
}

impl Little {
    pub(super) fn of(requests: u64, total_ns: u128, elapsed_ns: u64) -> Self {
        Self {
            rate_per_s: Thousandths::per_second(requests.into(), elapsed_ns),
            mean_latency_ns: Thousandths::ratio(total_ns, requests.into()),
            mean_in_system: Thousandths::ratio(total_ns, elapsed_ns.into()),
        }
    }
}
