//! The inside of an SSD during a run: work of its flash, use of its parts, wear.

use serde::Serialize;

use super::number::Thousandths;
use crate::Ssd;
use crate::spec::{HOST_PAGE_BYTES, Spec};
use crate::ssd::SsdCounters;

/// The counters of an SSD when a run began, so that its preparation is not counted.
#[derive(Clone, Debug)]
pub struct SsdBaseline {
    counters: SsdCounters,
}

impl SsdBaseline {
    /// Records the present state of an SSD.
    #[must_use]
    pub fn of(ssd: &Ssd) -> Self {
        Self { counters: ssd.counters() }
    }
}

/// The inside of an SSD during a run. Wear counts from the factory on.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SsdReport {
    /// Bytes that the device offers.
    pub host_bytes: u64,
    /// Bytes of its flash.
    pub raw_bytes: u64,
    /// Flash pages read for the host.
    pub flash_reads: u64,
    /// Host pages whose read found its data in the write buffer, or that were never written.
    pub reads_without_flash: u64,
    /// Bytes that the host wrote.
    pub written_bytes: u64,
    /// Bytes that the flash programmed, for the host and by cleaning.
    pub programmed_bytes: u64,
    /// Programmed bytes per written byte; `None` if nothing was written.
    pub write_amplification: Option<Thousandths>,
    /// Blocks cleaned.
    pub cleans: u64,
    /// Of these, for wear levelling.
    pub migrations: u64,
    /// Of these, merges of log blocks; all 0 if the mapping has none.
    pub merges: Merges,
    /// Host pages moved by cleaning.
    pub moved_pages: u64,
    /// Blocks erased.
    pub erases: u64,
    /// The use of the units of flash.
    pub units: Vec<Usage>,
    /// The use of the buses.
    pub buses: Vec<Usage>,
    /// The use of the controller.
    pub controller: Usage,
    /// The use of the link: both ways together, of twice the time if it is duplex.
    pub link: Usage,
    /// The wear of the blocks.
    pub wear: Wear,
    /// The lifetime at this rate; `None` if the flash was not written.
    pub life: Option<Life>,
}

/// The merges of log blocks, by their kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Merges {
    /// Merges that turned a log block, written in order, into a data block.
    pub switches: u64,
    /// Merges that filled up a log block whose written part was in order.
    pub partial: u64,
    /// Merges that copied all pages into a new block.
    pub full: u64,
}

/// The share of the time until the device came to rest in which a part was busy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Usage {
    /// The time busy with the host's requests.
    pub busy_ns: u64,
    /// The time busy with cleaning.
    pub cleaning_ns: u64,
    /// Both, in percent of the time; `None` if no time passed.
    pub percent: Option<Thousandths>,
}

impl Usage {
    fn of(busy_ns: u64, cleaning_ns: u64, whole_ns: u128) -> Self {
        let both = u128::from(busy_ns) + u128::from(cleaning_ns);
        Self { busy_ns, cleaning_ns, percent: Thousandths::percent(both, whole_ns) }
    }
}

/// The wear of the blocks, counted from the factory on.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Wear {
    /// The number of blocks.
    pub blocks: u64,
    /// Erases of the least worn block.
    pub erases_min: u32,
    /// Erases of a block on average.
    pub erases_mean: Thousandths,
    /// Erases of the most worn block.
    pub erases_max: u32,
    /// The number of erases that a block withstands.
    pub erases_rated: u32,
    /// The blocks by erases: from, to (inclusive), count. At most 32 bins of one width.
    pub histogram: Vec<(u32, u32, u64)>,
}

