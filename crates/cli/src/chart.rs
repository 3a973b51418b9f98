//! Latency over distance, drawn for a terminal and as SVG.

use std::fmt::Write as _;

use nandex::raw::device::probe::{Axis, Curve};
use nandex_html::Escaped;

/// The bars from the lowest to the highest.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The number of points in one line of bars.
const LINE_POINTS: usize = 64;
/// The share of the lowest below which a spread is drawn as flat.
const SPREAD_MIN: f64 = 0.1;

/// The sizes of a chart of one curve in SVG units.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 120.0;
const LEFT: f64 = 60.0;
const HEAD: f64 = 28.0;

/// A scale that maps a latency to its place between the lowest and the highest, from 0 to 1.
struct Scale {
    low: f64,
    spread: f64,
}

impl Scale {
    fn of(curve: &Curve) -> Self {
        let all = || curve.points.iter().map(|it| it.1 as f64);
        let low = all().fold(f64::INFINITY, f64::min);
        let high = all().fold(0.0, f64::max);
        Self { low, spread: (high - low).max(low * SPREAD_MIN).max(1.0) }
    }

    fn part(&self, ns: u64) -> f64 {
        ((ns as f64 - self.low) / self.spread).clamp(0.0, 1.0)
    }
}

fn unit(axis: Axis) -> &'static str {
    match axis {
        Axis::Pages => "pages",
        Axis::Chunks => "chunks",
    }
}

/// Draws a curve as lines of bars, each beginning with its first distance.
pub fn bars(curve: &Curve) -> String {
    let scale = Scale::of(curve);
    let mut text = format!("{}\n", curve.about);
    for line in curve.points.chunks(LINE_POINTS) {
        let bars: String = line
            .iter()
            .map(|(_, ns)| BARS[(scale.part(*ns) * (BARS.len() - 1) as f64).round() as usize])
            .collect();
        text.push_str(&format!("{:>5} {bars}\n", line[0].0));
    }
    let (low, high) = (scale.low / 1000.0, (scale.low + scale.spread) / 1000.0);
    text.push_str(&format!("      ▁ {low:.1} us  █ {high:.1} us\n"));
    text
}

/// Draws all curves, one below the other, as one SVG picture.
pub fn svg(title: &str, curves: &[Curve]) -> String {
    let each = HEIGHT + HEAD + 30.0;
    let height = HEAD + each * curves.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"18\" font-size=\"14\">{}</text>\n",
        LEFT + WIDTH + 20.0,
        Escaped(title)
    );
    for (index, curve) in curves.iter().enumerate() {
        panel(&mut svg, curve, HEAD + each * index as f64);
    }
    svg.push_str("</svg>\n");
    svg
}

fn panel(svg: &mut String, curve: &Curve, top: f64) {
    let scale = Scale::of(curve);
    let base = top + HEAD + HEIGHT;
    let width = WIDTH / curve.points.len().max(1) as f64;
    let mut add = |line: std::fmt::Arguments<'_>| {
        svg.write_fmt(line).expect("a string takes everything");
        svg.push('\n');
    };
    add(format_args!("<text x=\"{LEFT}\" y=\"{:.0}\">{}</text>", top + 16.0, Escaped(curve.about)));
    for (index, (distance, ns)) in curve.points.iter().enumerate() {
        let bar = 4.0 + scale.part(*ns) * (HEIGHT - 4.0);
        add(format_args!(
            "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{bar:.2}\" fill=\"#36c\">\
             <title>{distance} {}: {:.1} us</title></rect>",
            LEFT + width * index as f64,
            base - bar,
            (width * 0.8).max(0.5),
            unit(curve.axis),
            *ns as f64 / 1000.0
        ));
    }
    let (low, high) = (scale.low / 1000.0, (scale.low + scale.spread) / 1000.0);
    for (y, us) in [(base, low), (top + HEAD + 10.0, high)] {
        let x = LEFT - 6.0;
        add(format_args!("<text x=\"{x}\" y=\"{y:.0}\" text-anchor=\"end\">{us:.0} us</text>"));
    }
    let ends = curve.points.first().zip(curve.points.last());
    if let Some((first, last)) = ends {
        let (y, right, unit) = (base + 15.0, LEFT + WIDTH, unit(curve.axis));
        add(format_args!("<text x=\"{LEFT}\" y=\"{y:.0}\">{}</text>", first.0));
        add(format_args!(
            "<text x=\"{right}\" y=\"{y:.0}\" text-anchor=\"end\">{} {unit}</text>",
            last.0
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: Vec<(u64, u64)>) -> Curve {
        Curve { name: "distance", about: "Pairs, by <distance>.", axis: Axis::Chunks, points }
    }

    #[test]
    fn the_lowest_bar_is_the_fastest_and_the_highest_the_slowest() {
        let text = bars(&curve(vec![(1, 100_000), (2, 200_000), (3, 100_000)]));
        let expected = "Pairs, by <distance>.\n    1 ▁█▁\n      ▁ 100.0 us  █ 200.0 us\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn latencies_that_hardly_differ_are_drawn_flat() {
        let text = bars(&curve(vec![(1, 100_000), (2, 100_500)]));
        assert!(text.contains("▁▁"), "{text}");
    }

    #[test]
    fn a_picture_has_a_bar_for_each_point_and_no_bare_signs() {
        let svg = svg("a & b", &[curve(vec![(1, 10), (2, 30), (3, 20)])]);
        assert_eq!(svg.matches("<title>").count(), 3);
        assert!(svg.contains("a &amp; b") && svg.contains("by &lt;distance&gt;"));
        assert!(svg.ends_with("</svg>\n"));
    }

    #[test]
    fn a_curve_without_points_is_drawn_as_nothing() {
        assert!(bars(&curve(Vec::new())).starts_with("Pairs"));
        assert!(!svg("", &[curve(Vec::new())]).contains("<title>"));
    }
}
