//! Curves over axes, in a page or in a file of their own.

use std::fmt::{self, Write};

use serde::Serialize;

use crate::draw::{close, line, open, word, word_width};
use crate::{Escaped, shown};

/// The colours of curves, for a page with [`BASE_STYLE`](crate::BASE_STYLE).
pub const CHART_STYLE: &str = include_str!("chart.css");

/// The style of a drawing that is a file, instead of a page's style.
const FILE_STYLE: &str = include_str!("file.css");

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 100.0;
const RIGHT: f64 = 32.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 56.0;
/// The title and legend of a file.
const HEAD: f64 = 44.0;
/// Colours of the style sheet.
const COLOURS: usize = 6;
/// The approximate number of labels along an axis.
const TICKS: f64 = 6.0;

/// Curves over the same axes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Chart {
    /// Its title.
    pub title: String,
    /// The horizontal axis, with its unit.
    pub x: &'static str,
    /// The vertical axis.
    pub y: &'static str,
    /// The spacing of x.
    pub x_scaling: Scaling,
    /// The spacing of y.
    pub y_scaling: Scaling,
    /// The curves.
    pub series: Vec<Series>,
}

/// The spacing of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// Evenly.
    Linear,
    /// By powers of ten; numbers up to 0 are omitted.
    Logarithmic,
}

/// A curve, or points of the paper.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Series {
    /// Its name, for the legend.
    pub name: String,
    /// Whether the paper printed these points. They are drawn as dots, without lines between them.
    pub of_paper: bool,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// Creates a measured curve.
    #[must_use]
    pub fn ours(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), of_paper: false, points }
    }

    /// Creates a series of points that the paper printed.
    #[must_use]
    pub fn paper(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), of_paper: true, points }
    }
}

/// The positions of numbers along an axis, from 0 to 1.
struct Axis {
    scaling: Scaling,
    low: f64,
    high: f64,
}

impl Axis {
    /// Creates an axis from the least number to the greatest; a logarithmic one spans whole powers of ten.
    fn over(scaling: Scaling, numbers: impl Iterator<Item = f64>) -> Self {
        let visible =
            numbers.filter(|it| it.is_finite() && (scaling == Scaling::Linear || *it > 0.0));
        let (low, high) = visible.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| {
            (low.min(it), high.max(it))
        });
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        match scaling {
            Scaling::Linear => {
                let low = low.min(0.0);
                Self { scaling, low, high: high.max(low + 1e-9) }
            }
            Scaling::Logarithmic => {
                let (low, high) = (low.max(1e-12).log10().floor(), high.max(1e-12).log10().ceil());
                Self { scaling, low, high: high.max(low + 1.0) }
            }
        }
    }

    /// Returns a number's position; `None` if the number cannot be shown.
    fn part(&self, number: f64) -> Option<f64> {
        let at = match self.scaling {
            Scaling::Linear => number,
            Scaling::Logarithmic if number > 0.0 => number.log10(),
            Scaling::Logarithmic => return None,
        };
        Some(((at - self.low) / (self.high - self.low)).clamp(0.0, 1.0))
    }

    /// Returns the round numbers of the axis.
    fn ticks(&self) -> Vec<f64> {
        let span = self.high - self.low;
        match self.scaling {
            Scaling::Logarithmic => {
                let step = (span / TICKS).ceil().max(1.0) as i32;
                let powers =
                    (self.low as i32..=self.high as i32).step_by(step.unsigned_abs() as usize);
                powers.map(|power| 10_f64.powi(power)).collect()
            }
            Scaling::Linear => {
                let power = 10_f64.powf((span / TICKS).log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
                let step = step.into_iter().find(|it| span / it <= TICKS).unwrap_or(span);
                let first = (self.low / step).ceil() as i64;
                let last = (self.high / step + 1e-9).floor() as i64;
                (first..=last).map(|number| number as f64 * step).collect()
            }
        }
    }
}

/// Both axes.
struct Plane {
    x: Axis,
    y: Axis,
}