impl Wear {
    /// Returns the wear of blocks, given their erases.
    #[must_use]
    pub fn of(erases: &[u32], rated: u32) -> Self {
        let total: u128 = erases.iter().map(|&it| u128::from(it)).sum();
        let min = erases.iter().copied().min().unwrap_or(0);
        let max = erases.iter().copied().max().unwrap_or(0);
        Self {
            blocks: erases.len() as u64,
            erases_min: min,
            erases_mean: Thousandths::ratio(total, erases.len() as u128).unwrap_or_default(),
            erases_max: max,
            erases_rated: rated,
            histogram: histogram(erases, min, max),
        }
    }
}

fn histogram(erases: &[u32], min: u32, max: u32) -> Vec<(u32, u32, u64)> {
    const BINS_MAX: u64 = 32;
    let values = u64::from(max - min) + 1;
    let width = values.div_ceil(BINS_MAX);
    let mut counts = vec![0; values.div_ceil(width) as usize];
    erases.iter().for_each(|&it| counts[(u64::from(it - min) / width) as usize] += 1);
    let bin = |(index, count): (usize, u64)| {
        let from = u64::from(min) + index as u64 * width;
        let to = (from + width - 1).min(u64::from(max));
        (from as u32, to as u32, count)
    };
    counts.into_iter().enumerate().map(bin).collect()
}

/// The lifetime of a device at the rate of this run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Life {
    /// Remaining erases of all blocks together.
    pub erases_left: u64,
    /// Bytes that the host can write until the mean block is worn out.
    pub host_bytes: u64,
    /// The days until then, at this run's pace.
    pub days: Thousandths,
}

impl Life {
    /// Computes the lifetime. Every programmed page must be erased some day, so a run wears as many blocks as
    /// it programmed pages of, even if their erases are yet to come; or as many as it erased, if those are
    /// more. The remaining erases divided by that are the number of such runs.
    fn of(worn: Worn, written_bytes: u64, ns: u64) -> Option<Self> {
        const DAY_NS: u128 = 86_400 * 1_000_000_000;
        let Worn { erases_left, pages_per_block, programs, erases } = worn;
        let pages = u128::from(pages_per_block);
        let wear = u128::from(programs).max(u128::from(erases) * pages);
        let left = u128::from(erases_left) * pages;
        if wear == 0 {
            return None;
        }
        let host = left.checked_mul(written_bytes.into()).map_or(u128::MAX, |it| it / wear);
        let life_ns = left.checked_mul(ns.into()).map_or(u128::MAX, |it| it / wear);
        Some(Self {
            erases_left,
            host_bytes: u64::try_from(host).unwrap_or(u64::MAX),
            days: Thousandths::ratio(life_ns, DAY_NS)?,
        })
    }
}

/// The input of a life.
#[derive(Clone, Copy, Debug)]
struct Worn {
    erases_left: u64,
    pages_per_block: u32,
    programs: u64,
    erases: u64,
}

impl SsdReport {
    pub(super) fn of(ssd: &Ssd, before: &SsdBaseline, settled_ns: u64) -> Self {
        let (spec, after, before) = (ssd.spec(), ssd.counters(), &before.counters);
        let ftl = |of: fn(&SsdCounters) -> u64| of(&after) - of(before);
        let whole_ns = u128::from(settled_ns);
        let programs = ftl(|it| it.ftl.programs);
        let erases = ftl(|it| it.ftl.erases);
        let written = ftl(|it| it.ftl.host_writes) * HOST_PAGE_BYTES;
        let programmed_bytes = programs * u64::from(spec.flash.page_bytes);
        let ways = if spec.host.duplex { 2 } else { 1 };
        let worn = Worn {
            erases_left: erases_left(spec, ssd.erases()),
            pages_per_block: spec.flash.pages,
            programs,
            erases,
        };
        Self {
            host_bytes: spec.page_count() * HOST_PAGE_BYTES,
            raw_bytes: spec.raw_units() * HOST_PAGE_BYTES,
            flash_reads: ftl(|it| it.flash_reads),
            reads_without_flash: ftl(|it| it.reads_without_flash),
            written_bytes: written,
            programmed_bytes,
            write_amplification: Thousandths::ratio(programmed_bytes.into(), written.into()),
            cleans: ftl(|it| it.ftl.cleans),
            migrations: ftl(|it| it.ftl.migrations),
            merges: Merges {
                switches: ftl(|it| it.ftl.switch_merges),
                partial: ftl(|it| it.ftl.partial_merges),
                full: ftl(|it| it.ftl.full_merges),
            },
            moved_pages: ftl(|it| it.ftl.moved),
            erases,
            units: usages(
                [&after.unit_busy_ns, &before.unit_busy_ns],
                [&after.unit_clean_ns, &before.unit_clean_ns],
                whole_ns,
            ),
            buses: usages([&after.bus_busy_ns, &before.bus_busy_ns], [&[], &[]], whole_ns),
            controller: Usage::of(ftl(|it| it.controller_busy_ns), 0, whole_ns),
            link: Usage::of(ftl(|it| it.link_busy_ns), 0, whole_ns * ways),
            wear: Wear::of(ssd.erases(), spec.erases_max),
            life: Life::of(worn, written, settled_ns),
        }
    }

