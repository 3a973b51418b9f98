//! A whole run: a device, a load, and the report.
//!
//! ```
//! use nandex_sim::preset::Preset;
//! use nandex_sim::run::{Load, Mix, Pace, Run};
//! use nandex_sim::Fill;
//!
//! let load: Load<&[u8]> = Load::Mix { mix: Mix::named("random-read").unwrap(), request_pages: 1, seed: 1 };
//! let run = Run { requests_max: Some(1000), ..Run::new(load, Pace::Closed { depth: 8 }) };
//! let report = run.on(&Preset::named("slc-paper")?, Fill::Sequential)?;
//! assert_eq!(report.requests, 1000);
//! # Ok::<(), nandex_sim::run::RunError>(())
//! ```

use std::io::BufRead;

use crate::preset::{Machine, Preset, PresetError};
use crate::report::{Collector, Keep, Report, SsdBaseline, SsdReport, counted, grouped};
use crate::spec::{FtlKind, HOST_PAGE_BYTES, Spec};
use crate::trace::{TraceError, TraceReader};
use crate::workload::{
    Arrival, Gaps, Pattern, Spread, Workload, WorkloadError, closed_loop, open_loop, try_open_loop,
};
use crate::{Done, Fill, Model, Request, Ssd};

/// A workload that has a name.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mix {
    /// The name.
    pub name: &'static str,
    /// The pattern of the requests.
    pub pattern: Pattern,
    /// The number of reads in a million requests. The others write.
    pub read_ppm: u32,
}

const SEQUENTIAL: Pattern = Pattern::Sequential { from: 0 };
const ZIPF: Pattern = Pattern::Zipf { exponent: 0.99, spread: Spread::Scattered };
/// A pattern in which 80 % of requests go to 20 % of the device.
const HOT: Pattern = Pattern::HotCold {
    hot_places_ppm: 200_000,
    hot_requests_ppm: 800_000,
    spread: Spread::Scattered,
};

impl Mix {
    /// All named workloads. In `mixed` ones, seven of ten requests read.
    pub const ALL: [Self; 11] = [
        Self::of("sequential-read", SEQUENTIAL, 1_000_000),
        Self::of("sequential-write", SEQUENTIAL, 0),
        Self::of("random-read", Pattern::Uniform, 1_000_000),
        Self::of("random-write", Pattern::Uniform, 0),
        Self::of("mixed", Pattern::Uniform, 700_000),
        Self::of("zipf-read", ZIPF, 1_000_000),
        Self::of("zipf-write", ZIPF, 0),
        Self::of("zipf-mixed", ZIPF, 700_000),
        Self::of("hot-cold-read", HOT, 1_000_000),
        Self::of("hot-cold-write", HOT, 0),
        Self::of("hot-cold-mixed", HOT, 700_000),
    ];

    const fn of(name: &'static str, pattern: Pattern, read_ppm: u32) -> Self {
        Self { name, pattern, read_ppm }
    }

    /// Returns the workload of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mix| mix.name == name)
    }

    /// Returns whether it both reads and writes.
    #[must_use]
    pub fn is_mixed(&self) -> bool {
        self.name.ends_with("mixed")
    }
}

/// The requests to a device.
#[derive(Debug)]
pub enum Load<R> {
    /// A workload over all of the device's pages.
    Mix {
        /// The workload.
        mix: Mix,
        /// Pages of each request.
        request_pages: u32,
        /// The seed of all random choices.
        seed: u64,
    },
    /// A recorded trace. Requests beyond the device's end are folded onto its pages.
    Trace(TraceReader<R>),
}

/// The times of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// A fixed number at a time: as one ends the next is submitted.
    Closed {
        /// The number of requests at a time.
        depth: u32,
    },
    /// Given times, however busy the device is. A trace with its own times uses those.
    Open(Gaps),
    /// The recorded times of a trace.
    Recorded,
}

/// The default number of requests of a [`Mix`].
pub const REQUESTS: u64 = 10_000;

/// A configured run, which has not started.
#[derive(Debug)]
pub struct Run<R> {
    /// The requests.
    pub load: Load<R>,
    /// The times of the requests.
    pub pace: Pace,
    /// The maximum number of requests: by default all of a trace, and [`REQUESTS`] of a mix.
    pub requests_max: Option<u64>,
    /// The requests that the report stores.
    pub keep: Keep,
    /// The spans of busy time that the report stores, from the beginning on; 48 bytes each.
    pub spans_max: usize,
}

/// A run that cannot begin or continue.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum RunError {
    /// An error of the device.
    #[error(transparent)]
    Preset(#[from] PresetError),
    /// An error of the workload.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// An error of the trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A mix with recorded times, which it does not have.
    #[error("a workload has no recorded times: expected a depth or a rate; give it one of these")]
    NotRecorded,
    /// A request that the device refuses, for example because a raw chip cannot overwrite a page.
    #[error("request {token} cannot be carried out: {why}")]
    Refused {
        /// The number of the request, counted from 0.
        token: u64,
        /// The reason, and the remedy.
        why: String,
    },
}