impl Plane {
    fn of(chart: &Chart) -> Self {
        let points = || chart.series.iter().flat_map(|series| &series.points);
        Self {
            x: Axis::over(chart.x_scaling, points().map(|point| point.0)),
            y: Axis::over(chart.y_scaling, points().map(|point| point.1)),
        }
    }

    fn x(&self, number: f64) -> Option<f64> {
        Some(LEFT + self.x.part(number)? * (WIDTH - LEFT - RIGHT))
    }

    fn y(&self, number: f64) -> Option<f64> {
        Some(TOP + (1.0 - self.y.part(number)?) * HEIGHT)
    }
}

/// Writes a drawing of the chart, with its legend.
///
/// # Errors
/// Returns the writer's error; writing to a string never fails.
pub fn write(out: &mut String, chart: &Chart) -> fmt::Result {
    let plane = Plane::of(chart);
    writeln!(out, "<h3>{}</h3>", Escaped(&chart.title))?;
    write_legend(out, &chart.series)?;
    open(out, WIDTH, TOP + HEIGHT + BOTTOM, &chart.title)?;
    write_curves(out, chart, &plane)?;
    close(out)
}

/// Returns a drawing of the chart as a file, with its title and legend in it. It is light or dark as its
/// reader's screen is.
///
/// # Errors
/// Returns the writer's error; writing to a string never fails.
pub fn file(chart: &Chart) -> Result<String, fmt::Error> {
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 {:.0} {WIDTH:.0} {:.0}\" \
         role=\"img\" aria-label=\"{}\">\n<style>\n{CHART_STYLE}{FILE_STYLE}</style>\n",
        -HEAD,
        HEAD + TOP + HEIGHT + BOTTOM,
        Escaped(&chart.title)
    );
    word(&mut out, (LEFT, 20.0 - HEAD), "start", &chart.title)?;
    let mut x = LEFT;
    for (index, series) in chart.series.iter().enumerate() {
        let colour = index % COLOURS;
        writeln!(out, "<circle class=\"s{colour}\" cx=\"{x:.1}\" cy=\"-12\" r=\"5\"/>")?;
        word(&mut out, (x + 10.0, -8.0), "start", &series.name)?;
        x += word_width(&series.name);
    }
    write_curves(&mut out, chart, &Plane::of(chart))?;
    out.push_str("</svg>\n");
    Ok(out)
}

fn write_curves(out: &mut String, chart: &Chart, plane: &Plane) -> fmt::Result {
    write_axes(out, chart, plane)?;
    for (index, series) in chart.series.iter().enumerate() {
        write_series(out, series, index % COLOURS, plane)?;
    }
    Ok(())
}

fn write_legend(out: &mut String, series: &[Series]) -> fmt::Result {
    out.write_str("<p class=\"legend\">")?;
    for (index, series) in series.iter().enumerate() {
        let dot = if series.of_paper { " paper" } else { "" };
        let name = Escaped(&series.name);
        write!(out, "<span><i class=\"s{}{dot}\"></i>{name}</span>", index % COLOURS)?;
    }
    out.write_str("</p>\n")
}

fn write_axes(out: &mut String, chart: &Chart, plane: &Plane) -> fmt::Result {
    let (right, base) = (WIDTH - RIGHT, TOP + HEIGHT);
    for tick in plane.y.ticks() {
        let Some(y) = plane.y(tick) else { continue };
        line(out, "grid", (LEFT, y), (right, y))?;
        word(out, (LEFT - 8.0, y + 4.0), "end", &label(tick))?;
    }
    for tick in plane.x.ticks() {
        let Some(x) = plane.x(tick) else { continue };
        line(out, "grid", (x, TOP), (x, base))?;
        // The last one may be wider than the margin is.
        let text = label(tick);
        let middle = x.min(WIDTH - word_width(&text) / 2.0);
        word(out, (middle, base + 21.0), "middle", &text)?;
    }
    line(out, "axis", (LEFT, base), (right, base))?;
    line(out, "axis", (LEFT, TOP), (LEFT, base))?;
    word(out, (right, base + 48.0), "end", chart.x)?;
    word(out, (LEFT, base + 48.0), "start", &format!("upwards: {}", chart.y))
}

