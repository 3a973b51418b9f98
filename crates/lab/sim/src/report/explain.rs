//! The latency of one request, part by part, with the formula behind each part.

use std::fmt;

use serde::Serialize;

use super::collect::{PART_NAMES, kind_name, parts_in_order};
use super::number::{binary_bytes, counted, exact_ps, exact_time};
use crate::spec::HOST_PAGE_BYTES;
use crate::{Done, RequestKind, Spec};

/// The time of one request, part by part. The terms of a part add up to it, and the parts to the latency.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Explanation {
    /// The caller's name for the request.
    pub token: u64,
    /// `read`, `write`, `sync` or `discard`.
    pub kind: &'static str,
    /// The first page of 4 KiB.
    pub page: u64,
    /// The number of pages.
    pub pages: u32,
    /// The time of its submission.
    pub submitted_ns: u64,
    /// The time of its end.
    pub finished_ns: u64,
    /// The time between these.
    pub latency_ns: u64,
    /// The parts, in the order in which a request meets them.
    pub parts: Vec<PartExplained>,
}

/// One part of a latency.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PartExplained {
    /// Its name.
    pub part: &'static str,
    /// Its duration.
    pub ns: u64,
    /// Its terms; empty if it took no time.
    pub terms: Vec<Term>,
}

/// One term of a part.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Term {
    /// Its name, and its formula if it has one: `data: 4096 B x 2.5 ns`.
    pub what: String,
    /// Its duration.
    pub ns: u64,
}

/// Explains the latency of a request to an SSD with this description, over several lines.
#[must_use]
pub fn explain(done: &Done, spec: &Spec) -> String {
    Explanation::of(done, Some(spec)).to_string()
}

impl Explanation {
    /// Explains a request. Without a description the result has the parts, but no formulas.
    #[must_use]
    pub fn of(done: &Done, spec: Option<&Spec>) -> Self {
        let terms = match spec {
            Some(spec) => Formulas { done, spec }.terms(),
            None => PLAIN.map(|what| vec![(what.into(), u64::MAX)]),
        };
        let parts = PART_NAMES.into_iter().zip(parts_in_order(&done.parts)).zip(terms);
        Self {
            token: done.request.token,
            kind: kind_name(done.request.kind),
            page: done.request.page,
            pages: done.request.pages,
            submitted_ns: done.submitted_ns,
            finished_ns: done.finished_ns,
            latency_ns: done.finished_ns - done.submitted_ns,
            parts: parts.map(|((part, ns), terms)| PartExplained::of(part, ns, terms)).collect(),
        }
    }
}

/// The parts without a description.
const PLAIN: [&str; 6] = [
    "waited for space in the device",
    "controller and transfer to or from the host, with waiting for either",
    "waited for other requests",
    "waited for cleaning",
    "transfer inside the device",
    "the medium itself",
];

impl PartExplained {
    /// Gives each term its share of the rest, in order; a term that ends early overlapped with another part.
    fn of(part: &'static str, ns: u64, formulas: Vec<(String, u64)>) -> Self {
        let mut left = ns;
        let mut terms = Vec::new();
        for (what, at_most) in formulas {
            let ns = at_most.min(left);
            left -= ns;
            if ns > 0 {
                let is_cut = ns < at_most && at_most != u64::MAX;
                let what =
                    if is_cut { format!("{what}, the rest of it while waiting") } else { what };
                terms.push(Term { what, ns });
            }
        }
        debug_assert!(left == 0, "the last formula takes what is left");
        Self { part, ns, terms }
    }
}

/// The formulas of a request's parts: each list ends with one that takes the rest.
struct Formulas<'a> {
    done: &'a Done,
    spec: &'a Spec,
}

/// The traffic on the bus: commands, and bytes of data.
#[derive(Clone, Copy)]
struct Crossing {
    commands: u64,
    bytes: u64,
}