/// A model that checks each request, and receives none after the first that it refuses.
#[derive(Debug)]
struct Checked<'m> {
    model: &'m mut dyn Model,
    refused: Option<(u64, String)>,
}

impl Model for Checked<'_> {
    fn now_ns(&self) -> u64 {
        self.model.now_ns()
    }

    fn page_count(&self) -> u64 {
        self.model.page_count()
    }

    fn refuses(&self, request: &Request) -> Option<String> {
        self.model.refuses(request)
    }

    fn submit_at(&mut self, at_ns: u64, request: Request) {
        if self.refused.is_none() {
            match self.model.refuses(&request) {
                None => self.model.submit_at(at_ns, request),
                Some(why) => self.refused = Some((request.token, why)),
            }
        }
    }

    fn step(&mut self, done: &mut Vec<Done>) -> bool {
        self.model.step(done)
    }

    fn advance(&mut self, to_ns: u64, done: &mut Vec<Done>) {
        self.model.advance(to_ns, done);
    }
}

/// The requests that a device received.
struct FedRequests {
    words: String,
    folded: u64,
    reordered: u64,
}

impl<R: BufRead> Run<R> {
    /// Creates a run of this load, which stores the slowest request and no spans.
    #[must_use]
    pub fn new(load: Load<R>, pace: Pace) -> Self {
        Self { load, pace, requests_max: None, keep: Keep::default(), spans_max: 0 }
    }

    /// Runs it on a new device of this preset, with this content.
    ///
    /// # Errors
    /// Fails for an impossible device, a request that no device takes, and a trace that does not parse: with
    /// the line.
    pub fn on(self, preset: &Preset, fill: Fill) -> Result<Report, RunError> {
        let mut report = match preset.machine() {
            Machine::Ssd(_) => self.on_ssd(&mut preset.ssd(fill)?, fill)?,
            Machine::Disk(_) => self.on_model(&mut *preset.build(fill)?, preset.name())?,
        };
        report.about = preset.about().into();
        report.charts.preset = preset.to_toml().ok();
        Ok(report)
    }

    /// Runs it on this SSD in its present state; `fill` is its original content, which the report mentions.
    ///
    /// # Errors
    /// Fails as [`on`](Self::on) does.
    pub fn on_ssd(self, ssd: &mut Ssd, fill: Fill) -> Result<Report, RunError> {
        let before = SsdBaseline::of(ssd);
        ssd.record_spans(self.spans_max);
        let mut collector = Collector::new(ssd.now_ns(), self.keep);
        let fed = self.feed(ssd, |done| collector.note(done))?;
        let state = match fill {
            Fill::Empty => "on an empty device",
            Fill::Sequential => "on a device filled sequentially",
            Fill::Steady { .. } => "on a device in its steady state of random writes",
        };
        let mut report = collector.report_ssd(ssd, &before, &format!("{}, {state}", fed.words));
        report.notices = fed.notices(ssd.page_count());
        report.notices.extend(doubts(&report));
        Ok(report)
    }

    /// Runs it on any model; the report has fewer figures than an SSD's.
    ///
    /// # Errors
    /// Fails as [`on`](Self::on) does.
    pub fn on_model(self, model: &mut dyn Model, name: &str) -> Result<Report, RunError> {
        let mut collector = Collector::new(model.now_ns(), self.keep);
        let fed = self.feed(model, |done| collector.note(done))?;
        let mut report = collector.report(name, &fed.words, model.now_ns());
        report.notices = fed.notices(model.page_count());
        Ok(report)
    }

    fn feed(self, model: &mut dyn Model, sink: impl FnMut(&Done)) -> Result<FedRequests, RunError> {
        let mut checked = Checked { model, refused: None };
        let fed = self.feed_checked(&mut checked, sink)?;
        match checked.refused {
            None => Ok(fed),
            Some((token, why)) => Err(RunError::Refused { token, why }),
        }
    }

    fn feed_checked(
        self,
        model: &mut dyn Model,
        sink: impl FnMut(&Done),
    ) -> Result<FedRequests, RunError> {
        match self.load {
            Load::Mix { mix, request_pages, seed } => {
                let page_count = model.page_count();
                let Mix { pattern, read_ppm, .. } = mix;
                let workload = Workload { page_count, request_pages, read_ppm, pattern, seed };
                let requests = self.requests_max.unwrap_or(REQUESTS);
                feed_workload(model, &workload, requests, self.pace, sink)?;
                let words = mix_words(&mix, &workload, requests, self.pace);
                Ok(FedRequests { words, folded: 0, reordered: 0 })
            }
            Load::Trace(reader) => feed_trace(model, reader, self.requests_max, self.pace, sink),
        }
    }
}

fn feed_workload(
    model: &mut dyn Model,
    workload: &Workload,
    requests: u64,
    pace: Pace,
    sink: impl FnMut(&Done),
) -> Result<(), RunError> {
    let count = usize::try_from(requests).unwrap_or(usize::MAX);
    match pace {
        Pace::Closed { depth } => closed_loop(model, workload.requests()?.take(count), depth, sink),
        Pace::Open(gaps) => open_loop(model, workload.arrivals(gaps)?.take(count), sink),
        Pace::Recorded => return Err(RunError::NotRecorded),
    }
    Ok(())
}

