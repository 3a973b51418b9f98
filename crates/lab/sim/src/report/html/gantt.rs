//! A window of the run: the activity of the controller, the link, the buses and the units of flash.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use crate::report::number::{exact_time, grouped, time};
use crate::report::perfetto::{activity_name, resource_name};
use crate::report::summary::Report;
use crate::ssd::{Activity, Resource, Span};
use nandex_html::draw::{Rect, close, legend, line, open, round_times, word, word_width};

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 132.0;
const ROW: f64 = 20.0;
/// The maximum numbers of rows and spans of a drawing.
const ROWS_MAX: usize = 48;
const SPANS_MAX: usize = 1500;

/// The content of the drawing: a period of time with a limited number of spans.
struct Window<'a> {
    from_ns: u64,
    to_ns: u64,
    spans: Vec<&'a Span>,
    rows: BTreeMap<Resource, usize>,
    rows_left_out: usize,
    /// The explained request, whose spans are highlighted.
    token: Option<u64>,
}

impl<'a> Window<'a> {
    /// Returns the window around the slowest request if its spans were recorded, else the beginning of the
    /// run.
    fn of(report: &'a Report) -> Option<Self> {
        let (spans, _) = report.spans();
        let kept_until = kept_until(report)?;
        let mut first: Vec<_> = report.first().0.iter().collect();
        first.sort_by_key(|done| std::cmp::Reverse(done.finished_ns - done.submitted_ns));
        let mut slow = report.slowest.iter().chain(first);
        let slow = slow.find(|done| done.finished_ns <= kept_until);
        let (from_ns, to_ns) = match slow {
            Some(done) => {
                let margin = (done.finished_ns - done.submitted_ns) / 10;
                (done.submitted_ns.saturating_sub(margin), done.finished_ns.saturating_add(margin))
            }
            None => (spans.iter().map(|span| span.start_ns).min()?, kept_until),
        };
        let within = |span: &&Span| span.end_ns > from_ns && span.start_ns < to_ns;
        let mut spans: Vec<&Span> = spans.iter().filter(within).collect();
        spans.sort_by_key(|span| (span.end_ns, span.start_ns));
        let mut window = Self {
            from_ns,
            to_ns,
            spans,
            rows: BTreeMap::new(),
            rows_left_out: 0,
            token: slow.map(|done| done.request.token),
        };
        window.shorten();
        window.choose_rows();
        (!window.spans.is_empty()).then_some(window)
    }

    /// Keeps the end of the window, where the slow request ends too, if there are more spans than can be
    /// drawn.
    fn shorten(&mut self) {
        if let Some(surplus) = self.spans.len().checked_sub(SPANS_MAX + 1) {
            self.from_ns = self.from_ns.max(self.spans[surplus].end_ns);
            let from_ns = self.from_ns;
            self.spans.retain(|span| span.end_ns > from_ns);
        }
    }

    /// Chooses a row for each resource; those of the request come first if there are too many.
    fn choose_rows(&mut self) {
        let mut resources: Vec<(bool, Resource)> = Vec::new();
        for span in &self.spans {
            resources.push((self.token.is_none() || span.token != self.token, span.resource));
        }
        resources.sort_unstable();
        let mut seen = std::collections::BTreeSet::new();
        resources.retain(|(_, resource)| seen.insert(*resource));
        self.rows_left_out = resources.len().saturating_sub(ROWS_MAX);
        let mut chosen: Vec<_> = resources.into_iter().take(ROWS_MAX).map(|it| it.1).collect();
        chosen.sort_by_key(|&resource| order(resource));
        self.rows = chosen.into_iter().enumerate().map(|(row, resource)| (resource, row)).collect();
    }

    fn x(&self, ns: u64) -> f64 {
        let ns = ns.clamp(self.from_ns, self.to_ns);
        let share = (ns - self.from_ns) as f64 / (self.to_ns - self.from_ns).max(1) as f64;
        LEFT + share * (WIDTH - LEFT - 8.0)
    }
}

