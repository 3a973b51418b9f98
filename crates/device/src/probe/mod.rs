//! The probe: finds the chunk size, the number of channels and the mapping of a device by timing.
//!
//! Flash devices stripe their address space over channels that work at once, and do not report how. Chen, Lee and Zhang
//! (HPCA'11) found out from outside: two reads on one channel wait for each other. Section 4.2 of ANCS'14 builds on
//! their findings. This probe uses only pairs of reads of one page:
//!
//! ```text
//!   chunk:     | c0 | c1 | c2 |       pages p and p + 1: slow inside a chunk, fast over its end
//!   channels:  c(i), c(i + d)         slow where d is a multiple of the number of channels
//!   mapping:   chunks rewritten in a random order: is it still the address that makes a pair slow,
//!              or the distance in the order of writing?
//! ```
//!
//! 1. Every timed page is read once after it was written, and the last written pages are not timed. So a cache of pages
//!    that were read, or a device's buffer of writes, does not hide the flash, unless it is larger than the region.
//! 2. An answer is given only when it explains the timings much better than all others: see
//!    [`Finding::confidence`]. An invisible property is `None`, with the reason.
//! 3. Without permission to write, nothing is written, and the data are assumed to have been written front
//!    to back. The mapping cannot be found then.
//!
//! Cost for a region of n pages: n writes and at most n reads; with rewriting twice that. At most two
//! operations are in flight. RAM: one byte for each page of the region.

mod channels;
mod chunk;
mod findings;
mod mapping;
mod rng;
mod sampler;
mod weigh;

use std::ops::Range;

pub use findings::{Axis, Curve, Finding, Findings};

pub use crate::Mapping;

use self::channels::Interleave;
use self::chunk::{Grid, Neighbours};
use self::mapping::Rewritten;
use self::sampler::Sampler;
use self::weigh::median;
use crate::{Device, Error, PAGE_BYTES, PageId, Result};

/// The smallest region that can be probed, in pages: 4 MiB.
pub const REGION_PAGES_MIN: u64 = 1024;
/// The number of timed single reads.
const SINGLES: usize = 32;

/// Whether the probe may overwrite the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Writes {
    /// The probe only reads, and the mapping cannot be found.
    #[default]
    Refused,
    /// The probe overwrites everything in the region, twice.
    Allowed,
}

/// The options of a probe.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ProbeOptions {
    /// Whether the probe may write. Refused by default.
    pub writes: Writes,
    /// The largest chunk to look for. 256 KiB by default.
    pub chunk_bytes_max: u32,
    /// The most channels to look for. 128 by default. The region must fit four times as many chunks.
    pub channels_max: u32,
    /// The least posterior of an answer. 0.95 by default.
    pub confidence_min: f64,
    /// The seed of all choices.
    pub seed: u64,
}

impl Default for ProbeOptions {
    fn default() -> Self {
        Self {
            writes: Writes::Refused,
            chunk_bytes_max: 256 << 10,
            channels_max: 128,
            confidence_min: 0.95,
            seed: 1,
        }
    }
}

/// Finds the geometry of a device. See the [module](self).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Probe {
    options: ProbeOptions,
}

impl Probe {
    /// Creates a probe with these options.
    #[must_use]
    pub const fn new(options: ProbeOptions) -> Self {
        Self { options }
    }

    /// Probes a region of a device that has no other users meanwhile.
    ///
    /// The same device, options and region give the same operations. A device in virtual time is probed exactly as a
    /// real one.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the region is not on the device; [`Error::Region`] if it is smaller than
    /// [`REGION_PAGES_MIN`]; the device's failure.
    pub fn run(&self, device: &dyn Device, region: Range<PageId>) -> Result<Findings> {
        let (start, end) = (region.start.0, region.end.0);
        let (pages, page_count) = (end.saturating_sub(start), device.page_count());
        if pages < REGION_PAGES_MIN {
            return Err(Error::Region { pages, pages_min: REGION_PAGES_MIN });
        }
        if end > page_count {
            return Err(Error::OutOfRange { page: region.start, pages, page_count });
        }
        let mut sampler = Sampler::new(device, start..end, self.options.seed)?;
        if self.options.writes == Writes::Allowed {
            sampler.fill()?;
        }
        let measured = self.look(&mut sampler)?;
        Ok(self.conclude(measured, &sampler, &device.engine().name))
    }

    /// Runs the experiments, each with the results of the previous ones.
    fn look(&self, sampler: &mut Sampler<'_>) -> Result<Measurements> {
        let single_ns = singles(sampler)?;
        let pages_max = u64::from(self.options.chunk_bytes_max) / PAGE_BYTES as u64;
        let neighbours = chunk::measure(sampler, pages_max.max(2))?;
        let grid = neighbours.grid.filter(|_| neighbours.confidence >= self.options.confidence_min);
        // Without a visible boundary, each page may be a chunk.
        let grid = grid.unwrap_or(Grid { pages: 1, phase: 0 });
        let channels_max = u64::from(self.options.channels_max);
        let interleave = channels::measure(sampler, grid.pages, channels_max)?;
        // Distances in the wrong unit give a number, but not one of channels.
        let is_unit_sure = grid.pages > 1 || neighbours.grid.is_none();
        let is_sure = is_unit_sure && interleave.confidence >= self.options.confidence_min;
        let channels = interleave.channels.filter(|_| is_sure);
        let rewritten = match channels {
            Some(channels) if self.options.writes == Writes::Allowed => {
                let period = interleave.groups.first().copied().unwrap_or(channels);
                Some(mapping::measure(sampler, grid, period)?)
            }
            _ => None,
        };
        Ok(Measurements { single_ns, neighbours, grid, interleave, channels, rewritten })
    }

