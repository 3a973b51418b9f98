//! Spans and requests as a trace in Chrome's JSON format, for Perfetto and `chrome://tracing`.

use std::io::{self, Write};

use super::collect::{kind_name, parts_in_order};
use super::summary::Report;
use crate::Done;
use crate::ssd::{Activity, Resource, Span};

/// Writes a trace: a track for each unit of flash, bus, link and the controller, and each request as an
/// asynchronous slice with its parts in nanoseconds.
///
/// Times are microseconds with three decimals, printed from whole nanoseconds. The trace has the spans and
/// requests that the report stored, and `otherData` has the number of missing ones.
///
/// # Errors
/// Returns the errors of `out`.
pub fn write_trace(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let (spans, spans_missed) = report.spans();
    let (requests, requests_missed) = report.first();
    writeln!(
        out,
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"device\":{},\"load\":{},\
         \"spans_left_out\":{spans_missed},\"requests_left_out\":{requests_missed}}},\
         \"traceEvents\":[",
        quoted(&report.device),
        quoted(&report.load)
    )?;
    write_names(spans, out)?;
    for span in spans {
        write_span(span, out)?;
    }
    for done in requests {
        write_request(done, out)?;
    }
    write!(
        out,
        "{{\"ph\":\"M\",\"pid\":{REQUESTS},\"name\":\"process_name\",\
         \"args\":{{\"name\":\"requests\"}}}}\n]}}\n"
    )
}

/// The groups of tracks, from top to bottom.
const REQUESTS: u32 = 1;
const HOST: u32 = 2;
const BUSES: u32 = 3;
const UNITS: u32 = 4;

/// Returns the group and the track of a resource.
const fn track(resource: Resource) -> (u32, u32) {
    match resource {
        Resource::Controller => (HOST, 1),
        Resource::LinkIn => (HOST, 2),
        Resource::LinkOut => (HOST, 3),
        Resource::Bus(bus) => (BUSES, bus + 1),
        Resource::Unit(unit) => (UNITS, unit + 1),
    }
}

/// Returns the name of a resource.
pub(super) fn resource_name(resource: Resource) -> String {
    match resource {
        Resource::Controller => "controller".into(),
        Resource::LinkIn => "link in".into(),
        Resource::LinkOut => "link out".into(),
        Resource::Bus(bus) => format!("bus {bus}"),
        Resource::Unit(unit) => format!("unit {unit}"),
    }
}

/// Returns the name of an activity.
pub(super) const fn activity_name(activity: Activity) -> &'static str {
    match activity {
        Activity::Read => "read",
        Activity::Program => "program",
        Activity::Clean => "clean",
        Activity::Erase => "erase",
        Activity::Transfer => "transfer",
        Activity::Command => "command",
    }
}

fn write_names(spans: &[Span], out: &mut impl Write) -> io::Result<()> {
    for (pid, name) in [(HOST, "host side"), (BUSES, "buses"), (UNITS, "units of flash")] {
        writeln!(
            out,
            "{{\"ph\":\"M\",\"pid\":{pid},\"name\":\"process_name\",\"args\":{{\"name\":\"{name}\"}}}},"
        )?;
    }
    let mut resources: Vec<Resource> = spans.iter().map(|span| span.resource).collect();
    resources.sort_unstable();
    resources.dedup();
    for resource in resources {
        let ((pid, tid), name) = (track(resource), resource_name(resource));
        writeln!(
            out,
            "{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"thread_name\",\
             \"args\":{{\"name\":\"{name}\"}}}},"
        )?;
    }
    Ok(())
}

fn write_span(span: &Span, out: &mut impl Write) -> io::Result<()> {
    let (pid, tid) = track(span.resource);
    let (name, at) = (activity_name(span.activity), micros(span.start_ns));
    let length = micros(span.end_ns - span.start_ns);
    write!(
        out,
        "{{\"ph\":\"X\",\"pid\":{pid},\"tid\":{tid},\"name\":\"{name}\",\"ts\":{at},\"dur\":{length}"
    )?;
    match span.token {
        Some(token) => writeln!(out, ",\"args\":{{\"request\":{token}}}}},"),
        None => writeln!(out, "}},"),
    }
}

fn write_request(done: &Done, out: &mut impl Write) -> io::Result<()> {
    let (request, name) = (done.request, kind_name(done.request.kind));
    let (token, at, end) = (request.token, micros(done.submitted_ns), micros(done.finished_ns));
    let both =
        format!("\"pid\":{REQUESTS},\"cat\":\"request\",\"id\":\"{token}\",\"name\":\"{name}\"");
    let [admission, host, queue, cleaning, bus, array] = parts_in_order(&done.parts);
    writeln!(
        out,
        "{{\"ph\":\"b\",{both},\"ts\":{at},\"args\":{{\"page\":{},\"pages\":{},\
         \"admission_ns\":{admission},\"host_ns\":{host},\"queue_ns\":{queue},\
         \"cleaning_ns\":{cleaning},\"bus_ns\":{bus},\"array_ns\":{array}}}}},",
        request.page, request.pages
    )?;
    writeln!(out, "{{\"ph\":\"e\",{both},\"ts\":{end}}},")
}

/// Formats nanoseconds as microseconds, exactly.
fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// Formats a string of JSON.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out += &format!("\\u{:04x}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_whatever_they_hold() {
        assert_eq!(quoted("a \"b\" \\ \n\u{7f}"), r#""a \"b\" \\ \u000a\u007f""#);
    }

    #[test]
    fn times_are_microseconds_to_the_nanosecond() {
        assert_eq!(micros(1_000_000_000_000_001), "1000000000000.001");
        assert_eq!(micros(7), "0.007");
    }
}