/// Formats a round number without trailing zeros.
fn label(number: f64) -> String {
    let text = shown(number);
    if !text.contains('.') || text.contains('e') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn write_series(out: &mut String, series: &Series, colour: usize, plane: &Plane) -> fmt::Result {
    let name = Escaped(&series.name);
    let place = |&(x, y): &(f64, f64)| Some((plane.x(x)?, plane.y(y)?));
    if !series.of_paper {
        let mut path = String::new();
        for (x, y) in series.points.iter().filter_map(place) {
            write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' })?;
        }
        writeln!(out, "<path class=\"s{colour}\" d=\"{path}\"><title>{name}</title></path>")?;
    }
    // Few points are drawn as dots; a paper's always are.
    if series.of_paper || series.points.len() <= 20 {
        for point in &series.points {
            let Some((x, y)) = place(point) else { continue };
            let radius = if series.of_paper { 5.0 } else { 3.0 };
            let (at_x, at_y) = (shown(point.0), shown(point.1));
            writeln!(
                out,
                "<circle class=\"s{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\">\
                 <title>{name}: {at_x}, {at_y}</title></circle>"
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        let linear = Axis::over(Scaling::Linear, [0.0, 1.0].into_iter());
        assert_eq!(
            linear.ticks().into_iter().map(label).collect::<Vec<_>>(),
            ["0", "0.2", "0.4", "0.6", "0.8", "1"]
        );
        let powers = Axis::over(Scaling::Logarithmic, [0.005, 30.0].into_iter());
        assert_eq!(
            powers.ticks().into_iter().map(label).collect::<Vec<_>>(),
            ["0.001", "0.01", "0.1", "1", "10", "100"]
        );
    }

    #[test]
    fn a_file_has_its_title_its_legend_and_every_curve() {
        let series = ["a <1>", "b"].map(|name| Series::ours(name, vec![(1.0, 1.0), (9.0, 5.0)]));
        let chart = Chart {
            title: "t & t".into(),
            x: "x",
            y: "y",
            x_scaling: Scaling::Logarithmic,
            y_scaling: Scaling::Linear,
            series: series.into(),
        };
        let drawn = file(&chart).unwrap();
        assert!(drawn.starts_with("<svg xmlns=") && drawn.ends_with("</svg>\n"));
        assert!(drawn.contains("t &amp; t") && drawn.contains("a &lt;1&gt;"));
        assert_eq!(drawn.matches("<path ").count(), 2);
    }

    #[test]
    fn the_last_label_of_an_axis_ends_within_the_drawing() {
        let chart = Chart {
            title: "t".into(),
            x: "x",
            y: "y",
            x_scaling: Scaling::Linear,
            y_scaling: Scaling::Linear,
            series: vec![Series::ours("a", vec![(0.0, 1.0), (2_500_000.0, 2.0)])],
        };
        let mut drawn = String::new();
        write(&mut drawn, &chart).unwrap();
        let last = format!(">{}</text>", label(2_500_000.0));
        let word = drawn.lines().find(|line| line.ends_with(&last)).unwrap();
        let middle: f64 = word.split('"').nth(1).unwrap().parse().unwrap();
        let width = word_width(&label(2_500_000.0));
        assert!(middle > 900.0 && middle + width / 2.0 <= WIDTH, "{word}");
    }

    #[test]
    fn what_a_logarithm_cannot_show_is_left_out() {
        let axis = Axis::over(Scaling::Logarithmic, [0.0, -3.0, 1.0, 10.0].into_iter());
        assert_eq!((axis.part(0.0), axis.part(1.0), axis.part(10.0)), (None, Some(0.0), Some(1.0)));
        assert!(!Axis::over(Scaling::Linear, std::iter::empty()).ticks().is_empty());
    }
}