    fn conclude(&self, measured: Measurements, sampler: &Sampler<'_>, engine: &str) -> Findings {
        let pair_ns = median(&mut measured.interleave.by_distance.clone());
        let hidden = hidden(measured.single_ns, pair_ns, engine);
        let chunk_bytes = self.chunk_finding(&measured, &hidden);
        let confidence = measured.interleave.confidence;
        let channels = match measured.channels {
            Some(channels) => Finding::found(channels as u32, confidence),
            None if measured.interleave.channels.is_some() => Finding::unknown(confidence, NOISE),
            None => Finding::unknown(confidence, hidden),
        };
        let margin = sampler.head_pages();
        let phase = (margin + measured.grid.phase) % measured.grid.pages;
        Findings {
            chunk_bytes,
            groups: match measured.channels {
                Some(_) => measured.interleave.groups.iter().map(|it| *it as u32).collect(),
                None => Vec::new(),
            },
            mapping: self.mapping_finding(&measured),
            channels,
            region_start: sampler.region_start(),
            phase_bytes: phase * PAGE_BYTES as u64,
            single_ns: measured.single_ns,
            pair_ns,
            evidence: evidence(&measured),
            reads: sampler.reads,
            writes: sampler.writes,
            engine: engine.to_owned(),
        }
    }

    fn chunk_finding(&self, measured: &Measurements, hidden: &str) -> Finding<u32> {
        let confidence = measured.neighbours.confidence;
        match measured.neighbours.grid {
            Some(grid) if confidence >= self.options.confidence_min => {
                Finding::found((grid.pages * PAGE_BYTES as u64) as u32, confidence)
            }
            Some(_) => Finding::unknown(confidence, NOISE),
            // No boundary among neighbours, but a period over pages: each page is a chunk.
            None if measured.channels.is_some() => {
                Finding::found(PAGE_BYTES as u32, confidence.min(measured.interleave.confidence))
            }
            None => Finding::unknown(confidence, hidden),
        }
    }

    fn mapping_finding(&self, measured: &Measurements) -> Finding<Mapping> {
        match &measured.rewritten {
            None if measured.channels.is_none() => Finding::unknown(
                0.0,
                "it shows only in the pattern of channels, which was not seen",
            ),
            None => Finding::unknown(0.0, "it cannot be found without writing"),
            Some(Rewritten { mapping: Some(mapping), confidence, .. })
                if *confidence >= self.options.confidence_min =>
            {
                Finding::found(*mapping, *confidence)
            }
            Some(Rewritten { mapping: Some(_), confidence, .. }) => {
                Finding::unknown(*confidence, NOISE)
            }
            Some(Rewritten { confidence, .. }) => Finding::unknown(
                *confidence,
                "chunks that were written again follow neither their address nor the order of writing",
            ),
        }
    }
}

const NOISE: &str = "the timings are too noisy: something repeats, but several answers explain it";

/// The results of the experiments.
#[derive(Debug)]
struct Measurements {
    single_ns: u64,
    neighbours: Neighbours,
    grid: Grid,
    interleave: Interleave,
    channels: Option<u64>,
    rewritten: Option<Rewritten>,
}

fn singles(sampler: &mut Sampler<'_>) -> Result<u64> {
    let mut times = Vec::with_capacity(SINGLES);
    for _ in 0..SINGLES {
        if let Some([page, _]) = sampler.fresh_pair(0) {
            times.push(sampler.single_ns(page)?);
        }
    }
    Ok(median(&mut times))
}

/// Returns the reason why nothing repeats, derived from the latencies.
fn hidden(single_ns: u64, pair_ns: u64, engine: &str) -> String {
    if engine == "buffered" {
        return "reads come from the page cache: this file system refuses direct I/O".into();
    }
    let (single_us, pair_us) = (single_ns.div_ceil(1000), pair_ns.div_ceil(1000));
    let times = format!("one read takes {single_us} us, two at once {pair_us} us");
    if pair_ns * 10 >= single_ns * 17 {
        format!("all pairs of reads wait for each other alike, as with a single channel: {times}")
    } else {
        format!(
            "no pair of reads waits longer than another: {times}; a cache, a virtual disk, an array or \
             noise hides the flash, or its addresses are not in this order"
        )
    }
}

fn evidence(measured: &Measurements) -> Vec<Curve> {
    // Several whole chunks, so that repeated boundaries are visible.
    let period = measured.grid.pages * 16_u64.div_ceil(measured.grid.pages);
    let mut by_place: Vec<Vec<u64>> = vec![Vec::new(); period as usize];
    for (first, ns) in &measured.neighbours.samples {
        by_place[((first + period - measured.grid.phase) % period) as usize].push(*ns);
    }
    let places = by_place.iter_mut().map(|it| median(it));
    let mut curves = vec![Curve {
        name: "neighbours",
        about: "Two neighbouring pages at once, by the place of the first in its chunk.",
        axis: Axis::Pages,
        points: (0..).zip(places).filter(|it| it.1 > 0).collect(),
    }];
    let mut add = |name, about, latencies: &[u64]| {
        let points = (1..).zip(latencies.iter().copied()).filter(|it| it.1 > 0).collect();
        curves.push(Curve { name, about, axis: Axis::Chunks, points });
    };
    let about = "Two chunks at once, by the distance of their addresses.";
    add("distance", about, &measured.interleave.by_distance);
    if let Some(rewritten) = &measured.rewritten {
        let about = "The same after the chunks were written again in a random order.";
        add("address", about, &rewritten.by_address);
        let about = "Two of the rewritten chunks, by their distance in the order of writing.";
        add("order", about, &rewritten.by_order);
    }
    curves
}
