//! Drawings of latencies: their distribution, and their parts.

use std::fmt::{self, Write};

use crate::report::collect::PART_NAMES;
use crate::report::number::{Thousandths, exact_time, grouped, mean_micros, time};
use crate::report::summary::{KindReport, Report};
use nandex_html::draw::{Rect, close, legend, line, open, word, word_width};

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 48.0;
const TOP: f64 = 76.0;
const HEIGHT: f64 = 190.0;

/// Draws each kind: latency from left to right on a logarithmic scale, and the number of requests with it.
pub(super) fn write_distributions(out: &mut String, report: &Report) -> fmt::Result {
    out.write_str(
        "<section>\n<h2>Distribution of latencies</h2>\n<p class=\"note\">Bars: share of requests in \
         each eighth of an octave, against the largest. Line: share that take no longer.</p>\n",
    )?;
    for kind in &report.kinds {
        write_distribution(out, kind)?;
    }
    out.write_str("</section>\n")
}

/// The logarithmic scale of a drawing, in octaves.
struct Scale {
    from: f64,
    octaves: f64,
}

impl Scale {
    fn of(kind: &KindReport) -> Self {
        let from = kind.distribution.first().map_or(1, |bin| bin.from_ns.max(1)) as f64;
        let to = kind.distribution.last().map_or(2, |bin| bin.to_ns.max(2)) as f64;
        // An octave at least to either side, so that one bin does not fill the page.
        let (from, to) = (from.log2().floor() - 1.0, to.log2().ceil() + 1.0);
        Self { from, octaves: to - from }
    }

    fn x(&self, ns: u64) -> f64 {
        let octave = (ns.max(1) as f64).log2() - self.from;
        LEFT + (octave / self.octaves).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }
}

fn write_distribution(out: &mut String, kind: &KindReport) -> fmt::Result {
    let scale = Scale::of(kind);
    writeln!(out, "<h3>{}</h3>", kind.kind)?;
    let latency = &kind.latency;
    if latency.min_ns == latency.max_ns {
        let (all, each) = (grouped(kind.count), exact_time(latency.min_ns));
        return writeln!(out, "<p class=\"note\">All {all} took {each}.</p>");
    }
    let label = format!("distribution of {} latencies", kind.kind);
    open(out, WIDTH, TOP + HEIGHT + 34.0, &label)?;
    write_axes(out, &scale)?;
    let most = kind.distribution.iter().map(|bin| bin.count).max().unwrap_or(1);
    let mut passed = 0;
    let mut path = String::new();
    for bin in &kind.distribution {
        let (x, end) = (scale.x(bin.from_ns), scale.x(bin.to_ns));
        let height = (bin.count as f64 / most as f64 * HEIGHT).max(0.75);
        let y_before = TOP + HEIGHT * (1.0 - passed as f64 / kind.count as f64);
        passed += bin.count;
        let y_after = TOP + HEIGHT * (1.0 - passed as f64 / kind.count as f64);
        let start = if path.is_empty() { 'M' } else { 'L' };
        write!(path, "{start}{x:.1} {y_before:.1}L{end:.1} {y_after:.1}")?;
        let share = Thousandths::percent(bin.count.into(), kind.count.into()).unwrap_or_default();
        let (from, to) = (exact_time(bin.from_ns), exact_time(bin.to_ns));
        let title = format!("{from} to {to}: {} requests, {share} %", bin.count);
        let (width, y) = ((end - x - 0.5).max(0.75), TOP + HEIGHT - height);
        writeln!(out, "{}", Rect { class: "bar", x, y, width, height, title: &title })?;
    }
    writeln!(out, "<path class=\"cdf\" d=\"{path}\"/>")?;
    write_marks(out, kind, &scale)?;
    close(out)
}