impl Formulas<'_> {
    fn terms(&self) -> [Vec<(String, u64)>; 6] {
        [
            self.admission(),
            self.host(),
            vec![(self.queue().into(), u64::MAX)],
            vec![("waited for a unit of flash that moved pages or erased".into(), u64::MAX)],
            self.bus(),
            self.array(),
        ]
    }

    fn admission(&self) -> Vec<(String, u64)> {
        let depth = self.spec.host.depth;
        let mut what = format!("waited until fewer than {depth} requests were in the device");
        if self.spec.host.buffer_bytes > 0 && self.done.request.kind == RequestKind::Write {
            let buffer = binary_bytes(self.spec.host.buffer_bytes.into());
            what += &format!(", or for space in its write buffer of {buffer}");
        }
        vec![(what, u64::MAX)]
    }

    fn host(&self) -> Vec<(String, u64)> {
        let host = &self.spec.host;
        let mut terms = vec![("controller, for each request".to_owned(), host.controller_ns)];
        match self.done.request.kind {
            RequestKind::Read => {
                terms.push(("further latency of a read".into(), host.read_latency_ns))
            }
            RequestKind::Write => {
                terms.push(("further latency of a write".into(), host.write_latency_ns));
            }
            RequestKind::Sync | RequestKind::Discard => {}
        }
        if let Some(bytes) = self.link_bytes() {
            let each = exact_ps(host.link_ps_per_byte);
            terms.push((format!("link: {bytes} B x {each}"), host.link_ns(bytes)));
        }
        terms.push(("waited for the controller or the link, which serve in turn".into(), u64::MAX));
        terms
    }

    /// Returns the bytes whose transfer over the link took time of its own: all of a write, and for a read
    /// the piece that came last, since the others crossed while it was in the flash. `None` if that is not
    /// known.
    fn link_bytes(&self) -> Option<u64> {
        let request = &self.done.request;
        let all = u64::from(request.pages) * HOST_PAGE_BYTES;
        match request.kind {
            RequestKind::Write => Some(all),
            RequestKind::Read if self.done.parts.array_ns == 0 && self.done.parts.bus_ns == 0 => {
                Some(all)
            }
            RequestKind::Read if request.pages == 1 || self.spec.flash.page_units() == 1 => {
                Some(HOST_PAGE_BYTES)
            }
            RequestKind::Read => match self.crossing()? {
                Crossing { commands: 1, bytes } if !self.spec.timing.whole_page_transfer => {
                    Some(bytes)
                }
                _ => None,
            },
            RequestKind::Sync | RequestKind::Discard => None,
        }
    }

    fn queue(&self) -> &'static str {
        match self.done.request.kind {
            RequestKind::Sync => "waited until the write buffer was on the flash",
            _ => "waited for a unit of flash or a bus that served other requests",
        }
    }

    /// Returns the traffic that takes exactly the time that was spent on the bus.
    fn crossing(&self) -> Option<Crossing> {
        let (timing, flash) = (&self.spec.timing, &self.spec.flash);
        let bus_ns = self.done.parts.bus_ns;
        let mates = if self.spec.parallel.two_plane { flash.planes } else { 1 };
        (1..=u64::from(mates)).find_map(|commands| {
            let page_bytes = u64::from(flash.page_bytes);
            let data_ns = bus_ns.checked_sub(commands * timing.command_ns)?;
            if self.done.request.kind == RequestKind::Write || timing.whole_page_transfer {
                let whole_ns = self.pages_ns(page_bytes, commands);
                return (whole_ns == data_ns)
                    .then_some(Crossing { commands, bytes: page_bytes * commands });
            }
            let units = commands..=commands * u64::from(flash.page_units());
            let bytes = units.map(|units| units * HOST_PAGE_BYTES);
            let mut fitting = bytes.filter(|&bytes| timing.transfer_ns(bytes) == data_ns);
            fitting.next().map(|bytes| Crossing { commands, bytes })
        })
    }

    /// Returns the time of the bus for whole pages: those of a read cross as one, those of a program one by
    /// one, which matters if a time for each is rounded up.
    fn pages_ns(&self, page_bytes: u64, pages: u64) -> u64 {
        let timing = &self.spec.timing;
        match self.done.request.kind {
            RequestKind::Read => timing.transfer_ns(page_bytes * pages),
            _ => timing.transfer_ns(page_bytes) * pages,
        }
    }

    fn bus(&self) -> Vec<(String, u64)> {
        let timing = &self.spec.timing;
        let mut terms = Vec::new();
        if let Some(Crossing { commands, bytes }) = self.crossing() {
            let command = exact_time(timing.command_ns);
            terms.push((format!("commands: {commands} x {command}"), commands * timing.command_ns));
            let what = match commands {
                1 => format!("data: {}", self.data(bytes)),
                planes => format!("data of {planes} planes together: {}", self.data(bytes)),
            };
            terms.push((what, self.done.parts.bus_ns - commands * timing.command_ns));
        }
        terms.push(("commands and data".into(), u64::MAX));
        terms
    }

    /// Returns `4096 B x 2.5 ns`, with the bytes that cross in addition to the data.
    fn data(&self, bytes: u64) -> String {
        let each = exact_ps(self.spec.timing.transfer_ps_per_byte);
        match self.spec.timing.spare_bytes_per_sector {
            0 => format!("{bytes} B x {each}"),
            spare => {
                let sectors = bytes.div_ceil(512);
                format!("({bytes} + {sectors} x {spare}) B x {each}")
            }
        }
    }

    fn array(&self) -> Vec<(String, u64)> {
        let timing = &self.spec.timing;
        let (what, each) = match self.done.request.kind {
            RequestKind::Read => ("reading a page into the register, tR", timing.read_ns),
            RequestKind::Write => ("programming a page, tPROG", timing.program_ns),
            RequestKind::Discard | RequestKind::Sync => ("erasing, tBERS", timing.erase_ns),
        };
        let whole = self.done.parts.array_ns;
        let mut terms = Vec::new();
        if each > 0 && whole.is_multiple_of(each) {
            let times = whole / each;
            terms.push((format!("{what}: {times} x {}", exact_time(each)), whole));
        }
        terms.push(("the flash array".into(), u64::MAX));
        terms
    }
}

/// Writes several lines: the request, a line for each term, and the sum.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { token, kind, page, pages, .. } = self;
        let latency = exact_time(self.latency_ns);
        match pages {
            0 => writeln!(f, "request {token}, {kind}: {latency}")?,
            _ => {
                let pages = counted((*pages).into(), "page");
                writeln!(f, "request {token}, {kind} of {pages} from page {page}: {latency}")?;
            }
        }
        for part in &self.parts {
            let (name, time) = (part.part, exact_time(part.ns));
            if part.terms.is_empty() {
                writeln!(f, "  {name:<10} {time:>14}")?;
            }
            for (index, term) in part.terms.iter().enumerate() {
                let (name, time) = if index == 0 { (name, time.as_str()) } else { ("", "") };
                writeln!(f, "  {name:<10} {time:>14}   {} = {}", term.what, exact_time(term.ns))?;
            }
        }
        let (from, to) = (exact_time(self.submitted_ns), exact_time(self.finished_ns));
        writeln!(f, "  {:<10} {latency:>14}   from {from} to {to}", "sum")
    }
}
