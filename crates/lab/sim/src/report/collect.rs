//! Collects ended requests, in memory that does not grow with the run.

use std::collections::BTreeMap;

use super::histogram::Histogram;
use super::ssd::{SsdBaseline, SsdReport};
use super::summary::{Charts, KindReport, Little, Report};
use crate::spec::HOST_PAGE_BYTES;
use crate::{Done, Parts, RequestKind, Ssd};

/// The number of requests that a [`Collector`] stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keep {
    /// The number of the slowest requests.
    pub slowest: usize,
    /// The number of the first requests to end, for a trace.
    pub first: usize,
}

impl Default for Keep {
    /// Returns a limit of the slowest request alone.
    fn default() -> Self {
        Self { slowest: 1, first: 0 }
    }
}

/// Collects requests as they end, and makes a [`Report`] of them.
///
/// Memory: a histogram of up to 0.9 MiB for each kind of request, and the stored requests.
#[derive(Clone, Debug)]
pub struct Collector {
    start_ns: u64,
    last_ns: u64,
    kinds: [KindCount; 4],
    keep: Keep,
    /// The slowest requests by latency, then by age, so that the first of equals stays.
    slowest: BTreeMap<(u64, u64), Done>,
    first: Vec<Done>,
    seen: u64,
}

/// The counts of a kind of request.
#[derive(Clone, Default, Debug)]
pub(super) struct KindCount {
    pub latencies: Histogram,
    pub pages: u64,
    /// The sums of the parts in the order of [`PART_NAMES`].
    pub parts_ns: [u128; 6],
}

/// The parts of a latency, in the order in which a request meets them.
pub(super) const PART_NAMES: [&str; 6] = ["admission", "host", "queue", "cleaning", "bus", "array"];

/// Returns the parts in the order of [`PART_NAMES`].
pub(super) const fn parts_in_order(parts: &Parts) -> [u64; 6] {
    [
        parts.admission_ns,
        parts.host_ns,
        parts.queue_ns,
        parts.cleaning_ns,
        parts.bus_ns,
        parts.array_ns,
    ]
}

/// The kinds in the order of reports, and their names.
pub(super) const KINDS: [(RequestKind, &str); 4] = [
    (RequestKind::Read, "read"),
    (RequestKind::Write, "write"),
    (RequestKind::Sync, "sync"),
    (RequestKind::Discard, "discard"),
];

/// Returns the name of a kind.
pub(super) const fn kind_name(kind: RequestKind) -> &'static str {
    KINDS[kind_index(kind)].1
}

const fn kind_index(kind: RequestKind) -> usize {
    match kind {
        RequestKind::Read => 0,
        RequestKind::Write => 1,
        RequestKind::Sync => 2,
        RequestKind::Discard => 3,
    }
}

impl Collector {
    /// Creates a collector of a run that begins at `start_ns` of the model's time.
    #[must_use]
    pub fn new(start_ns: u64, keep: Keep) -> Self {
        Self {
            start_ns,
            last_ns: start_ns,
            kinds: Default::default(),
            keep,
            slowest: BTreeMap::new(),
            first: Vec::new(),
            seen: 0,
        }
    }

    /// Records a request that has ended. Takes constant time, except for the logarithm of the number of
    /// stored slow ones.
    pub fn note(&mut self, done: &Done) {
        let latency_ns = done.finished_ns - done.submitted_ns;
        let kind = &mut self.kinds[kind_index(done.request.kind)];
        kind.latencies.record(latency_ns);
        kind.pages += u64::from(done.request.pages);
        for (sum, part) in kind.parts_ns.iter_mut().zip(parts_in_order(&done.parts)) {
            *sum += u128::from(part);
        }
        self.last_ns = self.last_ns.max(done.finished_ns);
        self.keep_slow(latency_ns, done);
        if self.first.len() < self.keep.first {
            self.first.push(*done);
        }
        self.seen += 1;
    }

    fn keep_slow(&mut self, latency_ns: u64, done: &Done) {
        let shortest = self.slowest.first_key_value().map_or(0, |(key, _)| key.0);
        let is_full = self.slowest.len() >= self.keep.slowest;
        if self.keep.slowest == 0 || (is_full && latency_ns <= shortest) {
            return;
        }
        self.slowest.insert((latency_ns, u64::MAX - self.seen), *done);
        if is_full {
            self.slowest.pop_first();
        }
    }

    /// Returns the report of a model that came to rest at `rest_ns`. `device` and `load` describe the run.
    #[must_use]
    pub fn report(self, device: &str, load: &str, rest_ns: u64) -> Report {
        let elapsed_ns = self.last_ns - self.start_ns;
        let kinds = self.kinds.iter().zip(KINDS).filter(|(count, _)| count.latencies.count() > 0);
        let kinds: Vec<_> =
            kinds.map(|(count, (_, name))| KindReport::of(name, count, elapsed_ns)).collect();
        let total_ns = self.kinds.iter().map(|kind| kind.latencies.total_ns()).sum();
        let pages = self.kinds[0].pages + self.kinds[1].pages;
        Report {
            device: device.into(),
            about: String::new(),
            load: load.into(),
            notices: Vec::new(),
            requests: self.seen,
            bytes: pages * HOST_PAGE_BYTES,
            elapsed_ns,
            settled_ns: rest_ns.max(self.last_ns) - self.start_ns,
            kinds,
            little: Little::of(self.seen, total_ns, elapsed_ns),
            ssd: None,
            slowest: self.slowest.into_values().rev().collect(),
            charts: Charts {
                requests_missed: self.seen - self.first.len() as u64,
                requests: self.first,
                ..Charts::default()
            },
        }
    }

    /// Returns the report of a run on an SSD whose state at the beginning was `before`.
    #[must_use]
    pub fn report_ssd(self, ssd: &Ssd, before: &SsdBaseline, load: &str) -> Report {
        use crate::Model;
        let spec = ssd.spec();
        let mut report = self.report(&spec.name, load, ssd.now_ns());
        report.about.clone_from(&spec.about);
        report.ssd = Some(SsdReport::of(ssd, before, report.settled_ns));
        let (spans, missed) = ssd.spans();
        report.charts.spans = spans.to_vec();
        report.charts.spans_missed = missed;
        report.charts.erases = ssd.erases().to_vec();
        report.charts.spec = Some(spec.clone());
        report
    }
}