fn write_axes(out: &mut String, scale: &Scale) -> fmt::Result {
    for percent in [0.0, 50.0, 100.0] {
        let y = TOP + HEIGHT * (1.0 - percent / 100.0);
        line(out, "grid", (LEFT, y), (WIDTH - RIGHT, y))?;
        word(out, (LEFT - 8.0, y + 4.0), "end", &format!("{percent:.0} %"))?;
    }
    // Fewer words if there are many octaves, so that they do not touch.
    let factors: &[u64] = if scale.octaves < 8.0 { &[1, 2, 5] } else { &[1] };
    for power in 0..19 {
        for factor in factors {
            let ns = factor * 10_u64.pow(power);
            let octave = (ns as f64).log2() - scale.from;
            if octave < 0.0 || octave > scale.octaves {
                continue;
            }
            let x = scale.x(ns);
            line(out, "grid", (x, TOP), (x, TOP + HEIGHT))?;
            word(out, (x, TOP + HEIGHT + 26.0), "middle", &exact_time(ns))?;
        }
    }
    Ok(())
}

/// Draws the percentiles as marks on top, in three rows; a word that fits none is omitted.
fn write_marks(out: &mut String, kind: &KindReport, scale: &Scale) -> fmt::Result {
    let latency = &kind.latency;
    let marks = [
        ("p50", latency.p50_ns),
        ("p99", latency.p99_ns),
        ("max", latency.max_ns),
        ("p99.9", latency.p999_ns),
    ];
    let mut taken: Vec<(usize, f64, f64)> = Vec::new();
    for (name, ns) in marks {
        let x = scale.x(ns);
        line(out, "mark", (x, TOP - 4.0), (x, TOP + HEIGHT))?;
        let text = format!("{name} {}", time(ns));
        let half = word_width(&text) / 2.0;
        let middle = x.clamp(LEFT + half, WIDTH - half);
        let (from, to) = (middle - half, middle + half);
        let is_free =
            |row: &usize| taken.iter().all(|it| it.0 != *row || it.2 <= from || it.1 >= to);
        let Some(row) = (0..3).find(is_free) else { continue };
        taken.push((row, from, to));
        word(out, (middle, TOP - 10.0 - 22.0 * row as f64), "middle", &text)?;
    }
    Ok(())
}

/// The colours of the parts, in their order.
const PART_CLASSES: [&str; 6] = ["c0", "c1", "c2", "c3", "c4", "c5"];

/// Draws a stacked bar for each kind: its mean latency, part by part.
pub(super) fn write_parts(out: &mut String, report: &Report) -> fmt::Result {
    out.write_str("<section>\n<h2>Where the time of a request went</h2>\n")?;
    let entries: Vec<_> = PART_CLASSES.into_iter().zip(PART_NAMES).collect();
    legend(out, &entries)?;
    let longest = report.kinds.iter().map(|kind| kind.latency.mean_ns.float()).fold(0.0, f64::max);
    for kind in &report.kinds {
        write_part_bar(out, kind, longest)?;
    }
    out.write_str("</section>\n")
}

fn write_part_bar(out: &mut String, kind: &KindReport, longest: f64) -> fmt::Result {
    let mean = mean_micros(kind.latency.mean_ns);
    writeln!(out, "<h3>{}, {mean} us on average</h3>", kind.kind)?;
    open(out, WIDTH, 34.0, &format!("parts of the mean {} latency", kind.kind))?;
    let scale = if longest > 0.0 { WIDTH / longest } else { 0.0 };
    let mut x = 0.0;
    let parts = kind.parts_mean_ns.in_order().into_iter().zip(kind.parts_total_ns.in_order());
    for ((part, total), (class, name)) in parts.zip(PART_CLASSES.into_iter().zip(PART_NAMES)) {
        let width = part.float() * scale;
        let time = mean_micros(part);
        let share =
            Thousandths::percent(total.into(), kind.latency.total_ns.into()).unwrap_or_default();
        let title = format!("{name}: {time} us, {share:.1} % = {total} ns / {}", kind.count);
        if width > 0.0 {
            let rect = Rect { class, x, y: 0.0, width, height: 34.0, title: &title };
            writeln!(out, "{rect}")?;
        }
        let text = format!("{name} {time}");
        if width > word_width(&text) {
            writeln!(
                out,
                "<text class=\"inside\" x=\"{:.1}\" y=\"22\" text-anchor=\"middle\">{text}</text>",
                x + width / 2.0
            )?;
        }
        x += width;
    }
    close(out)
}