fn feed_trace<R: BufRead>(
    model: &mut dyn Model,
    mut reader: TraceReader<R>,
    requests_max: Option<u64>,
    pace: Pace,
    sink: impl FnMut(&Done),
) -> Result<FedRequests, RunError> {
    let (page_count, mut folded) = (model.page_count(), 0);
    let count = requests_max.map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX));
    let mut token = 0;
    let mut arrivals = reader.by_ref().take(count).map(|record| {
        let arrival: Arrival = record?.arrival(token)?;
        token += 1;
        let fitted = arrival.folded(page_count);
        folded += u64::from(fitted != arrival);
        Ok::<_, TraceError>(fitted)
    });
    let when = match pace {
        Pace::Closed { depth } => {
            let mut failure = None;
            let requests = std::iter::from_fn(|| match arrivals.next()? {
                Ok(arrival) => Some(arrival.request),
                Err(error) => {
                    failure = Some(error);
                    None
                }
            });
            closed_loop(model, requests.fuse(), depth, sink);
            if let Some(error) = failure {
                return Err(error.into());
            }
            format!("{} at a time", grouped(depth.into()))
        }
        Pace::Open(_) | Pace::Recorded => {
            try_open_loop(model, arrivals, sink)?;
            "at the recorded times".into()
        }
    };
    let requests = counted(reader.records(), "request");
    let words = format!("{requests} of a {} trace, {when}", reader.format());
    Ok(FedRequests { words, folded, reordered: reader.reordered() })
}

fn mix_words(mix: &Mix, workload: &Workload, requests: u64, pace: Pace) -> String {
    let requests = counted(requests, "request");
    let bytes = grouped(u64::from(workload.request_pages) * HOST_PAGE_BYTES);
    let reads = match mix.is_mixed() {
        true => format!(" ({} % reads)", f64::from(mix.read_ppm) / 10_000.0),
        false => String::new(),
    };
    let when = match pace {
        Pace::Closed { depth } => format!("{} at a time", grouped(depth.into())),
        Pace::Open(Gaps::Constant { gap_ns }) => format!("one every {} ns", grouped(gap_ns)),
        Pace::Open(Gaps::Exponential { mean_ns }) => {
            format!("one every {} ns on average, as a Poisson process", grouped(mean_ns))
        }
        Pace::Recorded => "as recorded".into(),
    };
    format!("{}{reads}, {requests} of {bytes} B, {when}, seed {}", mix.name, workload.seed)
}

impl FedRequests {
    fn notices(&self, page_count: u64) -> Vec<String> {
        let mut notices = Vec::new();
        if self.folded > 0 {
            notices.push(format!(
                "{} beyond the end of the device and folded onto its {} pages of 4 KiB",
                if self.folded == 1 {
                    "1 request lay".into()
                } else {
                    format!("{} requests lay", grouped(self.folded))
                },
                grouped(page_count)
            ));
        }
        if self.reordered > 0 {
            let records = counted(self.reordered, "record");
            notices.push(format!(
                "{records} of the trace came earlier than the one before, and took that one's time"
            ));
        }
        notices
    }
}

/// Returns the reasons why the numbers of an SSD may mislead.
fn doubts(report: &Report) -> Vec<String> {
    let Some(ssd) = &report.ssd else { return Vec::new() };
    let mut doubts = Vec::new();
    let reads = report.kind("read").map_or(0, |kind| kind.bytes / HOST_PAGE_BYTES);
    if ssd.reads_without_flash > 0 && ssd.reads_without_flash * 2 >= reads {
        doubts.push(format!(
            "{} of {} pages were read without the flash, because they were never written or lay in the \
             write buffer; fill the device before, to read what is there",
            grouped(ssd.reads_without_flash),
            grouped(reads)
        ));
    }
    doubts.extend(report.spec().and_then(|spec| transient(ssd, spec)));
    doubts
}

/// Returns a warning if the run was too short. In the long run as many pages are erased as are programmed; if
/// the free ones grow or shrink by more than a quarter of the host's writes, the run was too short.
fn transient(ssd: &SsdReport, spec: &Spec) -> Option<String> {
    let programmed = ssd.programmed_bytes;
    let erased = ssd.erases * u64::from(spec.block_units()) * HOST_PAGE_BYTES;
    if spec.ftl.kind != FtlKind::Page || ssd.written_bytes == 0 {
        return None;
    }
    if erased.abs_diff(programmed) <= ssd.written_bytes / 4 {
        return None;
    }
    let (programmed, erased) = (grouped(programmed), grouped(erased));
    Some(match ssd.cleans {
        0 => format!(
            "no block was cleaned, since {} B were written to a device of {} B: in long use its write \
             amplification and latencies are higher; fill it steadily, or give it more requests",
            grouped(ssd.written_bytes),
            grouped(ssd.host_bytes)
        ),
        _ => format!(
            "{programmed} B were programmed and {erased} B erased, so the free blocks were not yet as \
             in long use: write amplification is of the beginning; give it more requests"
        ),
    })
}
