//! Many lookups at once during merges, from a tape, on one drive or several, in virtual time.
//!
//! A [player](crate::play) gives each thread its operations beforehand; here an idle worker takes the next
//! one, as the paper's threads do, and reads can be started in another order than they were requested: by the
//! paper's schedule, which spreads them over the channels, or by that of the structures, which is the same
//! unless the drive's buses serve one read at a time. The tape has each operation's reads and writes; this
//! decides their times.
//!
//! ```text
//!   tape -> a core's time -> lookups: a line for each channel -> depth in flight \
//!           (window)         buffers: merges, four chunks each                    -> models of drives
//! ```
//!
//! Time advances in ticks, so that drives share one clock.

use nandex::raw::store::schedule::Channels;

use super::merge::CHUNKS;
use crate::{fits, vary};

/// The workers' settings.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorkerModel {
    /// The number of operations in progress at the same time: the threads, or the choice of a schedule.
    pub window: usize,
    /// The number of reads of lookups in flight on each drive.
    pub depth: usize,
    /// The channels over which lookups are spread; a single one leaves them in the order of their arrival.
    pub channels: Channels,
    /// The time at which the next reads are started.
    pub pace: Pace,
    /// The number of cores that share the processor's work.
    pub cores: usize,
    /// The CPU time of a lookup, in nanoseconds.
    pub lookup_cpu_ns: u64,
    /// The CPU time of an insert, its share of merges included, in nanoseconds.
    pub insert_cpu_ns: u64,
    /// The number of merges, or writes of buffers, at the same time.
    pub merges: usize,
    /// The number of I/O chunks of a merge that are in memory at once.
    pub chunks: usize,
    /// The number of full buffers that may wait or be merged while operations continue; with one more nothing
    /// starts until a merge ends. `None` if the thread that fills a buffer writes it, and others continue.
    pub spare_buffers: Option<usize>,
    /// The length in pages below which requests of inserts are no I/O chunks of a merge but of the log, a
    /// checkpoint or a sync. The insert makes them in its order and waits for them. 0 if there are none.
    pub log_pages_below: u32,
    /// The part of the run that counts.
    pub span: Span,
    /// A tick of the clock that the drives share: events within one are visible at its end.
    pub tick_ns: u64,
}

/// The part of a run that counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Span {
    /// All but the first eighth of the operations and the last ones: for operations that are alike.
    Middle,
    /// All, until the last merge has ended: for whole rounds of merges, which come in bursts.
    Whole,
}

/// The time at which the next reads are started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// One read for each that ends.
    Stream,
    /// As many as the depth allows, when all earlier ones have ended.
    Batches,
}

/// The result of the workers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Worked {
    /// The operations in a second.
    pub operations_per_s: f64,
    /// The reads of lookups in flight on a drive, on average over time.
    pub in_flight: f64,
}
/// The tick: a small part of the 116 us that this drive takes for a page.
const TICK_NS: u64 = 1_000;

/// The number of threads that issue requests, and the depth of the drive's queue (section 7.1).
pub const THREADS: usize = 32;
/// The number of cores of the paper's machine: two processors of four.
const CORES: usize = 8;
/// The CPU time of a lookup of SliceHash: 16 % of eight cores at 69 K lookups a second (Table 4, Figure 5a).
pub const SLICEHASH_LOOKUP_NS: u64 = 18_500;
/// The CPU time of an insert of SliceHash: 8 % of eight cores at 125 K inserts a second.
pub const SLICEHASH_INSERT_NS: u64 = 5_100;
/// The CPU time of a lookup of BufferHash: 18 % of eight cores at 57 K lookups a second.
pub const BUFFERHASH_LOOKUP_NS: u64 = 25_300;
/// The CPU time of an insert of BufferHash: 92 % of eight cores at 1100 K inserts a second.
pub const BUFFERHASH_INSERT_NS: u64 = 6_700;
/// The number of lookups that the structure's schedule may choose from, for each in flight.
const WAITING_PER_DEPTH: usize = 8;

impl WorkerModel {
    /// Returns SliceHash as in the paper: its schedule of all waiting lookups, and merges at the same time on
    /// every drive. CPU times are Table 4's share of eight cores at the rates of Figure 5: 16 % of them at 69
    /// K lookups a second, 8 % at 125 K inserts a second.
    #[must_use]
    pub fn channel_aware(channels: Channels, drives: u32) -> Self {
        let drives = drives as usize;
        Self {
            window: (1 + WAITING_PER_DEPTH) * THREADS * drives,
            depth: THREADS,
            channels: channels.without_runs(),
            pace: Pace::Stream,
            cores: CORES,
            lookup_cpu_ns: vary::value(&fits::SLICEHASH_LOOKUP, SLICEHASH_LOOKUP_NS),
            insert_cpu_ns: vary::value(&fits::SLICEHASH_INSERT, SLICEHASH_INSERT_NS),
            merges: drives,
            chunks: CHUNKS,
            spare_buffers: Some(2 * drives),
            log_pages_below: 0,
            span: Span::Middle,
            tick_ns: TICK_NS,
        }
    }

    /// Returns [`channel_aware`](Self::channel_aware) with the schedule of nandex, which starts reads of a
    /// channel in runs if the drive's geometry states that its buses serve one read at a time.
    #[must_use]
    pub fn in_runs(channels: Channels, drives: u32) -> Self {
        Self { channels, ..Self::channel_aware(channels, drives) }
    }

    /// Returns [`channel_aware`](Self::channel_aware) with 32 threads that each take the next lookup,
    /// whatever its channel: SliceHash-noCA.
    #[must_use]
    pub fn in_order_of_arrival() -> Self {
        Self { window: THREADS, ..Self::channel_aware(Channels::opaque(), 1) }
    }

    /// Returns BufferHash with 32 threads, which write their full buffers themselves. Table 4 has 18 % of
    /// eight cores at 57 K lookups a second, and 92 % at 1100 K inserts a second.
    #[must_use]
    pub fn buffer_hash() -> Self {
        Self {
            lookup_cpu_ns: vary::value(&fits::BUFFERHASH_LOOKUP, BUFFERHASH_LOOKUP_NS),
            insert_cpu_ns: vary::value(&fits::BUFFERHASH_INSERT, BUFFERHASH_INSERT_NS),
            merges: THREADS,
            spare_buffers: None,
            ..Self::in_order_of_arrival()
        }
    }
}
