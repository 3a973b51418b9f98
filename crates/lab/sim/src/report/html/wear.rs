//! Drawings of use and wear: the busy time of each part, and the erases of each block.

use std::fmt::{self, Write};

use crate::report::number::{Thousandths, exact_time, grouped, three_digits};
use crate::report::ssd::{SsdReport, Usage, Wear};
use crate::report::summary::Report;
use nandex_html::draw::{Rect, close, legend, line, open, word, word_width};

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 72.0;
const TOP: f64 = 14.0;
const HEIGHT: f64 = 120.0;
/// The maximum number of bars in a drawing; beyond it neighbours share one.
const BARS_MAX: usize = 256;

/// Draws a bar for each part: its share of busy time.
pub(super) fn write_usage(out: &mut String, report: &Report) -> fmt::Result {
    let Some(ssd) = &report.ssd else { return Ok(()) };
    out.write_str(
        "<section>\n<h2>How busy the parts were</h2>\n\
         <p class=\"note\">Share of the time until the device was at rest.</p>\n",
    )?;
    legend(out, &[("read", "for the host"), ("clean", "cleaning")])?;
    let whole_ns = report.settled_ns;
    let host = [("controller", ssd.controller), ("link", ssd.link)];
    for (name, usage) in host {
        let percent = usage.percent.unwrap_or_default();
        let busy = exact_time(usage.busy_ns);
        writeln!(
            out,
            "<p class=\"line\" title=\"busy for {busy} of {}\">{name} <b>{} %</b></p>",
            exact_time(whole_ns),
            three_digits(percent)
        )?;
    }
    write_bars(out, ("bus", "Buses"), &ssd.buses, whole_ns)?;
    write_bars(out, ("unit", "Units of flash"), &ssd.units, whole_ns)?;
    out.write_str("</section>\n")
}

fn write_bars(
    out: &mut String,
    (name, title): (&str, &str),
    usages: &[Usage],
    whole_ns: u64,
) -> fmt::Result {
    let group = usages.len().div_ceil(BARS_MAX).max(1);
    let mean = SsdReport::mean_percent(usages).unwrap_or_default();
    if usages.iter().all(|it| it.busy_ns == 0 && it.cleaning_ns == 0) {
        return writeln!(out, "<h3>{title}</h3>\n<p class=\"note\">Idle.</p>");
    }
    writeln!(out, "<h3>{title}, {} % on average</h3>", three_digits(mean))?;
    open(out, WIDTH, TOP + HEIGHT + 8.0, title)?;
    for percent in [0.0, 50.0, 100.0] {
        let y = TOP + HEIGHT * (1.0 - percent / 100.0);
        line(out, "grid", (LEFT, y), (WIDTH, y))?;
        word(out, (LEFT - 8.0, y + 4.0), "end", &format!("{percent:.0} %"))?;
    }
    let groups = usages.chunks(group);
    let step = (WIDTH - LEFT) / groups.len().max(1) as f64;
    let width = (step * 0.86).min(48.0);
    for (index, usages) in groups.enumerate() {
        let first = index * group;
        let which = match usages.len() {
            1 => format!("{name} {first}"),
            count => format!("{name}s {first} to {}", first + count - 1),
        };
        let whole = u128::from(whole_ns) * usages.len() as u128;
        let x = LEFT + index as f64 * step + (step - width) / 2.0;
        write_bar(out, &which, (x, width), usages, whole)?;
    }
    close(out)
}

/// Draws the host's work at the bottom, cleaning on top of it.
fn write_bar(
    out: &mut String,
    which: &str,
    (x, width): (f64, f64),
    usages: &[Usage],
    whole_ns: u128,
) -> fmt::Result {
    let busy: u128 = usages.iter().map(|it| u128::from(it.busy_ns)).sum();
    let cleaning: u128 = usages.iter().map(|it| u128::from(it.cleaning_ns)).sum();
    let mut y = TOP + HEIGHT;
    for (class, what, ns) in [("read", "for the host", busy), ("clean", "cleaning", cleaning)] {
        let percent = Thousandths::percent(ns, whole_ns).unwrap_or_default();
        let height = percent.float() / 100.0 * HEIGHT;
        if height > 0.0 {
            y -= height;
            let title = format!("{which}: {what} {percent} % = {ns} ns / {whole_ns} ns");
            writeln!(out, "{}", Rect { class, x, y, width, height, title: &title })?;
        }
    }
    Ok(())
}

