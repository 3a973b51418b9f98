//! The results of a probe, their confidence, and their evidence.

use crate::{Geometry, Mapping, PAGE_BYTES, PageId};

/// An answer, or the reason why there is none.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding<T> {
    /// The answer; `None` if nothing was visible, or not clearly enough.
    pub value: Option<T>,
    /// The posterior, from 0 to 1, of the answer, or of no visible pattern: how much better it explains the timings
    /// than all other answers together (Bayesian information criterion).
    pub confidence: f64,
    /// The reason why there is no answer; empty if there is one.
    pub reason: String,
}

impl<T> Finding<T> {
    pub(super) fn found(value: T, confidence: f64) -> Self {
        Self { value: Some(value), confidence, reason: String::new() }
    }

    pub(super) fn unknown(confidence: f64, reason: impl Into<String>) -> Self {
        Self { value: None, confidence, reason: reason.into() }
    }
}

/// The unit of a curve's axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Axis {
    /// The number of pages after a boundary of the grid of chunks.
    Pages,
    /// The number of chunks between the two that are read.
    Chunks,
}

/// Latencies of pairs of reads, as evidence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Curve {
    /// Its name: `neighbours`, `distance`, `address` or `order`.
    pub name: &'static str,
    /// A sentence that describes what was read.
    pub about: &'static str,
    /// The unit of the first number of a point.
    pub axis: Axis,
    /// Place or distance, and the typical latency of a pair there in nanoseconds.
    pub points: Vec<(u64, u64)>,
}

/// The results of a probe.
#[derive(Clone, PartialEq, Debug)]
pub struct Findings {
    /// The number of bytes that are on one channel before the next begins.
    pub chunk_bytes: Finding<u32>,
    /// The number of channels, in the sense of ANCS'14: the period of the whole pattern of latencies over the distance.
    pub channels: Finding<u32>,
    /// Shorter periods inside, from the shortest: the number of buses, if channels share them.
    pub groups: Vec<u32>,
    /// The mapping of chunks to channels.
    pub mapping: Finding<Mapping>,
    /// The start of the region on the device.
    pub region_start: PageId,
    /// The start of the first whole chunk, in bytes from the start of the region; 0 if unknown.
    pub phase_bytes: u64,
    /// The median time of a single read, in nanoseconds.
    pub single_ns: u64,
    /// The median time of two reads of pages far apart, in nanoseconds.
    pub pair_ns: u64,
    /// The timings as evidence.
    pub evidence: Vec<Curve>,
    /// The number of pages read, each once except for those of the head.
    pub reads: u64,
    /// The number of pages written.
    pub writes: u64,
    /// The engine of the operations.
    pub engine: String,
}

impl Findings {
    /// The geometry of this device; unknown in everything that was not visible.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        let channels = self.channels.value;
        let shared = |buses: &u32| channels.is_some_and(|all| *buses > 1 && all % *buses == 0);
        Geometry {
            channels,
            chunk_bytes: self.chunk_bytes.value,
            mapping: self.mapping.value,
            buses: self.groups.first().copied().filter(shared),
            phase_bytes: self.chunk_bytes.value.map_or(0, |chunk| self.device_phase_bytes(chunk)),
            ..Geometry::opaque()
        }
    }

    /// Returns the phase counted from the start of the device, if chunks have this size.
    fn device_phase_bytes(&self, chunk_bytes: u32) -> u32 {
        let chunk = u64::from(chunk_bytes);
        let start = self.region_start.0 % (chunk / PAGE_BYTES as u64) * PAGE_BYTES as u64;
        u32::try_from((start + self.phase_bytes) % chunk).expect("less than a chunk")
    }

    /// Returns the consequences, in a few sentences.
    #[must_use]
    pub fn advice(&self) -> String {
        let (Some(chunk), Some(channels)) = (self.chunk_bytes.value, self.channels.value) else {
            return "Treat the device as opaque: keep a deep queue of reads and write in large \
                    large writes; nothing is gained by placing data."
                .into();
        };
        let stripe = u64::from(chunk) * u64::from(channels);
        let place = match self.mapping.value {
            Some(Mapping::Lba) => format!(
                "Page p is on channel floor(p / {}) mod {channels}: place by address, whatever is \
                 written when.",
                chunk as usize / PAGE_BYTES
            ),
            Some(Mapping::WriteOrder) => format!(
                "A chunk's channel is its turn of writing mod {channels}: write in runs of \
                 {stripe} bytes or multiples, front to back, and nothing else meanwhile."
            ),
            None => format!(
                "Data that are written front to back in runs of {stripe} bytes have their chunks \
                 on all channels in turn."
            ),
        };
        let buses = self.groups.first().map(|buses| {
            format!(" Pages on the same of {buses} buses wait for each other too, but less.")
        });
        format!(
            "Reads of up to {channels} pages on different channels go at once. {place}{}",
            buses.unwrap_or_default()
        )
    }
}
