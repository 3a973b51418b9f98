//! The report as one self-contained page: inline style and drawings, no scripts, nothing fetched.

mod gantt;
mod latency;
mod wear;

use std::fmt::{self, Write};

use nandex_html::{BASE_STYLE, Escaped, Frame};

use super::explain::Explanation;
use super::figures::{Figure, bandwidth, figures, rate};
use super::number::{exact_time, grouped, mean_micros, micros};
use super::sheet::sheet;
use super::summary::{KindReport, Report};

const STYLE: &str = include_str!("page.css");

/// Returns an HTML page of the report, for a browser at any width, light or dark.
///
/// Pointing at a number shows its formula. Names are escaped, and the page forbids itself to load or run
/// anything. Its size is limited for every run and device: drawings take no more than fits on a screen, at
/// most about 1 MiB.
#[must_use]
pub fn html(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut out, report);
    out
}

fn write_page(out: &mut String, report: &Report) -> fmt::Result {
    let title = format!("{}: {}", report.device, report.load);
    let frame = Frame { title: &title, styles: &[BASE_STYLE, STYLE] };
    frame.open(out)?;
    write_header(out, report)?;
    write_cards(out, report)?;
    write_latencies(out, report)?;
    latency::write_distributions(out, report)?;
    latency::write_parts(out, report)?;
    write_figures(out, report)?;
    gantt::write_gantt(out, report)?;
    wear::write_usage(out, report)?;
    wear::write_wear(out, report)?;
    write_slowest(out, report)?;
    write_sheet(out, report)?;
    frame.close(
        out,
        "Written by nandex. Times are of the model and exact; point at a number to see how it is \
         computed. A percentile is a latency that occurred, at most 1/1024 longer than the exact one.",
    )
}

fn write_header(out: &mut String, report: &Report) -> fmt::Result {
    writeln!(
        out,
        "<header>\n<p class=\"eyebrow\">Simulated device</p>\n<h1>{}</h1>\n<p class=\"load\">{}</p>\n\
         <p class=\"lead\">{}</p>",
        Escaped(&report.device),
        Escaped(&report.load),
        Escaped(&report.about),
    )?;
    for notice in &report.notices {
        writeln!(out, "<p class=\"notice\">{}</p>", Escaped(notice))?;
    }
    out.write_str("</header>\n")
}

fn write_cards(out: &mut String, report: &Report) -> fmt::Result {
    let time = exact_time(report.elapsed_ns);
    let mut cards = vec![
        (rate(report.iops(), ""), "IOPS", format!("{} requests / {time}", report.requests)),
        (bandwidth(report.bytes_per_s()), "bandwidth", format!("{} B / {time}", report.bytes)),
    ];
    for kind in report.kinds.iter().filter(|kind| matches!(kind.kind, "read" | "write")) {
        let label = if kind.kind == "read" { "p99 of reads, us" } else { "p99 of writes, us" };
        let how = format!("99 % of {} {}s take no longer", kind.count, kind.kind);
        cards.push((micros(kind.latency.p99_ns), label, how));
    }
    let ssd = report.ssd.as_ref();
    if let Some(amplification) = ssd.and_then(|ssd| ssd.write_amplification) {
        let how = "bytes programmed / bytes written by the host".to_owned();
        cards.push((format!("{amplification:.2}"), "write amplification", how));
    }
    out.write_str("<section class=\"cards\" aria-label=\"The main numbers\">\n")?;
    for (shown, label, how) in cards {
        writeln!(
            out,
            "<div class=\"card\" title=\"{}\"><p class=\"figure\">{shown}</p>\
             <p class=\"label\">{label}</p></div>",
            Escaped(&how)
        )?;
    }
    out.write_str("</section>\n")
}

fn write_latencies(out: &mut String, report: &Report) -> fmt::Result {
    out.write_str(
        "<section>\n<h2>Latency, us</h2>\n<div class=\"wide\"><table>\n<thead><tr><th>Request</th>",
    )?;
    for name in
        ["count", "IOPS", "bandwidth", "min", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"]
    {
        write!(out, "<th class=\"number\">{name}</th>")?;
    }
    out.write_str("</tr></thead>\n<tbody>\n")?;
    for kind in &report.kinds {
        write_latency_row(out, kind, report.elapsed_ns)?;
    }
    out.write_str("</tbody>\n</table></div>\n</section>\n")
}

fn write_latency_row(out: &mut String, kind: &KindReport, elapsed_ns: u64) -> fmt::Result {
    let (latency, time) = (&kind.latency, exact_time(elapsed_ns));
    let (count, name) = (kind.count, kind.kind);
    let share = |percent: &str| format!("{percent} of {count} requests take no longer");
    let cells = [
        (grouped(count), "requests that ended".to_owned()),
        (rate(kind.iops, ""), format!("count / time = {count} / {time}")),
        (bandwidth(kind.bytes_per_s), format!("bytes / time = {} B / {time}", kind.bytes)),
        (micros(latency.min_ns), format!("the shortest: {} ns", latency.min_ns)),
        (mean_micros(latency.mean_ns), format!("{} ns / {count}, exact", latency.total_ns)),
        (micros(latency.p50_ns), share("50 %")),
        (micros(latency.p90_ns), share("90 %")),
        (micros(latency.p99_ns), share("99 %")),
        (micros(latency.p999_ns), share("99.9 %")),
        (micros(latency.p9999_ns), share("99.99 %")),
        (micros(latency.max_ns), format!("the longest: {} ns", latency.max_ns)),
    ];
    write!(out, "<tr><td>{name}</td>")?;
    for (shown, how) in cells {
        write!(out, "<td class=\"number\" title=\"{}\">{shown}</td>", Escaped(&how))?;
    }
    out.write_str("</tr>\n")
}

fn write_list(out: &mut String, figures: &[Figure]) -> fmt::Result {
    out.write_str("<dl>\n")?;
    for figure in figures {
        writeln!(
            out,
            "<div title=\"{}\"><dt>{}</dt><dd>{}</dd></div>",
            Escaped(&figure.how),
            Escaped(&figure.name),
            Escaped(&figure.shown)
        )?;
    }
    out.write_str("</dl>\n")
}

fn write_figures(out: &mut String, report: &Report) -> fmt::Result {
    for section in figures(report) {
        writeln!(out, "<section>\n<h2>{}</h2>", section.title)?;
        write_list(out, &section.figures)?;
        out.write_str("</section>\n")?;
    }
    Ok(())
}

fn write_slowest(out: &mut String, report: &Report) -> fmt::Result {
    if report.slowest.is_empty() {
        return Ok(());
    }
    out.write_str(
        "<section>\n<h2>The slowest requests, explained</h2>\n\
         <p class=\"note\">Terms add up to their part, and parts to the latency.</p>\n",
    )?;
    for done in &report.slowest {
        let explained = Explanation::of(done, report.spec()).to_string();
        writeln!(out, "<pre>{}</pre>", Escaped(&explained))?;
    }
    out.write_str("</section>\n")
}

fn write_sheet(out: &mut String, report: &Report) -> fmt::Result {
    if report.spec().is_none() && report.charts.preset.is_none() {
        return Ok(());
    }
    out.write_str("<section>\n<h2>What the device is made of</h2>\n")?;
    if let Some(spec) = report.spec() {
        write_list(out, &sheet(spec))?;
    }
    if let Some(preset) = &report.charts.preset {
        writeln!(
            out,
            "<details><summary>As a file for --spec</summary>\n<pre>{}</pre></details>",
            Escaped(preset)
        )?;
    }
    out.write_str("</section>\n")
}