/// Returns the time until which all spans were recorded.
fn kept_until(report: &Report) -> Option<u64> {
    match report.spans() {
        (spans, 0) => spans.iter().map(|span| span.end_ns).max(),
        // Spans are recorded in the order in which they were planned, and begin no earlier than that.
        (spans, _) => spans.iter().rev().take(64).map(|span| span.start_ns).min(),
    }
}

/// Orders the host side first, then each bus, then the units.
const fn order(resource: Resource) -> (u8, u32) {
    match resource {
        Resource::Controller => (0, 0),
        Resource::LinkIn => (0, 1),
        Resource::LinkOut => (0, 2),
        Resource::Bus(bus) => (1, bus),
        Resource::Unit(unit) => (2, unit),
    }
}

const fn class(activity: Activity) -> &'static str {
    match activity {
        Activity::Read => "read",
        Activity::Program => "program",
        Activity::Clean => "clean",
        Activity::Erase => "erase",
        Activity::Transfer => "transfer",
        Activity::Command => "command",
    }
}

/// Draws the window; nothing if no spans were recorded.
pub(super) fn write_gantt(out: &mut String, report: &Report) -> fmt::Result {
    let Some(window) = Window::of(report) else { return Ok(()) };
    let length = time(window.to_ns - window.from_ns);
    write!(out, "<section>\n<h2>Units and buses, {length} of the run</h2>\n<p class=\"note\">")?;
    match window.token {
        Some(token) => write!(
            out,
            "The window of request {token}, the slowest whose time was recorded; its own work is framed."
        )?,
        None => out.write_str("The beginning of the run.")?,
    }
    if window.rows_left_out > 0 {
        write!(out, " {} more rows are left out.", grouped(window.rows_left_out as u64))?;
    }
    out.write_str("</p>\n")?;
    let activities = [
        Activity::Read,
        Activity::Program,
        Activity::Clean,
        Activity::Erase,
        Activity::Transfer,
        Activity::Command,
    ];
    let present =
        activities.into_iter().filter(|it| window.spans.iter().any(|span| span.activity == *it));
    let entries: Vec<_> = present.map(|it| (class(it), activity_name(it))).collect();
    legend(out, &entries)?;
    write_rows(out, &window)?;
    out.write_str("</section>\n")
}

fn write_rows(out: &mut String, window: &Window) -> fmt::Result {
    let height = window.rows.len() as f64 * ROW;
    open(out, WIDTH, height + 30.0, "busy times of units and buses")?;
    let mut end = LEFT - 40.0;
    for ns in round_times(window.from_ns, window.to_ns, 6) {
        let x = window.x(ns);
        line(out, "grid", (x, 0.0), (x, height))?;
        let text = exact_time(ns);
        let half = word_width(&text) / 2.0;
        let middle = x.min(WIDTH - half);
        if middle - half >= end {
            word(out, (middle, height + 22.0), "middle", &text)?;
            end = middle + half;
        }
    }
    for (&resource, &row) in &window.rows {
        let y = row as f64 * ROW;
        line(out, "grid", (LEFT, y + ROW), (WIDTH, y + ROW))?;
        word(out, (LEFT - 8.0, y + 15.0), "end", &resource_name(resource))?;
    }
    for span in &window.spans {
        let Some(&row) = window.rows.get(&span.resource) else { continue };
        write_span(out, window, span, row)?;
    }
    close(out)
}

fn write_span(out: &mut String, window: &Window, span: &Span, row: usize) -> fmt::Result {
    let (x, end) = (window.x(span.start_ns), window.x(span.end_ns));
    let whose = match span.token {
        Some(token) => format!("request {token}"),
        None => "the device's own".to_owned(),
    };
    let (what, name) = (activity_name(span.activity), resource_name(span.resource));
    let (start, length) = (exact_time(span.start_ns), exact_time(span.end_ns - span.start_ns));
    let title = format!("{name}: {what} for {length} from {start}, {whose}");
    let own = span.token.is_some() && span.token == window.token;
    let class =
        if own { format!("{} own", class(span.activity)) } else { class(span.activity).into() };
    let (y, width) = (row as f64 * ROW + 2.0, (end - x).max(0.6));
    writeln!(out, "{}", Rect { class: &class, x, y, width, height: ROW - 4.0, title: &title })
}
