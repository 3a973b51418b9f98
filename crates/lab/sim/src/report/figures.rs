//! The numbers of a report in readable form, each with its formula.

use super::number::{
    Thousandths, binary_bytes, decimal_bytes, exact_time, grouped, three_digits, time,
};
use super::ssd::{Life, Merges, SsdReport, Usage};
use super::summary::Report;

/// A number with its unit, and how it is computed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Figure {
    /// The name.
    pub name: String,
    /// The number and its unit.
    pub shown: String,
    /// The formula.
    pub how: String,
}

/// Figures that belong together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    /// The title.
    pub title: &'static str,
    /// The figures.
    pub figures: Vec<Figure>,
}

pub(super) fn figure(name: &str, shown: impl Into<String>, how: impl Into<String>) -> Figure {
    Figure { name: name.into(), shown: shown.into(), how: how.into() }
}

/// Returns all numbers of a report except latencies, which have their own table.
#[must_use]
pub fn figures(report: &Report) -> Vec<Section> {
    let mut sections = vec![Section { title: "Run", figures: run(report) }];
    if let Some(ssd) = &report.ssd {
        sections.push(Section { title: "Flash", figures: flash(ssd) });
        sections.push(Section { title: "Use", figures: usage(ssd) });
        sections.push(Section { title: "Wear", figures: wear(ssd) });
    }
    sections
}

pub(super) fn rate(rate: Option<Thousandths>, unit: &str) -> String {
    rate.map_or_else(|| "no time passed".into(), |rate| format!("{} {unit}", three_digits(rate)))
}

pub(super) fn bandwidth(rate: Option<Thousandths>) -> String {
    let whole = rate.map(|rate| decimal_bytes(u128::from(rate.thousandths() / 1000)));
    whole.map_or_else(|| "no time passed".into(), |bytes| format!("{bytes}/s"))
}

fn run(report: &Report) -> Vec<Figure> {
    let (requests, elapsed) = (grouped(report.requests), exact_time(report.elapsed_ns));
    let little = &report.little;
    let mean = little.mean_latency_ns;
    let in_system = little.mean_in_system.map_or_else(|| "no time passed".into(), three_digits);
    vec![
        figure("requests", &*requests, "requests of all kinds that ended"),
        figure(
            "time",
            time(report.elapsed_ns),
            "from the beginning of the run to the end of its last request",
        ),
        figure(
            "time until at rest",
            time(report.settled_ns),
            "from the beginning of the run until the device had nothing left to do; use is measured \
             over this",
        ),
        figure(
            "rate",
            rate(report.iops(), "IOPS"),
            format!("requests / time = {requests} / {elapsed}"),
        ),
        figure(
            "bandwidth",
            bandwidth(report.bytes_per_s()),
            format!("bytes read and written / time = {} B / {elapsed}", grouped(report.bytes)),
        ),
        figure(
            "requests at a time",
            in_system,
            format!(
                "Little's law: rate x mean latency = {} x {}, as the sum of all latencies / time",
                rate(little.rate_per_s, "/s"),
                mean.map_or_else(|| "none".into(), |mean| format!("{mean} ns"))
            ),
        ),
    ]
}

fn flash(ssd: &SsdReport) -> Vec<Figure> {
    let (written, programmed) = (grouped(ssd.written_bytes), grouped(ssd.programmed_bytes));
    let amplification = match ssd.write_amplification {
        Some(amplification) => three_digits(amplification),
        None => "nothing written".into(),
    };
    let mut figures = vec![
        figure("flash pages read", grouped(ssd.flash_reads), "flash pages read for the host"),
        figure(
            "host pages read elsewhere",
            grouped(ssd.reads_without_flash),
            "pages of 4 KiB that were read from the write buffer, or were never written",
        ),
        figure("written by the host", format!("{written} B"), "pages of 4 KiB written x 4096 B"),
        figure(
            "programmed",
            format!("{programmed} B"),
            "flash pages programmed, for the host and by cleaning, x bytes of a flash page",
        ),
        figure(
            "write amplification",
            amplification,
            format!("programmed / written by the host = {programmed} B / {written} B"),
        ),
        figure(
            "blocks cleaned",
            grouped(ssd.cleans),
            "blocks whose valid pages were moved to free them",
        ),
        figure(
            "of these to level wear",
            grouped(ssd.migrations),
            "blocks moved because they were worn less",
        ),
        figure("pages moved", grouped(ssd.moved_pages), "pages of 4 KiB that cleaning copied"),
        figure("blocks erased", grouped(ssd.erases), "erases during the run"),
    ];
    let Merges { switches, partial, full } = ssd.merges;
    if switches + partial + full > 0 {
        figures.push(figure(
            "merges of log blocks",
            format!("{} / {} / {}", grouped(switches), grouped(partial), grouped(full)),
            "switches / partial / full, of the blocks cleaned",
        ));
    }
    figures
}

fn percent(percent: Option<Thousandths>) -> String {
    percent.map_or_else(|| "no time passed".into(), |it| format!("{} %", three_digits(it)))
}

fn usage(ssd: &SsdReport) -> Vec<Figure> {
    let of = |usages: &[Usage]| percent(SsdReport::mean_percent(usages));
    let cleaning: u128 = ssd.units.iter().map(|it| u128::from(it.cleaning_ns)).sum();
    let all = cleaning + ssd.units.iter().map(|it| u128::from(it.busy_ns)).sum::<u128>();
    let (units, buses) = (ssd.units.len(), ssd.buses.len());
    vec![
        figure(
            "units of flash",
            of(&ssd.units),
            format!("time in the array or cleaning / time until at rest, mean of {units}"),
        ),
        figure(
            "of that, cleaning",
            Thousandths::percent(cleaning, all)
                .map_or_else(|| "0 %".into(), |it| format!("{} %", three_digits(it))),
            "time that units were cleaning / time that units were busy",
        ),
        figure("buses", of(&ssd.buses), format!("time busy / time until at rest, mean of {buses}")),
        figure(
            "link",
            percent(ssd.link.percent),
            "time busy / time until at rest, each way counted",
        ),
        figure("controller", percent(ssd.controller.percent), "time busy / time until at rest"),
    ]
}

fn wear(ssd: &SsdReport) -> Vec<Figure> {
    let wear = &ssd.wear;
    let erases = format!(
        "{} / {:.2} / {}",
        grouped(wear.erases_min.into()),
        wear.erases_mean,
        grouped(wear.erases_max.into())
    );
    let mut figures = vec![figure(
        "erases of a block",
        erases,
        format!("min / mean / max over {} blocks, from the factory on", grouped(wear.blocks)),
    )];
    let rated = grouped(wear.erases_rated.into());
    match &ssd.life {
        Some(Life { erases_left, host_bytes, days }) => {
            figures.push(figure(
                "life left",
                binary_bytes((*host_bytes).into()),
                format!(
                    "bytes the host can write: {} erases left of {rated} for each block x pages of a \
                     block / pages programmed in this run x bytes written in it",
                    grouped(*erases_left)
                ),
            ));
            figures.push(figure(
                "life left at this pace",
                format!("{} days", three_digits(*days)),
                "the same, with the time of this run for the bytes written in it",
            ));
        }
        None => figures.push(figure(
            "life left",
            "not used up",
            format!("nothing was programmed or erased; a block is good for {rated} erases"),
        )),
    }
    figures
}