/// Draws the erases of blocks: their distribution, and their places.
pub(super) fn write_wear(out: &mut String, report: &Report) -> fmt::Result {
    let Some(ssd) = &report.ssd else { return Ok(()) };
    out.write_str("<section>\n<h2>Erases of blocks</h2>\n")?;
    if ssd.wear.erases_max == 0 {
        return out.write_str("<p class=\"note\">No block was erased yet.</p>\n</section>\n");
    }
    write_histogram(out, &ssd.wear)?;
    let planes = report.spec().map_or(1, |spec| spec.flash.plane_count() as usize);
    Heat::of(&report.charts.erases, planes).write(out, &ssd.wear)?;
    out.write_str("</section>\n")
}

fn write_histogram(out: &mut String, wear: &Wear) -> fmt::Result {
    out.write_str("<h3>How many blocks had how many erases</h3>\n")?;
    if wear.erases_min == wear.erases_max {
        let (all, each) = (grouped(wear.blocks), wear.erases_max);
        return writeln!(out, "<p class=\"note\">All {all} had {each}.</p>");
    }
    open(out, WIDTH, TOP + HEIGHT + 30.0, "blocks by erases")?;
    let most = wear.histogram.iter().map(|bin| bin.2).max().unwrap_or(1);
    let left = LEFT.max(word_width(&grouped(most)));
    let step = (WIDTH - left) / wear.histogram.len() as f64;
    let width = (step * 0.86).min(90.0);
    let every = (word_width(&wear.erases_max.to_string()) / step).ceil().max(1.0) as usize;
    line(out, "grid", (left, TOP + HEIGHT), (WIDTH, TOP + HEIGHT))?;
    word(out, (left - 8.0, TOP + 4.0), "end", &grouped(most))?;
    for (index, (from, to, count)) in wear.histogram.iter().enumerate() {
        let height = *count as f64 / most as f64 * HEIGHT;
        let x = left + index as f64 * step;
        let range = if from == to { from.to_string() } else { format!("{from} to {to}") };
        let title = format!("{range} erases: {} blocks", grouped(*count));
        let (at, y) = (x + (step - width) / 2.0, TOP + HEIGHT - height);
        writeln!(out, "{}", Rect { class: "bar", x: at, y, width, height, title: &title })?;
        if index % every == 0 {
            word(out, (x + step / 2.0, TOP + HEIGHT + 22.0), "middle", &from.to_string())?;
        }
    }
    close(out)
}

/// The erases of blocks in a limited number of cells: planes from top to bottom, blocks from left to right.
struct Heat {
    rows: Vec<Vec<Cell>>,
    planes: usize,
    planes_per_row: usize,
    blocks_per_cell: usize,
}

/// The blocks of a cell: the sum of their erases, and their number.
#[derive(Clone, Copy, Default)]
struct Cell {
    erases: u64,
    blocks: u64,
}

impl Heat {
    const ROWS_MAX: usize = 32;
    const COLUMNS_MAX: usize = 96;
    /// The colours, from least to most.
    const SHADES: u64 = 9;

    fn of(erases: &[u32], planes: usize) -> Self {
        let blocks = (erases.len() / planes.max(1)).max(1);
        let planes_per_row = planes.div_ceil(Self::ROWS_MAX).max(1);
        let blocks_per_cell = blocks.div_ceil(Self::COLUMNS_MAX);
        let columns = blocks.div_ceil(blocks_per_cell);
        let mut rows = vec![vec![Cell::default(); columns]; planes.div_ceil(planes_per_row)];
        for (plane, erases) in erases.chunks(blocks).enumerate() {
            for (block, &erases) in erases.iter().enumerate() {
                let cell = &mut rows[plane / planes_per_row][block / blocks_per_cell];
                cell.erases += u64::from(erases);
                cell.blocks += 1;
            }
        }
        Self { rows, planes, planes_per_row, blocks_per_cell }
    }