    /// Returns the mean use of several parts in percent; `None` if there are none or no time passed.
    #[must_use]
    pub fn mean_percent(usages: &[Usage]) -> Option<Thousandths> {
        let sum: Option<u128> =
            usages.iter().map(|it| it.percent.map(|it| u128::from(it.thousandths()))).sum();
        Thousandths::ratio(sum?, usages.len() as u128 * 1000)
    }
}

fn erases_left(spec: &Spec, erases: &[u32]) -> u64 {
    erases.iter().map(|&it| u64::from(spec.erases_max.saturating_sub(it))).sum()
}

/// Returns the differences of busy times, and of cleaning times if there are any.
fn usages(
    [busy, busy_before]: [&[u64]; 2],
    [clean, clean_before]: [&[u64]; 2],
    whole_ns: u128,
) -> Vec<Usage> {
    let since =
        |after: &[u64], before: &[u64], part: usize| match (after.get(part), before.get(part)) {
            (Some(after), Some(before)) => after - before,
            _ => 0,
        };
    let of = |part| {
        let (busy, clean) = (since(busy, busy_before, part), since(clean, clean_before, part));
        Usage::of(busy, clean, whole_ns)
    };
    (0..busy.len()).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wear_counts_every_block_once_in_at_most_32_bins() {
        let erases: Vec<u32> = (0..1000).map(|block| 5 + block % 100).collect();
        let wear = Wear::of(&erases, 3000);
        assert_eq!((wear.blocks, wear.erases_min, wear.erases_max), (1000, 5, 104));
        assert_eq!(wear.erases_mean.to_string(), "54.500");
        assert!(wear.histogram.len() <= 32);
        assert_eq!(wear.histogram.iter().map(|bin| bin.2).sum::<u64>(), 1000);
        assert_eq!(wear.histogram[0], (5, 8, 40));
        assert_eq!(wear.histogram.last().unwrap().1, 104);
        assert_eq!(Wear::of(&[0, 0], 1).histogram, [(0, 0, 2)]);
    }

    #[test]
    fn a_life_is_what_remains_divided_by_what_a_run_takes() {
        let worn = Worn { erases_left: 1_000, pages_per_block: 64, programs: 640, erases: 4 };
        // Ten blocks' worth of pages in a day: a hundred days, and a hundred times the written bytes.
        let life = Life::of(worn, 5_000, 86_400_000_000_000).unwrap();
        assert_eq!((life.host_bytes, life.days.to_string().as_str()), (500_000, "100.000"));
        let more = Life::of(Worn { erases: 20, ..worn }, 5_000, 86_400_000_000_000).unwrap();
        assert_eq!(more.days.to_string(), "50.000");
        assert_eq!(Life::of(Worn { programs: 0, erases: 0, ..worn }, 0, 1), None);
    }
}