    fn write(&self, out: &mut String, wear: &Wear) -> fmt::Result {
        let (planes, blocks) = (self.planes_per_row, self.blocks_per_cell);
        writeln!(
            out,
            "<h3>Where</h3>\n<p class=\"note\">Planes from top to bottom, blocks from left to right; a \
             cell is the mean of {planes} x {blocks} blocks, from {} to {} erases:</p>",
            grouped(wear.erases_min.into()),
            grouped(wear.erases_max.into())
        )?;
        out.write_str("<p class=\"shades\">")?;
        for shade in 0..Self::SHADES {
            write!(out, "<i class=\"h{shade}\"></i>")?;
        }
        out.write_str("</p>\n")?;
        let height = (360.0 / self.rows.len() as f64).clamp(8.0, 22.0);
        open(out, WIDTH, height * self.rows.len() as f64, "erases, planes by blocks")?;
        for (index, row) in self.rows.iter().enumerate() {
            self.write_row(out, index, row, height, wear)?;
        }
        close(out)
    }

    /// Draws neighbours of one colour and one mean as one rectangle.
    fn write_row(
        &self,
        out: &mut String,
        index: usize,
        row: &[Cell],
        height: f64,
        wear: &Wear,
    ) -> fmt::Result {
        let first = index * self.planes_per_row;
        let last = (first + self.planes_per_row).min(self.planes) - 1;
        let planes = if first == last {
            format!("plane {first}")
        } else {
            format!("planes {first} to {last}")
        };
        if index.is_multiple_of((20.0 / height).ceil() as usize) {
            let y = (index as f64 + 0.5) * height + 4.0;
            word(out, (LEFT - 8.0, y.max(14.0)), "end", &first.to_string())?;
        }
        let step = (WIDTH - LEFT) / row.len() as f64;
        let mut at = 0;
        for run in row.chunk_by(|a, b| a.mean() == b.mean()) {
            let from = at * self.blocks_per_cell;
            at += run.len();
            let mean = run[0].mean();
            let to = at * self.blocks_per_cell - 1;
            let title = format!("{planes}, blocks {from} to {to}: {mean:.2} erases on average");
            let class = format!("h{}", shade(mean, wear));
            let x = LEFT + (at - run.len()) as f64 * step;
            let (y, width) = (index as f64 * height, run.len() as f64 * step);
            let rect = Rect { class: &class, x, y, width, height: height - 1.0, title: &title };
            writeln!(out, "{rect}")?;
        }
        Ok(())
    }
}

impl Cell {
    fn mean(self) -> Thousandths {
        Thousandths::ratio(self.erases.into(), self.blocks.into()).unwrap_or_default()
    }
}

fn shade(mean: Thousandths, wear: &Wear) -> u64 {
    let (min, max) = (u64::from(wear.erases_min) * 1000, u64::from(wear.erases_max) * 1000);
    let above = mean.thousandths().saturating_sub(min);
    (above * Heat::SHADES / (max - min + 1)).min(Heat::SHADES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heat_map_has_few_cells_and_every_block_in_one() {
        for (planes, blocks) in [(1, 1), (3, 7), (64, 1000), (1000, 96), (4, 4096)] {
            let erases: Vec<u32> = (0..planes * blocks).map(|it| it as u32 % 7).collect();
            let heat = Heat::of(&erases, planes);
            assert!(heat.rows.len() <= 32 && heat.rows[0].len() <= 96);
            let cells = heat.rows.iter().flatten();
            let (count, sum) = cells.fold((0, 0), |(n, s), it| (n + it.blocks, s + it.erases));
            assert_eq!(count, erases.len() as u64);
            assert_eq!(sum, erases.iter().map(|&it| u64::from(it)).sum::<u64>());
        }
    }

    #[test]
    fn the_least_worn_has_the_first_shade_and_the_most_worn_the_last() {
        let wear = Wear::of(&[5, 9], 100);
        let of = |erases| shade(Thousandths::ratio(erases, 1).unwrap(), &wear);
        assert_eq!((of(5), of(9)), (0, 8));
        let even = Wear::of(&[5, 5], 100);
        assert_eq!(shade(Thousandths::ratio(5, 1).unwrap(), &even), 0);
    }
}
